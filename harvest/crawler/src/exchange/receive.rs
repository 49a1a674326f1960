//! A response on its way from the wire into a record.
//!
//! Owns the block of a `response` record: every byte from the status line to the end of the body, chunk framing
//! included, and its digests. Memory is bounded: a larger block goes into an unnamed temporary file. Knows no socket
//! and no clock.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use archive_formats::digest::{Algorithm, DigestValue, Hashers};
use archive_formats::http::{Head, MediaType, ResponseEnding, ResponseFramer, ResponsePart};
use archive_model::ByteSize;
use tempfile::SpooledTempFile;

/// A larger block leaves memory.
const IN_MEMORY: usize = 512 << 10;

/// The limits of the size of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiveLimits {
    /// The most bytes of one head.
    pub head: usize,
    /// The most bytes behind the head; `None` for all of them.
    pub body: Option<u64>,
    /// The most bytes behind the head of a response of a media type, if that is less: `video/mp4`, `video/*`, `*/*`.
    pub body_by_type: BTreeMap<String, ByteSize>,
}

impl Default for ReceiveLimits {
    /// Returns 64 KiB of head, which is more than servers of today send or take, and all of the body.
    fn default() -> Self {
        Self {
            head: 64 << 10,
            body: None,
            body_by_type: BTreeMap::new(),
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
    /// Returns the value of the header field.
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
pub struct HttpResponse {
    /// The head; `None` if there is no status line, or the connection ended within the head. Of a head that is longer
    /// than allowed: as much as was taken.
    pub head: Option<Head>,
    /// The heads of interim responses, each as it came. They are no part of the block.
    pub interim: Vec<Vec<u8>>,
    /// The block of the record, from its first byte.
    pub block: SpooledTempFile,
    /// The length of the block.
    pub block_length: u64,
    /// The SHA-1 of the block.
    pub block_digest: DigestValue,
    /// The SHA-1 of the payload: the body without its transfer coding, with its content coding (ISO 28500 §6.3.2).
    /// Where the framing of chunks is damaged or cut: of the body as it is stored.
    pub payload_digest: DigestValue,
    /// The length of the payload.
    pub payload_length: u64,
    /// The way in which the response ended on the wire.
    pub ending: ResponseEnding,
    /// The reason why the response is not whole.
    pub truncation: Option<Truncation>,
    /// Whether the connection may carry another request.
    pub is_reusable: bool,
}

/// A receiver of one response.
///
/// ```
/// use harvest_crawler::exchange::receive::{ReceiveLimits, ResponseReceiver};
///
/// let mut receiver = ResponseReceiver::new(false, ReceiveLimits::default(), std::env::temp_dir());
/// let wire = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
/// assert_eq!(receiver.take_bytes(wire)?, 43);
/// let response = receiver.finish_response(None)?;
/// assert_eq!((response.block_length, response.payload_length), (43, 5));
/// assert!(response.is_reusable);
/// # Ok::<(), std::io::Error>(())
/// ```
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
    /// Makes a receiver before the first byte. `answers_head`: the request was a `HEAD`. `directory`: where a large
    /// block goes.
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

    /// Takes a head that did not come as text (HTTP/2), before all other bytes; those that follow are payload until the
    /// end.
    ///
    /// # Errors
    ///
    /// If the temporary file cannot be written.
    pub fn take_head(&mut self, text: &[u8]) -> io::Result<()> {
        let head = Head::read_head(&mut &*text, text.len()).map_err(io::Error::other)?;
        self.framer = ResponseFramer::behind_head(head);
        self.write_head()
    }

    /// Takes the next bytes of the connection; returns how many of them belong to the response. Fewer than there are:
    /// it is done.
    ///
    /// # Errors
    ///
    /// If the temporary file cannot be written: the disk is full, or fails.
    pub fn take_bytes(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = 0;
        while taken < bytes.len() && !self.is_done() {
            let rest = self.within_limit(bytes.get(taken..).unwrap_or_default());
            let (count, part) = self.framer.push(rest);
            let stretch = rest.get(..count).unwrap_or_default();
            taken += count;
            match part {
                ResponsePart::Head => self.write_head()?,
                ResponsePart::Payload => {
                    self.payload_digest.update(stretch);
                    self.write_body(stretch)?;
                }
                ResponsePart::Framing => self.write_body(stretch)?,
                ResponsePart::Unframed => {
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
                ResponsePart::Damaged => {
                    self.is_damaged = true;
                    self.write_body(stretch)?;
                }
            }
        }
        Ok(taken)
    }

    /// Returns as many of the bytes as may still be taken. The head has its own limit.
    fn within_limit<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let in_body = self.framer.head().is_some() || self.body_length > 0;
        let Some(limit) = self.limits.body.filter(|_| in_body) else {
            return bytes;
        };
        let room = usize::try_from(limit.saturating_sub(self.body_length)).unwrap_or(usize::MAX);
        self.is_full = room < bytes.len();
        bytes.get(..room).unwrap_or(bytes)
    }

    /// Ends the response here if its body has more bytes than may be kept of it.
    pub fn end_above(&mut self, most: u64) {
        if self.body_length > most && !self.is_done() {
            self.limits.body = Some(self.body_length);
            self.is_full = true;
        }
    }

    fn write_head(&mut self) -> io::Result<()> {
        if self.head_is_written || self.framer.head().is_none() {
            return Ok(());
        }
        self.head_is_written = true;
        self.limit_by_type();
        self.block_digest.update(self.framer.raw_head());
        self.block.write_all(self.framer.raw_head())
    }

    /// Takes the limit of the media type that the head names.
    fn limit_by_type(&mut self) {
        let limits = &self.limits.body_by_type;
        let head = self.framer.head().filter(|_| !limits.is_empty());
        let Some(media_type) =
            head.and_then(|head| MediaType::read_media(head.get("content-type")?))
        else {
            return;
        };
        let essence = media_type.essence;
        let kind = essence
            .split_once('/')
            .map_or(essence.as_str(), |(kind, _)| kind);
        let limit = limits.get(&essence);
        let limit = limit.or_else(|| limits.get(&format!("{kind}/*")));
        if let Some(limit) = limit.or_else(|| limits.get("*/*")) {
            let limit = limit.bytes();
            self.limits.body = Some(self.limits.body.map_or(limit, |body| body.min(limit)));
        }
    }

    fn write_body(&mut self, bytes: &[u8]) -> io::Result<()> {
        let length = bytes.len() as u64;
        self.body_length = self.body_length.saturating_add(length);
        self.block_digest.update(bytes);
        self.block.write_all(bytes)
    }

    /// Returns whether nothing more is taken.
    pub fn is_done(&self) -> bool {
        self.framer.is_done()
            || (self.is_full
                && self
                    .limits
                    .body
                    .is_some_and(|limit| self.body_length >= limit))
    }

    /// Returns whether the host has sent anything.
    pub fn is_empty(&self) -> bool {
        self.framer.ending() == ResponseEnding::Nothing
    }

    /// Ends the response: the connection has, or it is done. `cut`: why nothing more comes, if the bytes do not say it.
    ///
    /// # Errors
    ///
    /// If the temporary file cannot be written or read.
    pub fn finish_response(mut self, cut: Option<Truncation>) -> io::Result<HttpResponse> {
        let ending = self.framer.ending();
        if !self.head_is_written && self.framer.head().is_none() {
            let raw = self.framer.raw_head().to_vec();
            self.block_digest.update(&raw);
            self.block.write_all(&raw)?;
        }
        let truncation = match ending {
            ResponseEnding::HeadTooLong => Some(Truncation::Length),
            // A response that has all that it announces is whole, whatever comes behind it.
            _ if self.is_full && !self.framer.is_done() => Some(Truncation::Length),
            _ if cut.is_some() => cut,
            ResponseEnding::CutHead
            | ResponseEnding::CutBody { .. }
            | ResponseEnding::CutChunks => Some(Truncation::Disconnect),
            ResponseEnding::Complete
            | ResponseEnding::NoEndOfTrailers
            | ResponseEnding::Unframed
            | ResponseEnding::Nothing
            | ResponseEnding::BadChunk => None,
        };
        if ending == ResponseEnding::Unframed {
            self.payload_digest = Hashers::new([Algorithm::Sha1]);
            self.payload_digest.update(self.framer.unframed());
        }
        let head = if ending == ResponseEnding::HeadTooLong {
            // As much of it as was taken: the status line says what it is.
            cut_head(self.framer.raw_head())
        } else {
            self.framer.head().cloned()
        };
        let block_length = self.block_digest.length();
        if self.is_damaged || matches!(ending, ResponseEnding::CutChunks | ResponseEnding::BadChunk)
        {
            self.payload_digest = self.hash_stored_body(block_length - self.body_length)?;
        }
        self.block.seek(SeekFrom::Start(0))?;
        let payload_length = self.payload_digest.length();
        Ok(HttpResponse {
            is_reusable: truncation.is_none() && self.framer.is_reusable(),
            head,
            interim: self.framer.interim().to_vec(),
            block: self.block,
            block_length,
            block_digest: single_digest(self.block_digest)?,
            payload_digest: single_digest(self.payload_digest)?,
            payload_length,
            ending,
            truncation,
        })
    }

    /// Hashes what is stored behind the head.
    fn hash_stored_body(&mut self, begin: u64) -> io::Result<Hashers> {
        let mut hashers = Hashers::new([Algorithm::Sha1]);
        self.block.seek(SeekFrom::Start(begin))?;
        let mut stored = io::Read::by_ref(&mut self.block).take(self.body_length);
        io::copy(&mut stored, &mut hashers)?;
        Ok(hashers)
    }
}

/// Returns the head of which only the start was taken.
fn cut_head(raw: &[u8]) -> Option<Head> {
    let head = Head::read_head(&mut &*raw, raw.len()).ok()?;
    (!head.raw().is_empty()).then_some(head)
}

/// Returns the digest of the one algorithm that was asked for.
fn single_digest(hashers: Hashers) -> io::Result<DigestValue> {
    let digest = hashers.finish().pop();
    digest.ok_or_else(|| io::Error::other("no digest was computed"))
}

#[cfg(test)]
mod tests;
