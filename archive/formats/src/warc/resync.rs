//! The beginning of a record that does not begin where it should.
//!
//! Owns how a beginning is distinguished from content. Reads nothing itself: it takes bytes, and returns how many of
//! them are no beginning.

use crate::arc::{self, Rigour};
use crate::warc::header::{is_version_line, may_begin};

/// The longest line with a version that is accepted.
const LONGEST_VERSION: usize = 64;

/// The formats to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Not known yet: look for both.
    Unknown,
    Warc,
    Arc,
}

/// The beginning of a record, as far as a search has found it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// A record begins at this offset.
    At(usize),
    /// No record begins within `safe` bytes. The next one begins a line, or does not.
    None { safe: usize, line_start: bool },
}

/// The answer whether a record begins at a place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
    /// More bytes are needed to tell.
    Undecided,
}

/// Looks for the next line that begins a record.
pub(crate) fn find_beginning(bytes: &[u8], line_start: bool, dialect: Dialect) -> Beginning {
    let mut at = 0;
    let mut is_line = line_start;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        if is_line {
            match begins_record(rest, dialect) {
                Answer::Yes => return Beginning::At(at),
                Answer::Undecided => {
                    return Beginning::None {
                        safe: at,
                        line_start: true,
                    };
                }
                Answer::No => {}
            }
        }
        match memchr::memchr(b'\n', rest) {
            Some(length) => {
                at += length + 1;
                is_line = true;
            }
            None => {
                return Beginning::None {
                    safe: bytes.len(),
                    line_start: false,
                };
            }
        }
    }
    Beginning::None {
        safe: at,
        line_start: is_line,
    }
}

/// Returns whether a record is known to begin with these bytes.
pub(crate) fn is_start(bytes: &[u8], dialect: Dialect) -> bool {
    begins_record(bytes, dialect) == Answer::Yes
}

/// Returns whether a record begins with these bytes, if they are enough to tell.
pub(crate) fn begins_record(bytes: &[u8], dialect: Dialect) -> Answer {
    let Some(first) = bytes.first() else {
        return Answer::Undecided;
    };
    if !first.is_ascii_alphabetic() {
        return Answer::No;
    }
    if dialect != Dialect::Arc && may_begin(bytes) {
        return match line(bytes, LONGEST_VERSION) {
            Ok(line) if is_version_line(line) => Answer::Yes,
            Ok(_) => Answer::No,
            Err(answer) => answer,
        };
    }
    if dialect == Dialect::Warc {
        return Answer::No;
    }
    match line(bytes, arc::LONGEST_LINE) {
        Ok(line) if arc::ArcLine::parse_as(line, Rigour::Anywhere).is_some() => Answer::Yes,
        Ok(_) => Answer::No,
        Err(answer) => answer,
    }
}

fn line(bytes: &[u8], limit: usize) -> Result<&[u8], Answer> {
    let window = bytes.get(..limit).unwrap_or(bytes);
    match memchr::memchr(b'\n', window) {
        Some(length) => Ok(window.get(..length).unwrap_or_default()),
        None if bytes.len() < limit => Err(Answer::Undecided),
        None => Err(Answer::No),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a version in the middle of a line begins a record, or a beginning that is split over two reads is
    /// skipped.
    #[test]
    fn record_begins_at_start_of_line() {
        let bytes = b"xWARC/1.0\nWARC/x\nWARC/1.0 y\nWARC/1.1\r\n";
        let at = 28;
        assert_eq!(
            find_beginning(bytes, false, Dialect::Unknown),
            Beginning::At(at)
        );
        assert_eq!(
            find_beginning(&bytes[1..], true, Dialect::Warc),
            Beginning::At(0)
        );
        // For any piece, the safe bytes never go beyond the beginning, and it is found in the end.
        for end in 0..=bytes.len() {
            let found = match find_beginning(&bytes[..end], false, Dialect::Warc) {
                Beginning::At(found) => Some(found),
                Beginning::None { safe, line_start } => {
                    match find_beginning(&bytes[safe..], line_start, Dialect::Warc) {
                        Beginning::At(found) => Some(safe + found),
                        Beginning::None { .. } => None,
                    }
                }
            };
            assert_eq!(found, Some(at), "{end}");
        }
    }

    /// Fails if a line in the block of a WARC record is taken for the beginning of an ARC record.
    #[test]
    fn arc_lines_are_ignored_in_warc_file() {
        let line = b"\nhttp://a/ 1.2.3.4 20080430204825 text/html 12\n";
        assert_eq!(find_beginning(line, false, Dialect::Arc), Beginning::At(1));
        assert!(matches!(
            find_beginning(line, false, Dialect::Warc),
            Beginning::None { .. }
        ));
    }
}
