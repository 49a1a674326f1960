//! Helpers that the tests of this crate share: sizes where trees change shape, and broken disks.

use std::cell::Cell;
use std::io;
use std::iter;
use std::ops::Range;

use archive_model::Groups;

use crate::read_at::ReadAt;

/// Sizes around every boundary at which the tree changes shape.
pub(crate) const EDGES: [usize; 27] = [
    0, 1, 1023, 1024, 1025, 2048, 2049, 15_361, 16_383, 16_384, 16_385, 17_408, 17_409, 32_767,
    32_768, 32_769, 49_151, 49_152, 49_153, 65_536, 65_537, 100_000, 131_073, 1_048_576, 1_048_577,
    2_345_678, 3_162_112,
];

/// Bytes on a disk of which some groups cannot be read: a read that touches one fails.
pub(crate) struct BadDisk<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) bad: Groups,
    pub(crate) reads: Cell<u64>,
}

impl<'a> BadDisk<'a> {
    pub(crate) fn new(bytes: &'a [u8], bad: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut groups = Groups::none();
        bad.into_iter().for_each(|range| groups.insert_range(range));
        Self {
            bytes,
            bad: groups,
            reads: Cell::new(0),
        }
    }
}

impl ReadAt for BadDisk<'_> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.reads.set(self.reads.get() + 1);
        let touched = Groups::groups_touching(iter::once(offset..offset + buffer.len() as u64));
        if touched.intersection(&self.bad).is_empty() {
            self.bytes.read_at(offset, buffer)
        } else {
            Err(io::Error::from_raw_os_error(5))
        }
    }
}
