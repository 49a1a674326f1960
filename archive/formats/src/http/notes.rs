//! The oddities of a body that could be read.

use std::sync::Arc;

use parking_lot::Mutex;

use super::coding::Coding;

/// An oddity of a body that could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The header says that the body is chunked, and it is not.
    NotChunked,
    /// The body has header fields behind the last chunk.
    Trailers,
    /// The empty line behind the last chunk is missing.
    NoEndOfTrailers,
    /// The stored body has another length than `Content-Length`.
    Length {
        /// The length in the header.
        expected: u64,
        /// The length of the stored body.
        found: u64,
    },
    /// The header names an encoding that the bytes do not have: they are handed out as they are.
    NotCoded(Coding),
    /// The body has unknown encodings, or too many: they and those before them are left as they are.
    LeftCoded(String),
    /// Bytes follow the end of a compressed stream; they are left out.
    Behind(Coding),
}

/// The notes of a body, into which all its layers write.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes(Arc<Mutex<Vec<Note>>>);

impl Notes {
    pub(super) fn add_note(&self, note: Note) {
        let mut notes = self.0.lock();
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    pub(super) fn get(&self) -> Vec<Note> {
        self.0.lock().clone()
    }
}
