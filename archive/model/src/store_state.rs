//! The progress of one file into one replica.
//!
//! The first four states are those of NetarchiveSuite's `ReplicaStoreState`; here a failure carries its reason.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The state of one file in one replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplicaState {
    /// A node was chosen; bytes may be on their way to it.
    UploadStarted,
    /// The bytes are on the node; they have not been read back yet.
    DataUploaded,
    /// The copy was read back past the cache, equal to the root, and has its final name.
    UploadCompleted,
    /// The file was not stored in the replica, and why. A later completion still counts.
    UploadFailed(StoreFailure),
    /// People took the file out of this replica, and why: it is neither missing nor brought back.
    Withdrawn(String),
}

impl ReplicaState {
    /// Returns whether the copy counts.
    pub const fn is_completed(&self) -> bool {
        matches!(self, Self::UploadCompleted)
    }

    /// Returns whether people took the copy out of this replica: it is not there, and shall not be.
    pub const fn is_withdrawn(&self) -> bool {
        matches!(self, Self::Withdrawn(_))
    }

    /// Returns whether the copy is not in the replica yet, and shall be.
    pub const fn is_open(&self) -> bool {
        !self.is_completed() && !self.is_withdrawn()
    }
}

impl fmt::Display for ReplicaState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UploadStarted => f.write_str("upload started"),
            Self::DataUploaded => f.write_str("data uploaded"),
            Self::UploadCompleted => f.write_str("upload completed"),
            Self::UploadFailed(reason) => write!(f, "upload failed: {reason}"),
            Self::Withdrawn(why) => write!(f, "withdrawn: {why}"),
        }
    }
}

/// The reason why a file is not in a replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum StoreFailure {
    /// No node of the replica could be reached.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// No node of the replica has room for the file.
    #[error("no node has room for it")]
    NoSpace,
    /// The node accepted no byte within the stall limit.
    #[error("stalled: no byte accepted for {0} s")]
    Stalled(u64),
    /// The bytes that the node read back are not those that were admitted.
    #[error("read back differs from what was sent")]
    ReadBackDiffers,
    /// The node has other bytes under this name.
    #[error("the replica holds other bytes under this name")]
    Conflict,
    /// The disk of the node failed.
    #[error("disk error: {0}")]
    Disk(String),
    /// A time limit passed.
    #[error("timed out while {0}")]
    TimedOut(String),
    /// The node refuses to take files (read-only, draining).
    #[error("not accepting files: {0}")]
    NotAccepting(String),
    /// The replica had the file, and its disk, node or copy was given up.
    #[error("no longer there: {0}")]
    Gone(String),
}
