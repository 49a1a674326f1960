//! Drains: volumes and nodes whose copies go elsewhere before people retire them.
//!
//! A node remembers its modes itself; here it is remembered what it said, so that its silence does not end a drain, and
//! when everything had left.

use archive_db::{DbError, TableValue};
use archive_model::{NodeId, NodeKey, ReplicaId, VolumeId, VolumeKey};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Standing, StandingSnapshot};
use crate::admin::{AuditLine, WalkScope};

/// A volume, or a whole node, that is drained.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DrainSource {
    /// The replica of the node.
    pub replica: ReplicaId,
    /// The node that is drained, or has the volume.
    pub node: NodeId,
    /// The volume; `None` if the whole node is drained.
    pub volume: Option<VolumeId>,
}

/// The progress of a drain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainRow {
    /// The volume; `None` if the whole node is drained.
    pub volume: Option<VolumeId>,
    /// The time since when the copies leave.
    pub since: Timestamp,
    /// The time at which everything had left; `None` before.
    pub drained: Option<Timestamp>,
}

impl TableValue for DrainRow {}

/// Replica, node, volume; the whole node has an empty one.
pub type DrainKey = (
    archive_db::Text<ReplicaId>,
    archive_db::Text<NodeId>,
    String,
);

impl DrainSource {
    /// Whether copies at this place of a replica have to leave because of this drain.
    pub fn holds_copy(&self, replica: &ReplicaId, node: &NodeId, volume: &VolumeId) -> bool {
        let is_volume = self.volume.as_ref().is_none_or(|own| own == volume);
        self.replica == *replica && self.node == *node && is_volume
    }

    /// Returns the files that are at the source of the drain, or may still come there.
    pub fn walk_scope(&self) -> WalkScope {
        let replica = self.replica.clone();
        let node = self.node.clone();
        match self.volume.clone() {
            None => WalkScope::Node(NodeKey { replica, node }),
            Some(volume) => WalkScope::Volume(VolumeKey {
                replica,
                node,
                volume,
            }),
        }
    }

    /// Returns the key of the row of the drain.
    pub fn drain_key(&self) -> DrainKey {
        let volume = self.volume.as_ref().map(ToString::to_string);
        (
            archive_db::Text(self.replica.clone()),
            archive_db::Text(self.node.clone()),
            volume.unwrap_or_default(),
        )
    }
}

impl std::fmt::Display for DrainSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            replica,
            node,
            volume,
        } = self;
        match volume {
            Some(volume) => write!(f, "volume {volume} of node {node} of replica {replica}"),
            None => write!(f, "node {node} of replica {replica}"),
        }
    }
}

impl StandingSnapshot {
    /// Whether copies at this place have to leave because of any drain.
    pub fn leaves_copy(&self, replica: &ReplicaId, node: &NodeId, volume: &VolumeId) -> bool {
        let mut sources = self.draining.keys();
        sources.any(|source| source.holds_copy(replica, node, volume))
    }

    /// Returns the nodes of a replica that are drained as a whole.
    pub fn leaving_nodes(&self, replica: &ReplicaId) -> Vec<NodeId> {
        let sources = self.draining.keys();
        let nodes = sources.filter(|source| source.replica == *replica && source.volume.is_none());
        nodes.map(|source| source.node.clone()).collect()
    }
}

impl Standing {
    /// Remembers the progress of a drain; `None` if the drain is over.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the database fails.
    pub fn set_draining(
        &self,
        source: &DrainSource,
        row: Option<&DrainRow>,
        line: AuditLine,
    ) -> Result<(), DbError> {
        let mut changes = self.admin.begin_changes();
        match row {
            Some(row) => changes
                .batch()
                .put(&self.drains, &source.drain_key(), row)?,
            None => changes.batch().delete(&self.drains, &source.drain_key())?,
        }
        self.commit(changes, Some(line))
    }

    pub(super) fn read_draining(&self, now: &mut StandingSnapshot) -> Result<(), DbError> {
        for row in self.drains.scan()? {
            let ((archive_db::Text(replica), archive_db::Text(node), _), row) = row?;
            let source = DrainSource {
                replica,
                node,
                volume: row.volume.clone(),
            };
            now.draining.insert(source, row);
        }
        Ok(())
    }
}
