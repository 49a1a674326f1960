//! An outboard made again from data that is good.
//!
//! Owns the refusal of other data: what does not hash to the root gets no outboard. Not promised: that the sink is
//! durable.

use std::io::{self, Write};

use archive_model::{FileContent, Root};

use crate::read_at::{ReadAt, fill_buffer};
use crate::tree::{Tree, TreeBuilder};

/// The number of bytes of a file that are read at once.
const READ: usize = 1024 * 1024;

/// Computes the outboard of `data`, which has `content`, anew and writes it into `sink`.
///
/// Only an `Ok` is an outboard: on an error the sink holds nothing of use.
///
/// # Errors
///
/// [`RebuildError`]: the data cannot be read or has another root, or the sink fails.
pub fn rebuild_outboard<W: Write>(
    data: &(impl ReadAt + ?Sized),
    content: FileContent,
    sink: W,
) -> Result<Tree<W>, RebuildError> {
    let FileContent { root, size } = content;
    let mut builder = TreeBuilder::new(sink);
    let mut buffer = vec![0; READ];
    while builder.size() < size {
        let offset = builder.size();
        let want = usize::try_from(size - offset).unwrap_or(READ).min(READ);
        let (filled, error) = fill_buffer(data, offset, buffer.get_mut(..want).unwrap_or_default());
        if let Some(source) = error {
            return Err(RebuildError::Read {
                offset: offset + filled as u64,
                source,
            });
        }
        if filled == 0 {
            break;
        }
        builder
            .update(buffer.get(..filled).unwrap_or_default())
            .map_err(RebuildError::Sink)?;
    }
    let tree = builder.finish().map_err(RebuildError::Sink)?;
    if tree.root != root {
        return Err(RebuildError::OtherRoot {
            expected: root,
            found: tree.root,
        });
    }
    Ok(tree)
}

/// The reason why no outboard could be computed.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// The data cannot be read: repair it first.
    #[error("the data cannot be read at byte {offset}; repair the file before its outboard")]
    Read {
        /// The offset of the first byte that could not be read.
        offset: u64,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The data is not what the root says (also when it is too short): repair it first.
    #[error("the data has root {found} instead of {expected}; repair the file before its outboard")]
    OtherRoot {
        /// The root that was asked for.
        expected: Root,
        /// The root of the bytes.
        found: Root,
    },
    /// The outboard could not be written.
    #[error("the outboard cannot be written: {0}")]
    Sink(#[source] io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;
    use tools_testing::noise;

    fn build(data: &[u8]) -> Tree<Vec<u8>> {
        let mut builder = TreeBuilder::new(Vec::new());
        builder.update(data).unwrap();
        builder.finish().unwrap()
    }

    /// Fails if data that is damaged, cut or of another size gets an outboard.
    #[test]
    fn rebuilding_refuses_data_that_is_not_the_files() {
        let data = noise(3 << 20, 5);
        let tree = build(&data);
        let again = rebuild_outboard(&data, tree.content(), Vec::new()).unwrap();
        assert_eq!(again, tree);
        let mut flipped = data.clone();
        flipped[2 << 20] ^= 1;
        let short = &data[..data.len() - 1];
        for bad in [flipped.as_slice(), short] {
            let error = rebuild_outboard(bad, tree.content(), Vec::new()).unwrap_err();
            assert!(
                matches!(error, RebuildError::OtherRoot { expected, .. } if expected == tree.root)
            );
        }
        let shorter = FileContent {
            size: tree.size - 1,
            ..tree.content()
        };
        let error = rebuild_outboard(&data, shorter, Vec::new()).unwrap_err();
        assert!(matches!(error, RebuildError::OtherRoot { .. }));
    }
}
