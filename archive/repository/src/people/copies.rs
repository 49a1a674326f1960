//! The copies of a file in a replica, for acts of people: searched for on the disks, and read again.

use archive_daemon::clock::TimedOut;
use archive_model::{FileCopy, FileName, NodeId, ReplicaId, VolumeId};
use archive_replicas::{Verified, VerifiedCopy};
use archive_rpc::{CallError, Kind};
use archive_stores::transfer::Transfers;

use super::People;

impl People {
    /// Returns the existing copies, in any condition. A node that does not answer is an error.
    pub(crate) async fn existing_copies(
        &self,
        replica: &ReplicaId,
        name: &FileName,
    ) -> Result<Vec<FileCopy>, CallError> {
        let asking = self.transfers.replicas.existing_copies(replica, name);
        self.within(0, asking).await
    }

    /// Reads a copy again, past the page cache.
    pub(crate) async fn verified(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        copy: &FileCopy,
    ) -> Result<VerifiedCopy, CallError> {
        let place = (&copy.place.node, Some(&copy.place.volume));
        self.read_again(replica, name, place).await
    }

    /// Reads the copy at a place again, past the page cache.
    pub(crate) async fn read_again(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        (node, volume): (&NodeId, Option<&VolumeId>),
    ) -> Result<VerifiedCopy, CallError> {
        let Transfers {
            replicas,
            clock,
            stall,
            ..
        } = &self.transfers;
        let late = |late: TimedOut| Kind::TimedOut.error(late.to_string());
        let opening = replicas.verify(replica, node, name, volume);
        let mut verifying = clock.timeout(*stall, opening).await.map_err(late)??;
        loop {
            let next = clock.timeout(*stall, verifying.next()).await;
            if let Verified::Done(verified) = next.map_err(late)?? {
                return Ok(verified);
            }
        }
    }
}
