//! The power goes, or the disk fails, on a real file system: ext4 on a loop device, in a mount namespace of its own.
//!
//! Needs root. Where it cannot run, it says so: a test that did not run has not passed.

mod acts;
mod full;
mod inodes;

use std::collections::BTreeMap;

use archive_bitarchive::NodeError;
use archive_durable::DiskSeverity;
use archive_model::FileName;
use conformance::machine::{self, CrashMachine};

use super::child::Child;
use super::image::{FLUSHED, Image, UNFLUSHED, text};
use super::kill::chance;
use super::mounts::{self, run};
use super::{
    BEFORE, expected_root, final_names_bear_whole_files, listed_files_are_right, listing, name,
    scratch,
};

/// Runs the test of this name again where it may mount, and says whether this is that run.
fn has_own_mounts(test: &str) -> bool {
    let has = mounts::has_own_mounts(&format!("crash::power::{test}"));
    if has {
        // A node is an ordinary user of its disk.
        tools_testing::give_up_root();
    }
    has
}

/// Returns a machine with everything on this file system.
fn machine_on(image: &Image) -> CrashMachine {
    CrashMachine::prepare(&image.mounted().join("machine")).unwrap()
}

/// Makes a machine whose volume is on this file system; its node keeps everything else in a place that stays well.
fn machine_with_data_elsewhere(image: &mut Image) -> CrashMachine {
    let directory = image.elsewhere();
    image.show_disk_at(directory.join("disk"));
    CrashMachine::prepare(&directory).unwrap()
}

/// Everything that was acknowledged is there, and all that is listed is right or missing.
fn acknowledged_files_are_there(
    machine: &CrashMachine,
    acknowledged: &BTreeMap<FileName, String>,
    now: i64,
    what: &str,
) {
    final_names_bear_whole_files(machine, what);
    let node = machine.start(now).unwrap();
    assert_eq!(machine::poison(&node), None, "{what}");
    let listed = listing(&node);
    listed_files_are_right(&listed, acknowledged, what);
    for name in acknowledged.keys() {
        let reading = node.files.open_file(name).unwrap();
        assert_eq!(
            reading.data.root().unwrap(),
            expected_root(name),
            "{what}: {name}"
        );
    }
    for name in listed
        .into_keys()
        .filter(|name| !acknowledged.contains_key(name))
    {
        match machine::store(&node, &name, now).unwrap() {
            Ok(entry) => assert_eq!(entry.row.root, Some(expected_root(&name)), "{what}"),
            Err(NodeError::Taken { root, .. }) => {
                assert_eq!(root, Some(expected_root(&name)), "{what}");
            }
            Err(other) => panic!("{what}: {name} cannot be stored again: {other}"),
        }
    }
    node.files.reap_uploads(i64::MAX).unwrap();
    assert_eq!(machine.incoming().unwrap(), [""; 0], "{what}");
}

/// Fails if a file is acknowledged before its bytes, its name and its folder are synced, so that a power cut can take
/// it back.
#[test]
fn power_cuts_lose_nothing_that_was_acknowledged() {
    if !has_own_mounts("power_cuts_lose_nothing_that_was_acknowledged") {
        return;
    }
    let image = Image::new("256M", &[]);
    cut_power_again_and_again(&image, &machine_on(&image));
    // Where the catalog is elsewhere, its syncs do not happen to save what the volume has not synced.
    let mut image = Image::new("256M", &[]);
    let machine = machine_with_data_elsewhere(&mut image);
    cut_power_again_and_again(&image, &machine);
}

fn cut_power_again_and_again(image: &Image, machine: &CrashMachine) {
    let mut acknowledged = BTreeMap::new();
    for round in 0..12 {
        let how = if round % 2 == 0 { UNFLUSHED } else { FLUSHED };
        let now = BEFORE + round * 10;
        let mut child = Child::at(machine, now)
            .endless(&format!("p{round}"))
            .spawn();
        let stored = usize::try_from(chance(round, 40)).unwrap();
        assert!(
            child.heard("acknowledged", stored),
            "round {round}: {:?}",
            child.wait()
        );
        image.cut_power(how);
        child.kill();
        acknowledged.extend(child.wait().acknowledged);
        image.unmount();
        image.mount();
        let what = format!("after cut {round} ({how})");
        // Where writes failed before the kill, the volume is poisoned, as it should be.
        let node = machine.start(now + 5).unwrap();
        let volume = machine::volume().unwrap();
        node.disks.volumes.clear_volume(&volume).unwrap();
        drop(node);
        acknowledged_files_are_there(machine, &acknowledged, now + 5, &what);
    }
    println!("12 power cuts, {} files", acknowledged.len());
    assert!(
        acknowledged.len() > 100,
        "only {} files",
        acknowledged.len()
    );
}

/// Fails if a restart is enough to make a volume of a failed disk take files again, or if clearing the volume is not.
#[test]
fn volume_of_dead_disk_is_refused_until_cleared() {
    if !has_own_mounts("volume_of_dead_disk_is_refused_until_cleared") {
        return;
    }
    let mut image = Image::new("64M", &[]);
    let machine = machine_with_data_elsewhere(&mut image);
    let node = machine.start(BEFORE).unwrap();
    machine::store(&node, &name("before-100000"), BEFORE)
        .unwrap()
        .unwrap();
    image.cut_power(UNFLUSHED);
    let refused = machine::store(&node, &name("after-100000"), BEFORE)
        .unwrap()
        .unwrap_err();
    assert!(
        matches!(&refused, NodeError::Disk(error) if error.source.raw_os_error() == Some(5)),
        "{refused}"
    );
    assert!(machine::poison(&node).is_some());
    drop(node);
    image.unmount();
    image.mount();
    let node = machine.start(BEFORE + 10).unwrap();
    assert!(
        machine::poison(&node).is_some(),
        "a restart does not forget"
    );
    let refused = machine::store(&node, &name("after-100000"), BEFORE + 10).unwrap();
    assert!(matches!(refused, Err(NodeError::NoSpace(_))), "{refused:?}");
    node.disks
        .volumes
        .clear_volume(&machine::volume().unwrap())
        .unwrap();
    drop(node);
    let node = machine.start(BEFORE + 20).unwrap();
    machine::store(&node, &name("after-100000"), BEFORE + 20)
        .unwrap()
        .unwrap();
    final_names_bear_whole_files(&machine, "after the disk came back");
    assert_eq!(listing(&node).len(), 2);
}

/// Fails if a group that the disk cannot read is given out as zeros, or makes its file vanish from the listing.
#[test]
fn unreadable_bytes_are_errors_and_never_other_bytes() {
    if !has_own_mounts("unreadable_bytes_are_errors_and_never_other_bytes") {
        return;
    }
    let mut image = Image::new("64M", &[]);
    let machine = machine_with_data_elsewhere(&mut image);
    let node = machine.start(BEFORE).unwrap();
    let names: Vec<_> = (0..40)
        .map(|number| name(&format!("f{number:02}-1000000")))
        .collect();
    for name in &names {
        machine::store(&node, name, BEFORE).unwrap().unwrap();
    }
    run("sync", &["-f", text(&image.mounted())]);
    run("truncate", &["-s", "32M", text(&image.file())]);
    let mut good = 0;
    let mut unreadable = 0;
    for name in &names {
        match node.files.open_file(name).unwrap().data.root() {
            Ok(root) => {
                assert_eq!(root, expected_root(name), "{name}: other bytes");
                good += 1;
            }
            Err(error) => {
                assert_eq!(error.source.raw_os_error(), Some(5), "{name}: {error}");
                unreadable += 1;
            }
        }
    }
    println!("{good} files could be read, {unreadable} could not");
    assert!(
        good > 0 && unreadable > 0,
        "{good} good, {unreadable} unreadable"
    );
    assert_eq!(listing(&node).len(), names.len(), "all stay known");
}

/// Fails if a disk without free blocks, or without free inodes, is taken for a broken one, or loses a file that was
/// acknowledged before.
#[test]
fn full_disk_refuses_and_keeps_all_files() {
    if !has_own_mounts("full_disk_refuses_and_keeps_all_files") {
        return;
    }
    // Without room for bytes, then without room for one more file.
    let cases = [("48M", &[][..], 1_000_000), ("64M", &["-N", "700"], 100)];
    for (size, options, length) in cases {
        let mut image = Image::new(size, options);
        let machine = machine_with_data_elsewhere(&mut image);
        let node = machine.start(BEFORE).unwrap();
        let mut acknowledged = BTreeMap::new();
        let refused = loop {
            let name = name(&format!("f{}-{length}", acknowledged.len()));
            match machine::store(&node, &name, BEFORE).unwrap() {
                Ok(entry) => acknowledged.insert(name, entry.row.root.unwrap().to_string()),
                Err(refused) => break refused,
            };
        };
        let is_full = matches!(&refused, NodeError::NoSpace(_))
            || matches!(&refused, NodeError::Disk(error) if error.severity() == DiskSeverity::NoSpace);
        assert!(is_full, "{refused}");
        assert!(acknowledged.len() > 10, "{} files", acknowledged.len());
        assert_eq!(
            machine::poison(&node),
            None,
            "a full disk is not a broken one"
        );
        drop(node);
        acknowledged_files_are_there(&machine, &acknowledged, BEFORE + 10, "a full disk");
    }
}

/// Fails if a file is acknowledged although the catalog had no room for its row, or is lost to the next start.
#[test]
fn a_catalog_without_room_loses_nothing() {
    if !has_own_mounts("a_catalog_without_room_loses_nothing") {
        return;
    }
    let place = scratch();
    let machine = CrashMachine::at(&place.path().join("machine"));
    std::fs::create_dir_all(machine.data()).unwrap();
    run(
        "mount",
        &[
            "-t",
            "tmpfs",
            "-o",
            "size=1M",
            "tmpfs",
            text(&machine.data()),
        ],
    );
    let machine = CrashMachine::prepare(machine.directory()).unwrap();
    let node = machine.start(BEFORE).unwrap();
    let mut acknowledged = BTreeMap::new();
    let refused = loop {
        assert!(acknowledged.len() < 100_000, "it is never full");
        let name = name(&format!("{}-{}-10", acknowledged.len(), "long".repeat(50)));
        match machine::store(&node, &name, BEFORE).unwrap() {
            Ok(entry) => acknowledged.insert(name, entry.row.root.unwrap().to_string()),
            Err(refused) => break refused,
        };
    };
    assert!(matches!(refused, NodeError::Catalog(_)), "{refused}");
    drop(node);
    run("mount", &["-o", "remount,size=100M", text(&machine.data())]);
    println!("{} files in a catalog of 1 MiB", acknowledged.len());
    acknowledged_files_are_there(&machine, &acknowledged, BEFORE + 10, "with room again");
    run("umount", &[text(&machine.data())]);
}
