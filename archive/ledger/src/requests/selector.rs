//! A node or a volume as a person names it: by its id, and by more where several bear that.

use std::fmt;

use archive_model::{NodeId, ReplicaId, VolumeId, VolumeKey};

/// A volume as a person names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeSelector {
    /// Its replica, where that was said.
    pub replica: Option<ReplicaId>,
    /// Its node, where that was said.
    pub node: Option<NodeId>,
    /// Its id.
    pub volume: VolumeId,
}

/// A node as a person names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSelector {
    /// Its replica, where that was said.
    pub replica: Option<ReplicaId>,
    /// Its id.
    pub node: NodeId,
}

impl fmt::Display for VolumeSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "volume {}", self.volume)?;
        if let Some(node) = &self.node {
            write!(f, " of node {node}")?;
        }
        of_replica(f, self.replica.as_ref())
    }
}

impl fmt::Display for NodeSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.node)?;
        of_replica(f, self.replica.as_ref())
    }
}

fn of_replica(f: &mut fmt::Formatter<'_>, replica: Option<&ReplicaId>) -> fmt::Result {
    match replica {
        Some(replica) => write!(f, " of replica {replica}"),
        None => Ok(()),
    }
}

impl VolumeSelector {
    /// Whether the volume may be meant.
    pub fn means(&self, key: &VolumeKey) -> bool {
        key.volume == self.volume
            && self.node.as_ref().is_none_or(|node| *node == key.node)
            && self.replica.as_ref().is_none_or(|id| *id == key.replica)
    }
}

impl NodeSelector {
    /// Whether the node may be meant.
    pub fn means(&self, replica: &ReplicaId, node: &NodeId) -> bool {
        self.node == *node && self.replica.as_ref().is_none_or(|id| id == replica)
    }
}
