//! Handles the acts of people on a file that is in the archive: give a replica its copy, take it away, restore it,
//! decide anew what the name means.
//!
//! Owns the effect of these acts on the record. Not promised: that the caller may do so; that is decided in `requests`
//! and at the door.

use archive_model::{
    ArchiveError, CopyPlace, ReplicaId, ReplicaKind, ReplicaState, StoreFailure, UploadId,
};

use super::replicas::ReplicaActivity;
use super::{Claim, Content, FileState, RecordedUpload, ReplicaRecord, Transition};

impl FileState {
    /// Returns the error for a depositor of a file that people have removed everywhere.
    pub(super) fn removal_error(&self) -> ArchiveError {
        ArchiveError::Refused(format!(
            "{} was removed from the archive; its name stays taken, so store it under another",
            self.record.name
        ))
    }

    /// Requires a copy in a replica that may lack one. The place `gone` does not count any more.
    pub(super) fn require_copy(
        &mut self,
        id: &ReplicaId,
        kind: ReplicaKind,
        required: bool,
        gone: Option<(CopyPlace, String)>,
        transition: &mut Transition<'_>,
    ) {
        if !self.is_bound() {
            return;
        }
        let replica = self
            .record
            .replicas
            .entry(id.clone())
            .or_insert_with(|| ReplicaRecord::started_record(kind, required, transition.now));
        if replica.state.is_withdrawn() {
            return;
        }
        if replica.state.is_completed() {
            let Some((place, why)) = gone else {
                return;
            };
            if replica.copy_place() != Some(place) {
                return;
            }
            *replica = ReplicaRecord {
                state: ReplicaState::UploadFailed(StoreFailure::Gone(why)),
                sealed: true,
                ..ReplicaRecord::started_record(replica.kind, replica.required, transition.now)
            };
        }
        if !self.current_activity(id).is_under_way() {
            self.probe_replica(id, transition);
        }
    }

    /// Stops counting the copy that people replace, and waits for the other bytes.
    pub(super) fn begin_replacement(
        &mut self,
        id: &ReplicaId,
        why: String,
        transition: &mut Transition<'_>,
    ) {
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
            ..ReplicaRecord::started_record(replica.kind, replica.required, transition.now)
        };
        self.begin_activity(
            id,
            ReplicaActivity::Copying(transition.time_after(transition.limits.idle)),
        );
    }

    /// Withdraws the copy from a replica, as people have decided.
    pub(super) fn withdraw_file(
        &mut self,
        id: &ReplicaId,
        why: String,
        transition: &mut Transition<'_>,
    ) {
        let is_bound = self.is_bound();
        let Some(replica) = self.record.replicas.get_mut(id).filter(|_| is_bound) else {
            return;
        };
        if !replica.state.is_withdrawn() {
            *replica = ReplicaRecord {
                state: ReplicaState::Withdrawn(why),
                ..ReplicaRecord::started_record(replica.kind, replica.required, transition.now)
            };
        }
        self.activities.remove(id);
        self.failures.remove(id);
    }

    /// Requires the copy again that people had withdrawn from a replica.
    pub(super) fn reinstate_copy(&mut self, id: &ReplicaId, transition: &mut Transition<'_>) {
        let copies = &mut self.record.replicas;
        let Some(replica) = copies
            .get_mut(id)
            .filter(|replica| replica.state.is_withdrawn())
        else {
            return;
        };
        *replica = ReplicaRecord::started_record(replica.kind, replica.required, transition.now);
        self.probe_replica(id, transition);
    }

    /// Gives the name new content, and asks every replica anew: its old copy does not count until the replica says that
    /// it has the new content.
    pub(super) fn readmit_copy(
        &mut self,
        upload: UploadId,
        content: Content,
        transition: &mut Transition<'_>,
    ) {
        let is_new = |old: &Content| old.root != content.root;
        if !self.is_bound() || !self.record.content.as_ref().is_some_and(is_new) {
            return;
        }
        self.record.upload = Some(RecordedUpload {
            id: upload,
            claim: Claim::from(&content),
        });
        self.record.content = Some(content);
        self.activities.clear();
        self.failures.clear();
        for replica in self.record.replicas.values_mut() {
            if !replica.state.is_withdrawn() {
                *replica = ReplicaRecord {
                    state: ReplicaState::UploadFailed(StoreFailure::Conflict),
                    ..ReplicaRecord::started_record(replica.kind, replica.required, transition.now)
                };
            }
        }
        for id in self.open_replicas() {
            self.rest_replica(&id, transition);
        }
        // Depositors that wait or compare do so for the old content.
        let waiting = self.waiting.drain(..).map(|waiting| waiting.requester);
        let comparing = std::mem::take(&mut self.comparing).into_keys();
        let requesters: Vec<_> = waiting.chain(comparing).collect();
        self.source = None;
        for requester in requesters {
            transition
                .answer_requester(requester, Err(ArchiveError::Busy(self.record.name.clone())));
        }
    }

    const fn is_bound(&self) -> bool {
        self.record.phase.is_bound()
    }
}
