//! Copies that count while something is out of service, and that a restart forgets nothing of it.

use std::sync::atomic::{AtomicBool, Ordering};

use archive_model::{ReplicaKind, ReplicaState, VolumeId};

use super::*;

fn node_key(replica: &str, node: &str) -> NodeKey {
    NodeKey {
        replica: id(replica),
        node: NodeId::new(node).unwrap(),
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

fn id(text: &str) -> ReplicaId {
    ReplicaId::new(text).unwrap()
}

fn volume(replica: &str, node: &str, volume: &str) -> VolumeKey {
    VolumeKey {
        replica: id(replica),
        node: NodeId::new(node).unwrap(),
        volume: VolumeId::new(volume).unwrap(),
    }
}

/// Returns the copies of one file in the replicas `one`, `two` and `three`, in these states.
fn copies(states: &[ReplicaState]) -> BTreeMap<ReplicaId, ReplicaRecord> {
    let named = states.iter().zip(["one", "two", "three"]);
    named
        .map(|(state, name)| {
            let copy = ReplicaRecord {
                state: state.clone(),
                node: Some(NodeId::new(&format!("{name}-1")).unwrap()),
                volume: Some(VolumeId::new(&format!("v-{name}")).unwrap()),
                ..ReplicaRecord::started_record(
                    ReplicaKind::Bitarchive,
                    true,
                    Timestamp::UNIX_EPOCH,
                )
            };
            (id(name), copy)
        })
        .collect()
}

/// Takes every file of three replicas in every state, under everything that can be retired or filled.
///
/// Fails if an open or withdrawn copy counts, a copy still counts once its replica, node or volume is retired, a copy
/// ceases to count while its replica is being filled, or any other replica than a retired or filling one is excused.
#[test]
fn only_completed_copies_in_service_count() {
    let states = [
        ReplicaState::UploadStarted,
        ReplicaState::UploadCompleted,
        ReplicaState::Withdrawn("r1".to_owned()),
    ];
    let filling = ReplicaRow::Filling {
        since: Timestamp::UNIX_EPOCH,
        by: String::new(),
    };
    for code in 0..27_usize {
        let digits = [code % 3, code / 3 % 3, code / 9];
        let copies = copies(&digits.map(|digit| states[digit].clone()));
        for out in 0..5 {
            let mut now = StandingSnapshot::default();
            match out {
                0 => {}
                1 => drop(now.replicas.insert(id("one"), filling.clone())),
                2 => drop(
                    now.replicas
                        .insert(id("one"), ReplicaRow::Retired(retired())),
                ),
                3 => drop(now.nodes.insert(node_key("one", "one-1"), retired())),
                _ => {
                    now.volumes
                        .insert(volume("one", "one-1", "v-one"), retired());
                }
            }
            let counts: Vec<bool> = copies
                .iter()
                .map(|(id, copy)| now.copy_counts(id, copy))
                .collect();
            // The replicas stand in the order of their ids: one, three, two.
            let of_one = digits[0] == 1 && out < 2;
            assert_eq!(
                counts,
                [of_one, digits[2] == 1, digits[1] == 1],
                "{digits:?} {out}"
            );
            let excused = ["one", "two", "three"].map(|replica| now.is_excused(&id(replica)));
            assert_eq!(excused, [out == 1 || out == 2, false, false], "{out}");
        }
    }
}

/// Fails if only memory knows what was retired, or a restart forgets an end.
#[test]
fn retirements_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let node = NodeId::new("one-1").unwrap();
    admin
        .add_nodes(&id("one"), &[node.clone(), NodeId::new("one-2").unwrap()])
        .unwrap();
    let standing = Standing::open(admin.clone()).unwrap();
    standing
        .retire_node(&node_key("one", node.as_str()), retired(), None)
        .unwrap();
    standing
        .retire_volume(&volume("two", "two-1", "v"), &retired(), None)
        .unwrap();
    standing
        .set_replica(&id("two"), Some(&ReplicaRow::Retired(retired())), None)
        .unwrap();
    let filling = ReplicaRow::Filling {
        since: Timestamp::UNIX_EPOCH,
        by: "operator/otto".to_owned(),
    };
    standing
        .set_replica(&id("three"), Some(&filling), None)
        .unwrap();
    let before = standing.current_snapshot();
    drop((standing, admin));

    let admin = Admin::init(directory.path()).unwrap();
    let standing = Standing::open(admin.clone()).unwrap();
    assert_eq!(standing.current_snapshot(), before);
    let left: Vec<_> = admin
        .list_nodes(&id("one"))
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(left, ["one-2"], "a retired node is not missed");
    let tasks = standing.current_snapshot().list_tasks();
    assert_eq!(tasks.len(), 4);
    let line = AuditLine {
        at: Timestamp::UNIX_EPOCH,
        who: "repository".to_owned(),
        file: None,
        what: "every file was told".to_owned(),
    };
    for task in &tasks {
        standing.end_task(task, line.clone()).unwrap();
    }
    assert_eq!(standing.current_snapshot().list_tasks(), []);
    assert!(
        standing.current_snapshot().is_retired(&id("two"))
            && !standing.current_snapshot().is_filling(&id("three"))
    );
    admin
        .add_nodes(&id("one"), std::slice::from_ref(&node))
        .unwrap();
    assert!(
        Standing::open(admin)
            .unwrap()
            .current_snapshot()
            .is_retired_node(&id("one"), &node),
        "a heartbeat is no un-retirement"
    );
}

/// Fails if a volume that was just taken back is retired again by the end of its earlier retirement, or a retired replica
/// is filled.
#[test]
fn end_of_a_task_undoes_no_later_change() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let standing = Standing::open(admin).unwrap();
    let line = AuditLine {
        at: Timestamp::UNIX_EPOCH,
        who: "operator/otto".to_owned(),
        file: None,
        what: "a change".to_owned(),
    };
    let key = volume("two", "two-1", "v");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let task = Task::Volume(key.clone());
                standing.end_task(&task, line.clone()).unwrap();
            }
        });
        for round in 0..200 {
            standing.retire_volume(&key, &retired(), None).unwrap();
            standing.reinstate_volume(&key, line.clone()).unwrap();
            std::thread::yield_now();
            let now = standing.current_snapshot();
            if now.volumes.contains_key(&key) {
                is_over.store(true, Ordering::Relaxed);
                panic!("retired again in round {round}");
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let two = id("two");
    assert!(standing.begin_filling(&two, line.clone()).unwrap());
    let row = ReplicaRow::Retired(retired());
    standing.set_replica(&two, Some(&row), None).unwrap();
    standing
        .end_task(&Task::Fill(two.clone()), line.clone())
        .unwrap();
    assert!(!standing.begin_filling(&two, line).unwrap());
    assert!(standing.current_snapshot().is_retired(&two));
}

/// Fails if a retired volume takes a healthy one of another node or replica with it, because both bear the same id.
#[test]
fn namesake_of_a_retired_volume_still_counts() {
    let mut copies = copies(&[
        ReplicaState::UploadCompleted,
        ReplicaState::UploadCompleted,
        ReplicaState::UploadCompleted,
    ]);
    for copy in copies.values_mut() {
        copy.volume = Some(VolumeId::new("disk-1").unwrap());
    }
    let counts = |out: VolumeKey| {
        let now = StandingSnapshot {
            volumes: BTreeMap::from([(out, retired())]),
            ..StandingSnapshot::default()
        };
        let counts = copies.iter().filter(|(id, copy)| now.copy_counts(id, copy));
        counts.map(|(id, _)| id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(counts(volume("two", "two-1", "disk-1")), ["one", "three"]);
    let all = ["one", "three", "two"];
    assert_eq!(counts(volume("two", "two-2", "disk-1")), all);
    assert_eq!(counts(volume("one", "two-1", "disk-1")), all);
}
