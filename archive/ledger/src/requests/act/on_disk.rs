//! An act as it stands in the table of requests and in exports. The order of the variants, and of their fields, is part
//! of the format.

use archive_model::{
    Act, AtticPlace, FileName, NodeId, NodeSelector, ReplicaId, Root, VolumeId, VolumeSelector,
};
use serde::{Deserialize, Serialize};

use super::{AcceptedAnomaly, PurgedItem, RequestedAct, Subject};

/// An act and the record of its subject, in one value. `N` and `R` are the types in which a row names the node and the
/// replica of a retired volume or node.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename = "Act")]
pub(in crate::requests) enum ActOnDisk<N = Option<NodeId>, R = Option<ReplicaId>> {
    Remove {
        name: FileName,
        replica: ReplicaId,
        checksum: Root,
        last_copies: bool,
    },
    /// A purge of before requests named what they destroy.
    Purge {
        replica: ReplicaId,
        node: NodeId,
        volume: VolumeId,
        id: String,
    },
    RetireVolume {
        volume: VolumeId,
        #[serde(default)]
        node: N,
        #[serde(default)]
        replica: R,
        last_copies: bool,
    },
    RetireNode {
        node: NodeId,
        #[serde(default)]
        replica: R,
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
}

/// A place in an attic, field by field.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename = "AtticPlace")]
pub(in crate::requests) struct PlaceOnDisk {
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
            } => {
                let AtticPlace {
                    replica,
                    node,
                    volume,
                    id,
                } = place;
                if subject == Subject::Unnamed {
                    return Self::Purge {
                        replica,
                        node,
                        volume,
                        id,
                    };
                }
                Self::Destroy {
                    place: PlaceOnDisk {
                        replica,
                        node,
                        volume,
                        id,
                    },
                    checksum,
                    last_copies,
                    item: subject.item().cloned(),
                }
            }
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
        }
    }
}

impl<N, R> From<ActOnDisk<N, R>> for RequestedAct
where
    N: Into<Option<NodeId>>,
    R: Into<Option<ReplicaId>>,
{
    fn from(act: ActOnDisk<N, R>) -> Self {
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
            ActOnDisk::Purge {
                replica,
                node,
                volume,
                id,
            } => {
                let place = AtticPlace {
                    replica,
                    node,
                    volume,
                    id,
                };
                let act = Act::Purge {
                    place,
                    checksum: None,
                    last_copies: false,
                };
                let subject = Subject::Unnamed;
                return Self { act, subject };
            }
            ActOnDisk::RetireVolume {
                volume: id,
                node,
                replica,
                last_copies,
            } => Act::RetireVolume {
                volume: volume(id, node.into(), replica.into()),
                last_copies,
            },
            ActOnDisk::RetireNode {
                node,
                replica,
                last_copies,
            } => Act::RetireNode {
                node: NodeSelector {
                    replica: replica.into(),
                    node,
                },
                last_copies,
            },
            ActOnDisk::RetireReplica(replica) => Act::RetireReplica(replica),
            ActOnDisk::Accept { anomaly, of } => {
                let subject = of.map_or(Subject::None, Subject::Anomaly);
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
                let subject = item.map_or(Subject::None, Subject::Item);
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
        };
        act.into()
    }
}

/// The kind of an item in an attic is a text on disk, its word.
pub(super) mod kind {
    use archive_model::AtticKind;
    use serde::{Deserialize, Deserializer, Serializer, de};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    pub(in crate::requests) fn serialize<S: Serializer>(
        kind: &AtticKind,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(kind.as_str())
    }

    pub(in crate::requests) fn deserialize<'de, D: Deserializer<'de>>(
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

    /// The output of the build before acts were a noun of the model: bytes in the table, JSON in an export, the
    /// sentence for people.
    const WRITTEN: &str = include_str!("written.txt");

    /// Fails if a request that an earlier build has taken is not read, is written otherwise, or reads as another act.
    #[test]
    fn acts_on_disk_are_as_written_before() {
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
