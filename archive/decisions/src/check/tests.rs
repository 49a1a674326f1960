//! Tests checks of whole, silent, cut and lying listings.

mod worlds;

use std::collections::BTreeMap;

use archive_model::{AnomalyClass, CopyCondition, Groups, NodeId, SilentPart, VolumeId};
use jiff::Timestamp;

use super::*;

fn node(text: &str) -> NodeId {
    NodeId::new(text).unwrap()
}

fn place(text: &str) -> CopyPlace {
    CopyPlace {
        node: node(text),
        volume: VolumeId::new("v").unwrap(),
    }
}

fn root(byte: u8) -> Root {
    Root::from_bytes([byte; 32])
}

fn name(text: &str) -> FileName {
    FileName::new(text).unwrap()
}

fn entry(file: &str, byte: u8, at: &str) -> FileCopy {
    FileCopy {
        name: name(file),
        size: 10,
        root: Some(root(byte)),
        place: place(at),
        condition: CopyCondition::Present,
        stored: Timestamp::UNIX_EPOCH,
        verified: None,
    }
}

fn listed(file: &str, byte: u8, at: &str) -> ListingItem {
    ListingItem::Entry(entry(file, byte, at))
}

fn present(at: Option<&str>) -> ExpectedCopy {
    ExpectedCopy::Present {
        root: root(1),
        size: 10,
        place: at.map(place),
    }
}

type Source<T> = Vec<Result<T, String>>;

fn run(admin: Source<AdminEntry>, listing: Source<ListingItem>) -> (Vec<Finding>, CheckReport) {
    let mut check = ReplicaCheck::new(admin.into_iter(), listing.into_iter());
    let findings = check.by_ref().collect();
    (findings, check.report().clone())
}

fn admin(entries: &[(&str, ExpectedCopy)]) -> Source<AdminEntry> {
    let entry = |(file, expected): &(&str, ExpectedCopy)| {
        Ok(AdminEntry {
            name: name(file),
            expected: expected.clone(),
        })
    };
    entries.iter().map(entry).collect()
}

fn anomaly(file: &str, kind: AnomalyKind) -> Finding {
    Finding::Anomaly {
        file: name(file),
        kind,
    }
}

fn unverified(file: &str, at: &str, volume: bool) -> Finding {
    anomaly(
        file,
        AnomalyKind::Unverified {
            node: node(at),
            volume: volume.then(|| place(at).volume),
        },
    )
}

fn silent(at: &str) -> ListingItem {
    ListingItem::Silent(SilentPart {
        node: node(at),
        volume: None,
    })
}

/// Fails if a file of a silent node or of a cut listing is called missing, or unverified at a place that answered.
#[test]
fn the_silent_one_is_named() {
    let entries = admin(&[
        ("a", present(Some("one"))),
        ("b", present(Some("two"))),
        ("c", present(None)),
    ]);
    let volume = ListingItem::Silent(SilentPart {
        node: node("two"),
        volume: Some(place("two").volume),
    });
    let (findings, report) = run(
        entries.clone(),
        vec![Ok(silent("four")), Ok(volume), Ok(ListingItem::End)],
    );
    assert_eq!(
        findings,
        [
            unverified("a", "four", false),
            unverified("b", "two", true),
            unverified("c", "four", false)
        ]
    );
    assert_eq!(report.silent_parts().count(), 2);

    let (findings, report) = run(entries, vec![Err("connection reset".to_owned())]);
    assert_eq!(
        findings,
        [unverified("a", "one", true), unverified("b", "two", true)],
        "where each should be"
    );
    assert_eq!(
        (report.unplaced, report.cuts[0].reason.as_str()),
        (1, "connection reset")
    );
}

/// Fails if a listing that repeats itself, is out of order or continues behind its end is believed, or may grow without
/// a limit.
#[test]
fn listing_is_disbelieved_from_its_first_lie() {
    let entries = || {
        admin(&[
            ("a", present(Some("one"))),
            ("b", present(Some("one"))),
            ("c", present(Some("one"))),
        ])
    };
    let mut many = (0..300)
        .map(|i| Ok(listed("b", 1, &format!("n{i:03}"))))
        .collect::<Vec<_>>();
    many.insert(0, Ok(listed("a", 1, "one")));
    let crowd = (0..70_000)
        .map(|i| Ok(silent(&format!("n{i}"))))
        .collect::<Vec<_>>();
    for (lie, reason) in [
        (
            vec![
                Ok(listed("a", 1, "one")),
                Ok(listed("a", 1, "one")),
                Ok(ListingItem::End),
            ],
            "out of order",
        ),
        (
            vec![
                Ok(listed("b", 1, "one")),
                Ok(listed("a", 1, "one")),
                Ok(ListingItem::End),
            ],
            "out of order",
        ),
        (
            vec![Ok(ListingItem::End), Ok(listed("a", 1, "one"))],
            "after its end",
        ),
        (many, "copies"),
        (crowd, "silent"),
    ] {
        let (findings, report) = run(entries(), lie);
        assert!(report.cuts[0].reason.contains(reason), "{report:?}");
        assert!(!report.is_complete());
        let last = findings.last().unwrap();
        assert!(
            matches!(
                last,
                Finding::Anomaly {
                    kind: AnomalyKind::Unverified { .. },
                    ..
                }
            ),
            "{reason}: {last:?}"
        );
    }
}

/// Fails if a file is judged after the admin data were out of order or could not be read.
#[test]
fn nothing_is_judged_after_broken_admin_data() {
    let listing = || {
        vec![
            Ok(listed("a", 1, "one")),
            Ok(listed("b", 1, "one")),
            Ok(listed("c", 1, "one")),
            Ok(ListingItem::End),
        ]
    };
    let first = || admin(&[("b", present(Some("one")))]);
    let again = [first(), admin(&[("a", present(Some("one")))])].concat();
    let failed = [vec![Err("io".to_owned())], first()].concat();
    // Before it is out of order, the admin side has only `b`: what comes before that is not expected.
    let of_first = vec![anomaly("a", AnomalyKind::Unexpected)];
    for (broken, judged, intact) in [(again, of_first, 1), (failed, Vec::new(), 0)] {
        let (findings, report) = run(broken, listing());
        assert_eq!((findings, report.intact), (judged, intact));
        assert!(!report.is_complete());
        assert_eq!(report.cuts[0].side, CheckSide::Admin);
    }
}

/// Fails if a row with the wrong size passes for intact or for damage, or a damaged copy passes for intact.
#[test]
fn contradictory_row_and_damaged_one_are_not_intact() {
    let groups = Groups::from_iter([0]);
    let row = |size, condition| {
        ListingItem::Entry(FileCopy {
            size,
            condition,
            ..entry("a", 1, "one")
        })
    };
    let entries = || admin(&[("a", present(Some("one")))]);
    let (findings, report) = run(
        entries(),
        vec![Ok(row(11, CopyCondition::Present)), Ok(ListingItem::End)],
    );
    assert_eq!(
        (findings, report.intact),
        (vec![unverified("a", "one", true)], 0)
    );
    let damaged = CopyCondition::Damaged {
        corrupt: groups.clone(),
        unreadable: Groups::none(),
    };
    let (findings, report) = run(entries(), vec![Ok(row(10, damaged)), Ok(ListingItem::End)]);
    assert_eq!(findings, [anomaly("a", AnomalyKind::Corrupt(groups))]);
    assert_eq!(
        report.anomalies,
        BTreeMap::from([(AnomalyClass::Corrupt, 1)])
    );
}

/// Fails if either side is collected. Ten million names would be gigabytes; here each is dropped before the next is
/// made.
#[test]
fn memory_does_not_grow_with_the_streams() {
    use std::cell::Cell;
    let alive = Cell::new(0_i64);
    let most = Cell::new(0_i64);
    let file = |i: u32| name(&format!("{i:08}"));
    let admin = (0..100_000).map(|i| {
        alive.set(alive.get() + 1);
        most.set(most.get().max(alive.get()));
        Ok::<_, String>(AdminEntry {
            name: file(i),
            expected: present(Some("one")),
        })
    });
    let listing = (0..100_000).map(|i| {
        Ok::<_, String>(ListingItem::Entry(FileCopy {
            name: file(i),
            ..entry("a", 1, "one")
        }))
    });
    let mut check = ReplicaCheck::new(
        admin,
        listing
            .inspect(|_| alive.set(alive.get() - 1))
            .chain([Ok(ListingItem::End)]),
    );
    assert_eq!(check.next(), None);
    assert!(check.report().is_complete() && check.report().intact == 100_000);
    assert!(most.get() <= 2, "read ahead by {}", most.get());
}
