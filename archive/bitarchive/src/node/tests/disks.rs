//! The verbs of disks: each of them, after a restart, and with the wrong disk there.

use archive_durable::volume::{LABEL_NAME, identify_volume, label_volume};
use archive_durable::{DiskError, VolumeIdentity, VolumeProblem};
use archive_model::Mode;

use super::*;
use crate::volumes::VolumesError;

pub(super) fn id(text: &str) -> VolumeId {
    VolumeId::new(text).unwrap()
}

/// Returns a machine with a second disk that no setting names.
pub(super) fn with_two() -> NodeMachine {
    let machine = NodeMachine::new();
    std::fs::create_dir(machine.path("two")).unwrap();
    let (node, _) = machine.start();
    node.disks
        .init_volume(&machine.path("two"), &id("v2"), now())
        .unwrap();
    machine
}

fn problem(node: &Node, volume: &str) -> Option<VolumeProblem> {
    node.disks.volumes.find_volume(&id(volume)).unwrap().problem
}

pub(super) fn where_is(node: &Node, file: &str) -> Vec<(String, bool)> {
    let entries = node.files.find_copies(&name(file)).unwrap();
    let is_there = |entry: &CatalogEntry| entry.row.condition == Condition::Present;
    entries
        .iter()
        .map(|entry| (entry.volume.to_string(), is_there(entry)))
        .collect()
}

pub(super) fn store_on(machine: &NodeMachine, node: &Node, volume: &str, file: &str, bytes: &[u8]) {
    let others: Vec<VolumeId> = node
        .disks
        .volumes
        .list_volumes()
        .into_iter()
        .filter(|other| other.mode == Mode::ReadWrite && other.problem.is_none())
        .filter_map(|other| other.id.filter(|other| *other != id(volume)))
        .collect();
    for other in &others {
        node.disks.set_volume_mode(other, Mode::ReadOnly).unwrap();
    }
    let entry = machine.store(node, file, bytes).unwrap();
    for other in &others {
        node.disks.set_volume_mode(other, Mode::ReadWrite).unwrap();
    }
    assert_eq!(entry.volume, id(volume));
}

/// Fails if a restart forgets a volume that was labelled by an order.
#[test]
fn new_volume_is_found_without_a_setting() {
    let machine = with_two();
    let (node, _) = machine.start();
    assert_eq!(node.disks.volumes.online_layouts().len(), 2);
    store_on(&machine, &node, "v2", "a", b"one");
    drop(node);
    let (node, found) = machine.start();
    assert_eq!(found.unchanged, 1);
    assert_eq!(where_is(&node, "a"), [("v2".to_owned(), true)]);
    // The disk is away: known, offline, and not missing.
    std::fs::rename(machine.path("two"), machine.path("away")).unwrap();
    node.disks.refresh_volumes(now()).unwrap();
    assert_eq!(problem(&node, "v2"), Some(VolumeProblem::Absent));
    std::fs::create_dir(machine.path("two")).unwrap();
    node.disks.refresh_volumes(now()).unwrap();
    assert_eq!(problem(&node, "v2"), Some(VolumeProblem::Unlabelled));
    assert_eq!(where_is(&node, "a"), [("v2".to_owned(), true)]);
}

/// Fails if a disk with files, within another volume, or under a taken id becomes a volume.
#[test]
fn only_empty_separate_disks_are_labelled() {
    let machine = with_two();
    let (node, _) = machine.start();
    for place in ["three", "full", "data/inner", "disk/incoming/inner"] {
        std::fs::create_dir(machine.path(place)).unwrap();
    }
    std::fs::write(machine.path("full/x"), "x").unwrap();
    std::fs::write(machine.path("file"), "x").unwrap();
    let init = |place: &Path, volume: &str| node.disks.init_volume(place, &id(volume), now());
    let refused = |place: &str, volume: &str| match init(&machine.path(place), volume) {
        Err(NodeError::Volumes(error)) => error,
        other => panic!("{place} {volume}: {other:?}"),
    };
    assert!(matches!(refused("three", "v1"), VolumesError::Known(_)));
    assert!(matches!(refused("full", "v3"), VolumesError::NotEmpty(_)));
    assert!(matches!(
        refused("disk", "v3"),
        VolumesError::Labelled { .. }
    ));
    assert!(matches!(refused("data", "v3"), VolumesError::Nested { .. }));
    assert!(matches!(
        refused("data/inner", "v3"),
        VolumesError::Nested { .. }
    ));
    assert!(matches!(
        refused("disk/incoming/inner", "v3"),
        VolumesError::Nested { .. }
    ));
    assert!(matches!(refused("", "v3"), VolumesError::Nested { .. }));
    assert!(matches!(
        refused("none", "v3"),
        VolumesError::Unusable { .. }
    ));
    assert!(matches!(
        refused("file", "v3"),
        VolumesError::Unusable { .. }
    ));
    assert!(matches!(
        init(Path::new("three"), "v3"),
        Err(NodeError::Volumes(VolumesError::Path { .. }))
    ));
    assert_eq!(std::fs::read_dir(machine.path("three")).unwrap().count(), 0);
    // An order that was cut off after the label is completed.
    Layout::new(&machine.path("three"))
        .make_directories()
        .unwrap();
    let identity = VolumeIdentity {
        volume: id("v3"),
        node: node.id.clone(),
        replica: node.replica.clone(),
        generation: 1,
    };
    label_volume(&machine.path("three"), &identity).unwrap();
    assert!(matches!(
        refused("three", "v4"),
        VolumesError::Labelled { .. }
    ));
    init(&machine.path("three"), "v3").unwrap();
    assert_eq!(problem(&node, "v3"), None);
}

/// Fails if a disk of another node cannot be adopted, or its files are not known afterwards.
#[test]
fn adopted_disk_brings_its_files() {
    let other = with_two();
    let (node, _) = other.start();
    store_on(&other, &node, "v2", "a", &bytes(50_000));
    store_on(&other, &node, "v2", "b", b"two");
    drop(node);
    let label_path = other.path("two").join(LABEL_NAME);
    let text = std::fs::read_to_string(&label_path).unwrap();
    std::fs::write(&label_path, text.replace("\"n1\"", "\"n7\"")).unwrap();

    let machine = NodeMachine::new();
    std::fs::rename(other.path("two"), machine.path("moved")).unwrap();
    let (node, _) = machine.start();
    let adopt = |place: &str, named: Option<&VolumeId>| {
        node.disks.adopt_volume(&machine.path(place), named, now())
    };
    let old = std::fs::read(machine.path("moved").join(LABEL_NAME)).unwrap();
    assert!(matches!(
        adopt("moved", Some(&id("v9"))),
        Err(NodeError::Volumes(VolumesError::OtherVolume { .. }))
    ));
    assert!(matches!(
        adopt("data", None),
        Err(NodeError::Volumes(VolumesError::Unusable { .. }))
    ));
    assert_eq!(adopt("moved", Some(&id("v2"))).unwrap().added, 2);
    assert_eq!(where_is(&node, "a"), [("v2".to_owned(), true)]);
    let generation = || identify_volume(&machine.path("moved")).unwrap().generation;
    let taken_over = generation();
    drop(node);
    let (node, found) = machine.start();
    assert_eq!((found.unchanged, problem(&node, "v2")), (2, None));
    let seen = generation();
    assert!(seen > taken_over, "taken into use again");
    // An older copy of the disk, as it was before.
    std::fs::write(machine.path("moved").join(LABEL_NAME), &old).unwrap();
    node.disks.refresh_volumes(now()).unwrap();
    assert!(matches!(
        problem(&node, "v2"),
        Some(VolumeProblem::Foreign { .. })
    ));
    node.disks
        .set_volume_mode(&id("v2"), Mode::Draining)
        .unwrap();
    node.disks
        .volumes
        .poison_volume(
            &id("v2"),
            &DiskError::new("fsync", Path::new("x"), std::io::Error::other("x")),
        )
        .unwrap();
    node.disks
        .adopt_volume(&machine.path("moved"), None, now())
        .unwrap();
    assert!(generation() > seen, "above every generation that was seen");
    let volume = node.disks.volumes.find_volume(&id("v2")).unwrap();
    assert_eq!(volume.mode, Mode::Draining, "it stays what people made it");
    assert!(matches!(volume.problem, Some(VolumeProblem::Poisoned(_))));
    node.disks.clear_volume(&id("v2"), now()).unwrap();
    assert_eq!(problem(&node, "v2"), None);
}

/// Fails if a copy of a disk is adopted while the disk itself is in use.
#[test]
fn copy_of_a_disk_in_use_is_refused() {
    let machine = with_two();
    let (node, _) = machine.start();
    std::fs::create_dir(machine.path("copy")).unwrap();
    let label = machine.path("two").join(LABEL_NAME);
    std::fs::copy(&label, machine.path("copy").join(LABEL_NAME)).unwrap();
    let adopt = || node.disks.adopt_volume(&machine.path("copy"), None, now());
    assert!(matches!(
        adopt(),
        Err(NodeError::Volumes(VolumesError::InUse { .. }))
    ));
    std::fs::rename(machine.path("two"), machine.path("away")).unwrap();
    node.disks.refresh_volumes(now()).unwrap();
    adopt().unwrap();
    std::fs::rename(machine.path("away"), machine.path("two")).unwrap();
    node.disks.refresh_volumes(now()).unwrap();
    let volume = node.disks.volumes.find_volume(&id("v2")).unwrap();
    assert_eq!((volume.path, volume.problem), (machine.path("copy"), None));
}

/// Fails if a restart resets a mode, or a volume that takes no files gets one.
#[test]
fn modes_survive_restart_and_refuse_files() {
    let machine = with_two();
    let (node, _) = machine.start();
    node.disks
        .set_volume_mode(&id("v1"), Mode::ReadOnly)
        .unwrap();
    node.disks
        .set_volume_mode(&id("v2"), Mode::Draining)
        .unwrap();
    drop(node);
    let (node, _) = machine.start();
    let mode = |volume: &str| node.disks.volumes.find_volume(&id(volume)).unwrap().mode;
    assert_eq!((mode("v1"), mode("v2")), (Mode::ReadOnly, Mode::Draining));
    assert!(matches!(
        machine.store(&node, "a", b"x"),
        Err(NodeError::NoSpace(_))
    ));
    node.disks
        .set_volume_mode(&id("v1"), Mode::ReadWrite)
        .unwrap();
    machine.store(&node, "a", b"x").unwrap();
    for mode in [Mode::ReadOnly, Mode::Draining] {
        node.disks.set_node_mode(mode).unwrap();
        let refused = machine.store(&node, "b", b"x").unwrap_err();
        assert!(
            matches!(&refused, NodeError::TakesNothing { mode: said, .. } if *said == mode),
            "{refused}"
        );
        node.files.open_file(&name("a")).unwrap();
    }
    drop(node);
    let (node, _) = machine.start();
    assert_eq!(node.disks.volumes.mode(), Mode::Draining);
    assert_eq!(crate::rpc::node_report(&node).usable, 0);
    node.disks.set_node_mode(Mode::ReadWrite).unwrap();
    assert!(crate::rpc::node_report(&node).usable > 0);
    machine.store(&node, "b", b"x").unwrap();
    assert!(matches!(
        node.disks.set_volume_mode(&id("v9"), Mode::ReadOnly),
        Err(NodeError::Volumes(VolumesError::Unknown(_)))
    ));
}

/// Fails if the files of a retired volume still count, or a restart brings the volume back.
#[test]
fn retired_volume_makes_its_files_missing() {
    for is_dead in [false, true] {
        let machine = with_two();
        let (node, _) = machine.start();
        store_on(&machine, &node, "v1", "a", b"one");
        store_on(&machine, &node, "v1", "b", b"two");
        store_on(&machine, &node, "v2", "c", b"three");
        if is_dead {
            std::fs::rename(machine.path("disk"), machine.path("dead")).unwrap();
            node.disks.refresh_volumes(now()).unwrap();
        }
        assert_eq!(node.disks.retire_volume(&id("v1"), now()).unwrap(), 2);
        assert_eq!(
            node.disks.retire_volume(&id("v1"), now()).unwrap(),
            0,
            "asked for twice"
        );
        assert_eq!(where_is(&node, "a"), [("v1".to_owned(), false)]);
        assert_eq!(where_is(&node, "c"), [("v2".to_owned(), true)]);
        if is_dead {
            std::fs::rename(machine.path("dead"), machine.path("disk")).unwrap();
        }
        drop(node);
        let (node, found) = machine.start();
        assert_eq!((found.unchanged, found.added), (1, 0), "{found:?}");
        assert_eq!(problem(&node, "v1"), Some(VolumeProblem::Retired));
        let volumes = node.disks.volumes.list_volumes();
        assert_eq!(volumes.len(), 2, "nothing is a gap: {volumes:?}");
        // The same name, on another volume: the alarm is answered.
        machine.store(&node, "a", b"one").unwrap();
        assert_eq!(where_is(&node, "a"), [("v2".to_owned(), true)]);
        for verb in [
            node.disks.set_volume_mode(&id("v1"), Mode::ReadWrite),
            node.disks.clear_volume(&id("v1"), now()).map(drop),
            node.disks
                .adopt_volume(&machine.path("disk"), None, now())
                .map(drop),
        ] {
            assert!(
                matches!(verb, Err(NodeError::Volumes(VolumesError::Retired(_)))),
                "{verb:?}"
            );
        }
        // Mounted elsewhere it is distinguished as well, and a new disk takes its place.
        std::fs::rename(machine.path("disk"), machine.path("old")).unwrap();
        std::fs::create_dir(machine.path("disk")).unwrap();
        assert!(matches!(
            node.disks
                .init_volume(&machine.path("disk"), &id("v1"), now()),
            Err(NodeError::Volumes(VolumesError::Known(_)))
        ));
        node.disks
            .init_volume(&machine.path("disk"), &id("v3"), now())
            .unwrap();
        assert_eq!(problem(&node, "v3"), None);
        drop(node);
        std::fs::remove_dir_all(machine.path("data/catalog")).unwrap();
        let (node, _) = machine.start();
        assert_eq!(problem(&node, "v1"), Some(VolumeProblem::Retired));
        assert!(where_is(&node, "b").is_empty(), "its disk is not looked at");
    }
}

/// Fails if an older catalog makes the files of a retired volume count again.
#[test]
fn older_catalog_keeps_a_volume_retired() {
    let machine = with_two();
    let (node, _) = machine.start();
    store_on(&machine, &node, "v1", "a", b"one");
    let entry = node.files.find_copies(&name("a")).unwrap();
    node.disks.retire_volume(&id("v1"), now()).unwrap();
    node.catalog.put_entries(&entry).unwrap();
    drop(node);
    let (node, _) = machine.start();
    assert_eq!(where_is(&node, "a"), [("v1".to_owned(), false)]);
}

/// Fails if a drained file cannot be stored on another volume, or readers get the old copy.
#[test]
fn drain_moves_files_and_readers_follow() {
    let machine = with_two();
    let (node, _) = machine.start();
    store_on(&machine, &node, "v1", "a", &bytes(40_000));
    store_on(&machine, &node, "v1", "b", b"two");
    assert!(matches!(
        machine.store(&node, "a", &bytes(40_000)),
        Err(NodeError::Taken { .. })
    ));
    node.disks
        .set_volume_mode(&id("v1"), Mode::Draining)
        .unwrap();
    let other = machine.store(&node, "a", b"other bytes").unwrap_err();
    assert!(
        matches!(other, NodeError::Taken { .. }),
        "one name, one content: {other}"
    );
    assert_eq!(machine.incoming(), 0);
    machine.store(&node, "a", &bytes(40_000)).unwrap();
    let expected = [("v2".to_owned(), true), ("v1".to_owned(), true)];
    assert_eq!(
        where_is(&node, "a"),
        expected,
        "the one that stays is first"
    );
    assert_eq!(
        node.files.open_file(&name("a")).unwrap().entry.volume,
        id("v2")
    );
    assert!(matches!(
        machine.store(&node, "a", &bytes(40_000)),
        Err(NodeError::Taken { .. })
    ));
    drop(node);
    let (node, found) = machine.start();
    assert_eq!(found.unchanged, 3);
    // If the new copy cannot be opened, the old one serves.
    std::fs::remove_file(
        Layout::new(&machine.path("two"))
            .target_paths(&name("a"))
            .file,
    )
    .unwrap();
    assert_eq!(
        node.files.open_file(&name("a")).unwrap().entry.volume,
        id("v1")
    );
    // A disk that dies while it is drained does not stop that.
    std::fs::rename(machine.path("disk"), machine.path("dead")).unwrap();
    node.disks.refresh_volumes(now()).unwrap();
    machine.store(&node, "b", b"two").unwrap();
    assert_eq!(
        node.files.open_file(&name("b")).unwrap().entry.volume,
        id("v2")
    );
}

/// Fails if a second copy is kept although its volume is no longer drained.
#[test]
fn second_copy_needs_a_drain_until_its_end() {
    let machine = with_two();
    let (node, _) = machine.start();
    store_on(&machine, &node, "v1", "a", b"one");
    node.disks
        .set_volume_mode(&id("v1"), Mode::Draining)
        .unwrap();
    let upload = UploadId::new("second").unwrap();
    let mut receiving = node.files.begin_upload(&upload, &name("a"), 3).unwrap();
    receiving.write_all(b"one").unwrap();
    node.disks
        .set_volume_mode(&id("v1"), Mode::ReadWrite)
        .unwrap();
    let signed = sign(&admission("a", b"one", "second"));
    assert!(matches!(
        receiving.commit_upload(&signed, now()),
        Err(NodeError::Taken { .. })
    ));
    assert_eq!(where_is(&node, "a"), [("v1".to_owned(), true)]);
}

/// Fails if a file that ends on a volume which was retired meanwhile counts as present.
#[test]
fn volume_retired_during_upload_gets_no_file() {
    let machine = with_two();
    let (node, _) = machine.start();
    node.disks
        .set_volume_mode(&id("v2"), Mode::ReadOnly)
        .unwrap();
    let upload = UploadId::new("u1").unwrap();
    let mut receiving = node.files.begin_upload(&upload, &name("a"), 3).unwrap();
    receiving.write_all(b"one").unwrap();
    node.disks.retire_volume(&id("v1"), now()).unwrap();
    let signed = sign(&admission("a", b"one", "u1"));
    assert!(matches!(
        receiving.commit_upload(&signed, now()),
        Err(NodeError::Offline { .. })
    ));
    assert!(where_is(&node, "a").is_empty());
}

/// Fails if a volume that was poisoned serves files before they are compared with the catalog.
#[test]
fn cleared_volume_is_reconciled_before_it_serves() {
    let machine = with_two();
    let (node, _) = machine.start();
    store_on(&machine, &node, "v1", "a", b"one");
    let failed = DiskError::new(
        "fsync",
        Path::new("x"),
        std::io::Error::from_raw_os_error(5),
    );
    node.disks
        .volumes
        .poison_volume(&id("v1"), &failed)
        .unwrap();
    std::fs::remove_file(machine.target("a").file).unwrap();
    assert_eq!(
        node.disks.clear_volume(&id("v1"), now()).unwrap().missing,
        1
    );
    assert_eq!(where_is(&node, "a"), [("v1".to_owned(), false)]);
}

/// Fails if a volume that was retired by mistake cannot come back, or comes back without its files or over a restart as
/// retired.
#[test]
fn reinstated_volume_has_its_files_again() {
    let machine = with_two();
    let (node, _) = machine.start();
    store_on(&machine, &node, "v1", "a", b"one");
    node.disks.retire_volume(&id("v1"), now()).unwrap();
    assert_eq!(where_is(&node, "a"), [("v1".to_owned(), false)]);
    for _twice in 0..2 {
        node.disks.reinstate_volume(&id("v1"), now()).unwrap();
        assert_eq!(problem(&node, "v1"), None);
        assert_eq!(where_is(&node, "a"), [("v1".to_owned(), true)]);
    }
    assert!(node.disks.reinstate_volume(&id("nine"), now()).is_err());
    drop(node);
    let (node, _) = machine.start();
    assert_eq!(problem(&node, "v1"), None);
    assert_eq!(where_is(&node, "a"), [("v1".to_owned(), true)]);
}
