//! The walk: which 16 KiB groups of a file are good, damaged, unreadable. The scrub's engine.
//!
//! Owns the judgement over one copy of one file, given its root. The tree is believed from the root downward and only
//! as far as it hashes; so a rotten outboard never blames good data, and rotten data never passes. Every group that is
//! not reported was read and proven. Memory is bounded at any size: one read, one block of pairs, one path of the tree,
//! and the report itself.
//!
//! Where a pair of the outboard does not hash, its values are looked for in the pairs below it and in the data, and
//! each combination is compared with the value above. So a flipped bit in the outboard hides nothing, and good data is
//! still proven good if the whole outboard is gone. Only where the outboard *and* the data under it are damaged can
//! groups be impossible to tell apart: they are then all reported damaged. Unproven is damaged.
//!
//! Not promised: that a file is not longer than its content. The caller asks the file system, before.

use std::io;
use std::ops::ControlFlow;

use archive_model::{FileContent, Groups};

use crate::chaining::{self, GROUP, Value};
use crate::outboard::Subtree;
use crate::pairs::Pairs;
use crate::read_at::{CopyBytes, ReadAt, fill_buffer};

/// The number of groups that are read at once: 1 MiB.
const BATCH: u64 = 64;

/// The result of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkResult {
    /// Groups whose bytes are missing (a short file), wrong, or impossible to prove.
    pub damaged: Groups,
    /// Groups that could not be read. Disjoint from `damaged`.
    pub unreadable: Groups,
    /// The first read error, as the operating system words it; present when `unreadable` has groups.
    pub read_error: Option<String>,
    /// The state of the outboard.
    pub outboard: OutboardState,
    /// Whether `progress` stopped the walk: everything reported is true, but the rest of the file is not known.
    pub stopped: bool,
}

impl WalkResult {
    /// Returns whether every byte of the file was read and proven. Does not tell about the outboard.
    pub fn is_intact(&self) -> bool {
        !self.stopped && self.damaged.is_empty() && self.unreadable.is_empty()
    }
}

/// The states of an outboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutboardState {
    /// The whole outboard hashes to the root, or none is needed because the file is one group.
    Good,
    /// The outboard is absent: rebuild it once the data is good.
    Absent,
    /// A part of the outboard is wrong, missing, too much or unreadable: rebuild it once the data is good.
    Damaged,
}

/// Reads all bytes of `copy` that `content` has and proves each group against its root, with the help of the outboard.
///
/// `progress` gets the number of bytes of data that were just read (at most 1 MiB; parts of a damaged file are read
/// twice, so the sum may exceed `size`) and may wait, to throttle, or stop the walk.
///
/// Errors are findings: an unreadable group is reported, and the walk continues with the next one.
pub fn walk_tree(
    copy: CopyBytes<'_>,
    content: FileContent,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> WalkResult {
    let FileContent { root, size } = content;
    let whole = Subtree::whole(size);
    let state = match copy.outboard {
        None if whole.count() > 1 => OutboardState::Absent,
        Some(outboard) if !ends_at(outboard, whole.pairs().end) => OutboardState::Damaged,
        _ => OutboardState::Good,
    };
    let mut walker = Walker {
        data: copy.data,
        pairs: Pairs::new(copy.outboard),
        progress,
        size,
        whole,
        end: size,
        buffer: Vec::new(),
        loaded: None,
        lost: Groups::none(),
        walk: WalkResult {
            damaged: Groups::none(),
            unreadable: Groups::none(),
            read_error: None,
            outboard: state,
            stopped: false,
        },
    };
    walker.check(whole, *root.as_bytes());
    let mut walk = walker.walk;
    walk.damaged = walk.damaged.difference(&walk.unreadable);
    walk
}

/// Returns whether the outboard ends at `end` or before; the walk finds what is missing before.
fn ends_at(outboard: &dyn ReadAt, end: u64) -> bool {
    matches!(fill_buffer(outboard, end, &mut [0]), (0, None))
}

struct Walker<'a> {
    data: &'a dyn ReadAt,
    pairs: Pairs<'a>,
    progress: &'a mut dyn FnMut(u64) -> ControlFlow<()>,
    size: u64,
    whole: Subtree,
    /// The offset at which the data is known to end; `size` until a read came short.
    end: u64,
    /// The bytes of `loaded`.
    buffer: Vec<u8>,
    loaded: Option<Subtree>,
    /// The groups of `loaded` that could not be read into `buffer`.
    lost: Groups,
    walk: WalkResult,
}

impl Walker<'_> {
    /// Proves the groups of `node`, whose value is known to be `expected`.
    fn check(&mut self, node: Subtree, expected: Value) {
        if self.walk.stopped {
            return;
        }
        if node.count() <= BATCH && !self.is_loaded(node) && self.data_value(node) == Some(expected)
        {
            // The usual case: all groups are proven at once. The pairs are only checked for their own sake.
            self.check_pairs(node, expected);
        } else {
            self.locate(node, expected);
        }
    }

    /// Proves the groups of `node` one child at a time.
    fn locate(&mut self, node: Subtree, expected: Value) {
        let Some((left, right)) = node.children() else {
            if self.data_value(node) != Some(expected) {
                self.blame(node);
            }
            return;
        };
        let is_root = node == self.whole;
        let stored = self.pairs.pair(node);
        if chaining::merge_pair(&stored, is_root) == expected {
            self.check(left, stored.0);
            self.check(right, stored.1);
            return;
        }
        self.blame_outboard();
        let mut lefts = vec![stored.0];
        let mut rights = vec![stored.1];
        lefts.extend(self.value_from_pairs(left));
        rights.extend(self.value_from_pairs(right));
        if let Some((l, r)) = matching_groups(&lefts, &rights, expected, is_root) {
            self.check(left, l);
            self.check(right, r);
            return;
        }
        let from_left = self.data_value(left);
        let from_right = self.data_value(right);
        lefts.extend(from_left);
        rights.extend(from_right);
        match matching_groups(&lefts, &rights, expected, is_root) {
            _ if self.walk.stopped => {}
            None => self.blame(node),
            Some((l, r)) => {
                if from_left != Some(l) {
                    self.check(left, l);
                }
                if from_right != Some(r) {
                    self.check(right, r);
                }
            }
        }
    }

    /// Checks the pairs under `node`, whose data is good.
    fn check_pairs(&mut self, node: Subtree, expected: Value) {
        if let (Some((left, right)), OutboardState::Good) = (node.children(), self.walk.outboard) {
            let pair = self.pairs.pair(node);
            if chaining::merge_pair(&pair, node == self.whole) == expected {
                self.check_pairs(left, pair.0);
                self.check_pairs(right, pair.1);
            } else {
                self.blame_outboard();
            }
        }
    }

    /// Returns the hash of the pair of `node`; it may be wrong.
    fn value_from_pairs(&mut self, node: Subtree) -> Option<Value> {
        node.children()?;
        let pair = self.pairs.pair(node);
        Some(chaining::merge_pair(&pair, false))
    }

    /// Returns the hash of the data of `node`; `None` if some of it is missing or cannot be read, or if the walk was
    /// stopped.
    fn data_value(&mut self, node: Subtree) -> Option<Value> {
        let is_root = node == self.whole;
        let range = node.bytes(self.size);
        if self.walk.stopped || range.start > self.end {
            return None;
        }
        if let (true, Some((left, right))) = (node.count() > BATCH, node.children()) {
            // Both are read in any case, so that the read errors of the right one are found too.
            let pair = (self.data_value(left), self.data_value(right));
            return Some(chaining::merge_pair(&(pair.0?, pair.1?), is_root));
        }
        if !self.is_loaded(node) {
            self.load(node);
        }
        if self.walk.stopped || node.groups().any(|group| self.lost.contains_group(group)) {
            return None;
        }
        let start = range.start - self.loaded?.bytes(self.size).start;
        let bytes = self
            .buffer
            .get(length(start)..length(start + (range.end - range.start)))?;
        Some(chaining::of_bytes(node.first(), bytes, is_root))
    }

    fn is_loaded(&self, node: Subtree) -> bool {
        self.loaded.is_some_and(|loaded| loaded.contains(node))
    }

    /// Reads the bytes of `node`, in one read where the disk lets us.
    fn load(&mut self, node: Subtree) {
        let range = node.bytes(self.size);
        self.buffer.resize(length(range.end - range.start), 0);
        self.loaded = Some(node);
        self.lost = Groups::none();
        let (filled, error) = fill_buffer(self.data, range.start, &mut self.buffer);
        if error.is_some() {
            self.load_by_group(node);
        } else if filled < self.buffer.len() {
            self.end = range.start + filled as u64;
            self.lost
                .insert_range(node.first() + (filled / GROUP) as u64..node.groups().end);
            self.advance(filled);
        } else {
            self.advance(filled);
        }
    }

    /// Reads the bytes of `node` group by group, so that only unreadable groups are blamed.
    fn load_by_group(&mut self, node: Subtree) {
        let mut buffer = std::mem::take(&mut self.buffer);
        for (group, bytes) in (node.first()..).zip(buffer.chunks_mut(GROUP)) {
            let (filled, error) = fill_buffer(self.data, group * GROUP as u64, bytes);
            if filled < bytes.len() {
                self.lost.insert_one(group);
            }
            if let Some(error) = error {
                self.note_unreadable(group, &error);
            }
            self.advance(filled);
            if self.walk.stopped {
                break;
            }
        }
        self.buffer = buffer;
    }

    fn note_unreadable(&mut self, group: u64, error: &io::Error) {
        self.walk.unreadable.insert_one(group);
        self.walk
            .read_error
            .get_or_insert_with(|| error.to_string());
    }

    fn advance(&mut self, bytes: usize) {
        self.walk.stopped |= (self.progress)(bytes as u64).is_break();
    }

    fn blame(&mut self, node: Subtree) {
        if !self.walk.stopped {
            self.walk.damaged.insert_range(node.groups());
        }
    }

    fn blame_outboard(&mut self) {
        if self.walk.outboard == OutboardState::Good {
            self.walk.outboard = OutboardState::Damaged;
        }
    }
}

/// Returns the pair, made of one of `lefts` and one of `rights`, that hashes to `expected`.
pub(crate) fn matching_groups(
    lefts: &[Value],
    rights: &[Value],
    expected: Value,
    is_root: bool,
) -> Option<chaining::Pair> {
    let pairs = lefts
        .iter()
        .flat_map(|left| rights.iter().map(|right| (*left, *right)));
    pairs
        .into_iter()
        .find(|pair| chaining::merge_pair(pair, is_root) == expected)
}

/// Converts a length that fits in memory: a batch never exceeds 1 MiB.
fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
