//! Lines of any length, read with bounded memory.
//!
//! Owns where a line begins and ends, and how much of it is held. Does not know the content of a line, nor its
//! encoding.

use std::io::{self, BufRead, Read as _};

/// A line, with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The number of the line, counted from 1.
    pub number: u64,
    /// The offset of the line in the input, in bytes.
    pub offset: u64,
    /// The bytes of the line without its end, LF or CR LF. `None` if the line is longer than the limit.
    pub bytes: Option<&'a [u8]>,
    /// Whether the line ends with LF. Only the last line can lack it.
    pub is_ended: bool,
}

/// A reader of lines of up to a number of bytes, which skips the bytes of longer ones.
///
/// ```
/// use archive_formats::lines::BoundedLines;
///
/// let mut lines = BoundedLines::new(&b"one\r\na line that is too long\n"[..], 8);
/// assert_eq!(lines.next_line()?.and_then(|line| line.bytes), Some(&b"one"[..]));
/// assert_eq!(lines.next_line()?.map(|line| (line.offset, line.bytes)), Some((5, None)));
/// assert_eq!(lines.next_line()?, None);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct BoundedLines<R> {
    input: R,
    limit: usize,
    number: u64,
    offset: u64,
    line: Vec<u8>,
}

impl<R: BufRead> BoundedLines<R> {
    /// Reads lines of up to `limit` bytes without their ends.
    pub fn new(input: R, limit: usize) -> Self {
        Self {
            input,
            limit,
            number: 0,
            offset: 0,
            line: Vec::new(),
        }
    }

    /// Returns the limit, in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Reads the next line; `None` at the end of the input.
    ///
    /// # Errors
    ///
    /// Fails if the input fails.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let room = (self.limit as u64).saturating_add(2);
        let read = self
            .input
            .by_ref()
            .take(room)
            .read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        let offset = self.offset;
        self.number += 1;
        self.advance(read);
        let mut is_ended = self.line.last() == Some(&b'\n');
        if is_ended {
            self.line.pop();
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        let is_too_long = self.line.len() > self.limit;
        if is_too_long && !is_ended {
            is_ended = self.skip_line()?;
        }
        Ok(Some(Line {
            number: self.number,
            offset,
            bytes: (!is_too_long).then_some(self.line.as_slice()),
            is_ended,
        }))
    }

    fn advance(&mut self, bytes: usize) {
        self.offset = self.offset.saturating_add(bytes as u64);
    }

    /// Skips the rest of a line. Returns whether it has an end.
    fn skip_line(&mut self) -> io::Result<bool> {
        loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                return Ok(false);
            }
            let end = memchr::memchr(b'\n', buffer);
            let used = end.map_or(buffer.len(), |at| at + 1);
            self.input.consume(used);
            self.advance(used);
            if end.is_some() {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a long line ends the reading, shifts the offsets, or is held.
    #[test]
    fn long_line_is_passed_over() {
        let input = [b"ab\r\n".as_slice(), &[b'x'; 5000], b"\nabcd\nabcd"].concat();
        let mut lines = BoundedLines::new(input.as_slice(), 4);
        let mut read = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            let bytes = line.bytes.map(<[u8]>::to_vec);
            read.push((line.number, line.offset, bytes, line.is_ended));
        }
        assert_eq!(
            read,
            [
                (1, 0, Some(b"ab".to_vec()), true),
                (2, 4, None, true),
                (3, 5005, Some(b"abcd".to_vec()), true),
                (4, 5010, Some(b"abcd".to_vec()), false),
            ]
        );
        assert!(lines.line.capacity() < 64);
    }
}
