//! A response on its way from the wire into a record.
//!
//! Owns the block of a `response` record: every byte from the status line to the end of the body, chunk framing included, and
//! its digests. Memory is bounded: a larger block goes into an unnamed temporary file. Knows no socket and no clock.

use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use archive_formats::digest::{Algorithm, Hashers, Value};
use archive_formats::http::{Ending, Head, Part, ResponseFramer};
use tempfile::SpooledTempFile;

/// A larger block leaves memory.
const IN_MEMORY: usize = 512 << 10;

/// The limits of how much of a response is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveLimits {
    /// The most bytes of one head.
    pub head: usize,
    /// The most bytes behind the head; `None` for all of them.
    pub body: Option<u64>,
}

impl Default for ReceiveLimits {
    /// 64 KiB of head, which is more than servers of today send or take, and all of the body.
    fn default() -> Self {
        Self {
            head: 64 << 10,
            body: None,
        }
    }
}

/// The reason why a record has less than the host would have sent (`WARC-Truncated`, ISO 28500 §5.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    /// A limit of length.
    Length,
    /// A limit of time.
    Time,
    /// The connection ended before the response did.
    Disconnect,
}

impl Truncation {
    /// The value of the header field.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Time => "time",
            Self::Disconnect => "disconnect",
        }
    }
}

/// A response as it came in, whole or cut.
#[derive(Debug)]
pub struct Response {
    /// The head; `None` if there is no status line, or the connection ended within the head. Of a head that is longer than
    /// allowed: as much as was taken.
    pub head: Option<Head>,
    /// The heads of interim responses, each as it came. They are no part of the block.
    pub interim: Vec<Vec<u8>>,
    /// The block of the record, from its first byte.
    pub block: SpooledTempFile,
    /// The length of the block.
    pub block_length: u64,
    /// The SHA-1 of the block.
    pub block_digest: Value,
    /// The SHA-1 of the payload: the body without its transfer coding, with its content coding (ISO 28500 §6.3.2). Where the
    /// framing of chunks is damaged or cut: of the body as it is stored.
    pub payload_digest: Value,
    /// The length of the payload.
    pub payload_length: u64,
    /// The way in which the response ended on the wire.
    pub ending: Ending,
    /// The reason why it is not whole.
    pub truncation: Option<Truncation>,
    /// Whether the connection may carry another request.
    pub is_reusable: bool,
}

/// Takes a response in.
#[derive(Debug)]
pub struct ResponseReceiver {
    framer: ResponseFramer,
    limits: ReceiveLimits,
    block: SpooledTempFile,
    block_digest: Hashers,
    payload_digest: Hashers,
    head_is_written: bool,
    body_length: u64,
    is_damaged: bool,
    is_full: bool,
}

impl ResponseReceiver {
    /// Before the first byte. `answers_head`: the request was a `HEAD`. `directory`: where a large block goes.
    pub fn new(answers_head: bool, limits: ReceiveLimits, directory: PathBuf) -> Self {
        Self {
            framer: ResponseFramer::new(answers_head, limits.head),
            limits,
            block: tempfile::spooled_tempfile_in(IN_MEMORY, directory),
            block_digest: Hashers::new([Algorithm::Sha1]),
            payload_digest: Hashers::new([Algorithm::Sha1]),
            head_is_written: false,
            body_length: 0,
            is_damaged: false,
            is_full: false,
        }
    }

    /// Takes a head that did not come as text (HTTP/2), before all other bytes; those that follow are payload until the end.
    ///
    /// # Errors
    ///
    /// If the temporary file cannot be written.
    pub fn take_head(&mut self, text: &[u8]) -> io::Result<()> {
        let head = Head::read(&mut &*text, text.len()).map_err(io::Error::other)?;
        self.framer = ResponseFramer::behind_head(head);
        self.write_head()
    }

    /// Takes the next bytes of the connection; how many of them belong to the response. Fewer than there are: it is done.
    ///
    /// # Errors
    ///
    /// If the temporary file cannot be written: the disk is full, or fails.
    pub fn take(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = 0;
        while taken < bytes.len() && !self.is_done() {
            let rest = self.within_limit(bytes.get(taken..).unwrap_or_default());
            let (count, part) = self.framer.push(rest);
            let stretch = rest.get(..count).unwrap_or_default();
            taken += count;
            match part {
                Part::Head => self.write_head()?,
                Part::Payload => {
                    self.payload_digest.update(stretch);
                    self.write_body(stretch)?;
                }
                Part::Framing => self.write_body(stretch)?,
                Part::Unframed => {
                    let unframed = self.framer.unframed().to_vec();
                    self.payload_digest.update(&unframed);
                    // Without a status line none of these bytes was written yet; else only the last ones were not.
                    let unwritten = if self.framer.head().is_none() {
                        &unframed
                    } else {
                        stretch
                    };
                    self.write_body(unwritten)?;
                }
                Part::Damaged => {
                    self.is_damaged = true;
                    self.write_body(stretch)?;
                }
            }
        }
        Ok(taken)
    }

    /// As many of the bytes as may still be taken. The head has its own limit.
    fn within_limit<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let in_body = self.framer.head().is_some() || self.body_length > 0;
        let Some(limit) = self.limits.body.filter(|_| in_body) else {
            return bytes;
        };
        let room = usize::try_from(limit.saturating_sub(self.body_length)).unwrap_or(usize::MAX);
        self.is_full = room < bytes.len();
        bytes.get(..room).unwrap_or(bytes)
    }

    fn write_head(&mut self) -> io::Result<()> {
        if self.head_is_written || self.framer.head().is_none() {
            return Ok(());
        }
        self.head_is_written = true;
        self.block_digest.update(self.framer.raw_head());
        self.block.write_all(self.framer.raw_head())
    }

    fn write_body(&mut self, bytes: &[u8]) -> io::Result<()> {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.body_length = self.body_length.saturating_add(length);
        self.block_digest.update(bytes);
        self.block.write_all(bytes)
    }

    /// Whether nothing more is taken.
    pub fn is_done(&self) -> bool {
        self.framer.is_done()
            || (self.is_full
                && self
                    .limits
                    .body
                    .is_some_and(|limit| self.body_length >= limit))
    }

    /// Whether the host has sent anything.
    pub fn is_empty(&self) -> bool {
        self.framer.ending() == Ending::Nothing
    }

    /// Ends the response: the connection has, or it is done. `cut`: why nothing more comes, if the bytes do not say it.
    ///
    /// # Errors
    ///
    /// If the temporary file cannot be written or read.
    pub fn finish(mut self, cut: Option<Truncation>) -> io::Result<Response> {
        let ending = self.framer.ending();
        if !self.head_is_written && self.framer.head().is_none() {
            let raw = self.framer.raw_head().to_vec();
            self.block_digest.update(&raw);
            self.block.write_all(&raw)?;
        }
        let truncation = match ending {
            Ending::HeadTooLong => Some(Truncation::Length),
            _ if self.is_full => Some(Truncation::Length),
            _ if cut.is_some() => cut,
            Ending::CutHead | Ending::CutBody { .. } | Ending::CutChunks => {
                Some(Truncation::Disconnect)
            }
            Ending::Complete
            | Ending::NoEndOfTrailers
            | Ending::Unframed
            | Ending::Nothing
            | Ending::BadChunk => None,
        };
        if ending == Ending::Unframed {
            self.payload_digest = Hashers::new([Algorithm::Sha1]);
            self.payload_digest.update(self.framer.unframed());
        }
        let head = if ending == Ending::HeadTooLong {
            // As much of it as was taken: the status line says what it is.
            cut_head(self.framer.raw_head())
        } else {
            self.framer.head().cloned()
        };
        let block_length = self.block_digest.length();
        if self.is_damaged || matches!(ending, Ending::CutChunks | Ending::BadChunk) {
            self.payload_digest = self.stored_body(block_length - self.body_length)?;
        }
        self.block.seek(SeekFrom::Start(0))?;
        let payload_length = self.payload_digest.length();
        Ok(Response {
            is_reusable: truncation.is_none() && self.framer.is_reusable(),
            head,
            interim: self.framer.interim().to_vec(),
            block: self.block,
            block_length,
            block_digest: only(self.block_digest)?,
            payload_digest: only(self.payload_digest)?,
            payload_length,
            ending,
            truncation,
        })
    }

    /// Hashes what is stored behind the head.
    fn stored_body(&mut self, begin: u64) -> io::Result<Hashers> {
        let mut hashers = Hashers::new([Algorithm::Sha1]);
        self.block.seek(SeekFrom::Start(begin))?;
        let mut stored = io::Read::by_ref(&mut self.block).take(self.body_length);
        io::copy(&mut stored, &mut hashers)?;
        Ok(hashers)
    }
}

/// The head of which only the begin was taken.
fn cut_head(raw: &[u8]) -> Option<Head> {
    let head = Head::read(&mut &*raw, raw.len()).ok()?;
    (!head.raw().is_empty()).then_some(head)
}

/// The digest of the one algorithm that was asked for.
fn only(hashers: Hashers) -> io::Result<Value> {
    let digest = hashers.finish().pop();
    digest.ok_or_else(|| io::Error::other("no digest was computed"))
}

#[cfg(test)]
mod tests {
    use archive_formats::digest::digest;

    use super::*;

    fn receive(wire: &[u8], limits: ReceiveLimits, timed_out: bool) -> (Response, Vec<u8>, usize) {
        let mut receiver = ResponseReceiver::new(false, limits, std::env::temp_dir());
        let taken = receiver.take(wire).unwrap();
        let mut response = receiver
            .finish(timed_out.then_some(Truncation::Time))
            .unwrap();
        let mut block = Vec::new();
        response.block.read_to_end(&mut block).unwrap();
        assert_eq!(response.block_length, block.len() as u64);
        assert_eq!(response.block_digest, digest(Algorithm::Sha1, &block));
        (response, block, taken)
    }

    /// Fails if the block is another than what came over the wire, or the digest is of another payload.
    #[test]
    fn block_is_the_wire_and_payload_the_body() {
        let ok = "HTTP/1.1 200 OK\r\n";
        for (wire, payload, reusable) in [
            (format!("{ok}Content-Length: 5\r\n\r\nhello"), "hello", true),
            (
                format!("{ok}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
                "hello",
                true,
            ),
            (format!("{ok}\r\nhello"), "hello", false),
            ("<html>hello".to_owned(), "<html>hello", false),
            (
                format!("{ok}Transfer-Encoding: chunked\r\n\r\nhello\nworld"),
                "hello\nworld",
                false,
            ),
            (
                format!("{ok}Transfer-Encoding: chunked\r\n\r\nhello"),
                "hello",
                false,
            ),
            (
                format!("{ok}Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX0"),
                "5\r\nhelloX0",
                false,
            ),
            (
                format!("{ok}Transfer-Encoding: chunked\r\n\r\n5\r\nhel"),
                "5\r\nhel",
                false,
            ),
        ] {
            let (response, block, taken) =
                receive(wire.as_bytes(), ReceiveLimits::default(), false);
            assert_eq!(
                (block.as_slice(), taken),
                (wire.as_bytes(), wire.len()),
                "{wire:?}"
            );
            assert_eq!(
                response.payload_digest,
                digest(Algorithm::Sha1, payload.as_bytes()),
                "{wire:?}"
            );
            assert_eq!(response.payload_length, payload.len() as u64);
            assert_eq!(response.is_reusable, reusable, "{wire:?}");
        }
    }

    /// Fails if bytes of the next response get into the block, or an interim response does.
    #[test]
    fn block_ends_where_the_response_does() {
        let wire = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 200 OK";
        let (response, block, taken) = receive(wire, ReceiveLimits::default(), false);
        assert_eq!(block, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab");
        assert_eq!((taken, response.interim.len()), (wire.len() - 15, 1));
    }

    /// Fails if a cut response passes for a whole one, or the wrong reason is given.
    #[test]
    fn cut_response_says_why() {
        let wire = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
        let limit = |body| ReceiveLimits {
            body: Some(body),
            ..ReceiveLimits::default()
        };
        let short = ReceiveLimits {
            head: 20,
            body: None,
        };
        for (wire, limits, timed_out, truncation, length) in [
            (
                &wire[..],
                ReceiveLimits::default(),
                false,
                Some(Truncation::Disconnect),
                wire.len(),
            ),
            (
                &wire[..],
                ReceiveLimits::default(),
                true,
                Some(Truncation::Time),
                wire.len(),
            ),
            (
                &wire[..],
                limit(3),
                false,
                Some(Truncation::Length),
                wire.len() - 2,
            ),
            (&wire[..], short, false, Some(Truncation::Length), 20),
            (
                &wire[..30],
                ReceiveLimits::default(),
                false,
                Some(Truncation::Disconnect),
                30,
            ),
            (
                &b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"[..],
                limit(3),
                false,
                None,
                41,
            ),
        ] {
            let (response, block, _) = receive(wire, limits, timed_out);
            assert_eq!(
                (response.truncation, block.len()),
                (truncation, length),
                "{limits:?}"
            );
            assert_eq!(response.is_reusable, truncation.is_none());
            assert!(wire.starts_with(&block));
        }
    }

    /// Fails if a large block stays in memory, or changes on its way to the disk.
    #[test]
    fn large_block_goes_to_the_disk() {
        let mut wire = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        wire.resize(IN_MEMORY * 3, b'x');
        let mut receiver =
            ResponseReceiver::new(false, ReceiveLimits::default(), std::env::temp_dir());
        for piece in wire.chunks(10_000) {
            assert_eq!(receiver.take(piece).unwrap(), piece.len());
        }
        assert!(receiver.block.is_rolled());
        let mut response = receiver.finish(None).unwrap();
        let mut block = Vec::new();
        response.block.read_to_end(&mut block).unwrap();
        assert!(block == wire);
    }
}
