//! The lines of a record's block, each within a limit.
//!
//! Owns how lines are cut out of a block that may be damaged, and the digest of the block. Does not know what lines
//! mean.

use std::io::{self, BufRead};

use archive_formats::digest::Hashers;

use crate::layout::MAX_LINE;

/// A line of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BlockLine {
    /// The text, without its line end.
    Text {
        /// The text, without its line end.
        text: String,
        /// Whether the text has a line end: the last line of a cut block has none.
        has_end: bool,
    },
    /// A line that cannot be used, and why.
    Unusable(String),
}

/// A reader of lines that hashes all bytes that it reads.
#[derive(Debug)]
pub(super) struct LineReader<R> {
    block: R,
    hashers: Hashers,
}

impl<R: BufRead> LineReader<R> {
    pub(super) fn new(block: R, hashers: Hashers) -> Self {
        Self { block, hashers }
    }

    /// Returns the next line; `None` at the end of the block. A line that is too long is passed over without being
    /// held.
    ///
    /// # Errors
    ///
    /// Those of the block.
    pub(super) fn next_line(&mut self) -> io::Result<Option<BlockLine>> {
        let mut line = Vec::new();
        let mut length = 0;
        let mut has_end = false;
        while !has_end {
            let bytes = self.block.fill_buf()?;
            if bytes.is_empty() {
                break;
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(bytes.len(), |end| end + 1);
            let part = bytes.get(..taken).unwrap_or_default();
            self.hashers.update(part);
            length += taken;
            has_end = end.is_some();
            let room = (MAX_LINE + 2).saturating_sub(line.len());
            line.extend_from_slice(part.get(..room).unwrap_or(part));
            self.block.consume(taken);
        }
        if length == 0 {
            return Ok(None);
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if length > MAX_LINE + 2 || text.len() > MAX_LINE {
            return Ok(Some(BlockLine::Unusable(format!(
                "it is longer than {MAX_LINE} bytes"
            ))));
        }
        Ok(Some(match str::from_utf8(text) {
            Ok(text) => BlockLine::Text {
                text: text.to_owned(),
                has_end,
            },
            Err(error) => {
                BlockLine::Unusable(format!("its byte {} is not UTF-8", error.valid_up_to()))
            }
        }))
    }

    /// Returns the hashers, which have seen the lines that were read.
    pub(super) fn into_hashers(self) -> Hashers {
        self.hashers
    }
}
