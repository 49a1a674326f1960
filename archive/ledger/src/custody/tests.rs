//! Two replicas that keep bytes and one that keeps checksums, in every state, under everything that can be filed.

use archive_decisions::store::{Content, NamePhase};
use archive_model::{
    Digests, FileName, Finder, Groups, NodeId, NodeKey, Root, VolumeId, VolumeKey,
};

use super::*;
use crate::anomalies::DatedReason;
use crate::standing::{ReplicaRow, Retirement};

const IDS: [&str; 3] = ["one", "three", "two"];

fn id(text: &str) -> ReplicaId {
    ReplicaId::new(text).unwrap()
}

fn filed(replica: &str, kind: AnomalyKind, is_accepted: bool) -> AnomalyRow {
    AnomalyRow {
        file: FileName::new("a").unwrap(),
        replica: id(replica),
        filed: AnomalyRecord {
            id: 7,
            kind,
            size: 1,
            node: None,
            volume: None,
            since: Timestamp::UNIX_EPOCH,
            seen: Timestamp::UNIX_EPOCH,
            confirmed: None,
            found_by: Finder::Check,
            accepted: is_accepted.then(|| DatedReason {
                at: Timestamp::UNIX_EPOCH,
                why: "so".to_owned(),
            }),
            note: None,
            is_first: false,
        },
        closed: None,
    }
}

fn retired() -> Retirement {
    Retirement {
        at: Timestamp::UNIX_EPOCH,
        by: "operator/otto".to_owned(),
        why: "r1: dead".to_owned(),
        emptied: false,
    }
}

/// A case of a copy: its recorded state, and the anomaly that is filed of it. The last field says whether the copy
/// counts, whether it is waited for while good bytes are left elsewhere, and whether it may be the only one.
type Case = (ReplicaState, Option<(AnomalyKind, bool)>, u8, [bool; 3]);

fn cases() -> Vec<Case> {
    let done = || ReplicaState::UploadCompleted;
    let root = Root::from_bytes([2; 32]);
    let good = [true, false, false];
    let waits = [false, true, true];
    let left = [false, false, true];
    let mut cases = vec![
        (done(), None, 0, good),
        (ReplicaState::UploadStarted, None, 0, waits),
        (
            ReplicaState::UploadFailed(StoreFailure::NoSpace),
            None,
            0,
            waits,
        ),
        (
            ReplicaState::Withdrawn("r1".to_owned()),
            None,
            0,
            [false, false, false],
        ),
        // The replica, the node, the volume was retired.
        (done(), None, 1, left),
        (done(), None, 2, waits),
        (done(), None, 3, waits),
        (done(), Some((AnomalyKind::Transient, false)), 0, good),
        (done(), Some((AnomalyKind::Incomplete, false)), 0, good),
        (
            done(),
            Some((AnomalyKind::Duplicate(Vec::new()), false)),
            0,
            good,
        ),
    ];
    for kind in [
        AnomalyKind::Missing,
        AnomalyKind::Corrupt(Groups::all(1)),
        AnomalyKind::Unreadable(Groups::all(1)),
        AnomalyKind::Lost(vec![(0, 1)]),
        AnomalyKind::Conflicting(root),
        AnomalyKind::Disputed(root),
        AnomalyKind::Unexpected,
    ] {
        cases.push((done(), Some((kind.clone(), false)), 0, waits));
        cases.push((done(), Some((kind, true)), 0, left));
    }
    cases
}

/// Fails if the record alone makes an answer, a copy on a retired volume counts, a copy counts that is filed as
/// damaged, absent or of other content, the answer waits for what people have withdrawn, retired or accepted, or comes
/// while no good bytes are left, or a checksum is taken for bytes.
#[test]
fn every_three_copies() {
    let mut tried = 0;
    for one in cases() {
        for two in cases() {
            for three in cases() {
                hold(&[one.clone(), three, two.clone()]);
                tried += 1;
            }
        }
    }
    println!("{tried} files");
    assert!(tried > 10_000);
}

fn hold(cases: &[Case; 3]) {
    let mut now = StandingSnapshot::default();
    let mut rows = Vec::new();
    let mut replicas = std::collections::BTreeMap::new();
    for (name, (state, anomaly, out, _)) in IDS.iter().zip(cases) {
        let kind = if *name == "three" {
            ReplicaKind::Checksum
        } else {
            ReplicaKind::Bitarchive
        };
        let node = NodeId::new(&format!("{name}-1")).unwrap();
        let volume = VolumeId::new(&format!("v-{name}")).unwrap();
        match out {
            0 => {}
            1 => drop(
                now.replicas
                    .insert(id(name), ReplicaRow::Retired(retired())),
            ),
            2 => {
                let replica = id(name);
                let key = NodeKey {
                    replica,
                    node: node.clone(),
                };
                now.nodes.insert(key, retired());
            }
            _ => {
                let key = VolumeKey {
                    replica: id(name),
                    node: node.clone(),
                    volume: volume.clone(),
                };
                now.volumes.insert(key, retired());
            }
        }
        rows.extend(
            anomaly
                .clone()
                .map(|(kind, is_accepted)| filed(name, kind, is_accepted)),
        );
        let copy = ReplicaRecord {
            state: state.clone(),
            node: Some(node),
            volume: Some(volume),
            ..ReplicaRecord::started_record(kind, true, Timestamp::UNIX_EPOCH)
        };
        replicas.insert(id(name), copy);
    }
    let record = FileRecord {
        name: FileName::new("a").unwrap(),
        phase: NamePhase::Bound,
        upload: None,
        content: Some(Content {
            root: Root::from_bytes([1; 32]),
            size: 1,
            digests: Digests::default(),
        }),
        replicas,
    };
    let vouched = FileEvidence {
        record: &record,
        now: &now,
        filed: &rows,
    };
    let says = |what: usize| IDS.iter().zip(cases).filter(move |(_, case)| case.3[what]);
    let good: Vec<&str> = vouched.good_copies().map(|(id, _)| id.as_str()).collect();
    assert_eq!(
        good,
        says(0).map(|(id, _)| *id).collect::<Vec<_>>(),
        "{cases:?}"
    );
    let has_bytes = good.iter().any(|id| *id != "three");
    for replica in IDS {
        let others = good.iter().filter(|id| **id != "three" && **id != replica);
        assert_eq!(
            vouched.other_good_copies(&id(replica)),
            others.count(),
            "{cases:?}"
        );
    }
    let waited: Vec<&str> = if has_bytes {
        says(1).map(|(id, _)| *id).collect()
    } else {
        let of_bytes = says(2).filter(|(id, case)| case.3[1] || **id != "three");
        of_bytes.map(|(id, _)| *id).collect()
    };
    let lacking = vouched.lacking_replicas();
    let named: Vec<&str> = lacking.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(named, waited, "{cases:?}");
    let missing = vouched.missing_reason();
    assert_eq!(
        missing.is_none(),
        waited.is_empty() && has_bytes,
        "{missing:?} {cases:?}"
    );
    for (replica, doubt) in lacking {
        let text = missing.clone().unwrap_or_default();
        assert!(text.contains(&format!("{replica}: {doubt}")), "{text}");
        assert!(!doubt.store_failure().to_string().is_empty());
    }
}

/// Fails if the reason why a copy does not count is an anomaly that people have accepted, although an open one is filed
/// of that copy.
#[test]
fn open_anomaly_is_named_before_accepted_one() {
    let one = id("one");
    let copy = ReplicaRecord {
        state: ReplicaState::UploadCompleted,
        ..ReplicaRecord::started_record(ReplicaKind::Bitarchive, true, Timestamp::UNIX_EPOCH)
    };
    let record = FileRecord {
        name: FileName::new("a").unwrap(),
        phase: NamePhase::Bound,
        upload: None,
        content: None,
        replicas: [(one.clone(), copy.clone())].into(),
    };
    let now = StandingSnapshot::default();
    let rows = [
        filed("one", AnomalyKind::Missing, true),
        filed("one", AnomalyKind::Corrupt(Groups::all(1)), false),
    ];
    let vouched = FileEvidence {
        record: &record,
        now: &now,
        filed: &rows,
    };
    assert_eq!(
        vouched.doubt_copy(&one, &copy),
        Some(CustodyDoubt::Filed(&rows[1].filed))
    );
    assert_eq!(
        vouched.missing_reason().as_deref(),
        Some("its content is not known yet")
    );
}

/// Fails if a damaged or unknown copy elsewhere in the replica makes the recorded one, which is good, count no more.
#[test]
fn anomaly_of_another_place_is_no_doubt() {
    let place = |node: &str| {
        let volume = VolumeId::new("v").unwrap();
        (NodeId::new(node).unwrap(), volume)
    };
    let (node, volume) = place("one-1");
    let copy = ReplicaRecord {
        state: ReplicaState::UploadCompleted,
        node: Some(node),
        volume: Some(volume),
        ..ReplicaRecord::started_record(ReplicaKind::Bitarchive, true, Timestamp::UNIX_EPOCH)
    };
    let one = id("one");
    let record = FileRecord {
        name: FileName::new("a").unwrap(),
        phase: NamePhase::Bound,
        upload: None,
        content: None,
        replicas: [(one.clone(), copy.clone())].into(),
    };
    let now = StandingSnapshot::default();
    for (kind, is_of_one_copy) in [
        (AnomalyKind::Unexpected, true),
        (AnomalyKind::Corrupt(Groups::all(1)), true),
        (AnomalyKind::Missing, false),
        (AnomalyKind::Lost(vec![(0, 1)]), false),
    ] {
        for (at, is_here) in [("one-1", true), ("one-2", false)] {
            let (node, volume) = place(at);
            let mut row = filed("one", kind.clone(), false);
            row.filed.node = Some(node);
            row.filed.volume = Some(volume);
            let vouched = FileEvidence {
                record: &record,
                now: &now,
                filed: &[row],
            };
            let is_doubt = is_here || !is_of_one_copy;
            assert_eq!(
                vouched.doubt_copy(&one, &copy).is_some(),
                is_doubt,
                "{kind} {at}"
            );
        }
    }
}
