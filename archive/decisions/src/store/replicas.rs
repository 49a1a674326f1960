//! Handles the statements of replicas, and the attempts when they are silent.

use archive_model::{ArchiveError, NodeId, ReplicaId, ReplicaState, Root, StoreFailure, VolumeId};
use jiff::Timestamp;

use super::{Effect, FileState, NamePhase, ReplicaRecord, Transition};

/// The action under way with a replica that does not have the file yet, and its deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ReplicaActivity {
    /// Nothing: the replica has the file, or no bytes have been admitted yet (then the intent's expiry is the timer).
    #[default]
    Idle,
    /// The depositor's bytes are on their way; a replica that is silent until then has stalled.
    Uploading(Timestamp),
    /// The node has the admission and reads back.
    Verifying(Timestamp),
    /// The replica was asked whether it holds the file.
    Probing(Timestamp),
    /// Bytes come from another replica.
    Copying(Timestamp),
    /// The replica pauses before the next probe.
    Resting(Timestamp),
}

impl ReplicaActivity {
    pub(super) const fn deadline(self) -> Option<Timestamp> {
        match self {
            Self::Idle => None,
            Self::Uploading(until)
            | Self::Verifying(until)
            | Self::Probing(until)
            | Self::Copying(until)
            | Self::Resting(until) => Some(until),
        }
    }

    /// Whether an answer is worth waiting for.
    pub(super) const fn is_under_way(self) -> bool {
        match self {
            Self::Uploading(_) | Self::Verifying(_) | Self::Probing(_) | Self::Copying(_) => true,
            Self::Idle | Self::Resting(_) => false,
        }
    }
}

/// The statement of a node about a copy it has completed.
pub(super) struct Completion {
    pub(super) node: NodeId,
    pub(super) volume: VolumeId,
    pub(super) root: Root,
    pub(super) at: Timestamp,
}

impl FileState {
    /// Handles the choice of a node by the monitor.
    pub(super) fn note_placement(
        &mut self,
        id: &ReplicaId,
        node: NodeId,
        transition: &mut Transition<'_>,
    ) {
        if matches!(
            self.current_activity(id),
            ReplicaActivity::Uploading(_) | ReplicaActivity::Copying(_)
        ) {
            if let Some(replica) = self.record.replicas.get_mut(id) {
                replica.node = Some(node);
            }
            self.note_progress(id, transition);
        }
    }

    /// Handles a sign of life of a replica.
    pub(super) fn note_progress(&mut self, id: &ReplicaId, transition: &mut Transition<'_>) {
        let until = transition.time_after(transition.limits.idle);
        match self.current_activity(id) {
            ReplicaActivity::Uploading(_) => {
                self.begin_activity(id, ReplicaActivity::Uploading(until));
            }
            ReplicaActivity::Copying(_) => self.begin_activity(id, ReplicaActivity::Copying(until)),
            ReplicaActivity::Probing(_) if self.record.content.is_none() => {
                self.begin_activity(id, ReplicaActivity::Idle);
            }
            // Its time to verify was over before it was asked: no depositor is kept waiting, it is asked again later.
            ReplicaActivity::Probing(_) => self.fail_replica(
                id,
                StoreFailure::TimedOut("verifying; the node has not finished".into()),
                transition,
            ),
            ReplicaActivity::Idle | ReplicaActivity::Verifying(_) | ReplicaActivity::Resting(_) => {
            }
        }
    }

    /// Handles the statement that the node has every byte and the admission.
    pub(super) fn note_data_uploaded(&mut self, id: &ReplicaId, transition: &mut Transition<'_>) {
        let is_repeated = self
            .record
            .replicas
            .get(id)
            .is_some_and(|replica| replica.state == ReplicaState::DataUploaded);
        match (self.current_activity(id), &self.record.content) {
            // A repeated statement is no news: it would put off the deadline permanently.
            (ReplicaActivity::Verifying(_), _) if is_repeated => {}
            (ReplicaActivity::Verifying(_) | ReplicaActivity::Copying(_), Some(content)) => {
                let until = transition.limits.verified_by(transition.now, content.size);
                self.change_state(id, ReplicaState::DataUploaded, transition.now);
                if let Some(replica) = self.record.replicas.get_mut(id) {
                    // This holds for a copy from another replica as well: its node has the admission.
                    replica.sealed = true;
                }
                self.begin_activity(id, ReplicaActivity::Verifying(until));
            }
            // The node was not given the admission, or was not asked for this: a sign of life, no more.
            _ => self.note_progress(id, transition),
        }
    }

    /// Handles the statement that the replica has the whole copy.
    pub(super) fn note_completion(
        &mut self,
        id: &ReplicaId,
        copy: Completion,
        transition: &mut Transition<'_>,
    ) {
        if self
            .record
            .content
            .as_ref()
            .is_none_or(|content| content.root != copy.root)
        {
            return self.fail_replica(id, StoreFailure::Conflict, transition);
        }
        if let Some(replica) = self
            .record
            .replicas
            .get_mut(id)
            .filter(|replica| replica.state.is_open())
        {
            replica.state = ReplicaState::UploadCompleted;
            replica.since = copy.at;
            replica.node = Some(copy.node);
            replica.volume = Some(copy.volume);
            replica.sealed = false;
            self.activities.remove(id);
            self.failures.remove(id);
        }
    }

    /// Handles the statement that the replica does not hold the file. It is believed only as the answer to a probe: a
    /// late one may be older than the upload that now runs.
    pub(super) fn note_absence(&mut self, id: &ReplicaId, transition: &mut Transition<'_>) {
        if !matches!(self.current_activity(id), ReplicaActivity::Probing(_)) {
            return;
        }
        if self.record.content.is_none() {
            self.begin_activity(id, ReplicaActivity::Idle);
            return;
        }
        if let Some(replica) = self.record.replicas.get_mut(id) {
            replica.sealed = false;
            replica.node = None;
            if !matches!(replica.state, ReplicaState::UploadFailed(_)) {
                let reason = StoreFailure::TimedOut(
                    "storing; asked again, it does not hold the file".into(),
                );
                self.change_state(id, ReplicaState::UploadFailed(reason), transition.now);
            }
        }
        match self.choose_donor(id) {
            Some(donor) => {
                self.begin_activity(
                    id,
                    ReplicaActivity::Copying(transition.time_after(transition.limits.idle)),
                );
                transition.effects.push(Effect::CopyFrom {
                    replica: id.clone(),
                    donor,
                });
            }
            None => self.rest_replica(id, transition),
        }
    }

    /// Handles the statement that not every volume of the replica answered. A replica that was never given the file
    /// counts as one that does not hold it; any other may have the copy on a silent volume.
    pub(super) fn note_silence(
        &mut self,
        id: &ReplicaId,
        reason: String,
        transition: &mut Transition<'_>,
    ) {
        if let Some(replica) = self.record.replicas.get_mut(id)
            && matches!(
                replica.state,
                ReplicaState::UploadFailed(StoreFailure::Gone(_))
            )
        {
            // It has held the file, or another one in its place: a silent volume may still have that.
            replica.sealed = true;
        }
        let is_known = |replica: &ReplicaRecord| replica.sealed || replica.state.is_completed();
        if self.record.replicas.get(id).is_none_or(is_known) {
            return self.fail_replica(id, StoreFailure::Unreachable(reason), transition);
        }
        self.note_absence(id, transition);
    }

    /// Stops counting a copy. The name stays bound, and the replica is asked once more before the file is copied to
    /// it.
    pub(super) fn note_loss(&mut self, id: &ReplicaId, transition: &mut Transition<'_>) {
        let Some(replica) = self.record.replicas.get(id) else {
            return;
        };
        if replica.state.is_withdrawn() {
            // People have taken it out: it shall not be there.
            return;
        }
        let is_bound = self.record.phase.is_bound();
        let was_there = replica.state.is_completed();
        if !was_there && (!is_bound || self.current_activity(id).is_under_way()) {
            // The file is on its way into the replica already.
            return;
        }
        if let Some(replica) = self.record.replicas.get_mut(id).filter(|_| was_there) {
            replica.node = None;
            replica.volume = None;
            replica.sealed = true;
        }
        // Also after a failure: it is tried now rather than when the pause is over, and a new failure can be
        // distinguished from it.
        self.change_state(
            id,
            ReplicaState::UploadFailed(StoreFailure::Gone(
                "every volume says so; it is being copied again".to_owned(),
            )),
            transition.now,
        );
        self.probe_replica(id, transition);
    }

    /// Handles the statement that a completed copy is at another place of its replica.
    pub(super) fn note_move(&mut self, id: &ReplicaId, node: NodeId, volume: VolumeId) {
        if let Some(replica) = self
            .record
            .replicas
            .get_mut(id)
            .filter(|replica| replica.state.is_completed())
        {
            replica.node = Some(node);
            replica.volume = Some(volume);
        }
    }

    pub(super) fn fail_replica(
        &mut self,
        id: &ReplicaId,
        reason: StoreFailure,
        transition: &mut Transition<'_>,
    ) {
        if let Some(replica) = self
            .record
            .replicas
            .get_mut(id)
            .filter(|replica| replica.state.is_open())
        {
            if !replica.sealed {
                replica.node = None;
            }
            self.change_state(id, ReplicaState::UploadFailed(reason), transition.now);
            let is_starved = matches!(self.current_activity(id), ReplicaActivity::Copying(_));
            self.failures.entry(id.clone()).or_default().is_starved = is_starved;
            // A failure that is reported repeatedly must not put off the next probe.
            if !matches!(self.current_activity(id), ReplicaActivity::Resting(_)) {
                self.rest_replica(id, transition);
            }
        }
    }

    pub(super) fn tick_replicas(&mut self, transition: &mut Transition<'_>) {
        for id in self.open_replicas() {
            if self
                .current_activity(&id)
                .deadline()
                .is_none_or(|until| until > transition.now)
            {
                continue;
            }
            match self.current_activity(&id) {
                // The replica is not asked at once: a copy without a sign of life must not look like endless work.
                ReplicaActivity::Uploading(_) | ReplicaActivity::Copying(_) => {
                    let silent = transition.limits.idle.as_secs().unsigned_abs();
                    self.fail_replica(&id, StoreFailure::Stalled(silent), transition);
                }
                ReplicaActivity::Probing(_) if self.record.content.is_none() => {
                    self.begin_activity(&id, ReplicaActivity::Idle);
                }
                ReplicaActivity::Probing(_) => {
                    let reason = StoreFailure::TimedOut("asking whether it holds the file".into());
                    self.fail_replica(&id, reason, transition);
                }
                ReplicaActivity::Verifying(_) => self.probe_replica(&id, transition),
                ReplicaActivity::Resting(_) => {
                    let failures = self.failures.entry(id.clone()).or_default();
                    failures.pauses = failures.pauses.saturating_add(1);
                    self.probe_replica(&id, transition);
                }
                ReplicaActivity::Idle => {}
            }
        }
        let late = self
            .comparing
            .extract_if(.., |_, (_, until)| *until <= transition.now);
        for (requester, _) in late.collect::<Vec<_>>() {
            let what = format!(
                "reading {} to compare it with what is archived",
                self.record.name
            );
            transition.answer_requester(requester, Err(ArchiveError::TimedOut(what)));
        }
        if matches!(self.record.phase, NamePhase::Intent { expires } if expires <= transition.now) {
            // An admission that is out may still become a file: the name stays taken until the replica denies it.
            let sealed = self.record.replicas.values().any(|replica| replica.sealed);
            if sealed || self.source.is_some() || !self.waiting.is_empty() {
                self.record.phase = NamePhase::Intent {
                    expires: transition.time_after(transition.limits.rest_longest),
                };
            } else {
                self.forget();
            }
        }
    }

    pub(super) fn probe_replica(&mut self, id: &ReplicaId, transition: &mut Transition<'_>) {
        self.begin_activity(
            id,
            ReplicaActivity::Probing(transition.time_after(transition.limits.probe)),
        );
        transition.effects.push(Effect::Probe {
            replica: id.clone(),
        });
    }

    /// Lets the replica pause, longer after each pause. Before the content is fixed there is nothing to come back for.
    pub(super) fn rest_replica(&mut self, id: &ReplicaId, transition: &mut Transition<'_>) {
        if self.record.content.is_none() {
            return self.begin_activity(id, ReplicaActivity::Idle);
        }
        let failures = self.failures.entry(id.clone()).or_default();
        let until = transition.limits.rested_by(transition.now, failures.pauses);
        failures.times = failures.times.saturating_add(1);
        self.begin_activity(id, ReplicaActivity::Resting(until));
    }

    /// Picks a replica to copy from into `id`: another one after each failure, so that one bad donor does not block it
    /// permanently.
    pub(super) fn choose_donor(&self, id: &ReplicaId) -> Option<ReplicaId> {
        let failures = self.failures.get(id).copied().unwrap_or_default();
        let nth = failures.times as usize;
        let donors = self.record.donors().collect::<Vec<_>>();
        donors.get(nth.checked_rem(donors.len())?).copied().cloned()
    }

    pub(super) fn begin_activity(&mut self, id: &ReplicaId, activity: ReplicaActivity) {
        self.activities.insert(id.clone(), activity);
    }

    pub(super) fn current_activity(&self, id: &ReplicaId) -> ReplicaActivity {
        self.activities.get(id).copied().unwrap_or_default()
    }

    pub(super) fn open_replicas(&self) -> Vec<ReplicaId> {
        self.record
            .open_replicas()
            .map(|(id, _)| id.clone())
            .collect()
    }

    pub(super) fn change_state(&mut self, id: &ReplicaId, state: ReplicaState, now: Timestamp) {
        if let Some(replica) = self
            .record
            .replicas
            .get_mut(id)
            .filter(|replica| replica.state != state)
        {
            replica.state = state;
            replica.since = now;
        }
    }
}
