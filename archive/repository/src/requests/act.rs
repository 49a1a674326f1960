//! The acts that want a second person: what each is about, and who may ask for and approve it.

use std::fmt;

use archive_model::{AnomalyKind, FileName, NodeId, ReplicaId, Root, VolumeId};
use archive_rpc::Role;
use serde::{Deserialize, Serialize};

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
    /// Destroys what lies in an attic.
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
        /// Whether the caller knows that this takes the last good copies of files.
        last_copies: bool,
    },
    /// Takes a node out of service for good.
    RetireNode {
        /// The node.
        node: NodeId,
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
    /// The act in one word.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Remove { .. } => "remove",
            Self::Purge { .. } => "purge",
            Self::RetireVolume { .. } | Self::RetireNode { .. } | Self::RetireReplica(_) => {
                "retire"
            }
            Self::Accept { .. } => "accept",
            Self::NewRoot { .. } => "new-root",
        }
    }

    /// Which roles may ask for it.
    pub const fn askers(&self) -> &'static [Role] {
        match self {
            Self::Remove { .. }
            | Self::Purge { .. }
            | Self::RetireVolume {
                last_copies: true, ..
            }
            | Self::RetireNode {
                last_copies: true, ..
            } => &[Role::Custodian],
            Self::RetireVolume { .. } | Self::RetireNode { .. } | Self::RetireReplica(_) => {
                &[Role::Operator, Role::Custodian]
            }
            Self::Accept { .. } | Self::NewRoot { .. } => &[Role::Custodian, Role::Officer],
        }
    }

    /// Which roles may approve it.
    pub const fn approvers(&self) -> &'static [Role] {
        match self {
            Self::Remove { .. }
            | Self::Purge { .. }
            | Self::Accept { .. }
            | Self::NewRoot { .. }
            | Self::RetireVolume {
                last_copies: true, ..
            }
            | Self::RetireNode {
                last_copies: true, ..
            } => &[Role::Custodian],
            Self::RetireVolume { .. } | Self::RetireNode { .. } | Self::RetireReplica(_) => {
                &[Role::Custodian, Role::Officer]
            }
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
            | Self::Accept { of: None, .. } => None,
            Self::Accept {
                of: Some(accepted), ..
            } => Some(&accepted.file),
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
                last_copies,
            } => write!(f, "retire volume {volume}{}", last(*last_copies)),
            Self::RetireNode { node, last_copies } => {
                write!(f, "retire node {node}{}", last(*last_copies))
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
        }
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
