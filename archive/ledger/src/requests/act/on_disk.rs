//! An act as it stands in the table of requests and in exports. The order of the variants, and of their fields, is part
//! of the format.

use archive_model::{
    Act, AtticPlace, FileName, NodeId, NodeSelector, ReplicaId, Root, VolumeId, VolumeSelector,
};
use serde::{Deserialize, Serialize};

use super::{AcceptedAnomaly, ActSubject, PurgedItem, RequestedAct};

/// An act and the record of its subject, in one value.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename = "Act")]
pub(super) enum ActOnDisk {
    Remove {
        name: FileName,
        replica: ReplicaId,
        checksum: Root,
        last_copies: bool,
    },
    RetireVolume {
        volume: VolumeId,
        node: Option<NodeId>,
        replica: Option<ReplicaId>,
        last_copies: bool,
    },
    RetireNode {
        node: NodeId,
        replica: Option<ReplicaId>,
        last_copies: bool,
    },
    RetireReplica(ReplicaId),
    Accept {
        anomaly: String,
        of: Option<AcceptedAnomaly>,
    },
    NewRoot {
        name: FileName,
        replica: ReplicaId,
        root: Root,
    },
    /// A purge.
    Destroy {
        place: PlaceOnDisk,
        checksum: Option<Root>,
        last_copies: bool,
        item: Option<PurgedItem>,
    },
    ReinstateVolume {
        volume: VolumeId,
        node: Option<NodeId>,
        replica: Option<ReplicaId>,
    },
    ReinstateNode {
        node: NodeId,
        replica: Option<ReplicaId>,
    },
    ReinstateCopy {
        name: FileName,
        replica: ReplicaId,
    },
}

/// A place in an attic, field by field.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename = "AtticPlace")]
pub(super) struct PlaceOnDisk {
    replica: ReplicaId,
    node: NodeId,
    volume: VolumeId,
    id: String,
}

impl From<RequestedAct> for ActOnDisk {
    fn from(RequestedAct { act, subject }: RequestedAct) -> Self {
        match act {
            Act::Remove {
                name,
                replica,
                checksum,
                last_copies,
            } => Self::Remove {
                name,
                replica,
                checksum,
                last_copies,
            },
            Act::Purge {
                place,
                checksum,
                last_copies,
            } => Self::Destroy {
                place: PlaceOnDisk {
                    replica: place.replica,
                    node: place.node,
                    volume: place.volume,
                    id: place.id,
                },
                checksum,
                last_copies,
                item: subject.item().cloned(),
            },
            Act::RetireVolume {
                volume,
                last_copies,
            } => Self::RetireVolume {
                volume: volume.volume,
                node: volume.node,
                replica: volume.replica,
                last_copies,
            },
            Act::RetireNode { node, last_copies } => Self::RetireNode {
                node: node.node,
                replica: node.replica,
                last_copies,
            },
            Act::RetireReplica(replica) => Self::RetireReplica(replica),
            Act::Accept { anomaly } => Self::Accept {
                anomaly,
                of: subject.anomaly().cloned(),
            },
            Act::NewRoot {
                name,
                replica,
                root,
            } => Self::NewRoot {
                name,
                replica,
                root,
            },
            Act::ReinstateVolume(volume) => Self::ReinstateVolume {
                volume: volume.volume,
                node: volume.node,
                replica: volume.replica,
            },
            Act::ReinstateNode(node) => Self::ReinstateNode {
                node: node.node,
                replica: node.replica,
            },
            Act::ReinstateCopy { name, replica } => Self::ReinstateCopy { name, replica },
        }
    }
}

impl From<ActOnDisk> for RequestedAct {
    fn from(act: ActOnDisk) -> Self {
        let volume = |volume, node, replica| VolumeSelector {
            replica,
            node,
            volume,
        };
        let act = match act {
            ActOnDisk::Remove {
                name,
                replica,
                checksum,
                last_copies,
            } => Act::Remove {
                name,
                replica,
                checksum,
                last_copies,
            },
            ActOnDisk::RetireVolume {
                volume: id,
                node,
                replica,
                last_copies,
            } => Act::RetireVolume {
                volume: volume(id, node, replica),
                last_copies,
            },
            ActOnDisk::RetireNode {
                node,
                replica,
                last_copies,
            } => Act::RetireNode {
                node: NodeSelector { replica, node },
                last_copies,
            },
            ActOnDisk::RetireReplica(replica) => Act::RetireReplica(replica),
            ActOnDisk::Accept { anomaly, of } => {
                let subject = of.map_or(ActSubject::None, ActSubject::Anomaly);
                let act = Act::Accept { anomaly };
                return Self { act, subject };
            }
            ActOnDisk::NewRoot {
                name,
                replica,
                root,
            } => Act::NewRoot {
                name,
                replica,
                root,
            },
            ActOnDisk::Destroy {
                place,
                checksum,
                last_copies,
                item,
            } => {
                let place = AtticPlace {
                    replica: place.replica,
                    node: place.node,
                    volume: place.volume,
                    id: place.id,
                };
                let act = Act::Purge {
                    place,
                    checksum,
                    last_copies,
                };
                let subject = item.map_or(ActSubject::None, ActSubject::Item);
                return Self { act, subject };
            }
            ActOnDisk::ReinstateVolume {
                volume: id,
                node,
                replica,
            } => Act::ReinstateVolume(volume(id, node, replica)),
            ActOnDisk::ReinstateNode { node, replica } => {
                Act::ReinstateNode(NodeSelector { replica, node })
            }
            ActOnDisk::ReinstateCopy { name, replica } => Act::ReinstateCopy { name, replica },
        };
        act.into()
    }
}

/// The kind of an item in an attic is a text on disk, its word.
pub(super) mod kind {
    use archive_model::AtticKind;
    use serde::{Deserialize, Deserializer, Serializer, de};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    pub(in super::super) fn serialize<S: Serializer>(
        kind: &AtticKind,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(kind.as_str())
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<AtticKind, D::Error> {
        let word = String::deserialize(deserializer)?;
        let known = AtticKind::ALL.iter().find(|kind| kind.as_str() == word);
        let unknown = || de::Error::custom(format!("{word:?} is no kind of item in an attic"));
        known.copied().ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each act in the present format: bytes in the table, JSON in an export, the sentence for people.
    const WRITTEN: &str = include_str!("written.txt");

    /// Fails if the format of an act changes, and with it neither the version of the table nor this list.
    #[test]
    fn acts_on_disk_are_as_listed() {
        let mut count = 0;
        for line in WRITTEN.lines() {
            let [hex, json, said] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("{line}");
            };
            let act: RequestedAct = serde_json::from_str(json).unwrap();
            assert_eq!(act.to_string(), said);
            assert_eq!(serde_json::to_string(&act).unwrap(), json);
            let bytes = postcard::to_stdvec(&act).unwrap();
            let written = bytes.iter().map(|byte| format!("{byte:02x}"));
            assert_eq!(written.collect::<Vec<_>>().concat(), hex, "{said}");
            assert_eq!(postcard::from_bytes::<RequestedAct>(&bytes).unwrap(), act);
            count += 1;
        }
        assert_eq!(count, 15);
    }
}
