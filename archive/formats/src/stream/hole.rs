//! Going on behind bytes that are missing.
//!
//! Owns the state behind a hole: compressed data continues at the next member that begins a record. Does not know how
//! long the hole is in the decompressed bytes.

use std::io::Read;

use super::{Break, Codec, Stream, StreamState};
use crate::defect::Class;

impl<R: Read> Stream<R> {
    pub(crate) const fn source(&self) -> &R {
        self.input.source()
    }

    pub(crate) const fn source_mut(&mut self) -> &mut R {
        self.input.source_mut()
    }

    /// Takes the file for gzip, unless its first bytes are a record.
    pub(crate) fn assume_gzip(&mut self) {
        self.assumed = true;
    }

    /// Moves the position: the next byte of the source is at `offset` of the file.
    pub(crate) fn skip_to(&mut self, offset: u64) {
        self.input.restart_at(offset);
        (self.start, self.end) = (0, 0);
        if matches!(self.state, StreamState::Unknown) {
            return;
        }
        self.state = match self.codec {
            Codec::Plain => StreamState::Inside,
            Codec::Gzip(_) | Codec::Zstd(_) => StreamState::Hole(Break {
                class: Class::Cut,
                offset,
                words: "the bytes before this are not there".into(),
            }),
        };
    }
}
