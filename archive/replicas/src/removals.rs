//! The copies that two persons have had removed from a replica, as its nodes report: whole files in their attics, rows
//! that a checksum replica does not have any more.
//!
//! Not promised: that two persons did. Items of an attic are not signed.
//!
//! # Errors
//! All functions fail with a [`CallError`] if the node cannot be reached.

use archive_ledger::restore::combine::RemovedCopy;
use archive_model::{AtticItem, AtticKind, NodeId, ReplicaId};
use archive_rpc::{CallError, InvalidMessage};

use super::{AnswerPage, ListedAttic, Replicas};

/// The removals of a node, page by page.
#[derive(Debug)]
pub struct Removals(ListedAttic);

/// A removal, or the error of an item that may be one.
type FoundRemoval = Result<RemovedCopy, String>;

impl Replicas {
    /// Asks a node for the copies that people had removed from it.
    pub async fn list_removals(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
    ) -> Result<Removals, CallError> {
        Ok(Removals(self.list_attic(replica, node, None).await?))
    }
}

impl Removals {
    /// Returns the next page, or `None` at the end.
    pub async fn next(&mut self) -> Result<Option<AnswerPage<FoundRemoval>>, CallError> {
        let page = self.0.next().await?;
        Ok(page.map(|page| AnswerPage {
            items: page.items.into_iter().filter_map(read).collect(),
            end: page.end,
        }))
    }
}

/// Reads an item. Returns `None` if two persons have not had it removed. An item without a name is an error: it may be
/// anything.
fn read(item: Result<AtticItem, InvalidMessage>) -> Option<FoundRemoval> {
    let item = match item {
        Ok(item) => item,
        Err(error) => return Some(Err(error.to_string())),
    };
    let Some(name) = item.name else {
        let id = &item.place.id;
        let why = &item.why;
        return Some(Err(format!("cannot read attic item {id}: {why}")));
    };
    if !matches!(item.kind, AtticKind::File | AtticKind::Row) {
        return None;
    }
    let approval = item.approval?;
    let missing = || InvalidMessage::missing_field("at").to_string();
    let at = item.at.ok_or_else(missing);
    Some(at.map(|at| RemovedCopy {
        replica: item.place.replica,
        node: item.place.node,
        volume: item.place.volume,
        name,
        at,
        approval,
        why: item.why,
        admission: item.admission.unwrap_or_default(),
    }))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proto_archive::wire::attic_item::Kind;
    use proto_archive::{convert as fields, wire};

    use super::*;

    fn item(name: &str, kind: Kind, persons: &[&str]) -> wire::AtticItem {
        let approval = match persons {
            [asked_by, approved_by] => Some(wire::Approval {
                request: "r1".to_owned(),
                asked_by: (*asked_by).to_owned(),
                approved_by: (*approved_by).to_owned(),
            }),
            _ => None,
        };
        wire::AtticItem {
            approval,
            node: "n-1".to_owned(),
            id: "x-1".to_owned(),
            volume: "v-1".to_owned(),
            name: name.to_owned(),
            kind: kind.into(),
            who: persons.join(", approved by "),
            why: "r1: law".to_owned(),
            at: Timestamp::UNIX_EPOCH.to_string(),
            ..wire::AtticItem::default()
        }
    }

    /// Fails if an item that one person replaced, or a crash left behind, counts as a removal, or one that cannot be
    /// read is skipped.
    #[test]
    fn only_two_persons_remove_and_errors_show() {
        let replica = ReplicaId::new("one").unwrap();
        let read = |item| read(fields::attic_item(&replica, item));
        let two: &[&str] = &["custodian/anna", "custodian/bert"];
        for kind in [Kind::File, Kind::Row] {
            let removal = read(item("a", kind, two)).unwrap().unwrap();
            assert_eq!(
                (removal.name.as_str(), removal.why.as_str()),
                ("a", "r1: law")
            );
            assert!(read(item("a", kind, &["officer/olga"])).is_none());
        }
        for kind in [Kind::Groups, Kind::Leftover] {
            assert!(read(item("a", kind, two)).is_none());
        }
        assert!(read(item("", Kind::Leftover, &[])).unwrap().is_err());
        assert!(read(item("a/b", Kind::File, two)).unwrap().is_err());
        let nobody = read(item("a", Kind::File, &["custodian/anna", ""]));
        assert!(nobody.unwrap().is_err(), "half an approval does not count");
        let text = wire::AtticItem {
            approval: None,
            ..item("a", Kind::File, two)
        };
        assert!(read(text).is_none(), "decided by a field, not by text");
    }
}
