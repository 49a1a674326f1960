//! The tables over restarts: nothing filed is lost, no id given twice.

use archive_daemon::clock::ManualClock;
use jiff::{SignedDuration, Timestamp};
use tools_testing::Random;

use super::*;
use crate::anomalies::LookQuality;
use archive_model::{AnomalyClass, Finder};

const HOUR: std::time::Duration = std::time::Duration::from_hours(1);

fn look(found: Vec<AnomalyKind>, quality: LookQuality) -> Look {
    Look {
        found,
        quality,
        by: Finder::Scrub,
        is_second: false,
        size: 65536,
        place: None,
    }
}

/// Fails if an id is given twice after a restart, a count drifts, or the brake forgets what was repaired.
#[test]
fn anomalies_and_counts_survive_restart() {
    let directory = tempfile::tempdir().unwrap();
    let hand = ManualClock::new(Timestamp::from_second(1_000_000_000).unwrap());
    let admin = Admin::init(directory.path()).unwrap();
    let table = Anomalies::open(&admin, hand.clock()).unwrap();
    let file = FileName::new("a").unwrap();
    let other = FileName::new("b").unwrap();
    let one = ReplicaId::new("one").unwrap();
    let two = ReplicaId::new("two").unwrap();
    let at = |file| Filing {
        file,
        replica: &one,
        who: "node/one-1",
    };
    let damage = AnomalyKind::Corrupt(Groups::all(1));
    let unreadable = AnomalyKind::Unreadable(Groups::all(1));
    let both = look(vec![damage.clone(), unreadable], LookQuality::Bytes);
    let found = table.file_look(at(&file), &both).unwrap();
    assert_eq!((found.new, found.closed, found.open.len()), (2, 0, 2));
    table
        .file_look(
            at(&other),
            &look(vec![AnomalyKind::Missing], LookQuality::Listing),
        )
        .unwrap();
    assert_eq!(table.found_today(&one), 2, "files, not anomalies");
    assert_eq!(table.found_today(&two), 0);
    let found = table
        .file_look(at(&file), &look(vec![damage], LookQuality::Bytes))
        .unwrap();
    assert_eq!((found.new, found.closed), (0, 1));
    let kinds = BTreeMap::from([
        (AnomalyClass::Corrupt, 1),
        (AnomalyClass::Missing, 1),
        (AnomalyClass::Unreadable, 0),
    ]);
    assert_eq!(table.count_kinds(), kinds);
    let row = table.by_id(1).unwrap().unwrap();
    let because = ("old paper", "custodian/c");
    assert!(
        table
            .accept_anomaly(&row, &row.filed.kind, because)
            .unwrap()
    );
    assert_eq!(table.count_kinds()[&AnomalyClass::Corrupt], 0, "accepted");
    drop(table);

    let table = Anomalies::open(&admin, hand.clock()).unwrap();
    assert_eq!(
        table.count_kinds(),
        BTreeMap::from([(AnomalyClass::Missing, 1)])
    );
    assert_eq!(table.found_today(&one), 1, "one is lived with");
    table
        .file_look(at(&file), &look(vec![], LookQuality::Bytes))
        .unwrap();
    let found = table.file_look(
        at(&file),
        &look(vec![AnomalyKind::Unexpected], LookQuality::Nothing),
    );
    assert_eq!(
        found.unwrap().open[0].filed.id,
        4,
        "ids are never given again"
    );
    let closed: Vec<_> = table
        .closed_after(None)
        .unwrap()
        .map(|row| row.unwrap().filed.id)
        .collect();
    assert_eq!(closed, [1, 2]);
    assert_eq!(table.found_today(&one), 2, "one is open, one was closed");
    hand.advance(25 * HOUR);
    assert_eq!(table.found_today(&one), 1, "what is open is so a day later");
    drop(table);
    let table = Anomalies::open(&admin, hand.clock()).unwrap();
    assert_eq!(table.found_today(&one), 1, "and after a restart");
    hand.advance(24 * 400 * HOUR);
    assert_eq!(table.found_today(&one), 1, "and a year later");
    table
        .file_look(at(&other), &look(vec![], LookQuality::Listing))
        .unwrap();
    assert_eq!(table.found_today(&one), 1, "repaired today");
    hand.advance(25 * HOUR);
    assert_eq!(table.found_today(&one), 0, "all is over");
    let trail: Vec<_> = admin
        .audit_rows(0)
        .unwrap()
        .map(|row| row.unwrap().1.what)
        .collect();
    assert_eq!(trail.len(), 4 + 3 + 1, "filed, closed, accepted: {trail:?}");
}

/// Fails if a list of what is closed that continues behind one of them has a gap, or says something twice.
#[test]
fn closed_rows_continue_behind_any() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let table = Anomalies::open(&admin, Clock::system_clock()).unwrap();
    let one = ReplicaId::new("one").unwrap();
    for found in [vec![AnomalyKind::Missing], vec![]] {
        for name in ["a", "b", "c"] {
            let filing = Filing {
                file: &FileName::new(name).unwrap(),
                replica: &one,
                who: "x/y",
            };
            table
                .file_look(filing, &look(found.clone(), LookQuality::Listing))
                .unwrap();
        }
    }
    let rows = |last: Option<&AnomalyRow>| {
        let rows = table.closed_after(last).unwrap();
        rows.map(Result::unwrap).collect::<Vec<_>>()
    };
    let all = rows(None);
    assert_eq!(all.len(), 3, "{all:?}");
    for (number, row) in all.iter().enumerate() {
        assert_eq!(rows(Some(row)), all[number + 1..], "{number}");
    }
}

/// Fails if a loss whose bytes were found again is closed in one replica only, or vanishes without being kept among the
/// closed ones.
#[test]
fn found_loss_is_closed_in_every_replica() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let table = Anomalies::open(&admin, Clock::system_clock()).unwrap();
    let file = FileName::new("a").unwrap();
    for id in ["one", "two"] {
        let replica = ReplicaId::new(id).unwrap();
        let filing = Filing {
            file: &file,
            replica: &replica,
            who: "x/y",
        };
        let lost = look(
            vec![AnomalyKind::Lost(vec![(0, 16384)])],
            LookQuality::Nothing,
        );
        table.file_look(filing, &lost).unwrap();
    }
    table
        .found_again(&file, &Groups::all(65536), "x/y")
        .unwrap();
    assert_eq!(table.rows_of(&file).unwrap(), []);
    assert_eq!(table.closed_after(None).unwrap().count(), 2);
}

/// Every short sequence of looks, of persons who live with it, of restarts and days: the count is that of the rows.
///
/// Fails if a count drifts, counts anomalies instead of files, forgets what is old or what was repaired today, or is
/// changed by a restart.
#[test]
fn the_brake_counts_what_the_rows_say() {
    let directory = tempfile::tempdir().unwrap();
    let hand = ManualClock::new(Timestamp::from_second(1_000_000_000).unwrap());
    let admin = Admin::init(directory.path()).unwrap();
    let mut table = Anomalies::open(&admin, hand.clock()).unwrap();
    let one = ReplicaId::new("one").unwrap();
    let mut random = Random::new(7);
    let mut most = 0;
    let mut least = u64::MAX;
    for step in 0..600 {
        let file = FileName::new(&format!("f-{}", random.below(3))).unwrap();
        let at = Filing {
            file: &file,
            replica: &one,
            who: "node/one-1",
        };
        let kinds = [
            vec![],
            vec![AnomalyKind::Missing],
            vec![AnomalyKind::Corrupt(Groups::all(
                1 << (20 + random.below(3)),
            ))],
            vec![
                AnomalyKind::Corrupt(Groups::all(1)),
                AnomalyKind::Unreadable(Groups::all(1)),
            ],
            vec![AnomalyKind::Transient],
        ];
        let pick = random.index(8);
        match pick {
            5 => {
                for row in table.rows_of(&file).unwrap() {
                    let because = ("so be it", "custodian/c");
                    table
                        .accept_anomaly(&row, &row.filed.kind, because)
                        .unwrap();
                }
            }
            6 => {
                drop(table);
                table = Anomalies::open(&admin, hand.clock()).unwrap();
            }
            7 => hand.advance(7 * HOUR),
            kind => {
                for quality in [LookQuality::Listing, LookQuality::Bytes] {
                    table
                        .file_look(at, &look(kinds[kind].clone(), quality))
                        .unwrap();
                }
            }
        }
        let waiting: std::collections::BTreeSet<_> = table
            .list_rows()
            .unwrap()
            .map(Result::unwrap)
            .filter(|row| {
                super::super::needs_repair(&row.filed.kind) && row.filed.accepted.is_none()
            })
            .map(|row| row.file)
            .collect();
        let now = hand.clock().now();
        let ended = table
            .closed_after(None)
            .unwrap()
            .map(Result::unwrap)
            .filter(|row| {
                let at = row.closed.as_ref().unwrap().at;
                row.filed.is_first && now.duration_since(at) <= SignedDuration::from_hours(24)
            });
        let expected = waiting.len() + ended.count();
        let found = table.found_today(&one);
        assert_eq!(found, expected as u64, "step {step}");
        (most, least) = (most.max(found), least.min(found));
    }
    assert!(most > 5 && least < 3, "{least} to {most}");
}

/// Fails if a look is filed of a file whose record has changed since: a copy that was stored meanwhile would be refused
/// by what was lost before.
#[test]
fn look_of_changed_record_files_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let table = Anomalies::open(&admin, Clock::system_clock()).unwrap();
    let file = FileName::new("a").unwrap();
    let one = ReplicaId::new("one").unwrap();
    let filing = Filing {
        file: &file,
        replica: &one,
        who: "repository/kb",
    };
    let lost = look(vec![AnomalyKind::Lost(vec![(0, 1)])], LookQuality::Nothing);
    let filed = table.look_while(filing, &lost, |record, _| record.is_some());
    assert_eq!(filed.unwrap(), None);
    assert_eq!(table.rows_of(&file).unwrap(), []);
    let filed = table.look_while(filing, &lost, |record, _| record.is_none());
    assert_eq!(filed.unwrap().unwrap().new, 1);
}
