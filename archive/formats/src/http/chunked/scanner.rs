//! The grammar of the chunked transfer coding (RFC 9112 §7.1), decided while the bytes arrive.
//!
//! Owns where a chunk begins and ends. Takes LF for CR LF, blanks behind a size, and a body that is not chunked
//! although its head says so. Holds one line at a time, of at most [`MAX_LINE`] bytes.

use super::super::BodyError;

/// The longest line of a chunk's size, and the most bytes of all trailers that are kept.
const MAX_LINE: usize = 16 * 1024;

/// The meaning of the next bytes of a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum ChunkPart {
    /// Sizes, line ends and trailers.
    Framing,
    /// Bytes of the body.
    Payload,
    /// The first line is no size, so there are no chunks: [`ChunkScanner::line`] and all that follows are the body.
    Unchunked,
}

/// The place of the next byte in the framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScannerState {
    /// In the line with the size of a chunk; the first one may show that there are no chunks.
    Size { first: bool },
    /// In a chunk, of which this number of bytes follow.
    Data(u64),
    /// Before the line end behind a chunk, or within it.
    DataEnd { after_cr: bool },
    /// Behind the last chunk, before the empty line.
    Trailers,
    /// Behind a first line that is no size: everything is body.
    Unchunked,
    /// Behind the empty line that ends the body.
    Done,
    /// The framing is damaged, and stays so.
    Failed(BodyError),
}

/// The way in which a chunked body ends where its bytes end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum ChunkEnd {
    /// The body is complete.
    Complete,
    /// The body ends behind the last chunk, without the empty line.
    NoEndOfTrailers,
    /// The bytes so far were no size of a chunk: [`ChunkScanner::line`] is the whole body.
    Unchunked,
}

/// Finds the framing of a chunked body in its bytes.
#[derive(Debug)]
pub(in crate::http) struct ChunkScanner {
    state: ScannerState,
    at: u64,
    /// The line that is being read, or the first one if it turned out to be no size.
    line: Vec<u8>,
    line_at: u64,
    trailers: Vec<u8>,
}

impl ChunkScanner {
    pub(in crate::http) fn new() -> Self {
        Self {
            state: ScannerState::Size { first: true },
            at: 0,
            line: Vec::new(),
            line_at: 0,
            trailers: Vec::new(),
        }
    }

    /// Returns the lines behind the last chunk as they were stored, without the empty one.
    pub(in crate::http) fn trailers(&self) -> &[u8] {
        &self.trailers
    }

    /// Returns the first line, where it is no size of a chunk.
    pub(in crate::http) fn line(&self) -> &[u8] {
        &self.line
    }

    /// Returns whether nothing more belongs to the body.
    pub(in crate::http) fn is_done(&self) -> bool {
        self.state == ScannerState::Done
    }

    /// Returns whether the body has no chunks.
    pub(in crate::http) fn is_unchunked(&self) -> bool {
        self.state == ScannerState::Unchunked
    }

    /// Takes a prefix of the next bytes; returns their number and meaning. Takes none of no bytes, and none behind the
    /// end.
    ///
    /// # Errors
    ///
    /// [`BodyError::BadChunk`] if the framing is damaged, now and from then on.
    pub(in crate::http) fn scan_bytes(
        &mut self,
        bytes: &[u8],
    ) -> Result<(usize, ChunkPart), BodyError> {
        let mut taken = 0;
        loop {
            let rest = bytes.get(taken..).unwrap_or_default();
            let step = match self.state {
                ScannerState::Failed(error) if taken == 0 => return Err(error),
                ScannerState::Unchunked
                | ScannerState::Data(_)
                | ScannerState::Done
                | ScannerState::Failed(_)
                    if taken > 0 =>
                {
                    return Ok((taken, ChunkPart::Framing));
                }
                ScannerState::Unchunked => {
                    return Ok((self.advance(rest.len()), ChunkPart::Payload));
                }
                ScannerState::Data(left) => {
                    let room = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                    let left = left.saturating_sub(room as u64);
                    self.state = if left == 0 {
                        ScannerState::DataEnd { after_cr: false }
                    } else {
                        ScannerState::Data(left)
                    };
                    return Ok((self.advance(room), ChunkPart::Payload));
                }
                ScannerState::Done | ScannerState::Failed(_) => return Ok((0, ChunkPart::Framing)),
                _ if rest.is_empty() => return Ok((taken, ChunkPart::Framing)),
                ScannerState::DataEnd { after_cr } => self.data_end(rest, after_cr),
                ScannerState::Trailers => self.trailer(rest),
                ScannerState::Size { first } => {
                    let step = self.size_line(rest, first);
                    if self.is_unchunked() {
                        return Ok((taken + step, ChunkPart::Unchunked));
                    }
                    step
                }
            };
            taken += step;
        }
    }

    /// Returns how the body ends if no byte follows.
    ///
    /// # Errors
    ///
    /// [`BodyError::CutChunks`] if a chunk or the last of them is missing, [`BodyError::BadChunk`] if the framing is
    /// damaged.
    pub(in crate::http) fn check_end(&self) -> Result<ChunkEnd, BodyError> {
        match self.state {
            ScannerState::Done => Ok(ChunkEnd::Complete),
            ScannerState::Unchunked | ScannerState::Size { first: true } => Ok(ChunkEnd::Unchunked),
            ScannerState::Trailers => Ok(ChunkEnd::NoEndOfTrailers),
            ScannerState::Failed(error) => Err(error),
            ScannerState::Size { first: false } => match size(&self.line) {
                Some(0) => Ok(ChunkEnd::NoEndOfTrailers),
                None if !self.line.is_empty() => Err(BodyError::BadChunk { at: self.line_at }),
                _ => Err(BodyError::CutChunks { at: self.at }),
            },
            ScannerState::Data(_) | ScannerState::DataEnd { .. } => {
                Err(BodyError::CutChunks { at: self.at })
            }
        }
    }

    fn advance(&mut self, count: usize) -> usize {
        self.at = self.at.saturating_add(count as u64);
        count
    }

    /// Takes bytes up to the end of the line that they belong to.
    fn take_line(&mut self, rest: &[u8]) -> usize {
        let room = match MAX_LINE.saturating_sub(self.line.len()) {
            0 => rest.len(),
            room => room,
        };
        let window = rest.get(..room).unwrap_or(rest);
        let count = memchr::memchr(b'\n', window).map_or(window.len(), |at| at + 1);
        if self.line.is_empty() {
            self.line_at = self.at;
        }
        if self.line.len() < MAX_LINE {
            self.line
                .extend_from_slice(window.get(..count).unwrap_or_default());
        }
        self.advance(count)
    }

    fn size_line(&mut self, rest: &[u8], first: bool) -> usize {
        let count = self.take_line(rest);
        let whole = self.line.ends_with(b"\n");
        if !whole && self.line.len() < MAX_LINE {
            return count;
        }
        self.state = match size(&self.line).filter(|_| whole) {
            Some(0) => ScannerState::Trailers,
            Some(size) => ScannerState::Data(size),
            None if first => ScannerState::Unchunked,
            None => ScannerState::Failed(BodyError::BadChunk { at: self.line_at }),
        };
        if self.state != ScannerState::Unchunked {
            self.line.clear();
        }
        count
    }

    fn data_end(&mut self, rest: &[u8], after_cr: bool) -> usize {
        self.state = match rest.first() {
            Some(b'\r') if !after_cr => ScannerState::DataEnd { after_cr: true },
            // LF alone is accepted.
            Some(b'\n') => ScannerState::Size { first: false },
            _ => {
                self.state = ScannerState::Failed(BodyError::BadChunk { at: self.at });
                return 0;
            }
        };
        self.advance(1)
    }

    fn trailer(&mut self, rest: &[u8]) -> usize {
        let count = self.take_line(rest);
        let taken = rest.get(..count).unwrap_or_default();
        if taken.ends_with(b"\n") {
            if self.line.trim_ascii().is_empty() {
                self.state = ScannerState::Done;
            } else if self.trailers.len() < MAX_LINE {
                self.trailers.extend_from_slice(&self.line);
            }
            self.line.clear();
        }
        count
    }
}

/// Returns the size that a line of framing names: hexadecimal digits, then nothing or an extension.
fn size(line: &[u8]) -> Option<u64> {
    let text = line.trim_ascii();
    let digits = text.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let (number, behind) = text.split_at(digits);
    let behind = behind.trim_ascii_start();
    let number = str::from_utf8(number).ok().filter(|n| !n.is_empty())?;
    (behind.is_empty() || behind.first() == Some(&b';'))
        .then(|| u64::from_str_radix(number, 16).ok())
        .flatten()
}
