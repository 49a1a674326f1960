//! Reading files that are whole, damaged or cut, and files without a usable outboard.

use std::io;

use super::*;
use crate::read_at::CopyBytes;
use crate::testing::EDGES;
use crate::tree::TreeBuilder;
use crate::walk::walk_tree;
use tools_testing::noise;

fn go(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn tree(data: &[u8]) -> (FileContent, Vec<u8>) {
    let mut builder = TreeBuilder::new(Vec::new());
    builder.update(data).unwrap();
    let tree = builder.finish().unwrap();
    (tree.content(), tree.sink)
}

/// Reads everything that is handed out, and returns the groups that are not.
fn read_all<D: ReadAt + ?Sized>(
    data: &D,
    outboard: Option<&[u8]>,
    content: FileContent,
    original: &[u8],
    step: usize,
) -> Groups {
    let size = original.len() as u64;
    let mut reader = ProvenReader::new(data, outboard, content);
    let mut at = 0;
    let mut bad = Groups::none();
    let mut buffer = vec![0; step];
    while at < size {
        match reader.read_at(at, &mut buffer, &mut go) {
            Ok(count) => {
                assert!(count > 0);
                let start = usize::try_from(at).unwrap();
                assert_eq!(buffer[..count], original[start..start + count], "at {at}");
                at += count as u64;
            }
            Err(ProvenReadError::Damaged { range, reason }) => {
                assert!(range.start <= at && at < range.end && range.end <= size);
                assert!(!reason.is_empty());
                bad.insert_range(at / GROUP as u64..range.end.div_ceil(GROUP as u64));
                at = range.end;
            }
            Err(ProvenReadError::Stopped) => panic!("nobody stopped it"),
        }
    }
    assert_eq!(reader.read_at(at, &mut buffer, &mut go), Ok(0));
    assert_eq!(reader.read_at(u64::MAX, &mut buffer, &mut go), Ok(0));
    bad
}

/// Fails if good data is refused because its outboard is rotten, cut or absent.
#[test]
fn good_data_is_read_whatever_the_outboard_is() {
    for size in EDGES.into_iter().chain([GROUP * 200 + 77]) {
        let data = noise(size, 1);
        let (content, outboard) = tree(&data);
        let rotten = noise(outboard.len(), 2);
        let short = &outboard[..outboard.len() / 2];
        for outboard in [Some(outboard.as_slice()), None, Some(&rotten), Some(short)] {
            for step in [100_000, GROUP, 3 << 20] {
                assert!(read_all(data.as_slice(), outboard, content, &data, step).is_empty());
            }
        }
    }
}

/// Fails if the reader leaves out other groups than those that the walk calls damaged.
#[test]
fn good_outboard_leaves_out_exactly_damaged_groups() {
    let original = noise(GROUP * 150 + 5, 3);
    let (content, outboard) = tree(&original);
    for seed in 0..40 {
        let mut data = original.clone();
        for pick in noise(1 + usize::try_from(seed % 5).unwrap(), seed) {
            let at = usize::from(pick) * 9001 % data.len();
            data[at] ^= 1;
        }
        let copy = CopyBytes {
            data: &data,
            outboard: Some(&outboard),
        };
        let found = walk_tree(copy, content, &mut go);
        let bad = read_all(data.as_slice(), Some(&outboard), content, &original, 70_000);
        assert_eq!(bad, found.damaged, "{seed}");
    }
}

/// Fails if a wrong byte of damaged data is handed out when the outboard is damaged as well, or absent, or a few
/// damaged bytes in both cost the good groups beside them.
#[test]
fn with_both_damaged_nothing_wrong_is_handed_out() {
    let original = noise(GROUP * 300 + 5, 4);
    let (content, outboard) = tree(&original);
    let all = Groups::all(original.len() as u64);
    let mut refused = 0;
    for seed in 0..40 {
        let mut data = original.clone();
        let mut rotten = outboard.clone();
        for (index, pick) in noise(3, seed).into_iter().enumerate() {
            let at = (usize::from(pick) * 20_011 + index * 77_777) % data.len();
            data[at] ^= 1;
            let at = (usize::from(pick) * 677 + index * 997) % rotten.len();
            rotten[at] ^= 1;
        }
        // `read_all` compares each byte with the original.
        let bad = read_all(data.as_slice(), Some(&rotten), content, &original, 70_000);
        assert!(!bad.is_empty());
        refused += bad.len();
        let bad = read_all(data.as_slice(), None, content, &original, 70_000);
        assert_eq!(bad, all, "the root alone proves no part of damaged data");
    }
    assert!(refused < 40 * all.len() / 10, "{refused}");
}

/// Fails if a group before the end of a short file is refused, or bytes behind the end are handed out.
#[test]
fn short_file_is_good_up_to_its_end() {
    let original = noise(GROUP * 100, 5);
    let (content, outboard) = tree(&original);
    let short = &original[..GROUP * 70 + 9];
    let bad = read_all(short, Some(&outboard), content, &original, 50_000);
    let mut bad = bad.ranges();
    assert_eq!((bad.next(), bad.next()), (Some(70..100), None));
}

/// Bytes with a sector that cannot be read, and which returns other bytes at each read.
struct Fickle {
    data: Vec<u8>,
    bad: Range<u64>,
    asked: std::sync::atomic::AtomicU64,
}

impl ReadAt for Fickle {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let end = offset + buffer.len() as u64;
        if offset < self.bad.end && self.bad.start < end {
            return Err(io::Error::other("bad sector"));
        }
        let count = ReadAt::read_at(&self.data, offset, buffer)?;
        let asked = self
            .asked
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if asked % 3 == 2 && count > 0 {
            buffer[count / 2] ^= 1;
        }
        Ok(count)
    }
}

/// Fails if bytes are proven in one read and handed out from another, in which the disk may return other bytes, or one
/// wrong read costs more than its group.
#[test]
fn disk_that_lies_sometimes_yields_no_wrong_bytes() {
    let original = noise(GROUP * 300 + 5, 6);
    let (content, outboard) = tree(&original);
    let fickle = || Fickle {
        data: original.clone(),
        bad: 100_000..100_001,
        asked: std::sync::atomic::AtomicU64::new(0),
    };
    let bad = read_all(&fickle(), Some(&outboard), content, &original, 70_000);
    assert!(bad.contains_group(100_000 / GROUP as u64));
    // A third of the reads are wrong: those of single groups beside the bad sector, and then those of whole windows.
    assert!(bad.len() < 40, "{bad:?}");
    let bad = read_all(&fickle(), None, content, &original, 70_000);
    assert_eq!(bad, Groups::all(original.len() as u64));
}

/// Fails if a proven file can be read forwards only, or not at all any more after a read was stopped.
#[test]
fn backward_reads_work_and_stop_ends_them() {
    let original = noise(GROUP * 300 + 5, 7);
    let (content, outboard) = tree(&original);
    let size = original.len() as u64;
    let mut reader = ProvenReader::new(original.as_slice(), Some(outboard.as_slice()), content);
    for at in (0..size).rev().step_by(50_001) {
        let mut byte = [0];
        assert_eq!(reader.read_at(at, &mut byte, &mut go), Ok(1));
        assert_eq!(byte[0], original[usize::try_from(at).unwrap()]);
    }
    for outboard in [Some(outboard.as_slice()), None] {
        let mut reader = ProvenReader::new(original.as_slice(), outboard, content);
        let stopped = reader.read_at(0, &mut [0; 10], &mut |_| ControlFlow::Break(()));
        assert_eq!(stopped, Err(ProvenReadError::Stopped));
        assert_eq!(reader.read_at(0, &mut [0; 10], &mut go), Ok(10));
    }
}
