//! Handles the acts of people on a file that is in the archive: give a replica its copy, take it away, restore it, decide anew what
//! the name means.
//!
//! Owns the effect of these acts on the record. Not promised: that the caller may do so; that is decided in `requests`
//! and at the door.

use archive_model::{
    ArchiveError, CopyPlace, ReplicaId, ReplicaKind, ReplicaState, StoreFailure, UploadId,
};

use super::replicas::{Completion, Doing};
use super::{Claim, Content, FileState, ReplicaRecord, Turn, Upload};

impl FileState {
    /// Returns the error for a depositor of a file that people have removed everywhere.
    pub(super) fn removed(&self) -> ArchiveError {
        ArchiveError::Refused(format!(
            "{} was removed from the archive; its name stays taken, so store it under another",
            self.record.name
        ))
    }

    pub(super) fn wanted(
        &mut self,
        id: &ReplicaId,
        (kind, required): (ReplicaKind, bool),
        gone: Option<(CopyPlace, String)>,
        turn: &mut Turn<'_>,
    ) {
        if !self.is_bound() {
            return;
        }
        let replica = self
            .record
            .replicas
            .entry(id.clone())
            .or_insert_with(|| ReplicaRecord::started(kind, required, turn.now));
        if replica.state.is_withdrawn() {
            return;
        }
        if replica.state.is_completed() {
            let Some((place, why)) = gone else {
                return;
            };
            if replica.place() != Some(place) {
                return;
            }
            *replica = ReplicaRecord {
                state: ReplicaState::UploadFailed(StoreFailure::Gone(why)),
                sealed: true,
                ..ReplicaRecord::started(replica.kind, replica.required, turn.now)
            };
        }
        if !self.doing(id).is_under_way() {
            self.probe(id, turn);
        }
    }

    pub(super) fn replacing(&mut self, id: &ReplicaId, why: String, turn: &mut Turn<'_>) {
        let is_bound = self.is_bound();
        let Some(replica) = self
            .record
            .replicas
            .get_mut(id)
            .filter(|replica| is_bound && !replica.state.is_withdrawn())
        else {
            return;
        };
        *replica = ReplicaRecord {
            state: ReplicaState::UploadFailed(StoreFailure::Gone(why)),
            ..ReplicaRecord::started(replica.kind, replica.required, turn.now)
        };
        self.begin(id, Doing::Copying(turn.later(turn.limits.idle)));
    }

    pub(super) fn withdrawn(&mut self, id: &ReplicaId, why: String, turn: &mut Turn<'_>) {
        let is_bound = self.is_bound();
        let Some(replica) = self.record.replicas.get_mut(id).filter(|_| is_bound) else {
            return;
        };
        if !replica.state.is_withdrawn() {
            *replica = ReplicaRecord {
                state: ReplicaState::Withdrawn(why),
                ..ReplicaRecord::started(replica.kind, replica.required, turn.now)
            };
        }
        self.doing.remove(id);
        self.failures.remove(id);
    }

    pub(super) fn restored(&mut self, id: &ReplicaId, copy: Completion, turn: &mut Turn<'_>) {
        let content = self.record.content.as_ref();
        let is_admitted = content.is_some_and(|content| content.root == copy.root);
        if let Some(replica) = self
            .record
            .replicas
            .get_mut(id)
            .filter(|replica| is_admitted && replica.state.is_withdrawn())
        {
            *replica = ReplicaRecord::started(replica.kind, replica.required, turn.now);
        }
        self.completed(id, copy, turn);
    }

    /// Gives the name new content, and asks every replica anew: its old copy does not count until the replica says that
    /// it has the new content.
    pub(super) fn readmitted(&mut self, upload: UploadId, content: Content, turn: &mut Turn<'_>) {
        let is_new = |old: &Content| old.root != content.root;
        if !self.is_bound() || !self.record.content.as_ref().is_some_and(is_new) {
            return;
        }
        self.record.upload = Some(Upload {
            id: upload,
            claim: Claim::from(&content),
        });
        self.record.content = Some(content);
        self.doing.clear();
        self.failures.clear();
        for replica in self.record.replicas.values_mut() {
            if !replica.state.is_withdrawn() {
                *replica = ReplicaRecord {
                    state: ReplicaState::UploadFailed(StoreFailure::Conflict),
                    ..ReplicaRecord::started(replica.kind, replica.required, turn.now)
                };
            }
        }
        for id in self.open() {
            self.rest(&id, turn);
        }
        // Depositors that wait or compare do so for the old content.
        let waiting = self.waiting.drain(..).map(|waiting| waiting.requester);
        let comparing = std::mem::take(&mut self.comparing).into_keys();
        let told: Vec<_> = waiting.chain(comparing).collect();
        self.source = None;
        for requester in told {
            turn.answer(requester, Err(ArchiveError::Busy(self.record.name.clone())));
        }
    }

    const fn is_bound(&self) -> bool {
        self.record.phase.is_bound()
    }
}
