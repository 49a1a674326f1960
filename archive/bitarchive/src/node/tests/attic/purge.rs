//! Purges, which name the content that they destroy.

use super::*;

/// Fails if a node destroys a whole file by its place, or tells the checksum of what it has.
#[test]
fn purge_of_file_names_its_checksum() {
    let machine = Machine::new();
    let (node, _) = machine.start();
    for file in ["a", "b"] {
        machine.store(&node, file, b"x").unwrap();
    }
    let item = put_aside(&node, "a", b"x").unwrap();
    let old = later(31 * DAY);
    for checksum in [None, Some(root(b"y"))] {
        let refused = purge_named(&node, &item, checksum, old).unwrap_err();
        assert!(matches!(refused, NodeError::Attic { .. }), "{refused}");
        assert!(!refused.to_string().contains(&root(b"x").to_string()));
        assert!(checksum_in(&node, &item).is_some());
    }
    // The reason, which says that the item is a file, is gone: it may still be a file.
    let reason = machine.place(&item).join("why.json");
    let text = std::fs::read(&reason).unwrap();
    std::fs::write(&reason, "{").unwrap();
    purge_named(&node, &item, None, old).unwrap_err();
    std::fs::write(&reason, &text).unwrap();
    purge_named(&node, &item, Some(root(b"x")), old).unwrap();
    assert!(items(&node).is_empty());
    let item = put_aside(&node, "b", b"x").unwrap();
    std::fs::write(machine.place(&item).join("why.json"), "{").unwrap();
    purge_named(&node, &item, Some(root(b"x")), old).unwrap();
}
