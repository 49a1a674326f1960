//! An act as its request keeps it: as it was asked for, and what was recorded when the request was taken; who may ask
//! for and approve it.

mod on_disk;

use std::fmt;

use archive_model::{Act, AnomalyKind, AtticKind, FileName, ReplicaId, Role};
use serde::{Deserialize, Serialize};

use on_disk::ActOnDisk;

/// An act, with the record of its subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ActOnDisk", into = "ActOnDisk")]
pub struct RequestedAct {
    /// The act as it was asked for. A volume or node that it names has its node and replica once the request is taken.
    pub act: Act,
    /// The record of its subject, made when the request was taken.
    pub subject: ActSubject,
}

/// The subject of an act, as it was when the request was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActSubject {
    /// Nothing is recorded: the act names all that it is about, or the request is not taken yet.
    None,
    /// The anomaly that is to be accepted, as bad as it was then and no worse.
    Anomaly(AcceptedAnomaly),
    /// The item that is to be destroyed, with its content.
    Item(PurgedItem),
}

/// An item of an attic as it is to be destroyed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgedItem {
    /// The file that the item belongs to; `None` if its reason cannot be read.
    pub name: Option<FileName>,
    /// The kind of the item.
    #[serde(with = "on_disk::kind")]
    pub kind: AtticKind,
    /// The size of the item in bytes.
    pub bytes: u64,
}

/// An anomaly as it is to be lived with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedAnomaly {
    /// The file.
    pub file: FileName,
    /// The replica.
    pub replica: ReplicaId,
    /// The kind of anomaly, at most.
    pub kind: AnomalyKind,
}

impl ActSubject {
    /// Returns the attic item, if the subject is one.
    pub const fn item(&self) -> Option<&PurgedItem> {
        match self {
            Self::Item(item) => Some(item),
            Self::None | Self::Anomaly(_) => None,
        }
    }

    /// Returns the anomaly, if the subject is one.
    pub const fn anomaly(&self) -> Option<&AcceptedAnomaly> {
        match self {
            Self::Anomaly(accepted) => Some(accepted),
            Self::None | Self::Item(_) => None,
        }
    }
}

/// An act that nothing is recorded of.
impl From<Act> for RequestedAct {
    fn from(act: Act) -> Self {
        let subject = ActSubject::None;
        Self { act, subject }
    }
}

impl RequestedAct {
    /// Returns the roles that may ask for the act.
    pub const fn askers(&self) -> &'static [Role] {
        match &self.act {
            Act::Remove { .. }
            | Act::Purge { .. }
            | Act::RetireVolume {
                last_copies: true, ..
            }
            | Act::RetireNode {
                last_copies: true, ..
            } => &[Role::Custodian],
            Act::RetireVolume { .. }
            | Act::RetireNode { .. }
            | Act::RetireReplica(_)
            | Act::ReinstateVolume(_)
            | Act::ReinstateNode(_) => &[Role::Operator, Role::Custodian],
            Act::Accept { .. } | Act::NewRoot { .. } | Act::ReinstateCopy { .. } => {
                &[Role::Custodian, Role::Officer]
            }
        }
    }

    /// Returns the roles that may approve the act.
    pub const fn approvers(&self) -> &'static [Role] {
        match &self.act {
            Act::Remove { .. }
            | Act::Purge { .. }
            | Act::Accept { .. }
            | Act::NewRoot { .. }
            | Act::ReinstateCopy { .. }
            | Act::RetireVolume {
                last_copies: true, ..
            }
            | Act::RetireNode {
                last_copies: true, ..
            } => &[Role::Custodian],
            Act::RetireVolume { .. }
            | Act::RetireNode { .. }
            | Act::RetireReplica(_)
            | Act::ReinstateVolume(_)
            | Act::ReinstateNode(_) => &[Role::Custodian, Role::Officer],
        }
    }

    /// Returns the file that the act is about, if it is about one.
    pub const fn file(&self) -> Option<&FileName> {
        match (&self.act, &self.subject) {
            (
                Act::Remove { name, .. }
                | Act::NewRoot { name, .. }
                | Act::ReinstateCopy { name, .. },
                _,
            ) => Some(name),
            (_, ActSubject::Anomaly(accepted)) => Some(&accepted.file),
            (_, ActSubject::Item(item)) => item.name.as_ref(),
            (_, ActSubject::None) => None,
        }
    }
}

/// The exact act, for people.
impl fmt::Display for RequestedAct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.act {
            Act::Remove {
                name,
                replica,
                checksum,
                last_copies,
            } => {
                let last = last(*last_copies);
                write!(
                    f,
                    "remove {name} from replica {replica}, checksum {checksum}{last}"
                )
            }
            Act::Purge {
                place,
                checksum,
                last_copies,
            } => {
                f.write_str("destroy ")?;
                if let ActSubject::Item(item) = &self.subject {
                    write!(f, "{item}, ")?;
                }
                if let Some(checksum) = checksum {
                    write!(f, "checksum {checksum}, ")?;
                }
                write!(f, "{}{}", place.in_words(), last(*last_copies))
            }
            Act::RetireVolume {
                volume,
                last_copies,
            } => write!(f, "retire {volume}{}", last(*last_copies)),
            Act::RetireNode { node, last_copies } => {
                write!(f, "retire {node}{}", last(*last_copies))
            }
            Act::RetireReplica(replica) => write!(f, "retire replica {replica}"),
            Act::Accept { anomaly } => {
                write!(f, "accept anomaly {anomaly}")?;
                match &self.subject {
                    ActSubject::Anomaly(of) => {
                        write!(f, ": {} in replica {}: {}", of.file, of.replica, of.kind)
                    }
                    ActSubject::None | ActSubject::Item(_) => Ok(()),
                }
            }
            Act::NewRoot {
                name,
                replica,
                root,
            } => write!(f, "let {name} mean what replica {replica} has, root {root}"),
            Act::ReinstateCopy { name, replica } => {
                write!(f, "want {name} again in replica {replica}")
            }
            Act::ReinstateVolume(volume) => write!(f, "take {volume} back into service"),
            Act::ReinstateNode(node) => write!(f, "take {node} back into service"),
        }
    }
}

impl fmt::Display for PurgedItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_ref().map_or("?", FileName::as_str);
        write!(f, "the {} of {name}, {} bytes", self.kind, self.bytes)
    }
}

/// Returns the words of an act about last copies.
const fn last(last_copies: bool) -> &'static str {
    if last_copies {
        ", also the last good copies"
    } else {
        ""
    }
}
