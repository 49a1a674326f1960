//! Calls to the replicas, each within a time limit.
//!
//! Owns the limits: no call to a replica is waited for without one. What may take as long as a file is large takes its limit
//! from [`limits`].

use std::sync::Arc;
use std::time::Duration;

use archive_daemon::Clock;
use archive_model::{FileName, NodeId, ReplicaId, VolumeId};
use archive_replicas::{Located, Replicas, Verified, VerifiedCopy};
use archive_rpc::{CallError, Kind};

use crate::limits;

/// The replicas, with the time that each call to them may take; cheap to clone.
#[derive(Clone, Debug)]
pub struct ReplicaCalls {
    /// The calls without limits.
    pub replicas: Arc<Replicas>,
    /// The clock.
    pub clock: Clock,
    /// The time that a part may be silent.
    pub stall: Duration,
}

impl ReplicaCalls {
    /// Awaits a call for at most `limit`.
    ///
    /// # Errors
    /// The call's own error, or `TimedOut`.
    pub async fn within<T, E: Into<CallError>>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, CallError> {
        match self.clock.timeout(limit, call).await {
            Ok(answer) => answer.map_err(Into::into),
            Err(late) => Err(Kind::TimedOut.error(late.to_string())),
        }
    }

    /// Awaits a call for as long as a part may be silent.
    ///
    /// # Errors
    /// The call's own error, or `TimedOut`.
    pub async fn answered<T, E: Into<CallError>>(
        &self,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, CallError> {
        self.within(self.stall, call).await
    }

    /// Awaits a call for as long as a node may take to read `size` bytes of a copy.
    ///
    /// # Errors
    /// The call's own error, or `TimedOut`.
    pub async fn reading<T, E: Into<CallError>>(
        &self,
        size: u64,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, CallError> {
        self.within(limits::reading(size), call).await
    }

    /// Waits until a node takes bytes, for as long as a part may be silent.
    ///
    /// # Errors
    /// The call's own error, or `TimedOut`.
    pub async fn taken(
        &self,
        sending: impl Future<Output = Result<(), CallError>>,
    ) -> Result<(), CallError> {
        let sent = self.clock.timeout(self.stall, sending).await;
        sent.map_err(|late| Kind::TimedOut.error(format!("the node takes no bytes: {late}")))?
    }

    /// Asks where a file is in a replica, by its catalogs.
    ///
    /// # Errors
    /// The error of the monitor, or `TimedOut`.
    pub async fn locate(&self, replica: &ReplicaId, name: &FileName) -> Result<Located, CallError> {
        self.answered(self.replicas.locate(replica, name)).await
    }

    /// Asks where a file is in a replica, by its disks.
    ///
    /// # Errors
    /// The error of the monitor, or `TimedOut`.
    pub async fn locate_on_disk(
        &self,
        replica: &ReplicaId,
        name: &FileName,
    ) -> Result<Located, CallError> {
        let locating = self.replicas.locate_on_disk(replica, name);
        self.answered(locating).await
    }

    /// Has a copy read again, whole, past the page cache. The node may be silent for `limit` while it reads; `told` hears how
    /// many bytes were read so far.
    ///
    /// # Errors
    /// The error of the node, `Busy` where somebody else reads or mends the copy, or `TimedOut`.
    pub async fn verify(
        &self,
        (replica, node, volume): (&ReplicaId, &NodeId, Option<&VolumeId>),
        name: &FileName,
        limit: Duration,
        mut told: impl FnMut(u64) + Send,
    ) -> Result<VerifiedCopy, CallError> {
        let opening = self.replicas.verify(replica, node, name, volume);
        let mut verifying = self.answered(opening).await?;
        loop {
            match self.within(limit, verifying.next()).await? {
                Verified::Progress(bytes) => told(bytes),
                Verified::Done(verified) => return Ok(*verified),
            }
        }
    }
}
