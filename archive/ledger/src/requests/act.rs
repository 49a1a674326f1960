//! The acts that want a second person: what each is about, and who may ask for and approve it.

use std::fmt;

use archive_model::{
    ActKind, AnomalyKind, AtticKind, FileName, NodeId, ReplicaId, Role, Root, VolumeId,
};
use serde::{Deserialize, Serialize};

use super::{NodeSelector, VolumeSelector};

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// Moves the copy of one replica into the attic; it is withdrawn from then on.
    Remove {
        /// The file.
        name: FileName,
        /// The replica.
        replica: ReplicaId,
        /// The root of the copy.
        checksum: Root,
        /// Whether the caller knows that this leaves no copy.
        last_copies: bool,
    },
    /// Destroys what lies in an attic, whatever it is: as it was asked for before requests named what they destroy. It
    /// can be read and not be done.
    Purge {
        /// The replica.
        replica: ReplicaId,
        /// The node.
        node: NodeId,
        /// The volume.
        volume: VolumeId,
        /// The directory in its attic.
        id: String,
    },
    /// Takes a disk out of service for good.
    RetireVolume {
        /// The disk.
        volume: VolumeId,
        /// Its node; none where the id alone was said, and never once the request is taken.
        #[serde(default)]
        node: Option<NodeId>,
        /// Its replica, likewise.
        #[serde(default)]
        replica: Option<ReplicaId>,
        /// Whether the caller knows that this takes the last good copies of files.
        last_copies: bool,
    },
    /// Takes a node out of service for good.
    RetireNode {
        /// The node.
        node: NodeId,
        /// Its replica; none where the id alone was said, and never once the request is taken.
        #[serde(default)]
        replica: Option<ReplicaId>,
        /// Whether the caller knows that this takes the last good copies of files.
        last_copies: bool,
    },
    /// Takes a replica out of service for good.
    RetireReplica(ReplicaId),
    /// Lives with an anomaly.
    Accept {
        /// Its id.
        anomaly: String,
        /// What it was when it was asked for: that much is lived with, and no more. None before the request is taken.
        of: Option<Accepted>,
    },
    /// Takes content of another root under a name that has no good copy left.
    NewRoot {
        /// The file.
        name: FileName,
        /// The replica that has the content.
        replica: ReplicaId,
        /// Its root.
        root: Root,
    },
    /// Destroys what lies in an attic.
    Destroy {
        /// Where it lies.
        place: AtticPlace,
        /// The root of the whole file that lies there; none of groups and leftovers.
        checksum: Option<Root>,
        /// Whether the caller knows that no other good copy of the file is left.
        last_copies: bool,
        /// The content that it had when it was asked for: that is destroyed, and nothing else. None before the request
        /// is taken.
        item: Option<AtticItem>,
    },
    /// Takes a retired disk back into service.
    ReinstateVolume {
        /// The disk.
        volume: VolumeId,
        /// Its node; none where the id alone was said, and never once the request is taken.
        node: Option<NodeId>,
        /// Its replica, likewise.
        replica: Option<ReplicaId>,
    },
    /// Takes a retired node back into service.
    ReinstateNode {
        /// The node.
        node: NodeId,
        /// Its replica; none where the id alone was said, and never once the request is taken.
        replica: Option<ReplicaId>,
    },
}

/// Where something lies in an attic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtticPlace {
    /// The replica.
    pub replica: ReplicaId,
    /// The node.
    pub node: NodeId,
    /// The volume.
    pub volume: VolumeId,
    /// The directory in its attic.
    pub id: String,
}

/// An item in an attic, as its node says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtticItem {
    /// The file that it belongs to; none where its reason cannot be read.
    pub name: Option<FileName>,
    /// What it is.
    #[serde(with = "kind_on_disk")]
    pub kind: AtticKind,
    /// How many bytes it has.
    pub bytes: u64,
}

/// The kind of an item is a text on disk, its word.
mod kind_on_disk {
    use archive_model::AtticKind;
    use serde::{Deserialize, Deserializer, Serializer, de};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    pub(super) fn serialize<S: Serializer>(
        kind: &AtticKind,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(kind.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<AtticKind, D::Error> {
        let word = String::deserialize(deserializer)?;
        let known = AtticKind::ALL.iter().find(|kind| kind.as_str() == word);
        let unknown = || de::Error::custom(format!("{word:?} is no kind of item in an attic"));
        known.copied().ok_or_else(unknown)
    }
}

/// An anomaly as it is to be lived with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// The file.
    pub file: FileName,
    /// The replica.
    pub replica: ReplicaId,
    /// What is wrong, at most.
    pub kind: AnomalyKind,
}

impl Act {
    /// The kind of the act.
    pub const fn kind(&self) -> ActKind {
        match self {
            Self::Remove { .. } => ActKind::Remove,
            Self::Purge { .. } | Self::Destroy { .. } => ActKind::Purge,
            Self::RetireVolume { .. } | Self::RetireNode { .. } | Self::RetireReplica(_) => {
                ActKind::Retire
            }
            Self::Accept { .. } => ActKind::Accept,
            Self::NewRoot { .. } => ActKind::NewRoot,
            Self::ReinstateVolume { .. } | Self::ReinstateNode { .. } => ActKind::Reinstate,
        }
    }

    /// Which roles may ask for it.
    pub const fn askers(&self) -> &'static [Role] {
        match self {
            Self::Remove { .. }
            | Self::Purge { .. }
            | Self::Destroy { .. }
            | Self::RetireVolume {
                last_copies: true, ..
            }
            | Self::RetireNode {
                last_copies: true, ..
            } => &[Role::Custodian],
            Self::RetireVolume { .. }
            | Self::RetireNode { .. }
            | Self::RetireReplica(_)
            | Self::ReinstateVolume { .. }
            | Self::ReinstateNode { .. } => &[Role::Operator, Role::Custodian],
            Self::Accept { .. } | Self::NewRoot { .. } => &[Role::Custodian, Role::Officer],
        }
    }

    /// Which roles may approve it.
    pub const fn approvers(&self) -> &'static [Role] {
        match self {
            Self::Remove { .. }
            | Self::Purge { .. }
            | Self::Destroy { .. }
            | Self::Accept { .. }
            | Self::NewRoot { .. }
            | Self::RetireVolume {
                last_copies: true, ..
            }
            | Self::RetireNode {
                last_copies: true, ..
            } => &[Role::Custodian],
            Self::RetireVolume { .. }
            | Self::RetireNode { .. }
            | Self::RetireReplica(_)
            | Self::ReinstateVolume { .. }
            | Self::ReinstateNode { .. } => &[Role::Custodian, Role::Officer],
        }
    }

    /// The file that it is about.
    pub const fn file(&self) -> Option<&FileName> {
        match self {
            Self::Remove { name, .. } | Self::NewRoot { name, .. } => Some(name),
            Self::Purge { .. }
            | Self::RetireVolume { .. }
            | Self::RetireNode { .. }
            | Self::RetireReplica(_)
            | Self::ReinstateVolume { .. }
            | Self::ReinstateNode { .. }
            | Self::Accept { of: None, .. }
            | Self::Destroy { item: None, .. } => None,
            Self::Accept {
                of: Some(accepted), ..
            } => Some(&accepted.file),
            Self::Destroy {
                item: Some(item), ..
            } => item.name.as_ref(),
        }
    }
}

/// What exactly, for people.
impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Remove {
                name,
                replica,
                checksum,
                last_copies,
            } => {
                write!(
                    f,
                    "remove {name} from replica {replica}, checksum {checksum}{}",
                    last(*last_copies)
                )
            }
            Self::Purge {
                replica,
                node,
                volume,
                id,
            } => write!(
                f,
                "destroy {id} in the attic of volume {volume} of node {node}, replica {replica}"
            ),
            Self::RetireVolume {
                volume,
                node,
                replica,
                last_copies,
            } => {
                let volume = VolumeSelector {
                    replica: replica.clone(),
                    node: node.clone(),
                    volume: volume.clone(),
                };
                write!(f, "retire {volume}{}", last(*last_copies))
            }
            Self::RetireNode {
                node,
                replica,
                last_copies,
            } => {
                let (replica, node) = (replica.clone(), node.clone());
                let node = NodeSelector { replica, node };
                write!(f, "retire {node}{}", last(*last_copies))
            }
            Self::RetireReplica(replica) => write!(f, "retire replica {replica}"),
            Self::Accept { anomaly, of: None } => write!(f, "accept anomaly {anomaly}"),
            Self::Accept {
                anomaly,
                of: Some(of),
            } => write!(
                f,
                "accept anomaly {anomaly}: {} in replica {}: {}",
                of.file, of.replica, of.kind
            ),
            Self::NewRoot {
                name,
                replica,
                root,
            } => write!(f, "let {name} mean what replica {replica} has, root {root}"),
            Self::Destroy {
                place,
                checksum,
                last_copies,
                item,
            } => {
                f.write_str("destroy ")?;
                if let Some(item) = item {
                    write!(f, "{item}, ")?;
                }
                if let Some(checksum) = checksum {
                    write!(f, "checksum {checksum}, ")?;
                }
                write!(f, "{place}{}", last(*last_copies))
            }
            Self::ReinstateVolume {
                volume,
                node,
                replica,
            } => {
                let volume = VolumeSelector {
                    replica: replica.clone(),
                    node: node.clone(),
                    volume: volume.clone(),
                };
                write!(f, "take {volume} back into service")
            }
            Self::ReinstateNode { node, replica } => {
                let (replica, node) = (replica.clone(), node.clone());
                let node = NodeSelector { replica, node };
                write!(f, "take {node} back into service")
            }
        }
    }
}

impl fmt::Display for AtticPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            replica,
            node,
            volume,
            id,
        } = self;
        write!(
            f,
            "{id} in the attic of volume {volume} of node {node}, replica {replica}"
        )
    }
}

impl fmt::Display for AtticItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_ref().map_or("?", FileName::as_str);
        write!(f, "the {} of {name}, {} bytes", self.kind, self.bytes)
    }
}

/// What the act says of last copies.
const fn last(last_copies: bool) -> &'static str {
    if last_copies {
        ", also the last good copies"
    } else {
        ""
    }
}
