//! The pairs of an outboard, read in blocks.
//!
//! Owns how an outboard is read during a walk: the pairs of a subtree lie together, so the pairs of a subtree of up to
//! 1024 groups are read at once (64 KiB), those above one by one. Absent, cut or unreadable pairs read as zeros, which
//! hash to no value above them.
//!
//! Not promised: that a pair is right. The caller compares it with the value above.

use crate::chaining::Pair;
use crate::outboard::{PAIR_SIZE, Subtree};
use crate::read_at::{ReadAt, fill_buffer};

/// The largest subtree, in groups, whose pairs are read at once.
const BLOCK: u64 = 1024;

/// A reader of pairs, which remembers the block it read last.
pub(crate) struct Pairs<'a, R: ?Sized = dyn ReadAt + 'a> {
    source: Option<&'a R>,
    block: Vec<u8>,
    /// The offset in the outboard at which `block` starts, in bytes.
    start: u64,
}

impl<'a, R: ReadAt + ?Sized> Pairs<'a, R> {
    pub(crate) fn new(source: Option<&'a R>) -> Self {
        Self {
            source,
            block: Vec::new(),
            start: 0,
        }
    }

    /// Returns the pair of `node`, which has children.
    pub(crate) fn pair(&mut self, node: Subtree) -> Pair {
        let pairs = node.pairs();
        let own = pairs.end.saturating_sub(PAIR_SIZE);
        if self.remembered(own).is_none() {
            self.read(
                if node.count() <= BLOCK {
                    pairs.start
                } else {
                    own
                },
                pairs.end,
            );
        }
        self.remembered(own).unwrap_or_default()
    }

    fn remembered(&self, position: u64) -> Option<Pair> {
        let start = usize::try_from(position.checked_sub(self.start)?).ok()?;
        let (left, rest) = self.block.get(start..)?.split_first_chunk()?;
        Some((*left, *rest.first_chunk()?))
    }

    fn read(&mut self, start: u64, end: u64) {
        let Some(source) = self.source else { return };
        self.start = start;
        self.block.clear();
        self.block
            .resize(usize::try_from(end - start).unwrap_or_default(), 0);
        let (filled, error) = fill_buffer(source, start, &mut self.block);
        self.block.get_mut(filled..).unwrap_or_default().fill(0);
        if error.is_some() {
            // A bad sector hides the pairs in it, not those around it.
            for (position, pair) in (start..).step_by(64).zip(self.block.chunks_mut(64)) {
                let (filled, _unreadable_is_zeros) = fill_buffer(source, position, pair);
                pair.get_mut(filled..).unwrap_or_default().fill(0);
            }
        }
    }
}
