//! A file with holes as a reader: it ends where a hole begins, and goes on when it was moved behind it.
//!
//! Owns where in the file the next byte stands. Small pieces are handed out, so that the caller knows well how far was
//! read.

use std::io::{self, Read};
use std::iter::Fuse;

use bytes::{Buf, Bytes};

use crate::access::Salvaged;

/// The most that is handed out at a time, in bytes.
pub(super) const PIECE: usize = 4096;

/// Parts of a file, in order and without a gap.
#[derive(Debug)]
pub(super) struct Stretches<P> {
    /// Asked again at its end, a channel would take it for broken off.
    parts: Fuse<P>,
    bytes: Bytes,
    at: u64,
    /// Where the hole ends that begins here.
    hole: Option<u64>,
}

impl<P: Iterator<Item = io::Result<Salvaged>>> Stretches<P> {
    pub(super) fn new(parts: P, start: u64) -> Self {
        Self {
            parts: parts.fuse(),
            bytes: Bytes::new(),
            at: start,
            hole: None,
        }
    }

    /// Where the next byte stands.
    pub(super) const fn at(&self) -> u64 {
        self.at
    }

    /// Whether there is a hole here.
    pub(super) const fn is_hole(&self) -> bool {
        self.hole.is_some()
    }

    /// Goes to the first bytes, and says where they stand.
    pub(super) fn begin(&mut self) -> io::Result<u64> {
        while !self.fill()?
            && let Some(end) = self.hole.take()
        {
            self.at = end;
        }
        Ok(self.at)
    }

    /// Goes on behind the hole that is here, and not before `to`. Says where: in front of bytes, of another hole that
    /// begins there, or at the end of the file.
    pub(super) fn go_on(&mut self, to: u64) -> io::Result<u64> {
        loop {
            if let Some(end) = self.hole.take() {
                self.at = self.at.max(end);
            }
            let left = to.saturating_sub(self.at);
            if left == 0 || !(self.fill()? || self.is_hole()) {
                return Ok(self.at);
            }
            self.pass(usize::try_from(left).unwrap_or(usize::MAX));
        }
    }

    /// Sees to it that there are bytes; `false` at a hole or the end.
    fn fill(&mut self) -> io::Result<bool> {
        while self.bytes.is_empty() && self.hole.is_none() {
            match self.parts.next().transpose()? {
                Some(Salvaged::Bytes(bytes)) => self.bytes = bytes,
                Some(Salvaged::Hole(hole)) => self.hole = Some(hole.end),
                None => return Ok(false),
            }
        }
        Ok(!self.bytes.is_empty())
    }

    fn pass(&mut self, most: usize) -> usize {
        let count = self.bytes.len().min(most);
        self.bytes.advance(count);
        self.at += count as u64;
        count
    }
}

impl<P: Iterator<Item = io::Result<Salvaged>>> Read for Stretches<P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.fill()?;
        let count = self.bytes.len().min(buffer.len()).min(PIECE);
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), self.bytes.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(self.pass(count))
    }
}
