//! The evidence of repairs is removed after its time; nothing else ever is.

use archive_daemon::Period;
use archive_model::AtticKind;
use jiff::SignedDuration;

use super::attic::{items, removal, root};
use super::broken::{SIZE, mend, set, verify};
use super::disks::id;
use super::*;
use crate::attic::AtticItemKind;

fn after(days: i64) -> Timestamp {
    now()
        .checked_add(SignedDuration::from_hours(24 * days))
        .unwrap()
}

fn kinds(node: &Node) -> Vec<AtticItemKind> {
    items(node).iter().map(|item| item.kind).collect()
}

/// Makes a node with replaced groups, a whole file, a leftover and something odd in its attic.
fn with_all_kinds(machine: &NodeMachine, attic: AtticSettings) -> Node {
    drop(machine.with_file("a"));
    let (node, _) = machine.start_with(attic);
    machine.flip("a", &[3]);
    verify(&node, "a");
    mend(&node, "a", &bytes(SIZE), &set(&[3])).unwrap();
    machine.store(&node, "b", b"b").unwrap();
    node.attic
        .put_copy_aside(&removal("b", id("v1"), root(b"b")), now())
        .unwrap();
    machine.store(&node, "c", b"c").unwrap();
    std::fs::remove_file(machine.target("c").file).unwrap();
    super::broken::verify(&node, "c");
    machine.store(&node, "c", b"c").unwrap();
    std::fs::create_dir(machine.path("disk/attic/20200101T000000Z-odd")).unwrap();
    let mut found = kinds(&node);
    found.sort_by_key(|kind| AtticKind::from(*kind));
    assert_eq!(
        found,
        [
            AtticItemKind::File,
            AtticItemKind::Groups,
            AtticItemKind::Leftover,
            AtticItemKind::Leftover
        ]
    );
    node
}

/// Fails if evidence is kept without end, or a whole file goes with it.
#[test]
fn evidence_expires_but_whole_files_never() {
    let machine = NodeMachine::new();
    let node = with_all_kinds(&machine, AtticSettings::default());
    assert_eq!(node.attic.end_evidence(after(89)), 0);
    assert_eq!(kinds(&node).len(), 4);
    assert_eq!(node.attic.end_evidence(after(91)), 1);
    assert!(!kinds(&node).contains(&AtticItemKind::Groups));
    assert_eq!(kinds(&node).len(), 3);
    assert_eq!(node.attic.end_evidence(after(10_000)), 0);
    assert_eq!(kinds(&node).len(), 3);
}

/// Fails if an item that is too young, or whose reason is damaged or forged, is removed.
#[test]
fn young_or_doubtful_items_are_kept() {
    let settings = AtticSettings {
        min_age: Period::from_secs(200 * 24 * 3600),
        evidence: Period::from_secs(1),
        ..AtticSettings::default()
    };
    let machine = NodeMachine::new();
    let node = with_all_kinds(&machine, settings);
    assert_eq!(node.attic.end_evidence(after(199)), 0);
    let place = items(&node)
        .into_iter()
        .find(|item| item.kind == AtticItemKind::Groups)
        .map(|item| machine.path("disk/attic").join(item.id))
        .unwrap();
    let reason = std::fs::read(place.join("why.json")).unwrap();
    std::fs::write(place.join("why.json"), "{").unwrap();
    assert_eq!(node.attic.end_evidence(after(10_000)), 0, "damaged");
    std::fs::write(place.join("why.json"), reason).unwrap();
    std::fs::create_dir(place.join("inner")).unwrap();
    assert_eq!(node.attic.end_evidence(after(10_000)), 0, "odd");
    std::fs::remove_dir(place.join("inner")).unwrap();
    // An item that a crash has left in part is removed.
    std::fs::remove_file(place.join("a.groups.mend")).unwrap();
    assert_eq!(node.attic.end_evidence(after(201)), 1);
    assert!(!place.try_exists().unwrap());
}
