//! Inodes that a real file system refuses to read: each is damage of one file, and the volume serves all others.

use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;

use archive_bitarchive::{CatalogEntry, Condition, Layout, Node};
use archive_model::{FileName, Groups};
use conformance::machine::{self, CrashMachine};
use jiff::Timestamp;

use super::super::{BEFORE, name};
use super::{Image, has_own_mounts, machine_with_data_elsewhere, text};

/// Flips a byte of an inode, so that its checksum is wrong.
fn spoil(image: &Path, inode: u64) {
    let ask = |question: &str| {
        let output = Command::new("debugfs")
            .args(["-R", question, text(image)])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let number = |text: &str, before: &str| -> u64 {
        let rest = text.split_once(before).unwrap().1.trim();
        let end = rest.find(|c: char| !c.is_ascii_hexdigit() && c != 'x');
        let digits = &rest[..end.unwrap_or(rest.len())];
        match digits.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
            None => digits.parse().unwrap(),
        }
    };
    let block_size = number(&ask("stats -h"), "Block size:");
    let place = ask(&format!("imap <{inode}>"));
    let at = number(&place, "located at block ") * block_size + number(&place, "offset ");
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(image)
        .unwrap();
    // The time of its last change.
    let mut byte = [0];
    file.read_exact_at(&mut byte, at + 0x0c).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at + 0x0c).unwrap();
}

fn serves(node: &Node, good: &FileName, what: &str) {
    let volumes = node.disks.volumes.list_volumes();
    assert!(
        volumes.iter().all(|volume| volume.problem.is_none()),
        "{what}: {volumes:?}"
    );
    let entry = verify(node, good);
    assert_eq!(entry.row.condition, Condition::Present, "{what}");
}

fn verify(node: &Node, name: &FileName) -> CatalogEntry {
    let now = Timestamp::from_second(BEFORE).unwrap();
    node.files
        .verify_copy(name, None, now, &mut |_| ControlFlow::Continue(()))
        .unwrap()
}

fn is_lost(entry: &CatalogEntry) -> bool {
    let all = Groups::all(50_000);
    matches!(&entry.row.condition, Condition::Damaged { unreadable, .. } if *unreadable == all)
}

/// Fails if one inode that the file system refuses to read takes the volume offline, or keeps the node from starting or
/// from listing the other files.
#[test]
fn unreadable_inodes_are_damage_of_single_files() {
    if !has_own_mounts("inodes::unreadable_inodes_are_damage_of_single_files") {
        return;
    }
    let mut image = Image::new("64M", &["-O", "metadata_csum"]);
    let machine = machine_with_data_elsewhere(&mut image);
    let node = machine.start(BEFORE).unwrap();
    let [file, sidecar, manifest, good] = [
        "file-50000",
        "sidecar-50000",
        "manifest-50000",
        "good-50000",
    ]
    .map(name);
    for name in [&file, &sidecar, &manifest, &good] {
        machine::store(&node, name, BEFORE).unwrap().unwrap();
    }
    drop(node);
    let target = |name: &FileName| Layout::new(&machine.disk()).target_paths(name);
    let paths = [
        target(&file).file,
        target(&sidecar).sidecar,
        target(&manifest).file.with_file_name("manifest-blake3.txt"),
    ];
    let inodes = paths
        .each_ref()
        .map(|path| path.symlink_metadata().unwrap().ino());
    image.unmount();
    for inode in inodes {
        spoil(&image.file(), inode);
    }
    image.mount();
    for path in &paths {
        assert!(
            path.symlink_metadata().is_err(),
            "{} is well",
            path.display()
        );
    }
    let node = machine.start(BEFORE + 10).unwrap();
    serves(&node, &good, "the catalog knows them");
    assert!(is_lost(&node.files.find_copies(&file).unwrap()[0]));
    assert!(is_lost(&verify(&node, &file)));
    drop(node);
    let node = anew(&machine);
    serves(&node, &good, "the catalog was built again");
    assert!(is_lost(&node.files.find_copies(&file).unwrap()[0]));
    let condition = &node.files.find_copies(&sidecar).unwrap()[0].row.condition;
    assert!(
        matches!(condition, Condition::Unexpected { .. }),
        "{condition:?}"
    );
    serves(&node, &manifest, "its list cannot be read");
}

fn anew(machine: &CrashMachine) -> Node {
    std::fs::remove_dir_all(machine.data().join("catalog")).unwrap();
    machine.start(BEFORE + 20).unwrap()
}
