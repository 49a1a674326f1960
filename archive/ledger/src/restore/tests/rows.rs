//! The tables beside files and trail: they come back, and damage of a row is named.

use archive_daemon::clock::ManualClock;
use archive_model::{Act, AnomalyKind, CopyPlace, Finder, Groups, NodeSelector, VolumeKey};

use super::*;
use crate::anomalies::{Anomalies, Filing, Look, LookQuality};
use crate::export::{TableRow, Tables};
use crate::requests::Person;
use crate::requests::table::Requests;
use crate::standing::{DrainRow, DrainSource, ReplicaRow, Retirement, Standing};

fn person(grant: &str) -> Person {
    let (role, name) = grant.split_once('/').unwrap();
    Person::new(name, &[role.parse().unwrap()])
}

fn look(found: Vec<AnomalyKind>) -> Look {
    Look {
        found,
        quality: LookQuality::Bytes,
        by: Finder::Scrub,
        is_second: true,
        size: 1 << 20,
        place: Some(CopyPlace {
            node: "one-1".parse().unwrap(),
            volume: "volume-one".parse().unwrap(),
        }),
    }
}

/// Writes at least one row of every kind, through the tables that own them.
pub(super) fn furnish(admin: &Admin) {
    let clock = ManualClock::new(now()).clock();
    let anomalies = Anomalies::open(admin, clock).unwrap();
    let name = |text: &str| FileName::new(text).unwrap();
    let mut groups = Groups::none();
    groups.insert_range(3..5);
    let corrupt = AnomalyKind::Corrupt(groups.clone());
    for (file, found) in [
        (
            "file-1",
            vec![corrupt.clone(), AnomalyKind::Unreadable(groups)],
        ),
        ("file-2", vec![AnomalyKind::Missing]),
        ("file-0", vec![AnomalyKind::Lost(vec![(0, 16384)])]),
        ("file-1", vec![corrupt]),
    ] {
        let filing = Filing {
            file: &name(file),
            replica: &"one".parse().unwrap(),
            who: "repository/kb",
        };
        anomalies.file_look(filing, &look(found)).unwrap();
    }
    let requests = Requests::new(admin.clone()).unwrap();
    let remove = |file: &str| Act::Remove {
        name: name(file),
        replica: "one".parse().unwrap(),
        checksum: archive_model::Root::from_bytes([1; 32]),
        last_copies: false,
    };
    for file in ["file-0", "file-1", "file-2"] {
        requests
            .ask_request(remove(file).into(), "law", &person("custodian/anna"), now())
            .unwrap();
    }
    let approved = requests.approve_request("r2", &person("custodian/bert"), now());
    approved.unwrap();
    requests
        .withdraw_request("r3", &person("custodian/anna"), now())
        .unwrap();
    let standing = Standing::open(admin.clone()).unwrap();
    let retired = Retirement {
        at: now(),
        by: "operator/otto".to_owned(),
        why: "r9: burnt".to_owned(),
        emptied: false,
    };
    let filling = ReplicaRow::Filling {
        since: now(),
        by: "operator/otto".to_owned(),
    };
    let two = "two".parse().unwrap();
    standing.set_replica(&two, Some(&filling), None).unwrap();
    let volume = VolumeKey {
        replica: two,
        node: "two-1".parse().unwrap(),
        volume: "volume-two".parse().unwrap(),
    };
    standing.retire_volume(&volume, &retired, None).unwrap();
    for volume in [None, Some("volume-one".parse().unwrap())] {
        let source = DrainSource {
            replica: "one".parse().unwrap(),
            node: "one-1".parse().unwrap(),
            volume: volume.clone(),
        };
        let row = DrainRow {
            volume,
            since: now(),
            drained: None,
        };
        let line = restored_line("kb", now(), "drained".to_owned());
        standing.set_draining(&source, Some(&row), line).unwrap();
    }
}

fn rows(admin: &Admin) -> Vec<TableRow> {
    let tables = Tables::open(admin).unwrap();
    tables.read_tables().unwrap().map(Result::unwrap).collect()
}

fn kind(line: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    value.as_object().unwrap().keys().next().unwrap().clone()
}

/// Returns the lines, with an end that fits them.
fn sealed(lines: &[String]) -> Vec<u8> {
    let mut text: Vec<u8> = lines.concat().into_bytes();
    let last = lines.last().unwrap();
    let before = text.len() - last.len();
    let mut end: serde_json::Value = serde_json::from_str(last).unwrap();
    let hash = blake3::hash(&text[..before]).to_hex().to_string();
    end["end"]["blake3"] = hash.into();
    text.truncate(before);
    text.extend(serde_json::to_vec(&end).unwrap());
    text.push(b'\n');
    text
}

fn lines(export: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(export).unwrap();
    text.split_inclusive('\n').map(str::to_owned).collect()
}

/// Fails if a restore loses a table, an approved request is not done after it, or a number of a request is given a
/// second time.
#[test]
fn every_table_is_restored_and_writable() {
    let world = RestoreScene::new();
    let report = world.restore("back", &world.export, false).unwrap();
    assert!(report.written, "{report:?}");
    let old = Admin::init(&world.path("old")).unwrap();
    let admin = Admin::init(&world.path("back")).unwrap();
    let back = rows(&admin);
    assert_eq!((back.len() as u64, &back), (report.rows, &rows(&old)));
    assert_eq!(back.len(), 11, "{back:?}");

    let requests = Requests::new(admin.clone()).unwrap();
    assert_eq!(
        requests.due_requests().unwrap().len(),
        1,
        "what was approved is done"
    );
    let asked = requests.ask_request(
        Act::RetireNode {
            node: NodeSelector {
                replica: None,
                node: "one-1".parse().unwrap(),
            },
            last_copies: false,
        }
        .into(),
        "old",
        &person("operator/otto"),
        now(),
    );
    let minutes = now().as_second() / 60 + 1;
    assert_eq!(
        asked.unwrap().id(),
        format!("r{minutes}"),
        "no number is given twice, nor one that came after the export"
    );
    let anomalies = Anomalies::open(&admin, ManualClock::new(now()).clock()).unwrap();
    assert_eq!(anomalies.list_rows().unwrap().count(), 3);
    assert_eq!(anomalies.closed_after(None).unwrap().count(), 1);
    let standing = Standing::open(admin).unwrap().current_snapshot();
    assert!(standing.is_filling(&"two".parse().unwrap()));
    assert_eq!((standing.volumes.len(), standing.draining.len()), (1, 2));
}

/// Fails if a restored archive does not know its volumes: one that its node has forgotten would leave no gap.
#[test]
fn volumes_of_restored_copies_are_known() {
    let world = RestoreScene::new();
    let report = world.restore("back", &world.export, false).unwrap();
    assert!(report.written, "{report:?}");
    let volumes = |data: &str| {
        Admin::init(&world.path(data))
            .unwrap()
            .known_volumes()
            .unwrap()
    };
    let places = [
        ("one", "one-1", "volume-one"),
        ("two", "two-1", "volume-two"),
    ];
    let known = places.map(|(replica, node, volume)| VolumeKey {
        replica: replica.parse().unwrap(),
        node: node.parse().unwrap(),
        volume: volume.parse().unwrap(),
    });
    assert_eq!(
        (volumes("back"), volumes("old")),
        (known.clone().into(), known.into())
    );
}

/// Fails if a damaged row is passed over or takes others with it, or if an act is done because somebody wrote it into
/// an export.
#[test]
fn damaged_row_is_named_and_others_are_restored() {
    let world = RestoreScene::new();
    let all = lines(&world.export);
    let kinds = [
        "anomaly",
        "closed-anomaly",
        "request",
        "replica",
        "volume",
        "drain",
    ];
    for damaged in kinds {
        let at = all.iter().position(|line| kind(line) == damaged).unwrap();
        let mut forged = all.clone();
        forged[at] = forged[at].replacen(['1', '2', 'o'], "\u{1}", 1);
        let forged = forged.concat();
        let report = world.restore("no", forged.as_bytes(), false).unwrap();
        assert!(!report.written, "{damaged}");
        let first = &report.damaged.list[0];
        assert_eq!(first.about, format!("line {}", at + 1), "{report:?}");
        let into = format!("without-{damaged}");
        let report = world.restore(&into, forged.as_bytes(), true).unwrap();
        assert!(report.written && report.rows == 10, "{damaged}: {report:?}");
        let admin = Admin::init(&world.path(&into)).unwrap();
        assert_eq!(listing(&admin), world.rows);
        // Nothing vouches for r1 and r2 any more, which are not over.
        let pending = if damaged == "request" { 1 } else { 2 };
        assert_eq!(rows(&admin).len(), 10 - pending, "{damaged}");
        let requests = Requests::new(admin).unwrap();
        assert_eq!(requests.due_requests().unwrap(), []);
    }
    // A row that is there twice, or in another order, is refused even if the export is hashed anew.
    let first = all.iter().position(|line| kind(line) == "anomaly").unwrap();
    for change in 0..2 {
        let mut forged = all.clone();
        if change == 0 {
            forged.insert(first, all[first].clone());
        } else {
            forged.swap(first, first + 1);
        }
        let report = world.restore("no", &sealed(&forged), false).unwrap();
        assert!(!report.written);
        let said = &report.damaged.list[0].what;
        assert!(said.contains("out of order"), "{said}");
    }
    // A row that is absent is missed.
    let mut forged = all;
    forged.remove(first);
    let report = world.restore("no", &sealed(&forged), false).unwrap();
    assert!(report.damaged.list[0].what.contains("counts other lines"));
}
