//! The verbs of disks and of the attic with a system call that fails, each in turn: once, or from there on as when the
//! node dies. Afterwards a file is whole on one side, and what was asked can be asked again.
#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "helpers of tests; what ran is worth a line"
)]

mod names;

use archive_bitarchive::attic::{self, AtticId, ItemReference, LocalAtticItem, RemovalOrder};
use archive_bitarchive::testing::{self, NodeMachine};
use archive_bitarchive::{AtticSettings, Condition, Node, NodeError};
use archive_daemon::Period;
use archive_durable::VolumeProblem;
use archive_durable::fault::{self, FaultPlan, InjectedFault};
use archive_model::{Cause, FileName, Root, UploadId, VolumeId};
use archive_proof::Envelope;
use jiff::Timestamp;
use rustix::io::Errno;

/// The fault of the call.
const FAULTS: [InjectedFault; 3] = [
    InjectedFault::FailFromHere(Errno::IO),
    InjectedFault::Fail(Errno::IO),
    InjectedFault::Fail(Errno::NOSPC),
];

const NAME: &str = "a.warc";

const SIZE: usize = 50_000;

/// The plan is one per process.
static ONE_AT_A_TIME: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

fn name() -> FileName {
    FileName::new(NAME).expect("a name")
}

fn volume(text: &str) -> VolumeId {
    VolumeId::new(text).expect("an id")
}

fn now() -> Timestamp {
    Timestamp::from_second(1_900_000_000).expect("a time")
}

fn cause() -> Cause {
    Cause::new("officer/o", "a test").expect("a cause")
}

fn bytes() -> Vec<u8> {
    vec![7; SIZE]
}

fn root() -> Root {
    Root::from_bytes(*blake3::hash(&bytes()).as_bytes())
}

fn upload() -> UploadId {
    testing::admission(NAME, &bytes(), now()).upload
}

fn admission() -> Envelope {
    testing::sign(&testing::admission(NAME, &bytes(), now()))
}

/// Makes a machine with the volume `v1` and an empty disk, on which nobody waits before removing.
fn with_volume() -> NodeMachine {
    let mut machine = NodeMachine::with_disks(&["one", "two"]);
    machine.now = now();
    machine.options.attic = AtticSettings {
        min_age: Period::from_secs(0),
        removals_per_hour: 1000,
        ..AtticSettings::default()
    };
    machine.init("v1", "one");
    machine
}

fn start(machine: &NodeMachine) -> Node {
    machine.start().0
}

/// Starts again, after people have cleared poisoned volumes.
fn start_again(machine: &NodeMachine) -> Node {
    let node = start(machine);
    for known in node.disks.volumes.list_volumes() {
        if let (Some(id), Some(VolumeProblem::Poisoned(_))) = (&known.id, &known.problem) {
            node.disks.clear_volume(id, now()).expect("cleared");
        }
    }
    node
}

fn store(machine: &NodeMachine) {
    let stored = machine.store(&start(machine), NAME, &bytes());
    stored.expect("stored");
}

fn store_and_put_aside(machine: &NodeMachine) {
    store(machine);
    put_aside(&start(machine)).expect("put aside");
}

fn items(node: &Node) -> Vec<LocalAtticItem> {
    let online = node.disks.volumes.online_layouts();
    let listed = online.iter().flat_map(|(volume, layout)| {
        let listed = attic::list_items(layout, volume).expect("a list");
        listed.into_iter().map(|one| attic::read_item(layout, &one))
    });
    listed.collect()
}

fn put_aside(node: &Node) -> Result<(), NodeError> {
    node.attic
        .put_copy_aside(
            &RemovalOrder {
                name: name(),
                volume: volume("v1"),
                checksum: root(),
                cause: cause(),
            },
            now(),
        )
        .map(drop)
}

fn item_id(node: &Node) -> Option<AtticId> {
    items(node)
        .first()
        .map(|item| AtticId::new(&item.id).expect("an id"))
}

fn restore_item(node: &Node) -> Result<(), NodeError> {
    let id = item_id(node).expect("an item");
    node.attic
        .restore_item(&volume("v1"), &id, &cause(), now())
        .map(drop)
}

fn purge(node: &Node) -> Result<(), NodeError> {
    let id = item_id(node).expect("an item");
    node.attic
        .purge_item(
            &ItemReference {
                volume: volume("v1"),
                id,
                checksum: Some(root()),
                cause: cause(),
            },
            now(),
        )
        .map(drop)
}

fn adopt(node: &Node) -> Result<(), NodeError> {
    node.files
        .adopt_file(&name(), &volume("v1"), &admission(), now())
        .map(drop)
}

/// Returns whether the file is under its name, and checks every promise that holds on either side.
fn is_under_its_name(machine: &NodeMachine, node: &Node, what: &str) -> bool {
    let target = machine.target(NAME);
    let is_there = target.file.try_exists().expect("a look");
    let entries = node.files.find_copies(&name()).expect("entries");
    assert_eq!(entries.len(), usize::from(is_there), "{what}: {entries:?}");
    for path in [&target.sidecar, &target.outboard] {
        assert_eq!(path.try_exists().expect("a look"), is_there, "{what}");
    }
    if let Some(entry) = entries.first() {
        assert_eq!(entry.row.condition, Condition::Present, "{what}");
        assert_eq!(std::fs::read(&target.file).expect("bytes"), bytes());
    }
    let items = items(node);
    assert_eq!(items.len(), usize::from(!is_there), "{what}: {items:?}");
    assert!(items.iter().all(|item| item.damaged.is_none()), "{what}");
    is_there
}

/// Runs `act` on a machine made by `prepare`, with the fault at every call from `first` on, and then `check`.
fn at_every_call(
    verb: &str,
    first: u64,
    prepare: impl Fn(&NodeMachine),
    act: impl Fn(&NodeMachine, &Node) -> Result<(), NodeError>,
    check: impl Fn(&NodeMachine, &str, bool),
) {
    for fault in FAULTS {
        let mut at = first;
        loop {
            let machine = with_volume();
            prepare(&machine);
            let node = start(&machine);
            fault::arm_fault(Some(FaultPlan {
                at,
                operation: None,
                fault,
            }));
            let result = act(&machine, &node);
            let is_reached = fault::matched_calls() > at;
            fault::arm_fault(None);
            drop(node);
            let what = format!("{verb}: {fault:?} at {at}: {result:?}");
            check(&machine, &what, result.is_ok());
            if !is_reached {
                assert!(result.is_ok(), "{what}");
                break;
            }
            at += 1;
        }
        println!("{verb}: {fault:?}: {} cases", at - first);
    }
}

/// Fails if a verb that fails at some call leaves a state from which the node cannot continue.
#[test]
fn node_recovers_from_any_failing_call() {
    let _one = ONE_AT_A_TIME.lock();
    at_every_call(
        "put aside",
        0,
        store,
        |_, node| put_aside(node),
        |machine, what, is_done| {
            let node = start_again(machine);
            let is_back = is_under_its_name(machine, &node, what);
            assert!(!(is_done && is_back), "{what}");
            if is_back {
                put_aside(&node).expect(what);
            }
            assert!(!is_under_its_name(machine, &node, what), "{what}");
            restore_item(&node).expect(what);
        },
    );
    at_every_call(
        "take back",
        0,
        store_and_put_aside,
        |_, node| restore_item(node),
        |machine, what, is_done| {
            let node = start_again(machine);
            let is_back = is_under_its_name(machine, &node, what);
            assert!(is_back || !is_done, "{what}");
            if !is_back {
                restore_item(&node).expect(what);
            }
            assert!(is_under_its_name(machine, &node, what), "{what}");
        },
    );
    at_every_call(
        "purge",
        0,
        store_and_put_aside,
        |_, node| purge(node),
        |machine, what, is_done| {
            let node = start_again(machine);
            assert!(
                node.files.find_copies(&name()).expect("entries").is_empty(),
                "{what}"
            );
            assert!(items(&node).is_empty() || !is_done, "{what}");
            if !items(&node).is_empty() {
                purge(&node).expect(what);
            }
            assert!(items(&node).is_empty(), "{what}");
        },
    );
    at_every_call(
        "adopt",
        0,
        |machine| std::fs::write(machine.target(NAME).file, bytes()).expect("a stranger"),
        |_, node| adopt(node),
        |machine, what, is_done| {
            let node = start_again(machine);
            let entry = node.files.find_copies(&name()).expect("entries").remove(0);
            let is_admitted = entry.row.condition == Condition::Present;
            assert!(is_admitted || !is_done, "{what}");
            assert!(
                is_admitted || matches!(entry.row.condition, Condition::Unexpected { .. }),
                "{what}: {entry:?}"
            );
            adopt(&node).expect(what);
            drop(node);
            let node = start(machine);
            let entry = node.files.find_copies(&name()).expect("entries").remove(0);
            assert_eq!(entry.row.condition, Condition::Present, "{what}");
            assert_eq!(
                node.files.read_admission(&entry).expect(what),
                admission().as_str(),
                "{what}"
            );
        },
    );
    let init = |machine: &NodeMachine, node: &Node| {
        node.disks
            .init_volume(&machine.path("two"), &volume("v2"), now())
            .map(drop)
    };
    // Making the directories is one call after the other; some of them, and all that comes after.
    at_every_call(
        "init",
        505,
        |_| {},
        init,
        |machine, what, is_done| {
            let node = start_again(machine);
            let known = node.disks.volumes.find_volume(&volume("v2"));
            assert!(known.is_some() || !is_done, "{what}");
            if known.is_none() {
                init(machine, &node).expect(what);
            }
            let online = node.disks.volumes.online_layouts();
            assert_eq!(online.len(), 2, "{what}");
        },
    );
    at_every_call(
        "retire",
        0,
        store,
        |_, node| node.disks.retire_volume(&volume("v1"), now()).map(drop),
        |machine, what, is_done| {
            let node = start_again(machine);
            let known = node
                .disks
                .volumes
                .find_volume(&volume("v1"))
                .expect("a volume");
            let is_retired = known.problem == Some(VolumeProblem::Retired);
            assert!(is_retired || !is_done, "{what}");
            let entry = node.files.find_copies(&name()).expect("entries").remove(0);
            let is_missing = matches!(entry.row.condition, Condition::Missing { .. });
            assert_eq!(is_missing, is_retired, "{what}");
        },
    );
}

/// Fails if bytes that flipped in memory are stored, or the file cannot be stored again.
#[test]
fn flip_in_memory_is_refused_and_retried() {
    let _one = ONE_AT_A_TIME.lock();
    let machine = with_volume();
    let node = start(&machine);
    let begun = node.files.begin_upload(&upload(), &name(), SIZE as u64);
    let mut receiving = begun.expect("an upload");
    fault::arm_fault(Some(FaultPlan {
        at: 0,
        operation: Some("write"),
        fault: InjectedFault::Flip,
    }));
    let written = receiving.write_all(&bytes());
    fault::arm_fault(None);
    written.expect("nothing fails");
    let refused = receiving.commit_upload(&admission(), now());
    let is_read_back = matches!(refused, Err(NodeError::ReadBack { .. }));
    assert!(is_read_back, "{refused:?}");
    assert!(!machine.target(NAME).file.exists());
    assert!(node.files.find_copies(&name()).expect("entries").is_empty());
    // The refused bytes are still there, and their root is not the sender's: all are sent again from the beginning.
    let begun = node.files.begin_upload(&upload(), &name(), SIZE as u64);
    let begun = begun.expect("the same upload");
    let received = usize::try_from(begun.received()).expect("small");
    let sent = blake3::hash(bytes().get(..received).expect("received bytes"));
    assert_ne!(begun.root_so_far(), Root::from_bytes(*sent.as_bytes()));
    let mut receiving = begun.keep_prefix(0).expect("nothing is kept");
    receiving.write_all(&bytes()).expect("written");
    receiving
        .commit_upload(&admission(), now())
        .expect("stored");
    assert!(is_under_its_name(&machine, &node, "again"));
}

/// Fails if a file is taken over at a start whose name nobody has made durable: a crash may have come just before that.
#[test]
fn unsynced_name_keeps_volume_offline() {
    let _one = ONE_AT_A_TIME.lock();
    let machine = with_volume();
    store(&machine);
    let mut is_synced = false;
    for at in 0.. {
        std::fs::remove_dir_all(machine.path("data/catalog")).expect("no catalog");
        fault::arm_fault(Some(FaultPlan {
            at,
            operation: Some("fsync directory"),
            fault: InjectedFault::Fail(Errno::IO),
        }));
        let opened = machine.open();
        let is_reached = fault::matched_calls() > at;
        fault::arm_fault(None);
        let file = machine.target(NAME).file;
        let directory = file.parent().expect("a directory").display().to_string();
        for known in opened
            .iter()
            .flat_map(|(node, _)| node.disks.volumes.list_volumes())
        {
            if let Some(VolumeProblem::Poisoned(why)) = known.problem {
                is_synced |= why.contains(&format!("{directory}:"));
            }
        }
        drop(opened);
        drop(start_again(&machine));
        if !is_reached {
            break;
        }
    }
    assert!(is_synced, "nobody has synced the directory of the file");
}
