//! A node dies, or its disk fails, at every system call in turn; afterwards every promise still holds.
//!
//! The node runs in a child process, `crash_node`. The death of a process does not touch the page cache, so these
//! machines live in memory where they can; [`power`] cuts the power of a real file system.
//!
//! It is over 450 lines because every fault is followed by the same look at the machine.

#![expect(
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests; what ran is worth a line"
)]

mod child;
mod image;
mod kill;
mod mounts;
mod power;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use archive_bitarchive::{CatalogEntry, Condition, Node, NodeError};
use archive_model::{FileName, Root};
use conformance::machine::{self, CrashMachine};
use tempfile::TempDir;

use self::child::{Child, Outcome};

/// The system calls of `archive_durable`, by the names it gives them.
const OPERATIONS: [&str; 15] = [
    "create",
    "open",
    "open for writing",
    "write",
    "read",
    "fallocate",
    "ftruncate",
    "fsync",
    "fsync directory",
    "linkat",
    "renameat2",
    "renameat",
    "unlinkat",
    "fchmod",
    "mkdirat",
];

/// Stored before the faults begin.
const KEPT: &str = "kept-50000";

/// The files that the node stores while the faults happen: nothing, one group, a file whose upload was cut, and one
/// whose upload died between linking its sidecar and linking the file.
const STORED: [&str; 4] = ["empty-0", "small-16384", "cut-100000", "left-20000"];

/// When the machine is prepared, when the fault happens, and when the node starts again, in seconds.
const BEFORE: i64 = 1_800_000_000;
const DURING: i64 = BEFORE + 100;
const AFTER: i64 = BEFORE + 200;

fn name(text: &str) -> FileName {
    FileName::new(text).unwrap()
}

/// Returns a place for machines: in memory, where there is one. The work there is done as an ordinary user.
fn scratch() -> TempDir {
    tools_testing::give_up_root();
    archive_bitarchive::testing::directory()
}

/// A machine in the state in which the faults begin, and copies of it.
struct Base {
    place: TempDir,
}

impl Base {
    fn new() -> Self {
        let place = scratch();
        let machine = CrashMachine::prepare(&place.path().join("base")).unwrap();
        let node = machine.start(BEFORE).unwrap();
        machine::store(&node, &name(KEPT), BEFORE).unwrap().unwrap();
        machine::cut(&node, &name("cut-100000"), 40_000).unwrap();
        drop(node);
        let died = Child::at(&machine, BEFORE)
            .fault("abort", 2)
            .on("linkat")
            .store(&["left-20000"]);
        assert!(died.aborted(), "{died:?}");
        assert_eq!(
            machine.incoming().unwrap().len(),
            2 + 3,
            "cut in the bytes, and after the sidecar"
        );
        Self { place }
    }

    /// Makes a machine of its own for one case.
    fn copy(&self) -> (TempDir, CrashMachine) {
        let place = tempfile::tempdir_in(self.place.path()).unwrap();
        let directory = place.path().join("machine");
        let status = Command::new("cp")
            .arg("-a")
            .arg(self.place.path().join("base"))
            .arg(&directory)
            .status()
            .unwrap();
        assert!(status.success());
        let machine = CrashMachine::at(&directory);
        relocate(&machine, &self.place.path().join("base"));
        (place, machine)
    }

    /// Returns the number of each system call when nothing fails.
    fn calls(&self) -> BTreeMap<&'static str, u64> {
        let count = |operation: Option<&str>| {
            let (_place, machine) = self.copy();
            let child = Child::at(&machine, DURING);
            let child = operation.map_or(child.clone(), |operation| child.on(operation));
            let outcome = child.store(&STORED);
            assert_eq!(outcome.acknowledged.len(), STORED.len(), "{outcome:?}");
            outcome.calls.unwrap()
        };
        let counted: BTreeMap<_, _> = OPERATIONS
            .into_iter()
            .map(|operation| (operation, count(Some(operation))))
            .collect();
        assert_eq!(
            counted.values().sum::<u64>(),
            count(None),
            "archive_durable makes a call that is not in OPERATIONS: {counted:?}"
        );
        counted
    }

    /// Runs one case for every system call of the run and says how many there were.
    fn at_every_call(&self, fault: &str, check: impl Fn(&Case<'_>)) {
        let mut cases = 0;
        for (operation, calls) in self.calls() {
            // Half a call is only different for a write.
            for at in (0..calls).filter(|_| fault != "torn" || operation == "write") {
                let (_place, machine) = self.copy();
                let outcome = Child::at(&machine, DURING)
                    .fault(fault, at)
                    .on(operation)
                    .store(&STORED);
                check(&Case {
                    what: format!("{fault} at {operation} {at}"),
                    operation,
                    machine: &machine,
                    outcome,
                });
                cases += 1;
            }
        }
        assert!(cases > 0);
        println!("{fault}: {cases} cases");
    }
}

/// A node knows its volumes by their paths, and a copy of a machine lies elsewhere than the machine.
fn relocate(machine: &CrashMachine, from: &Path) {
    let memory = machine.data().join("volumes.json");
    let text = std::fs::read_to_string(&memory).unwrap();
    let moved = text.replace(
        from.to_str().unwrap(),
        machine.directory().to_str().unwrap(),
    );
    assert_ne!(text, moved);
    archive_durable::replace_file(&memory, moved.as_bytes()).unwrap();
}

/// A run of the child, with its outcome.
struct Case<'a> {
    what: String,
    operation: &'static str,
    machine: &'a CrashMachine,
    outcome: Outcome,
}

impl Case<'_> {
    /// Everything that must hold after any fault, once the node is started again without one.
    fn holds(&self) {
        final_names_bear_whole_files(self.machine, &self.what);
        let mut node = self.machine.start(AFTER).unwrap();
        if machine::poison(&node).is_some() {
            let refused = machine::store(&node, &name("other-10"), AFTER).unwrap();
            assert!(
                matches!(
                    refused,
                    Err(NodeError::NoSpace(_) | NodeError::Offline { .. })
                ),
                "{}: a poisoned volume took a file",
                self.what
            );
            node.disks
                .volumes
                .clear_volume(&machine::volume().unwrap())
                .unwrap();
            drop(node);
            node = self.machine.start(AFTER).unwrap();
            assert_eq!(machine::poison(&node), None, "{}", self.what);
        }
        let listed = listing(&node);
        listed_files_are_right(&listed, &self.outcome.acknowledged, &self.what);
        everything_can_be_stored_again(&node, &listed, &self.what);
        node.files.reap_uploads(i64::MAX).unwrap();
        assert_eq!(self.machine.incoming().unwrap(), [""; 0], "{}", self.what);
        final_names_bear_whole_files(self.machine, &self.what);
        manifests_say_what_is_there(self.machine, &self.what);
    }
}

/// No file is shorter than what was admitted, or other.
fn final_names_bear_whole_files(machine: &CrashMachine, what: &str) {
    for (name, bytes) in machine.files().unwrap() {
        let expected = machine::content(&name).unwrap();
        assert_eq!(bytes.len(), expected.len(), "{what}: the size of {name}");
        assert!(bytes == expected, "{what}: the bytes of {name}");
    }
}

fn listing(node: &Node) -> BTreeMap<FileName, CatalogEntry> {
    let entries = node.files.list_entries(None).unwrap();
    entries
        .map(Result::unwrap)
        .map(|entry| (entry.name.clone(), entry))
        .collect()
}

fn expected_root(name: &FileName) -> Root {
    machine::root(&machine::content(name).unwrap())
}

/// Asserts that listed files have the right root, and acknowledged ones are listed as present, with that root.
fn listed_files_are_right(
    listed: &BTreeMap<FileName, CatalogEntry>,
    acknowledged: &BTreeMap<FileName, String>,
    what: &str,
) {
    for (name, entry) in listed {
        assert_eq!(entry.row.root, Some(expected_root(name)), "{what}: {name}");
        let is_fine = match &entry.row.condition {
            Condition::Present => true,
            Condition::Missing { .. } => !acknowledged.contains_key(name),
            Condition::Damaged { .. } | Condition::Unexpected { .. } => false,
        };
        assert!(is_fine, "{what}: {entry:?}");
    }
    for (name, root) in acknowledged {
        assert_eq!(expected_root(name).to_string(), *root, "{what}: {name}");
        assert!(
            listed.contains_key(name),
            "{what}: {name} was acknowledged and is not listed"
        );
    }
}

/// Each file is stored when it is sent again, or is refused because it is there already with the right root.
fn everything_can_be_stored_again(
    node: &Node,
    listed: &BTreeMap<FileName, CatalogEntry>,
    what: &str,
) {
    for name in STORED.into_iter().chain([KEPT]).map(name) {
        let root = match machine::store(node, &name, AFTER).unwrap() {
            Ok(entry) => entry.row.root,
            Err(NodeError::Taken { root, .. }) => {
                let was_there = listed.get(&name).map(|entry| &entry.row.condition);
                assert_eq!(
                    was_there,
                    Some(&Condition::Present),
                    "{what}: {name} is taken"
                );
                root
            }
            Err(other) => panic!("{what}: {name} cannot be stored again: {other}"),
        };
        assert_eq!(root, Some(expected_root(&name)), "{what}: {name}");
        let reading = node.files.open_file(&name).unwrap();
        assert_eq!(
            reading.data.root().unwrap(),
            expected_root(&name),
            "{what}: {name}"
        );
    }
}

fn manifests_say_what_is_there(machine: &CrashMachine, what: &str) {
    let files = machine.files().unwrap();
    let mut expected: Vec<_> = files
        .iter()
        .map(|(name, bytes)| format!("{}  {name}", machine::root(bytes)))
        .collect();
    expected.sort_unstable();
    assert_eq!(machine.manifest_lines().unwrap(), expected, "{what}");
}

/// Fails if a node acknowledges a file before the last call that makes the file durable, or if its death between two
/// calls leaves a short file under a final name.
#[test]
fn death_at_any_call_leaves_nothing_broken() {
    Base::new().at_every_call("abort", |case| {
        assert!(
            case.outcome.aborted(),
            "{}: it lived: {:?}",
            case.what,
            case.outcome
        );
        case.holds();
    });
}

/// Fails if a file, sidecar or manifest of which only a part was written is believed after a restart.
#[test]
fn death_within_any_write_leaves_nothing_broken() {
    Base::new().at_every_call("torn", |case| {
        assert!(
            case.outcome.aborted(),
            "{}: it lived: {:?}",
            case.what,
            case.outcome
        );
        case.holds();
    });
}

/// Fails if a file is acknowledged although a sync failed, or if a restart makes a volume whose sync failed usable
/// again.
#[test]
fn io_error_loses_nothing_and_failed_sync_poisons() {
    Base::new().at_every_call("eio", |case| {
        let outcome = &case.outcome;
        assert!(outcome.ended(), "{}: {outcome:?}", case.what);
        if case.operation.starts_with("fsync") {
            assert!(outcome.poisoned.is_some(), "{}: {outcome:?}", case.what);
            assert!(
                outcome.acknowledged.len() < STORED.len(),
                "{}: acknowledged after a failed sync: {outcome:?}",
                case.what
            );
        }
        let after_restart = machine::poison(&case.machine.start(AFTER).unwrap());
        assert_eq!(
            after_restart, outcome.poisoned,
            "{}: a restart forgets",
            case.what
        );
        case.holds();
    });
}

/// Fails if a single `ENOSPC`, at any call, takes the whole volume offline, or leaves a remnant that keeps the name
/// from being stored later.
#[test]
fn disk_that_was_full_once_stays_online() {
    Base::new().at_every_call("enospc", |case| {
        assert!(case.outcome.ended(), "{}: {:?}", case.what, case.outcome);
        assert_eq!(case.outcome.poisoned, None, "{}", case.what);
        case.holds();
    });
}

/// Fails if a disk that is full from some call on is taken for a broken one, or if a store that ran into it costs an
/// acknowledged file.
#[test]
fn a_disk_that_stays_full_is_refused_cleanly() {
    from_here("enospc-from", |case| {
        assert_eq!(case.outcome.poisoned, None, "{}", case.what);
    });
}

/// Fails if a disk that fails from some call on does not poison its volume, or lacks an acknowledged file once it works
/// again.
#[test]
fn revived_disk_has_all_acknowledged_files() {
    from_here("eio-from", |case| {
        assert!(
            case.outcome.poisoned.is_some(),
            "{}: {:?}",
            case.what,
            case.outcome
        );
    });
}

/// Everything fails from the nth call on, whichever it is.
fn from_here(fault: &str, check: impl Fn(&Case<'_>)) {
    let base = Base::new();
    let calls: u64 = base.calls().values().sum();
    for at in 0..calls {
        let (_place, machine) = base.copy();
        let outcome = Child::at(&machine, DURING).fault(fault, at).store(&STORED);
        let case = Case {
            what: format!("{fault} {at}"),
            operation: "any",
            machine: &machine,
            outcome,
        };
        assert!(case.outcome.ended(), "{}: {:?}", case.what, case.outcome);
        check(&case);
        case.holds();
    }
}

/// Fails if a node that dies while it rebuilds its catalog or a manifest does not start again, or lists less than it
/// has.
#[test]
fn node_that_dies_while_starting_starts_again() {
    at_every_call_of_a_start("abort", |case| {
        assert!(case.outcome.aborted(), "{}", case.what);
    });
}

/// Fails if a node that finds its disk full while it starts takes the volume offline, or keeps a catalog that lacks
/// files.
#[test]
fn disk_full_at_start_stays_online() {
    at_every_call_of_a_start("enospc", |case| {
        let node = case.machine.start(AFTER).unwrap();
        assert_eq!(machine::poison(&node), None, "{}", case.what);
    });
}

/// A start with work to do: nothing is known of the disk, and a manifest has lost its end.
fn at_every_call_of_a_start(fault: &str, check: impl Fn(&Case<'_>)) {
    let base = Base::new();
    let prepared = || {
        let (place, machine) = base.copy();
        std::fs::remove_dir_all(machine.data().join("catalog")).unwrap();
        cut_a_manifest(&machine);
        (place, machine)
    };
    let start = |machine: &CrashMachine| Child::at(machine, DURING).counting_from_start();
    let mut cases = 0;
    // A file that cannot even be opened for reading is another matter.
    for operation in OPERATIONS
        .into_iter()
        .filter(|operation| *operation != "open")
    {
        let (_place, machine) = prepared();
        let calls = start(&machine).on(operation).store(&[]).calls.unwrap();
        for at in 0..calls {
            let (_place, machine) = prepared();
            let case = Case {
                what: format!("{fault} at {operation} {at} of the start"),
                operation,
                outcome: start(&machine).fault(fault, at).on(operation).store(&[]),
                machine: &machine,
            };
            check(&case);
            case.holds();
            cases += 1;
        }
    }
    assert!(cases > 2, "only {cases} calls while starting");
    println!("{fault} at the start: {cases} cases");
}

fn cut_a_manifest(machine: &CrashMachine) {
    let directory = &blake3::hash(KEPT.as_bytes()).to_hex()[..2];
    let path = machine
        .disk()
        .join("files")
        .join(directory)
        .join("manifest-blake3.txt");
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(30).unwrap();
}
