//! Older copies that are put back: a catalog is rebuilt, a volume is offline.

use archive_daemon::clock::ManualClock;
use archive_daemon::{Period, Worker};
use archive_durable::VolumeProblem;
use archive_durable::volume::identify_volume;

use super::attic::{removal, root};
use super::broken::verify;
use super::*;
use crate::heartbeat::DiskWorker;

fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .args([from, to])
        .status();
    assert!(copied.unwrap().success());
}

/// Fails if an older catalog is believed: it lacks what was stored or removed since.
#[test]
fn older_catalog_is_noticed_and_rebuilt() {
    let machine = NodeMachine::new();
    let content = bytes(50_000);
    let (node, _) = machine.start();
    for file in ["a", "gone", "removed"] {
        machine.store(&node, file, &content).unwrap();
    }
    machine.flip("a", &[1]);
    verify(&node, "a");
    drop(node);
    let catalog = machine.path("data/catalog");
    let old = machine.path("old");
    copy(&catalog, &old);

    let (node, found) = machine.start();
    assert_eq!(found.unchanged, 3, "it is not older than it was");
    machine.flip("a", &[1]);
    verify(&node, "a");
    let volume = VolumeId::new("v1").unwrap();
    node.attic
        .put_copy_aside(&removal("removed", volume.clone(), root(&content)), now())
        .unwrap();
    machine.store(&node, "new", &content).unwrap();
    std::fs::remove_file(machine.target("gone").file).unwrap();
    verify(&node, "gone");
    let before = without_verified(listing(&node));
    assert_eq!(before.len(), 3);
    node.catalog.stamp_reach();
    drop(node);

    let stamp = machine.path("data/catalog.stamp");
    for wrong in [None, Some("many"), Some("99999999999999")] {
        if let Some(number) = wrong {
            let written = std::fs::read_to_string(&stamp).unwrap();
            let (_, identity) = written.split_once(' ').unwrap();
            std::fs::write(&stamp, format!("{number} {identity}")).unwrap();
        } else {
            std::fs::remove_dir_all(&catalog).unwrap();
            copy(&old, &catalog);
        }
        for is_new in [true, false] {
            let (node, found) = machine.start();
            let added = if is_new { 2 } else { 0 };
            assert_eq!(found.added, added, "{wrong:?}: {found:?}");
            assert_eq!(without_verified(listing(&node)), before, "{wrong:?}");
            assert_eq!(
                node.files.count_findings().total(),
                1,
                "one is missing, nothing else is wrong"
            );
        }
    }
    // Without a stamp the catalog is believed as it is.
    std::fs::remove_file(&stamp).unwrap();
    let (node, found) = machine.start();
    assert_eq!((found.unchanged, found.added), (2, 0), "{found:?}");
    drop(node);
}

/// Fails if the sequence number alone decides which catalog is the older one: that of a rebuilt catalog begins again.
#[test]
fn catalog_of_before_a_rebuild_is_noticed() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    machine.store(&node, "a", b"bytes").unwrap();
    machine.store(&node, "stays", b"as it is").unwrap();
    for _ in 0..20 {
        verify(&node, "a");
    }
    drop(node);
    let catalog = machine.path("data/catalog");
    let old = machine.path("old");
    std::fs::rename(&catalog, &old).unwrap();
    let (node, found) = machine.start();
    assert_eq!((found.added, found.unchanged), (2, 0), "it is built again");
    machine.store(&node, "b", b"more").unwrap();
    std::fs::remove_file(machine.target("a").file).unwrap();
    verify(&node, "a");
    let before = without_verified(listing(&node));
    node.catalog.stamp_reach();
    drop(node);

    std::fs::remove_dir_all(&catalog).unwrap();
    copy(&old, &catalog);
    let (node, found) = machine.start();
    // Believed, the old catalog has the file that stays: it would be unchanged, and only `b` added.
    let counted = (found.added, found.missing, found.unchanged);
    assert_eq!(counted, (2, 1, 0), "{found:?}");
    assert_eq!(without_verified(listing(&node)), before);
}

/// Fails if a catalog whose MANIFEST lost its tail needs a person.
#[test]
fn catalog_with_cut_manifest_is_built_again() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    machine.store(&node, "a", b"bytes").unwrap();
    node.catalog.stamp_reach();
    drop(node);
    let catalog = machine.path("data/catalog");
    let is_manifest = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("MANIFEST")
    };
    for percent in [10, 50, 70, 90, 99] {
        let paths = std::fs::read_dir(&catalog).unwrap();
        let mut paths = paths.map(|entry| entry.unwrap().path());
        let manifest = paths.find(is_manifest).unwrap();
        let bytes = std::fs::read(&manifest).unwrap();
        std::fs::write(&manifest, &bytes[..bytes.len() * percent / 100]).unwrap();
        let (node, found) = machine.start();
        assert_eq!(found.added + found.unchanged, 1, "{percent} %: {found:?}");
        assert_eq!(listing(&node).len(), 1);
    }
}

/// Returns the generation in the label of the disk.
fn generation(machine: &NodeMachine) -> u64 {
    identify_volume(&machine.path("disk")).unwrap().generation
}

fn disk(node: &Node) -> Option<VolumeProblem> {
    let volume = VolumeId::new("v1").unwrap();
    node.disks.volumes.find_volume(&volume).unwrap().problem
}

/// Puts the copy `old` of the disk in the place of the disk.
fn put_back(machine: &NodeMachine, old: &Path) {
    std::fs::remove_dir_all(machine.path("disk")).unwrap();
    copy(old, &machine.path("disk"));
}

fn is_older(problem: Option<&VolumeProblem>) -> bool {
    matches!(problem, Some(VolumeProblem::OlderGeneration { .. }))
}

/// Fails if the generation of a volume does not go up when the node starts.
#[test]
fn older_copy_of_volume_is_offline() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    machine.store(&node, "a", b"before").unwrap();
    drop(node);
    let old = machine.path("old");
    copy(&machine.path("disk"), &old);
    let (node, _) = machine.start();
    machine.store(&node, "b", b"after").unwrap();
    drop(node);

    put_back(&machine, &old);
    let (node, found) = machine.start();
    assert!(is_older(disk(&node).as_ref()), "{:?}", disk(&node));
    assert_eq!(found, ReconcileReport::default(), "nothing is missing");
    assert!(machine.store(&node, "c", b"more").is_err());
    // Where the newer disk is lost, people take the older one, and what it lacks is missing.
    let found = node
        .disks
        .adopt_volume(&machine.path("disk"), None, now())
        .unwrap();
    assert_eq!((found.unchanged, found.missing), (1, 1));
    assert_eq!(disk(&node), None);
}

/// Fails if the generation does not go up after files were stored, or goes up when nothing has changed.
#[test]
fn copy_made_before_the_last_store_is_offline() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    machine.store(&node, "a", b"before").unwrap();
    node.disks.volumes.raise_changed().unwrap();
    let before = generation(&machine);
    node.disks.volumes.raise_changed().unwrap();
    assert_eq!(generation(&machine), before, "nothing has changed");
    let old = machine.path("old");
    copy(&machine.path("disk"), &old);
    machine.store(&node, "b", b"after").unwrap();
    node.disks.volumes.raise_changed().unwrap();
    drop(node);

    put_back(&machine, &old);
    let (node, _) = machine.start();
    assert!(is_older(disk(&node).as_ref()), "{:?}", disk(&node));
}

/// Fails if a removal is no change of its volume: a copy made before it would bring the file back.
#[test]
fn removal_raises_generation() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    machine.store(&node, "a", b"bytes").unwrap();
    node.disks.volumes.raise_changed().unwrap();
    let before = generation(&machine);
    let volume = VolumeId::new("v1").unwrap();
    node.attic
        .put_copy_aside(&removal("a", volume.clone(), root(b"bytes")), now())
        .unwrap();
    node.disks.volumes.raise_changed().unwrap();
    assert_eq!(generation(&machine), before + 1);
}

/// Fails if the worker that looks at the disks raises no generation, or that of a volume that has not changed.
#[tokio::test]
async fn look_raises_generation_of_changed_volume() {
    let machine = NodeMachine::new();
    let node = Arc::new(machine.start().0);
    let mut look = DiskWorker {
        node: Arc::clone(&node),
        clock: ManualClock::new(now()).clock(),
        every: Period::from_secs(5),
        keep_uploads: Period::from_secs(5),
    };
    let before = generation(&machine);
    look.step().await.unwrap();
    assert_eq!(generation(&machine), before, "nothing has changed");
    machine.store(&node, "a", b"bytes").unwrap();
    look.step().await.unwrap();
    assert_eq!(generation(&machine), before + 1);
}

/// Fails if `volumes.json` is written before the label: where only that was written, the disk itself would pass for an
/// older copy.
#[test]
fn unwritten_label_leaves_remembered_generation() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    machine.store(&node, "a", b"bytes").unwrap();
    let before = generation(&machine);
    // The label is written by way of this directory.
    let incoming = machine.path("disk/incoming");
    let away = machine.path("away");
    std::fs::rename(&incoming, &away).unwrap();
    node.disks.volumes.raise_changed().unwrap();
    assert_eq!(generation(&machine), before, "it cannot be written");
    std::fs::rename(&away, &incoming).unwrap();
    node.disks.refresh_volumes(now()).unwrap();
    assert_eq!(disk(&node), None);
    drop(node);
    let (node, _) = machine.start();
    assert_eq!(disk(&node), None);
}

/// Fails if a label that is newer than what `volumes.json` remembers takes the disk offline.
#[test]
fn crash_between_label_and_memory_is_no_fault() {
    let machine = NodeMachine::new();
    drop(machine.start());
    let memory = machine.path("data/volumes.json");
    let before = std::fs::read(&memory).unwrap();
    for _ in 0..3 {
        let seen = generation(&machine);
        let (node, _) = machine.start();
        assert_eq!(disk(&node), None);
        assert_eq!(generation(&machine), seen + 1);
        drop(node);
        std::fs::write(&memory, &before).unwrap();
    }
}

/// Fails if an older copy that is mounted under a running node makes files of the newer one missing.
#[test]
fn older_copy_under_running_node_is_not_judged() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    machine.store(&node, "a", b"before").unwrap();
    node.disks.volumes.raise_changed().unwrap();
    let old = machine.path("old");
    copy(&machine.path("disk"), &old);
    machine.store(&node, "b", b"after").unwrap();
    node.disks.volumes.raise_changed().unwrap();
    put_back(&machine, &old);
    node.files.find_copies_on_disk(&name("b"), now()).unwrap();
    node.disks
        .walk_volumes(now(), &mut |_| std::ops::ControlFlow::Continue(()))
        .unwrap();
    let mut entries = listing(&node);
    entries.retain(|entry| entry.row.condition == Condition::Present);
    assert_eq!(entries.len(), 2);
    node.disks.refresh_volumes(now()).unwrap();
    assert!(is_older(disk(&node).as_ref()), "{:?}", disk(&node));
}
