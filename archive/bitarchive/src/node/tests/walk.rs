//! The walk over the names on the disks, while the node runs.

use std::ops::ControlFlow;

use super::*;
use crate::claims::claim_for_verb;

fn walk(node: &Node) {
    let walked = node
        .disks
        .walk_volumes(now(), &mut |_| ControlFlow::Continue(()));
    assert_eq!(walked.unwrap(), Some(()));
}

/// Returns the state of each file in the catalog, in a word.
fn conditions(node: &Node) -> Vec<(String, &'static str)> {
    let word = |entry: CatalogEntry| {
        let word = match entry.row.condition {
            Condition::Present => "present",
            Condition::Missing { .. } => "missing",
            Condition::Damaged { .. } => "damaged",
            Condition::Unexpected { .. } => "unexpected",
        };
        (entry.name.to_string(), word)
    };
    listing(node).into_iter().map(word).collect()
}

fn expected(words: &[(&str, &'static str)]) -> Vec<(String, &'static str)> {
    let owned = words.iter().map(|(name, word)| ((*name).to_owned(), *word));
    owned.collect()
}

fn with_files(files: &[&str]) -> (NodeMachine, Node) {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    for file in files {
        machine.store(&node, file, &bytes(20_000)).unwrap();
    }
    (machine, node)
}

/// Fails if a running node still believes its catalog about what is on its disk.
#[test]
fn file_deleted_behind_the_node_is_missing() {
    let (machine, node) = with_files(&["a", "b", "c"]);
    walk(&node);
    let all = [("a", "present"), ("b", "present"), ("c", "present")];
    assert_eq!(conditions(&node), expected(&all));
    let file = machine.target("b").file;
    let kept = machine.path("kept");
    std::fs::rename(&file, &kept).unwrap();
    walk(&node);
    let gone = [("a", "present"), ("b", "missing"), ("c", "present")];
    assert_eq!(conditions(&node), expected(&gone));
    std::fs::rename(&kept, &file).unwrap();
    walk(&node);
    assert_eq!(conditions(&node), expected(&all), "and back");
}

/// Fails if only what the catalog knows is looked for.
#[test]
fn file_put_behind_the_node_is_unexpected() {
    let (machine, node) = with_files(&["a"]);
    std::fs::write(machine.target("b").file, "nobody admitted it").unwrap();
    std::fs::create_dir(machine.target("c").file).unwrap();
    walk(&node);
    let found = [("a", "present"), ("b", "unexpected")];
    assert_eq!(conditions(&node), expected(&found));
}

/// Fails if a file that nobody admitted is only known where its name happens to belong.
#[test]
fn stray_file_is_unexpected_in_its_place() {
    let (machine, node) = with_files(&["a"]);
    let home = machine.target("b").file;
    let dir = |byte: u8| machine.path(&format!("disk/files/{byte:02x}"));
    let stray = (0..=u8::MAX).map(dir).find(|path| !home.starts_with(path));
    let stray = stray.unwrap().join("b");
    std::fs::write(&stray, "nobody admitted it").unwrap();
    walk(&node);
    let found = [("a", "present"), ("b", "unexpected")];
    assert_eq!(conditions(&node), expected(&found));
    assert!(!stray.try_exists().unwrap());
    assert_eq!(std::fs::read(&home).unwrap(), b"nobody admitted it");
    // At a start too; and what has the place already stays.
    drop(node);
    std::fs::rename(&home, &stray).unwrap();
    let (node, _) = machine.start();
    assert_eq!(conditions(&node), expected(&found));
    std::fs::write(&stray, "another one").unwrap();
    walk(&node);
    drop(node);
    let (node, found) = machine.start();
    assert_eq!((found.foreign, found.unexpected), (1, 0), "{found:?}");
    assert_eq!(std::fs::read(&home).unwrap(), b"nobody admitted it");
    assert_eq!(std::fs::read(&stray).unwrap(), b"another one");
    assert_eq!(listing(&node).len(), 2);
}

/// Fails if what is stored, moved or removed just now is judged.
#[test]
fn file_at_work_is_not_judged() {
    let (machine, node) = with_files(&["a"]);
    let claim = node
        .files
        .locks
        .claim_name(&name("a"), &claim_for_verb("test", &name("a")).unwrap());
    std::fs::remove_file(machine.target("a").file).unwrap();
    walk(&node);
    assert_eq!(conditions(&node), expected(&[("a", "present")]));
    drop(claim.unwrap());
    walk(&node);
    assert_eq!(conditions(&node), expected(&[("a", "missing")]));
}

/// Fails if a disk that went away looks like lost files.
#[test]
fn absent_disk_has_lost_nothing() {
    let (machine, node) = with_files(&["a", "b"]);
    std::fs::rename(machine.path("disk"), machine.path("away")).unwrap();
    for is_mount_point in [false, true] {
        if is_mount_point {
            std::fs::create_dir(machine.path("disk")).unwrap();
        }
        walk(&node);
        node.files.find_copies_on_disk(&name("a"), now()).unwrap();
        let known = [("a", "present"), ("b", "present")];
        assert_eq!(conditions(&node), expected(&known));
        assert!(
            node.disks.volumes.list_volumes()[0].problem.is_some(),
            "it is offline"
        );
    }
    std::fs::remove_dir(machine.path("disk")).unwrap();
    std::fs::rename(machine.path("away"), machine.path("disk")).unwrap();
    node.disks.refresh_volumes(now()).unwrap();
    assert_eq!(
        node.disks.volumes.list_volumes()[0].problem,
        None,
        "nobody poisoned it"
    );
}

/// Fails if a row that is wrong proves that a file is not there, or that it is.
#[test]
fn wrong_row_proves_nothing_about_one_name() {
    let (machine, node) = with_files(&["a", "b"]);
    let find = |file: &str| {
        let found = node.files.find_copies_on_disk(&name(file), now()).unwrap();
        let conditions = found.into_iter().map(|entry| entry.row.condition);
        conditions.collect::<Vec<_>>()
    };
    let mut wrong = node.files.find_copies(&name("a")).unwrap();
    wrong[0].row.condition = Condition::Missing { since: now() };
    node.catalog.put_entries(&wrong).unwrap();
    assert_eq!(find("a"), [Condition::Present]);
    node.catalog
        .remove_entry(&name("a"), &wrong[0].volume)
        .unwrap();
    assert_eq!(find("a"), [Condition::Present]);
    std::fs::remove_file(machine.target("b").file).unwrap();
    assert_eq!(find("b"), [Condition::Missing { since: now() }]);
    assert_eq!(find("c"), []);
}

/// Fails if a walk goes to its end although its caller has gone away.
#[test]
fn walk_ends_when_its_callback_stops_it() {
    let (_machine, node) = with_files(&["a"]);
    let mut calls = 0;
    let walked = node.disks.walk_volumes(now(), &mut |_| {
        calls += 1;
        ControlFlow::Break(())
    });
    assert_eq!((walked.unwrap(), calls), (None, 1));
}
