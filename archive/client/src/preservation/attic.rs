//! The items in the attics, and how they are named: `REPLICA/NODE/VOLUME/ID`.

use std::collections::VecDeque;

use archive_model::{AtticItem, AtticKind, FileName, Gap, ReplicaId};
use archive_rpc::{InvalidMessage, StepReader};
use proto_archive::{convert, wire};

use crate::error::ClientError;

/// An entry of a list of the attics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AtticEntry {
    /// An item of an attic.
    Item(Box<AtticItem>),
    /// A gap: attics that could not be listed.
    Gap(Gap),
}

/// The attics and items to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AtticSelection {
    /// Lists only attics of this replica.
    pub replica: Option<ReplicaId>,
    /// Lists only items that belong to this file.
    pub name: Option<FileName>,
}

/// Reads an item of a replica that lies in an attic.
pub(super) fn attic_item(
    replica: &ReplicaId,
    message: wire::AtticItem,
) -> Result<AtticItem, InvalidMessage> {
    let item = convert::attic_item(replica, message)?;
    if item.kind == AtticKind::Row {
        let reason = "is a row, which lies in no attic";
        return Err(InvalidMessage::invalid_field("kind", reason));
    }
    Ok(item)
}

/// Reads items, and checks that they are those that were asked for.
pub(super) struct Attics(pub(super) AtticSelection);

impl StepReader for Attics {
    type Message = wire::AtticsResponse;
    type Item = AtticEntry;
    type Error = ClientError;

    fn read(
        &mut self,
        message: wire::AtticsResponse,
        out: &mut VecDeque<AtticEntry>,
    ) -> Result<(), ClientError> {
        let AtticSelection { replica, name } = &self.0;
        for one in message.items {
            let item = one
                .item
                .ok_or_else(|| InvalidMessage::missing_field("item"))?;
            let item = attic_item(&convert::replica_id(&one.replica)?, item)?;
            let other_replica = replica
                .as_ref()
                .is_some_and(|own| *own != item.place.replica);
            let other_file = name.is_some() && *name != item.name;
            if other_replica || other_file {
                let place = item.place;
                let name = item.name.as_ref().map_or("an item", FileName::as_str);
                return Err(ClientError::Untrusted(format!(
                    "the archive speaks of {name} at {place}, which was not asked for"
                )));
            }
            out.push_back(AtticEntry::Item(Box::new(item)));
        }
        for gap in message.gaps {
            out.push_back(AtticEntry::Gap(convert::read_gap(&gap)?));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archive_rpc::testing::read_steps;

    /// Fails if an attic item of another replica or file than asked for is listed, or one of an unknown kind is read as
    /// a file.
    #[tokio::test]
    async fn only_requested_items_are_listed() {
        let message = |replica: &str, name: &str, kind: i32| {
            let item = wire::AtticItem {
                node: "n-1".into(),
                volume: "v".into(),
                id: "x-1".into(),
                name: name.into(),
                at: "2026-01-02T03:04:05Z".into(),
                kind,
                ..wire::AtticItem::default()
            };
            Ok(wire::AtticsResponse {
                items: vec![wire::attics_response::One {
                    replica: replica.into(),
                    item: Some(item),
                }],
                gaps: vec![],
            })
        };
        let selection = AtticSelection {
            replica: Some("one".parse().unwrap()),
            name: Some(FileName::new("a").unwrap()),
        };
        let file = wire::attic_item::Kind::File.into();
        for (replica, name, kind, error) in [
            ("one", "a", file, None),
            ("two", "a", file, Some("not asked for")),
            ("one", "b", file, Some("not asked for")),
            ("one", "a", 99, Some("`kind`")),
            (
                "one",
                "a",
                wire::attic_item::Kind::Row.into(),
                Some("`kind`"),
            ),
        ] {
            let messages = vec![message(replica, name, kind)];
            let (_, end) = read_steps(Attics(selection.clone()), messages).await;
            match error {
                None => assert_eq!(end, Ok(())),
                Some(reason) => assert!(end.unwrap_err().contains(reason)),
            }
        }
        let empty = Ok(wire::AtticsResponse {
            items: vec![wire::attics_response::One::default()],
            gaps: vec![],
        });
        let (_, end) = read_steps(Attics(AtticSelection::default()), vec![empty]).await;
        assert!(end.unwrap_err().contains("`item`"));
    }
}
