//! A place in the order of an index, behind which an answer continues.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use thiserror::Error;

use super::{LINE_FIELD, SET_FIELD};
use crate::cdx::Capture;
use crate::date::Stamp;

/// The longest text of a cursor: a key of a very long URL, and a file name.
const MAX_TEXT: usize = 256 * 1024;

/// The place of a capture. An answer resumes with the first capture behind it.
///
/// It is made from a capture of an answer, and holds nothing that only the index knows; so it is good for any index
/// with the same captures. No two captures of an answer have the same one: one record may be named by several sets, and
/// by several lines that say no place, so the set and the line are in it. When there is no such capture any more, the
/// index resumes with the first capture of that key and second: some come twice, and no capture is left out.
///
/// Its text is made of letters, digits, `-` and `_`, so that it passes through any number of rounds of URL encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The key of the capture.
    pub key: String,
    /// The time of the capture.
    pub timestamp: Stamp,
    /// The file of the record; empty for a capture without one.
    pub file: String,
    /// The offset of the record; 0 for a capture without one.
    pub offset: u64,
    /// The source that lists the capture; absent for one of a file of the archive, whose record has a place.
    pub source: Option<Box<CursorSource>>,
}

/// The part of a cursor that distinguishes captures of one record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CursorSource {
    /// The set that the capture was imported with ([`SET_FIELD`]); empty for a capture of a file of the archive.
    pub set: String,
    /// The line that lists the capture ([`LINE_FIELD`]); empty for a capture whose record has a place.
    pub line: String,
}

/// The error of a text that no cursor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the resume key is not one of this server; begin again without it")]
pub struct InvalidCursor;

impl Cursor {
    /// Makes the cursor of the place of a capture.
    pub fn from_capture(capture: &Capture) -> Self {
        let extra = |name| capture.extra(name).unwrap_or_default().to_owned();
        Self {
            key: capture.key.clone(),
            timestamp: capture.timestamp,
            file: capture.file.clone().unwrap_or_default(),
            offset: capture.offset.unwrap_or_default(),
            source: CursorSource {
                set: extra(SET_FIELD),
                line: extra(LINE_FIELD),
            }
            .if_any(),
        }
    }
}

impl CursorSource {
    /// Returns the source, unless both its parts are empty.
    pub fn if_any(self) -> Option<Box<Self>> {
        (!self.set.is_empty() || !self.line.is_empty()).then(|| Box::new(self))
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Set, line and file come last, with the lengths of the first two: they may have blanks. Keys have no unescaped
        // blanks.
        let source = self.source.as_deref();
        let (set, line) = source.map_or(("", ""), |source| (&source.set, &source.line));
        let text = format!(
            "{} {} {} {} {} {set}{line}{}",
            self.key,
            self.timestamp,
            self.offset,
            set.len(),
            line.len(),
            self.file
        );
        f.write_str(&URL_SAFE_NO_PAD.encode(text))
    }
}

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        if text.len() > MAX_TEXT {
            return Err(InvalidCursor);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok().ok_or(InvalidCursor)?;
        let text = String::from_utf8(bytes).ok().ok_or(InvalidCursor)?;
        let mut parts = text.splitn(6, ' ');
        let mut next = || parts.next().ok_or(InvalidCursor);
        let key = next()?;
        let timestamp = next()?;
        let offset = number(next()?)?;
        let set = length(next()?)?;
        let line = length(next()?)?;
        let rest = next()?;
        let (set, rest) = rest.split_at_checked(set).ok_or(InvalidCursor)?;
        let (line, file) = rest.split_at_checked(line).ok_or(InvalidCursor)?;
        Ok(Self {
            key: key.to_owned(),
            timestamp: timestamp.parse().ok().ok_or(InvalidCursor)?,
            file: file.to_owned(),
            offset,
            source: CursorSource {
                set: set.to_owned(),
                line: line.to_owned(),
            }
            .if_any(),
        })
    }
}

/// Reads a number of digits alone.
fn number(text: &str) -> Result<u64, InvalidCursor> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_digits);
    number.ok_or(InvalidCursor)
}

fn length(text: &str) -> Result<usize, InvalidCursor> {
    usize::try_from(number(text)?).ok().ok_or(InvalidCursor)
}
