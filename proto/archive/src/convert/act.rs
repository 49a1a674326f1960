//! An act that wants a second person, in both directions.

use archive_model::{Act, AtticPlace, NodeSelector, VolumeSelector};
use archive_rpc::InvalidMessage;

use super::{
    file_name, node_id, optional, optional_root, read_root, replica_id, root_bytes, typed_id,
    volume_id,
};
use crate::wire;
use crate::wire::ask_request::{
    Accept, Act as Wire, NewRoot, ReinstateCopy, ReinstateNode, ReinstateVolume, Remove,
    RetireNode, RetireReplica, RetireVolume,
};

/// Reads a place in an attic.
///
/// # Errors
/// A part is missing, or is not an id.
pub fn attic_place(reference: &wire::AtticsRef) -> Result<AtticPlace, InvalidMessage> {
    Ok(AtticPlace {
        replica: replica_id(&reference.replica)?,
        node: node_id(&reference.node)?,
        volume: volume_id(&reference.volume)?,
        id: typed_id("id", &reference.id)?,
    })
}

/// Writes a place in an attic, with the reason of an act on the item there.
pub fn attics_ref(place: &AtticPlace, reason: &str) -> wire::AtticsRef {
    wire::AtticsRef {
        replica: place.replica.to_string(),
        node: place.node.to_string(),
        volume: place.volume.to_string(),
        id: place.id.clone(),
        reason: reason.to_owned(),
        ..wire::AtticsRef::default()
    }
}

/// Reads a volume as a person names it.
///
/// # Errors
/// A part is not an id, or the volume is missing.
pub fn volume_selector(
    volume: &str,
    node: &str,
    replica: &str,
) -> Result<VolumeSelector, InvalidMessage> {
    Ok(VolumeSelector {
        replica: optional("replica", replica)?,
        node: optional("node", node)?,
        volume: volume_id(volume)?,
    })
}

/// Reads a node as a person names it.
///
/// # Errors
/// A part is not an id, or the node is missing.
pub fn node_selector(node: &str, replica: &str) -> Result<NodeSelector, InvalidMessage> {
    Ok(NodeSelector {
        replica: optional("replica", replica)?,
        node: node_id(node)?,
    })
}

/// Reads a requested act.
///
/// # Errors
/// The act is missing, or a field of it is invalid.
pub fn read_act(asked: Option<Wire>) -> Result<Act, InvalidMessage> {
    Ok(
        match asked.ok_or_else(|| InvalidMessage::missing_field("act"))? {
            Wire::Remove(remove) => Act::Remove {
                name: file_name("name", &remove.name)?,
                replica: replica_id(&remove.replica)?,
                checksum: read_root("checksum", &remove.checksum)?,
                last_copies: remove.last_copies,
            },
            Wire::Purge(purge) => Act::Purge {
                checksum: optional_root("checksum", &purge.checksum)?,
                last_copies: purge.last_copies,
                place: attic_place(&purge)?,
            },
            Wire::RetireVolume(retire) => Act::RetireVolume {
                volume: volume_selector(&retire.volume, &retire.node, &retire.replica)?,
                last_copies: retire.last_copies,
            },
            Wire::RetireNode(retire) => Act::RetireNode {
                node: node_selector(&retire.node, &retire.replica)?,
                last_copies: retire.last_copies,
            },
            Wire::RetireReplica(retire) => Act::RetireReplica(replica_id(&retire.replica)?),
            Wire::ReinstateVolume(volume) => {
                let volume = volume_selector(&volume.volume, &volume.node, &volume.replica)?;
                Act::ReinstateVolume(volume)
            }
            Wire::ReinstateNode(node) => {
                Act::ReinstateNode(node_selector(&node.node, &node.replica)?)
            }
            Wire::ReinstateCopy(copy) => Act::ReinstateCopy {
                name: file_name("name", &copy.name)?,
                replica: replica_id(&copy.replica)?,
            },
            Wire::Accept(accept) => Act::Accept {
                anomaly: typed_id("anomaly", &accept.anomaly)?,
            },
            Wire::NewRoot(new) => Act::NewRoot {
                name: file_name("name", &new.name)?,
                replica: replica_id(&new.replica)?,
                root: read_root("root", &new.root)?,
            },
        },
    )
}

/// Writes the request for an act.
pub fn ask_request(act: &Act, reason: &str) -> wire::AskRequest {
    let act = match act {
        Act::Remove {
            name,
            replica,
            checksum,
            last_copies,
        } => Wire::Remove(Remove {
            name: name.to_string(),
            replica: replica.to_string(),
            checksum: root_bytes(checksum),
            last_copies: *last_copies,
        }),
        Act::Purge {
            place,
            checksum,
            last_copies,
        } => Wire::Purge(wire::AtticsRef {
            checksum: checksum.as_ref().map(root_bytes).unwrap_or_default(),
            last_copies: *last_copies,
            ..attics_ref(place, reason)
        }),
        Act::RetireVolume {
            volume,
            last_copies,
        } => Wire::RetireVolume(RetireVolume {
            volume: volume.volume.to_string(),
            last_copies: *last_copies,
            node: or_empty(volume.node.as_ref()),
            replica: or_empty(volume.replica.as_ref()),
        }),
        Act::RetireNode { node, last_copies } => Wire::RetireNode(RetireNode {
            node: node.node.to_string(),
            last_copies: *last_copies,
            replica: or_empty(node.replica.as_ref()),
        }),
        Act::RetireReplica(replica) => Wire::RetireReplica(RetireReplica {
            replica: replica.to_string(),
        }),
        Act::Accept { anomaly } => Wire::Accept(Accept {
            anomaly: anomaly.clone(),
        }),
        Act::NewRoot {
            name,
            replica,
            root,
        } => Wire::NewRoot(NewRoot {
            name: name.to_string(),
            replica: replica.to_string(),
            root: root_bytes(root),
        }),
        Act::ReinstateVolume(volume) => Wire::ReinstateVolume(ReinstateVolume {
            volume: volume.volume.to_string(),
            node: or_empty(volume.node.as_ref()),
            replica: or_empty(volume.replica.as_ref()),
        }),
        Act::ReinstateNode(node) => Wire::ReinstateNode(ReinstateNode {
            node: node.node.to_string(),
            replica: or_empty(node.replica.as_ref()),
        }),
        Act::ReinstateCopy { name, replica } => Wire::ReinstateCopy(ReinstateCopy {
            name: name.to_string(),
            replica: replica.to_string(),
        }),
    };
    wire::AskRequest {
        act: Some(act),
        reason: reason.to_owned(),
    }
}

/// Writes an id, or an empty text if it is absent.
pub fn or_empty(id: Option<&impl ToString>) -> String {
    id.map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use archive_model::Root;
    use archive_model::limits::LONGEST_ID;

    use super::*;

    /// Fails if an act loses a field on its way, or becomes another one.
    #[test]
    fn act_is_read_as_written() {
        let root = Root::from_bytes([7; 32]);
        let name = "a".parse().unwrap();
        let replica = "one".parse().unwrap();
        let volume = VolumeSelector {
            replica: Some("one".parse().unwrap()),
            node: Some("n".parse().unwrap()),
            volume: "v".parse().unwrap(),
        };
        let node = NodeSelector {
            replica: None,
            node: "n".parse().unwrap(),
        };
        let purge = |checksum| Act::Purge {
            place: "one/n/v/x".parse().unwrap(),
            checksum,
            last_copies: checksum.is_some(),
        };
        let acts = [
            Act::Remove {
                name,
                replica,
                checksum: root,
                last_copies: true,
            },
            purge(None),
            purge(Some(root)),
            Act::RetireVolume {
                volume: volume.clone(),
                last_copies: true,
            },
            Act::RetireNode {
                node: node.clone(),
                last_copies: false,
            },
            Act::RetireReplica("two".parse().unwrap()),
            Act::Accept {
                anomaly: "a1".to_owned(),
            },
            Act::NewRoot {
                name: "b".parse().unwrap(),
                replica: "two".parse().unwrap(),
                root,
            },
            Act::ReinstateVolume(volume),
            Act::ReinstateNode(node),
            Act::ReinstateCopy {
                name: "b".parse().unwrap(),
                replica: "two".parse().unwrap(),
            },
        ];
        for asked in acts {
            let request = ask_request(&asked, "why");
            assert_eq!(request.reason, "why");
            assert_eq!(read_act(request.act), Ok(asked));
        }
        assert!(read_act(None).unwrap_err().to_string().contains("`act`"));
        let longest = "x".repeat(LONGEST_ID);
        let accept = Act::Accept {
            anomaly: longest.clone(),
        };
        assert_eq!(read_act(ask_request(&accept, "").act), Ok(accept));
        let place: AtticPlace = format!("one/n/v/{longest}").parse().unwrap();
        assert_eq!(attic_place(&attics_ref(&place, "")), Ok(place));
        let long = Wire::Accept(Accept {
            anomaly: "x".repeat(LONGEST_ID + 1),
        });
        assert!(
            read_act(Some(long))
                .unwrap_err()
                .to_string()
                .contains("`anomaly`")
        );
    }
}
