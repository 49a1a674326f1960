//! The acts that need a second person, with the things that each is about.
//!
//! Not promised: that a named thing exists, or that a name fits one thing only. The repository checks that when an act
//! is requested.

use std::fmt;

use crate::attic::AtticPlace;
use crate::checksum::Root;
use crate::file_name::FileName;
use crate::replica::{NodeId, ReplicaId, VolumeId, VolumeKey};
use crate::request::ActKind;

/// An act that destroys or gives up something, as a person asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Moves the copy of one replica into the attic; it is withdrawn from then on.
    Remove {
        /// The file whose copy is removed.
        name: FileName,
        /// The replica that loses its copy.
        replica: ReplicaId,
        /// The root of the copy.
        checksum: Root,
        /// Whether the caller knows that this leaves no copy.
        last_copies: bool,
    },
    /// Destroys what lies in an attic.
    Purge {
        /// The place of the item in the attic.
        place: AtticPlace,
        /// The root of the whole file that lies at that place; absent for groups and leftovers.
        checksum: Option<Root>,
        /// Whether the caller knows that no other good copy of the file is left.
        last_copies: bool,
    },
    /// Takes a volume out of service for good.
    RetireVolume {
        /// The volume, as the person named it.
        volume: VolumeSelector,
        /// Whether the caller knows that this takes the last good copies of files.
        last_copies: bool,
    },
    /// Takes a node out of service for good.
    RetireNode {
        /// The node, as the person named it.
        node: NodeSelector,
        /// Whether the caller knows that this takes the last good copies of files.
        last_copies: bool,
    },
    /// Takes a replica out of service for good.
    RetireReplica(ReplicaId),
    /// Accepts an anomaly that nobody will repair.
    Accept {
        /// The id of the anomaly: `a` and a number.
        anomaly: String,
    },
    /// Takes content of another root under a name that has no good copy left.
    NewRoot {
        /// The file whose root changes.
        name: FileName,
        /// The replica that has the content.
        replica: ReplicaId,
        /// The root of the content in that replica.
        root: Root,
    },
    /// Wants a copy again that was removed.
    ReinstateCopy {
        /// The file whose copy was removed.
        name: FileName,
        /// The replica that shall have the file again.
        replica: ReplicaId,
    },
    /// Takes a retired volume back into service.
    ReinstateVolume(VolumeSelector),
    /// Takes a retired node back into service.
    ReinstateNode(NodeSelector),
}

/// A volume as a person names it: by its id, and by more where several volumes bear that.
///
/// ```
/// use archive_model::{NodeId, ReplicaId, VolumeId, VolumeKey, VolumeSelector};
///
/// let volume = VolumeId::new("v-1")?;
/// let named = VolumeSelector { replica: None, node: None, volume: volume.clone() };
/// let key = VolumeKey { replica: ReplicaId::new("one")?, node: NodeId::new("one-1")?, volume };
/// assert!(named.selects_volume(&key));
/// assert_eq!(VolumeSelector::from(key).to_string(), "volume v-1 of node one-1 of replica one");
/// # Ok::<(), archive_model::InvalidId>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeSelector {
    /// The replica of the volume; `None` if the person did not name it.
    pub replica: Option<ReplicaId>,
    /// The node of the volume; `None` if the person did not name it.
    pub node: Option<NodeId>,
    /// The id of the volume.
    pub volume: VolumeId,
}

/// A node as a person names it: by its id, and by its replica where several nodes bear that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSelector {
    /// The replica of the node; `None` if the person did not name it.
    pub replica: Option<ReplicaId>,
    /// The id of the node.
    pub node: NodeId,
}

impl Act {
    /// The kind of the act.
    pub const fn kind(&self) -> ActKind {
        match self {
            Self::Remove { .. } => ActKind::Remove,
            Self::Purge { .. } => ActKind::Purge,
            Self::RetireVolume { .. } | Self::RetireNode { .. } | Self::RetireReplica(_) => {
                ActKind::Retire
            }
            Self::Accept { .. } => ActKind::Accept,
            Self::NewRoot { .. } => ActKind::NewRoot,
            Self::ReinstateCopy { .. } | Self::ReinstateVolume(_) | Self::ReinstateNode(_) => {
                ActKind::Reinstate
            }
        }
    }
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

impl From<VolumeKey> for VolumeSelector {
    fn from(key: VolumeKey) -> Self {
        Self {
            replica: Some(key.replica),
            node: Some(key.node),
            volume: key.volume,
        }
    }
}

impl VolumeSelector {
    /// Returns whether the selector fits the volume `key`: a part that the person did not name fits any.
    pub fn selects_volume(&self, key: &VolumeKey) -> bool {
        key.volume == self.volume
            && self.node.as_ref().is_none_or(|node| *node == key.node)
            && self.replica.as_ref().is_none_or(|id| *id == key.replica)
    }
}

impl NodeSelector {
    /// Returns whether the selector fits this node: without a replica it fits the node of this id in any.
    pub fn selects_node(&self, replica: &ReplicaId, node: &NodeId) -> bool {
        self.node == *node && self.replica.as_ref().is_none_or(|id| id == replica)
    }
}
