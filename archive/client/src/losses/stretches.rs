//! A reader of a file with holes, which ends where a hole begins, and continues once it was moved behind the hole.
//!
//! Owns the offset of the next byte. Hands out small pieces, so that the caller knows closely how far it has read.

use std::io::{self, Read};
use std::iter::Fuse;

use bytes::{Buf, Bytes};

use crate::access::SalvagedPart;

/// The most bytes that are handed out at a time.
pub(super) const PIECE: usize = 4096;

/// The parts of a file, in order and without a gap.
#[derive(Debug)]
pub(super) struct Stretches<P> {
    /// The parts, fused: a channel that is asked again behind its end would seem broken off.
    parts: Fuse<P>,
    bytes: Bytes,
    at: u64,
    /// The end of the hole that begins at the current offset, if one does.
    hole: Option<u64>,
}

impl<P: Iterator<Item = io::Result<SalvagedPart>>> Stretches<P> {
    pub(super) fn new(parts: P, start: u64) -> Self {
        Self {
            parts: parts.fuse(),
            bytes: Bytes::new(),
            at: start,
            hole: None,
        }
    }

    /// Returns the offset of the next byte.
    pub(super) const fn current_offset(&self) -> u64 {
        self.at
    }

    /// Returns whether a hole begins at the current offset.
    pub(super) const fn is_hole(&self) -> bool {
        self.hole.is_some()
    }

    /// Skips holes up to the first bytes, and returns their offset.
    pub(super) fn begin_stretch(&mut self) -> io::Result<u64> {
        while !self.fill()?
            && let Some(end) = self.hole.take()
        {
            self.at = end;
        }
        Ok(self.at)
    }

    /// Goes on behind the hole at the current offset, and not before `to`. Returns the new offset, which is in front of
    /// bytes, of another hole that begins there, or at the end of the file.
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

    /// Takes the next part if no bytes are left; returns `false` at a hole or at the end.
    fn fill(&mut self) -> io::Result<bool> {
        while self.bytes.is_empty() && self.hole.is_none() {
            match self.parts.next().transpose()? {
                Some(SalvagedPart::Bytes(bytes)) => self.bytes = bytes,
                Some(SalvagedPart::Hole(hole)) => self.hole = Some(hole.end),
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

impl<P: Iterator<Item = io::Result<SalvagedPart>>> Read for Stretches<P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.fill()?;
        let count = self.bytes.len().min(buffer.len()).min(PIECE);
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), self.bytes.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(self.pass(count))
    }
}
