//! Purges, which name the content that they destroy, and destroy only what is old.

use super::*;

/// Fails if a node destroys a whole file by its place, or reveals the checksum of what it has.
#[test]
fn purge_of_file_names_its_checksum() {
    let machine = NodeMachine::new();
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
    // The reason, which says that the item is a file, is absent: it may still be a file.
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

/// Fails if an item is purged before its time, or one that no node put there.
#[test]
fn only_old_items_are_purged() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    machine.store(&node, "a", &bytes(20_000)).unwrap();
    let item = put_aside(&node, "a", &bytes(20_000)).unwrap();
    for at in [now(), later(29 * DAY)] {
        assert!(matches!(
            purge(&node, &item, at),
            Err(NodeError::TooYoung { .. })
        ));
    }
    // A reason that says that the item is older makes it no older, nor does an absent reason.
    let reason = machine.place(&item).join("why.json");
    let text = std::fs::read_to_string(&reason).unwrap();
    let mut forged: AtticReason = serde_json::from_str(&text).unwrap();
    forged.at = Timestamp::UNIX_EPOCH;
    std::fs::write(&reason, serde_json::to_vec(&forged).unwrap()).unwrap();
    assert!(matches!(
        purge(&node, &item, now()),
        Err(NodeError::TooYoung { .. })
    ));
    std::fs::remove_file(&reason).unwrap();
    assert!(matches!(
        purge(&node, &item, later(29 * DAY)),
        Err(NodeError::TooYoung { .. })
    ));
    std::fs::write(&reason, text).unwrap();
    assert_eq!(purge(&node, &item, later(30 * DAY)).unwrap(), item.bytes);
    assert!(items(&node).is_empty());
    assert!(matches!(
        purge(&node, &item, later(30 * DAY)),
        Err(NodeError::NoItem { .. })
    ));
    // Items that no node put there are for people to look at.
    std::fs::create_dir_all(machine.path("disk/attic/20200101T000000Z-x/inner")).unwrap();
    std::fs::write(machine.path("disk/attic/20200101T000000Z-y"), "x").unwrap();
    for odd in items(&node) {
        assert!(matches!(
            purge(&node, &odd, later(90 * DAY)),
            Err(NodeError::Attic { .. })
        ));
    }
    assert_eq!(items(&node).len(), 2);
}
