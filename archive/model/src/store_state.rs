//! The progress of one file into one replica.
//!
//! The first four states are those of NetarchiveSuite's `ReplicaStoreState`; here a failure carries its reason.
//!
//! [`ReplicaState`] is what the admin data record, [`ReplicaStatus`] what the archive reports of it.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::closed_set::closed_set;
use crate::copy::{CopyDoubt, CopyStanding};
use crate::replica::{NodeId, ReplicaId, VolumeId};

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
    /// People took the file out of this replica, and why: it is neither missing nor copied again.
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

    /// Returns the progress without its reason.
    pub const fn progress(&self) -> ReplicaProgress {
        match self {
            Self::UploadStarted => ReplicaProgress::UploadStarted,
            Self::DataUploaded => ReplicaProgress::DataUploaded,
            Self::UploadCompleted => ReplicaProgress::UploadCompleted,
            Self::UploadFailed(_) => ReplicaProgress::UploadFailed,
            Self::Withdrawn(_) => ReplicaProgress::Withdrawn,
        }
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

closed_set! {
    /// The progress of a file into one replica.
    ReplicaProgress {
        /// A node was chosen for the file.
        UploadStarted = "upload-started",
        /// The bytes are on the node, and are not read back yet.
        DataUploaded = "data-uploaded",
        /// The copy was read back, is durable, and has its name.
        UploadCompleted = "upload-completed",
        /// The replica does not have the file.
        UploadFailed = "upload-failed",
        /// People took the file out of this replica.
        Withdrawn = "withdrawn",
    }
}

impl ReplicaProgress {
    /// Returns the progress in words, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::UploadStarted => "upload started",
            Self::DataUploaded => "data uploaded",
            Self::UploadCompleted => "completed",
            Self::UploadFailed => "failed",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// The status of a file in a replica. The JSON is what `holdfast stat --json` prints under `replicas`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplicaStatus {
    /// The replica.
    pub replica: ReplicaId,
    /// The progress of the file into the replica.
    pub progress: ReplicaProgress,
    /// The reason why the upload failed, the file was withdrawn, or the copy does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The node that has the copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// The volume that has the copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeId>,
    /// When the copy was completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<Timestamp>,
    /// Whether the copy counts; `None` if it is not completed, or was not looked at.
    #[serde(rename = "condition", skip_serializing_if = "Option::is_none")]
    pub standing: Option<CopyStanding>,
    /// The reason why the copy does not count; absent if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<CopyDoubt>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anomaly::AnomalyClass;

    /// Fails if a script that reads the state of a file finds another field, or another word in one.
    #[test]
    fn json_of_replica_status_keeps_its_fields() {
        let failed = ReplicaStatus {
            replica: "one".parse().unwrap(),
            progress: ReplicaState::UploadFailed(StoreFailure::NoSpace).progress(),
            reason: Some("disk full".to_owned()),
            node: None,
            volume: None,
            completed: None,
            standing: None,
            doubt: None,
        };
        let json = |status: &ReplicaStatus| serde_json::to_string(status).unwrap();
        assert_eq!(
            json(&failed),
            r#"{"replica":"one","progress":"upload-failed","reason":"disk full"}"#
        );
        let bad = ReplicaStatus {
            progress: ReplicaState::UploadCompleted.progress(),
            reason: None,
            node: Some("n".parse().unwrap()),
            volume: Some("v".parse().unwrap()),
            completed: Some(Timestamp::UNIX_EPOCH),
            standing: Some(CopyStanding::Bad),
            doubt: Some(CopyDoubt::Filed(AnomalyClass::Corrupt)),
            ..failed
        };
        assert_eq!(
            json(&bad),
            r#"{"replica":"one","progress":"upload-completed","node":"n","volume":"v","completed":"1970-01-01T00:00:00Z","condition":"bad","doubt":"corrupt"}"#
        );
    }
}
