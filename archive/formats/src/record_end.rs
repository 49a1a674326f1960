//! The end of a record, found in its bytes as they are pushed.
//!
//! Owns the least that must be understood to find the end of a gzip member, of a plain WARC record and of a plain ARC
//! record. A member is decompressed into a buffer that is thrown away: a large one costs time, not memory. Lines may
//! end in CRLF or in LF alone, as those of files in the field do.
//!
//! Not promised: that the record is valid in any other respect.

mod member;

use crate::arc::{self, has_usual_scheme};
use crate::gzip;
use crate::warc::header::{Header, may_begin, read_number};

use member::Member;

/// The longest header of a plain WARC record that is read, in bytes. The header of a gzip member may have twice as
/// many, and the line before an ARC record a quarter of them, as for the reader of [`warc`](crate::warc).
pub const LONGEST_HEADER: usize = 64 * 1024;

/// The name of the format in the first line of a WARC record.
const WARC: &[u8] = b"WARC/";

/// The bytes that tell a gzip member from any other record.
const GZIP: &[u8] = &[gzip::MAGIC[0], gzip::MAGIC[1]];

/// The kind of a record, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// A gzip member, with any content.
    Gzip,
    /// A WARC record that is not compressed.
    Warc,
    /// An ARC record that is not compressed.
    Arc,
}

impl RecordKind {
    /// Returns the kind in one word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Warc => "warc",
            Self::Arc => "arc",
        }
    }
}

/// The reason why no end of a record was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRecord {
    /// The bytes do not begin a record.
    #[error("no WARC record, ARC record or gzip member begins here; there is {0}")]
    Nothing(String),
    /// A record begins, and is broken.
    #[error("a {} record begins here, but {what}", .kind.word())]
    Broken {
        /// The kind of the record that begins.
        kind: RecordKind,
        /// The fault of the record.
        what: String,
    },
}

/// The part of the pushed bytes that belongs to the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordProgress {
    /// All pushed bytes, and more may come.
    Continues,
    /// The first bytes, of this number: the record ends behind them.
    Ends(usize),
}

/// A search for the end of a record, which takes the bytes of the record and of what follows it in pieces of any
/// length.
///
/// ```
/// use archive_formats::record_end::{RecordEnd, RecordKind, RecordProgress};
///
/// let mut search = RecordEnd::new();
/// let record = b"WARC/1.1\r\nContent-Length: 5\r\n\r\nhello\r\n\r\n";
/// assert_eq!(search.push(&record[..20])?, RecordProgress::Continues);
/// assert_eq!(search.kind(), Some(RecordKind::Warc));
///
/// let rest = [&record[20..], b"WARC/1.1\r\n"].concat();
/// assert_eq!(search.push(&rest)?, RecordProgress::Ends(record.len() - 20));
/// # Ok::<(), archive_formats::record_end::NoRecord>(())
/// ```
#[derive(Debug)]
pub struct RecordEnd {
    state: RecordEndState,
}

#[derive(Debug)]
enum RecordEndState {
    /// In the header of a plain record: its bytes so far.
    Header(Vec<u8>),
    Member(Box<Member>),
    /// In the block: the kind of the record, and the number of bytes that are still to come.
    Block(RecordKind, u64),
    LineEnds(LineEnds),
}

/// The line ends behind a block: at least one and at most `most`.
#[derive(Clone, Copy, Debug)]
struct LineEnds {
    kind: RecordKind,
    most: u8,
    found: u8,
    /// Whether the line ends may be missing: the block has ended a line itself, as the first of many ARC files does.
    may_miss: bool,
    /// Whether a CR has come, and its LF has not.
    is_after_cr: bool,
}

impl Default for RecordEnd {
    fn default() -> Self {
        Self::new()
    }
}

impl RecordEnd {
    /// Begins a search at the first byte of a record.
    pub const fn new() -> Self {
        Self {
            state: RecordEndState::Header(Vec::new()),
        }
    }

    /// Returns the kind of the record, once its first bytes were pushed.
    pub fn kind(&self) -> Option<RecordKind> {
        match &self.state {
            RecordEndState::Header(header) => is_warc(header).then_some(RecordKind::Warc),
            RecordEndState::Member(_) => Some(RecordKind::Gzip),
            RecordEndState::Block(kind, _) => Some(*kind),
            RecordEndState::LineEnds(line_ends) => Some(line_ends.kind),
        }
    }

    /// Returns the most bytes that are still to come, where the record has its length.
    pub fn remaining(&self) -> Option<u64> {
        match &self.state {
            RecordEndState::Header(_) | RecordEndState::Member(_) => None,
            RecordEndState::Block(_, left) => Some(left.saturating_add(4)),
            RecordEndState::LineEnds(_) => Some(4),
        }
    }

    /// Takes the next bytes. After an end or an error, nothing may be pushed any more.
    ///
    /// # Errors
    ///
    /// Fails if the bytes do not begin a record, or begin one that is broken.
    pub fn push(&mut self, bytes: &[u8]) -> Result<RecordProgress, NoRecord> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let progress = match &mut self.state {
                RecordEndState::Header(header) => {
                    let before = header.len();
                    let room = LONGEST_HEADER.saturating_sub(before).min(rest.len());
                    header.extend_from_slice(rest.get(..room).unwrap_or_default());
                    let used = if let Some((next, length)) = begin(header, before)? {
                        self.state = next;
                        length.saturating_sub(before)
                    } else if header.len() >= LONGEST_HEADER {
                        return Err(endless(header));
                    } else {
                        room
                    };
                    rest = rest.get(used..).unwrap_or_default();
                    continue;
                }
                RecordEndState::Block(kind, left) => {
                    let used = usize::try_from(*left).unwrap_or(usize::MAX).min(rest.len());
                    *left -= used as u64;
                    if *left == 0 {
                        let last = rest.get(used.saturating_sub(1));
                        let line_ends = LineEnds::after(*kind, last == Some(&b'\n'));
                        self.state = RecordEndState::LineEnds(line_ends);
                    }
                    rest = rest.get(used..).unwrap_or_default();
                    continue;
                }
                RecordEndState::Member(member) => member
                    .push(rest)
                    .map_err(|what| broken(RecordKind::Gzip, what))?,
                RecordEndState::LineEnds(line_ends) => line_ends.push(rest)?,
            };
            return Ok(match progress {
                RecordProgress::Continues => RecordProgress::Continues,
                RecordProgress::Ends(used) => RecordProgress::Ends(bytes.len() - rest.len() + used),
            });
        }
        Ok(RecordProgress::Continues)
    }

    /// Ends the search at the end of the file. Many files lack the line ends after their last record.
    ///
    /// # Errors
    ///
    /// Fails if the record cannot end here.
    pub fn end_of_file(&self) -> Result<(), NoRecord> {
        let (kind, what) = match &self.state {
            RecordEndState::Header(header) if is_warc(header) => (
                RecordKind::Warc,
                "the file ends within its header".to_owned(),
            ),
            RecordEndState::Header(header) => return Err(NoRecord::Nothing(excerpt(header))),
            RecordEndState::Member(_) => (
                RecordKind::Gzip,
                "the file ends before the member does".to_owned(),
            ),
            RecordEndState::Block(kind, left) => (
                *kind,
                format!("the file ends {left} bytes before the record does"),
            ),
            RecordEndState::LineEnds(LineEnds {
                is_after_cr: true,
                kind,
                ..
            }) => (*kind, "the file ends between CR and LF".to_owned()),
            RecordEndState::LineEnds(_) => return Ok(()),
        };
        Err(broken(kind, what))
    }
}

/// Returns the state behind the header in `bytes`, and the length of the header; `None` if the header continues. The
/// first `before` bytes were searched before.
fn begin(bytes: &[u8], before: usize) -> Result<Option<(RecordEndState, usize)>, NoRecord> {
    if bytes.starts_with(GZIP) {
        let mut member = Box::new(Member::new());
        member
            .push(bytes.get(..before).unwrap_or_default())
            .map_err(|what| broken(RecordKind::Gzip, what))?;
        return Ok(Some((RecordEndState::Member(member), 0)));
    }
    if may_begin(bytes) {
        let Some(length) = header_length(bytes, before) else {
            return Ok(None);
        };
        let left = warc_length(bytes.get(..length).unwrap_or_default())?;
        return Ok(Some((block(RecordKind::Warc, left), length)));
    }
    if GZIP.starts_with(bytes) {
        return Ok(None);
    }
    // The bytes that were searched before are text without a line end. A line has no other bytes, so that a file of
    // noise is not read any further.
    let from = if before < GZIP.len() { 0 } else { before };
    let more = bytes.get(from..).unwrap_or_default();
    let end = memchr::memchr(b'\n', more).map(|at| from + at);
    let line = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
    let is_text = |byte: &u8| *byte == b'\t' || *byte == b'\r' || *byte >= b' ';
    let is_too_long = line.strip_suffix(b"\r").unwrap_or(line).len() > arc::LONGEST_LINE;
    if is_too_long || !line.iter().skip(from).all(is_text) {
        return Err(NoRecord::Nothing(excerpt(bytes)));
    }
    let Some(length) = end else {
        return Ok(None);
    };
    let left = arc_length(line).ok_or_else(|| NoRecord::Nothing(excerpt(bytes)))?;
    Ok(Some((block(RecordKind::Arc, left), length + 1)))
}

fn block(kind: RecordKind, left: u64) -> RecordEndState {
    if left == 0 {
        RecordEndState::LineEnds(LineEnds::after(kind, false))
    } else {
        RecordEndState::Block(kind, left)
    }
}

/// Returns whether a WARC record begins with `header`.
fn is_warc(header: &[u8]) -> bool {
    header.len() >= WARC.len() && may_begin(header)
}

fn broken(kind: RecordKind, what: String) -> NoRecord {
    NoRecord::Broken { kind, what }
}

fn endless(header: &[u8]) -> NoRecord {
    if is_warc(header) {
        let what = format!("its header does not end within {LONGEST_HEADER} bytes");
        return broken(RecordKind::Warc, what);
    }
    NoRecord::Nothing(excerpt(header))
}

/// Returns the length of a header that an empty line ends. The first `before` bytes do not have one.
fn header_length(bytes: &[u8], before: usize) -> Option<usize> {
    let from = before.saturating_sub(3);
    let mut ends = memchr::memchr_iter(b'\n', bytes.get(from..)?).map(|at| from + at);
    ends.find_map(|at| match bytes.get(at + 1..)? {
        [b'\n', ..] => Some(at + 2),
        [b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    })
}

/// Returns the length of the block of a WARC record, from its header.
fn warc_length(header: &[u8]) -> Result<u64, NoRecord> {
    let header = Header::parse(header);
    let mut found = None;
    for field in header
        .fields()
        .filter(|field| field.is_named("Content-Length"))
    {
        let length = read_number(field.raw).ok_or_else(|| {
            let what = format!("its Content-Length is {}", excerpt(field.raw));
            broken(RecordKind::Warc, what)
        })?;
        if found.is_some_and(|other| other != length) {
            let what = "it has two Content-Lengths".to_owned();
            return Err(broken(RecordKind::Warc, what));
        }
        found = Some(length);
    }
    found.ok_or_else(|| broken(RecordKind::Warc, "it has no Content-Length".to_owned()))
}

/// Returns the length of the block of an ARC record, from its first line: the last of at least five fields, one of
/// which is a time. The address at the beginning may have spaces in it. A line whose address lacks the beginning of its
/// scheme is not one: the offset is within the line.
fn arc_length(line: &[u8]) -> Option<u64> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let (last, others) = fields.split_last()?;
    let is_time = |field: &&[u8]| field.len() == 14 && read_number(field).is_some();
    let has_time = others.iter().skip(2).any(is_time);
    if others.len() < 4 || !has_usual_scheme(line) || !has_time {
        return None;
    }
    read_number(last)
}

/// Returns the first bytes, fit for a terminal.
fn excerpt(bytes: &[u8]) -> String {
    const MOST: usize = 24;
    if bytes.is_empty() {
        return "nothing".to_owned();
    }
    let begin = bytes.get(..MOST).unwrap_or(bytes);
    let more = if bytes.len() > MOST { "…" } else { "" };
    format!("\"{}{more}\"", begin.escape_ascii())
}

impl LineEnds {
    const fn after(kind: RecordKind, ends_line: bool) -> Self {
        let (most, may_miss) = match kind {
            RecordKind::Warc => (2, false),
            RecordKind::Arc | RecordKind::Gzip => (1, ends_line),
        };
        Self {
            kind,
            most,
            found: 0,
            may_miss,
            is_after_cr: false,
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<RecordProgress, NoRecord> {
        for (at, byte) in bytes.iter().enumerate() {
            match (self.is_after_cr, byte) {
                (false, b'\r') => self.is_after_cr = true,
                (_, b'\n') => {
                    self.is_after_cr = false;
                    self.found += 1;
                    if self.found == self.most {
                        return Ok(RecordProgress::Ends(at + 1));
                    }
                }
                (false, _) if self.found > 0 || self.may_miss => {
                    return Ok(RecordProgress::Ends(at));
                }
                _ => {
                    let there = excerpt(bytes.get(at..).unwrap_or_default());
                    let what = format!(
                        "{there} follows its block where a line has to end: its length is wrong"
                    );
                    return Err(broken(self.kind, what));
                }
            }
        }
        Ok(RecordProgress::Continues)
    }
}

#[cfg(test)]
mod tests;
