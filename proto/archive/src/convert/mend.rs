//! Orders to mend a copy, in both directions.

use archive_model::MendOrder;
use archive_rpc::InvalidMessage;

use super::{file_name, group_ranges, optional, read_groups, read_root, root_bytes, text_of};
use crate::wire::mend_request::Open;

/// Reads an order.
///
/// # Errors
/// The first field that is missing or invalid.
pub fn mend_order(open: Open) -> Result<MendOrder, InvalidMessage> {
    if open.who.is_empty() {
        return Err(InvalidMessage::missing_field("who"));
    }
    Ok(MendOrder {
        name: file_name("name", &open.name)?,
        volume: optional("volume", &open.volume)?,
        root: read_root("root", &open.root)?,
        groups: read_groups("groups", &open.groups)?,
        who: open.who,
        why: open.why,
    })
}

/// Writes an order.
pub fn mend_open(order: &MendOrder) -> Open {
    Open {
        name: order.name.to_string(),
        volume: text_of(order.volume.as_ref()),
        root: root_bytes(&order.root),
        groups: group_ranges(&order.groups),
        who: order.who.clone(),
        why: order.why.clone(),
    }
}

#[cfg(test)]
mod tests {
    use archive_model::{Groups, Root};

    use super::*;

    /// Fails if a field of an order is lost on its way, or an order that nobody asked for is obeyed.
    #[test]
    fn mend_order_is_read_as_written() {
        let order = MendOrder {
            name: "a".parse().unwrap(),
            volume: Some("v".parse().unwrap()),
            root: Root::from_bytes([7; 32]),
            groups: Groups::all(40_000),
            who: "officer/anna".to_owned(),
            why: "found by the scrub".to_owned(),
        };
        assert_eq!(mend_order(mend_open(&order)), Ok(order.clone()));
        let only = MendOrder {
            volume: None,
            why: String::new(),
            ..order.clone()
        };
        assert_eq!(mend_order(mend_open(&only)), Ok(only));
        let anonymous = MendOrder {
            who: String::new(),
            ..order
        };
        assert!(mend_order(mend_open(&anonymous)).is_err());
    }
}
