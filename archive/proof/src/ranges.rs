//! Ranges of a file with their proof: encoded where the file is, checked where they arrive.
//!
//! Owns the promises about the stream; its format is `bao-tree`'s: pairs and data in pre-order, only the parts of the
//! tree that the ranges need, full 16 KiB groups without inner pairs, no header. Both ends must name the same content
//! and ranges. Both work on one group at a time, whatever the size of the file.
//!
//! Not promised: that `size` is right. A range in the middle of a file proves its bytes and their place, and no more;
//! it can decode under a wrong size. Take the size from the signed admission, or have it proven: [`ranges_with_last`].

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::ops::Range;

use archive_model::{FileContent, GROUP_SIZE};
use bao_tree::io::outboard::PostOrderOutboard;
use bao_tree::io::sync::{self as bao, DecodeResponseIter};
use bao_tree::io::{BaoContentItem, DecodeError as BaoDecodeError, EncodeError as BaoEncodeError};
use bao_tree::{BaoTree, BlockSize, ChunkNum, ChunkRangesRef, TreeNode};

use crate::outboard::outboard_size;
use crate::read_at::{CopyBytes, ReadAt, fill_buffer};

/// The size of a BLAKE3 chunk in bytes: what a proven range is rounded to on the wire.
pub(crate) const CHUNK: u64 = 1024;

/// The size of a block in the tree: groups of 16 chunks.
pub(crate) const GROUPS: BlockSize = BlockSize::from_chunk_log(4);

/// Returns `ranges` and the last byte of a file of `size` bytes: decoding them proves the size as well.
pub fn ranges_with_last(ranges: &[Range<u64>], size: u64) -> Vec<Range<u64>> {
    let last = size.saturating_sub(1)..size;
    ranges.iter().cloned().chain([last]).collect()
}

/// Writes the bytes of `copy` in `ranges` with their proof to `out`, and returns the number of bytes written.
///
/// `ranges` are byte ranges in any order; bytes past the size are left out. Every group is compared with the root
/// before it is written, so that a damaged copy fails instead of spreading. Only a file of one group needs no outboard.
/// A group costs its 16 KiB and 64 bytes for each level of the tree: 17,408 bytes in a file of 1 GiB.
///
/// On an error part of the stream may have been written; [`decode_ranges`] refuses such a stream.
///
/// # Errors
///
/// [`EncodeError`]: the data or the outboard is damaged or cannot be read, or `out` does not take the bytes.
///
/// ```
/// use archive_proof::{CopyBytes, TreeBuilder, decode_ranges, encode_ranges};
///
/// let bytes = vec![7; 100_000];
/// let mut builder = TreeBuilder::new(Vec::new());
/// builder.update(&bytes)?;
/// let tree = builder.finish()?;
/// let copy = CopyBytes { data: &bytes, outboard: Some(&tree.sink) };
///
/// let ranges = [20_000..20_010, 99_990..100_000];
/// let mut stream = Vec::new();
/// encode_ranges(copy, tree.content(), &ranges, &mut stream)?;
///
/// let mut proven = Vec::new();
/// decode_ranges(stream.as_slice(), tree.content(), &ranges, |_offset, bytes| {
///     proven.extend_from_slice(bytes);
///     Ok(())
/// })?;
/// assert_eq!(proven, [7; 20]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn encode_ranges(
    copy: CopyBytes<'_>,
    content: FileContent,
    ranges: &[Range<u64>],
    out: impl Write,
) -> Result<u64, EncodeError> {
    let CopyBytes { data, outboard } = copy;
    let FileContent { root, size } = content;
    if outboard.is_none() && outboard_size(size) > 0 {
        return Err(EncodeError::DamagedOutboard);
    }
    let data_failed = Cell::new(None);
    let pairs_failed = Cell::new(None);
    let nothing: &[u8] = &[];
    let outboard = PostOrderOutboard {
        root: blake3::Hash::from_bytes(*root.as_bytes()),
        tree: BaoTree::new(size, GROUPS),
        data: Source {
            inner: outboard.unwrap_or(&nothing),
            failed: &pairs_failed,
        },
    };
    // The data is passed by value: `positioned-io`'s own `read_exact_at` would read a reference to it.
    let data = Source {
        inner: data,
        failed: &data_failed,
    };
    let mut sink = Sink {
        inner: out,
        written: 0,
        failed: None,
    };
    let chunks = wanted_chunks(&normal(ranges, size), size);
    let result = bao::encode_ranges_validated(
        data,
        outboard,
        ChunkRangesRef::new_unchecked(&chunks),
        &mut sink,
    );
    let Err(error) = result else {
        return Ok(sink.written);
    };
    // `bao-tree` does not tell whose I/O failed; the three adapters remember it.
    if let Some(error) = sink.failed {
        return Err(EncodeError::Sink(error));
    }
    if let Some(failure) = pairs_failed.take() {
        return Err(failure.error.map_or(
            EncodeError::DamagedOutboard,
            EncodeError::UnreadableOutboard,
        ));
    }
    if let Some(Failure { offset, error }) = data_failed.take() {
        let group = offset / GROUP_SIZE;
        return Err(match error {
            Some(source) => EncodeError::UnreadableGroup { group, source },
            None => EncodeError::DamagedGroup { group },
        });
    }
    Err(match error {
        BaoEncodeError::LeafHashMismatch(chunk) => EncodeError::DamagedGroup {
            group: chunk.0 * CHUNK / GROUP_SIZE,
        },
        BaoEncodeError::ParentHashMismatch(_) | BaoEncodeError::SizeMismatch => {
            EncodeError::DamagedOutboard
        }
        other @ (BaoEncodeError::ParentWrite(_)
        | BaoEncodeError::LeafWrite(_)
        | BaoEncodeError::Io(_)) => EncodeError::Sink(other.into()),
    })
}

/// The reason why this copy could not prove the ranges.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// A group is not what the root says, or the file is too short for it: ask another copy.
    #[error("group {group} of the data is damaged; take it from another copy and repair this one")]
    DamagedGroup {
        /// The index of the group.
        group: u64,
    },
    /// A group cannot be read: ask another copy.
    #[error(
        "group {group} of the data cannot be read; take it from another copy and repair this one"
    )]
    UnreadableGroup {
        /// The index of the group.
        group: u64,
        /// The reason of the operating system.
        source: io::Error,
    },
    /// The outboard is absent, cut or wrong: rebuild it ([`crate::rebuild_outboard`]), then ask again.
    #[error("the outboard is absent or damaged; rebuild it, then try again")]
    DamagedOutboard,
    /// The outboard cannot be read: rebuild it, then ask again.
    #[error("the outboard cannot be read ({0}); rebuild it, then try again")]
    UnreadableOutboard(#[source] io::Error),
    /// The other end does not take the bytes.
    #[error("the encoded ranges cannot be written: {0}")]
    Sink(#[source] io::Error),
}

/// Checks an encoded stream against `content` and passes its bytes to `sink` with their offsets, ascending.
///
/// `sink` gets exactly the bytes in `ranges` that lie below the size, each once, at most 16 KiB at a time, and never an
/// unproven byte. The stream must end where the ranges end: `encoded` is read to its end. Without ranges, nothing is
/// proven and nothing may come; only an empty file proves itself for any ranges.
///
/// # Errors
///
/// [`DecodeError`]: the stream is not the proof of these ranges, or cannot be read, or `sink` does not take the bytes.
pub fn decode_ranges(
    mut encoded: impl Read,
    content: FileContent,
    ranges: &[Range<u64>],
    mut sink: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> Result<(), DecodeError> {
    let FileContent { root, size } = content;
    let wanted = normal(ranges, size);
    let chunks = wanted_chunks(&wanted, size);
    let root = blake3::Hash::from_bytes(*root.as_bytes());
    let tree = BaoTree::new(size, GROUPS);
    let items = DecodeResponseIter::new(
        root,
        tree,
        &mut encoded,
        ChunkRangesRef::new_unchecked(&chunks),
    );
    let mut wanted = wanted.into_iter().peekable();
    for item in items {
        let BaoContentItem::Leaf(leaf) = item? else {
            continue;
        };
        let end = leaf.offset + leaf.data.len() as u64;
        while let Some(range) = wanted.peek_mut().filter(|range| range.start < end) {
            let upto = range.end.min(end);
            let bytes = usize::try_from(range.start - leaf.offset)
                .ok()
                .zip(usize::try_from(upto - leaf.offset).ok());
            let bytes = bytes
                .and_then(|(from, to)| leaf.data.get(from..to))
                .unwrap_or_default();
            sink(range.start, bytes).map_err(DecodeError::Sink)?;
            range.start = upto;
            if range.start == range.end {
                wanted.next();
            }
        }
    }
    match at_end(&mut encoded) {
        Ok(true) => Ok(()),
        Ok(false) => Err(DecodeError::Trailing),
        Err(error) => Err(DecodeError::Read(error)),
    }
}

/// The reason why a stream proves nothing more. All bytes that `sink` got before are proven all the same.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The stream ended too early: ask for the rest, or another copy.
    #[error("the encoded ranges end too early; ask for the rest again")]
    Cut,
    /// The bytes of a group are not what the root says: ask another copy.
    #[error("group {group} does not hash to the root; distrust the sender and ask another copy")]
    WrongGroup {
        /// The index of the group.
        group: u64,
    },
    /// A part of the proof does not hash to the root: another root, another size, other ranges, or a liar.
    #[error(
        "the proof does not hash to the root: wrong root, size or ranges, or a damaged stream; ask another copy"
    )]
    WrongProof,
    /// The stream has more bytes than the ranges: other ranges were encoded, or a liar.
    #[error("the encoded ranges go on after their end; distrust the sender")]
    Trailing,
    /// The stream cannot be read.
    #[error("the encoded ranges cannot be read: {0}")]
    Read(#[source] io::Error),
    /// `sink` did not take the proven bytes.
    #[error("the proven bytes cannot be written: {0}")]
    Sink(#[source] io::Error),
}

impl From<BaoDecodeError> for DecodeError {
    fn from(error: BaoDecodeError) -> Self {
        match error {
            BaoDecodeError::ParentNotFound(_) | BaoDecodeError::LeafNotFound(_) => Self::Cut,
            BaoDecodeError::ParentHashMismatch(TreeNode { .. }) => Self::WrongProof,
            BaoDecodeError::LeafHashMismatch(chunk) => Self::WrongGroup {
                group: chunk.0 * CHUNK / GROUP_SIZE,
            },
            BaoDecodeError::Io(error) => Self::Read(error),
        }
    }
}

pub(crate) fn at_end(encoded: &mut impl Read) -> io::Result<bool> {
    loop {
        match encoded.read(&mut [0]) {
            Ok(count) => return Ok(count == 0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the same bytes as sorted ranges that do not touch, none empty, none past `size`.
fn normal(ranges: &[Range<u64>], size: u64) -> Vec<Range<u64>> {
    let mut sorted: Vec<_> = ranges
        .iter()
        .map(|range| range.start..range.end.min(size))
        .collect();
    sorted.retain(|range| range.start < range.end);
    sorted.sort_unstable_by_key(|range| range.start);
    sorted.dedup_by(|next, kept| {
        let joined = next.start <= kept.end;
        if joined {
            kept.end = kept.end.max(next.end);
        }
        joined
    });
    sorted
}

/// Returns the boundaries of the chunks that hold the `wanted` bytes, strictly ascending; an empty file is one chunk.
pub(crate) fn wanted_chunks(wanted: &[Range<u64>], size: u64) -> Vec<ChunkNum> {
    if size == 0 {
        return vec![ChunkNum(0)];
    }
    let mut boundaries: Vec<ChunkNum> = Vec::new();
    for range in wanted {
        let start = ChunkNum(range.start / CHUNK);
        let end = ChunkNum(range.end.div_ceil(CHUNK));
        if boundaries.last().is_some_and(|last| *last >= start) {
            boundaries.pop();
        } else {
            boundaries.push(start);
        }
        boundaries.push(end);
    }
    boundaries
}

/// A failed read: past the end if there is no error.
struct Failure {
    offset: u64,
    error: Option<io::Error>,
}

/// An adapter of [`ReadAt`] for `bao-tree`, which remembers the read that failed.
struct Source<'a> {
    inner: &'a dyn ReadAt,
    failed: &'a Cell<Option<Failure>>,
}

impl bao::ReadAt for Source<'_> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read_at(offset, buffer)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let (filled, error) = fill_buffer(self.inner, offset, buffer);
        if filled == buffer.len() {
            return Ok(());
        }
        let kind = error
            .as_ref()
            .map_or(io::ErrorKind::UnexpectedEof, io::Error::kind);
        self.failed.set(Some(Failure { offset, error }));
        Err(kind.into())
    }
}

/// A writer that counts bytes, and remembers why it failed.
struct Sink<W> {
    inner: W,
    written: u64,
    failed: Option<io::Error>,
}

impl<W: Write> Write for Sink<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write_all(bytes).map_err(|error| {
            let kind = error.kind();
            self.failed = Some(error);
            io::Error::from(kind)
        })?;
        self.written += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests;
