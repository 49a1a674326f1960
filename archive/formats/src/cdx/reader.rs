//! Reads a CDX or CDXJ file of any form, line by line.

use std::io::{self, BufRead};

use thiserror::Error;

use super::{Capture, Format, InvalidLine};
use crate::lines::BoundedLines;

/// A line that could not be read, with its place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {number} (byte {offset}): {why}")]
pub struct BadLine {
    /// The number of the line, counted from 1.
    pub number: u64,
    /// The offset of the line in the file.
    pub offset: u64,
    /// The reason why the line cannot be read.
    pub why: InvalidLine,
}

/// An error that stops a line, or all lines.
#[derive(Debug, Error)]
pub enum ReadLineError {
    /// The line is bad; the next ones may be good.
    #[error(transparent)]
    Line(#[from] BadLine),
    /// The input failed: nothing follows.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A reader of the captures of a file. Ends after an I/O error, continues after a bad line.
///
/// ```
/// use archive_formats::cdx::{ReadLineError, CdxReader};
///
/// let file = b" CDX N b a m s k r M S V g\n\
///     org,example)/ 20160111232425 http://example.org/ text/html 200 AAAA - - 120 43321 a.warc.gz\n";
/// let captures: Vec<_> = CdxReader::new(&file[..], 64 * 1024).collect::<Result<_, ReadLineError>>()?;
/// assert_eq!(captures[0].key, "org,example)/");
/// assert_eq!(captures[0].offset, Some(43321));
/// # Ok::<(), ReadLineError>(())
/// ```
#[derive(Debug)]
pub struct CdxReader<R> {
    lines: BoundedLines<R>,
    format: Option<Format>,
    ended: bool,
}

impl<R: BufRead> CdxReader<R> {
    /// Reads lines of up to `limit` bytes. The first line decides the form.
    pub fn new(input: R, limit: usize) -> Self {
        Self {
            lines: BoundedLines::new(input, limit),
            format: None,
            ended: false,
        }
    }

    /// Reads lines of a known form; header lines are still recognised.
    pub fn with_format(input: R, limit: usize, format: Format) -> Self {
        Self {
            format: Some(format),
            ..Self::new(input, limit)
        }
    }

    /// Returns the form, once a line has decided it.
    pub fn format(&self) -> Option<&Format> {
        self.format.as_ref()
    }
}

/// Reads a line: a capture, or `None` for a header, a comment or an empty line.
fn read(format: &mut Option<Format>, text: &str) -> Result<Option<Capture>, InvalidLine> {
    if text.is_empty() {
        return Ok(None);
    }
    if text.get(1..).is_some_and(|rest| rest.starts_with("CDX")) {
        let found = Format::sniff_line(text)?;
        if found.header().is_some() {
            *format = Some(found);
            return Ok(None);
        }
    }
    let format = match format {
        Some(format) => format,
        None => format.insert(Format::sniff_line(text)?),
    };
    if *format == Format::Cdxj && text.starts_with('!') {
        return Ok(None);
    }
    format.read_line(text).map(Some)
}

impl<R: BufRead> Iterator for CdxReader<R> {
    type Item = Result<Capture, ReadLineError>;

    fn next(&mut self) -> Option<Self::Item> {
        let limit = self.lines.limit();
        while !self.ended {
            let line = match self.lines.next_line() {
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
            let text = match line.bytes.map(str::from_utf8) {
                Some(Ok(text)) => Ok(text),
                Some(Err(error)) => Err(InvalidLine::NotUtf8 {
                    at: error.valid_up_to(),
                }),
                None => Err(InvalidLine::TooLong { limit }),
            };
            match text.and_then(|text| read(&mut self.format, text)) {
                Ok(Some(capture)) => return Some(Ok(capture)),
                Ok(None) => {}
                Err(why) => {
                    let number = line.number;
                    let offset = line.offset;
                    let line = BadLine {
                        number,
                        offset,
                        why,
                    };
                    return Some(Err(line.into()));
                }
            }
        }
        None
    }
}
