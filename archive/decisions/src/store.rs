//! One file on its way into every replica: what to do next, given what happened.
//!
//! Owns the store state machine. A store is acknowledged only when every *required* replica has the bytes, read back;
//! a replica that is not required never delays the answer. Once one replica has committed, the name is bound and the
//! archive finishes alone, from that copy. Every wait ends by a timer.
//!
//! Two depositors, one name: the same content (by a strong digest) *waits* for the running upload, and its stream takes
//! over if the first one breaks; other content, or content that only its bytes could tell, is refused as *busy* until
//! the name is bound, then refused or compared. Nothing of the running upload is disturbed. An upload that a depositor
//! has left before its content was fixed is continued by that depositor only: another begins anew, so that nobody holds
//! a name by asking for it and going away.
//!
//! Not promised: that an effect was carried out. What is lost is found out by a probe, after a timer or a restart.

mod claim;
mod depositor;
mod feed;
mod message;
mod people;
mod record;
mod replicas;
#[cfg(test)]
mod tests;
mod transition;

use std::collections::BTreeMap;

use archive_model::{ArchiveError, ReplicaId, ReplicaState, StoreFailure};
use jiff::Timestamp;

pub use claim::{Agreement, Claim, Content};
pub use feed::FeedState;
pub use message::{Effect, Requester, StoreLimits, StoringEvent};
pub use record::{
    FileRecord, NamePhase, RecordedUpload, ReplicaRecord, ReplicaSpec, UnusableReplicas,
};
use replicas::{Completion, ReplicaActivity};
use transition::Transition;

/// A file on its way: the record that survives a crash, and what this process waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    record: FileRecord,
    activities: BTreeMap<ReplicaId, ReplicaActivity>,
    failures: BTreeMap<ReplicaId, Failures>,
    source: Option<Requester>,
    waiting: Vec<WaitingDepositor>,
    comparing: BTreeMap<Requester, (Claim, Timestamp)>,
}

/// The failures of a replica in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Failures {
    /// The number of failures.
    times: u32,
    /// The number of pauses that came to their end. A pause that a depositor cut short by storing again does not make
    /// the next one longer.
    pauses: u32,
    /// Whether the last failure was that of a copy from another replica.
    is_starved: bool,
}

/// A depositor that waits for the answer about the admitted (or about to be admitted) content.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WaitingDepositor {
    requester: Requester,
    /// Whether the depositor's stream has not been touched, so that it can still be the source.
    unread: bool,
}

impl FileState {
    /// Creates the state of a name that nobody has taken; for the record of a known file see [`FileState::restore_state`].
    pub const fn new(record: FileRecord) -> Self {
        Self {
            record,
            activities: BTreeMap::new(),
            failures: BTreeMap::new(),
            source: None,
            waiting: Vec::new(),
            comparing: BTreeMap::new(),
        }
    }

    /// Goes on from a record after a restart, and asks every replica that does not have the file.
    pub fn restore_state(
        record: FileRecord,
        now: Timestamp,
        limits: &StoreLimits,
    ) -> (Self, Vec<Effect>) {
        let mut state = Self::new(record);
        let mut transition = Transition {
            now,
            limits,
            effects: Vec::new(),
        };
        if !state.record.is_final() {
            for id in state.open_replicas() {
                state.probe_replica(&id, &mut transition);
            }
            transition
                .effects
                .extend(state.next_deadline().map(Effect::SetTimer));
        }
        (state, transition.effects)
    }

    /// Returns the record that the admin data have to remember, to be written for each [`Effect::Persist`] as it is
    /// when `apply` returns.
    pub const fn record(&self) -> &FileRecord {
        &self.record
    }

    /// Whether the state need not be kept in memory, because nothing is under way and nobody waits.
    pub fn is_idle(&self) -> bool {
        self.record.is_final() && self.waiting.is_empty() && self.comparing.is_empty()
    }

    /// Whether nothing is under way and nobody waits: the rest of the work waits for a timer.
    pub fn is_parked(&self) -> bool {
        self.source.is_none()
            && self.waiting.is_empty()
            && self.comparing.is_empty()
            && !self
                .activities
                .values()
                .any(|activity| activity.is_under_way())
    }

    /// Returns the time at which [`StoringEvent::Tick`] is due next; never `None` unless the state [is idle](Self::is_idle).
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let expires = match self.record.phase {
            NamePhase::Intent { expires } => Some(expires),
            NamePhase::Free | NamePhase::Bound | NamePhase::Complete | NamePhase::Incomplete => {
                None
            }
        };
        let replicas = self
            .activities
            .values()
            .filter_map(|activity| activity.deadline());
        let comparing = self.comparing.values().map(|(_, until)| *until);
        replicas.chain(comparing).chain(expires).min()
    }

    /// Returns the time at which each replica that failed is tried again.
    pub fn retry_times(&self) -> BTreeMap<ReplicaId, Timestamp> {
        let resting = self
            .activities
            .iter()
            .filter_map(|(id, activity)| match activity {
                ReplicaActivity::Resting(until) => Some((id.clone(), *until)),
                ReplicaActivity::Idle
                | ReplicaActivity::Uploading(_)
                | ReplicaActivity::Verifying(_)
                | ReplicaActivity::Probing(_)
                | ReplicaActivity::Copying(_) => None,
            });
        resting.collect()
    }

    /// Returns the time at which the archive tries again by itself; `None` if no replica has bytes for the others.
    fn next_retry(&self) -> Option<Timestamp> {
        self.record.donors().next()?;
        self.retry_times().into_values().min()
    }

    /// Returns the effects of `event`, in order. [`Effect::Persist`] is first wherever the record has changed.
    pub fn apply_event(
        &mut self,
        event: StoringEvent,
        now: Timestamp,
        limits: &StoreLimits,
    ) -> Vec<Effect> {
        let before = self.record.clone();
        let timer = self.next_deadline();
        let mut transition = Transition {
            now,
            limits,
            effects: Vec::new(),
        };
        if self.record.phase != NamePhase::Free || matches!(event, StoringEvent::Asked { .. }) {
            self.react(event, &mut transition);
            self.settle(&mut transition);
        }
        if self.record != before {
            let expired = before
                .upload
                .filter(|_| self.record.phase == NamePhase::Free);
            transition.effects.insert(
                0,
                expired.map_or(Effect::Persist, |upload| Effect::Expire {
                    upload: upload.id,
                }),
            );
        }
        let next = self.next_deadline();
        if next != timer {
            transition.effects.extend(next.map(Effect::SetTimer));
        }
        transition.effects
    }

    fn react(&mut self, event: StoringEvent, transition: &mut Transition<'_>) {
        match event {
            StoringEvent::Asked {
                requester,
                upload,
                claim,
                resumes,
            } => {
                if !resumes && self.is_abandoned() {
                    self.forget();
                }
                self.admit_depositor(requester, upload, claim, transition);
            }
            StoringEvent::Received { requester, content } => {
                self.receive_content(requester, content, transition);
            }
            StoringEvent::SourceGone { requester } => self.drop_depositor(requester, transition),
            StoringEvent::Tick => self.tick_replicas(transition),
            StoringEvent::Placed { replica, node } => {
                self.note_placement(&replica, node, transition);
            }
            StoringEvent::Progress { replica } => self.note_progress(&replica, transition),
            StoringEvent::DataUploaded { replica } => self.note_data_uploaded(&replica, transition),
            StoringEvent::Completed {
                replica,
                node,
                volume,
                root,
                at,
                read_back: _,
            } => {
                self.note_completion(
                    &replica,
                    Completion {
                        node,
                        volume,
                        root,
                        at,
                    },
                    transition,
                );
            }
            StoringEvent::Absent { replica } => self.note_absence(&replica, transition),
            StoringEvent::Silent { replica, reason } => {
                self.note_silence(&replica, reason, transition);
            }
            StoringEvent::Gone { replica } => self.note_loss(&replica, transition),
            StoringEvent::Moved {
                replica,
                node,
                volume,
            } => self.note_move(&replica, node, volume),
            StoringEvent::Failed { replica, reason } => {
                self.fail_replica(&replica, reason, transition);
            }
            StoringEvent::Wanted {
                replica,
                kind,
                required,
                gone,
            } => self.require_copy(&replica, kind, required, gone, transition),
            StoringEvent::Replacing { replica, why } => {
                self.begin_replacement(&replica, why, transition);
            }
            StoringEvent::Withdrawn { replica, why } => {
                self.withdraw_file(&replica, why, transition);
            }
            StoringEvent::Reinstated { replica } => self.reinstate_copy(&replica, transition),
            StoringEvent::Readmitted { upload, content } => {
                self.readmit_copy(upload, content, transition);
            }
        }
    }

    // What follows from what is known now.

    fn settle(&mut self, transition: &mut Transition<'_>) {
        self.record.phase = self.next_phase();
        if self.record.is_acknowledged() {
            self.answer_all(&Ok(()), transition);
        }
        if self.record.is_withdrawn() {
            let error = self.removal_error();
            self.answer_all(&Err(error), transition);
        }
        self.take_source(transition);
        if !self.waiting.is_empty() && !self.awaited().any(ReplicaActivity::is_under_way) {
            let failures =
                self.record
                    .open_replicas()
                    .filter_map(|(id, replica)| match &replica.state {
                        ReplicaState::UploadFailed(reason) => Some((id.clone(), reason.clone())),
                        ReplicaState::UploadStarted
                        | ReplicaState::DataUploaded
                        | ReplicaState::UploadCompleted
                        | ReplicaState::Withdrawn(_) => None,
                    });
            let not_enough = ArchiveError::NotEnoughReplicas {
                name: self.record.name.clone(),
                failures: failures.collect(),
                again: self.next_retry(),
            };
            let error = self.is_held_unknown().unwrap_or(not_enough);
            self.answer_all(&Err(error), transition);
        }
    }

    /// Returns the phase that follows from the states of the replicas. A file that was acknowledged once stays so, even
    /// if copies are lost later.
    fn next_phase(&self) -> NamePhase {
        let record = &self.record;
        let was_acknowledged = matches!(record.phase, NamePhase::Bound | NamePhase::Complete);
        let mut replicas = record.replicas.values();
        if record.open_replicas().next().is_none() {
            NamePhase::Complete
        } else if was_acknowledged || record.is_acknowledged() {
            NamePhase::Bound
        } else if replicas.any(|replica| replica.state.is_completed()) {
            NamePhase::Incomplete
        } else {
            record.phase
        }
    }

    /// Returns the answer to a depositor if every replica holds a file of that name that the admin data do not know: no
    /// replica takes the bytes, and storing them again changes nothing.
    fn is_held_unknown(&self) -> Option<ArchiveError> {
        let name = &self.record.name;
        let conflict = ReplicaState::UploadFailed(StoreFailure::Conflict);
        let mut replicas = self.record.replicas.values();
        let is_unknown = self.record.content.is_none();
        (is_unknown && replicas.all(|replica| replica.state == conflict)).then(|| {
            ArchiveError::Storage(format!(
                "every replica holds a file named {name} that the admin data do not know; let an officer look at it \
                 with `holdfast check files {name}` and record it with `holdfast adopt {name}`"
            ))
        })
    }

    /// Lets the first depositor whose stream is untouched send, where nobody sends and no replica could give another a
    /// copy: none has one, or the last copy between replicas failed, perhaps because the only one has rotted.
    fn take_source(&mut self, transition: &mut Transition<'_>) {
        let is_starved = |id: &ReplicaId| self.failures.get(id).is_some_and(|one| one.is_starved);
        let has_donor = self.record.donors().next().is_some();
        if self.source.is_some() || (has_donor && self.awaited().any(ReplicaActivity::is_under_way))
        {
            return;
        }
        // No node was given an admission yet: a probe cannot find anything, so that none is waited for.
        let unfixed = self.record.content.is_none();
        // A probe is about to tell whether a required replica has the file: the transfer waits, so that it does not
        // leave that replica out.
        if !unfixed
            && self
                .awaited()
                .any(|activity| matches!(activity, ReplicaActivity::Probing(_)))
        {
            return;
        }
        let is_target = |id: &ReplicaId| match self.current_activity(id) {
            ReplicaActivity::Idle | ReplicaActivity::Resting(_) => true,
            ReplicaActivity::Probing(_) => unfixed,
            ReplicaActivity::Uploading(_)
            | ReplicaActivity::Verifying(_)
            | ReplicaActivity::Copying(_) => false,
        };
        let targets = self
            .open_replicas()
            .into_iter()
            .filter(|id| is_target(id) && (!has_donor || is_starved(id)))
            .collect::<Vec<_>>();
        // A stream into replicas that are not required alone would be in vain: the answer would not wait for it.
        let any_will_do = self.any_will_do();
        let is_awaited = |id: &ReplicaId| {
            let replica = self.record.replicas.get(id);
            replica.is_some_and(|replica| replica.required || any_will_do)
        };
        let is_worth_it = targets.iter().any(is_awaited);
        let Some(waiting) = self
            .waiting
            .iter_mut()
            .find(|waiting| waiting.unread && is_worth_it)
        else {
            return;
        };
        waiting.unread = false;
        self.source = Some(waiting.requester);
        transition.effects.push(Effect::Source {
            requester: waiting.requester,
        });
        for id in targets {
            let node = self
                .record
                .replicas
                .get(&id)
                .and_then(|replica| replica.node.clone());
            self.begin_activity(
                &id,
                ReplicaActivity::Uploading(transition.time_after(transition.limits.idle)),
            );
            transition
                .effects
                .push(Effect::BeginUpload { replica: id, node });
        }
    }

    /// Whether any replica will do, because no required replica is open: people may have withdrawn every required copy.
    fn any_will_do(&self) -> bool {
        !self
            .record
            .open_replicas()
            .any(|(_, replica)| replica.required)
    }

    /// Returns the actions under way with the replicas that an answer waits for.
    fn awaited(&self) -> impl Iterator<Item = ReplicaActivity> {
        let any_will_do = self.any_will_do();
        let awaited = self.record.open_replicas();
        awaited
            .filter(move |(_, replica)| replica.required || any_will_do)
            .map(|(id, _)| self.current_activity(id))
    }

    fn answer_all(&mut self, result: &Result<(), ArchiveError>, transition: &mut Transition<'_>) {
        if !self.waiting.is_empty() {
            self.end_source(transition);
            self.renew(transition);
        }
        for waiting in self.waiting.drain(..) {
            transition.answer_requester(waiting.requester, result.clone());
        }
    }

    /// Ends the stream of the depositor: replicas that were being sent to wait for the next depositor, or for a donor.
    fn end_source(&mut self, transition: &mut Transition<'_>) {
        self.source = None;
        for id in self.open_replicas() {
            if matches!(self.current_activity(&id), ReplicaActivity::Uploading(_)) {
                self.rest_replica(&id, transition);
            }
        }
    }

    /// Whether a depositor went away before its content was fixed: no replica can have committed anything.
    fn is_abandoned(&self) -> bool {
        matches!(self.record.phase, NamePhase::Intent { .. })
            && self.record.content.is_none()
            && self.waiting.is_empty()
    }

    fn renew(&mut self, transition: &mut Transition<'_>) {
        if matches!(
            self.record.phase,
            NamePhase::Free | NamePhase::Intent { .. }
        ) {
            self.record.phase = NamePhase::Intent {
                expires: transition.time_after(transition.limits.intent),
            };
        }
    }

    fn forget(&mut self) {
        self.record.phase = NamePhase::Free;
        self.record.upload = None;
        self.record.content = None;
        for replica in self.record.replicas.values_mut() {
            *replica = ReplicaRecord::started_record(
                replica.kind,
                replica.required,
                Timestamp::UNIX_EPOCH,
            );
        }
        self.activities.clear();
        self.failures.clear();
    }
}
