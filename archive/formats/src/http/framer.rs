//! The end of a response on the wire (RFC 9112 §6.3), decided while its bytes arrive.
//!
//! Owns the border between one message and the next, and which bytes of the body are payload: the body without its
//! transfer coding. Takes whatever servers send: no status line at all (HTTP/0.9), `ICY`, lines that end with LF, wrong
//! and contradicting lengths, a body that is not chunked although its head says so. Knows no socket and no clock; the
//! reader of the socket limits time and the length of the body. Bytes that follow the end are not taken.
//!
//! ```
//! use archive_formats::http::{ResponseEnding, ResponsePart, ResponseFramer};
//!
//! let wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nHTTP/1.1";
//! let mut framer = ResponseFramer::new(false, 1 << 16);
//! let mut at = 0;
//! let mut payload = Vec::new();
//! while !framer.is_done() {
//!     let (count, part) = framer.push(&wire[at..]);
//!     if part == ResponsePart::Payload {
//!         payload.extend_from_slice(&wire[at..at + count]);
//!     }
//!     at += count;
//! }
//! assert_eq!((payload.as_slice(), &wire[at..]), (&b"hello"[..], &b"HTTP/1.1"[..]));
//! assert_eq!((framer.ending(), framer.is_reusable()), (ResponseEnding::Complete, true));
//! ```

use super::chunked::{ChunkEnd, ChunkPart, ChunkScanner};
use super::{BodyError, Head, HeadError, Start};

/// The most interim responses before the final one: browsers and servers know of at most a few.
const MOST_INTERIM: usize = 16;

/// The role of bytes in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponsePart {
    /// Bytes of a head, which the framer keeps: [`ResponseFramer::head`], [`ResponseFramer::interim`].
    Head,
    /// Bytes of the body without its transfer coding.
    Payload,
    /// Sizes, line ends and trailers of chunks.
    Framing,
    /// The body has no chunks after all: all bytes behind the head are payload, including those that were returned as
    /// framing. [`ResponseFramer::unframed`] has them, and these bytes as the last of them.
    Unframed,
    /// Bytes of the body behind a damaged chunk: it is not known which of them are payload.
    Damaged,
}

/// The way in which a response ends if no byte follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseEnding {
    /// The response ends where its framing says, or with the connection if nothing says where.
    Complete,
    /// The response ends behind the last chunk, but before the empty line after it.
    NoEndOfTrailers,
    /// The response ends within what should be the size of the first chunk: all bytes behind the head are payload, and
    /// [`ResponseFramer::unframed`] has them.
    Unframed,
    /// The connection ends before the first byte.
    Nothing,
    /// The response ends within a head.
    CutHead,
    /// The head is longer than allowed, or comes after too many interim responses.
    HeadTooLong,
    /// The response ends within the body, of whose announced bytes some are missing.
    CutBody {
        /// The number of bytes that are missing.
        missing: u64,
    },
    /// The response ends within a chunk, or before the last one.
    CutChunks,
    /// The response ends with the connection, behind a damaged chunk.
    BadChunk,
}

/// The most line ends before a status line that are passed over.
const MOST_LEADING: usize = 64;

#[derive(Debug)]
enum FramerState {
    /// In the head of an interim or of the final response.
    Head,
    /// In the body, of which this number of bytes follow.
    Length(u64),
    /// In a body that continues until the connection ends.
    UntilClose,
    /// In a chunked body.
    Chunks(ChunkScanner),
    /// Behind damaged framing of chunks.
    Damaged,
    /// Behind the end of the response.
    Done,
    /// In a head that is longer than allowed; nothing more is taken.
    HeadTooLong,
}

/// Finds head, payload and end of one response in the bytes of a connection.
#[derive(Debug)]
pub struct ResponseFramer {
    state: FramerState,
    answers_head: bool,
    head_limit: usize,
    /// The bytes of the head that is being read, or of the final one.
    raw: Vec<u8>,
    /// The line ends before the first other byte: no part of a message that begins behind them (RFC 9112 §2.2).
    leading: Vec<u8>,
    /// Whether `raw` is known to begin with a status line.
    has_status_line: bool,
    /// The offset in `raw` of the line that is being read.
    line: usize,
    interim: Vec<Vec<u8>>,
    head: Option<Head>,
}

impl ResponseFramer {
    /// Makes a framer for the bytes of one response. `answers_head`: the request was a `HEAD`, so that no body follows
    /// whatever the head says. `head_limit`: the most bytes of one head.
    pub fn new(answers_head: bool, head_limit: usize) -> Self {
        Self {
            state: FramerState::Head,
            answers_head,
            head_limit,
            raw: Vec::new(),
            leading: Vec::new(),
            has_status_line: false,
            line: 0,
            interim: Vec::new(),
            head: None,
        }
    }

    /// Makes a framer for the body behind a head that did not come as text (HTTP/2): all bytes are payload, until the
    /// stream ends.
    pub fn behind_head(head: Head) -> Self {
        Self {
            state: FramerState::UntilClose,
            raw: head.raw().to_vec(),
            head: Some(head),
            ..Self::new(false, 0)
        }
    }

    /// Takes a prefix of the next bytes of the connection; returns their number and their role. Takes none of no bytes,
    /// and none once the response [is done](Self::is_done).
    pub fn push(&mut self, bytes: &[u8]) -> (usize, ResponsePart) {
        let (count, part) = match &mut self.state {
            FramerState::Head => return self.push_head(bytes),
            FramerState::Length(left) => {
                let count = usize::try_from(*left)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                *left = left.saturating_sub(count as u64);
                if *left == 0 {
                    self.state = FramerState::Done;
                }
                (count, ResponsePart::Payload)
            }
            FramerState::UntilClose => (bytes.len(), ResponsePart::Payload),
            FramerState::Chunks(scanner) => match scanner.scan_bytes(bytes) {
                Ok((count, ChunkPart::Framing)) => (count, ResponsePart::Framing),
                Ok((count, ChunkPart::Payload)) => (count, ResponsePart::Payload),
                Ok((count, ChunkPart::Unchunked)) => (count, ResponsePart::Unframed),
                Err(_) => {
                    self.state = FramerState::Damaged;
                    (bytes.len(), ResponsePart::Damaged)
                }
            },
            FramerState::Damaged => (bytes.len(), ResponsePart::Damaged),
            FramerState::Done | FramerState::HeadTooLong => (0, ResponsePart::Framing),
        };
        if matches!(&self.state, FramerState::Chunks(scanner) if scanner.is_done()) {
            self.state = FramerState::Done;
        }
        (count, part)
    }

    fn push_head(&mut self, bytes: &[u8]) -> (usize, ResponsePart) {
        if self.raw.is_empty() && !self.has_status_line {
            let is_line_end = |byte: &&u8| matches!(byte, b'\r' | b'\n');
            let count = bytes.iter().take_while(is_line_end).count();
            let count = count.min(MOST_LEADING - self.leading.len());
            if count > 0 {
                let line_ends = bytes.get(..count).unwrap_or_default();
                self.leading.extend_from_slice(line_ends);
                return (count, ResponsePart::Head);
            }
        }
        if !self.has_status_line {
            match begins_with_status_line(&self.raw, bytes) {
                Some(true) => self.has_status_line = true,
                Some(false) => {
                    // They are the begin of a page without a head.
                    self.raw.splice(..0, self.leading.drain(..));
                    self.raw.extend_from_slice(bytes);
                    self.state = FramerState::UntilClose;
                    return (bytes.len(), ResponsePart::Unframed);
                }
                None => {
                    self.raw.extend_from_slice(bytes);
                    return (bytes.len(), ResponsePart::Head);
                }
            }
        }
        let before = self.raw.len();
        let mut taken = 0;
        while let Some(end) = memchr::memchr(b'\n', bytes.get(taken..).unwrap_or_default()) {
            let next = taken + end + 1;
            if before + next > self.head_limit {
                break;
            }
            self.raw
                .extend_from_slice(bytes.get(taken..next).unwrap_or_default());
            taken = next;
            let line = self.raw.get(self.line..).unwrap_or_default();
            if matches!(line, b"\n" | b"\r\n") && self.line > 0 {
                self.end_head();
                return (taken, ResponsePart::Head);
            }
            self.line = self.raw.len();
        }
        let room = self.head_limit.saturating_sub(self.raw.len());
        let rest = bytes.get(taken..).unwrap_or_default();
        let kept = rest.get(..room).unwrap_or(rest);
        self.raw.extend_from_slice(kept);
        if kept.len() < rest.len() {
            self.state = FramerState::HeadTooLong;
        }
        (taken + kept.len(), ResponsePart::Head)
    }

    fn end_head(&mut self) {
        self.line = 0;
        self.has_status_line = false;
        let head = match Head::read_head(&mut self.raw.as_slice(), self.head_limit) {
            Ok(head) => head,
            // Neither error happens: the limit was kept, and memory does not fail.
            Err(HeadError::TooLarge { .. } | HeadError::Io(_)) => {
                self.state = FramerState::HeadTooLong;
                return;
            }
        };
        let status = head.status();
        if status.is_some_and(|code| (100..200).contains(&code) && code != 101) {
            self.interim.push(std::mem::take(&mut self.raw));
            if self.interim.len() > MOST_INTERIM {
                self.state = FramerState::HeadTooLong;
            }
            return;
        }
        self.state = if self.answers_head || matches!(status, Some(204 | 304)) {
            FramerState::Done
        } else if head.is_chunked() {
            FramerState::Chunks(ChunkScanner::new())
        } else if has_unknown_coding(&head) {
            FramerState::UntilClose
        } else {
            match agreed_length(&head) {
                Some(0) => FramerState::Done,
                Some(length) => FramerState::Length(length),
                None => FramerState::UntilClose,
            }
        };
        self.head = Some(head);
    }

    /// Returns whether nothing more belongs to the response, or nothing more is taken.
    pub fn is_done(&self) -> bool {
        matches!(self.state, FramerState::Done | FramerState::HeadTooLong)
    }

    /// Returns the head of the final response, once its empty line has come. `None` permanently if the connection
    /// begins with no status line (HTTP/0.9): everything is body.
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// Returns the bytes of the head as far as they have come: exactly those that were [`ResponsePart::Head`], without
    /// the interim ones.
    pub fn raw_head(&self) -> &[u8] {
        if self.is_headless() { &[] } else { &self.raw }
    }

    /// Returns whether the response is known to have no status line.
    fn is_headless(&self) -> bool {
        matches!(self.state, FramerState::UntilClose) && self.head.is_none()
    }

    /// Returns the number of bytes of line ends that came before the heads, and are no part of any.
    pub fn line_ends_before(&self) -> usize {
        self.leading.len()
    }

    /// Returns the heads of interim responses (`103 Early Hints`), each as it came.
    pub fn interim(&self) -> &[Vec<u8>] {
        &self.interim
    }

    /// Returns all bytes of the body up to the one where [`ResponsePart::Unframed`] or [`ResponseEnding::Unframed`] was
    /// returned.
    pub fn unframed(&self) -> &[u8] {
        if self.is_headless() {
            return &self.raw;
        }
        if let FramerState::Chunks(scanner) = &self.state {
            return scanner.line();
        }
        &[]
    }

    /// Returns how the response ends if no byte follows.
    pub fn ending(&self) -> ResponseEnding {
        match &self.state {
            FramerState::Head if self.raw.is_empty() && self.interim.is_empty() => {
                ResponseEnding::Nothing
            }
            FramerState::Head => ResponseEnding::CutHead,
            FramerState::HeadTooLong => ResponseEnding::HeadTooLong,
            FramerState::Length(missing) => ResponseEnding::CutBody { missing: *missing },
            FramerState::UntilClose | FramerState::Done => ResponseEnding::Complete,
            FramerState::Damaged => ResponseEnding::BadChunk,
            FramerState::Chunks(scanner) => match scanner.check_end() {
                Ok(ChunkEnd::Unchunked) if scanner.is_unchunked() => ResponseEnding::Complete,
                Ok(ChunkEnd::Unchunked) if scanner.line().is_empty() => ResponseEnding::CutChunks,
                Ok(ChunkEnd::Unchunked) => ResponseEnding::Unframed,
                Ok(ChunkEnd::Complete) => ResponseEnding::Complete,
                Ok(ChunkEnd::NoEndOfTrailers) => ResponseEnding::NoEndOfTrailers,
                Err(BodyError::BadChunk { .. }) => ResponseEnding::BadChunk,
                Err(_) => ResponseEnding::CutChunks,
            },
        }
    }

    /// Returns whether the connection may carry another request: the response has ended before the connection did, and
    /// neither its version nor its `Connection` field says that the server closes.
    pub fn is_reusable(&self) -> bool {
        let (FramerState::Done, Some(head)) = (&self.state, &self.head) else {
            return false;
        };
        let Start::Status { version, .. } = head.start() else {
            return false;
        };
        let says = |option: &[u8]| {
            head.list_values("connection")
                .any(|value| value.eq_ignore_ascii_case(option))
        };
        match version.as_slice() {
            _ if head.status() == Some(101) || says(b"close") => false,
            b"HTTP/1.1" => true,
            _ => says(b"keep-alive"),
        }
    }
}

/// Returns whether bytes begin with a status line; `None` while too few have come to tell.
fn begins_with_status_line(raw: &[u8], bytes: &[u8]) -> Option<bool> {
    const OPENINGS: [&[u8]; 3] = [b"HTTP/", b"HTTP ", b"ICY "];
    let start = raw.iter().chain(bytes).map(u8::to_ascii_uppercase);
    let start: Vec<u8> = start.take(5).collect();
    if OPENINGS.iter().any(|opening| start.starts_with(opening)) {
        return Some(true);
    }
    let open = OPENINGS.iter().any(|opening| opening.starts_with(&start));
    (!open).then_some(false)
}

/// Returns whether the body has a transfer coding whose end is not known.
fn has_unknown_coding(head: &Head) -> bool {
    head.list_values("transfer-encoding")
        .any(|coding| !coding.eq_ignore_ascii_case(b"identity"))
}

/// Returns the length of the body that the head announces; `None` if several values contradict each other or one is no
/// number.
fn agreed_length(head: &Head) -> Option<u64> {
    let first = head.content_length()?;
    let agrees = |value: &[u8]| {
        let digits = value.iter().all(u8::is_ascii_digit);
        let number = str::from_utf8(value)
            .ok()
            .and_then(|text| text.parse().ok());
        digits && number == Some(first)
    };
    head.list_values("content-length")
        .all(agrees)
        .then_some(first)
}

#[cfg(test)]
mod tests;
