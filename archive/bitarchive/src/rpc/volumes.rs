//! The verbs of disks and of the whole node, over the wire.

use std::path::Path;

use archive_model::{DiskOrder, Mode};
use archive_rpc::InvalidMessage;
use jiff::Timestamp;
use proto_archive::{convert as fields, wire};

use crate::error::NodeError;
use crate::node::Node;

/// Reads the mode of a node.
pub(crate) fn mode_order(request: wire::SetModeRequest) -> Result<Mode, InvalidMessage> {
    match fields::read_mode("mode", request.mode)? {
        Some(mode @ (Mode::ReadWrite | Mode::ReadOnly | Mode::Draining)) => Ok(mode),
        Some(Mode::Retired) => Err(InvalidMessage::invalid_field(
            "mode",
            "a node is retired by an act of two persons",
        )),
        None => Err(InvalidMessage::missing_field("mode")),
    }
}

/// Carries out an order.
pub(crate) fn carry_out(node: &Node, order: DiskOrder, now: Timestamp) -> Result<(), NodeError> {
    match order {
        DiskOrder::Init(path, volume) => node
            .disks
            .init_volume(Path::new(&path), &volume, now)
            .map(|_| ()),
        DiskOrder::Adopt(path, volume) => {
            let adopted = node
                .disks
                .adopt_volume(Path::new(&path), volume.as_ref(), now);
            adopted.map(|_| ())
        }
        DiskOrder::Clear(volume) => node.disks.clear_volume(&volume, now).map(|_| ()),
        DiskOrder::ReadWrite(volume) => node.disks.set_volume_mode(&volume, Mode::ReadWrite),
        DiskOrder::ReadOnly(volume) => node.disks.set_volume_mode(&volume, Mode::ReadOnly),
        DiskOrder::Drain(volume) => node.disks.set_volume_mode(&volume, Mode::Draining),
        DiskOrder::Retire(volume) => node.disks.retire_volume(&volume, now).map(|_| ()),
        DiskOrder::Reinstate(volume) => node.disks.reinstate_volume(&volume, now).map(|_| ()),
    }
}
