//! Handles the statements of replicas, and the attempts when they are silent.

use archive_model::{ArchiveError, NodeId, ReplicaId, ReplicaState, Root, StoreFailure, VolumeId};
use jiff::Timestamp;

use super::{Effect, FileState, Phase, ReplicaRecord, Turn};

/// The action under way with a replica that does not have the file yet, and its deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Doing {
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

impl Doing {
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
    pub(super) fn placed(&mut self, id: &ReplicaId, node: NodeId, turn: &mut Turn<'_>) {
        if matches!(self.doing(id), Doing::Uploading(_) | Doing::Copying(_)) {
            if let Some(replica) = self.record.replicas.get_mut(id) {
                replica.node = Some(node);
            }
            self.progress(id, turn);
        }
    }

    pub(super) fn progress(&mut self, id: &ReplicaId, turn: &mut Turn<'_>) {
        let until = turn.later(turn.limits.idle);
        match self.doing(id) {
            Doing::Uploading(_) => self.begin(id, Doing::Uploading(until)),
            Doing::Copying(_) => self.begin(id, Doing::Copying(until)),
            Doing::Probing(_) if self.record.content.is_none() => self.begin(id, Doing::Idle),
            // Its time to verify was over before it was asked: nobody is kept waiting, it is asked again later.
            Doing::Probing(_) => self.fail(
                id,
                StoreFailure::TimedOut("verifying; it is still at it".into()),
                turn,
            ),
            Doing::Idle | Doing::Verifying(_) | Doing::Resting(_) => {}
        }
    }

    pub(super) fn data_uploaded(&mut self, id: &ReplicaId, turn: &mut Turn<'_>) {
        let said = self
            .record
            .replicas
            .get(id)
            .is_some_and(|replica| replica.state == ReplicaState::DataUploaded);
        match (self.doing(id), &self.record.content) {
            // A repeated statement is no news: it would put off the deadline permanently.
            (Doing::Verifying(_), _) if said => {}
            (Doing::Verifying(_) | Doing::Copying(_), Some(content)) => {
                let until = turn.limits.verified_by(turn.now, content.size);
                self.change(id, ReplicaState::DataUploaded, turn.now);
                if let Some(replica) = self.record.replicas.get_mut(id) {
                    // This holds for a copy from another replica as well: its node has the admission.
                    replica.sealed = true;
                }
                self.begin(id, Doing::Verifying(until));
            }
            // The node was not given the admission, or was not asked for this: a sign of life, no more.
            _ => self.progress(id, turn),
        }
    }

    pub(super) fn completed(&mut self, id: &ReplicaId, copy: Completion, turn: &mut Turn<'_>) {
        if self
            .record
            .content
            .as_ref()
            .is_none_or(|content| content.root != copy.root)
        {
            return self.fail(id, StoreFailure::Conflict, turn);
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
            self.doing.remove(id);
            self.failures.remove(id);
        }
    }

    /// Handles the statement that the replica does not hold the file. It is believed only as the answer to a probe: a
    /// late one may be older than the upload that now runs.
    pub(super) fn absent(&mut self, id: &ReplicaId, turn: &mut Turn<'_>) {
        if !matches!(self.doing(id), Doing::Probing(_)) {
            return;
        }
        if self.record.content.is_none() {
            self.begin(id, Doing::Idle);
            return;
        }
        if let Some(replica) = self.record.replicas.get_mut(id) {
            replica.sealed = false;
            replica.node = None;
            if !matches!(replica.state, ReplicaState::UploadFailed(_)) {
                let reason = StoreFailure::TimedOut(
                    "storing; asked again, it does not hold the file".into(),
                );
                self.change(id, ReplicaState::UploadFailed(reason), turn.now);
            }
        }
        match self.donor(id) {
            Some(donor) => {
                self.begin(id, Doing::Copying(turn.later(turn.limits.idle)));
                turn.effects.push(Effect::CopyFrom {
                    replica: id.clone(),
                    donor,
                });
            }
            None => self.rest(id, turn),
        }
    }

    /// Handles the statement that not every volume of the replica answered. A replica that was never given the file
    /// counts as one that does not hold it; any other may have the copy on a silent volume.
    pub(super) fn silent(&mut self, id: &ReplicaId, reason: String, turn: &mut Turn<'_>) {
        if let Some(replica) = self.record.replicas.get_mut(id)
            && matches!(
                replica.state,
                ReplicaState::UploadFailed(StoreFailure::Gone(_))
            )
        {
            // An earlier release did not remember that it had held the file.
            replica.sealed = true;
        }
        let is_known = |replica: &ReplicaRecord| replica.sealed || replica.state.is_completed();
        if self.record.replicas.get(id).is_none_or(is_known) {
            return self.fail(id, StoreFailure::Unreachable(reason), turn);
        }
        self.absent(id, turn);
    }

    /// Stops counting a copy. The name stays bound, and the replica is asked once more before the file is copied to
    /// it.
    pub(super) fn gone(&mut self, id: &ReplicaId, turn: &mut Turn<'_>) {
        let Some(replica) = self.record.replicas.get(id) else {
            return;
        };
        if replica.state.is_withdrawn() {
            // People have taken it out: it shall not be there.
            return;
        }
        let is_bound = self.record.phase.is_bound();
        let was_there = replica.state.is_completed();
        if !was_there && (!is_bound || self.doing(id).is_under_way()) {
            // The file is on its way into the replica already.
            return;
        }
        if let Some(replica) = self.record.replicas.get_mut(id).filter(|_| was_there) {
            replica.node = None;
            replica.volume = None;
            replica.sealed = true;
        }
        // Also after a failure: it is tried now rather than when the pause is over, and a new failure can be told from it.
        self.change(
            id,
            ReplicaState::UploadFailed(StoreFailure::Gone(
                "every volume says so; it is being copied again".to_owned(),
            )),
            turn.now,
        );
        self.probe(id, turn);
    }

    pub(super) fn moved(&mut self, id: &ReplicaId, node: NodeId, volume: VolumeId) {
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

    pub(super) fn fail(&mut self, id: &ReplicaId, reason: StoreFailure, turn: &mut Turn<'_>) {
        if let Some(replica) = self
            .record
            .replicas
            .get_mut(id)
            .filter(|replica| replica.state.is_open())
        {
            if !replica.sealed {
                replica.node = None;
            }
            self.change(id, ReplicaState::UploadFailed(reason), turn.now);
            // A failure that is told again and again must not put off the next probe.
            if !matches!(self.doing(id), Doing::Resting(_)) {
                self.rest(id, turn);
            }
        }
    }

    pub(super) fn tick(&mut self, turn: &mut Turn<'_>) {
        for id in self.open() {
            if self
                .doing(&id)
                .deadline()
                .is_none_or(|until| until > turn.now)
            {
                continue;
            }
            match self.doing(&id) {
                // The replica is not asked at once: a copy without a sign of life must not look like endless work.
                Doing::Uploading(_) | Doing::Copying(_) => {
                    let silent = turn.limits.idle.as_secs().unsigned_abs();
                    self.fail(&id, StoreFailure::Stalled(silent), turn);
                }
                Doing::Probing(_) if self.record.content.is_none() => self.begin(&id, Doing::Idle),
                Doing::Probing(_) => {
                    let reason = StoreFailure::TimedOut("asking whether it holds the file".into());
                    self.fail(&id, reason, turn);
                }
                Doing::Verifying(_) => self.probe(&id, turn),
                Doing::Resting(_) => {
                    let failures = self.failures.entry(id.clone()).or_default();
                    failures.pauses = failures.pauses.saturating_add(1);
                    self.probe(&id, turn);
                }
                Doing::Idle => {}
            }
        }
        let late = self
            .comparing
            .extract_if(.., |_, (_, until)| *until <= turn.now);
        for (requester, _) in late.collect::<Vec<_>>() {
            let what = format!(
                "reading {} to compare it with what is archived",
                self.record.name
            );
            turn.answer(requester, Err(ArchiveError::TimedOut(what)));
        }
        if matches!(self.record.phase, Phase::Intent { expires } if expires <= turn.now) {
            // An admission that is out may still become a file: the name stays taken until the replica denies it.
            let sealed = self.record.replicas.values().any(|replica| replica.sealed);
            if sealed || self.source.is_some() || !self.waiting.is_empty() {
                self.record.phase = Phase::Intent {
                    expires: turn.later(turn.limits.rest_longest),
                };
            } else {
                self.forget();
            }
        }
    }

    pub(super) fn probe(&mut self, id: &ReplicaId, turn: &mut Turn<'_>) {
        self.begin(id, Doing::Probing(turn.later(turn.limits.probe)));
        turn.effects.push(Effect::Probe {
            replica: id.clone(),
        });
    }

    /// Lets the replica pause, longer after each pause. Before the content is fixed there is nothing to come back for.
    pub(super) fn rest(&mut self, id: &ReplicaId, turn: &mut Turn<'_>) {
        if self.record.content.is_none() {
            return self.begin(id, Doing::Idle);
        }
        let failures = self.failures.entry(id.clone()).or_default();
        let until = turn.limits.rested_by(turn.now, failures.pauses);
        failures.times = failures.times.saturating_add(1);
        self.begin(id, Doing::Resting(until));
    }

    /// Picks a replica to copy from into `id`: another one after each failure, so that one bad donor does not block it permanently.
    pub(super) fn donor(&self, id: &ReplicaId) -> Option<ReplicaId> {
        let failures = self.failures.get(id).copied().unwrap_or_default();
        let turn = usize::try_from(failures.times).unwrap_or(0);
        let donors = self.record.donors().collect::<Vec<_>>();
        donors
            .get(turn.checked_rem(donors.len())?)
            .copied()
            .cloned()
    }

    pub(super) fn begin(&mut self, id: &ReplicaId, doing: Doing) {
        self.doing.insert(id.clone(), doing);
    }

    pub(super) fn doing(&self, id: &ReplicaId) -> Doing {
        self.doing.get(id).copied().unwrap_or_default()
    }

    pub(super) fn open(&self) -> Vec<ReplicaId> {
        self.record.open().map(|(id, _)| id.clone()).collect()
    }

    pub(super) fn change(&mut self, id: &ReplicaId, state: ReplicaState, now: Timestamp) {
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
