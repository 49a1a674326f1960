//! Files without a sidecar: they are hashed, and adopted only with their own admission.

use super::attic::{items, root};
use super::disks::id;
use super::*;

/// Fails if an unexpected file gets an admission of other bytes, or is never hashed.
#[test]
fn unexpected_file_needs_its_own_admission() {
    let machine = NodeMachine::new();
    let content = bytes(50_000);
    std::fs::write(machine.target("a").file, &content).unwrap();
    std::fs::write(machine.target("a").sidecar, "rot").unwrap();
    std::fs::write(machine.target("b").file, "b").unwrap();
    let (node, _) = machine.start();
    let v1 = id("v1");
    let row = |node: &Node, file: &str| node.files.find_copies(&name(file)).unwrap().remove(0).row;
    assert_eq!(row(&node, "a").root, None);
    assert_eq!(node.files.hash_unexpected_files(None).unwrap(), None);
    assert_eq!(row(&node, "a").root, Some(root(&content)));
    assert!(matches!(
        row(&node, "a").condition,
        Condition::Unexpected { .. }
    ));
    assert_eq!(machine.manifest("a"), "", "nobody admitted it");
    drop(node);
    let (node, found) = machine.start();
    assert_eq!((found.unchanged, found.damaged), (2, 0));
    assert_eq!(
        row(&node, "a").root,
        Some(root(&content)),
        "known after a restart"
    );
    assert_eq!(machine.manifest("a"), "");

    let good = admission("a", &content, "u1");
    let take_in = |node: &Node, file: &str, signed: &Envelope| {
        node.files.adopt_file(&name(file), &v1, signed, now())
    };
    let other_key = good.sign(&SigningKey::from_seed([8; 32])).unwrap();
    assert!(matches!(
        take_in(&node, "a", &other_key),
        Err(NodeError::Admission { .. })
    ));
    for wrong in [
        Admission {
            name: name("b"),
            ..good.clone()
        },
        Admission {
            size: 49_999,
            ..good.clone()
        },
        Admission {
            root: Root::from_bytes([0; 32]),
            ..good.clone()
        },
    ] {
        let refused = take_in(&node, "a", &sign(&wrong));
        assert!(
            matches!(refused, Err(NodeError::Mismatch { .. })),
            "{refused:?}"
        );
        assert_eq!(std::fs::read(machine.target("a").sidecar).unwrap(), b"rot");
    }
    let signed = sign(&good);
    assert!(matches!(
        take_in(&node, "none", &sign(&admission("none", b"", "u"))),
        Err(NodeError::NotFound(_))
    ));
    let entry = take_in(&node, "a", &signed).unwrap();
    assert_eq!(entry.row.condition, Condition::Present);
    assert_eq!(
        take_in(&node, "a", &signed).unwrap(),
        entry,
        "asked for twice"
    );
    assert_eq!(machine.incoming(), 0);
    assert_eq!(
        node.files.read_admission(&entry).unwrap(),
        signed.as_str(),
        "verbatim"
    );
    assert_eq!(
        items(&node).len(),
        1,
        "the sidecar that could not be believed is kept"
    );
    let other = sign(&admission("a", b"other", "u2"));
    assert!(matches!(
        take_in(&node, "a", &other),
        Err(NodeError::Admitted { .. })
    ));
    assert!(
        std::fs::metadata(machine.target("a").file)
            .unwrap()
            .permissions()
            .readonly()
    );
    drop(node);
    let (node, found) = machine.start();
    assert_eq!((found.unchanged, found.manifests), (2, 0));
    assert!(node.files.open_file(&name("a")).unwrap().outboard.is_some());
    // The file changed since it was hashed: its old root is forgotten, and the change counts as no damage.
    drop(node);
    std::fs::write(machine.target("b").file, "longer").unwrap();
    let (node, found) = machine.start();
    assert_eq!((found.unexpected, found.damaged), (1, 0));
    assert_eq!((row(&node, "b").root, row(&node, "b").size), (None, 6));
    // Its sidecar has come back.
    machine.store(&node, "c", b"c").unwrap();
    drop(node);
    let sidecar = std::fs::read(machine.target("c").sidecar).unwrap();
    std::fs::remove_file(machine.target("c").sidecar).unwrap();
    std::fs::remove_dir_all(machine.path("data/catalog")).unwrap();
    let (node, _) = machine.start();
    assert!(matches!(
        row(&node, "c").condition,
        Condition::Unexpected { .. }
    ));
    drop(node);
    std::fs::write(machine.target("c").sidecar, sidecar).unwrap();
    let (node, _) = machine.start();
    assert_eq!(row(&node, "c").condition, Condition::Present);
}

/// Fails if the copies that people have decided for are refused, a damaged copy is believed to be what somebody says it
/// is, or the admission of what it was is destroyed.
#[test]
fn copy_of_other_bytes_gets_their_admission() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    let old = bytes(50_000);
    let new = bytes(40_000);
    let v1 = id("v1");
    machine.store(&node, "a", &old).unwrap();
    let before = std::fs::read(machine.target("a").sidecar).unwrap();
    std::fs::remove_file(machine.target("a").file).unwrap();
    std::fs::write(machine.target("a").file, &new).unwrap();
    let mut on = |_: u64| std::ops::ControlFlow::Continue(());
    let found = node
        .files
        .verify_copy(&name("a"), Some(&v1), now(), &mut on)
        .unwrap();
    assert!(matches!(found.row.condition, Condition::Damaged { .. }));

    let take_in = |content: &[u8]| {
        let signed = sign(&admission("a", content, "u2"));
        node.files.adopt_file(&name("a"), &v1, &signed, now())
    };
    for wrong in [&old[..], b"other"] {
        let refused = take_in(wrong);
        assert!(
            matches!(refused, Err(NodeError::Admitted { .. })),
            "{refused:?}"
        );
        assert_eq!(std::fs::read(machine.target("a").sidecar).unwrap(), before);
        assert_eq!(items(&node).len(), 0);
    }
    let entry = take_in(&new).unwrap();
    assert_eq!(entry.row.condition, Condition::Present);
    assert_eq!(entry.row.root, Some(root(&new)));
    assert_eq!(take_in(&new).unwrap(), entry, "asked for twice");
    assert_eq!((items(&node).len(), machine.incoming()), (1, 0));
    let found = node
        .files
        .verify_copy(&name("a"), Some(&v1), now(), &mut on)
        .unwrap();
    assert_eq!(found.row.condition, Condition::Present);
    assert!(!machine.manifest("a").contains(&root(&old).to_string()));
    assert!(machine.manifest("a").contains(&root(&new).to_string()));
    drop(node);
    let (_node, found) = machine.start();
    assert_eq!((found.unchanged, found.damaged, found.manifests), (1, 0, 0));
}
