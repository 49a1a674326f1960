//! Removals from a volume, or a node, that is drained.

use super::*;

fn limits(removals_per_hour: u64, moved_per_hour: u64) -> AtticSettings {
    AtticSettings {
        removals_per_hour,
        moved_per_hour,
        min_age: Period::from_secs(60),
        ..AtticSettings::default()
    }
}

fn is_refused_by(setting: &str, result: &Result<LocalAtticItem, NodeError>) -> bool {
    matches!(result, Err(NodeError::TooManyRemovals { setting: by, .. }) if *by == setting)
}

/// Fails if setting a volume or node to drain releases the brake for copies that the node has only once.
#[test]
fn draining_does_not_release_the_brake() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start_with(limits(1, 100));
    for file in ["a", "b", "c"] {
        machine.store(&node, file, b"x").unwrap();
    }
    let aside = |file: &str| {
        node.attic
            .put_copy_aside(&removal(file, id("v1"), root(b"x")), now())
    };
    aside("a").unwrap();
    node.disks
        .set_volume_mode(&id("v1"), Mode::Draining)
        .unwrap();
    assert!(is_refused_by("removals_per_hour", &aside("b")));
    node.disks
        .set_volume_mode(&id("v1"), Mode::ReadWrite)
        .unwrap();
    node.disks.set_node_mode(Mode::Draining).unwrap();
    assert!(is_refused_by("removals_per_hour", &aside("b")));
    assert!(machine.target("b").file.try_exists().unwrap());
}

/// Fails if a drain within a node is held by the brake of removals, has no limit of its own, or purges without limit.
#[test]
fn moved_copies_have_their_own_hourly_budget() {
    let machine = with_two();
    let (node, _) = machine.start_with(limits(1, 2));
    let files = ["a", "b", "c"];
    for file in files {
        store_on(&machine, &node, "v1", file, b"x");
    }
    node.disks
        .set_volume_mode(&id("v1"), Mode::Draining)
        .unwrap();
    for file in files {
        let entry = machine.store(&node, file, b"x").unwrap();
        assert_eq!(entry.volume, id("v2"));
    }
    let aside = |file: &str, volume: &str, bytes: &[u8]| {
        node.attic
            .put_copy_aside(&removal(file, id(volume), root(bytes)), now())
    };
    let other = aside("a", "v1", b"y");
    assert!(
        matches!(other, Err(NodeError::OtherCopy { .. })),
        "{other:?}"
    );
    aside("a", "v1", b"x").unwrap();
    aside("b", "v1", b"x").unwrap();
    assert!(is_refused_by(
        "attic.moved_per_hour",
        &aside("c", "v1", b"x")
    ));
    let later = now() + Duration::from_mins(30);
    let purged = items(&node)
        .into_iter()
        .map(|item| purge_named(&node, &item, Some(root(b"x")), later));
    let purged: Vec<_> = purged.collect();
    assert!(purged[0].is_ok(), "{purged:?}");
    assert!(
        matches!(purged[1], Err(NodeError::TooManyRemovals { .. })),
        "{purged:?}"
    );
}

/// Fails if the node believes its catalog about the copy that stays, or counts on a disk that is drained too.
#[test]
fn moved_copy_counts_only_where_it_stays() {
    let machine = with_two();
    let (node, _) = machine.start_with(limits(0, 100));
    for file in ["a", "b"] {
        store_on(&machine, &node, "v1", file, b"x");
    }
    node.disks
        .set_volume_mode(&id("v1"), Mode::Draining)
        .unwrap();
    for file in ["a", "b"] {
        machine.store(&node, file, b"x").unwrap();
    }
    let aside = |file: &str| {
        node.attic
            .put_copy_aside(&removal(file, id("v1"), root(b"x")), now())
    };
    let kept = Layout::new(&machine.path("two")).target_paths(&name("a"));
    std::fs::remove_file(&kept.file).unwrap();
    assert!(is_refused_by("removals_per_hour", &aside("a")));
    node.disks
        .set_volume_mode(&id("v2"), Mode::Draining)
        .unwrap();
    assert!(is_refused_by("removals_per_hour", &aside("b")));
    node.disks
        .set_volume_mode(&id("v2"), Mode::ReadOnly)
        .unwrap();
    aside("b").unwrap();
}
