//! Judges one look at one name. Pure: the comparison of a check, for a single name.

use archive_decisions::check::{AdminEntry, ExpectedCopy, Finding, ListingItem, ReplicaCheck};
use archive_decisions::store::{FileRecord, NamePhase};
use archive_model::{AnomalyKind, CopyPlace, FileCopy, ReplicaId};
use archive_replicas::LocatedCopies;

/// Returns the expected entry of a file in a replica, or `None` while the file is stored for the first time.
pub(crate) fn expected_entry(record: &FileRecord, replica: &ReplicaId) -> Option<AdminEntry> {
    use archive_model::ReplicaState as State;
    let content = record.content.as_ref()?;
    if !record.phase.is_bound() {
        return None;
    }
    let present = |place| ExpectedCopy::Present {
        root: content.root,
        size: content.size,
        place,
    };
    let expected = match record.replicas.get(replica) {
        // A replica that was added later has no earlier files, until it is filled.
        None => return None,
        Some(copy) => match &copy.state {
            State::UploadCompleted => present(copy.copy_place()),
            State::UploadFailed(_) if record.phase == NamePhase::Incomplete => {
                ExpectedCopy::Incomplete {
                    root: content.root,
                    size: content.size,
                }
            }
            State::UploadFailed(_) => present(None),
            State::Withdrawn(_) => ExpectedCopy::Withdrawn,
            State::UploadStarted | State::DataUploaded => ExpectedCopy::InFlight {
                root: Some(content.root),
            },
        },
    };
    Some(AdminEntry {
        name: record.name.clone(),
        expected,
    })
}

/// Returns whether a check compares a copy: it can be read, and has a root.
pub(crate) fn is_compared(copy: &FileCopy) -> bool {
    copy.is_readable() && copy.root.is_some()
}

/// Returns the damage of the bytes of a copy.
pub(super) fn damage_kinds(copy: &FileCopy, size: u64) -> Vec<AnomalyKind> {
    let (corrupt, unreadable) = copy.damage_by_kind(size);
    let corrupt = (!corrupt.is_empty()).then_some(AnomalyKind::Corrupt(corrupt));
    let unreadable = (!unreadable.is_empty()).then_some(AnomalyKind::Unreadable(unreadable));
    corrupt.into_iter().chain(unreadable).collect()
}

pub(super) fn silent_copies(why: &str) -> LocatedCopies {
    LocatedCopies {
        copies: Vec::new(),
        silent: Some(why.to_owned()),
        gaps: Vec::new(),
    }
}

/// Returns the findings of a check of this one name.
pub(super) fn compare_copies(
    entry: Option<AdminEntry>,
    located: &LocatedCopies,
) -> (Vec<AnomalyKind>, Option<CopyPlace>) {
    let copies = located.copies.iter().filter(|copy| is_compared(copy));
    let mut entries: Vec<FileCopy> = copies.cloned().collect();
    entries.sort_unstable_by(|a, b| a.place.cmp(&b.place));
    entries.dedup_by(|a, b| a.place == b.place);
    let silent = located.gaps.iter().cloned().map(ListingItem::Silent);
    let is_unnamed = located.silent.is_some() && located.gaps.is_empty();
    let cut = is_unnamed.then_some(Err("a part could not be asked"));
    // First: a silence counts from its place in the listing.
    let listing = silent
        .map(Ok)
        .chain(
            entries
                .into_iter()
                .map(|entry| Ok(ListingItem::Entry(entry))),
        )
        .chain(cut)
        .chain([Ok(ListingItem::End)]);
    let admin = entry.into_iter().map(Ok::<_, &str>);
    let mut found = Vec::<AnomalyKind>::new();
    let mut moved = None;
    for finding in ReplicaCheck::new(admin, listing) {
        match finding {
            Finding::Anomaly { kind, .. } => found.push(kind),
            Finding::Moved { place, .. } => moved = Some(place),
        }
    }
    if located.copies.iter().any(FileCopy::is_unexpected) {
        // The replica has an unknown file with that name, which is therefore not missing.
        found.retain(|kind| !matches!(kind, AnomalyKind::Missing | AnomalyKind::Incomplete));
        if !found.contains(&AnomalyKind::Unexpected) {
            found.push(AnomalyKind::Unexpected);
        }
    }
    (once_each(found), moved)
}

/// Keeps one finding of each kind: several copies of a replica may be damaged in different ways.
fn once_each(found: Vec<AnomalyKind>) -> Vec<AnomalyKind> {
    let mut kinds: Vec<AnomalyKind> = Vec::new();
    for kind in found {
        match kinds.iter_mut().find(|known| known.class() == kind.class()) {
            None => kinds.push(kind),
            Some(AnomalyKind::Corrupt(known)) => {
                if let AnomalyKind::Corrupt(groups) = &kind {
                    *known = known.union(groups);
                }
            }
            Some(AnomalyKind::Unreadable(known)) => {
                if let AnomalyKind::Unreadable(groups) = &kind {
                    *known = known.union(groups);
                }
            }
            Some(_) => {}
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use archive_model::{CopyCondition, FileName, Groups, NodeId, Root, SilentPart, VolumeId};
    use jiff::Timestamp;

    use super::*;

    fn name() -> FileName {
        FileName::new("a").unwrap()
    }

    fn node(id: &str) -> NodeId {
        NodeId::new(id).unwrap()
    }

    fn volume() -> VolumeId {
        VolumeId::new("v").unwrap()
    }

    fn entry(at: Option<&str>) -> AdminEntry {
        let place = at.map(|id| CopyPlace {
            node: node(id),
            volume: volume(),
        });
        AdminEntry {
            name: name(),
            expected: ExpectedCopy::Present {
                root: Root::from_bytes([1; 32]),
                size: 65536,
                place,
            },
        }
    }

    fn copy(at: &str, root: u8, condition: CopyCondition) -> FileCopy {
        FileCopy {
            name: name(),
            place: CopyPlace {
                node: node(at),
                volume: volume(),
            },
            size: 65536,
            root: Some(Root::from_bytes([root; 32])),
            stored: Timestamp::UNIX_EPOCH,
            verified: None,
            condition,
        }
    }

    fn damaged(corrupt: Groups, unreadable: Groups) -> CopyCondition {
        CopyCondition::Damaged {
            corrupt,
            unreadable,
        }
    }

    /// Fails if a copy that was never stored is expected, or one that failed after the store was acknowledged is not.
    #[test]
    fn failed_copy_of_incomplete_store_is_incomplete() {
        use archive_decisions::store::{Content, ReplicaRecord};
        use archive_model::{Digests, ReplicaKind, ReplicaState, StoreFailure};

        let one = ReplicaId::new("one").unwrap();
        let copy = ReplicaRecord {
            state: ReplicaState::UploadFailed(StoreFailure::NoSpace),
            ..ReplicaRecord::started_record(ReplicaKind::Bitarchive, true, Timestamp::UNIX_EPOCH)
        };
        let content = Content {
            root: Root::from_bytes([1; 32]),
            size: 65536,
            digests: Digests::default(),
        };
        for (phase, expected_kind) in [
            (NamePhase::Incomplete, AnomalyKind::Incomplete),
            (NamePhase::Bound, AnomalyKind::Missing),
        ] {
            let record = FileRecord {
                name: name(),
                phase,
                upload: None,
                content: Some(content.clone()),
                replicas: [(one.clone(), copy.clone())].into(),
            };
            let nowhere = LocatedCopies {
                copies: Vec::new(),
                silent: None,
                gaps: Vec::new(),
            };
            let (found, _) = compare_copies(expected_entry(&record, &one), &nowhere);
            assert_eq!(found, [expected_kind]);
        }
    }

    /// Tests every answer of a replica about one name, with and without silence of its node, of another, of an unnamed
    /// part.
    ///
    /// Fails if silence makes a file missing, an offline volume's memory is taken for a copy, damage without groups is
    /// taken for good, or a file without a sidecar is taken for missing.
    #[test]
    fn every_answer_about_one_name_is_judged() {
        let present = copy("n", 1, CopyCondition::Present);
        let unlocated = copy("n", 1, damaged(Groups::none(), Groups::none()));
        let located = copy(
            "n",
            1,
            damaged(Groups::from_iter([1]), Groups::from_iter([2])),
        );
        let other = copy("n", 2, CopyCondition::Present);
        let gone = copy("n", 1, CopyCondition::Missing);
        let unknown = copy("n", 1, CopyCondition::Unexpected);
        let unverified = |at: &str| AnomalyKind::Unverified {
            node: node(at),
            volume: None,
        };
        let damage = |corrupt, unreadable| {
            vec![
                AnomalyKind::Corrupt(corrupt),
                AnomalyKind::Unreadable(unreadable),
            ]
        };
        for (copies, complete, own_silent) in [
            (vec![], vec![AnomalyKind::Missing], vec![unverified("n")]),
            (
                vec![gone],
                vec![AnomalyKind::Missing],
                vec![unverified("n")],
            ),
            (vec![present.clone()], vec![], vec![]),
            (
                vec![unlocated],
                vec![AnomalyKind::Corrupt(Groups::all(65536))],
                vec![AnomalyKind::Corrupt(Groups::all(65536))],
            ),
            (
                vec![located],
                damage(Groups::from_iter([1]), Groups::from_iter([2])),
                damage(Groups::from_iter([1]), Groups::from_iter([2])),
            ),
            (
                vec![other],
                vec![AnomalyKind::Conflicting(Root::from_bytes([2; 32]))],
                vec![AnomalyKind::Conflicting(Root::from_bytes([2; 32]))],
            ),
            (
                vec![unknown.clone()],
                vec![AnomalyKind::Unexpected],
                vec![unverified("n"), AnomalyKind::Unexpected],
            ),
        ] {
            let told = |gaps: Vec<SilentPart>, silent: bool| LocatedCopies {
                copies: copies.clone(),
                silent: silent.then(|| "somebody".to_owned()),
                gaps,
            };
            let found = |located| compare_copies(Some(entry(Some("n"))), &located).0;
            assert_eq!(found(told(vec![], false)), complete, "{copies:?}");
            let own = SilentPart {
                node: node("n"),
                volume: None,
            };
            assert_eq!(found(told(vec![own], true)), own_silent);
            let unnamed = found(told(vec![], true));
            assert!(!unnamed.contains(&AnomalyKind::Missing), "{unnamed:?}");
        }
        let nowhere = LocatedCopies {
            copies: vec![unknown],
            silent: None,
            gaps: vec![],
        };
        assert_eq!(compare_copies(None, &nowhere).0, [AnomalyKind::Unexpected]);
        let elsewhere = LocatedCopies {
            copies: vec![present],
            ..nowhere
        };
        let (found, moved) = compare_copies(Some(entry(Some("m"))), &elsewhere);
        assert_eq!((found, moved.unwrap().node), (vec![], node("n")));
    }
}
