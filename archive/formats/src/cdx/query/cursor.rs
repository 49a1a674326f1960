//! A place in the order of an index, behind which an answer goes on.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use thiserror::Error;

use crate::cdx::Capture;
use crate::date::Stamp;

/// The longest text of a cursor: a key of a very long URL, and a file name.
const MAX_TEXT: usize = 256 * 1024;

/// The place of one capture. An answer resumes with the first capture behind it.
///
/// It is made from a capture, and holds nothing that only the index knows; so it is good for any index with the same
/// captures. When its file is unknown by then, the index resumes with the first capture of that key and second: some come
/// twice, and no capture is left out.
///
/// Its text is made of letters, digits, `-` and `_`, so that it passes through any number of rounds of URL encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The key.
    pub key: String,
    /// The time.
    pub timestamp: Stamp,
    /// The file; empty for a capture without one.
    pub file: String,
    /// The offset; 0 for a capture without one.
    pub offset: u64,
}

/// A text that no cursor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the resume key is not one of this server; begin again without it")]
pub struct InvalidCursor;

impl Cursor {
    /// The place of a capture.
    pub fn of(capture: &Capture) -> Self {
        Self {
            key: capture.key.clone(),
            timestamp: capture.timestamp,
            file: capture.file.clone().unwrap_or_default(),
            offset: capture.offset.unwrap_or_default(),
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The file comes last: it may have blanks. Keys have none that were not escaped.
        let text = format!(
            "{} {} {} {}",
            self.key, self.timestamp, self.offset, self.file
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
        let mut parts = text.splitn(4, ' ');
        let mut next = || parts.next().ok_or(InvalidCursor);
        let (key, timestamp, offset, file) = (next()?, next()?, next()?, next()?);
        let digits = offset.bytes().all(|b| b.is_ascii_digit());
        let offset = offset.parse().ok().filter(|_| digits);
        Ok(Self {
            key: key.to_owned(),
            timestamp: timestamp.parse().ok().ok_or(InvalidCursor)?,
            file: file.to_owned(),
            offset: offset.ok_or(InvalidCursor)?,
        })
    }
}
