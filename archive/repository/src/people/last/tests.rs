//! Tests of the count: files in two replicas, each copy on one of two volumes or absent, damaged or not.

use archive_decisions::store::NamePhase;
use archive_model::{AnomalyKind, FileName, Finder, Groups, NodeId, ReplicaState, VolumeId};
use jiff::Timestamp;

use super::*;
use archive_ledger::anomalies::AnomalyRecord;

fn id(text: &str) -> ReplicaId {
    ReplicaId::new(text).unwrap()
}

/// Creates the record of a copy: with `how` 0 it is absent, with 1 on the first volume, with 2 on the second, with 3 on
/// the first and damaged.
fn copy(replica: &str, how: usize) -> ReplicaRecord {
    let volume = if how == 2 { "b" } else { "a" };
    let state = if how == 0 {
        ReplicaState::UploadStarted
    } else {
        ReplicaState::UploadCompleted
    };
    ReplicaRecord {
        state,
        node: Some(NodeId::new(&format!("{replica}-{volume}")).unwrap()),
        volume: Some(VolumeId::new(&format!("{replica}-{volume}")).unwrap()),
        ..ReplicaRecord::started_record(ReplicaKind::Bitarchive, true, Timestamp::UNIX_EPOCH)
    }
}

fn damage(file: &FileName, replica: &str) -> AnomalyRow {
    AnomalyRow {
        file: file.clone(),
        replica: id(replica),
        filed: AnomalyRecord {
            id: 1,
            kind: AnomalyKind::Corrupt(Groups::all(1)),
            size: 1,
            node: None,
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

/// Fails if a damaged copy counts as good, or one whose node does not answer for it, files count that are on a volume of the same id on another node, an anomaly
/// counts for another file, or one of a file that the admin data do not have.
#[test]
fn every_pair_of_copies_on_every_part() {
    let name = |one: usize, two: usize| FileName::new(&format!("f-{one}{two}")).unwrap();
    let mut files = Vec::new();
    let mut rows = Vec::new();
    rows.push(damage(&FileName::new("a-stranger").unwrap(), "one"));
    for one in 0..4 {
        for two in 0..4 {
            let name = name(one, two);
            rows.extend((one == 3).then(|| damage(&name, "one")));
            rows.extend((two == 3).then(|| damage(&name, "two")));
            rows.push(damage(&FileName::new(&format!("{name}-x")).unwrap(), "two"));
            let replicas = [(id("one"), copy("one", one)), (id("two"), copy("two", two))];
            files.push(AdminRow {
                record: FileRecord {
                    name,
                    phase: NamePhase::Bound,
                    upload: None,
                    content: None,
                    replicas: replicas.into(),
                },
                depositor: String::new(),
                admission: None,
            });
        }
    }
    let volume_of = |of: &str, node: &str, text: &str| {
        ServicePart::Volume(VolumeKey {
            replica: id(of),
            node: NodeId::new(node).unwrap(),
            volume: VolumeId::new(text).unwrap(),
        })
    };
    let volume = |of: &str, text: &str| volume_of(of, text, text);
    let node = |of: &str, text: &str| {
        let replica = id(of);
        let node = NodeId::new(text).unwrap();
        ServicePart::Node(NodeKey { replica, node })
    };
    // In "two", 0 and 3 are not good: then the copies in "one" are the only good ones, or damaged as well.
    let key = |text: &str| VolumeKey {
        replica: id(&text[..3]),
        node: NodeId::new(text).unwrap(),
        volume: VolumeId::new(text).unwrap(),
    };
    let all = ["one-a", "one-b", "two-a", "two-b"];
    let dead = &all[..2];
    for (part, answering, expected) in [
        (volume("one", "one-a"), &all[..], 2 * 2),
        (volume("one", "one-a"), dead, 2 * 4),
        (volume("one", "one-b"), &all, 2),
        (volume("two", "one-a"), &all, 0),
        (volume_of("one", "one-b", "one-a"), &all, 0),
        (node("one", "one-a"), &all, 2 * 2),
        (node("two", "one-a"), &all, 0),
        (volume("one", "nowhere"), &all, 0),
        (ServicePart::Replica(id("one")), &all, 3 * 2),
        (ServicePart::Replica(id("one")), dead, 3 * 4),
        (ServicePart::Replica(id("two")), dead, 3 * 2),
        (ServicePart::Replica(id("three")), dead, 0),
    ] {
        let answering = answering.iter().map(|text| key(text)).collect();
        let view = PartView {
            part: &part,
            now: &StandingSnapshot::default(),
            answering: &answering,
        };
        let files = files.iter().cloned().map(Ok);
        let rows = rows.iter().cloned().map(Ok);
        let only = only_there(&view, files, rows).unwrap();
        assert_eq!(only, expected, "{part}");
    }
}
