//! Disks, machines and whole replicas.

use archive_model::{DiskOrder, NodeId, ReplicaId, VolumeId, VolumeSelector};
use proto_archive::convert::or_empty;
use proto_archive::{convert, wire};
use serde::Serialize;

use crate::error::visible_text;

/// An order about a disk, with the place of the disk. The archive refuses to retire or reinstate a volume by an order:
/// these are acts, which take a second person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeOrder {
    /// The order to the node.
    pub order: DiskOrder,
    /// The node of the disk, if the person named it: a path is one of this node.
    pub node: Option<NodeId>,
    /// The replica of the node, where more than one node bears that id.
    pub replica: Option<ReplicaId>,
}

impl VolumeOrder {
    /// Makes an order about a volume as a person names it, such as [`DiskOrder::Clear`].
    pub fn about_volume(volume: VolumeSelector, order: impl FnOnce(VolumeId) -> DiskOrder) -> Self {
        Self {
            order: order(volume.volume),
            node: volume.node,
            replica: volume.replica,
        }
    }
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
        Self {
            order: Some(convert::disk_order_message(order.order.clone())),
            node: or_empty(order.node.as_ref()),
            replica: or_empty(order.replica.as_ref()),
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
            outcomes: message
                .outcomes
                .iter()
                .map(|line| visible_text(line))
                .collect(),
            failed: message.failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use proto_archive::wire::set_volume_request::Order;

    use super::*;

    /// Fails if an order for a disk carries a field that belongs to another order, or loses the node and replica of its
    /// volume.
    #[test]
    fn order_names_only_its_own_disk() {
        let node: NodeId = "n".parse().unwrap();
        let volume: VolumeId = "v".parse().unwrap();
        let path = || "/disk".to_owned();
        let init = VolumeOrder {
            order: DiskOrder::Init(path(), volume.clone()),
            node: Some(node.clone()),
            replica: None,
        };
        let adopt = VolumeOrder {
            order: DiskOrder::Adopt(path(), None),
            node: Some(node.clone()),
            replica: Some("one".parse().unwrap()),
        };
        let bare = || VolumeSelector {
            volume: volume.clone(),
            node: None,
            replica: None,
        };
        let whole = VolumeSelector {
            node: Some(node),
            replica: Some("one".parse().unwrap()),
            ..bare()
        };
        let clear = VolumeOrder::about_volume(bare(), DiskOrder::Clear);
        let read_write = VolumeOrder::about_volume(bare(), DiskOrder::ReadWrite);
        let read_only = VolumeOrder::about_volume(bare(), DiskOrder::ReadOnly);
        let drain = VolumeOrder::about_volume(whole, DiskOrder::Drain);
        for (order, sent, filled) in [
            (init, Order::Init, ["v", "/disk", "n", ""]),
            (adopt, Order::Adopt, ["", "/disk", "n", "one"]),
            (clear, Order::Clear, ["v", "", "", ""]),
            (read_write, Order::ReadWrite, ["v", "", "", ""]),
            (read_only, Order::ReadOnly, ["v", "", "", ""]),
            (drain, Order::Drain, ["v", "", "n", "one"]),
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
