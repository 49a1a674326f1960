//! HTTP/1 messages as records hold them.
//!
//! Owns the head ([`Head`]: any shape that servers send), the body ([`Body`]: chunks and content encodings undone,
//! within limits), the end of a response on the wire ([`ResponseFramer`]), the media type, and both readings of payload
//! digests. Oddities are read and noted; a body that is cut, broken or too large is an error behind its readable bytes.
//! Does not speak HTTP to anyone.

mod body;
mod chunked;
mod coding;
mod framer;
mod head;
mod media;
mod notes;
mod payload;
mod undo;
mod zstd;

pub use body::Body;
pub use chunked::ChunkedReader;
pub use coding::{Coding, DecodeLimits};
pub use framer::{ResponseEnding, ResponseFramer, ResponsePart};
pub use head::{Head, HeadError, HeadNote, HeaderField, Start};
pub use media::MediaType;
pub use notes::Note;
pub(crate) use payload::Tee;
pub use payload::{PayloadCheck, PayloadReading, UncheckedReason, check_payload};

use std::io;

use thiserror::Error;

/// The reason why a body ends early. Travels within an [`io::Error`]; [`BodyError::find_within`] finds it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BodyError {
    /// The bytes end within a chunk, or before the last one.
    #[error("the chunked body is cut after {at} bytes of the body")]
    CutChunks {
        /// The number of stored bytes of the body.
        at: u64,
    },
    /// A chunk that begins with no size, or does not end where its size says.
    #[error("no chunk begins at byte {at} of the body")]
    BadChunk {
        /// The position of the damage in the stored bytes of the body.
        at: u64,
    },
    /// The compressed bytes end before the end of their stream.
    #[error("the {} stream is cut after {out} decoded bytes", .coding.name())]
    CutStream {
        /// The encoding that was being undone.
        coding: Coding,
        /// The number of bytes that were decompressed.
        out: u64,
    },
    /// The compressed bytes are damaged.
    #[error("the {} stream is damaged after {out} decoded bytes", .coding.name())]
    BadStream {
        /// The encoding that was being undone.
        coding: Coding,
        /// The number of bytes that were decompressed.
        out: u64,
    },
    /// More bytes come out than are allowed.
    #[error("more than {limit} bytes, the limit, come out of {stored}")]
    TooLarge {
        /// The number of bytes that were allowed.
        limit: u64,
        /// The number of encoded bytes that they came from.
        stored: u64,
    },
}

impl BodyError {
    /// Returns the body error within an error, unless the input itself failed.
    pub fn find_within(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref::<Self>().copied()
    }
}

impl From<BodyError> for io::Error {
    fn from(error: BodyError) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

#[cfg(test)]
mod tests;
