//! The outboard: the hash tree of one file, kept beside it, down to groups of 16 KiB. This is its format.
//!
//! # What it is for
//!
//! The BLAKE3 hash of a file is the root of a binary tree over the file's chunks of 1024 bytes. The outboard holds the
//! inner nodes of that tree, so that a reader who knows only the root can tell which part of a damaged file is damaged,
//! and can prove any part of a good one. It is derived: it can be thrown away and computed again from the file.
//!
//! # The file
//!
//! A file of `size` bytes is cut into *groups* of 16384 bytes (16 chunks); the last may be shorter.
//! `n = max(1, ceil(size / 16384))` groups. The outboard is exactly `64 · (n − 1)` bytes: no header, no footer, no
//! version, no size. A file of one group has an outboard of no bytes, which is not kept.
//!
//! # The tree
//!
//! A subtree over one group is a leaf; its *chaining value* is BLAKE3's for these bytes at that position (chunk counter
//! = offset / 1024). A subtree over `n > 1` groups has a left child over the first `l` groups, `l` being the largest
//! power of two that is less than `n`, and a right child over the other `n − l`. Its *pair* is 64 bytes: the chaining
//! value of the left child (32 bytes), then that of the right child (32 bytes), as BLAKE3 writes hashes. Its own
//! chaining value is BLAKE3's parent compression of the pair; at the top of the tree, with the ROOT flag, it is the
//! hash of the file. (All this is sections 2.1 to 2.5 of the BLAKE3 paper, stopped at 16 chunks instead of 1.)
//!
//! # The order
//!
//! Post-order: the pairs of the left child, the pairs of the right child, the pair of the node itself. So the pairs of
//! any subtree lie together, its own last, and the pair of the root ends the file. The subtree over the `n` groups that
//! start at group `g` has its pairs at positions `g − ones(g)` up to, not including, `g − ones(g) + n − 1`, where
//! `ones` counts the one bits of `g`; multiply by 64 for bytes. A file that grows only ever appends pairs and replaces
//! those of subtrees that were not full, which is why a tree can be written while the bytes arrive.
//!
//! # An example
//!
//! 100000 bytes are 7 groups, so 6 pairs, 384 bytes (`0–3` is the subtree over the groups 0 to 3):
//!
//! ```text
//! position  0      1      2            3      4            5
//! pair of   0–1    2–3    0–3          4–5    4–6          0–6
//! holds     0,1    2,3    0–1,2–3      4,5    4–5,6        0–3,4–6
//! ```
//!
//! # How to check it
//!
//! From the root down: the last pair must compress, with the ROOT flag, to the file's BLAKE3 hash; each value in a pair
//! that is believed is what the pair of that child must compress to, or what the bytes of that group must hash to.
//! Other tools: it is the `PostOrderOutboard` of the Rust crate `bao-tree` with a block size of 2⁴ chunks.
//!
//! Not promised: anything about the data. A good outboard beside a bad file is the usual case in which it is needed.

use std::ops::Range;

use archive_model::GROUP_SIZE;
use archive_model::groups::group_count;

/// The size of one pair in bytes.
pub const PAIR_SIZE: u64 = 64;

/// Returns the size in bytes of the outboard of a file of `size` bytes; 0 up to one group.
pub const fn outboard_size(size: u64) -> u64 {
    (group_count(size) - 1) * PAIR_SIZE
}

/// A subtree: `count` groups from group `first` on, in the shape that BLAKE3 gives the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subtree {
    first: u64,
    count: u64,
}

impl Subtree {
    /// Returns the whole tree of a file of `size` bytes.
    pub const fn whole(size: u64) -> Self {
        Self {
            first: 0,
            count: group_count(size),
        }
    }

    /// Returns the index of the first group of the subtree.
    pub const fn first(self) -> u64 {
        self.first
    }

    /// Returns the number of groups of the subtree; at least one.
    pub const fn count(self) -> u64 {
        self.count
    }

    /// Returns the range of group indexes of the subtree.
    pub const fn groups(self) -> Range<u64> {
        self.first..self.first + self.count
    }

    /// Returns the left and the right child; `None` for a single group.
    pub const fn children(self) -> Option<(Self, Self)> {
        if self.count < 2 {
            return None;
        }
        let left = 1 << (self.count - 1).ilog2();
        Some((
            Self {
                first: self.first,
                count: left,
            },
            Self {
                first: self.first + left,
                count: self.count - left,
            },
        ))
    }

    /// Returns whether `other` lies within this subtree.
    pub const fn contains(self, other: Self) -> bool {
        self.first <= other.first && other.first + other.count <= self.first + self.count
    }

    /// Returns the bytes that the subtree covers in a file of `size` bytes.
    pub fn bytes(self, size: u64) -> Range<u64> {
        let end = self.groups().end.saturating_mul(GROUP_SIZE);
        self.first * GROUP_SIZE..end.min(size)
    }

    /// Returns the range of the outboard that has the pairs of the subtree, in bytes; its own pair is the last. Empty
    /// for a single group.
    pub const fn pairs(self) -> Range<u64> {
        let start = (self.first - self.first.count_ones() as u64) * PAIR_SIZE;
        start..start + (self.count - 1) * PAIR_SIZE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes down the order by its definition.
    fn post_order(node: Subtree, order: &mut Vec<Subtree>) {
        if let Some((left, right)) = node.children() {
            post_order(left, order);
            post_order(right, order);
            order.push(node);
        }
    }

    /// Fails if for some number of groups, a pair of the outboard is not looked for at its place in post-order.
    #[test]
    fn positions_are_the_post_order() {
        for groups in 1..300 {
            let whole = Subtree::whole(groups * GROUP_SIZE);
            let mut order = Vec::new();
            post_order(whole, &mut order);
            assert_eq!(
                order.len() as u64 * PAIR_SIZE,
                outboard_size(groups * GROUP_SIZE)
            );
            assert_eq!(whole.pairs(), 0..outboard_size(groups * GROUP_SIZE));
            for (position, node) in (0..).zip(order) {
                assert_eq!(
                    node.pairs().end,
                    (position + 1) * PAIR_SIZE,
                    "{node:?} of {groups}"
                );
                let (left, right) = node.children().unwrap();
                assert_eq!(left.pairs().start, node.pairs().start);
                assert_eq!(left.pairs().end, right.pairs().start);
                assert_eq!(left.count() + right.count(), node.count());
                assert!(left.count().is_power_of_two() && left.count() >= right.count());
                assert!(node.contains(left) && node.contains(right) && !left.contains(node));
            }
        }
    }

    /// Fails if a file of exactly one group has an outboard, or the greatest size overflows.
    #[test]
    fn sizes_at_the_edges() {
        for (size, expected) in [
            (0, 0),
            (1, 0),
            (GROUP_SIZE, 0),
            (GROUP_SIZE + 1, 64),
            (100_000, 384),
            (1 << 30, 4_194_240),
        ] {
            assert_eq!(outboard_size(size), expected, "{size}");
        }
        assert_eq!(Subtree::whole(0).bytes(0), 0..0);
        assert_eq!(Subtree::whole(u64::MAX).bytes(u64::MAX), 0..u64::MAX);
    }
}
