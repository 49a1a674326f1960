//! Where does the record end that begins here? Pure: bytes go in as they come, the answer comes out.
//!
//! Owns the least that must be understood for that of a gzip member, of a plain WARC record and of a plain ARC record.
//! A member is inflated into a buffer that is thrown away: what it grows to costs time and never memory. Lines may end in
//! CRLF or in LF alone, as files of the field do.
//!
//! Not promised: that the record is a good one in any other respect.

mod gzip;

use crate::arc::has_usual_scheme;

use gzip::Member;

/// The longest header that is read, in bytes.
pub const LONGEST_HEADER: usize = 64 * 1024;

/// How a WARC record begins.
const WARC: &[u8] = b"WARC/";

/// What kind of record begins here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// A gzip member, whatever is in it.
    Gzip,
    /// A WARC record, not compressed.
    Warc,
    /// An ARC record, not compressed.
    Arc,
}

impl RecordKind {
    /// In one word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Warc => "warc",
            Self::Arc => "arc",
        }
    }
}

/// Why there is no end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRecord {
    /// Something else is here.
    #[error("no WARC record, ARC record or gzip member begins here; there is {0}")]
    Nothing(String),
    /// A record begins, and is broken.
    #[error("a {} record begins here, but {what}", .kind.word())]
    Broken {
        /// What begins.
        kind: RecordKind,
        /// What is wrong with it.
        what: String,
    },
}

/// What the bytes that were pushed say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// All of them are the record's, and more may come.
    More,
    /// So many of them are the record's, and it ends there.
    End(usize),
}

/// The search for the end of one record.
#[derive(Debug)]
pub struct RecordEnd {
    state: State,
}

#[derive(Debug)]
enum State {
    /// The header, as far as it has come.
    Header(Vec<u8>),
    Member(Box<Member>),
    /// So many bytes of the block are to come.
    Block(RecordKind, u64),
    /// The line ends after the block.
    Lines(Lines),
}

/// The line ends after a block: at least one and at most `most`.
#[derive(Clone, Copy, Debug)]
struct Lines {
    kind: RecordKind,
    most: u8,
    found: u8,
    /// The block has ended a line itself, as the first of many ARC files does.
    may_miss: bool,
    /// A CR has come, and its LF has not.
    half: bool,
}

impl Default for RecordEnd {
    fn default() -> Self {
        Self::new()
    }
}

impl RecordEnd {
    /// At the first byte.
    pub const fn new() -> Self {
        Self {
            state: State::Header(Vec::new()),
        }
    }

    /// What the first bytes say it is.
    pub fn kind(&self) -> Option<RecordKind> {
        match &self.state {
            State::Header(header) => is_warc(header).then_some(RecordKind::Warc),
            State::Member(_) => Some(RecordKind::Gzip),
            State::Block(kind, _) => Some(*kind),
            State::Lines(lines) => Some(lines.kind),
        }
    }

    /// How many bytes are still to come at most, where the record says so.
    pub fn left(&self) -> Option<u64> {
        match &self.state {
            State::Header(_) | State::Member(_) => None,
            State::Block(_, left) => Some(left.saturating_add(4)),
            State::Lines(_) => Some(4),
        }
    }

    /// Takes the next bytes. After an end or an error nothing must be pushed any more.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Seen, NoRecord> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let used = match &mut self.state {
                State::Header(header) => {
                    let before = header.len();
                    let room = LONGEST_HEADER.saturating_sub(before).min(rest.len());
                    header.extend_from_slice(rest.get(..room).unwrap_or_default());
                    if let Some((next, length)) = begin(header, before)? {
                        self.state = next;
                        length.saturating_sub(before)
                    } else if header.len() >= LONGEST_HEADER {
                        return Err(endless(header));
                    } else {
                        room
                    }
                }
                State::Member(member) => match member.push(rest)? {
                    Seen::More => rest.len(),
                    Seen::End(used) => return Ok(Seen::End(bytes.len() - rest.len() + used)),
                },
                State::Block(kind, left) => {
                    let used = usize::try_from(*left).unwrap_or(usize::MAX).min(rest.len());
                    *left -= used as u64;
                    if *left == 0 {
                        let last = rest.get(used.saturating_sub(1));
                        self.state = State::Lines(Lines::after(*kind, last == Some(&b'\n')));
                    }
                    used
                }
                State::Lines(lines) => match lines.push(rest)? {
                    Seen::More => rest.len(),
                    Seen::End(used) => return Ok(Seen::End(bytes.len() - rest.len() + used)),
                },
            };
            rest = rest.get(used..).unwrap_or_default();
        }
        Ok(Seen::More)
    }

    /// The file ends here: whether the record may, too. The line ends after the last record are missing in many files.
    pub fn end_of_file(&self) -> Result<(), NoRecord> {
        let broken = |kind, what: &str| {
            let what = what.to_owned();
            Err(NoRecord::Broken { kind, what })
        };
        match &self.state {
            State::Header(header) if is_warc(header) => {
                broken(RecordKind::Warc, "the file ends within its header")
            }
            State::Header(header) => Err(NoRecord::Nothing(shown(header))),
            State::Member(_) => broken(RecordKind::Gzip, "the file ends before the member does"),
            State::Block(kind, left) => broken(
                *kind,
                &format!("the file ends {left} bytes before the record does"),
            ),
            State::Lines(Lines {
                half: true, kind, ..
            }) => broken(*kind, "the file ends between CR and LF"),
            State::Lines(_) => Ok(()),
        }
    }
}

/// What comes after the header in `bytes`, and how long the header is; none: it goes on. `before`: so many bytes were
/// looked at before.
fn begin(bytes: &[u8], before: usize) -> Result<Option<(State, usize)>, NoRecord> {
    const GZIP: &[u8] = &[0x1f, 0x8b];
    let may_be = |magic: &[u8]| {
        let known = bytes.len().min(magic.len());
        bytes
            .get(..known)
            .unwrap_or_default()
            .eq_ignore_ascii_case(magic.get(..known).unwrap_or_default())
    };
    if bytes.starts_with(GZIP) {
        let mut member = Box::<Member>::default();
        member.push(bytes.get(..before).unwrap_or_default())?;
        return Ok(Some((State::Member(member), 0)));
    }
    if may_be(WARC) {
        let Some(length) = header_length(bytes, before) else {
            return Ok(None);
        };
        let left = warc_length(bytes.get(..length).unwrap_or_default())?;
        return Ok(Some((block(RecordKind::Warc, left), length)));
    }
    if may_be(GZIP) {
        return Ok(None);
    }
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let line = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
    // No line of text has others; a file of noise needs not be read any further.
    let is_text = |byte: &u8| *byte == b'\t' || *byte == b'\r' || *byte >= b' ';
    if !line.iter().all(is_text) {
        return Err(NoRecord::Nothing(shown(bytes)));
    }
    let Some(length) = end else {
        return Ok(None);
    };
    let left = arc_length(line).ok_or_else(|| NoRecord::Nothing(shown(bytes)))?;
    Ok(Some((block(RecordKind::Arc, left), length + 1)))
}

fn block(kind: RecordKind, left: u64) -> State {
    if left == 0 {
        State::Lines(Lines::after(kind, false))
    } else {
        State::Block(kind, left)
    }
}

/// Whether a WARC record begins here; its name may be in any case.
fn is_warc(header: &[u8]) -> bool {
    header
        .get(..WARC.len())
        .is_some_and(|name| name.eq_ignore_ascii_case(WARC))
}

fn endless(header: &[u8]) -> NoRecord {
    if is_warc(header) {
        return NoRecord::Broken {
            kind: RecordKind::Warc,
            what: format!("its header does not end within {LONGEST_HEADER} bytes"),
        };
    }
    NoRecord::Nothing(shown(header))
}

/// How long a header is that an empty line ends.
fn header_length(bytes: &[u8], before: usize) -> Option<usize> {
    let from = before.saturating_sub(3);
    let ends = bytes.iter().enumerate().skip(from);
    let mut ends = ends.filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    ends.find_map(|at| match bytes.get(at + 1..)? {
        [b'\n', ..] => Some(at + 2),
        [b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    })
}

/// The length of the block of a WARC record, from its header.
fn warc_length(header: &[u8]) -> Result<u64, NoRecord> {
    let broken = |what: String| NoRecord::Broken {
        kind: RecordKind::Warc,
        what,
    };
    let mut found = None;
    for line in header.split(|byte| *byte == b'\n') {
        let Some(at) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let (name, value) = line.split_at(at);
        if !name
            .trim_ascii_end()
            .eq_ignore_ascii_case(b"content-length")
        {
            continue;
        }
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        let length = number(value)
            .ok_or_else(|| broken(format!("its Content-Length is {}", shown(value))))?;
        if found.is_some_and(|other| other != length) {
            return Err(broken("it has two Content-Lengths".to_owned()));
        }
        found = Some(length);
    }
    found.ok_or_else(|| broken("it has no Content-Length".to_owned()))
}

/// The length of the block of an ARC record, from its first line: the last of at least five fields, one of which is a
/// time. The address at the beginning may have spaces in it; it has a scheme of which nothing is missing, or the offset
/// is within the line.
fn arc_length(line: &[u8]) -> Option<u64> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let (last, others) = fields.split_last()?;
    let is_time = |field: &&[u8]| field.len() == 14 && number(field).is_some();
    let has_time = others.iter().skip(2).any(is_time);
    if others.len() < 4 || !has_usual_scheme(line) || !has_time {
        return None;
    }
    number(last)
}

/// A number in decimal digits, and nothing else.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(digits).ok()?.parse().ok()
}

/// The beginning of what is there, fit for a terminal.
fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 24;
    if bytes.is_empty() {
        return "nothing".to_owned();
    }
    let begin = bytes.get(..MOST).unwrap_or(bytes);
    let more = if bytes.len() > MOST { "…" } else { "" };
    format!("\"{}{more}\"", begin.escape_ascii())
}

impl Lines {
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
            half: false,
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<Seen, NoRecord> {
        for (at, byte) in bytes.iter().enumerate() {
            match (self.half, byte) {
                (false, b'\r') => self.half = true,
                (_, b'\n') => {
                    self.half = false;
                    self.found += 1;
                    if self.found == self.most {
                        return Ok(Seen::End(at + 1));
                    }
                }
                (false, _) if self.found > 0 || self.may_miss => return Ok(Seen::End(at)),
                _ => {
                    return Err(NoRecord::Broken {
                        kind: self.kind,
                        what: format!(
                            "after as many bytes as it says comes {}, and no end of a line: its length is wrong",
                            shown(bytes.get(at..).unwrap_or_default())
                        ),
                    });
                }
            }
        }
        Ok(Seen::More)
    }
}

#[cfg(test)]
mod tests;
