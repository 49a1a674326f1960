//! The present state of every copy of a file: from the replicas, and from the anomalies.

use std::collections::BTreeMap;

use archive_decisions::repair::{ContentState, ReplicaContent};
use archive_ledger::anomalies::AnomalyRow;
use archive_model::{AnomalyKind, FileCopy, Groups, NodeId, ReplicaId, ReplicaKind};
use archive_replicas::LocatedCopies;
use archive_rpc::CallError;
use archive_stores::assemble::WantedFile;
use futures_util::future::join_all;

use crate::preserver::Preserver;

impl Preserver {
    /// Returns every replica's copy, and the node that has it, without the damaged copy: it was looked at already.
    pub(super) async fn known_anomalies(
        &self,
        wanted: &WantedFile,
        patient: &ReplicaId,
    ) -> Result<Vec<(ReplicaContent, Option<NodeId>)>, CallError> {
        let filed = self.filed_anomalies(&wanted.name).await?;
        let specs = self.archive.in_service().into_iter();
        let asking = specs.filter(|spec| spec.id != *patient).map(async |spec| {
            let located = match spec.kind {
                ReplicaKind::Checksum => None,
                ReplicaKind::Bitarchive => self
                    .archive
                    .calls
                    .locate_copies(&spec.id, &wanted.name)
                    .await
                    .ok(),
            };
            let of = filed.iter().filter(|row| row.replica == spec.id);
            let (state, node) = judge(wanted, located.as_ref(), of);
            let copy = ReplicaContent {
                replica: spec.id,
                kind: spec.kind,
                state,
            };
            (copy, node)
        });
        Ok(join_all(asking).await)
    }
}

/// Judges a replica's copy by its present listing and its anomalies. Pure.
fn judge<'a>(
    wanted: &WantedFile,
    located: Option<&LocatedCopies>,
    filed: impl Iterator<Item = &'a AnomalyRow>,
) -> (ContentState, Option<NodeId>) {
    let Some(located) = located else {
        return (ContentState::Unreachable, None);
    };
    let readable = located.copies.iter().filter(|copy| copy.is_readable());
    let mut by_root: BTreeMap<bool, Vec<&FileCopy>> = BTreeMap::new();
    for copy in readable {
        let is_right = copy.root == Some(wanted.root);
        by_root.entry(is_right).or_default().push(copy);
    }
    let right = by_root.remove(&true).unwrap_or_default();
    let best = right
        .iter()
        .min_by_key(|copy| copy.damaged_groups(wanted.size).len());
    let Some(best) = best else {
        let other = by_root.remove(&false).unwrap_or_default();
        let other = other.first().and_then(|copy| copy.root);
        return match (&located.silent, other) {
            (Some(_), _) => (ContentState::Unreachable, None),
            (None, Some(root)) => (ContentState::Other(root), None),
            (None, None) => (ContentState::Absent, None),
        };
    };
    // The anomalies of this copy were found by reading it; a rebuilt catalog does not know them.
    let mut damaged = best.damaged_groups(wanted.size);
    for row in filed {
        let is_here = row.filed.is_at(&best.place);
        if let (true, AnomalyKind::Corrupt(groups) | AnomalyKind::Unreadable(groups)) =
            (is_here, &row.filed.kind)
        {
            damaged = damaged.union(groups);
        }
    }
    let damaged = damaged.intersection(&Groups::all(wanted.size));
    let state = if damaged.is_empty() {
        ContentState::Intact
    } else {
        ContentState::Damaged(damaged)
    };
    (state, Some(best.place.node.clone()))
}

#[cfg(test)]
mod tests {
    use archive_ledger::anomalies::AnomalyRecord;
    use archive_model::{CopyCondition, CopyPlace, FileName, Finder, Root, VolumeId};
    use jiff::Timestamp;

    use super::*;

    fn copy(node: &str, root: u8, corrupt: Option<&[u64]>) -> FileCopy {
        FileCopy {
            name: FileName::new("a").unwrap(),
            place: CopyPlace {
                node: NodeId::new(node).unwrap(),
                volume: VolumeId::new("v").unwrap(),
            },
            size: 65536,
            root: Some(Root::from_bytes([root; 32])),
            stored: Timestamp::UNIX_EPOCH,
            verified: None,
            condition: corrupt.map_or(CopyCondition::Present, |of| CopyCondition::Damaged {
                corrupt: of.iter().copied().collect(),
                unreadable: Groups::none(),
            }),
        }
    }

    fn filed(node: &str, kind: AnomalyKind) -> AnomalyRow {
        AnomalyRow {
            file: FileName::new("a").unwrap(),
            replica: ReplicaId::new("two").unwrap(),
            filed: AnomalyRecord {
                id: 1,
                kind,
                size: 65536,
                node: Some(NodeId::new(node).unwrap()),
                volume: None,
                since: Timestamp::UNIX_EPOCH,
                seen: Timestamp::UNIX_EPOCH,
                confirmed: None,
                found_by: Finder::Scrub,
                accepted: None,
                note: None,
                is_first: true,
            },
            closed: None,
        }
    }

    /// Fails if silence is taken for absence, a filed finding is forgotten because the catalog forgot it, a worse copy
    /// is chosen, or damage without groups is taken for an intact donor.
    #[test]
    fn silence_is_unknown_and_what_was_found_counts() {
        let wanted = WantedFile {
            name: FileName::new("a").unwrap(),
            root: Root::from_bytes([1; 32]),
            size: 65536,
        };
        let told = |copies: Vec<FileCopy>, is_silent: bool| {
            Some(LocatedCopies {
                copies,
                silent: is_silent.then(String::new),
                gaps: vec![],
            })
        };
        let corrupt = filed("n", AnomalyKind::Corrupt(Groups::from_iter([3])));
        let elsewhere = filed("m", AnomalyKind::Corrupt(Groups::from_iter([3])));
        let other = ContentState::Other(Root::from_bytes([2; 32]));
        for (located, row, expected) in [
            (None, None, ContentState::Unreachable),
            (told(vec![], true), None, ContentState::Unreachable),
            (told(vec![], false), None, ContentState::Absent),
            (told(vec![copy("n", 2, None)], false), None, other),
            (
                told(vec![copy("n", 2, None)], true),
                None,
                ContentState::Unreachable,
            ),
            (
                told(vec![copy("n", 1, None)], true),
                None,
                ContentState::Intact,
            ),
            (
                told(vec![copy("n", 1, None)], false),
                Some(&corrupt),
                ContentState::Damaged(Groups::from_iter([3])),
            ),
            (
                told(vec![copy("n", 1, None)], false),
                Some(&elsewhere),
                ContentState::Intact,
            ),
            (
                told(
                    vec![copy("n", 1, Some(&[0, 1])), copy("m", 1, Some(&[2]))],
                    false,
                ),
                None,
                ContentState::Damaged(Groups::from_iter([2])),
            ),
            (
                told(vec![copy("n", 1, Some(&[]))], false),
                None,
                ContentState::Damaged(Groups::all(65536)),
            ),
        ] {
            let (state, _) = judge(&wanted, located.as_ref(), row.into_iter());
            assert_eq!(state, expected, "{located:?} {row:?}");
        }
    }
}
