//! Items of attics, in both directions.

use archive_model::attic::is_typed_id;
use archive_model::{AtticItem, AtticKind, AtticPlace, ReplicaId};
use archive_rpc::InvalidMessage;

use super::{
    approval_message, attic_kind, node_id, optional, optional_time, read_approval, text_of,
    visible_text, volume_id,
};
use crate::wire;

/// Reads an id that people type again: visible characters without spaces.
///
/// # Errors
/// The id is missing, or has other characters.
pub fn typed_id(field: &'static str, text: &str) -> Result<String, InvalidMessage> {
    if text.is_empty() {
        return Err(InvalidMessage::missing_field(field));
    }
    if is_typed_id(text) {
        Ok(text.to_owned())
    } else {
        let text: String = text.chars().take(40).collect();
        Err(InvalidMessage::invalid_field(
            field,
            format!("{text:?} is no id"),
        ))
    }
}

/// Reads an item of `replica`.
///
/// # Errors
/// The first field that is missing or invalid. Fields that cannot be read of a rotten item are absent, which is no
/// error.
pub fn attic_item(replica: &ReplicaId, item: wire::AtticItem) -> Result<AtticItem, InvalidMessage> {
    let kind = attic_kind("kind", item.kind)?;
    let id = match kind {
        // A row lies in no attic, so it needs no id.
        AtticKind::Row => String::new(),
        AtticKind::File | AtticKind::Groups | AtticKind::Leftover => typed_id("id", &item.id)?,
    };
    Ok(AtticItem {
        place: AtticPlace {
            replica: replica.clone(),
            node: node_id(&item.node)?,
            volume: volume_id(&item.volume)?,
            id,
        },
        name: optional("name", &item.name)?,
        at: optional_time("at", &item.at)?,
        who: visible_text(&item.who),
        why: visible_text(&item.why),
        kind,
        bytes: item.bytes,
        admission: (!item.admission.is_empty()).then_some(item.admission),
        approval: read_approval(item.approval)?,
    })
}

/// Writes an item without its replica, which the context names.
pub fn attic_item_message(item: AtticItem) -> wire::AtticItem {
    wire::AtticItem {
        node: item.place.node.into(),
        volume: item.place.volume.into(),
        id: item.place.id,
        name: text_of(item.name),
        at: text_of(item.at),
        who: item.who,
        why: item.why,
        kind: wire::attic_item::Kind::from(item.kind).into(),
        bytes: item.bytes,
        admission: item.admission.unwrap_or_default(),
        approval: item.approval.map(approval_message),
    }
}

#[cfg(test)]
mod tests {
    use archive_model::Approval;
    use jiff::Timestamp;

    use super::*;

    fn item(kind: AtticKind) -> AtticItem {
        AtticItem {
            place: "one/n/v/20260101T000000Z-1a".parse().unwrap(),
            name: Some("a".parse().unwrap()),
            at: Some(Timestamp::UNIX_EPOCH),
            who: "custodian/anna".to_owned(),
            why: "law".to_owned(),
            kind,
            bytes: 7,
            admission: Some("{}".to_owned()),
            approval: Some(Approval {
                request: "r1".to_owned(),
                asked_by: "custodian/anna".to_owned(),
                approved_by: "custodian/bert".to_owned(),
            }),
        }
    }

    /// Fails if a field of an item is lost on its way, two are exchanged, or an item that has rotted is refused.
    #[test]
    fn attic_item_is_read_as_written() {
        let replica = "one".parse().unwrap();
        for kind in AtticKind::ALL {
            let mut item = item(*kind);
            if *kind == AtticKind::Row {
                item.place.id.clear();
            }
            let read = |item: &AtticItem| attic_item(&replica, attic_item_message(item.clone()));
            assert_eq!(read(&item), Ok(item.clone()));
            (item.name, item.at, item.admission, item.approval) = (None, None, None, None);
            assert_eq!(read(&item), Ok(item.clone()));
        }
        let unnamed = wire::AtticItem {
            id: String::new(),
            ..attic_item_message(item(AtticKind::File))
        };
        assert!(attic_item(&replica, unnamed).is_err());
    }

    /// Fails if an id is believed that nobody can type again.
    #[test]
    fn id_can_be_typed() {
        for good in ["17", "a-1", "20260101T000000Z-0a", "x:y~z"] {
            assert_eq!(typed_id("id", good).unwrap(), good);
        }
        for bad in [
            "",
            "-x",
            "..",
            "a b",
            "a/b",
            "a\n",
            "ä",
            "$(x)",
            &"x".repeat(201),
        ] {
            assert!(typed_id("id", bad).is_err(), "{bad:?}");
        }
    }
}
