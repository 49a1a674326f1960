//! The walk against every damage we can think of.

use std::iter;

use archive_model::Root;

use super::*;
use crate::outboard::outboard_size;
use crate::testing::{BadDisk, EDGES};
use crate::tree::TreeBuilder;
use tools_testing::{Random, noise};

const G: usize = GROUP;

struct StoredCopy {
    data: Vec<u8>,
    outboard: Vec<u8>,
    root: Root,
}

fn stored(size: usize, seed: u64) -> StoredCopy {
    let data = noise(size, seed);
    let mut builder = TreeBuilder::new(Vec::new());
    builder.update(&data).unwrap();
    let tree = builder.finish().unwrap();
    StoredCopy {
        data,
        outboard: tree.sink,
        root: tree.root,
    }
}

fn go_on(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

impl StoredCopy {
    fn size(&self) -> u64 {
        self.data.len() as u64
    }

    fn content(&self) -> FileContent {
        FileContent {
            root: self.root,
            size: self.size(),
        }
    }

    /// Walks `data` in place of what was stored.
    fn walk(&self, data: &dyn ReadAt, outboard: Option<&[u8]>) -> WalkResult {
        self.walk_beside(
            data,
            outboard.as_ref().map(|outboard| outboard as &dyn ReadAt),
        )
    }

    /// Walks `data` beside an outboard that may be on a bad disk.
    fn walk_beside(&self, data: &dyn ReadAt, outboard: Option<&dyn ReadAt>) -> WalkResult {
        walk_tree(CopyBytes { data, outboard }, self.content(), &mut go_on)
    }
}

fn flipped(bytes: &[u8], position: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[position] ^= 0x10;
    bytes
}

/// Fails if a good group is called damaged at some size of the file, or a byte is read twice or not at all.
#[test]
fn good_files_of_every_shape_are_intact() {
    for size in EDGES {
        let file = stored(size, 1);
        let mut read = 0;
        let mut count = |bytes| {
            assert!(bytes <= 1 << 20);
            read += bytes;
            ControlFlow::Continue(())
        };
        let copy = CopyBytes {
            data: &file.data,
            outboard: Some(&file.outboard),
        };
        let found = walk_tree(copy, file.content(), &mut count);
        assert!(found.is_intact(), "{size}");
        assert_eq!(
            (found.outboard, found.read_error),
            (OutboardState::Good, None),
            "{size}"
        );
        assert_eq!(read, file.size(), "every byte once");
        let without = file.walk(&file.data, None);
        assert!(without.is_intact(), "{size}");
        assert_eq!(without.outboard == OutboardState::Good, size <= G, "{size}");
    }
}

/// Fails if a flipped bit is not found, or another group or the outboard is blamed for it.
#[test]
fn one_flipped_bit_names_its_group_only() {
    for size in EDGES.into_iter().filter(|size| *size > 0) {
        let file = stored(size, 2);
        for position in [0, size / 3, size / 2, size - 1] {
            let found = file.walk(&flipped(&file.data, position), Some(&file.outboard));
            assert_eq!(
                found.damaged,
                Groups::from_iter([(position / G) as u64]),
                "{position} of {size}"
            );
            assert_eq!(
                (found.outboard, found.stopped),
                (OutboardState::Good, false)
            );
            assert!(!found.is_intact());
        }
    }
}

/// Fails if a flipped, cut or foreign outboard makes good data pass for damaged, or passes for good.
#[test]
fn a_rotten_outboard_never_blames_good_data() {
    for size in [G + 1, 3 * G, 5 * G + 7, 130 * G] {
        let file = stored(size, 3);
        for position in 0..file.outboard.len() {
            if size > 20 * G && position % 97 != 0 {
                continue;
            }
            let found = file.walk(&file.data, Some(&flipped(&file.outboard, position)));
            assert!(
                found.is_intact(),
                "byte {position} of the outboard of {size}"
            );
            assert_eq!(found.outboard, OutboardState::Damaged);
        }
        for length in (0..file.outboard.len()).step_by(if size > 20 * G { 333 } else { 1 }) {
            let found = file.walk(&file.data, Some(&file.outboard[..length]));
            assert!(found.is_intact(), "outboard cut at {length}");
            assert_eq!(found.outboard, OutboardState::Damaged);
        }
        let longer = [file.outboard.as_slice(), b"x"].concat();
        for other in [
            longer,
            vec![0; file.outboard.len()],
            noise(file.outboard.len(), 9),
        ] {
            let found = file.walk(&file.data, Some(&other));
            assert!(found.is_intact());
            assert_eq!(found.outboard, OutboardState::Damaged);
        }
    }
}

/// Fails if a flipped bit in the outboard hides one in the data, or makes good groups pass for damaged.
#[test]
fn outboard_flip_hides_no_data_flip() {
    for count in [2, 3, 7, 12, 70] {
        let file = stored(count * G - 5, 4);
        for group in (0..count).step_by(count / 10 + 1) {
            let data = flipped(&file.data, group * G + 3);
            for position in (0..file.outboard.len()).step_by(32) {
                let found = file.walk(&data, Some(&flipped(&file.outboard, position)));
                assert!(found.damaged.contains_group(group as u64));
                // Only the value of the damaged group itself exists nowhere else.
                let kept = &file.outboard[position..position + 32];
                let own = &file.data[group * G..file.data.len().min((group + 1) * G)];
                if kept != chaining::of_bytes(group as u64, own, false) {
                    assert_eq!(
                        found.damaged.len(),
                        1,
                        "group {group} of {count}, outboard at {position}"
                    );
                }
                assert_eq!(found.outboard, OutboardState::Damaged);
            }
        }
    }
}

/// Fails if a wrong group passes when data and outboard are both damaged, or a file with good data is called damaged.
#[test]
fn whatever_is_damaged_nothing_wrong_passes() {
    let file = stored(150 * G + 77, 5);
    for seed in 0..150 {
        let mut dice = Random::new(seed);
        let mut data = file.data.clone();
        let mut outboard = file.outboard.clone();
        let mut hurt = Groups::none();
        for _ in 0..dice.below(6) {
            let position = dice.below(file.size());
            data[usize::try_from(position).unwrap()] ^= 1 << dice.below(8);
            hurt.insert_one(position / G as u64);
        }
        // Two equal flips undo each other, so the bytes are compared.
        hurt = hurt
            .iter()
            .filter(|group| {
                let bytes = |file: &[u8]| {
                    file.chunks(G)
                        .nth(usize::try_from(*group).unwrap())
                        .map(<[u8]>::to_vec)
                };
                bytes(&data) != bytes(&file.data)
            })
            .collect();
        let alone = file.walk(&data, Some(&outboard));
        assert_eq!(
            (alone.damaged, alone.outboard),
            (hurt.clone(), OutboardState::Good),
            "seed {seed}"
        );
        for _ in 0..dice.below(8) {
            let position = usize::try_from(dice.below(outboard.len() as u64)).unwrap();
            outboard[position] ^= 1 << dice.below(8);
        }
        let found = file.walk(&data, Some(&outboard));
        assert!(
            hurt.difference(&found.damaged).is_empty(),
            "seed {seed}: {hurt:?} {found:?}"
        );
        assert_eq!(found.damaged.is_empty(), hurt.is_empty(), "seed {seed}");
        assert_eq!(
            found.outboard == OutboardState::Good,
            outboard == file.outboard,
            "seed {seed}"
        );
    }
}

/// Fails if groups that cannot be proven without an outboard pass for good.
#[test]
fn without_an_outboard_unproven_is_damaged() {
    let file = stored(70 * G, 6);
    let found = file.walk(&flipped(&file.data, 5), None);
    assert_eq!(
        (found.damaged, found.outboard),
        (Groups::all(file.size()), OutboardState::Absent)
    );
}

/// Fails if the missing end of a short file passes for good or for unreadable, or costs the groups before it.
#[test]
fn a_short_file_has_lost_its_last_groups() {
    let file = stored(135 * G + 9, 7);
    for length in [
        0,
        1,
        G - 1,
        G,
        63 * G,
        64 * G - 1,
        64 * G,
        64 * G + 1,
        100 * G + 1,
        135 * G,
        135 * G + 8,
    ] {
        let found = file.walk(&&file.data[..length], Some(&file.outboard));
        assert_eq!(
            found.damaged,
            ((length / G) as u64..136).collect(),
            "cut at {length}"
        );
        assert_eq!(
            (found.outboard, found.unreadable),
            (OutboardState::Good, Groups::none())
        );
    }
}

/// Fails if a group of another file passes for good, or a good outboard is blamed for the data.
#[test]
fn a_file_of_garbage_is_all_damaged() {
    let file = stored(66 * G, 8);
    let found = file.walk(&noise(66 * G, 9), Some(&file.outboard));
    assert_eq!(
        (found.damaged, found.outboard),
        (Groups::all(file.size()), OutboardState::Good)
    );
    let neither = file.walk(&noise(66 * G, 9), Some(&noise(file.outboard.len(), 10)));
    assert_eq!(
        (neither.damaged, neither.outboard),
        (Groups::all(file.size()), OutboardState::Damaged)
    );
}

/// Fails if a bad sector is reported as wrong data, or makes the readable groups beside it unreadable.
#[test]
fn only_groups_that_cannot_be_read_are_unreadable() {
    let file = stored(200 * G + 1, 11);
    let damaged = flipped(&file.data, 101 * G);
    let disk = BadDisk::new(&damaged, [0..1, 63..66, 100..101, 200..201]);
    let found = file.walk(&disk, Some(&file.outboard));
    assert_eq!(
        found.unreadable,
        Groups::from_iter([0, 63, 64, 65, 100, 200])
    );
    assert_eq!(found.damaged, Groups::from_iter([101]));
    assert_eq!(found.outboard, OutboardState::Good);
    assert!(found.read_error.unwrap().contains("os error 5"));

    // Nothing else can be proven without an outboard, but readable groups are not called unreadable.
    let unproven = file.walk(&disk, None);
    assert_eq!(
        unproven.unreadable,
        Groups::from_iter([0, 63, 64, 65, 100, 200])
    );
    assert_eq!(
        unproven.damaged,
        Groups::all(file.size()).difference(&unproven.unreadable)
    );
}

/// Fails if an outboard that cannot be read makes good data pass for damaged or unreadable, or hides damage.
#[test]
fn bad_sectors_under_the_outboard_blame_no_data() {
    let file = stored(1100 * G, 12);
    let damaged = flipped(&file.data, 700 * G);
    for sector in 0..outboard_size(file.size()).div_ceil(G as u64) {
        let outboard = BadDisk::new(&file.outboard, iter::once(sector..sector + 1));
        let found = file.walk_beside(&file.data, Some(&outboard));
        assert!(found.is_intact(), "{sector}");
        assert_eq!(found.outboard, OutboardState::Damaged);
        let found = file.walk_beside(&damaged, Some(&outboard));
        assert!(
            found.damaged.contains_group(700) && found.unreadable.is_empty(),
            "{sector}"
        );
    }
}

/// Fails if a walk that was stopped calls the groups damaged that it did not read, or passes for a complete one.
#[test]
fn a_stopped_walk_blames_nobody() {
    let file = stored(300 * G, 13);
    for (outboard, stops) in [
        (Some(file.outboard.as_slice()), 5),
        (None, 5),
        (Some(&[][..]), 5),
    ] {
        for stop in 1..=stops {
            let mut left = stop;
            let mut progress = |_| {
                left -= 1;
                if left == 0 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            };
            let copy = CopyBytes {
                data: &file.data,
                outboard: outboard.as_ref().map(|outboard| outboard as &dyn ReadAt),
            };
            let found = walk_tree(copy, file.content(), &mut progress);
            assert!(
                found.stopped && !found.is_intact() && found.damaged.is_empty(),
                "{stop}"
            );
        }
    }
}

/// Fails if a walk tries each group of a huge announced size, or its report has an entry for each of them.
#[test]
fn an_announced_size_beyond_reason_ends_at_once() {
    let file = stored(G, 14);
    let announced = FileContent {
        size: u64::MAX,
        ..file.content()
    };
    let mut copy = CopyBytes {
        data: &file.data,
        outboard: None,
    };
    let found = walk_tree(copy, announced, &mut go_on);
    assert_eq!(found.damaged, Groups::all(u64::MAX));
    let outboard = noise(640, 1);
    copy.outboard = Some(&outboard);
    let found = walk_tree(copy, announced, &mut go_on);
    assert_eq!(
        (found.damaged, found.outboard),
        (Groups::all(u64::MAX), OutboardState::Damaged)
    );
}

/// Fails if a walk reads the data group by group or the outboard pair by pair, which costs many times the reads.
#[test]
fn data_is_read_in_pieces_outboard_in_blocks() {
    let file = stored(2048 * G, 15);
    let data = BadDisk::new(&file.data, []);
    let outboard = BadDisk::new(&file.outboard, []);
    assert!(file.walk_beside(&data, Some(&outboard)).is_intact());
    assert_eq!(data.reads.get(), file.size() / (1 << 20));
    assert_eq!(
        outboard.reads.get(),
        4,
        "the end, the root, two blocks of 1024 groups"
    );
}
