//! The head of a message: start line and fields, kept as they came.

use std::io::{self, BufRead, Read as _};

use thiserror::Error;

/// The first line of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// The status line of a response: `HTTP/1.1 200 OK`, `HTTP/1.1 200`, `ICY 200 OK`.
    Status {
        /// The version as it came.
        version: Vec<u8>,
        /// The status, if the line has three digits for it.
        code: Option<u16>,
        /// The reason phrase behind the status; may be empty.
        reason: Vec<u8>,
    },
    /// The request line: `GET / HTTP/1.1`.
    Request {
        /// The method.
        method: Vec<u8>,
        /// The target, with any blanks in it.
        target: Vec<u8>,
        /// The version; empty for HTTP/0.9.
        version: Vec<u8>,
    },
    /// The bytes begin with no line of HTTP: all of them are body.
    Missing,
}

/// A header field as it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderField {
    /// The name, without blanks around it.
    pub name: Vec<u8>,
    /// The value, without blanks around it; folded lines are joined with one blank.
    pub value: Vec<u8>,
}

/// An oddity of a head that could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadNote {
    /// The bytes do not begin with a line of HTTP.
    NoStartLine,
    /// A line ends with LF only.
    BareLf {
        /// The offset of the first such line.
        at: usize,
    },
    /// A field continues in the next line.
    Folded {
        /// The offset of the first such continuation.
        at: usize,
    },
    /// A line has no colon or an empty name. It is no field, but kept in the raw bytes.
    NoField {
        /// The offset of the first such line.
        at: usize,
    },
    /// A name has blanks in it or around it.
    BlankInName {
        /// The offset of the first such line.
        at: usize,
    },
    /// The head has bytes beyond ASCII.
    NotAscii {
        /// The offset of the first such byte.
        at: usize,
    },
    /// The bytes end before the empty line that ends a head.
    NoEmptyLine,
}

/// The reason why a head cannot be read.
#[derive(Debug, Error)]
pub enum HeadError {
    /// The head is longer than allowed.
    #[error("the HTTP head is longer than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The input failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The head of a message.
///
/// ```
/// use archive_formats::http::{Body, Head, DecodeLimits};
/// use std::io::Read;
///
/// let mut record = &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"[..];
/// let head = Head::read_head(&mut record, 64 * 1024)?;
/// assert_eq!(head.status(), Some(200));
///
/// let mut text = String::new();
/// Body::decoded_body(&head, record, DecodeLimits::default()).read_to_string(&mut text)?;
/// assert_eq!(text, "hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    raw: Vec<u8>,
    start: Start,
    fields: Vec<HeaderField>,
    notes: Vec<HeadNote>,
    /// The bytes of the body that were read before the head was known to be missing.
    body: Vec<u8>,
}

impl Head {
    /// Reads the head, and leaves the input at the first byte of the body.
    ///
    /// If the bytes do not begin with a line of HTTP, some of them were read already: [`Head::unread_bytes`] has them.
    ///
    /// # Errors
    ///
    /// Fails if the input fails, or if the head is longer than `limit` bytes.
    pub fn read_head(input: &mut impl BufRead, limit: usize) -> Result<Self, HeadError> {
        let mut head = Self {
            raw: Vec::new(),
            start: Start::Missing,
            fields: Vec::new(),
            notes: Vec::new(),
            body: Vec::new(),
        };
        let mut first = true;
        loop {
            let at = head.raw.len();
            let room = (limit.saturating_sub(at) as u64).saturating_add(1);
            let read = input.by_ref().take(room).read_until(b'\n', &mut head.raw)?;
            if first && !looks_like_http(&head.raw) {
                // A line that is no line of HTTP is body, so that the limit does not apply to it.
                head.body = std::mem::take(&mut head.raw);
                head.notes.push(HeadNote::NoStartLine);
                return Ok(head);
            }
            if head.raw.len() > limit {
                return Err(HeadError::TooLarge { limit });
            }
            let stored = head.raw.get(at..).unwrap_or_default();
            let ended = stored.ends_with(b"\n");
            let lf_only = ended && !stored.ends_with(b"\r\n");
            let line = trim_end(stored).to_vec();
            if !ended {
                head.note(HeadNote::NoEmptyLine);
                if read == 0 {
                    return Ok(head);
                }
            }
            if lf_only {
                head.note(HeadNote::BareLf { at });
            }
            if line.is_empty() && !first {
                return Ok(head);
            }
            if let Some(byte) = line.iter().position(|b| !b.is_ascii()) {
                head.note(HeadNote::NotAscii { at: at + byte });
            }
            if first {
                head.start = start(&line);
                first = false;
            } else {
                head.line(&line, at);
            }
        }
    }

    fn line(&mut self, line: &[u8], at: usize) {
        if line.first().is_some_and(|b| matches!(b, b' ' | b'\t')) {
            match self.fields.last_mut() {
                Some(field) => {
                    if !field.value.is_empty() {
                        field.value.push(b' ');
                    }
                    field.value.extend_from_slice(line.trim_ascii());
                    self.note(HeadNote::Folded { at });
                }
                None => self.note(HeadNote::NoField { at }),
            }
            return;
        }
        let Some(colon) = memchr::memchr(b':', line) else {
            self.note(HeadNote::NoField { at });
            return;
        };
        let (name, value) = line.split_at(colon);
        let name_trimmed = name.trim_ascii();
        if name_trimmed.is_empty() {
            self.note(HeadNote::NoField { at });
            return;
        }
        if name.iter().any(u8::is_ascii_whitespace) {
            self.note(HeadNote::BlankInName { at });
        }
        self.fields.push(HeaderField {
            name: name_trimmed.to_vec(),
            value: value.get(1..).unwrap_or_default().trim_ascii().to_vec(),
        });
    }

    /// Adds a note, unless there is one of its kind.
    fn note(&mut self, note: HeadNote) {
        let kind = std::mem::discriminant(&note);
        if self.notes.iter().all(|n| std::mem::discriminant(n) != kind) {
            self.notes.push(note);
        }
    }

    /// Returns the exact bytes of the head, with the empty line.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// Returns the first line.
    pub fn start(&self) -> &Start {
        &self.start
    }

    /// Returns the status of a response.
    pub fn status(&self) -> Option<u16> {
        match &self.start {
            Start::Status { code, .. } => *code,
            Start::Request { .. } | Start::Missing => None,
        }
    }

    /// Returns the fields in their order, repeated ones too.
    pub fn fields(&self) -> &[HeaderField] {
        &self.fields
    }

    /// Returns the values of all fields of a name, in any case, in their order.
    pub fn all_values<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        let named = move |f: &&HeaderField| f.name.eq_ignore_ascii_case(name.as_bytes());
        self.fields.iter().filter(named).map(|f| f.value.as_slice())
    }

    /// Returns the value of the first field of a name, in any case.
    pub fn get<'a>(&'a self, name: &'a str) -> Option<&'a [u8]> {
        self.all_values(name).next()
    }

    /// Returns the members of a list field, of all its lines: without blanks around them and without empty ones.
    pub fn list_values<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        self.all_values(name)
            .flat_map(|v| v.split(|b| *b == b','))
            .map(<[u8]>::trim_ascii)
            .filter(|v| !v.is_empty())
    }

    /// Returns whether the body is chunked: whether `chunked` is the last of the transfer encodings.
    pub fn is_chunked(&self) -> bool {
        self.list_values("transfer-encoding")
            .next_back()
            .is_some_and(|v| v.eq_ignore_ascii_case(b"chunked"))
    }

    /// Returns the length that the body should have, if one is named; the first of several.
    pub fn content_length(&self) -> Option<u64> {
        let text = str::from_utf8(self.list_values("content-length").next()?).ok()?;
        text.bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| text.parse().ok())?
    }

    /// Returns the oddities of the head.
    pub fn notes(&self) -> &[HeadNote] {
        &self.notes
    }

    /// Returns the bytes of the body that were read before the head was known to be missing.
    pub fn unread_bytes(&self) -> &[u8] {
        &self.body
    }
}

fn trim_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Returns whether a line can be the first one of HTTP: a version in front, or a method and a blank.
fn looks_like_http(line: &[u8]) -> bool {
    let line = trim_end(line);
    if is_status(line) {
        return true;
    }
    let method = line
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'!'))
        .count();
    let capital = line.first().is_some_and(u8::is_ascii_uppercase);
    let versioned = memchr::memmem::rfind(line, b" HTTP/").is_some();
    let known = matches!(
        line.get(..method),
        Some(b"GET" | b"HEAD" | b"POST" | b"PUT")
    );
    method > 0 && line.get(method) == Some(&b' ') && ((capital && known) || versioned)
}

fn is_status(line: &[u8]) -> bool {
    let starts = |prefix: &[u8]| {
        line.get(..prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    starts(b"HTTP/") || starts(b"ICY ") || starts(b"HTTP ")
}

fn start(line: &[u8]) -> Start {
    let word = |text: &[u8]| {
        text.iter()
            .position(|b| matches!(b, b' ' | b'\t'))
            .unwrap_or(text.len())
    };
    let (first, rest) = line.split_at(word(line));
    let rest = rest.trim_ascii_start();
    if is_status(line) {
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let (code, reason) = rest.split_at(if digits == 3 { 3 } else { 0 });
        let code = str::from_utf8(code).ok().and_then(|c| c.parse().ok());
        return Start::Status {
            version: first.to_vec(),
            code,
            reason: reason.trim_ascii().to_vec(),
        };
    }
    let (target, version) = match memchr::memmem::rfind(rest, b" HTTP/") {
        Some(at) => (
            rest.get(..at).unwrap_or_default(),
            rest.get(at + 1..).unwrap_or_default(),
        ),
        None => (rest, &b""[..]),
    };
    Start::Request {
        method: first.to_vec(),
        target: target.trim_ascii().to_vec(),
        version: version.trim_ascii().to_vec(),
    }
}
