//! What leaves a volume, or a node, that is drained.

use super::*;

/// Fails if the brake stops a drain, or if a drain can be used to destroy files.
#[test]
fn what_is_drained_is_put_aside_without_the_brake_and_purged_with_it() {
    let machine = Machine::new();
    let limits = AtticSettings {
        removals_per_hour: 1,
        min_age: Period::from_secs(60),
        ..AtticSettings::default()
    };
    let (node, _) = machine.start_with(limits);
    let files = ["a", "b", "c", "d", "e"];
    for file in files {
        machine.store(&node, file, b"x").unwrap();
    }
    let aside = |file: &str| node.put_aside(&name(file), &id("v1"), root(b"x"), &cause(), now());
    let is_refused =
        |result: Result<Item, NodeError>| matches!(result, Err(NodeError::TooManyRemovals { .. }));
    aside("a").unwrap();
    assert!(is_refused(aside("b")));
    node.set_volume_mode(&id("v1"), Mode::Draining).unwrap();
    aside("b").unwrap();
    let other = node.put_aside(&name("c"), &id("v1"), root(b"y"), &cause(), now());
    assert!(
        matches!(other, Err(NodeError::OtherCopy { .. })),
        "{other:?}"
    );
    aside("c").unwrap();
    node.set_volume_mode(&id("v1"), Mode::ReadOnly).unwrap();
    assert!(is_refused(aside("d")));
    node.set_mode(Mode::Draining).unwrap();
    aside("d").unwrap();
    node.set_mode(Mode::ReadWrite).unwrap();
    assert!(is_refused(aside("e")));
    let later = now() + Duration::from_mins(30);
    for item in items(&node) {
        let purged = node.purge(
            &item.volume,
            &AtticId::new(&item.id).unwrap(),
            &cause(),
            later,
        );
        assert!(matches!(purged, Err(NodeError::TooManyRemovals { .. })));
    }
}
