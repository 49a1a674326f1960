//! One file on its way into every replica: what to do next, given what happened.
//!
//! Owns the store state machine. A store is acknowledged only when every *required* replica has the bytes, read back;
//! a replica that is not required never delays the answer. Once one replica has committed, the name is bound and the
//! archive finishes alone, from that copy. Every wait ends by a timer.
//!
//! Two depositors, one name: the same content (by a strong digest) *waits* for the running upload, and its stream takes
//! over if the first one breaks; other content, or content that only its bytes could tell, is told *busy* until the
//! name is bound, then refused or compared. Nothing of the running upload is disturbed. An upload that a depositor has
//! left before its content was fixed is continued by that depositor only: another begins anew, so that nobody holds a
//! name by asking for it and going away.
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

use std::collections::BTreeMap;

use archive_model::{ArchiveError, ReplicaId, ReplicaState, StoreFailure};
use jiff::{SignedDuration, Timestamp};

pub use claim::{Agreement, Claim, Content};
pub use feed::FeedState;
use message::later;
pub use message::{Effect, Event, Limits, Requester};
pub use record::{FileRecord, Phase, ReplicaRecord, ReplicaSpec, UnusableReplicas, Upload};
use replicas::{Completion, Doing};

/// A file on its way: the record that survives a crash, and what this process waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    record: FileRecord,
    doing: BTreeMap<ReplicaId, Doing>,
    failures: BTreeMap<ReplicaId, Failures>,
    source: Option<Requester>,
    waiting: Vec<Waiting>,
    comparing: BTreeMap<Requester, (Claim, Timestamp)>,
}

/// The number of failures of a replica in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Failures {
    /// The number of failures.
    times: u32,
    /// The number of pauses that came to their end. A pause that a depositor cut short by storing again does not make
    /// the next one longer.
    pauses: u32,
}

/// A depositor that waits for the answer about the admitted (or about to be admitted) content.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Waiting {
    requester: Requester,
    /// Whether the depositor's stream has not been touched, so that it can still be the source.
    unread: bool,
}

impl FileState {
    /// Creates the state of a name that nobody has taken; for the record of a known file see [`FileState::restore`].
    pub const fn new(record: FileRecord) -> Self {
        Self {
            record,
            doing: BTreeMap::new(),
            failures: BTreeMap::new(),
            source: None,
            waiting: Vec::new(),
            comparing: BTreeMap::new(),
        }
    }

    /// Goes on from a record after a restart, and asks every replica that does not have the file.
    pub fn restore(record: FileRecord, now: Timestamp, limits: &Limits) -> (Self, Vec<Effect>) {
        let mut state = Self::new(record);
        let mut turn = Turn {
            now,
            limits,
            effects: Vec::new(),
        };
        if !state.record.is_final() {
            for id in state.open() {
                state.probe(&id, &mut turn);
            }
            turn.effects
                .extend(state.next_deadline().map(Effect::SetTimer));
        }
        (state, turn.effects)
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
            && !self.doing.values().any(|doing| doing.is_under_way())
    }

    /// Returns the time at which [`Event::Tick`] is due next; never `None` unless the state [is idle](Self::is_idle).
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let expires = match self.record.phase {
            Phase::Intent { expires } => Some(expires),
            Phase::Free | Phase::Bound | Phase::Complete | Phase::Incomplete => None,
        };
        let replicas = self.doing.values().filter_map(|doing| doing.deadline());
        let comparing = self.comparing.values().map(|(_, until)| *until);
        replicas.chain(comparing).chain(expires).min()
    }

    /// Returns the time at which each replica that failed is tried again.
    pub fn retries(&self) -> BTreeMap<ReplicaId, Timestamp> {
        let resting = self.doing.iter().filter_map(|(id, doing)| match doing {
            Doing::Resting(until) => Some((id.clone(), *until)),
            Doing::Idle
            | Doing::Uploading(_)
            | Doing::Verifying(_)
            | Doing::Probing(_)
            | Doing::Copying(_) => None,
        });
        resting.collect()
    }

    /// Returns the time at which the archive goes on by itself; `None` if no replica has bytes for the others.
    fn next_retry(&self) -> Option<Timestamp> {
        self.record.donors().next()?;
        self.retries().into_values().min()
    }

    /// Returns the effects of `event`, in order. [`Effect::Persist`] is first wherever the record has changed.
    pub fn apply(&mut self, event: Event, now: Timestamp, limits: &Limits) -> Vec<Effect> {
        let (before, timer) = (self.record.clone(), self.next_deadline());
        let mut turn = Turn {
            now,
            limits,
            effects: Vec::new(),
        };
        if self.record.phase != Phase::Free || matches!(event, Event::Asked { .. }) {
            self.react(event, &mut turn);
            self.settle(&mut turn);
        }
        if self.record != before {
            let expired = before.upload.filter(|_| self.record.phase == Phase::Free);
            turn.effects.insert(
                0,
                expired.map_or(Effect::Persist, |upload| Effect::Expire {
                    upload: upload.id,
                }),
            );
        }
        let next = self.next_deadline();
        if next != timer {
            turn.effects.extend(next.map(Effect::SetTimer));
        }
        turn.effects
    }

    fn react(&mut self, event: Event, turn: &mut Turn<'_>) {
        match event {
            Event::Asked {
                requester,
                upload,
                claim,
                resumes,
            } => {
                if !resumes && self.is_abandoned() {
                    self.forget();
                }
                self.asked(requester, upload, claim, turn);
            }
            Event::Received { requester, content } => self.received(requester, content, turn),
            Event::SourceGone { requester } => self.source_gone(requester, turn),
            Event::Tick => self.tick(turn),
            Event::Placed { replica, node } => self.placed(&replica, node, turn),
            Event::Progress { replica } => self.progress(&replica, turn),
            Event::DataUploaded { replica } => self.data_uploaded(&replica, turn),
            Event::Completed {
                replica,
                node,
                volume,
                root,
                at,
                read_back: _,
            } => {
                self.completed(
                    &replica,
                    Completion {
                        node,
                        volume,
                        root,
                        at,
                    },
                    turn,
                );
            }
            Event::Absent { replica } => self.absent(&replica, turn),
            Event::Silent { replica, reason } => self.silent(&replica, reason, turn),
            Event::Gone { replica } => self.gone(&replica, turn),
            Event::Moved {
                replica,
                node,
                volume,
            } => self.moved(&replica, node, volume),
            Event::Failed { replica, reason } => self.fail(&replica, reason, turn),
            Event::Wanted {
                replica,
                kind,
                required,
                gone,
            } => self.wanted(&replica, (kind, required), gone, turn),
            Event::Replacing { replica, why } => self.replacing(&replica, why, turn),
            Event::Withdrawn { replica, why } => self.withdrawn(&replica, why, turn),
            Event::Restored {
                replica,
                node,
                volume,
                root,
                at,
            } => {
                let copy = Completion {
                    node,
                    volume,
                    root,
                    at,
                };
                self.restored(&replica, copy, turn);
            }
            Event::Readmitted { upload, content } => self.readmitted(upload, content, turn),
        }
    }

    // What follows from what is known now.

    fn settle(&mut self, turn: &mut Turn<'_>) {
        self.record.phase = self.next_phase();
        if self.record.is_acknowledged() {
            self.answer_all(&Ok(()), turn);
        }
        if self.record.is_withdrawn() {
            let error = self.removed();
            self.answer_all(&Err(error), turn);
        }
        self.take_source(turn);
        if !self.waiting.is_empty() && !self.awaited().any(Doing::is_under_way) {
            let failures = self
                .record
                .open()
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
            self.answer_all(&Err(error), turn);
        }
    }

    /// Returns the phase that follows from the states of the replicas. A file that was acknowledged once stays so, even
    /// if copies are lost later.
    fn next_phase(&self) -> Phase {
        let record = &self.record;
        let was_acknowledged = matches!(record.phase, Phase::Bound | Phase::Complete);
        let mut replicas = record.replicas.values();
        if record.open().next().is_none() {
            Phase::Complete
        } else if was_acknowledged || record.is_acknowledged() {
            Phase::Bound
        } else if replicas.any(|replica| replica.state.is_completed()) {
            Phase::Incomplete
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
                 with `holdfast check files {name}` and take it in with `holdfast adopt {name}`"
            ))
        })
    }

    /// Lets the first depositor whose stream is untouched send, where nobody sends and no replica could give another a copy.
    fn take_source(&mut self, turn: &mut Turn<'_>) {
        if self.source.is_some() || self.record.donors().next().is_some() {
            return;
        }
        // No node was given an admission yet: a probe cannot find anything, so that none is waited for.
        let unfixed = self.record.content.is_none();
        // A probe is about to tell whether a required replica has the file: the transfer waits, so that it does not
        // leave that replica out.
        if !unfixed
            && self
                .awaited()
                .any(|doing| matches!(doing, Doing::Probing(_)))
        {
            return;
        }
        let is_target = |id: &ReplicaId| match self.doing(id) {
            Doing::Idle | Doing::Resting(_) => true,
            Doing::Probing(_) => unfixed,
            Doing::Uploading(_) | Doing::Verifying(_) | Doing::Copying(_) => false,
        };
        let targets = self
            .open()
            .into_iter()
            .filter(is_target)
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
        turn.effects.push(Effect::Source {
            requester: waiting.requester,
        });
        for id in targets {
            let node = self
                .record
                .replicas
                .get(&id)
                .and_then(|replica| replica.node.clone());
            self.begin(&id, Doing::Uploading(turn.later(turn.limits.idle)));
            turn.effects.push(Effect::BeginUpload { replica: id, node });
        }
    }

    /// Whether any replica will do, because no required replica is open: people may have withdrawn every required copy.
    fn any_will_do(&self) -> bool {
        !self.record.open().any(|(_, replica)| replica.required)
    }

    /// Returns the actions under way with the replicas that an answer waits for.
    fn awaited(&self) -> impl Iterator<Item = Doing> {
        let any_will_do = self.any_will_do();
        let awaited = self.record.open();
        awaited
            .filter(move |(_, replica)| replica.required || any_will_do)
            .map(|(id, _)| self.doing(id))
    }

    fn answer_all(&mut self, result: &Result<(), ArchiveError>, turn: &mut Turn<'_>) {
        if !self.waiting.is_empty() {
            self.end_source(turn);
            self.renew(turn);
        }
        for waiting in self.waiting.drain(..) {
            turn.answer(waiting.requester, result.clone());
        }
    }

    /// Ends the stream of the depositor: replicas that were being sent to wait for the next depositor, or for a donor.
    fn end_source(&mut self, turn: &mut Turn<'_>) {
        self.source = None;
        for id in self.open() {
            if matches!(self.doing(&id), Doing::Uploading(_)) {
                self.rest(&id, turn);
            }
        }
    }

    /// Whether a depositor went away before its content was fixed: no replica can have committed anything.
    fn is_abandoned(&self) -> bool {
        matches!(self.record.phase, Phase::Intent { .. })
            && self.record.content.is_none()
            && self.waiting.is_empty()
    }

    fn renew(&mut self, turn: &mut Turn<'_>) {
        if matches!(self.record.phase, Phase::Free | Phase::Intent { .. }) {
            self.record.phase = Phase::Intent {
                expires: turn.later(turn.limits.intent),
            };
        }
    }

    fn forget(&mut self) {
        self.record.phase = Phase::Free;
        self.record.upload = None;
        self.record.content = None;
        for replica in self.record.replicas.values_mut() {
            *replica =
                ReplicaRecord::started(replica.kind, replica.required, Timestamp::UNIX_EPOCH);
        }
        self.doing.clear();
        self.failures.clear();
    }
}

/// A call of [`FileState::apply`]: its time, its limits, and the effects so far.
struct Turn<'a> {
    now: Timestamp,
    limits: &'a Limits,
    effects: Vec<Effect>,
}

impl Turn<'_> {
    fn later(&self, pause: SignedDuration) -> Timestamp {
        later(self.now, pause)
    }

    fn answer(&mut self, requester: Requester, result: Result<(), ArchiveError>) {
        self.effects.push(Effect::Answer { requester, result });
    }
}
