//! Disks, machines and whole replicas.

use archive_model::{NodeId, ReplicaId, VolumeId, VolumeSelector};
use proto_archive::convert::or_empty;
use proto_archive::wire;
use proto_archive::wire::set_volume_request::Order;
use serde::Serialize;

use crate::error::plain;

/// An order about a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeOrder {
    /// Labels an empty directory of a node as a new volume.
    Init {
        /// The node that has the directory.
        node: NodeId,
        /// The directory, as the node sees it.
        path: String,
        /// The id of the new volume.
        volume: VolumeId,
        /// The replica of the node, where more than one node bears that id.
        replica: Option<ReplicaId>,
    },
    /// Takes over a disk that another node has labelled.
    Adopt {
        /// The node that takes the disk over.
        node: NodeId,
        /// The path at which the disk is mounted on that node.
        path: String,
        /// The replica of the node, where more than one node bears that id.
        replica: Option<ReplicaId>,
    },
    /// Trusts a volume again after people have looked at it.
    Clear(VolumeSelector),
    /// Lets a volume take new files.
    ReadWrite(VolumeSelector),
    /// Lets a volume take no new files.
    ReadOnly(VolumeSelector),
    /// Drains a volume: its copies are moved elsewhere.
    Drain(VolumeSelector),
}

/// The files that a replica will be filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bootstrap {
    /// The number of files to copy into the replica.
    pub files: u64,
    /// The bytes of these files.
    pub bytes: u64,
}

/// The result of a test notification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotifyOutcome {
    /// The outcomes, a line for each configured channel.
    pub outcomes: Vec<String>,
    /// Whether any channel failed.
    pub failed: bool,
}

impl From<&VolumeOrder> for wire::VolumeRequest {
    fn from(order: &VolumeOrder) -> Self {
        let known = |order, name: &VolumeSelector| {
            let node = or_empty(name.node.as_ref());
            (order, name.volume.to_string(), String::new(), node)
        };
        let replica = match order {
            VolumeOrder::Init { replica, .. } | VolumeOrder::Adopt { replica, .. } => replica,
            VolumeOrder::Clear(name)
            | VolumeOrder::ReadWrite(name)
            | VolumeOrder::ReadOnly(name)
            | VolumeOrder::Drain(name) => &name.replica,
        };
        let replica = or_empty(replica.as_ref());
        let (order, volume, path, node) = match order {
            VolumeOrder::Init {
                node, path, volume, ..
            } => (
                Order::Init,
                volume.to_string(),
                path.clone(),
                node.to_string(),
            ),
            VolumeOrder::Adopt { node, path, .. } => {
                (Order::Adopt, String::new(), path.clone(), node.to_string())
            }
            VolumeOrder::Clear(volume) => known(Order::Clear, volume),
            VolumeOrder::ReadWrite(volume) => known(Order::ReadWrite, volume),
            VolumeOrder::ReadOnly(volume) => known(Order::ReadOnly, volume),
            VolumeOrder::Drain(volume) => known(Order::Drain, volume),
        };
        Self {
            order: Some(wire::SetVolumeRequest {
                order: order.into(),
                volume,
                path,
            }),
            node,
            replica,
        }
    }
}

impl From<wire::BootstrapResponse> for Bootstrap {
    fn from(message: wire::BootstrapResponse) -> Self {
        let wire::BootstrapResponse { files, bytes } = message;
        Self { files, bytes }
    }
}

impl From<wire::NotifyTestResponse> for NotifyOutcome {
    fn from(message: wire::NotifyTestResponse) -> Self {
        Self {
            outcomes: message.outcomes.iter().map(|line| plain(line)).collect(),
            failed: message.failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if an order for a disk carries a field that belongs to another order, or loses the node and replica of its
    /// volume.
    #[test]
    fn disk_order_sends_only_its_own_fields() {
        let (node, volume): (NodeId, VolumeId) = ("n".parse().unwrap(), "v".parse().unwrap());
        let path = || "/disk".to_owned();
        let init = VolumeOrder::Init {
            node: node.clone(),
            path: path(),
            volume: volume.clone(),
            replica: None,
        };
        let adopt = VolumeOrder::Adopt {
            node: node.clone(),
            path: path(),
            replica: Some("one".parse().unwrap()),
        };
        let bare = VolumeSelector {
            volume,
            node: None,
            replica: None,
        };
        let whole = VolumeSelector {
            node: Some(node),
            replica: Some("one".parse().unwrap()),
            ..bare.clone()
        };
        for (order, sent, filled) in [
            (init, Order::Init, ["v", "/disk", "n", ""]),
            (adopt, Order::Adopt, ["", "/disk", "n", "one"]),
            (
                VolumeOrder::Clear(bare.clone()),
                Order::Clear,
                ["v", "", "", ""],
            ),
            (
                VolumeOrder::ReadWrite(bare.clone()),
                Order::ReadWrite,
                ["v", "", "", ""],
            ),
            (
                VolumeOrder::ReadOnly(bare),
                Order::ReadOnly,
                ["v", "", "", ""],
            ),
            (
                VolumeOrder::Drain(whole),
                Order::Drain,
                ["v", "", "n", "one"],
            ),
        ] {
            let request = wire::VolumeRequest::from(&order);
            let order = request.order.unwrap();
            assert_eq!(order.order(), sent);
            let sent = [
                order.volume.as_str(),
                &order.path,
                &request.node,
                &request.replica,
            ];
            assert_eq!(sent, filled);
        }
    }
}
