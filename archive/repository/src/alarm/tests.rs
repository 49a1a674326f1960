//! Tests of incidents: every kind of anomaly, in every state; many at once; and their texts.

use archive_ledger::anomalies::{AnomalyRecord, DatedReason};
use archive_model::{Finder, Groups, NodeId, Root};

use super::*;

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(60 * minute).unwrap()
}

fn kinds() -> [AnomalyKind; 10] {
    let root = Root::from_bytes([1; 32]);
    [
        AnomalyKind::Missing,
        AnomalyKind::Corrupt(Groups::all(1)),
        AnomalyKind::Unreadable(Groups::all(1)),
        AnomalyKind::Lost(vec![(0, 1)]),
        AnomalyKind::Unexpected,
        AnomalyKind::Duplicate(vec![]),
        AnomalyKind::Conflicting(root),
        AnomalyKind::Disputed(root),
        AnomalyKind::Unverified {
            node: NodeId::new("n").unwrap(),
            volume: None,
        },
        AnomalyKind::Transient,
    ]
}

fn row(file: &str, replica: &str, kind: AnomalyKind, minute: i64) -> AnomalyRow {
    AnomalyRow {
        file: FileName::new(file).unwrap(),
        replica: ReplicaId::new(replica).unwrap(),
        filed: AnomalyRecord {
            id: 1,
            kind,
            size: 1,
            node: None,
            volume: None,
            since: at(minute),
            seen: at(minute),
            confirmed: None,
            found_by: Finder::Scrub,
            accepted: None,
            note: None,
            is_first: true,
        },
        closed: None,
    }
}

fn tallies(rows: impl IntoIterator<Item = AnomalyRow>) -> BTreeMap<String, Problem> {
    let mut tallies = Tallies::default();
    for row in rows {
        tallies.add(&row);
    }
    tallies.wrong()
}

/// Fails if, for any set of anomalies of one file, an incident of a kind of trouble lacks, or is there without an open
/// anomaly.
#[test]
fn every_set_of_kinds_in_every_state() {
    let ended = || DatedReason {
        at: at(0),
        why: String::new(),
    };
    for set in 0..1_usize << kinds().len() {
        for state in 0..3 {
            let rows = kinds().into_iter().enumerate();
            let rows = rows.filter(|(index, _)| set >> index & 1 == 1);
            let rows = rows.map(|(_, kind)| {
                let mut row = row("a", "one", kind, 0);
                row.filed.accepted = (state == 1).then(ended);
                row.closed = (state == 2).then(ended);
                row
            });
            let wrong = tallies(rows);
            let has = |trouble: &str| wrong.contains_key(&format!("anomalies/one/{trouble}"));
            let open = |bits: usize| state == 0 && set & bits != 0;
            assert_eq!(has("damaged"), open(0b00_0000_0111), "{set:b} {state}");
            assert_eq!(has("lost"), open(0b00_0000_1000), "{set:b} {state}");
            assert_eq!(has("unclear"), open(0b01_1111_0000), "{set:b} {state}");
            assert!(wrong.len() <= 3);
        }
    }
}

/// Fails if many anomalies are many incidents, or one incident lacks their counts or the first names.
#[test]
fn many_anomalies_are_one_incident_with_counts() {
    let mut rows = Vec::new();
    for number in 0..500 {
        let file = format!("{number:03}.warc.gz");
        rows.push(row(&file, "one", kinds()[1].clone(), 900 - number));
        if number % 2 == 0 {
            rows.push(row(&file, "one", kinds()[2].clone(), 900));
        }
        rows.push(row(&file, "two", AnomalyKind::Missing, 900));
    }
    let wrong = tallies(rows);
    assert_eq!(
        wrong.keys().collect::<Vec<_>>(),
        ["anomalies/one/damaged", "anomalies/two/damaged"]
    );
    let one = &wrong["anomalies/one/damaged"];
    assert_eq!(one.since, Some(at(401)));
    assert_eq!(
        one.text,
        "500 files of replica one must be repaired: 500 corrupt, 250 unreadable\n\
         000.warc.gz, 001.warc.gz, 002.warc.gz, 003.warc.gz, 004.warc.gz and 495 more\n\
         `holdfast anomalies` shows what is done about each"
    );
}

/// Fails if the text of a loss or a brake does not say what to do.
#[test]
fn loss_and_brake_name_the_next_step() {
    let wrong = tallies([row("a", "one", AnomalyKind::Lost(vec![(0, 9)]), 3)]);
    let text = &wrong["anomalies/one/lost"].text;
    assert!(
        text.starts_with("1 file of replica one") && text.contains("\na\n"),
        "{text}"
    );
    let replica = ReplicaId::new("one").unwrap();
    let hold = Hold::Brake {
        found: 21,
        brake: 20,
    };
    let wrong = held(&[(replica, hold)]);
    let text = &wrong["repair/one"].text;
    assert!(
        text.contains("21 files") && text.contains("`repair --all`"),
        "{text}"
    );
    assert!(held(&[]).is_empty());
}

/// Fails if files that lag are not reported with their number and time, or new files are.
#[test]
fn lagging_files_are_reported_with_number_and_time() {
    assert!(late(None, 7).is_empty(), "new files are on their way");
    let lag = LateFiles {
        files: 2,
        first: ["a", "b"].map(|name| FileName::new(name).unwrap()).to_vec(),
        since: at(5),
    };
    let wrong = late(Some(&lag), 9);
    let wrong = &wrong["files/below-required"];
    assert_eq!(wrong.since, Some(at(5)));
    let text = &wrong.text;
    assert!(
        text.starts_with("9 files are not in every required replica") && text.contains("\na, b\n"),
        "{text}"
    );
    // Both numbers are read one after the other: files that were completed in between must not make the text wrong.
    assert!(
        late(Some(&lag), 0)["files/below-required"]
            .text
            .starts_with("2 files are")
    );
}
