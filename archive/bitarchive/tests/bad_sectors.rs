//! A node whose disk cannot read single sectors and inodes: each is damage of one file, and the volume serves all
//! others.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "helpers of tests make and damage files"
)]

use std::ops::ControlFlow;
use std::path::PathBuf;

use archive_bitarchive::testing::{self, NodeMachine};
use archive_bitarchive::{CatalogEntry, Condition, Layout, Node, attic};
use archive_durable::{VolumeProblem, fault};
use archive_model::{FileName, Groups, VolumeId};
use archive_proof::Envelope;
use jiff::Timestamp;
use parking_lot::Mutex;

/// The list of unreadable sectors is one per process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Makes a machine with the files `bad` and `good`.
fn with_files() -> NodeMachine {
    readable();
    let mut machine = NodeMachine::new();
    machine.now = now();
    let (node, _) = machine.start();
    for file in ["bad", "good"] {
        let stored = machine.store(&node, file, &bytes(file));
        stored.expect("stored");
    }
    machine
}

fn manifest(machine: &NodeMachine, file: &str) -> PathBuf {
    let file = machine.target(file).file;
    file.with_file_name("manifest-blake3.txt")
}

fn start(machine: &NodeMachine) -> Node {
    machine.start().0
}

/// Starts with a catalog that is rebuilt.
fn start_anew(machine: &NodeMachine) -> Node {
    std::fs::remove_dir_all(machine.path("data/catalog")).expect("removed");
    start(machine)
}

const SIZE: usize = 40_000;

fn name(text: &str) -> FileName {
    FileName::new(text).expect("a name")
}

fn volume() -> VolumeId {
    VolumeId::new("v1").expect("an id")
}

fn now() -> Timestamp {
    Timestamp::from_second(1_900_000_000).expect("a time")
}

fn bytes(file: &str) -> Vec<u8> {
    let mut bytes = vec![0; SIZE];
    blake3::Hasher::new()
        .update(file.as_bytes())
        .finalize_xof()
        .fill(&mut bytes);
    bytes
}

fn admission(file: &str) -> Envelope {
    testing::sign(&testing::admission(file, &bytes(file), now()))
}

fn unreadable(paths: &[PathBuf]) {
    let all = paths.iter().map(|path| (path.clone(), 0..u64::MAX));
    fault::make_unreadable(all.collect());
}

fn readable() {
    fault::make_unreadable(Vec::new());
    fault::make_lost(Vec::new());
}

fn verify(node: &Node, file: &str) -> CatalogEntry {
    node.files
        .verify_copy(&name(file), None, now(), &mut |_| ControlFlow::Continue(()))
        .expect("verified")
}

fn entry(node: &Node, file: &str) -> CatalogEntry {
    node.files
        .find_copies(&name(file))
        .expect("found")
        .remove(0)
}

fn is_unreadable_as_a_whole(entry: &CatalogEntry) -> bool {
    let all = Groups::all(SIZE as u64);
    matches!(&entry.row.condition, Condition::Damaged { unreadable, .. } if *unreadable == all)
}

/// Checks that the volume serves its good files.
fn serves(node: &Node, what: &str) {
    let problem = node
        .disks
        .volumes
        .find_volume(&volume())
        .expect("known")
        .problem;
    assert_eq!(problem, None, "{what}");
    assert_eq!(verify(node, "good").row.condition, Condition::Present);
}

/// Fails if a sidecar on a bad sector costs more than its file, or the file cannot be adopted.
#[test]
fn unreadable_sidecar_makes_one_file_unexpected() {
    let _one = ONE_AT_A_TIME.lock();
    let machine = with_files();
    unreadable(&[machine.target("bad").sidecar]);
    let node = start(&machine);
    serves(&node, "the catalog knows it");
    drop(node);
    let node = start_anew(&machine);
    serves(&node, "the catalog was built again");
    let condition = entry(&node, "bad").row.condition;
    assert!(
        matches!(&condition, Condition::Unexpected { why } if why.contains("read")),
        "{condition:?}"
    );
    let adopted = node
        .files
        .adopt_file(&name("bad"), &volume(), &admission("bad"), now());
    assert_eq!(adopted.expect("adopted").row.condition, Condition::Present);
    // The bad sector lies in the attic now, and under the name lies another.
    readable();
    assert_eq!(
        node.files
            .read_admission(&entry(&node, "bad"))
            .expect("there"),
        admission("bad").as_str()
    );
    drop(node);
    let node = start_anew(&machine);
    assert_eq!(verify(&node, "bad").row.condition, Condition::Present);
}

/// Fails if a leftover sidecar on a bad sector keeps the volume offline.
#[test]
fn unreadable_leftover_sidecar_hinders_nothing() {
    let _one = ONE_AT_A_TIME.lock();
    let machine = with_files();
    std::fs::remove_file(machine.target("bad").file).expect("removed");
    unreadable(&[machine.target("bad").sidecar]);
    serves(&start(&machine), "the catalog knows it");
    serves(&start_anew(&machine), "the catalog was built again");
    readable();
    let node = start(&machine);
    assert!(matches!(
        entry(&node, "bad").row.condition,
        Condition::Missing { .. }
    ));
}

/// Fails if a manifest on a bad sector stays unreadable, or keeps the volume offline.
#[test]
fn unreadable_manifest_is_written_again() {
    let _one = ONE_AT_A_TIME.lock();
    let machine = with_files();
    let path = manifest(&machine, "bad");
    let before = std::fs::read(&path).expect("a list");
    unreadable(std::slice::from_ref(&path));
    let node = start(&machine);
    serves(&node, "a manifest");
    assert_eq!(std::fs::read(&path).expect("a list"), before);
    drop(node);
    // Something that is no file does no harm either.
    readable();
    std::fs::remove_file(&path).expect("removed");
    std::fs::create_dir(&path).expect("made");
    serves(&start(&machine), "a directory in the place of a manifest");
}

/// Fails if an inode on a bad sector costs more than its file.
#[test]
fn unreadable_inode_damages_one_file() {
    let _one = ONE_AT_A_TIME.lock();
    let machine = with_files();
    let node = start(&machine);
    fault::make_lost(vec![machine.target("bad").file]);
    assert!(is_unreadable_as_a_whole(&verify(&node, "bad")), "verified");
    serves(&node, "verified");
    drop(node);
    let node = start(&machine);
    serves(&node, "started");
    assert!(is_unreadable_as_a_whole(&entry(&node, "bad")), "started");
    drop(node);
    let node = start_anew(&machine);
    serves(&node, "the catalog was built again");
    assert!(is_unreadable_as_a_whole(&entry(&node, "bad")), "anew");
    drop(node);
    // Not even the sidecar of the file says what it was.
    unreadable(&[machine.target("bad").sidecar]);
    let node = start_anew(&machine);
    serves(&node, "nothing is known of it");
    let found = entry(&node, "bad");
    assert!(
        matches!(found.row.condition, Condition::Unexpected { .. }),
        "{found:?}"
    );
    readable();
    drop(node);
    let node = start(&machine);
    assert_eq!(entry(&node, "bad").row.condition, Condition::Present);
}

/// Fails if an unreadable inode among unfinished uploads, mends or attic items keeps the volume offline, or stops the
/// cleanup or the list of the attic.
#[test]
fn odd_inodes_in_other_places_hinder_nothing() {
    let _one = ONE_AT_A_TIME.lock();
    let machine = with_files();
    let places = ["incoming/u9", "incoming/x.mend", "attic/.x", "attic/y"];
    let paths: Vec<PathBuf> = places
        .iter()
        .map(|place| machine.path("disk").join(place))
        .collect();
    for path in &paths {
        std::fs::write(path, "x").expect("written");
    }
    fault::make_lost(paths);
    let node = start(&machine);
    serves(&node, "odd inodes");
    node.files.reap_uploads(i64::MAX).expect("reaped");
    let layout = Layout::new(&machine.path("disk"));
    let listed = attic::list_items(&layout, &volume()).expect("a list");
    assert_eq!(listed.len(), 2, "they are listed");
    readable();
}

/// Fails if a volume with a directory that cannot be listed is used, does not say which call failed, or stays offline
/// after the directory is back.
#[test]
fn a_volume_that_is_not_ready_says_why() {
    let _one = ONE_AT_A_TIME.lock();
    let machine = with_files();
    // No fault of one file, and no absence that could be made good: something else has the place of a directory.
    let file = machine.target("bad").file;
    let dir = file.parent().expect("a directory");
    std::fs::rename(dir, machine.path("away")).expect("moved");
    std::fs::write(dir, "x").expect("written");
    let node = start(&machine);
    let problem = |node: &Node| {
        node.disks
            .volumes
            .find_volume(&volume())
            .expect("known")
            .problem
    };
    for _ in 0..2 {
        let found = problem(&node);
        assert!(
            matches!(&found, Some(VolumeProblem::Unready(why)) if why.contains("getdents")),
            "{found:?}"
        );
        node.disks.refresh_volumes(now()).expect("looked");
    }
    std::fs::remove_file(dir).expect("removed");
    std::fs::rename(machine.path("away"), dir).expect("moved");
    node.disks.refresh_volumes(now()).expect("looked");
    serves(&node, "it came back");
}
