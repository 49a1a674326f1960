//! An older copy of the catalog, put back: it is noticed, and built again.

use super::attic::{cause, root};
use super::broken::verify;
use super::*;

fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .args([from, to])
        .status();
    assert!(copied.unwrap().success());
}

#[test]
fn an_older_catalog_is_noticed_and_what_was_done_since_is_known() {
    let machine = Machine::new();
    let content = bytes(50_000);
    let (node, _) = machine.start();
    for file in ["a", "gone", "removed"] {
        machine.store(&node, file, &content).unwrap();
    }
    machine.flip("a", &[1]);
    verify(&node, "a");
    drop(node);
    let (catalog, old) = (machine.path("data/catalog"), machine.path("old"));
    copy(&catalog, &old);

    let (node, found) = machine.start();
    assert_eq!(found.unchanged, 3, "it is not older than it was");
    machine.flip("a", &[1]);
    verify(&node, "a");
    let volume = VolumeId::new("v1").unwrap();
    node.put_aside(&name("removed"), &volume, root(&content), &cause(), now())
        .unwrap();
    machine.store(&node, "new", &content).unwrap();
    std::fs::remove_file(machine.target("gone").file).unwrap();
    verify(&node, "gone");
    let before = without_verified(listing(&node));
    assert_eq!(before.len(), 3);
    node.catalog().stamp();
    drop(node);

    let stamp = machine.path("data/catalog.stamp");
    for wrong in [None, Some("many"), Some("99999999999999")] {
        if let Some(wrong) = wrong {
            std::fs::write(&stamp, wrong).unwrap();
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
                node.tally().total(),
                1,
                "one is missing, nothing else is wrong"
            );
        }
    }
    // Without a stamp it is what it is.
    std::fs::remove_file(&stamp).unwrap();
    let (node, found) = machine.start();
    assert_eq!((found.unchanged, found.added), (2, 0), "{found:?}");
    drop(node);
}
