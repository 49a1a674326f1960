//! The progress of one file into one replica.
//!
//! The first four states are those of NetarchiveSuite's `ReplicaStoreState`; here a failure carries its reason.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The state of one file in one replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplicaState {
    /// A node was chosen; bytes may be on their way.
    UploadStarted,
    /// The bytes are there; they have not been read back yet.
    DataUploaded,
    /// Read back past the cache, equal to the root, under the final name.
    UploadCompleted,
    /// Not stored there, and why. A later completion still counts.
    UploadFailed(StoreFailure),
    /// Taken out of this replica by people, and why: neither missing nor brought back.
    Withdrawn(String),
}

impl ReplicaState {
    /// Whether this copy counts.
    pub const fn is_completed(&self) -> bool {
        matches!(self, Self::UploadCompleted)
    }

    /// Whether people took the copy out of this replica: it is not there, and shall not be.
    pub const fn is_withdrawn(&self) -> bool {
        matches!(self, Self::Withdrawn(_))
    }

    /// Whether it is not there yet, and shall be.
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
    /// No node has room for it.
    #[error("no node has room for it")]
    NoSpace,
    /// No byte was accepted for the stall limit.
    #[error("stalled: no byte accepted for {0} s")]
    Stalled(u64),
    /// The bytes that the node read back are not those that were admitted.
    #[error("read back differs from what was sent")]
    ReadBackDiffers,
    /// The node has other bytes under this name.
    #[error("the replica holds other bytes under this name")]
    Conflict,
    /// The disk failed.
    #[error("disk error: {0}")]
    Disk(String),
    /// A waiting limit passed.
    #[error("timed out while {0}")]
    TimedOut(String),
    /// The node refuses to take files (read-only, draining).
    #[error("not accepting files: {0}")]
    NotAccepting(String),
    /// It was there: its disk, node or copy was given up.
    #[error("no longer there: {0}")]
    Gone(String),
}
