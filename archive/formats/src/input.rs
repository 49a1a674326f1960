//! The bytes of a file as they come: one buffer, what was read, and a little of what lies behind.
//!
//! Owns the position in the file. Does not know what the bytes mean.

use std::io::{self, Read};

/// The size of the buffer.
const SIZE: usize = 256 * 1024;

/// The number of consumed bytes that are kept, so that a search after damage can begin a little before it.
pub(crate) const LOOK_BACK: usize = 64 * 1024;

/// A reader with a buffer that can grow, and be gone back in.
#[derive(Debug)]
pub(crate) struct Input<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Where in the file the buffer begins.
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

    /// Returns the bytes that are there and not consumed.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Where in the file `bytes` begins.
    pub(crate) fn position(&self) -> u64 {
        self.base + self.start as u64
    }

    pub(crate) const fn source(&self) -> &R {
        &self.source
    }

    pub(crate) const fn source_mut(&mut self) -> &mut R {
        &mut self.source
    }

    /// Forgets what is there: what the source gives next stands at `position`.
    pub(crate) fn restart(&mut self, position: u64) {
        (self.start, self.end) = (0, 0);
        self.base = position;
    }

    pub(crate) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// Goes back to a position, or as near as what was kept allows.
    pub(crate) fn rewind(&mut self, position: u64) {
        let start = usize::try_from(position.saturating_sub(self.base)).unwrap_or(usize::MAX);
        self.start = start.min(self.start);
    }

    /// Reads on behind what is there; `false` at the end of the file. Grows when nothing was consumed: the caller
    /// keeps the bound.
    pub(crate) fn more(&mut self) -> io::Result<bool> {
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

    /// Sees to it that `count` bytes are there, if the file has them.
    pub(crate) fn want(&mut self, count: usize) -> io::Result<bool> {
        while self.end - self.start < count {
            if !self.more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sees to it that `count` bytes are there, if the file has them and they can be read. An error is met again by
    /// the read that needs these bytes.
    pub(crate) fn peek(&mut self, count: usize) {
        let _is_there = self.want(count).unwrap_or(false);
    }
}
