//! Mends of a damaged copy: it is whole afterwards, or unchanged.

use std::collections::BTreeSet;

use archive_model::{FileContent, Groups};

use super::broken::{SIZE, Segment, damage, mend, on, order, segments, set, slice, spoil, verify};
use super::*;
use crate::attic::{AtticItemKind, AtticReason};

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

/// Makes a machine whose disk has no room above the reserve.
fn start_full(machine: &NodeMachine) -> Node {
    let options = NodeOptions {
        reserve: u64::MAX,
        ..machine.options.clone()
    };
    Node::open(options, now()).unwrap().0
}

/// Starts the node, with room for a second copy or without.
fn start(machine: &NodeMachine, in_place: bool) -> Node {
    if in_place {
        start_full(machine)
    } else {
        machine.start().0
    }
}

/// Fails if a mend leaves a wrong byte, or the replaced groups are not in the attic.
#[test]
fn flips_are_mended_and_old_groups_kept() {
    for in_place in [false, true] {
        let machine = NodeMachine::new();
        drop(machine.with_file("a"));
        let node = start(&machine, in_place);
        let content = bytes(SIZE);
        machine.flip("a", &[0, 3, 10]);
        let spoilt = machine.content("a");
        let (corrupt, _) = damage(&verify(&node, "a"));
        let sidecar = read(&machine.target("a").sidecar);
        let began = node
            .files
            .begin_mend(order("a", &content, corrupt.clone()), now())
            .unwrap();
        assert_eq!(began.is_in_place(), in_place);
        drop(began);
        assert_eq!(
            machine.incoming(),
            0,
            "nothing is left of a mend that was dropped"
        );
        let mended = mend(&node, "a", &content, &corrupt).unwrap();
        assert_eq!(mended.groups, 3);
        assert_eq!(mended.entry.row.condition, Condition::Present);
        assert_eq!(mended.entry.row.verified, Some(now()));
        assert_eq!(listing(&node), std::slice::from_ref(&mended.entry));
        assert_eq!(machine.content("a"), content);
        assert_eq!(read(&machine.target("a").sidecar), sidecar);
        assert_eq!(machine.incoming(), 0);
        let mode = std::fs::metadata(machine.target("a").file)
            .unwrap()
            .permissions();
        assert!(mode.readonly());
        assert_eq!(verify(&node, "a").row.condition, Condition::Present);

        let place = machine.path("disk/attic").join(mended.attic.unwrap());
        assert_eq!(machine.attic(), std::slice::from_ref(&place));
        let reason: AtticReason = serde_json::from_slice(&read(&place.join("why.json"))).unwrap();
        assert_eq!(
            (reason.kind, reason.who.as_str()),
            (AtticItemKind::Groups, "officer/anna")
        );
        let positions: serde_json::Value =
            serde_json::from_slice(&read(&place.join("a.pos.mend"))).unwrap();
        let kept = read(&place.join("a.groups.mend"));
        let mut at = 0;
        let pieces = positions["pieces"].as_array().unwrap();
        assert_eq!(pieces.len(), 3);
        for piece in pieces {
            let bound = |index: usize| usize::try_from(piece[index].as_u64().unwrap()).unwrap();
            let length = bound(1) - bound(0);
            assert_eq!(kept[at..at + length], spoilt[bound(0)..bound(1)]);
            at += length;
        }
        assert_eq!(at, kept.len());
        // Twice within a second.
        machine.flip("a", &[3]);
        mend(&node, "a", &content, &set(&[3])).unwrap();
        assert_eq!(machine.attic().len(), 2);
        drop(node);
        assert_eq!(machine.start().1.unchanged, 1, "the manifest is as it was");
    }
}

/// Fails if a copy that is shorter or longer than admitted cannot be mended.
#[test]
fn copy_of_any_length_is_mended() {
    let content = bytes(SIZE);
    let spoilt: [Vec<u8>; 5] = [
        content[..16_384 * 4 + 9].to_vec(),
        Vec::new(),
        [&content[..], &vec![5; 70_000]].concat(),
        vec![1; SIZE],
        [&[7; 9], &content[9..], b"more"].concat(),
    ];
    for in_place in [false, true] {
        let machine = NodeMachine::new();
        drop(machine.with_file("a"));
        let node = start(&machine, in_place);
        for bad in &spoilt {
            spoil(&machine.target("a").file, |content| content.clone_from(bad));
            let (corrupt, _) = damage(&verify(&node, "a"));
            mend(&node, "a", &content, &corrupt).unwrap();
            assert_eq!(machine.content("a"), content);
            assert_eq!(verify(&node, "a").row.condition, Condition::Present);
        }
    }
}

/// Fails if an empty file, or one at the edge of a group, to which bytes were added cannot be mended, or the surplus is
/// not kept as evidence.
#[test]
fn the_smallest_files_are_mended_too() {
    for size in [0, 1, 16_384, 16_385] {
        let machine = NodeMachine::new();
        let (node, _) = machine.start();
        let content = bytes(size);
        machine.store(&node, "a", &content).unwrap();
        spoil(&machine.target("a").file, |content| content.insert(0, 9));
        let (corrupt, _) = damage(&verify(&node, "a"));
        let mended = mend(&node, "a", &content, &corrupt).unwrap();
        assert!(mended.attic.is_some(), "the surplus is evidence");
        assert_eq!(machine.content("a"), content);
        if size == 0 {
            spoil(&machine.target("a").file, |content| content.push(1));
            let mut mend = node
                .files
                .begin_mend(order("a", &content, set(&[0])), now())
                .unwrap();
            mend.write_segment(0, 0, &slice(&content, 0..0), &mut on)
                .unwrap();
            mend.close_mend(now(), &mut on).unwrap();
            assert_eq!(machine.content("a"), content);
        }
    }
}

/// Fails if a damaged group is missed or a good one is reported, or a mend of many groups leaves a byte wrong.
#[test]
fn a_hundred_random_flips_are_located_and_mended() {
    let size = 400 * 16_384 + 1;
    let content = bytes(size);
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    machine.store(&node, "a", &content).unwrap();
    let mut dice = blake3::Hasher::new().update(b"flips").finalize_xof();
    let mut groups = BTreeSet::new();
    spoil(&machine.target("a").file, |content| {
        for _ in 0..100 {
            let mut number = [0; 8];
            dice.fill(&mut number);
            let at = usize::try_from(u64::from_le_bytes(number)).unwrap() % size;
            content[at] ^= 0x10;
            groups.insert(at as u64 / 16_384);
        }
    });
    let expected = set(&groups.into_iter().collect::<Vec<_>>());
    let (corrupt, _) = damage(&verify(&node, "a"));
    assert_eq!(corrupt, expected);
    assert_eq!(
        mend(&node, "a", &content, &corrupt).unwrap().groups,
        expected.len()
    );
    assert_eq!(machine.content("a"), content);
}

/// Fails if copies whose damage differs cannot mend each other.
#[test]
fn union_of_good_groups_mends_every_copy() {
    // No copy is intact; each has what the others lack.
    let content = bytes(SIZE);
    let bad: [&[usize]; 3] = [&[0, 1, 2, 9], &[3, 4, 10], &[5, 6, 7, 8]];
    let machines: Vec<(NodeMachine, Node)> = bad
        .iter()
        .map(|bad| {
            let machine = NodeMachine::new();
            let node = machine.with_file("a");
            machine.flip("a", bad);
            (machine, node)
        })
        .collect();
    for (machine, node) in &machines {
        let (corrupt, _) = damage(&verify(node, "a"));
        let mut mend = node
            .files
            .begin_mend(order("a", &content, corrupt.clone()), now())
            .unwrap();
        for range in corrupt.byte_ranges(SIZE as u64) {
            for offset in range.clone().step_by(16_384) {
                let end = range.end.min(offset + 16_384);
                let encoded = machines
                    .iter()
                    .find_map(|(_, donor)| read_proven(donor, offset..end));
                mend.write_segment(offset, end - offset, &encoded.unwrap(), &mut on)
                    .unwrap();
            }
        }
        mend.close_mend(now(), &mut on).unwrap();
        assert_eq!(machine.content("a"), content);
    }
}

/// Makes a segment of a range, if the donor can prove it; a damaged donor cannot.
fn read_proven(donor: &Node, range: std::ops::Range<u64>) -> Option<Vec<u8>> {
    let reading = donor.files.open_file(&name("a")).unwrap();
    let root = reading.entry.row.root.unwrap();
    let size = reading.entry.row.size;
    let content = FileContent { root, size };
    let mut encoded = Vec::new();
    archive_proof::encode_ranges(reading.copy(), content, &[range], &mut encoded)
        .ok()
        .map(|_| encoded)
}

/// Fails if a sender of wrong groups, or one that goes away, changes the copy.
#[test]
fn liar_or_cut_leaves_copy_unchanged() {
    let content = bytes(SIZE);
    let wanted = set(&[1, 2, 3, 7, 10]);
    let good = segments(&content, &wanted);
    let machine = NodeMachine::new();
    let node = machine.with_file("a");
    machine.flip("a", &[1, 2, 3, 7, 10]);
    let before = machine.content("a");
    let entry = verify(&node, "a");
    let mut other = content.clone();
    other[20_000] ^= 1;
    let lies: Vec<(&str, u64, Vec<Segment>)> = vec![
        ("wrong bytes", 16_384, segments(&other, &wanted)),
        ("a flip on the way", 16_384, {
            let mut flipped = good.clone();
            flipped[0].2[1500] ^= 1;
            flipped
        }),
        ("cut", 16_384, {
            let mut cut = good.clone();
            cut[0].2.truncate(20_000);
            cut
        }),
        ("longer", 16_384, {
            let mut long = good.clone();
            long[0].2.push(0);
            long
        }),
        ("out of order", 114_688, {
            let mut swapped = good.clone();
            swapped.swap(0, 2);
            swapped
        }),
        ("twice", 16_384, [&good[..1], &good[..]].concat()),
        ("one is missing", 114_688, {
            let mut missing = good.clone();
            missing.remove(1);
            missing
        }),
        ("the last is missing", 163_840, good[..3].to_vec()),
        (
            "surplus",
            0,
            [&good[..], &segments(&content, &set(&[0]))[..]].concat(),
        ),
        ("not announced", 0, segments(&content, &set(&[0]))),
        (
            "no whole groups",
            16_384,
            vec![(16_384, 100, slice(&content, 16_384..16_484))],
        ),
        ("beyond", 16_384, vec![(16_384, u64::MAX, Vec::new())]),
        ("nothing", 16_384, vec![(16_384, 0, Vec::new())]),
    ];
    for (what, at, segments) in lies {
        let mut mend = node
            .files
            .begin_mend(order("a", &content, wanted.clone()), now())
            .unwrap();
        let sent = segments.iter().try_for_each(|(offset, length, encoded)| {
            mend.write_segment(*offset, *length, encoded, &mut on)
        });
        let ended = match sent {
            Ok(()) => mend.close_mend(now(), &mut on).map(drop),
            Err(error) => {
                drop(mend);
                Err(error)
            }
        };
        let expected = if what == "one is missing" { 49_152 } else { at };
        match ended {
            Err(NodeError::Segment { offset, .. }) => {
                let is_named = offset == at || offset == expected;
                assert!(is_named, "{what}: {offset}");
            }
            other => panic!("{what}: {other:?}"),
        }
        assert_eq!(machine.content("a"), before, "{what}");
        assert_eq!(machine.incoming(), 0, "{what}");
        assert_eq!(machine.attic().len(), 0, "{what}");
        assert_eq!(listing(&node), std::slice::from_ref(&entry), "{what}");
    }
    // Cut after each message, and then done: the end is as if nothing had been before.
    for messages in 0..=good.len() {
        let mut mend = node
            .files
            .begin_mend(order("a", &content, wanted.clone()), now())
            .unwrap();
        for (offset, length, encoded) in &good[..messages] {
            mend.write_segment(*offset, *length, encoded, &mut on)
                .unwrap();
        }
        drop(mend);
        assert_eq!(
            (machine.content("a"), machine.incoming()),
            (before.clone(), 0)
        );
    }
    mend(&node, "a", &content, &wanted).unwrap();
    assert_eq!(machine.content("a"), content);
}

/// Fails if a mend that sends too few groups changes the copy or leaves files behind, instead of naming what else is
/// damaged.
#[test]
fn more_damage_than_was_sent_is_refused() {
    for in_place in [false, true] {
        let machine = NodeMachine::new();
        drop(machine.with_file("a"));
        let node = start(&machine, in_place);
        let content = bytes(SIZE);
        machine.flip("a", &[2, 8]);
        let before = machine.content("a");
        let error = mend(&node, "a", &content, &set(&[2])).unwrap_err();
        assert!(matches!(error, NodeError::NotMended { .. }), "{error}");
        spoil(&machine.target("a").file, |content| {
            content.truncate(100_000);
        });
        let error = mend(&node, "a", &content, &set(&[2])).unwrap_err();
        assert!(
            matches!(error, NodeError::Segment { offset, .. } if offset >= 49_152),
            "{error}"
        );
        spoil(&machine.target("a").file, |content| {
            content.clone_from(&before);
        });
        assert_eq!((machine.content("a"), machine.incoming()), (before, 0));
        assert!(machine.attic().is_empty());
        mend(&node, "a", &content, &set(&[2, 8])).unwrap();
    }
}

/// Fails if groups are sent for a copy that cannot be mended.
#[test]
fn impossible_mend_is_refused_at_its_opening() {
    let machine = NodeMachine::new();
    let node = machine.with_file("a");
    let content = bytes(SIZE);
    let refused = |groups: Groups| {
        node.files
            .begin_mend(order("a", &content, groups), now())
            .unwrap_err()
    };
    assert!(matches!(
        refused(Groups::none()),
        NodeError::NotMended { .. }
    ));
    assert!(matches!(refused(set(&[11])), NodeError::NotMended { .. }));
    let other = order("a", b"other", set(&[0]));
    assert!(matches!(
        node.files.begin_mend(other, now()),
        Err(NodeError::Mismatch { what: "root", .. })
    ));
    assert!(matches!(
        node.files
            .begin_mend(order("b", &content, set(&[0])), now()),
        Err(NodeError::NotFound(_))
    ));
    std::fs::remove_file(machine.target("a").file).unwrap();
    assert!(matches!(refused(set(&[0])), NodeError::NotMended { .. }));
    verify(&node, "a");
    assert!(matches!(refused(set(&[0])), NodeError::NotMended { .. }));
    assert_eq!(machine.incoming(), 0);
}

/// Fails if the outboard of a mended copy stays rotten.
#[test]
fn mend_replaces_a_rotten_outboard() {
    for in_place in [false, true] {
        let machine = NodeMachine::new();
        drop(machine.with_file("a"));
        let node = start(&machine, in_place);
        let content = bytes(SIZE);
        let path = machine.target("a").outboard;
        let good = read(&path);
        for rot in [0, 5 * 64, 9 * 64] {
            spoil(&path, |outboard| outboard[rot] ^= 1);
            machine.flip("a", &[5]);
            mend(&node, "a", &content, &set(&[5])).unwrap();
            assert_eq!(read(&path), good);
        }
        std::fs::remove_file(&path).unwrap();
        machine.flip("a", &[5]);
        mend(&node, "a", &content, &set(&[5])).unwrap();
        assert_eq!(read(&path), good);
        assert_eq!(machine.incoming(), 0);
    }
}
