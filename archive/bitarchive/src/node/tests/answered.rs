//! An alarm is answered by the same bytes on another volume, and by nothing else.

use archive_model::Mode;

use super::attic::items;
use super::disks::{id, store_on, where_is, with_two};
use super::*;
use crate::catalog::Row;

fn entry_on(node: &Node, file: &str, volume: &str) -> Option<CatalogEntry> {
    let entries = node.files.find_copies(&name(file)).unwrap();
    entries.into_iter().find(|one| one.volume == id(volume))
}

/// Fails if a file that was stored again on another volume still counts as missing.
#[test]
fn missing_row_goes_when_file_is_stored_elsewhere() {
    let machine = with_two();
    let (node, _) = machine.start();
    let content = bytes(40_000);
    store_on(&machine, &node, "v1", "a", &content);
    store_on(&machine, &node, "v1", "b", &content);
    drop(node);
    for file in ["a", "b"] {
        std::fs::remove_file(machine.target(file).file).unwrap();
    }
    let (node, found) = machine.start();
    assert_eq!(found.missing, 2);
    store_on(&machine, &node, "v2", "a", &content);
    assert_eq!(where_is(&node, "a"), [("v2".to_owned(), true)]);
    assert_eq!(
        where_is(&node, "b"),
        [("v1".to_owned(), false)],
        "nobody answered"
    );
    let kept = items(&node);
    assert_eq!(kept.len(), 1, "its sidecar is in the attic: {kept:?}");
    drop(node);
    std::fs::remove_dir_all(machine.path("data/catalog")).unwrap();
    let (node, found) = machine.start();
    assert_eq!((found.missing, found.added), (1, 1));
    assert_eq!(where_is(&node, "a"), [("v2".to_owned(), true)]);
}

/// Fails if a volume that was away while its file was stored elsewhere keeps the alarm.
#[test]
fn missing_row_of_returned_volume_is_removed() {
    let machine = with_two();
    let (node, _) = machine.start();
    store_on(&machine, &node, "v1", "a", b"one");
    std::fs::remove_file(machine.target("a").file).unwrap();
    drop(node);
    let (node, _) = machine.start();
    node.disks
        .set_volume_mode(&id("v1"), Mode::Draining)
        .unwrap();
    std::fs::rename(machine.path("disk"), machine.path("away")).unwrap();
    node.disks.refresh_volumes(now()).unwrap();
    machine.store(&node, "a", b"one").unwrap();
    assert_eq!(where_is(&node, "a").len(), 2, "nobody could look");
    std::fs::rename(machine.path("away"), machine.path("disk")).unwrap();
    node.disks.refresh_volumes(now()).unwrap();
    assert_eq!(where_is(&node, "a"), [("v2".to_owned(), true)]);
    assert!(!machine.target("a").sidecar.try_exists().unwrap());
}

/// Fails if an alarm goes although no whole copy of the same bytes is there.
#[test]
fn damaged_or_other_copies_answer_no_alarm() {
    let machine = with_two();
    let (node, _) = machine.start();
    store_on(&machine, &node, "v1", "a", b"one");
    let good = entry_on(&node, "a", "v1").unwrap();
    let missing = CatalogEntry {
        volume: id("v2"),
        row: Row {
            condition: Condition::Missing { since: now() },
            ..good.row.clone()
        },
        ..good.clone()
    };
    let other_root = CatalogEntry {
        row: Row {
            root: Some(Root::from_bytes([1; 32])),
            ..good.row.clone()
        },
        ..good.clone()
    };
    let damaged = CatalogEntry {
        row: Row {
            condition: Condition::Damaged {
                since: now(),
                corrupt: archive_model::Groups::all(3),
                unreadable: archive_model::Groups::none(),
            },
            ..good.row.clone()
        },
        ..good.clone()
    };
    for (copy, goes) in [(other_root, false), (damaged, false), (good, true)] {
        node.catalog.put_entries(&[copy, missing.clone()]).unwrap();
        node.disks.forget_all_answered(now()).unwrap();
        assert_eq!(entry_on(&node, "a", "v2").is_none(), goes);
    }
    // The file is back, and only the row is old: a verification shows it.
    node.catalog
        .put_entries(std::slice::from_ref(&missing))
        .unwrap();
    let back = Layout::new(&machine.path("two"))
        .target_paths(&name("a"))
        .file;
    std::fs::write(back, b"one").unwrap();
    node.disks.forget_all_answered(now()).unwrap();
    assert!(entry_on(&node, "a", "v2").is_some());
}
