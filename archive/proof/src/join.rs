//! Slices that follow each other, joined into the one slice that their ranges have together.
//!
//! A slice is pre-order: the pairs on the way down, then the group. A pair above two neighbouring ranges is in both of
//! their slices, and in the joined slice once, where it is met first. So the joined slice is one slice after the other,
//! without the pairs of later slices that begin before them. Nothing is kept between two slices.
//!
//! Not promised: anything where ranges do not begin and end at groups; there a slice has other parts.

use std::io::{Read, Write};
use std::ops::Range;

use archive_model::FileContent;
use bao_tree::io::BaoContentItem;
use bao_tree::io::sync::DecodeResponseIter;
use bao_tree::{BaoTree, ChunkNum, ChunkRangesRef};

use crate::ranges::{CHUNK, DecodeError, GROUPS, at_end, wanted_chunks};

/// The file and the range of a slice.
#[derive(Clone, Debug)]
pub(crate) struct JoinPart {
    pub(crate) content: FileContent,
    /// The range of the slice: whole groups, or up to the end of the file.
    pub(crate) range: Range<u64>,
}

/// Checks the slice of `part` and appends it to `out`, which has the slices of everything from `first` up to it.
pub(crate) fn join_records(
    mut encoded: impl Read,
    part: &JoinPart,
    first: u64,
    out: &mut impl Write,
) -> Result<(), DecodeError> {
    let JoinPart { content, range } = part;
    let FileContent { root, size } = *content;
    let chunks = wanted_chunks(std::slice::from_ref(range), size);
    let items = DecodeResponseIter::new(
        blake3::Hash::from_bytes(*root.as_bytes()),
        BaoTree::new(size, GROUPS),
        &mut encoded,
        ChunkRangesRef::new_unchecked(&chunks),
    );
    for item in items {
        match item? {
            BaoContentItem::Parent(parent) => {
                let ChunkNum(begins) = parent.node.chunk_range().start;
                let was_met = first < range.start && begins.saturating_mul(CHUNK) < range.start;
                if !was_met {
                    let (left, right) = parent.pair;
                    out.write_all(left.as_bytes())
                        .and_then(|()| out.write_all(right.as_bytes()))
                        .map_err(DecodeError::Sink)?;
                }
            }
            BaoContentItem::Leaf(leaf) => out.write_all(&leaf.data).map_err(DecodeError::Sink)?,
        }
    }
    match at_end(&mut encoded) {
        Ok(true) => Ok(()),
        Ok(false) => Err(DecodeError::Trailing),
        Err(error) => Err(DecodeError::Read(error)),
    }
}

#[cfg(test)]
mod tests {
    use archive_model::GROUP_SIZE;

    use super::*;
    use crate::ranges::encode_ranges;
    use crate::read_at::CopyBytes;
    use crate::testing::EDGES;
    use crate::tree::{Tree, TreeBuilder};
    use tools_testing::{Random, noise};

    fn slice(data: &[u8], tree: &Tree<Vec<u8>>, range: Range<u64>) -> Vec<u8> {
        let mut out = Vec::new();
        let copy = CopyBytes {
            data: &data,
            outboard: Some(&tree.sink),
        };
        encode_ranges(copy, tree.content(), &[range], &mut out).unwrap();
        out
    }

    /// Fails if the slice that is joined from several answers differs from the slice of the whole range.
    #[test]
    fn joined_slices_equal_slice_of_whole() {
        let mut dice = Random::new(7);
        for size in EDGES.into_iter().filter(|size| *size > 0) {
            let data = noise(size, 3);
            let mut builder = TreeBuilder::new(Vec::new());
            builder.update(&data).unwrap();
            let tree = builder.finish().unwrap();
            let size = size as u64;
            let groups = size.div_ceil(GROUP_SIZE);
            for _ in 0..30 {
                let first = dice.below(groups) * GROUP_SIZE;
                let end =
                    (first / GROUP_SIZE + 1 + dice.below(groups - first / GROUP_SIZE)) * GROUP_SIZE;
                let mut at = first;
                let end = end.min(size);
                let mut joined = Vec::new();
                while at < end {
                    let next = (at + (1 + dice.below(5)) * GROUP_SIZE).min(end);
                    let part = JoinPart {
                        content: tree.content(),
                        range: at..next,
                    };
                    join_records(
                        slice(&data, &tree, at..next).as_slice(),
                        &part,
                        first,
                        &mut joined,
                    )
                    .unwrap();
                    at = next;
                }
                assert!(
                    joined == slice(&data, &tree, first..end),
                    "{first}..{end} of {size}"
                );
            }
        }
    }
}
