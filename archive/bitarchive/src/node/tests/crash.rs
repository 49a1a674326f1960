//! Crashes of a move into the attic or out of it: every state between two steps, and a start after it.

use super::attic::{cause, items, removal, root};
use super::disks::id;
use super::*;
use crate::attic::AtticId;

/// A file in one of the states; afterwards it must be whole on one side, and on no other.
struct Scene {
    machine: NodeMachine,
    place: PathBuf,
    begun: PathBuf,
}

const SIZE: usize = 50_000;

impl Scene {
    /// Makes a file in the attic, as after a whole move.
    fn aside() -> Self {
        let machine = NodeMachine::new();
        let (node, _) = machine.start();
        machine.store(&node, "a", &bytes(SIZE)).unwrap();
        let item = node
            .attic
            .put_copy_aside(&removal("a", id("v1"), root(&bytes(SIZE))), now())
            .unwrap();
        let attic = machine.path("disk/attic");
        Self {
            place: attic.join(&item.id),
            begun: attic.join(format!(".{}", item.id)),
            machine,
        }
    }

    /// Moves names from the directory in the attic back to their places, as a crash would leave them.
    fn back_out(self, names: &[&str]) -> Self {
        std::fs::rename(&self.place, &self.begun).unwrap();
        let target = self.machine.target("a");
        for name in names {
            let to = match *name {
                "a" => &target.file,
                "a.json" => &target.sidecar,
                _ => &target.outboard,
            };
            std::fs::rename(self.begun.join(name), to).unwrap();
        }
        self
    }

    /// Writes the row as it was before a move into the attic.
    fn with_row(self) -> Self {
        let (node, _) = self.machine.start();
        let row = Row {
            size: SIZE as u64,
            root: Some(root(&bytes(SIZE))),
            stored: now(),
            verified: None,
            condition: Condition::Present,
        };
        let entry = CatalogEntry {
            name: name("a"),
            volume: id("v1"),
            row,
        };
        node.catalog.put_entries(&[entry]).unwrap();
        drop(node);
        self
    }

    fn is_whole_on_one_side(&self, what: &str) {
        for _ in 0..2 {
            let (node, found) = self.machine.start();
            assert_eq!(
                (found.missing, found.unexpected),
                (0, 0),
                "{what}: {found:?}"
            );
            let target = self.machine.target("a");
            let is_there = target.file.try_exists().unwrap();
            let entries = node.files.find_copies(&name("a")).unwrap();
            assert_eq!(entries.len(), usize::from(is_there), "{what}");
            assert_eq!(target.sidecar.try_exists().unwrap(), is_there, "{what}");
            assert_eq!(target.outboard.try_exists().unwrap(), is_there, "{what}");
            let items = items(&node);
            assert_eq!(items.len(), usize::from(!is_there), "{what}: {items:?}");
            if is_there {
                assert_eq!(entries[0].row.condition, Condition::Present, "{what}");
                assert_eq!(std::fs::read(&target.file).unwrap(), bytes(SIZE), "{what}");
                continue;
            }
            assert!(
                !items[0].id.starts_with('.') && items[0].damaged.is_none(),
                "{what}"
            );
            let item = AtticId::new(&items[0].id).unwrap();
            node.attic
                .restore_item(&id("v1"), &item, &cause(), now())
                .unwrap();
            assert_eq!(std::fs::read(&target.file).unwrap(), bytes(SIZE), "{what}");
        }
    }
}

use crate::catalog::Row;

/// Fails if a crash between two steps of a move leaves a file on both sides, or on neither.
#[test]
fn start_ends_every_move_that_was_cut() {
    // With the row of before and without one; the file is first to go in and last to come out.
    for names in [
        &["a.json", "a.bao", "a"][..],
        &["a.json", "a.bao"],
        &["a.json"],
        &["a.bao"],
        &[],
    ] {
        Scene::aside()
            .back_out(names)
            .is_whole_on_one_side(&format!("out: {names:?}"));
        // The row first: a start would end the move.
        Scene::aside()
            .with_row_then(|scene| scene.back_out(names))
            .is_whole_on_one_side(&format!("out, with a row: {names:?}"));
    }
    let scene = Scene::aside();
    scene
        .with_row_kept()
        .is_whole_on_one_side("all is moved, and the row still there");
}

impl Scene {
    fn with_row_then(self, next: impl FnOnce(Self) -> Self) -> Self {
        next(self.with_row())
    }

    /// Makes the scene in which all names are in, and the directory still bears its dot.
    fn with_row_kept(self) -> Self {
        self.with_row().back_out(&[])
    }
}

/// Fails if a crash before a file was moved into the attic leaves an item without a file, or touches the file.
#[test]
fn crash_before_move_leaves_no_attic_item() {
    for begun in 0..3 {
        let machine = NodeMachine::new();
        let (node, _) = machine.start();
        machine.store(&node, "a", b"one").unwrap();
        drop(node);
        let place = machine.path("disk/attic/.20260101T000000Z-file");
        std::fs::create_dir(&place).unwrap();
        if begun == 1 {
            std::fs::write(place.join(".why.json.new"), "{\"for").unwrap();
        }
        if begun == 2 {
            let text = r#"{"format":"holdfast-attic/1","kind":"file","name":"a","at":"2026-01-01T00:00:00Z","who":"x","why":"x"}"#;
            std::fs::write(place.join("why.json"), text).unwrap();
        }
        let (node, found) = machine.start();
        assert_eq!(found.unchanged, 1);
        assert!(items(&node).is_empty());
        assert!(!place.try_exists().unwrap());
    }
}

/// Fails if a directory that is not a move is taken for one, or is hidden.
#[test]
fn odd_directories_of_moves_are_listed_untouched() {
    let machine = NodeMachine::new();
    let attic = machine.path("disk/attic");
    std::fs::create_dir_all(attic.join(".Trash/why.json")).unwrap();
    std::fs::create_dir(attic.join(".rot")).unwrap();
    std::fs::write(attic.join(".rot/why.json"), "rot").unwrap();
    std::fs::write(attic.join(".rot/a"), "data").unwrap();
    std::fs::write(attic.join(".DS_Store"), "x").unwrap();
    let (node, _) = machine.start();
    assert_eq!(items(&node).len(), 3);
    assert!(items(&node).iter().all(|item| item.damaged.is_some()));
}

/// Fails if the end of a move touches another file that has the name now.
#[test]
fn cut_move_spares_a_newer_file() {
    let scene = Scene::aside();
    let (node, _) = scene.machine.start();
    scene.machine.store(&node, "a", &bytes(SIZE)).unwrap();
    drop(node);
    std::fs::rename(&scene.place, &scene.begun).unwrap();
    let (node, found) = scene.machine.start();
    assert_eq!((found.unchanged, found.added), (1, 0));
    assert_eq!(items(&node).len(), 1);
    assert!(scene.machine.target("a").sidecar.try_exists().unwrap());
}

/// Fails if an old item in the attic makes the row of a missing file go.
#[test]
fn old_item_hides_no_missing_file() {
    let scene = Scene::aside();
    let (node, _) = scene.machine.start();
    scene.machine.store(&node, "a", &bytes(SIZE)).unwrap();
    drop(node);
    for path in [
        scene.machine.target("a").file,
        scene.machine.target("a").sidecar,
    ] {
        std::fs::remove_file(path).unwrap();
    }
    let (node, found) = scene.machine.start();
    assert_eq!(found.missing, 1);
    assert!(matches!(
        node.files.find_copies(&name("a")).unwrap()[0].row.condition,
        Condition::Missing { .. }
    ));
    drop(node);
    let (node, _) = scene.machine.start();
    assert_eq!(node.files.find_copies(&name("a")).unwrap().len(), 1);
}
