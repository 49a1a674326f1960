//! Encoded ranges: what is decoded, and what is refused.

#![expect(
    clippy::single_range_in_vec_init,
    reason = "a list of one range is meant"
)]

use std::cell::RefCell;

use archive_model::Root;

use super::*;
use crate::testing::{BadDisk, EDGES};
use crate::tree::{Tree, TreeBuilder};
use tools_testing::{Random, noise};

const G: u64 = GROUP_SIZE;

fn tree(data: &[u8]) -> Tree<Vec<u8>> {
    let mut builder = TreeBuilder::new(Vec::new());
    builder.update(data).unwrap();
    builder.finish().unwrap()
}

fn copy<'a>(data: &'a dyn ReadAt, tree: &'a Tree<Vec<u8>>) -> CopyBytes<'a> {
    CopyBytes {
        data,
        outboard: Some(&tree.sink),
    }
}

fn encoded(data: &[u8], tree: &Tree<Vec<u8>>, ranges: &[Range<u64>]) -> Vec<u8> {
    let mut out = Vec::new();
    let written = encode_ranges(copy(&data, tree), tree.content(), ranges, &mut out).unwrap();
    assert_eq!(written, out.len() as u64);
    out
}

type Pieces = Vec<(u64, Vec<u8>)>;

fn decoded(
    stream: &[u8],
    root: Root,
    size: u64,
    ranges: &[Range<u64>],
) -> (Pieces, Result<(), DecodeError>) {
    let mut pieces = Vec::new();
    let content = FileContent { root, size };
    let result = decode_ranges(stream, content, ranges, |offset, bytes| {
        assert!(!bytes.is_empty() && bytes.len() as u64 <= G);
        pieces.push((offset, bytes.to_vec()));
        Ok(())
    });
    (pieces, result)
}

/// Marks the bytes in `ranges`, in the slow way.
fn marks(ranges: &[Range<u64>], size: u64) -> Vec<bool> {
    (0..size)
        .map(|byte| ranges.iter().any(|range| range.contains(&byte)))
        .collect()
}

fn assert_exact(data: &[u8], pieces: &Pieces, ranges: &[Range<u64>]) {
    let mut got = vec![false; data.len()];
    let mut past = 0;
    for (offset, bytes) in pieces {
        assert!(*offset >= past, "ascending");
        let start = usize::try_from(*offset).unwrap();
        assert_eq!(&data[start..start + bytes.len()], bytes);
        got[start..start + bytes.len()].fill(true);
        past = offset + bytes.len() as u64;
    }
    assert_eq!(got, marks(ranges, data.len() as u64));
}

/// Fails if a stream of ranges gives bytes that were not asked for, lacks some, or gives them out of order.
#[test]
fn stream_gives_exactly_the_requested_ranges() {
    for size in EDGES {
        let data = noise(size, 1);
        let tree = tree(&data);
        let size = size as u64;
        let mut asked = vec![
            vec![0..size],
            vec![0..u64::MAX],
            vec![0..1],
            vec![size.saturating_sub(1)..size],
            vec![],
        ];
        asked.push(vec![size..size + 5, 7..7, Range { start: 9, end: 3 }]);
        let mut dice = Random::new(size);
        for _ in 0..if size > 1 << 20 { 3 } else { 20 } {
            asked.push(
                (0..dice.below(6))
                    .map(|_| dice.below(size + 9))
                    .map(|s| s..s + dice_length(s, size))
                    .collect(),
            );
        }
        for ranges in asked {
            let stream = encoded(&data, &tree, &ranges);
            let (pieces, result) = decoded(&stream, tree.root, size, &ranges);
            result.unwrap();
            assert_exact(&data, &pieces, &ranges);
        }
    }
}

fn dice_length(start: u64, size: u64) -> u64 {
    Random::new(start ^ size).below(size / 3 + 2)
}

/// Fails if a file of one group cannot be sent without an outboard, or a larger one is sent without a proof.
#[test]
fn a_file_of_one_group_needs_no_outboard() {
    for size in [0, 1, 1024, 5000, 16_384] {
        let data = noise(size, 2);
        let tree = tree(&data);
        let alone = CopyBytes {
            data: &data,
            outboard: None,
        };
        let mut out = Vec::new();
        encode_ranges(alone, tree.content(), &[0..u64::MAX], &mut out).unwrap();
        let (pieces, result) = decoded(&out, tree.root, tree.size, &[0..u64::MAX]);
        result.unwrap();
        assert_exact(&data, &pieces, &[0..u64::MAX]);
    }
    let data = noise(16_385, 2);
    let alone = CopyBytes {
        data: &data,
        outboard: None,
    };
    let error = encode_ranges(alone, tree(&data).content(), &[0..1], io::sink()).unwrap_err();
    assert!(matches!(error, EncodeError::DamagedOutboard));
}

/// Fails if sending one group costs more than the group and one pair for each level of the tree.
#[test]
fn one_group_costs_itself_and_its_path() {
    // 64 MiB are 4096 groups: 12 levels.
    let data = noise(64 << 20, 3);
    let tree = tree(&data);
    for group in [0, 1, 2048, 4095] {
        assert_eq!(
            encoded(&data, &tree, &[group * G..(group + 1) * G]).len() as u64,
            G + 12 * 64
        );
    }
    let record = [33_333_333..33_337_333];
    assert!(encoded(&data, &tree, &record).len() < 4000 + 1024 + 20 * 64 * 2);
}

/// Fails if a flipped or cut stream gives out a byte that is not in the file, or ends without an error.
#[test]
fn flipped_or_cut_streams_pass_only_proven_bytes() {
    let data = noise(50_000, 4);
    let tree = tree(&data);
    for ranges in [
        vec![0..50_000],
        vec![20_000..20_001],
        vec![1000..3000, 40_000..50_000],
    ] {
        let stream = encoded(&data, &tree, &ranges);
        for position in 0..stream.len() {
            if ranges.len() == 1 && ranges[0].end == 50_000 && position % 7 != 0 {
                continue;
            }
            let mut bad = stream.clone();
            bad[position] ^= 1 << (position % 8);
            let (pieces, result) = decoded(&bad, tree.root, tree.size, &ranges);
            assert!(
                matches!(
                    result,
                    Err(DecodeError::WrongGroup { .. } | DecodeError::WrongProof)
                ),
                "{position}"
            );
            assert_proven(&data, &pieces);
            let (pieces, result) = decoded(&stream[..position], tree.root, tree.size, &ranges);
            assert!(matches!(result, Err(DecodeError::Cut)), "cut at {position}");
            assert_proven(&data, &pieces);
        }
        let longer = [stream.as_slice(), &[0]].concat();
        let (_, result) = decoded(&longer, tree.root, tree.size, &ranges);
        assert!(matches!(result, Err(DecodeError::Trailing)));
        let (pieces, result) = decoded(&stream, Root::from_bytes([7; 32]), tree.size, &ranges);
        assert!(result.is_err() && pieces.is_empty());
    }
}

fn assert_proven(data: &[u8], pieces: &Pieces) {
    for (offset, bytes) in pieces {
        let start = usize::try_from(*offset).unwrap();
        assert_eq!(&data[start..start + bytes.len()], bytes);
    }
}

/// Fails if a node can claim a wrong size of a file although every byte that it sends is proven.
#[test]
fn the_last_byte_proves_the_size() {
    let data = noise(200_000, 5);
    let tree = tree(&data);
    let middle = [0..100];
    let stream = encoded(&data, &tree, &middle);
    assert!(
        decoded(&stream, tree.root, 199_999, &middle).1.is_ok(),
        "the trap that `ranges_with_last` is for"
    );
    let with_last = ranges_with_last(&middle, tree.size);
    let stream = encoded(&data, &tree, &with_last);
    decoded(&stream, tree.root, tree.size, &with_last)
        .1
        .unwrap();
    let lies = [
        0,
        1,
        199_000,
        199_999,
        200_001,
        200_704,
        212_992,
        400_000,
        1 << 40,
        u64::MAX,
    ];
    for lie in lies {
        let asked = ranges_with_last(&middle, lie);
        assert!(decoded(&stream, tree.root, lie, &asked).1.is_err(), "{lie}");
    }
    let empty = super::tests::tree(&[]);
    assert!(decoded(&[], empty.root, 0, &[]).1.is_ok());
    assert!(
        decoded(&[], tree.root, 0, &[]).1.is_err(),
        "another file is not empty"
    );
}

/// Fails if damaged data is sent, or the error blames another group, or the data for the outboard.
#[test]
fn unprovable_copy_says_what_is_wrong() {
    let data = noise(30 * 16_384, 6);
    let tree = tree(&data);
    let all = [0..tree.size];
    let attempt = |data: &dyn ReadAt, outboard: &dyn ReadAt| {
        let mut out = Vec::new();
        let copy = CopyBytes {
            data,
            outboard: Some(outboard),
        };
        let error = encode_ranges(copy, tree.content(), &all, &mut out).unwrap_err();
        let (pieces, result) = decoded(&out, tree.root, tree.size, &all);
        assert!(
            matches!(result, Err(DecodeError::Cut)),
            "what was written is true, and short"
        );
        assert!(pieces.iter().all(|(offset, _)| *offset < tree.size));
        error
    };
    let mut flipped = data.clone();
    flipped[17 * 16_384 + 5] ^= 2;
    assert!(matches!(
        attempt(&flipped, &tree.sink),
        EncodeError::DamagedGroup { group: 17 }
    ));
    assert!(matches!(
        attempt(&&data[..=20 * 16_384], &tree.sink),
        EncodeError::DamagedGroup { group: 20 }
    ));
    let disk = BadDisk::new(&data, [21..22]);
    assert!(matches!(
        attempt(&disk, &tree.sink),
        EncodeError::UnreadableGroup { group: 21, .. }
    ));
    let mut rotten = tree.sink.clone();
    rotten[100] ^= 1;
    assert!(matches!(
        attempt(&data, &rotten),
        EncodeError::DamagedOutboard
    ));
    assert!(matches!(
        attempt(&data, &&tree.sink[..64]),
        EncodeError::DamagedOutboard
    ));
    let disk = BadDisk::new(&tree.sink, [0..1]);
    assert!(matches!(
        attempt(&data, &disk),
        EncodeError::UnreadableOutboard(_)
    ));
}

/// Fails if an error of the sink is reported as damage, or a sink that failed is given more bytes.
#[test]
fn failing_sink_stops_both_ends() {
    let data = noise(100_000, 7);
    let tree = tree(&data);
    let all = [0..tree.size];
    let mut small = [0; 5000];
    let out = small.as_mut_slice();
    let error = encode_ranges(copy(&data, &tree), tree.content(), &all, out).unwrap_err();
    assert!(matches!(error, EncodeError::Sink(error) if error.kind() == io::ErrorKind::WriteZero));
    let stream = encoded(&data, &tree, &all);
    let calls = RefCell::new(0);
    let error = decode_ranges(stream.as_slice(), tree.content(), &all, |_, _| {
        *calls.borrow_mut() += 1;
        Err(io::ErrorKind::StorageFull.into())
    });
    assert!(
        matches!(error, Err(DecodeError::Sink(error)) if error.kind() == io::ErrorKind::StorageFull)
    );
    assert_eq!(calls.into_inner(), 1);
}

/// Fails if damage elsewhere in a copy keeps its good groups from being sent, so that a file cannot be salvaged.
#[test]
fn three_broken_copies_make_a_whole_one() {
    let data = noise(90 * 16_384 + 3, 8);
    let tree = tree(&data);
    let copies: Vec<Vec<u8>> = (0..3)
        .map(|third| {
            let mut bytes = data.clone();
            (0..91)
                .filter(|group| group % 3 == third)
                .for_each(|group| bytes[group * 16_384] ^= 1);
            bytes
        })
        .collect();
    let mut whole = vec![0; data.len()];
    for group in 0..91 {
        let range = group * G..(group + 1) * G;
        let ranges = std::slice::from_ref(&range);
        let stream = copies.iter().find_map(|bytes| {
            let mut out = Vec::new();
            encode_ranges(copy(bytes, &tree), tree.content(), ranges, &mut out)
                .ok()
                .map(|_| out)
        });
        let stream = stream.unwrap();
        decode_ranges(
            stream.as_slice(),
            tree.content(),
            ranges,
            |offset, bytes| {
                let start = usize::try_from(offset).unwrap();
                whole[start..start + bytes.len()].copy_from_slice(bytes);
                Ok(())
            },
        )
        .unwrap();
    }
    assert_eq!(whole, data);
}
