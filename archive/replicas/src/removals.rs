//! The copies that two persons have had removed from a replica, as its nodes report: whole files in their attics, rows
//! that a checksum replica does not have any more.
//!
//! Not promised: that two persons did. Items of an attic are not signed.
//!
//! # Errors
//! All functions fail with a [`CallError`] if the node cannot be reached.

use archive_ledger::restore::combine::Removal;
use archive_model::{AtticKind, NodeId, ReplicaId};
use archive_rpc::CallError;
use proto_archive::{convert as fields, wire};
use tonic::Streaming;

use super::{Replicas, describe};

/// The removals of a node, page by page.
#[derive(Debug)]
pub struct Removals {
    replica: ReplicaId,
    stream: Streaming<wire::AtticResponse>,
}

/// One page of removals.
#[derive(Debug)]
pub struct Page {
    /// The removals, or the error of an item that may be one.
    pub found: Vec<Result<Removal, String>>,
    /// In the last page: the parts that could not be read.
    pub end: Option<Vec<String>>,
}

impl Replicas {
    /// Asks a node for the copies that people had removed from it.
    pub async fn removals(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
    ) -> Result<Removals, CallError> {
        Ok(Removals {
            replica: replica.clone(),
            stream: self.attic(replica, node, "").await?,
        })
    }
}

impl Removals {
    /// Returns the next page, or `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Page>, CallError> {
        let Some(message) = self.stream.message().await? else {
            return Ok(None);
        };
        let items = message.items.into_iter();
        let found = items.filter_map(|item| read(&self.replica, item)).collect();
        let end = message
            .end
            .map(|end| end.gaps.iter().map(describe).collect());
        Ok(Some(Page { found, end }))
    }
}

/// Reads an item. Returns `None` if two persons have not had it removed. An item without a name is an error: it may be
/// anything.
fn read(replica: &ReplicaId, item: wire::AtticItem) -> Option<Result<Removal, String>> {
    if item.name.is_empty() {
        let (id, why) = (&item.id, &item.why);
        return Some(Err(format!("cannot read attic item {id}: {why}")));
    }
    let is_whole = match fields::attic_kind("kind", item.kind) {
        Ok(AtticKind::File | AtticKind::Row) => true,
        Ok(AtticKind::Groups | AtticKind::Leftover) => false,
        Err(error) => return Some(Err(error.to_string())),
    };
    let approval = match fields::approval(item.approval) {
        Ok(approval) => approval?,
        Err(error) => return Some(Err(error.to_string())),
    };
    is_whole.then(|| {
        let name = fields::file_name("name", &item.name).map_err(|error| error.to_string())?;
        let node = fields::node_id(&item.node).map_err(|error| error.to_string())?;
        let volume = fields::volume_id(&item.volume).map_err(|error| error.to_string())?;
        let at = fields::time("at", &item.at).map_err(|error| error.to_string())?;
        Ok(Removal {
            replica: replica.clone(),
            node,
            volume,
            name,
            at,
            approval,
            why: item.why,
            admission: item.admission,
        })
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use wire::attic_item::Kind;

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
            volume: "v-1".to_owned(),
            name: name.to_owned(),
            kind: kind.into(),
            who: persons.join(", approved by "),
            why: "r1: law".to_owned(),
            at: Timestamp::UNIX_EPOCH.to_string(),
            ..wire::AtticItem::default()
        }
    }

    /// Fails if an item that one person replaced, or a crash left behind, counts as a removal, or one that cannot be read is
    /// skipped.
    #[test]
    fn only_two_persons_remove_and_errors_show() {
        let replica = ReplicaId::new("one").unwrap();
        let read = |item| read(&replica, item);
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
