//! The tables over restarts: nothing filed is lost, no id given twice.

use archive_daemon::clock::ManualClock;
use archive_model::AnomalyKind;

use super::*;
use crate::anomalies::{Eye, Finder};

const HOUR: std::time::Duration = std::time::Duration::from_hours(1);

fn look(found: Vec<AnomalyKind>, eye: Eye) -> Look {
    Look {
        found,
        eye,
        by: Finder::Scrub,
        is_second: false,
        size: 65536,
        place: None,
    }
}

/// Kills: ids that are given twice after a restart, counts that drift, a brake that forgets what was repaired.
#[test]
fn what_is_filed_counted_and_closed_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let hand = ManualClock::new(Timestamp::from_second(1_000_000_000).unwrap());
    let admin = Admin::open(directory.path()).unwrap();
    let table = Anomalies::open(&admin, hand.clock()).unwrap();
    let (file, other) = (FileName::new("a").unwrap(), FileName::new("b").unwrap());
    let (one, two) = (
        ReplicaId::new("one").unwrap(),
        ReplicaId::new("two").unwrap(),
    );
    let at = |file| Filing {
        file,
        replica: &one,
        who: "node/one-1",
    };
    let damage = AnomalyKind::Corrupt(Groups::all(1));
    let unreadable = AnomalyKind::Unreadable(Groups::all(1));
    let both = look(vec![damage.clone(), unreadable], Eye::Bytes);
    let found = table.look(at(&file), &both).unwrap();
    assert_eq!((found.new, found.closed, found.open.len()), (2, 0, 2));
    table
        .look(at(&other), &look(vec![AnomalyKind::Missing], Eye::Listing))
        .unwrap();
    assert_eq!(table.found_today(&one), 2, "files, not anomalies");
    assert_eq!(table.found_today(&two), 0);
    let found = table
        .look(at(&file), &look(vec![damage], Eye::Bytes))
        .unwrap();
    assert_eq!((found.new, found.closed), (0, 1));
    let kinds = BTreeMap::from([("corrupt", 1), ("missing", 1), ("unreadable", 0)]);
    assert_eq!(table.kinds(), kinds);
    let row = table.by_id(1).unwrap().unwrap();
    assert!(table.accept(&row, "old paper", "custodian/c").unwrap());
    assert_eq!(table.kinds()["corrupt"], 0, "accepted");
    drop(table);

    let table = Anomalies::open(&admin, hand.clock()).unwrap();
    assert_eq!(table.kinds(), BTreeMap::from([("missing", 1)]));
    assert_eq!(table.found_today(&one), 2);
    table.look(at(&file), &look(vec![], Eye::Bytes)).unwrap();
    let found = table.look(
        at(&file),
        &look(vec![AnomalyKind::Unexpected], Eye::Nothing),
    );
    assert_eq!(
        found.unwrap().open[0].filed.id,
        4,
        "ids are never given again"
    );
    let closed: Vec<_> = table
        .closed()
        .unwrap()
        .map(|row| row.unwrap().filed.id)
        .collect();
    assert_eq!(closed, [1, 2]);
    hand.advance(25 * HOUR);
    assert_eq!(table.found_today(&one), 0, "a day later");
    let trail: Vec<_> = admin
        .audit_rows(0)
        .unwrap()
        .map(|row| row.unwrap().1.what)
        .collect();
    assert_eq!(trail.len(), 4 + 2 + 1, "filed, closed, accepted: {trail:?}");
}

#[test]
fn a_loss_that_is_found_again_is_closed_in_every_replica() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::open(directory.path()).unwrap();
    let table = Anomalies::open(&admin, Clock::system()).unwrap();
    let file = FileName::new("a").unwrap();
    for id in ["one", "two"] {
        let replica = ReplicaId::new(id).unwrap();
        let filing = Filing {
            file: &file,
            replica: &replica,
            who: "x/y",
        };
        let lost = look(vec![AnomalyKind::Lost(vec![(0, 16384)])], Eye::Nothing);
        table.look(filing, &lost).unwrap();
    }
    table
        .found_again(&file, &Groups::all(65536), "x/y")
        .unwrap();
    assert_eq!(table.rows_of(&file).unwrap(), []);
    assert_eq!(table.closed().unwrap().count(), 2);
}
