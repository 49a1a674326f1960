//! Which copies are given up when a depositor asks.

use archive_decisions::store::{Content, NamePhase, ReplicaRecord};
use archive_ledger::anomalies::{AnomalyRecord, DatedReason};
use archive_ledger::standing::{ReplicaRow, Retirement};
use archive_model::{
    CopyPlace, Digests, NodeId, ReplicaKind, ReplicaState, Root, VolumeId, VolumeKey,
};

use super::*;

fn id(text: &str) -> ReplicaId {
    ReplicaId::new(text).unwrap()
}

fn record() -> FileRecord {
    let copy = |name: &str| ReplicaRecord {
        state: ReplicaState::UploadCompleted,
        node: Some(NodeId::new(&format!("{name}-1")).unwrap()),
        volume: Some(VolumeId::new(&format!("v-{name}")).unwrap()),
        ..ReplicaRecord::started_record(ReplicaKind::Bitarchive, true, Timestamp::UNIX_EPOCH)
    };
    FileRecord {
        name: FileName::new("a").unwrap(),
        phase: NamePhase::Complete,
        upload: None,
        content: Some(Content {
            root: Root::from_bytes([1; 32]),
            size: 1,
            digests: Digests::default(),
        }),
        replicas: ["one", "two"].map(|name| (id(name), copy(name))).into(),
    }
}

fn filed(replica: &str, kind: AnomalyKind, is_accepted: bool) -> AnomalyRow {
    AnomalyRow {
        file: FileName::new("a").unwrap(),
        replica: id(replica),
        filed: AnomalyRecord {
            id: 1,
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
            is_first: true,
        },
        closed: None,
    }
}

/// Returns the events as `replica gone` or `replica wanted`.
fn lost_copies(record: &FileRecord, now: &StandingSnapshot, filed: &[AnomalyRow]) -> Vec<String> {
    let events = given_up(record, now, filed);
    let text = |event: &StoringEvent| {
        if let StoringEvent::Gone { replica } = event {
            return format!("{replica} gone");
        }
        let StoringEvent::Wanted {
            replica,
            gone: Some((CopyPlace { node, volume }, _)),
            required: true,
            ..
        } = event
        else {
            panic!("{event:?}")
        };
        format!("{replica} wanted {node} {volume}")
    };
    events.iter().map(text).collect()
}

/// Fails if a copy is given up for anything but proven absence or a retired place, if one that people live with is
/// given up while others are good or kept when it was the last, or if there is work on a retired replica.
#[test]
fn only_provably_absent_copy_is_given_up() {
    let record = record();
    let now = StandingSnapshot::default();
    for kind in [
        AnomalyKind::Corrupt(Groups::all(1)),
        AnomalyKind::Unreadable(Groups::all(1)),
        AnomalyKind::Lost(vec![(0, 1)]),
        AnomalyKind::Conflicting(Root::from_bytes([2; 32])),
        AnomalyKind::Disputed(Root::from_bytes([2; 32])),
        AnomalyKind::Unexpected,
        AnomalyKind::Incomplete,
        AnomalyKind::Transient,
    ] {
        assert_eq!(
            lost_copies(&record, &now, &[filed("one", kind, false)]),
            [""; 0]
        );
    }
    let missing = |replica, is_accepted| filed(replica, AnomalyKind::Missing, is_accepted);
    let one = [missing("one", false)];
    assert_eq!(lost_copies(&record, &now, &one), ["one gone"]);
    let both = [missing("one", false), missing("two", false)];
    assert_eq!(lost_copies(&record, &now, &both), ["one gone", "two gone"]);
    let lived_with = [missing("one", true)];
    assert_eq!(lost_copies(&record, &now, &lived_with), [""; 0]);
    let lived_with = [missing("one", true), missing("two", true)];
    assert_eq!(
        lost_copies(&record, &now, &lived_with),
        ["one gone", "two gone"]
    );

    let retired = Retirement {
        at: Timestamp::UNIX_EPOCH,
        by: "operator/otto".to_owned(),
        why: "r1".to_owned(),
        emptied: false,
    };
    let mut now = StandingSnapshot::default();
    let volume = VolumeKey {
        replica: id("one"),
        node: NodeId::new("one-1").unwrap(),
        volume: VolumeId::new("v-one").unwrap(),
    };
    now.volumes.insert(volume, retired.clone());
    assert_eq!(lost_copies(&record, &now, &one), ["one wanted one-1 v-one"]);
    let gone = ReplicaRow::Retired(retired);
    now.replicas.insert(id("one"), gone);
    assert_eq!(lost_copies(&record, &now, &one), [""; 0]);

    let mut open = record;
    for copy in open.replicas.values_mut() {
        copy.state = ReplicaState::UploadStarted;
    }
    assert_eq!(
        lost_copies(&open, &StandingSnapshot::default(), &both),
        [""; 0]
    );
}

/// Fails if what was filed is closed for a copy that counted all along, or for one that does not count after all.
#[test]
fn copy_returns_only_where_it_begins_to_count() {
    let complete = record();
    let mut open = record();
    for copy in open.replicas.values_mut() {
        copy.state = ReplicaState::UploadStarted;
    }
    let event = |read_back| StoringEvent::Completed {
        replica: id("one"),
        node: NodeId::new("one-1").unwrap(),
        volume: VolumeId::new("v-one").unwrap(),
        root: Root::from_bytes([1; 32]),
        at: Timestamp::UNIX_EPOCH,
        read_back,
    };
    assert!(ReturnedCopy::from_event(&complete, &event(true)).is_none());
    for read_back in [false, true] {
        let back = ReturnedCopy::from_event(&open, &event(read_back)).unwrap();
        assert_eq!(back.is_read, read_back);
        assert!(back.counts_now(&complete) && !back.counts_now(&open));
    }
    assert!(ReturnedCopy::from_event(&open, &StoringEvent::Tick).is_none());
}
