//! What counts while something is out of service, and that a restart forgets nothing of it.

use archive_model::{FileName, ReplicaState, Root, VolumeId};

use super::*;
use crate::store::{Content, Phase};

fn retired() -> Retired {
    Retired {
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

fn record(states: &[ReplicaState]) -> FileRecord {
    let replicas = states
        .iter()
        .zip(["one", "two", "three"])
        .map(|(state, name)| {
            let copy = ReplicaRecord {
                state: state.clone(),
                node: Some(NodeId::new(&format!("{name}-1")).unwrap()),
                volume: Some(VolumeId::new(&format!("v-{name}")).unwrap()),
                ..ReplicaRecord::started(ReplicaKind::Bitarchive, true, Timestamp::UNIX_EPOCH)
            };
            (id(name), copy)
        });
    FileRecord {
        name: FileName::new("a").unwrap(),
        phase: Phase::Bound,
        upload: None,
        content: Some(Content {
            root: Root::from_bytes([1; 32]),
            size: 1,
            digests: archive_model::Digests::default(),
        }),
        replicas: replicas.collect(),
    }
}

/// Every file of three replicas in every state, under everything that can be retired or filled.
#[test]
fn what_counts_and_what_is_below_required() {
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
        let record = record(&digits.map(|digit| states[digit].clone()));
        for out in 0..5 {
            let mut now = Now::default();
            match out {
                0 => {}
                1 => drop(now.replicas.insert(id("one"), filling.clone())),
                2 => drop(
                    now.replicas
                        .insert(id("one"), ReplicaRow::Retired(retired())),
                ),
                3 => drop(
                    now.nodes
                        .insert((id("one"), NodeId::new("one-1").unwrap()), retired()),
                ),
                _ => {
                    now.volumes
                        .insert(volume("one", "one-1", "v-one"), retired());
                }
            }
            let counts: Vec<bool> = record
                .replicas
                .iter()
                .map(|(id, copy)| now.counts(id, copy))
                .collect();
            // In the order of the ids: one, three, two.
            let of_one = digits[0] == 1 && out < 2;
            assert_eq!(
                counts,
                [of_one, digits[2] == 1, digits[1] == 1],
                "{digits:?} {out}"
            );
            let expected = if digits == [2, 2, 2] {
                false
            } else {
                let excused = digits[0] == 2 || out == 1 || out == 2;
                !counts.contains(&true) || (!of_one && !excused) || digits[1] == 0 || digits[2] == 0
            };
            assert_eq!(now.is_below_required(&record), expected, "{digits:?} {out}");
        }
    }
}

/// Fails if only memory knows what was retired, a restart forgets an end, or a row of an older archive cannot be read.
#[test]
fn what_was_retired_is_so_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let node = NodeId::new("one-1").unwrap();
    admin
        .add_nodes(&id("one"), &[node.clone(), NodeId::new("one-2").unwrap()])
        .unwrap();
    let standing = Standing::open(admin.clone()).unwrap();
    standing
        .retire_node(&id("one"), &node, retired(), None)
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
    let before = standing.now();
    drop((standing, admin));

    let admin = Admin::init(directory.path()).unwrap();
    let standing = Standing::open(admin.clone()).unwrap();
    assert_eq!(standing.now(), before);
    let left: Vec<_> = admin
        .nodes(&id("one"))
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(left, ["one-2"], "a retired node is not missed");
    let tasks = standing.now().tasks();
    assert_eq!(tasks.len(), 4);
    let line = AuditLine {
        at: Timestamp::UNIX_EPOCH,
        who: "repository".to_owned(),
        file: None,
        what: "every file was told".to_owned(),
    };
    for task in &tasks {
        standing.end(task, line.clone()).unwrap();
    }
    assert_eq!(standing.now().tasks(), []);
    assert!(standing.now().is_retired(&id("two")) && !standing.now().is_filling(&id("three")));
    admin
        .add_nodes(&id("one"), std::slice::from_ref(&node))
        .unwrap();
    assert!(
        Standing::open(admin)
            .unwrap()
            .now()
            .is_retired_node(&id("one"), &node),
        "a heartbeat is no un-retirement"
    );
    let old: NodeRow = NodeRow::upgrade(1, &[]).unwrap();
    assert_eq!(old.retired, None);
}

/// Fails if a retired volume takes a healthy one of another node or replica with it, because both bear the same id.
#[test]
fn namesake_of_a_retired_volume_still_counts() {
    let mut file = record(&[
        ReplicaState::UploadCompleted,
        ReplicaState::UploadCompleted,
        ReplicaState::UploadCompleted,
    ]);
    for copy in file.replicas.values_mut() {
        copy.volume = Some(VolumeId::new("disk-1").unwrap());
    }
    let counts = |out: VolumeKey| {
        let now = Now {
            volumes: BTreeMap::from([(out, retired())]),
            ..Now::default()
        };
        let copies = file.replicas.iter();
        let counts = copies.filter(|(id, copy)| now.counts(id, copy));
        counts.map(|(id, _)| id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(counts(volume("two", "two-1", "disk-1")), ["one", "three"]);
    let all = ["one", "three", "two"];
    assert_eq!(counts(volume("two", "two-2", "disk-1")), all);
    assert_eq!(counts(volume("one", "two-1", "disk-1")), all);
}
