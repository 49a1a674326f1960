//! Tests of the updates for each task, in every state; and that a walk sees every row once, with pages of any size.

use archive_decisions::store::{Content, NamePhase, ReplicaRecord};
use archive_model::{Digests, NodeId, ReplicaKind, Root, VolumeId, VolumeKey};
use jiff::Timestamp;

use super::followed::testing::follow;
use super::*;
use archive_ledger::admin::AdminRow;

fn id(text: &str) -> ReplicaId {
    ReplicaId::new(text).unwrap()
}

fn node(text: &str) -> NodeId {
    NodeId::new(text).unwrap()
}

fn record(name: &str, phase: NamePhase, state: Option<ReplicaState>) -> FileRecord {
    let copy = |state| {
        let copy =
            ReplicaRecord::started_record(ReplicaKind::Bitarchive, true, Timestamp::UNIX_EPOCH);
        ReplicaRecord {
            node: Some(node("n-1")),
            volume: Some(VolumeId::new("v-1").unwrap()),
            state,
            ..copy
        }
    };
    let mut replicas = BTreeMap::from([(id("one"), copy(ReplicaState::UploadCompleted))]);
    if let Some(state) = state {
        replicas.insert(id("two"), copy(state));
    }
    FileRecord {
        name: FileName::new(name).unwrap(),
        phase,
        upload: None,
        content: Some(Content {
            root: Root::from_bytes([1; 32]),
            size: 7,
            digests: Digests::default(),
        }),
        replicas,
    }
}

fn states() -> Vec<Option<ReplicaState>> {
    vec![
        None,
        Some(ReplicaState::UploadStarted),
        Some(ReplicaState::DataUploaded),
        Some(ReplicaState::UploadCompleted),
        Some(ReplicaState::UploadFailed(StoreFailure::NoSpace)),
        Some(ReplicaState::Withdrawn("r1".to_owned())),
    ]
}

/// Fails if a removed copy is stored again, a copy that counts is touched (as on another node's volume of the same id),
/// one that does not count is forgotten, or an unbound name is updated.
#[test]
fn each_task_updates_each_file_correctly() {
    let volume_of = |of: &str, name: &str, text: &str| {
        Task::Volume(VolumeKey {
            replica: id(of),
            node: node(name),
            volume: VolumeId::new(text).unwrap(),
        })
    };
    let volume = |of: &str, text: &str| volume_of(of, "n-1", text);
    for phase in [NamePhase::Bound, NamePhase::Complete, NamePhase::Incomplete] {
        for (index, state) in states().into_iter().enumerate() {
            let file = record("a", phase, state);
            let told = |task: &Task, first| {
                wanted(task, &file, first)
                    .map(|wanted| (wanted.replica.to_string(), wanted.is_gone))
            };
            let two = |is_gone| Some(("two".to_owned(), is_gone));
            let filling = Task::Fill(id("two"));
            let first = (index < 5).then(|| two(false)).flatten();
            assert_eq!(told(&filling, true), first, "{index}");
            let later = matches!(index, 0 | 4).then(|| two(false)).flatten();
            assert_eq!(told(&filling, false), later, "{index}");
            let of_node = |replica: &str, name: &str| {
                let replica = id(replica);
                let node = node(name);
                Task::Node(NodeKey { replica, node })
            };
            let given_up = (index == 3).then(|| two(true)).flatten();
            assert_eq!(told(&of_node("two", "n-1"), false), given_up, "{index}");
            assert_eq!(told(&of_node("two", "n-2"), true), None);
            assert_eq!(told(&of_node("three", "n-1"), true), None);
            let of_one = Some(("one".to_owned(), true));
            assert_eq!(told(&volume("one", "v-1"), true), of_one);
            assert_eq!(told(&volume("two", "v-1"), true), given_up, "{index}");
            assert_eq!(told(&volume("one", "v-2"), true), None);
            assert_eq!(told(&volume("three", "v-1"), true), None);
            assert_eq!(told(&volume_of("one", "n-2", "v-1"), true), None);
            let leaves = (1..5).contains(&index).then(|| two(true)).flatten();
            assert_eq!(told(&Task::Replica(id("two")), false), leaves, "{index}");
        }
    }
    for phase in [
        NamePhase::Free,
        NamePhase::Intent {
            expires: Timestamp::MAX,
        },
    ] {
        let file = record("a", phase, Some(ReplicaState::UploadCompleted));
        for task in [
            Task::Fill(id("two")),
            volume("one", "v-1"),
            Task::Replica(id("two")),
        ] {
            assert_eq!(wanted(&task, &file, true), None);
        }
    }
}

/// Fails if a row is skipped or seen twice at the end of a page, or a page has more files than there is room for.
#[test]
fn walk_in_pages_sees_every_file_once() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let mut changes = admin.begin_changes();
    for number in 0..50 {
        let row = AdminRow {
            record: record(&format!("f-{number:02}"), NamePhase::Complete, None),
            depositor: "harvester/h".to_owned(),
            admission: None,
        };
        admin.put_row(&mut changes, &row).unwrap();
    }
    admin.commit_changes(changes).unwrap();
    let task = Task::Fill(id("two"));
    for room in [1, 7, 16, 50, 51] {
        let mut walk = FileWalk::over_scope(task.walk_scope());
        let mut seen = Vec::new();
        loop {
            let page = walk.next_page(&admin, limits(&task, room), |row| {
                wanted(&task, &row.record, true)
            });
            let page = page.unwrap();
            assert!(page.picked.len() <= room);
            seen.extend(page.picked.iter().map(|wanted| wanted.name.to_string()));
            if page.is_last {
                break;
            }
        }
        let expected: Vec<_> = (0..50).map(|number| format!("f-{number:02}")).collect();
        assert_eq!(seen, expected, "{room}");
    }
    let now = StandingSnapshot::default();
    assert_eq!(lacking_files(&admin, &now, &id("two")).unwrap(), (50, 350));
    assert_eq!(lacking_files(&admin, &now, &id("one")).unwrap(), (0, 0));
}

/// Fails if a file that failed takes the room of one that is being stored, or is forgotten before it is there.
#[tokio::test]
async fn file_is_open_until_its_copy_is_there() {
    let with = |state| record("a", NamePhase::Bound, Some(state));
    let (mut open, told) = follow(with(ReplicaState::UploadStarted)).await;
    let task = Task::Fill(id("two"));
    let mut kept = || (keep_open(&task, &mut open), open.len());
    assert_eq!(kept(), (1, 1));
    told.tell(with(ReplicaState::UploadFailed(StoreFailure::NoSpace)));
    assert_eq!(kept(), (0, 1));
    told.tell(with(ReplicaState::DataUploaded));
    assert_eq!(kept(), (1, 1));
    told.tell(with(ReplicaState::UploadCompleted));
    assert_eq!(kept(), (0, 0));
}

/// Fails if rows are read while files rest or there is no room, or files are waited for that are not there.
#[tokio::test]
async fn full_or_resting_pass_waits() {
    let now = Instant::now();
    let rests = Some(now + REST);
    let mut pass = Pass {
        rests,
        ..Pass::default()
    };
    assert!(!pass.must_wait(1, now), "nothing is waited for");
    assert!(pass.must_wait(0, now));
    let file = record("a", NamePhase::Bound, Some(ReplicaState::UploadStarted));
    let (open, _told) = follow(file).await;
    pass.open = open;
    assert!(pass.must_wait(1, now));
    assert!(!pass.must_wait(1, now + REST));
}
