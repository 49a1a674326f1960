//! The walk over the names on the disks, while the node runs.

use std::ops::ControlFlow;

use super::*;
use crate::claims::claim_for_verb;
use crate::layout::FileDirectory;

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

/// Fails if a volume is lost by one of its directories, empty or full, if what was in that is not missed, or if it cannot
/// be stored again.
#[test]
fn directory_that_is_gone_is_made_again() {
    let files = ["a", "b", "c"];
    let (machine, mut node) = with_files(&files);
    let (_, layout) = node.disks.volumes.online_layouts().remove(0);
    let of = |top: &str| layout.root().join(top);
    let mut directories = vec![of("files"), of("meta"), of("incoming"), of("attic")];
    directories.extend(FileDirectory::all().flat_map(|dir| [layout.files(dir), layout.meta(dir)]));
    for (turn, gone) in directories.iter().enumerate() {
        let is_lost = |file: &&str| machine.target(file).file.starts_with(gone);
        let lost: Vec<&str> = files.iter().copied().filter(is_lost).collect();
        std::fs::remove_dir_all(gone).unwrap();
        // A check, a start, or a store into it.
        match turn % 3 {
            0 => walk(&node),
            1 => {
                drop(node);
                node = machine.start().0;
            }
            _ => {
                let names = (0..).map(|number| format!("new-{turn}-{number}"));
                let is_in_it = |name: &String| {
                    let target = machine.target(name);
                    let is_bucket =
                        target.file.starts_with(gone) || target.sidecar.starts_with(gone);
                    is_bucket || turn < 4
                };
                let new = names.into_iter().find(is_in_it).unwrap();
                machine.store(&node, &new, &bytes(9)).unwrap();
                assert!(gone.is_dir(), "{}", gone.display());
                walk(&node);
            }
        }
        let volumes = node.disks.volumes.list_volumes();
        assert_eq!(volumes[0].problem, None, "{}", gone.display());
        assert!(gone.is_dir(), "{}", gone.display());
        let word = |file: &&'static str| {
            let is_lost = lost.contains(file);
            (*file, if is_lost { "missing" } else { "present" })
        };
        let words: Vec<_> = files.iter().map(word).collect();
        let mut found = conditions(&node);
        found.retain(|(file, _)| files.contains(&file.as_str()));
        assert_eq!(found, expected(&words), "{}", gone.display());
        for file in lost {
            machine.store(&node, file, &bytes(20_000)).unwrap();
        }
    }
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
