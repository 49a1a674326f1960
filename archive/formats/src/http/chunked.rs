//! The chunked transfer encoding, undone while it is read.

use std::io::{self, BufRead, Read};

use super::notes::{Note, Notes};

mod scanner;

pub(super) use self::scanner::{ChunkEnd, ChunkPart, ChunkScanner};

/// A reader that undoes chunks.
///
/// A body that does not begin with a chunk is not chunked, whatever its header says: it is handed out as it is, and
/// noted.
#[derive(Debug)]
pub struct ChunkedReader<R> {
    input: R,
    scanner: ChunkScanner,
    /// A first line that was no size, to be handed out as body.
    pending: io::Cursor<Vec<u8>>,
    ended: bool,
    notes: Notes,
}

impl<R: BufRead> ChunkedReader<R> {
    /// Makes a reader of the bytes behind the head.
    pub fn new(input: R) -> Self {
        Self::with_notes(input, Notes::default())
    }

    pub(super) fn with_notes(input: R, notes: Notes) -> Self {
        Self {
            input,
            scanner: ChunkScanner::new(),
            pending: io::Cursor::default(),
            ended: false,
            notes,
        }
    }

    /// Returns the lines behind the last chunk as they were stored, without the empty one.
    pub fn trailers(&self) -> &[u8] {
        self.scanner.trailers()
    }

    /// Returns whether the body was read to a regular end.
    pub fn is_complete(&self) -> bool {
        self.ended || self.scanner.is_done() || self.scanner.is_unchunked()
    }

    /// Returns the input behind the body.
    pub fn into_inner(self) -> R {
        self.input
    }

    pub(super) fn inner_mut(&mut self) -> &mut R {
        &mut self.input
    }

    /// Makes the line that was taken for the size of a chunk a part of the body.
    fn unchunk(&mut self) {
        self.notes.add_note(Note::NotChunked);
        self.pending = io::Cursor::new(self.scanner.line().to_vec());
    }

    fn note_trailers(&self) {
        if !self.scanner.trailers().is_empty() {
            self.notes.add_note(Note::Trailers);
        }
    }

    /// Ends the body where the input has no more bytes.
    fn end(&mut self) -> io::Result<()> {
        let unchunked = self.scanner.is_unchunked();
        match self.scanner.check_end()? {
            ChunkEnd::Unchunked if !unchunked => self.unchunk(),
            ChunkEnd::NoEndOfTrailers => {
                self.note_trailers();
                self.notes.add_note(Note::NoEndOfTrailers);
            }
            ChunkEnd::Unchunked | ChunkEnd::Complete => {}
        }
        self.ended = true;
        Ok(())
    }

    /// Reads some of the input; returns the number of bytes of body that came out, or `None` for framing.
    fn step(&mut self, out: &mut [u8]) -> io::Result<Option<usize>> {
        let buffer = self.input.fill_buf()?;
        if buffer.is_empty() {
            self.end()?;
            return Ok(None);
        }
        let window = buffer.get(..out.len()).unwrap_or(buffer);
        let (count, part) = self.scanner.scan_bytes(window)?;
        if let (ChunkPart::Payload, Some(out), Some(bytes)) =
            (part, out.get_mut(..count), window.get(..count))
        {
            out.copy_from_slice(bytes);
        }
        self.input.consume(count);
        match part {
            ChunkPart::Payload => return Ok(Some(count)),
            ChunkPart::Unchunked => self.unchunk(),
            ChunkPart::Framing if self.scanner.is_done() => {
                self.note_trailers();
                self.ended = true;
            }
            ChunkPart::Framing => {}
        }
        Ok(None)
    }
}

impl<R: BufRead> Read for ChunkedReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let pending = self.pending.read(out)?;
            if pending > 0 {
                return Ok(pending);
            }
            if self.ended {
                return Ok(0);
            }
            if let Some(read) = self.step(out)? {
                return Ok(read);
            }
        }
    }
}
