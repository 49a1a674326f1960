//! A file read in any order, each byte proven before it is handed out.
//!
//! Owns the window: up to 1 MiB that is read once, compared with its value in the tree, and then copied from. Only
//! bytes that are in memory when they are proven are handed out, so a disk that returns other bytes the next time
//! deceives nobody.
//!
//! As in the [`walk_tree`](crate::walk_tree), the tree is believed from the root downward and only as far as it hashes. Where a
//! pair of the outboard does not, the values are looked for in the pairs below it and in the data, for which the whole
//! file is read once: a rotten or absent outboard costs that time, and blames no good data. Only where both are damaged
//! can a part be impossible to prove.
//!
//! Not promised: anything about bytes that were not asked for. Memory: a window, a path of the tree, a block of pairs;
//! 32 bytes for each MiB where the outboard is rotten.

use std::fmt;
use std::ops::{ControlFlow, Range};

use archive_model::{FileContent, Groups};

use crate::chaining::{self, GROUP, Pair, Value};
use crate::outboard::Subtree;
use crate::pairs::Pairs;
use crate::read_at::{ReadAt, fill_buffer};
use crate::walk::matching_groups;

/// The number of groups that are proven at once: 1 MiB.
const WINDOW: u64 = 64;

/// A callback that gets the number of bytes of data that were just read (at most 1 MiB); it may wait, and stop the
/// reading.
pub type ReadProgress<'a> = &'a mut dyn FnMut(u64) -> ControlFlow<()>;

/// The reason why bytes are not handed out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProvenReadError {
    /// The bytes are not what the root says, or cannot be read. Those behind them may be good.
    #[error("bytes {} to {}: {reason}", .range.start, .range.end)]
    Damaged {
        /// The damaged range: whole groups, not beyond the end of the file.
        range: Range<u64>,
        /// The problem that was found.
        reason: String,
    },
    /// `progress` stopped the reading.
    #[error("stopped")]
    Stopped,
}

/// A reader of one copy of a file.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use archive_proof::{ProvenReader, TreeBuilder};
///
/// let mut bytes = vec![7; 100_000];
/// let mut builder = TreeBuilder::new(Vec::new());
/// builder.update(&bytes)?;
/// let tree = builder.finish()?;
/// bytes[40_000] ^= 1;
///
/// let mut reader = ProvenReader::new(&bytes, Some(&tree.sink), tree.content());
/// let mut buffer = [0; 10];
/// let mut progress = |_| ControlFlow::Continue(());
/// assert_eq!(reader.read_at(5, &mut buffer, &mut progress), Ok(10));
/// assert!(reader.read_at(40_000, &mut buffer, &mut progress).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct ProvenReader<'a, D: ?Sized, O: ?Sized> {
    data: &'a D,
    pairs: Pairs<'a, O>,
    size: u64,
    /// The path from the root to the last window: the nodes with their values, all of them proven.
    path: Vec<(Subtree, Value)>,
    window: Window,
    /// The value of each window of the file; computed when the outboard fails.
    values: Option<Vec<Option<Value>>>,
    /// The range of bytes that cannot be proven.
    hopeless: Range<u64>,
}

impl<D: ?Sized, O: ?Sized> fmt::Debug for ProvenReader<'_, D, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProvenReader")
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// The bytes that were read last, and the bad groups among them.
#[derive(Default)]
struct Window {
    node: Option<Subtree>,
    bytes: Vec<u8>,
    /// The groups that could not be read into `bytes`.
    lost: Groups,
    /// The first read error of the window.
    error: Option<String>,
    /// The groups that are not what the root says, or are lost.
    bad: Groups,
}

impl<'a, D: ReadAt + ?Sized, O: ReadAt + ?Sized> ProvenReader<'a, D, O> {
    /// Makes a reader of the bytes of `content`. Reads nothing yet.
    pub fn new(data: &'a D, outboard: Option<&'a O>, content: FileContent) -> Self {
        let FileContent { root, size } = content;
        Self {
            data,
            pairs: Pairs::new(outboard),
            size,
            path: vec![(Subtree::whole(size), *root.as_bytes())],
            window: Window::default(),
            values: None,
            hopeless: 0..0,
        }
    }

    /// Fills `buffer` from `offset`; reads less only where the file ends or before bytes that are not handed out.
    ///
    /// An error is returned only if the first byte is not handed out.
    ///
    /// # Errors
    ///
    /// [`ProvenReadError`] if the first byte is damaged or cannot be read, or `progress` stopped the reading.
    pub fn read_at(
        &mut self,
        offset: u64,
        buffer: &mut [u8],
        progress: ReadProgress<'_>,
    ) -> Result<usize, ProvenReadError> {
        let mut filled = 0;
        while filled < buffer.len() && offset.saturating_add(filled as u64) < self.size {
            let at = offset + filled as u64;
            let good = match self.good_from(at, progress) {
                Ok(good) => good,
                Err(_later) if filled > 0 => break,
                Err(error) => return Err(error),
            };
            let rest = buffer.get_mut(filled..).unwrap_or_default();
            let count = good.len().min(rest.len());
            if let (Some(to), Some(from)) = (rest.get_mut(..count), good.get(..count)) {
                to.copy_from_slice(from);
            }
            filled += count;
        }
        Ok(filled)
    }

    /// Returns the proven bytes of the window from `at` on; at least one.
    fn good_from(&mut self, at: u64, progress: ReadProgress<'_>) -> Result<&[u8], ProvenReadError> {
        let group = at / GROUP as u64;
        if !self.window.contains(group) {
            self.load(at, progress)?;
        }
        let Some(node) = self.window.node else {
            return Err(ProvenReadError::Stopped);
        };
        let groups = group..node.groups().end;
        let until = |wanted: bool| {
            let mut rest = groups.clone();
            let found = rest.find(|group| self.window.bad.contains_group(*group) == wanted);
            found.unwrap_or(groups.end)
        };
        if self.window.bad.contains_group(group) {
            let end = until(false);
            return Err(ProvenReadError::Damaged {
                range: group * GROUP as u64..(end * GROUP as u64).min(self.size),
                reason: self.window.reason(group),
            });
        }
        let start = node.bytes(self.size).start;
        let end = (until(true) * GROUP as u64).min(self.size);
        let good = self
            .window
            .bytes
            .get(length(at - start)..length(end - start));
        good.filter(|good| !good.is_empty())
            .ok_or(ProvenReadError::Stopped)
    }

    /// Reads the window that `at` lies in, and proves as much of it as possible.
    fn load(&mut self, at: u64, progress: ReadProgress<'_>) -> Result<(), ProvenReadError> {
        if self.hopeless.contains(&at) {
            return Err(hopeless(at - at % GROUP as u64..self.hopeless.end));
        }
        let group = at / GROUP as u64;
        let (node, expected) = self.descend(group, progress)?;
        self.window.read(self.data, node, self.size);
        let read = self.window.bytes.len() as u64;
        if self.computed(node) != Some(expected) {
            self.locate(node, expected);
        }
        if progress(read).is_break() {
            self.window.node = None;
            return Err(ProvenReadError::Stopped);
        }
        Ok(())
    }

    /// Returns the window that a group lies in, and its proven value.
    fn descend(
        &mut self,
        group: u64,
        progress: ReadProgress<'_>,
    ) -> Result<(Subtree, Value), ProvenReadError> {
        while self.path.len() > 1
            && !self
                .path
                .last()
                .is_some_and(|(node, _)| node.groups().contains(&group))
        {
            self.path.pop();
        }
        loop {
            let &(node, expected) = self.path.last().ok_or(ProvenReadError::Stopped)?;
            let Some((left, right)) = node.children().filter(|_| node.count() > WINDOW) else {
                return Ok((node, expected));
            };
            let mut pair = self.pair(node, expected);
            if pair.is_none() && self.values.is_none() {
                self.survey(progress)?;
                pair = self.pair(node, expected);
            }
            let Some((of_left, of_right)) = pair else {
                let bytes = node.bytes(self.size);
                let from = group - group % WINDOW;
                self.hopeless = bytes;
                return Err(hopeless(from * GROUP as u64..self.hopeless.end));
            };
            self.path.push(if left.groups().contains(&group) {
                (left, of_left)
            } else {
                (right, of_right)
            });
        }
    }

    /// Reads the whole file to compute the value of each window.
    fn survey(&mut self, progress: ReadProgress<'_>) -> Result<(), ProvenReadError> {
        let whole = Subtree::whole(self.size);
        let mut values = Vec::new();
        let mut windows = vec![whole];
        while let Some(node) = windows.pop() {
            if let Some((left, right)) = node.children().filter(|_| node.count() > WINDOW) {
                windows.extend([right, left]);
                continue;
            }
            self.window.read(self.data, node, self.size);
            values.push(self.computed(node));
            if progress(self.window.bytes.len() as u64).is_break() {
                self.window.node = None;
                return Err(ProvenReadError::Stopped);
            }
        }
        self.window.node = None;
        self.values = Some(values);
        Ok(())
    }

    /// Returns the values of the two children of `node`, which together hash to `expected`, if they can be found
    /// anywhere.
    fn pair(&mut self, node: Subtree, expected: Value) -> Option<Pair> {
        let (left, right) = node.children()?;
        let is_root = node == Subtree::whole(self.size);
        let stored = self.pairs.pair(node);
        if chaining::merge_pair(&stored, is_root) == expected {
            return Some(stored);
        }
        let lefts = self.candidates(left, stored.0);
        let rights = self.candidates(right, stored.1);
        matching_groups(&lefts, &rights, expected, is_root)
    }

    /// Returns the candidates for the value of `child`: as its parent has it, as the pair below it says, as its data
    /// hash.
    fn candidates(&mut self, child: Subtree, stored: Value) -> Vec<Value> {
        let below = child.children().map(|_| self.pairs.pair(child));
        let below = below.map(|pair| chaining::merge_pair(&pair, false));
        let found = [Some(stored), below, self.computed(child)];
        found.into_iter().flatten().collect()
    }

    /// Returns the hash of the data of `node`, if it is known.
    fn computed(&self, node: Subtree) -> Option<Value> {
        let is_root = node == Subtree::whole(self.size);
        if let Some(window) = self.window.node.filter(|window| window.contains(node)) {
            if node
                .groups()
                .any(|group| self.window.lost.contains_group(group))
            {
                return None;
            }
            let start = window.bytes(self.size).start;
            let own = node.bytes(self.size);
            let range = length(own.start - start)..length(own.end - start);
            let bytes = self.window.bytes.get(range)?;
            return Some(chaining::of_bytes(node.first(), bytes, is_root));
        }
        if node.count() <= WINDOW {
            let index = usize::try_from(node.first() / WINDOW).ok()?;
            // The value of a part of another window is not known.
            let is_whole = node.first().is_multiple_of(WINDOW)
                && (node.count() == WINDOW || node.bytes(self.size).end == self.size);
            let values = self.values.as_ref().filter(|_| is_whole);
            return values.and_then(|values| values.get(index).copied().flatten());
        }
        let (left, right) = node.children()?;
        let pair = (self.computed(left)?, self.computed(right)?);
        Some(chaining::merge_pair(&pair, is_root))
    }

    /// Finds the groups of `node`, within the window, that are not what `expected` says.
    fn locate(&mut self, node: Subtree, expected: Value) {
        let Some((left, right)) = node.children() else {
            self.window.bad.insert_range(node.groups());
            return;
        };
        let Some(pair) = self.pair(node, expected) else {
            self.window.bad.insert_range(node.groups());
            return;
        };
        for (child, value) in [(left, pair.0), (right, pair.1)] {
            if self.computed(child) != Some(value) {
                self.locate(child, value);
            }
        }
    }
}

impl Window {
    fn contains(&self, group: u64) -> bool {
        self.node.is_some_and(|node| node.groups().contains(&group))
    }

    /// Reads the bytes of `node`; unreadable groups are lost.
    fn read(&mut self, data: &(impl ReadAt + ?Sized), node: Subtree, size: u64) {
        let range = node.bytes(size);
        self.node = Some(node);
        (self.lost, self.bad) = (Groups::none(), Groups::none());
        self.error = None;
        self.bytes.clear();
        self.bytes.resize(length(range.end - range.start), 0);
        let (filled, error) = fill_buffer(data, range.start, &mut self.bytes);
        if error.is_none() && filled < self.bytes.len() {
            let first = node.first() + (filled / GROUP) as u64;
            self.lost.insert_range(first..node.groups().end);
        }
        if error.is_some() {
            // Only the groups that cannot be read are lost.
            for (group, bytes) in (node.first()..).zip(self.bytes.chunks_mut(GROUP)) {
                let (filled, error) = fill_buffer(data, group * GROUP as u64, bytes);
                if filled < bytes.len() {
                    self.lost.insert_one(group);
                }
                if let Some(error) = error {
                    self.error.get_or_insert_with(|| error.to_string());
                }
            }
        }
    }

    fn reason(&self, group: u64) -> String {
        match (&self.error, self.lost.contains_group(group)) {
            (_, false) => "they are not what was admitted".to_owned(),
            (None, true) => "the file is too short".to_owned(),
            (Some(error), true) => format!("they cannot be read: {error}"),
        }
    }
}

fn hopeless(range: Range<u64>) -> ProvenReadError {
    ProvenReadError::Damaged {
        range,
        reason: "they cannot be proven: some of them are not what was admitted, and the outboard is damaged too"
            .to_owned(),
    }
}

/// Converts a length that fits in memory: a window never exceeds 1 MiB.
fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
