//! A disk that is full still lets go: copies are put aside, and what is old enough is destroyed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use archive_bitarchive::attic::{AtticId, ItemReference, RemovalOrder};
use archive_bitarchive::{Node, NodeError};
use archive_durable::DiskSeverity;
use archive_model::{Cause, FileName};
use conformance::machine;
use jiff::Timestamp;

use super::super::{BEFORE, expected_root, name};
use super::{Image, acknowledged_files_are_there, has_own_mounts, machine_with_data_elsewhere};

/// The number of bytes that the node leaves free.
const RESERVE: u64 = 4 << 20;

/// Longer than things must lie in the attic.
const LATER: i64 = BEFORE + 40 * 24 * 3600;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn cause() -> Cause {
    Cause::new("officer/o", "the disk is full").unwrap()
}

fn is_full(error: &NodeError) -> bool {
    matches!(error, NodeError::NoSpace(_))
        || matches!(error, NodeError::Disk(error) if error.severity() == DiskSeverity::NoSpace)
}

/// Stores files of a megabyte until none fits any more.
fn fill(node: &Node, first: usize) -> Vec<FileName> {
    let mut stored = Vec::new();
    loop {
        let name = name(&format!("f{}-1000000", first + stored.len()));
        match machine::store(node, &name, BEFORE).unwrap() {
            Ok(_) => stored.push(name),
            Err(error) => {
                assert!(is_full(&error), "{error}");
                return stored;
            }
        }
    }
}

/// Somebody else takes the last byte.
fn take_the_rest(junk: &Path) {
    let mut file = File::options()
        .append(true)
        .create(true)
        .open(junk)
        .unwrap();
    for block in [64 * 1024, 512] {
        let block = vec![7; block];
        while file.write_all(&block).is_ok() {}
    }
}

/// Fails if putting aside or purging needs room that a full disk does not have, so that the disk can never become less
/// full.
#[test]
fn a_full_disk_lets_go() {
    if !has_own_mounts("full::a_full_disk_lets_go") {
        return;
    }
    // Nothing is set aside for root, who runs this.
    let mut image = Image::new("48M", &["-m", "0"]);
    let machine = machine_with_data_elsewhere(&mut image);
    let node = machine.start_with(BEFORE, RESERVE).unwrap();
    let volume = machine::volume().unwrap();
    let mut stored = fill(&node, 0);
    assert!(stored.len() > 10, "{} files", stored.len());

    // Full for new files: the reserve is for this.
    let removal = |file: &FileName| RemovalOrder {
        name: file.clone(),
        volume: volume.clone(),
        checksum: expected_root(file),
        cause: cause(),
    };
    let put_aside = |file: &FileName| node.attic.put_copy_aside(&removal(file), at(BEFORE));
    let gone = stored.pop().unwrap();
    let item = put_aside(&gone).unwrap();

    // Full to the last byte: put aside, or refused with everything where it was.
    let junk = image.mounted().join("junk");
    take_the_rest(&junk);
    let last = stored.last().unwrap().clone();
    match put_aside(&last) {
        Ok(_) => drop(stored.pop()),
        Err(error) => {
            assert!(is_full(&error), "{error}");
            let reading = node.files.open_file(&last).unwrap();
            assert_eq!(reading.data.root().unwrap(), expected_root(&last));
        }
    }
    assert_eq!(
        machine::poison(&node),
        None,
        "a full disk is not a broken one"
    );
    let refused = machine::store(&node, &name("more-1000"), BEFORE).unwrap();
    assert!(is_full(&refused.unwrap_err()));

    // Destroying needs no room, and makes some.
    let id = AtticId::new(&item.id).unwrap();
    let item = ItemReference {
        volume: volume.clone(),
        id,
        checksum: item.name.as_ref().map(expected_root),
        cause: cause(),
    };
    let young = node.attic.purge_item(&item, at(BEFORE + 1)).unwrap_err();
    assert!(matches!(young, NodeError::TooYoung { .. }), "{young}");
    let freed = node.attic.purge_item(&item, at(LATER)).unwrap();
    assert!(freed > 1_000_000, "{freed}");
    for file in &stored {
        let reading = node.files.open_file(file).unwrap();
        assert_eq!(reading.data.root().unwrap(), expected_root(file), "{file}");
    }
    let next = stored.pop().unwrap();
    let put = node.attic.put_copy_aside(&removal(&next), at(LATER));
    put.unwrap();
    std::fs::remove_file(junk).unwrap();
    stored.extend(fill(&node, 1000));
    drop(node);
    let acknowledged: BTreeMap<FileName, String> = stored
        .into_iter()
        .map(|name| (name.clone(), expected_root(&name).to_string()))
        .collect();
    acknowledged_files_are_there(&machine, &acknowledged, LATER, "let go");
}
