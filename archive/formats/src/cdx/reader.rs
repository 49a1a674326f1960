//! Reads a CDX or CDXJ file line by line, whatever its form is.

use std::io::{self, BufRead, Read as _};

use thiserror::Error;

use super::{Capture, Format, InvalidLine};

/// A line that could not be read, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {number} (byte {offset}): {why}")]
pub struct BadLine {
    /// The number of the line, counted from 1.
    pub number: u64,
    /// Where it begins in the file.
    pub offset: u64,
    /// What is wrong with it.
    pub why: InvalidLine,
}

/// What stops a line, or all lines.
#[derive(Debug, Error)]
pub enum ReadError {
    /// This line is bad; the next ones may be good.
    #[error(transparent)]
    Line(#[from] BadLine),
    /// The input failed: nothing follows.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The captures of a file. Ends after an I/O error, goes on after a bad line.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    format: Option<Format>,
    limit: usize,
    number: u64,
    offset: u64,
    line: Vec<u8>,
    ended: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads lines of up to `limit` bytes. The first one tells the form.
    pub fn new(input: R, limit: usize) -> Self {
        Self {
            input,
            format: None,
            limit,
            number: 0,
            offset: 0,
            line: Vec::new(),
            ended: false,
        }
    }

    /// Reads lines of a form that is known; header lines are still taken for what they are.
    pub fn with_format(input: R, limit: usize, format: Format) -> Self {
        Self {
            format: Some(format),
            ..Self::new(input, limit)
        }
    }

    /// The form, once a line has told it.
    pub fn format(&self) -> Option<&Format> {
        self.format.as_ref()
    }

    /// The next line without its end; its offset. None at the end.
    fn line(&mut self) -> io::Result<Option<(u64, Result<String, InvalidLine>)>> {
        self.line.clear();
        let room = u64::try_from(self.limit)
            .unwrap_or(u64::MAX)
            .saturating_add(2);
        let read = self
            .input
            .by_ref()
            .take(room)
            .read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        let start = self.offset;
        self.number += 1;
        self.advance(read);
        let ended = self.line.last() == Some(&b'\n');
        if ended {
            self.line.pop();
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        if self.line.len() > self.limit {
            if !ended {
                self.skip_line()?;
            }
            return Ok(Some((
                start,
                Err(InvalidLine::TooLong { limit: self.limit }),
            )));
        }
        let text = str::from_utf8(&self.line).map(str::to_owned);
        Ok(Some((
            start,
            text.map_err(|e| InvalidLine::NotUtf8 {
                at: e.valid_up_to(),
            }),
        )))
    }

    fn advance(&mut self, bytes: usize) {
        self.offset = self
            .offset
            .saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(());
            }
            let end = memchr::memchr(b'\n', buffer);
            let used = end.map_or(buffer.len(), |at| at + 1);
            self.input.consume(used);
            self.advance(used);
            if end.is_some() {
                return Ok(());
            }
        }
    }

    /// A capture, or nothing for a header, a comment or an empty line.
    fn read(&mut self, text: &str) -> Result<Option<Capture>, InvalidLine> {
        if text.is_empty() {
            return Ok(None);
        }
        if text.get(1..).is_some_and(|rest| rest.starts_with("CDX")) {
            let format = Format::sniff(text)?;
            let header = format.header().is_some();
            if header {
                self.format = Some(format);
                return Ok(None);
            }
        }
        let format = match self.format.take() {
            Some(format) => format,
            None => Format::sniff(text)?,
        };
        let capture = if format == Format::Cdxj && text.starts_with('!') {
            Ok(None)
        } else {
            format.read(text).map(Some)
        };
        self.format = Some(format);
        capture
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Capture, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let (offset, text) = match self.line() {
                Ok(Some(line)) => line,
                Ok(None) => {
                    self.ended = true;
                    break;
                }
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error.into()));
                }
            };
            let number = self.number;
            match text.and_then(|text| self.read(&text)) {
                Ok(Some(capture)) => return Some(Ok(capture)),
                Ok(None) => {}
                Err(why) => {
                    return Some(Err(BadLine {
                        number,
                        offset,
                        why,
                    }
                    .into()));
                }
            }
        }
        None
    }
}
