//! The verbs of disks and of the whole node, over the wire.

use std::path::PathBuf;

use archive_model::{Mode, VolumeId};
use archive_rpc::InvalidMessage;
use jiff::Timestamp;
use proto_archive::wire::set_volume_request::Order as Wire;
use proto_archive::{convert as fields, wire};

use crate::error::NodeError;
use crate::node::Node;

/// The longest path that is looked at, in bytes; that of Linux.
const MAX_PATH: usize = 4096;

/// What is asked of one disk.
#[derive(Debug)]
pub(crate) enum Order {
    Init(PathBuf, VolumeId),
    Adopt(PathBuf, Option<VolumeId>),
    Clear(VolumeId),
    Mode(VolumeId, Mode),
    Retire(VolumeId),
    Reinstate(VolumeId),
}

/// Reads an order.
pub(crate) fn order(request: &wire::SetVolumeRequest) -> Result<Order, InvalidMessage> {
    let volume = || fields::volume_id(&request.volume);
    let order = Wire::try_from(request.order)
        .map_err(|error| InvalidMessage::invalid("order", error.to_string()))?;
    Ok(match order {
        Wire::Unspecified => return Err(InvalidMessage::missing("order")),
        Wire::Init => Order::Init(path(&request.path)?, volume()?),
        Wire::Adopt => {
            let named = (!request.volume.is_empty()).then(volume).transpose()?;
            Order::Adopt(path(&request.path)?, named)
        }
        Wire::Clear => Order::Clear(volume()?),
        Wire::ReadWrite => Order::Mode(volume()?, Mode::ReadWrite),
        Wire::ReadOnly => Order::Mode(volume()?, Mode::ReadOnly),
        Wire::Drain => Order::Mode(volume()?, Mode::Draining),
        Wire::Retire => Order::Retire(volume()?),
        Wire::Reinstate => Order::Reinstate(volume()?),
    })
}

/// Reads the mode of a node.
pub(crate) fn mode(request: wire::SetModeRequest) -> Result<Mode, InvalidMessage> {
    match fields::mode("mode", request.mode)? {
        Some(mode @ (Mode::ReadWrite | Mode::ReadOnly | Mode::Draining)) => Ok(mode),
        Some(Mode::Retired) => Err(InvalidMessage::invalid(
            "mode",
            "a node is retired by an act of two persons",
        )),
        None => Err(InvalidMessage::missing("mode")),
    }
}

fn path(text: &str) -> Result<PathBuf, InvalidMessage> {
    let path = PathBuf::from(text);
    let wrong = if text.is_empty() {
        "missing"
    } else if text.len() > MAX_PATH {
        "is too long"
    } else if text.contains(char::is_control) {
        "contains control characters"
    } else if !path.is_absolute() {
        "is not an absolute path"
    } else if path
        .components()
        .any(|part| part == std::path::Component::ParentDir)
    {
        "contains `..`"
    } else {
        return Ok(path);
    };
    Err(InvalidMessage::invalid("path", wrong))
}

/// Does it.
pub(crate) fn carry_out(node: &Node, order: Order, now: Timestamp) -> Result<(), NodeError> {
    match order {
        Order::Init(path, volume) => node.init_volume(&path, &volume, now).map(|_| ()),
        Order::Adopt(path, volume) => node.adopt_volume(&path, volume.as_ref(), now).map(|_| ()),
        Order::Clear(volume) => node.clear(&volume, now).map(|_| ()),
        Order::Mode(volume, mode) => node.set_volume_mode(&volume, mode),
        Order::Retire(volume) => node.retire_volume(&volume, now).map(|_| ()),
        Order::Reinstate(volume) => node.reinstate_volume(&volume, now).map(|_| ()),
    }
}
