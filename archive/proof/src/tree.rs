//! The tree of a file, built while its bytes pass.
//!
//! Owns the writing of outboards: bytes go in, in slices of any length; the pairs come out in post-order and the root
//! at the end. Memory: one group, one value per level, a write buffer.
//!
//! Not promised: that the sink is durable. It is handed back; the caller who opened it syncs it.

use std::io::{self, BufWriter, IntoInnerError, Write};

use archive_model::{FileContent, Root};

use crate::chaining::{self, GROUP, Value};
use crate::outboard::outboard_size;

/// The number of bytes of the outboard that are written at once.
const WRITE: usize = 64 * 1024;

/// Hashes bytes as they pass and streams the outboard into `W`.
///
/// After an error of the sink the builder must be dropped: part of a pair may have been written.
///
/// ```
/// use archive_proof::TreeBuilder;
///
/// let mut builder = TreeBuilder::new(Vec::new());
/// builder.update(&[1; 20_000])?;
/// builder.update(&[2; 20_000])?;
/// let tree = builder.finish()?;
/// assert_eq!((tree.size, tree.outboard_size), (40_000, 128));
/// assert_eq!(tree.sink.len(), 128);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct TreeBuilder<W: Write> {
    sink: BufWriter<W>,
    size: u64,
    /// The last 1 to 16384 bytes: whether a group is the last is known only when more bytes come.
    last: Vec<u8>,
    /// Values of complete subtrees, largest first: one for each one bit of the number of hashed groups.
    stack: Vec<Value>,
}

/// The result of a [`TreeBuilder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree<W> {
    /// The BLAKE3 root of all bytes.
    pub root: Root,
    /// The number of bytes.
    pub size: u64,
    /// The number of bytes of outboard that the sink has received: 64 for each group but the first.
    pub outboard_size: u64,
    /// The sink, with every pair in it, not synced.
    pub sink: W,
}

impl<W> Tree<W> {
    /// Returns the content that the tree proves.
    pub fn content(&self) -> FileContent {
        FileContent {
            root: self.root,
            size: self.size,
        }
    }
}

impl<W: Write> TreeBuilder<W> {
    /// Starts without bytes. The sink is written in blocks; it needs no buffer of its own.
    pub fn new(sink: W) -> Self {
        Self {
            sink: BufWriter::with_capacity(WRITE, sink),
            size: 0,
            last: Vec::new(),
            stack: Vec::new(),
        }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    ///
    /// Fails only if the sink does.
    pub fn update(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.size += bytes.len() as u64;
        if let Some((head, rest)) = bytes
            .split_at_checked(GROUP - self.last.len())
            .filter(|(_, rest)| !rest.is_empty())
        {
            self.last.extend_from_slice(head);
            let full = std::mem::take(&mut self.last);
            let hashed = (self.size - rest.len() as u64).div_ceil(GROUP as u64) - 1;
            self.push(hashed, &full)?;
            self.last = full;
            self.last.clear();
            bytes = rest;
            while let Some((group, rest)) = bytes
                .split_at_checked(GROUP)
                .filter(|(_, rest)| !rest.is_empty())
            {
                let index = (self.size - bytes.len() as u64) / GROUP as u64;
                self.push(index, group)?;
                bytes = rest;
            }
        }
        self.last.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns the number of bytes that have passed.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Returns the root of the bytes so far, as if they were all: both ends of a resumed upload compare it.
    pub fn root_so_far(&self) -> Root {
        root_of(self.last_value(), &self.stack)
    }

    /// Returns the state that is needed to continue after the bytes so far.
    pub fn prefix_state(&self) -> Prefix {
        Prefix {
            size: self.size,
            last: self.last.clone(),
            stack: self.stack.clone(),
        }
    }

    /// Ends the tree: writes the waiting pairs and returns the sink.
    ///
    /// # Errors
    ///
    /// Fails only if the sink does.
    pub fn finish(mut self) -> io::Result<Tree<W>> {
        let mut value = self.last_value();
        while let Some(left) = self.stack.pop() {
            let pair = (left, value);
            write_pair(&mut self.sink, &pair)?;
            value = chaining::merge_pair(&pair, self.stack.is_empty());
        }
        Ok(Tree {
            root: Root::from_bytes(value),
            size: self.size,
            outboard_size: outboard_size(self.size),
            sink: self.sink.into_inner().map_err(IntoInnerError::into_error)?,
        })
    }

    /// Returns the value of the last group; the root if it is the only one.
    fn last_value(&self) -> Value {
        last_value(self.size, &self.last)
    }

    /// Takes a group that is not the last: every subtree that it completes is an inner one.
    fn push(&mut self, index: u64, group: &[u8]) -> io::Result<()> {
        let mut value = chaining::of_bytes(index, group, false);
        for _ in 0..(index + 1).trailing_zeros() {
            let Some(left) = self.stack.pop() else { break };
            let pair = (left, value);
            write_pair(&mut self.sink, &pair)?;
            value = chaining::merge_pair(&pair, false);
        }
        self.stack.push(value);
        Ok(())
    }
}

/// The state after the first bytes of a file: enough to continue hashing after them. At most a group and a half large.
#[derive(Clone, Debug)]
pub struct Prefix {
    size: u64,
    last: Vec<u8>,
    stack: Vec<Value>,
}

impl Prefix {
    /// Returns the number of bytes.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Returns the root of the bytes, as if they were all.
    pub fn root(&self) -> Root {
        root_of(last_value(self.size, &self.last), &self.stack)
    }
}

impl TreeBuilder<io::Sink> {
    /// Makes a builder that continues after `prefix`, without a sink: the pairs of its bytes are not written again.
    pub fn after_prefix(prefix: Prefix) -> Self {
        Self {
            size: prefix.size,
            last: prefix.last,
            stack: prefix.stack,
            ..Self::new(io::sink())
        }
    }
}

/// Returns the value of the last group of `size` bytes; the root if it is the only one.
fn last_value(size: u64, last: &[u8]) -> Value {
    let index = archive_model::groups::group_count(size) - 1;
    chaining::of_bytes(index, last, index == 0)
}

fn root_of(mut value: Value, stack: &[Value]) -> Root {
    for (depth, left) in stack.iter().enumerate().rev() {
        value = chaining::merge_pair(&(*left, value), depth == 0);
    }
    Root::from_bytes(value)
}

fn write_pair(sink: &mut impl Write, pair: &chaining::Pair) -> io::Result<()> {
    let (left, right) = pair;
    sink.write_all(left)?;
    sink.write_all(right)
}

#[cfg(test)]
mod tests {
    use bao_tree::BlockSize;
    use bao_tree::io::outboard::PostOrderMemOutboard;

    use super::*;
    use crate::testing::EDGES;
    use tools_testing::noise;

    fn build(data: &[u8], slice: usize) -> Tree<Vec<u8>> {
        let mut builder = TreeBuilder::new(Vec::new());
        for slice in data.chunks(slice) {
            builder.update(slice).unwrap();
        }
        builder.finish().unwrap()
    }

    /// Fails if the root is not the BLAKE3 hash, or the outboard is not that of `bao-tree`, so that no other tool can
    /// check a file.
    #[test]
    fn root_and_outboard_match_blake3_and_bao_tree() {
        for size in EDGES {
            let data = noise(size, 1);
            let theirs = PostOrderMemOutboard::create(&data, BlockSize::from_chunk_log(4));
            for slice in [1000, 1024, 16383, 16384, 16385, 40_000, 1 << 20, usize::MAX] {
                let tree = build(&data, slice);
                assert_eq!(
                    tree.root.as_bytes(),
                    blake3::hash(&data).as_bytes(),
                    "{size} by {slice}"
                );
                assert_eq!(tree.sink, theirs.data, "{size} by {slice}");
                assert_eq!(
                    (tree.size, tree.outboard_size),
                    (size as u64, tree.sink.len() as u64)
                );
            }
        }
    }

    /// Fails if the pieces in which the bytes arrive change the root or the outboard.
    #[test]
    fn any_slicing_gives_the_same_tree() {
        let data = noise(16384 * 9 + 5, 2);
        let whole = build(&data, data.len());
        assert_eq!(build(&data, 1), whole);
        for seed in 0..200 {
            let lengths = noise(64, seed);
            let mut builder = TreeBuilder::new(Vec::new());
            let mut rest = data.as_slice();
            for length in lengths.iter().cycle() {
                let (head, tail) =
                    rest.split_at(rest.len().min(usize::from(*length) * usize::from(*length)));
                builder.update(head).unwrap();
                rest = tail;
                if rest.is_empty() {
                    break;
                }
            }
            assert_eq!(builder.finish().unwrap(), whole, "seed {seed}");
        }
    }

    /// Fails if the root so far is not that of the bytes so far, or computing it changes the final root.
    #[test]
    fn root_so_far_is_root_of_prefix() {
        let data = noise(16384 * 40, 3);
        let mut builder = TreeBuilder::new(std::io::sink());
        for (index, slice) in data.chunks(1024 * 5).enumerate() {
            builder.update(slice).unwrap();
            let prefix = &data[..data.len().min((index + 1) * 1024 * 5)];
            assert_eq!(builder.size(), prefix.len() as u64);
            assert_eq!(
                builder.root_so_far().as_bytes(),
                blake3::hash(prefix).as_bytes()
            );
        }
        assert_eq!(builder.root_so_far(), builder.finish().unwrap().root);
        assert_eq!(
            TreeBuilder::new(Vec::new()).root_so_far().as_bytes(),
            blake3::hash(b"").as_bytes()
        );
    }

    /// Fails if a tree that continues from a kept prefix forgets bytes of the prefix, or counts bytes that came after
    /// it.
    #[test]
    fn tree_continues_after_any_prefix() {
        let data = noise(16384 * 9 + 5, 6);
        for cut in [
            0,
            1,
            16383,
            16384,
            16385,
            16384 * 8,
            data.len() - 1,
            data.len(),
        ] {
            let (head, tail) = data.split_at(cut);
            let mut builder = TreeBuilder::new(std::io::sink());
            builder.update(head).unwrap();
            let prefix = builder.prefix_state();
            assert_eq!(
                (prefix.size(), prefix.root()),
                (cut as u64, builder.root_so_far())
            );
            builder
                .update(b"other bytes that came after, and count no more")
                .unwrap();
            for _ in 0..2 {
                let mut again = TreeBuilder::after_prefix(prefix.clone());
                assert_eq!(
                    (again.size(), again.root_so_far()),
                    (cut as u64, prefix.root())
                );
                again.update(tail).unwrap();
                let tree = again.finish().unwrap();
                assert_eq!(
                    tree.root.as_bytes(),
                    blake3::hash(&data).as_bytes(),
                    "{cut}"
                );
                assert_eq!(tree.size, data.len() as u64);
            }
        }
    }

    /// Takes `room` bytes, then fails.
    struct Full {
        room: usize,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room);
            self.room -= count;
            if count == 0 {
                Err(io::ErrorKind::StorageFull.into())
            } else {
                Ok(count)
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Fails if an outboard that did not fit onto the disk passes for written.
    #[test]
    fn full_sink_is_an_error() {
        let data = noise(16384 * 8, 4);
        for room in 0..=64 * 7 {
            let mut builder = TreeBuilder::new(Full { room });
            let result = builder.update(&data).and_then(|()| builder.finish());
            match result {
                Ok(tree) => assert_eq!((room, tree.sink.room), (64 * 7, 0)),
                Err(error) => assert!(
                    room < 64 * 7 && error.kind() == io::ErrorKind::StorageFull,
                    "{room}: {error}"
                ),
            }
        }
    }
}
