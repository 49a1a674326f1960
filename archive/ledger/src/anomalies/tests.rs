//! Every small filing, under every small look.

use archive_model::{NodeId, Root};

use super::*;

fn at(minutes: i64) -> Timestamp {
    Timestamp::from_second(1_000_000_000 + 60 * minutes).unwrap()
}

fn kinds() -> Vec<AnomalyKind> {
    let node = |name: &str| NodeId::new(name).unwrap();
    vec![
        AnomalyKind::Missing,
        AnomalyKind::Corrupt(Groups::from_iter([0])),
        AnomalyKind::Corrupt(Groups::from_iter([0, 2])),
        AnomalyKind::Unreadable(Groups::from_iter([1])),
        AnomalyKind::Unexpected,
        AnomalyKind::Duplicate(vec![node("a"), node("b")]),
        AnomalyKind::Conflicting(Root::from_bytes([1; 32])),
        AnomalyKind::Conflicting(Root::from_bytes([2; 32])),
        AnomalyKind::Disputed(Root::from_bytes([1; 32])),
        AnomalyKind::Lost(vec![(0, 16384)]),
        AnomalyKind::Lost(vec![(0, 32768)]),
        AnomalyKind::Unverified {
            node: node("a"),
            volume: None,
        },
        AnomalyKind::Transient,
        AnomalyKind::Incomplete,
    ]
}

/// Returns all sets of at most two kinds of different classes.
fn sets() -> Vec<Vec<AnomalyKind>> {
    let all = kinds();
    let mut sets = vec![vec![]];
    for (index, one) in all.iter().enumerate() {
        sets.push(vec![one.clone()]);
        for two in all.iter().skip(index + 1) {
            if one.class() != two.class() {
                sets.push(vec![one.clone(), two.clone()]);
            }
        }
    }
    sets
}

const QUALITIES: [LookQuality; 5] = [
    LookQuality::Listing,
    LookQuality::Glimpse,
    LookQuality::Bytes,
    LookQuality::Absent,
    LookQuality::Nothing,
];

fn filed(id: u64, kind: &AnomalyKind, by: Finder, is_accepted: bool) -> AnomalyRecord {
    AnomalyRecord {
        id,
        kind: kind.clone(),
        size: 65536,
        node: None,
        volume: None,
        since: at(0),
        seen: at(0),
        confirmed: None,
        found_by: by,
        accepted: is_accepted.then(|| DatedReason {
            at: at(0),
            why: "so".to_owned(),
        }),
        note: None,
        is_first: false,
    }
}

/// Returns the anomalies that are filed after the changes, and those that were closed.
fn after(
    mut all: Vec<AnomalyRecord>,
    changes: &[AnomalyChange],
) -> (Vec<AnomalyRecord>, Vec<AnomalyRecord>) {
    let mut closed = Vec::new();
    for change in changes {
        match change {
            AnomalyChange::File(new) => all.push(new.clone()),
            AnomalyChange::Update(new) | AnomalyChange::Reopen(new) => {
                let old = all.iter_mut().find(|old| old.id == new.id).unwrap();
                *old = new.clone();
            }
            AnomalyChange::Close(old, why) => {
                assert!(!why.is_empty());
                let place = all.iter().position(|filed| filed.id == old.id).unwrap();
                closed.push(all.remove(place));
            }
        }
    }
    (all, closed)
}

/// Fails if something is closed at which nobody looked, a finding is not filed or filed twice, an id or a first time
/// changes, a person's finding becomes a machine's by itself, or accepted damage grows unseen.
#[test]
fn every_small_filing_under_every_small_look() {
    let mut tried = 0_u64;
    let finders = [Finder::Scrub, Finder::Check];
    for before in sets() {
        for accepted in [false, true] {
            for was_by in finders {
                let old: Vec<AnomalyRecord> = before
                    .iter()
                    .zip(5..)
                    .map(|(kind, id)| filed(id, kind, was_by, accepted))
                    .collect();
                for found in sets() {
                    for quality in QUALITIES {
                        for by in finders {
                            let look = Look {
                                found: found.clone(),
                                quality,
                                by,
                                is_second: by == Finder::Scrub,
                                size: 65536,
                                place: None,
                            };
                            hold(&old, &look);
                            tried += 1;
                        }
                    }
                }
            }
        }
    }
    println!("{tried} looks");
    assert!(tried > 100_000);
}

fn hold(old: &[AnomalyRecord], look: &Look) {
    let changes = compare_kinds(old, look, at(9), 100);
    let (open, closed) = after(old.to_vec(), &changes);
    let story = || format!("{old:#?}\n{look:#?}\n{changes:#?}");
    let words: Vec<_> = open.iter().map(|filed| filed.kind.class()).collect();
    let mut once = words.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), words.len(), "twice: {}", story());
    for kind in &look.found {
        let now = open.iter().find(|filed| filed.kind.class() == kind.class());
        let now = now.unwrap_or_else(|| panic!("not filed: {}", story()));
        let was = old.iter().find(|filed| filed.id == now.id);
        assert_eq!(now.seen, at(9), "{}", story());
        match was {
            None => {
                assert!(now.id >= 100 && now.since == at(9) && now.confirmed.is_none());
                assert_eq!(now.found_by, look.by);
            }
            Some(was) => {
                assert_eq!((now.id, now.since), (was.id, was.since));
                assert_eq!(
                    now.confirmed.is_some(),
                    look.is_second && now.accepted == was.accepted
                );
                let automatic = was.found_by.is_automatic() || look.by.is_automatic();
                assert_eq!(now.found_by.is_automatic(), automatic, "{}", story());
                let worse = is_worse(kind, &was.kind);
                assert_eq!(now.accepted.is_some(), was.accepted.is_some() && !worse);
            }
        }
        if now.accepted.is_none() {
            assert_eq!(&now.kind, kind, "{}", story());
        }
    }
    for was in old {
        let is_found = look
            .found
            .iter()
            .any(|kind| kind.class() == was.kind.class());
        let is_closed = closed.contains(was);
        assert_eq!(is_closed, !is_found && look.judges(was), "{}", story());
    }
    let firsts = open.iter().filter(|filed| filed.is_first).count();
    let needed = old.iter().any(|filed| needs_repair(&filed.kind));
    let needs = look.found.iter().any(needs_repair);
    assert_eq!(firsts, usize::from(needs && !needed), "{}", story());
}

/// Fails if a replica that does not answer closes an anomaly, or a catalog, which only remembers bytes, closes damage.
#[test]
fn silence_closes_nothing_and_catalog_no_damage() {
    for kind in kinds() {
        assert!(!LookQuality::Nothing.can_judge(&kind));
        let remembered = matches!(
            kind,
            AnomalyKind::Corrupt(_) | AnomalyKind::Unreadable(_) | AnomalyKind::Lost(_)
        );
        assert_eq!(LookQuality::Listing.can_judge(&kind), !remembered, "{kind}");
    }
    let lost = AnomalyKind::Lost(vec![(0, 1)]);
    assert!(
        !LookQuality::Bytes.can_judge(&lost),
        "one copy says nothing of the others"
    );
}

/// Fails if a group that was found again stays lost, one that was not found is taken off, or a loss with groups left is
/// closed. Tries every set of found groups against every loss of four groups.
#[test]
fn loss_shrinks_by_found_groups_until_closed() {
    const GROUP: u64 = 16384;
    for bits in 1..16_u64 {
        let lost: Vec<u64> = (0..4).filter(|bit| bits & (1 << bit) != 0).collect();
        let ranges: Groups = lost.iter().copied().collect();
        let ranges = ranges.byte_ranges(4 * GROUP).map(|r| (r.start, r.end));
        let row = filed(
            1,
            &AnomalyKind::Lost(ranges.collect()),
            Finder::Scrub,
            false,
        );
        for good in 0..16_u64 {
            let good: Vec<u64> = (0..4).filter(|bit| good & (1 << bit) != 0).collect();
            let left: Vec<u64> = lost.iter().copied().filter(|g| !good.contains(g)).collect();
            match found_again(&row, &good.iter().copied().collect()) {
                None => assert_eq!(left, lost),
                Some(AnomalyChange::Close(..)) => assert!(left.is_empty() && !lost.is_empty()),
                Some(AnomalyChange::Update(new)) => {
                    let AnomalyKind::Lost(ranges) = &new.kind else {
                        panic!("{new:?}")
                    };
                    let now = Groups::groups_touching(ranges.iter().map(|(a, b)| *a..*b));
                    assert_eq!(now, left.iter().copied().collect());
                    assert!(!left.is_empty() && left != lost);
                }
                Some(other) => panic!("{other:?}"),
            }
        }
    }
    let missing = filed(1, &AnomalyKind::Missing, Finder::Scrub, false);
    assert_eq!(
        found_again(&missing, &Groups::from_iter([0, 1, 2, 3])),
        None
    );
}

/// Returns a place on the volume `v` of a node.
fn place(node: &str) -> CopyPlace {
    CopyPlace {
        node: NodeId::new(node).unwrap(),
        volume: VolumeId::new("v").unwrap(),
    }
}

/// Fails if what a node has just stored is refused because the same copy was unexpected before, or if a copy in another
/// place of the replica is taken for it.
#[test]
fn stored_copy_closes_unexpected_only_in_its_place() {
    let unexpected = |at: Option<&str>| {
        let place = at.map(place);
        AnomalyRecord {
            node: place.as_ref().map(|place| place.node.clone()),
            volume: place.map(|place| place.volume),
            ..filed(1, &AnomalyKind::Unexpected, Finder::Scrub, false)
        }
    };
    for quality in [LookQuality::Glimpse, LookQuality::Bytes] {
        for (at, is_closed) in [(Some("n"), true), (None, true), (Some("m"), false)] {
            let look = Look {
                found: Vec::new(),
                quality,
                by: Finder::Check,
                is_second: false,
                size: 65536,
                place: Some(place("n")),
            };
            let changes = compare_kinds(&[unexpected(at)], &look, self::at(9), 100);
            assert_eq!(changes.len(), usize::from(is_closed), "{quality:?} {at:?}");
        }
    }
}

/// Fails if a file whose store was never complete counts for the brake.
#[test]
fn incomplete_store_needs_no_repair() {
    assert!(!needs_repair(&AnomalyKind::Incomplete));
    let found = vec![AnomalyKind::Incomplete];
    let look = Look {
        found,
        quality: LookQuality::Listing,
        by: Finder::ScheduledCheck,
        is_second: false,
        size: 65536,
        place: None,
    };
    let changes = compare_kinds(&[], &look, at(9), 1);
    assert!(matches!(&changes[..], [AnomalyChange::File(filed)] if !filed.is_first));
}

/// Fails if a good read of one copy closes the damage of another in the same replica, or if the second damaged copy
/// takes the place of the first.
#[test]
fn good_sibling_leaves_damage_of_other_copy_open() {
    let read = |node: &str, found: &[AnomalyKind]| Look {
        found: found.to_vec(),
        quality: LookQuality::Bytes,
        by: Finder::Scrub,
        is_second: false,
        size: 65536,
        place: Some(place(node)),
    };
    let one = AnomalyKind::Corrupt(Groups::from_iter([0]));
    let two = AnomalyKind::Corrupt(Groups::from_iter([2]));
    let mut open = Vec::new();
    for (node, found, expected) in [
        ("n", vec![one.clone()], vec![("n", &one)]),
        ("m", vec![], vec![("n", &one)]),
        ("m", vec![two.clone()], vec![("n", &one), ("m", &two)]),
        ("n", vec![], vec![("m", &two)]),
        ("m", vec![], vec![]),
    ] {
        let changes = compare_kinds(&open, &read(node, &found), at(9), 100);
        (open, _) = after(open, &changes);
        let filed: Vec<_> = open
            .iter()
            .map(|filed| (filed.node.as_ref().unwrap().as_str(), &filed.kind))
            .collect();
        assert_eq!(filed, expected, "after {node} {found:?}");
    }
}

/// Fails if damage of a copy that was removed stays open, or if anything else is closed with it.
#[test]
fn absent_copy_closes_its_own_damage_only() {
    let at_node = |kind: &AnomalyKind, node: &str| AnomalyRecord {
        node: Some(NodeId::new(node).unwrap()),
        volume: Some(VolumeId::new("v").unwrap()),
        ..filed(1, kind, Finder::Scrub, false)
    };
    let look = Look {
        found: Vec::new(),
        quality: LookQuality::Absent,
        by: Finder::Check,
        is_second: false,
        size: 65536,
        place: Some(place("n")),
    };
    for kind in kinds() {
        let is_damaged = matches!(kind, AnomalyKind::Corrupt(_) | AnomalyKind::Unreadable(_));
        let closes = |node| {
            let changes = compare_kinds(&[at_node(&kind, node)], &look, at(9), 100);
            matches!(&changes[..], [AnomalyChange::Close(..)])
        };
        assert_eq!(closes("n"), is_damaged, "{kind}");
        assert!(!closes("m"), "{kind} of another copy");
    }
}
