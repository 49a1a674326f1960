//! Faults on a disk: files that should not be there, or not in that state.

use super::*;

/// Fails if a start passes over a missing, damaged or unexpected file.
#[test]
fn start_finds_every_fault_on_disk() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    for file in ["cut", "grown", "directory", "link", "sidecar", "fine"] {
        machine.store(&node, file, &bytes(20_000)).unwrap();
    }
    drop(node);
    let file = |name: &str| machine.target(name).file;
    make_writable(&file("cut"));
    std::fs::OpenOptions::new()
        .write(true)
        .open(file("cut"))
        .unwrap()
        .set_len(19_999)
        .unwrap();
    make_writable(&file("grown"));
    std::fs::OpenOptions::new()
        .write(true)
        .open(file("grown"))
        .unwrap()
        .set_len(20_001)
        .unwrap();
    std::fs::remove_file(file("directory")).unwrap();
    std::fs::create_dir(file("directory")).unwrap();
    std::fs::remove_file(file("link")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", file("link")).unwrap();
    make_writable(&machine.target("sidecar").sidecar);
    std::fs::write(machine.target("sidecar").sidecar, "{}").unwrap();
    std::fs::remove_dir_all(machine.path("data/catalog")).unwrap();
    let (node, found) = machine.start();
    assert_eq!(
        (
            found.added,
            found.damaged,
            found.unexpected,
            found.missing,
            found.foreign
        ),
        (1, 2, 1, 2, 2),
        "{found:?}"
    );
    let conditions: Vec<(String, bool)> = listing(&node)
        .into_iter()
        .map(|entry| {
            (
                entry.name.to_string(),
                matches!(entry.row.condition, Condition::Present),
            )
        })
        .collect();
    assert_eq!(conditions.iter().filter(|(_, present)| *present).count(), 1);
    assert!(
        node.files.open_file(&name("link")).is_err(),
        "a symbolic link is never followed"
    );
}

/// Fails if an upload replaces a file without an admission that has its name.
#[test]
fn stranger_is_never_overwritten() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    std::fs::write(machine.target("a").file, "not ours").unwrap();
    assert!(matches!(
        machine.store(&node, "a", b"ours"),
        Err(NodeError::Taken { .. })
    ));
    assert_eq!(
        std::fs::read(machine.target("a").file).unwrap(),
        b"not ours"
    );
}
