//! Disks that come, go, are swapped, copied, full or failing.
#![expect(clippy::disallowed_methods, reason = "tests make and damage files")]

use archive_durable::volume::LABEL_NAME;

use super::*;
use crate::node::NodeOptions;
use crate::testing::NodeMachine;

/// Opens the volumes of a machine, as its node does.
fn open(machine: &NodeMachine) -> Volumes {
    let NodeOptions {
        node,
        replica,
        data,
        ..
    } = &machine.options;
    let paths = ["a", "b"].map(|disk| machine.path(disk));
    let volumes = Volumes::open(node, replica, data, &paths).unwrap();
    look_again(&volumes);
    volumes
}

fn with_two_volumes() -> NodeMachine {
    let machine = NodeMachine::with_disks(&["a", "b"]);
    let volumes = open(&machine);
    volumes.init_volume(&machine.path("a"), &id("va")).unwrap();
    volumes.init_volume(&machine.path("b"), &id("vb")).unwrap();
    assert_eq!(volumes.online_layouts().len(), 2);
    machine
}

fn swap(machine: &NodeMachine, one: &str, other: &str) {
    let aside = machine.path("aside");
    std::fs::rename(machine.path(one), &aside).unwrap();
    std::fs::rename(machine.path(other), machine.path(one)).unwrap();
    std::fs::rename(&aside, machine.path(other)).unwrap();
}

/// Looks again, and takes the volumes online that are there: these tests have no catalog.
fn look_again(volumes: &Volumes) -> Vec<VolumeId> {
    let waiting = volumes.refresh_layouts().unwrap();
    for (id, _) in &waiting {
        volumes.accept_volume(id);
    }
    waiting.into_iter().map(|(id, _)| id).collect()
}

fn id(text: &str) -> VolumeId {
    VolumeId::new(text).unwrap()
}

fn problem(volumes: &Volumes, volume: &str) -> Option<VolumeProblem> {
    volumes.find_volume(&id(volume)).unwrap().problem
}

/// Fails if a directory without a label is used as a volume.
#[test]
fn empty_directory_is_offline_until_initialised() {
    let machine = NodeMachine::with_disks(&["a", "b"]);
    let volumes = open(&machine);
    assert!(
        volumes
            .list_volumes()
            .iter()
            .all(|volume| volume.problem == Some(VolumeProblem::Unlabelled))
    );
    std::fs::write(machine.path("a").join("holiday.jpg"), "x").unwrap();
    assert!(matches!(
        volumes.init_volume(&machine.path("a"), &id("va")),
        Err(VolumesError::NotEmpty(_))
    ));
    Layout::new(&machine.path("b")).make_directories().unwrap();
    volumes.init_volume(&machine.path("b"), &id("vb")).unwrap();
    assert_eq!(
        open(&machine).online_layouts().len(),
        1,
        "known after a restart"
    );
}

/// Fails if an unmounted disk looks like mass loss, or does not come back.
#[test]
fn empty_mount_point_takes_volume_offline() {
    let machine = with_two_volumes();
    let volumes = open(&machine);
    std::fs::rename(machine.path("a"), machine.path("unmounted")).unwrap();
    std::fs::create_dir(machine.path("a")).unwrap();
    look_again(&volumes);
    assert_eq!(problem(&volumes, "va"), Some(VolumeProblem::Unlabelled));
    assert_eq!(volumes.list_volumes().len(), 2, "it stays known");
    std::fs::remove_dir(machine.path("a")).unwrap();
    look_again(&volumes);
    assert_eq!(problem(&volumes, "va"), Some(VolumeProblem::Absent));
    std::fs::rename(machine.path("unmounted"), machine.path("a")).unwrap();
    assert_eq!(look_again(&volumes), [id("va")]);
}

/// Fails if files are written to a disk that is mounted in the place of another.
#[test]
fn swapped_disks_are_offline_until_adopted() {
    let machine = with_two_volumes();
    swap(&machine, "a", "b");
    let volumes = open(&machine);
    assert!(matches!(
        problem(&volumes, "va"),
        Some(VolumeProblem::Swapped { .. })
    ));
    assert!(matches!(
        problem(&volumes, "vb"),
        Some(VolumeProblem::Swapped { .. })
    ));
    volumes.adopt_volume(&machine.path("a")).unwrap();
    volumes.adopt_volume(&machine.path("b")).unwrap();
    assert!(
        volumes.online_layouts().is_empty(),
        "not before they were reconciled with the catalog"
    );
    assert_eq!(look_again(&volumes), [id("va"), id("vb")]);
    assert_eq!(volumes.online_layouts().len(), 2);
}

/// Fails if an image of a disk from before its last adoption is used as if it were the volume itself.
#[test]
fn an_older_copy_of_a_disk_is_refused() {
    let machine = with_two_volumes();
    let label = machine.path("a").join(LABEL_NAME);
    let old = std::fs::read(&label).unwrap();
    open(&machine).adopt_volume(&machine.path("a")).unwrap();
    std::fs::write(&label, old).unwrap();
    assert_eq!(
        problem(&open(&machine), "va"),
        Some(VolumeProblem::OlderGeneration { found: 1, seen: 2 })
    );
}

/// Fails if a new disk at the path of an old one makes the node forget the old one.
#[test]
fn new_disk_hides_no_old_volume() {
    let machine = with_two_volumes();
    std::fs::rename(machine.path("a"), machine.path("broken")).unwrap();
    std::fs::create_dir(machine.path("a")).unwrap();
    let volumes = open(&machine);
    volumes.init_volume(&machine.path("a"), &id("vc")).unwrap();
    assert!(matches!(
        problem(&volumes, "va"),
        Some(VolumeProblem::Swapped { .. })
    ));
    assert_eq!(problem(&volumes, "vc"), None);
}

/// Fails if a volume is written to after a failed sync, or a full disk takes it offline.
#[test]
fn failed_sync_poisons_and_full_disk_not() {
    let machine = with_two_volumes();
    let volumes = open(&machine);
    let full = DiskError::new(
        "write",
        Path::new("x"),
        std::io::Error::from_raw_os_error(28),
    );
    volumes.blame_volume(&id("va"), &full).unwrap();
    assert_eq!(problem(&volumes, "va"), None);
    let failed = DiskError::new(
        "fsync",
        Path::new("x"),
        std::io::Error::from_raw_os_error(5),
    );
    volumes.blame_volume(&id("va"), &failed).unwrap();
    let volumes = open(&machine);
    assert!(matches!(
        problem(&volumes, "va"),
        Some(VolumeProblem::Poisoned(_))
    ));
    assert_eq!(
        volumes
            .choose_volume(1, &BTreeMap::new())
            .unwrap()
            .unwrap()
            .0,
        id("vb")
    );
    volumes.clear_volume(&id("va")).unwrap();
    assert_eq!(look_again(&volumes), [id("va")]);
    assert_eq!(problem(&open(&machine), "va"), None);
}

/// Fails if a file is sent to a volume that cannot take it.
#[test]
fn full_or_read_only_volume_is_not_chosen() {
    let machine = with_two_volumes();
    let volumes = open(&machine);
    assert!(
        volumes
            .choose_volume(u64::MAX, &BTreeMap::new())
            .unwrap()
            .is_none()
    );
    volumes.set_mode(&id("va"), Mode::ReadOnly).unwrap();
    volumes.set_mode(&id("vb"), Mode::Draining).unwrap();
    assert!(
        volumes
            .choose_volume(1, &BTreeMap::new())
            .unwrap()
            .is_none()
    );
    volumes.set_mode(&id("vb"), Mode::ReadWrite).unwrap();
    assert!(
        open(&machine)
            .choose_volume(1, &BTreeMap::new())
            .unwrap()
            .is_some()
    );
}

/// Fails if a node with a damaged memory accepts any disk at its paths.
#[test]
fn damaged_memory_is_refused() {
    let machine = with_two_volumes();
    std::fs::write(machine.path("data/volumes.json"), "{").unwrap();
    let node = NodeId::new("n1").unwrap();
    let replica = ReplicaId::new("one").unwrap();
    let error = Volumes::open(&node, &replica, &machine.path("data"), &[]).unwrap_err();
    assert!(matches!(error, VolumesError::Memory { .. }), "{error}");
}

/// Fails if a node that has run out of open files takes its volumes offline.
#[test]
fn exhausted_node_keeps_its_volumes_online() {
    let machine = with_two_volumes();
    let volumes = open(&machine);
    let exhausted = DiskError::new(
        "open",
        Path::new("x"),
        std::io::Error::from_raw_os_error(24),
    );
    assert!(exhausted.is_exhausted());
    let last = volumes.find_volume(&id("va")).unwrap();
    assert_eq!(
        as_seen(Err(VolumeProblem::Absent), Some(&last)),
        Some(VolumeProblem::Absent)
    );
    let unseen = VolumeProblem::Unseen(exhausted.to_string());
    assert_eq!(as_seen(Err(unseen.clone()), Some(&last)), None);
    assert_eq!(as_seen(Err(unseen.clone()), None), Some(unseen));
}

/// Fails if a look at the disks overwrites an order that came meanwhile.
#[test]
fn orders_during_a_look_are_not_undone() {
    let machine = with_two_volumes();
    let volumes = open(&machine);
    let failed = DiskError::new(
        "fsync",
        Path::new("x"),
        std::io::Error::from_raw_os_error(5),
    );
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            for _ in 0..200 {
                look_again(&volumes);
            }
        });
        for round in 0..100 {
            volumes.set_mode(&id("vb"), Mode::ReadOnly).unwrap();
            volumes.poison_volume(&id("va"), &failed).unwrap();
            assert!(
                matches!(problem(&volumes, "va"), Some(VolumeProblem::Poisoned(_))),
                "{round}"
            );
            assert_eq!(volumes.find_volume(&id("vb")).unwrap().mode, Mode::ReadOnly);
            volumes.clear_volume(&id("va")).unwrap();
            volumes.set_mode(&id("vb"), Mode::ReadWrite).unwrap();
        }
        looking.join().unwrap();
    });
    look_again(&volumes);
    assert_eq!(volumes.online_layouts().len(), 2);
}

/// Fails if a volume that was taken out of the settings continues to take files silently, or one that was never in
/// them is complained of.
#[test]
fn unlisted_volume_is_said_while_it_takes_files() {
    let machine = with_two_volumes();
    drop(open(&machine));
    let node = NodeId::new("n1").unwrap();
    let replica = ReplicaId::new("one").unwrap();
    let data = machine.path("data");
    let paths = [machine.path("b")];
    let volumes = Volumes::open(&node, &replica, &data, &paths).unwrap();
    look_again(&volumes);
    std::fs::create_dir(machine.path("c")).unwrap();
    volumes.init_volume(&machine.path("c"), &id("vc")).unwrap();
    let warned = |volume: &str| volumes.volume_warnings(&id(volume)).join("; ");
    assert!(warned("va").contains("`bitarchive.volumes` no longer names it"));
    assert_eq!((warned("vb"), warned("vc")), (String::new(), String::new()));
    assert_eq!(
        unlisted_volumes(&data, &paths).unwrap(),
        [(id("va"), machine.path("a"))]
    );
    volumes.set_mode(&id("va"), Mode::Draining).unwrap();
    assert_eq!(warned("va"), "");
    assert_eq!(unlisted_volumes(&data, &paths).unwrap(), []);
    volumes.note_foreign(&id("vb"), 2);
    assert!(warned("vb").contains("2 things"), "{}", warned("vb"));
}
