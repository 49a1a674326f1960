//! Conversions of orders to a node about its disks, in both directions.

use std::path::{Component, Path};

use archive_model::DiskOrder;
use archive_rpc::InvalidMessage;

use super::{text_of, volume_id};
use crate::wire::SetVolumeRequest;
use crate::wire::set_volume_request::Order;

/// The longest path that is accepted, in bytes: that of Linux.
const MAX_PATH: usize = 4096;

/// Reads an order.
///
/// # Errors
/// There is no such order, the volume is no id, or the path is not absolute.
pub fn disk_order(message: &SetVolumeRequest) -> Result<DiskOrder, InvalidMessage> {
    let volume = || volume_id(&message.volume);
    let order = Order::try_from(message.order)
        .map_err(|error| InvalidMessage::invalid_field("order", error.to_string()))?;
    Ok(match order {
        Order::Unspecified => return Err(InvalidMessage::missing_field("order")),
        Order::Init => DiskOrder::Init(path(&message.path)?, volume()?),
        Order::Adopt => {
            let named = (!message.volume.is_empty()).then(volume).transpose()?;
            DiskOrder::Adopt(path(&message.path)?, named)
        }
        Order::Clear => DiskOrder::Clear(volume()?),
        Order::ReadWrite => DiskOrder::ReadWrite(volume()?),
        Order::ReadOnly => DiskOrder::ReadOnly(volume()?),
        Order::Drain => DiskOrder::Drain(volume()?),
        Order::Retire => DiskOrder::Retire(volume()?),
        Order::Reinstate => DiskOrder::Reinstate(volume()?),
    })
}

/// Writes an order.
pub fn disk_order_message(order: DiskOrder) -> SetVolumeRequest {
    let (order, path, volume) = match order {
        DiskOrder::Init(path, volume) => (Order::Init, path, Some(volume)),
        DiskOrder::Adopt(path, volume) => (Order::Adopt, path, volume),
        DiskOrder::Clear(volume) => (Order::Clear, String::new(), Some(volume)),
        DiskOrder::ReadWrite(volume) => (Order::ReadWrite, String::new(), Some(volume)),
        DiskOrder::ReadOnly(volume) => (Order::ReadOnly, String::new(), Some(volume)),
        DiskOrder::Drain(volume) => (Order::Drain, String::new(), Some(volume)),
        DiskOrder::Retire(volume) => (Order::Retire, String::new(), Some(volume)),
        DiskOrder::Reinstate(volume) => (Order::Reinstate, String::new(), Some(volume)),
    };
    SetVolumeRequest {
        order: order.into(),
        volume: text_of(volume),
        path,
    }
}

fn path(text: &str) -> Result<String, InvalidMessage> {
    let path = Path::new(text);
    let wrong = if text.is_empty() {
        "missing"
    } else if text.len() > MAX_PATH {
        "is too long"
    } else if text.contains(char::is_control) {
        "contains control characters"
    } else if !path.is_absolute() {
        "is not an absolute path"
    } else if path.components().any(|part| part == Component::ParentDir) {
        "contains `..`"
    } else {
        return Ok(text.to_owned());
    };
    Err(InvalidMessage::invalid_field("path", wrong))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(order: Order, path: &str, volume: &str) -> SetVolumeRequest {
        SetVolumeRequest {
            order: order.into(),
            volume: volume.to_owned(),
            path: path.to_owned(),
        }
    }

    /// Fails if an order becomes another one, or loses its disk, on its way.
    #[test]
    fn every_order_survives_the_wire() {
        for order in [
            message(Order::Init, "/disks/1", "v"),
            message(Order::Adopt, "/disks/1", "v"),
            message(Order::Adopt, "/disks/1", ""),
            message(Order::Clear, "", "v"),
            message(Order::ReadWrite, "", "v"),
            message(Order::ReadOnly, "", "v"),
            message(Order::Drain, "", "v"),
            message(Order::Retire, "", "v"),
            message(Order::Reinstate, "", "v"),
        ] {
            assert_eq!(disk_order_message(disk_order(&order).unwrap()), order);
        }
    }

    /// Fails if an order without its disk is accepted, or a path leads elsewhere.
    #[test]
    fn order_without_its_disk_is_refused() {
        for (order, path, volume) in [
            (Order::Unspecified, "/disks/1", "v"),
            (Order::Init, "/disks/1", ""),
            (Order::Init, "", "v"),
            (Order::Adopt, "disks/1", ""),
            (Order::Adopt, "/disks/../1", ""),
            (Order::Adopt, "/disks/\n1", ""),
            (Order::Clear, "", ""),
            (Order::Drain, "", "V 1"),
        ] {
            let message = message(order, path, volume);
            assert!(disk_order(&message).is_err(), "{message:?}");
        }
    }
}
