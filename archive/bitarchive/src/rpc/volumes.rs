//! The verbs of disks and of the whole node, over the wire.

use std::path::PathBuf;

use archive_model::{Mode, VolumeId};
use archive_rpc::InvalidMessage;
use jiff::Timestamp;
use proto_archive::wire::set_volume_request::Order as Wire;
use proto_archive::{convert as fields, wire};

use crate::error::NodeError;
use crate::node::Node;

/// The longest path that is accepted, in bytes: that of Linux.
const MAX_PATH: usize = 4096;

/// An order about one disk.
#[derive(Debug)]
pub(crate) enum VolumeOrder {
    Init(PathBuf, VolumeId),
    Adopt(PathBuf, Option<VolumeId>),
    Clear(VolumeId),
    Mode(VolumeId, Mode),
    Retire(VolumeId),
    Reinstate(VolumeId),
}

/// Reads an order.
pub(crate) fn order(request: &wire::SetVolumeRequest) -> Result<VolumeOrder, InvalidMessage> {
    let volume = || fields::volume_id(&request.volume);
    let order = Wire::try_from(request.order)
        .map_err(|error| InvalidMessage::invalid("order", error.to_string()))?;
    Ok(match order {
        Wire::Unspecified => return Err(InvalidMessage::missing("order")),
        Wire::Init => VolumeOrder::Init(path(&request.path)?, volume()?),
        Wire::Adopt => {
            let named = (!request.volume.is_empty()).then(volume).transpose()?;
            VolumeOrder::Adopt(path(&request.path)?, named)
        }
        Wire::Clear => VolumeOrder::Clear(volume()?),
        Wire::ReadWrite => VolumeOrder::Mode(volume()?, Mode::ReadWrite),
        Wire::ReadOnly => VolumeOrder::Mode(volume()?, Mode::ReadOnly),
        Wire::Drain => VolumeOrder::Mode(volume()?, Mode::Draining),
        Wire::Retire => VolumeOrder::Retire(volume()?),
        Wire::Reinstate => VolumeOrder::Reinstate(volume()?),
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

/// Carries out an order.
pub(crate) fn carry_out(node: &Node, order: VolumeOrder, now: Timestamp) -> Result<(), NodeError> {
    match order {
        VolumeOrder::Init(path, volume) => node.init_volume(&path, &volume, now).map(|_| ()),
        VolumeOrder::Adopt(path, volume) => {
            node.adopt_volume(&path, volume.as_ref(), now).map(|_| ())
        }
        VolumeOrder::Clear(volume) => node.clear(&volume, now).map(|_| ()),
        VolumeOrder::Mode(volume, mode) => node.set_volume_mode(&volume, mode),
        VolumeOrder::Retire(volume) => node.retire_volume(&volume, now).map(|_| ()),
        VolumeOrder::Reinstate(volume) => node.reinstate_volume(&volume, now).map(|_| ()),
    }
}
