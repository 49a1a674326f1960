//! The replicas of the archive in memory: always online and intact.

use std::fmt;
use std::str::FromStr;

use archive_model::{
    CopyCondition, CopyPlace, CopyStanding, FileCopy, FileName, Mode, NodeId, NodeState, ReplicaId,
    ReplicaKind, ReplicaProgress, ReplicaStatus, Root, VolumeId, VolumeState,
};
use archive_proof::CustodyStatement;
use jiff::Timestamp;

use crate::archive_status::ReplicaOverview;

/// The room of each volume, in bytes.
const TOTAL: u64 = 1 << 40;

/// A replica of one node with one volume.
pub(super) struct Replica {
    pub(super) id: ReplicaId,
    pub(super) kind: ReplicaKind,
    node: NodeId,
    volume: VolumeId,
}

impl Replica {
    /// Returns every replica, sorted by id.
    pub(super) fn all_replicas() -> Vec<Self> {
        let replica = |name: &str, kind, volume: &str| Self {
            id: parse_id(name),
            kind,
            node: parse_id(&format!("{name}-1")),
            volume: parse_id(volume),
        };
        vec![
            replica("one", ReplicaKind::Bitarchive, "volume-one"),
            replica("three", ReplicaKind::Checksum, "table"),
            replica("two", ReplicaKind::Bitarchive, "volume-two"),
        ]
    }

    /// Returns what a receipt says of a copy.
    pub(super) fn custody_statement(&self, completed: Timestamp) -> CustodyStatement {
        CustodyStatement {
            replica: self.id.clone(),
            kind: self.kind,
            completed,
            node: self.node.clone(),
            volume: Some(self.volume.clone()),
        }
    }

    /// Returns the status of a file in the replica.
    pub(super) fn replica_status(&self, completed: Timestamp) -> ReplicaStatus {
        ReplicaStatus {
            replica: self.id.clone(),
            progress: ReplicaProgress::UploadCompleted,
            reason: None,
            node: Some(self.node.clone()),
            volume: Some(self.volume.clone()),
            completed: Some(completed),
            standing: Some(CopyStanding::Good),
            doubt: None,
        }
    }

    /// Returns the copy of a file in the replica.
    pub(super) fn file_copy(
        &self,
        name: &FileName,
        size: u64,
        root: Root,
        at: Timestamp,
    ) -> FileCopy {
        FileCopy {
            name: name.clone(),
            size,
            root: Some(root),
            place: CopyPlace {
                node: self.node.clone(),
                volume: self.volume.clone(),
            },
            condition: CopyCondition::Present,
            stored: at,
            verified: Some(at),
        }
    }

    /// Returns the overview of the replica, with `bytes` of files in it.
    pub(super) fn replica_overview(&self, bytes: u64, now: Timestamp) -> ReplicaOverview {
        let free = TOTAL.saturating_sub(bytes);
        let volume = VolumeState {
            volume: Some(self.volume.clone()),
            path: "memory".to_owned(),
            total: TOTAL,
            free,
            ..VolumeState::default()
        };
        let node = NodeState {
            endpoint: "memory".to_owned(),
            volumes: vec![volume],
            usable: free,
            seen: Some(now),
            alive: true,
            mode: Some(Mode::ReadWrite),
            ..NodeState::unheard_node(self.node.clone())
        };
        ReplicaOverview {
            replica: self.id.clone(),
            kind: self.kind,
            required: true,
            problem: None,
            site: None,
            retired: false,
            nodes: vec![node],
        }
    }
}

/// Parses an id that this crate has written itself.
pub(super) fn parse_id<T: FromStr<Err: fmt::Debug>>(text: &str) -> T {
    text.parse().expect("an id")
}
