//! The copies of a file in a replica, for acts of people: searched for on the disks, and read again.

use archive_model::{FileCopy, FileName, ReplicaId};
use archive_replicas::VerifiedCopy;
use archive_rpc::CallError;

use super::People;

impl People {
    /// Returns the existing copies, in any condition. A node that does not answer is an error.
    pub(crate) async fn existing_copies(
        &self,
        replica: &ReplicaId,
        name: &FileName,
    ) -> Result<Vec<FileCopy>, CallError> {
        let calls = &self.archive.calls;
        let asking = calls.replicas.existing_copies(replica, name);
        calls.reading_call(0, asking).await
    }

    /// Reads a copy again, past the page cache. Its node says all the time how far it is.
    pub(crate) async fn verify_copies(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        copy: &FileCopy,
    ) -> Result<VerifiedCopy, CallError> {
        let calls = &self.archive.calls;
        let selector = copy.place.copy_selector(replica);
        calls.verify_copy(selector, name, calls.stall, |_| {}).await
    }
}
