//! The bytes of a file as they come: one buffer, with the bytes that were read and a few that were consumed.
//!
//! Owns the position in the file. Does not know what the bytes mean.

use std::io::{self, Read};

/// The size of the buffer, in bytes.
const SIZE: usize = 256 * 1024;

/// The number of consumed bytes that are kept, so that a search after damage can begin a little before it.
pub(crate) const LOOK_BACK: usize = 64 * 1024;

/// A reader with a buffer that can grow and rewind.
#[derive(Debug)]
pub(crate) struct Input<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The offset in the file at which the buffer begins.
    base: u64,
}

impl<R: Read> Input<R> {
    pub(crate) fn new(source: R, base: u64) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            base,
        }
    }

    /// Returns the bytes that were read and not consumed.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Returns the offset in the file at which `bytes` begins.
    pub(crate) fn position(&self) -> u64 {
        self.base + self.start as u64
    }

    pub(crate) const fn source(&self) -> &R {
        &self.source
    }

    pub(crate) const fn source_mut(&mut self) -> &mut R {
        &mut self.source
    }

    /// Drops the buffer: the next byte of the source is at `position` of the file.
    pub(crate) fn restart_at(&mut self, position: u64) {
        (self.start, self.end) = (0, 0);
        self.base = position;
    }

    pub(crate) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// Goes back to a position, or as near as the kept bytes allow.
    pub(crate) fn rewind_to(&mut self, position: u64) {
        let start = usize::try_from(position.saturating_sub(self.base)).unwrap_or(usize::MAX);
        self.start = start.min(self.start);
    }

    /// Reads more bytes; returns `false` at the end of the file. The buffer grows when nothing was consumed: the caller
    /// bounds it.
    pub(crate) fn read_more(&mut self) -> io::Result<bool> {
        if self.end == self.buffer.len() {
            let from = self.start.saturating_sub(LOOK_BACK);
            self.buffer.copy_within(from..self.end, 0);
            self.base += from as u64;
            self.start -= from;
            self.end -= from;
            if self.buffer.len() - self.end < SIZE / 4 {
                let size = (self.buffer.len() * 2).max(SIZE);
                self.buffer.resize(size, 0);
            }
        }
        let Some(room) = self.buffer.get_mut(self.end..) else {
            return Ok(false);
        };
        loop {
            match self.source.read(room) {
                Ok(count) => {
                    self.end += count;
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads until `count` bytes are in the buffer; returns `false` if the file has fewer.
    pub(crate) fn want_bytes(&mut self, count: usize) -> io::Result<bool> {
        while self.end - self.start < count {
            if !self.read_more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads until `count` bytes are in the buffer, if the file has them and they can be read. An error is returned
    /// again by the read that needs these bytes.
    pub(crate) fn peek_bytes(&mut self, count: usize) {
        let _is_there = self.want_bytes(count).unwrap_or(false);
    }
}
