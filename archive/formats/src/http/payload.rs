//! Payload digests, in both readings that the field has.
//!
//! The standard hashes the entity body. With stored chunks that is the body without them; but most writers hash the
//! stored bytes, chunks and all. Both digests are computed here in one pass.

use std::io::{self, BufRead, Read};

use super::{BodyError, ChunkedReader, Head, HeadError};
use crate::digest::{Algorithm, Digest, DigestValue, Hashers};

/// The reading in which a digest is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadReading {
    /// Both: the stored body is the entity body.
    Only,
    /// The digest is of all bytes after the head, with the framing of chunks.
    Stored,
    /// The digest is of the body without the framing of chunks.
    Entity,
}

/// The reason why a digest cannot be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UncheckedReason {
    /// The algorithm is not known.
    Algorithm,
    /// The head is longer than allowed.
    Head,
}

/// The result of checking a payload digest.
///
/// ```
/// use archive_formats::digest::{Algorithm, digest_bytes};
/// use archive_formats::http::{PayloadReading, PayloadCheck, check_payload};
///
/// let block = b"HTTP/1.1 200 OK\r\n\r\nhello";
/// let right = digest_bytes(Algorithm::Sha1, b"hello").into();
/// let verdict = check_payload(&mut &block[..], &right, 1 << 20)?;
/// assert_eq!(verdict, PayloadCheck::Matches(PayloadReading::Only));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PayloadCheck {
    /// The digest is right.
    Matches(PayloadReading),
    /// The digest is wrong in every reading.
    Differs {
        /// The digest of the bytes after the head.
        stored: DigestValue,
        /// The digest of the body without chunks; `None` if it has no chunks, or they are cut or broken.
        entity: Option<DigestValue>,
    },
    /// The digest cannot be checked.
    CannotCheck(UncheckedReason),
}

/// Checks the digest of the payload of an HTTP record. Reads the block to its end, unless nothing can be checked.
///
/// # Errors
///
/// Fails if the block cannot be read.
pub fn check_payload(
    block: &mut impl BufRead,
    digest: &Digest,
    head_limit: usize,
) -> io::Result<PayloadCheck> {
    let Some(expected) = digest.value() else {
        return Ok(PayloadCheck::CannotCheck(UncheckedReason::Algorithm));
    };
    let head = match Head::read_head(block, head_limit) {
        Ok(head) => head,
        Err(HeadError::TooLarge { .. }) => {
            return Ok(PayloadCheck::CannotCheck(UncheckedReason::Head));
        }
        Err(HeadError::Io(error)) => return Err(error),
    };
    let (stored, entity) = payload_digests(&head, block, expected.algorithm())?;
    Ok(match (&stored, &entity) {
        (stored, None) if stored == expected => PayloadCheck::Matches(PayloadReading::Only),
        // The header says that the body is chunked and it is not, or the digests are of nothing.
        (stored, Some(entity)) if stored == expected && stored == entity => {
            PayloadCheck::Matches(PayloadReading::Only)
        }
        (_, Some(entity)) if entity == expected => PayloadCheck::Matches(PayloadReading::Entity),
        (stored, _) if stored == expected => PayloadCheck::Matches(PayloadReading::Stored),
        _ => PayloadCheck::Differs { stored, entity },
    })
}

fn payload_digests(
    head: &Head,
    block: &mut impl BufRead,
    algorithm: Algorithm,
) -> io::Result<(DigestValue, Option<DigestValue>)> {
    let mut tee = Tee {
        input: io::Cursor::new(head.unread_bytes().to_vec()).chain(block),
        hashers: Hashers::new([algorithm]),
    };
    let entity = if head.is_chunked() {
        let mut chunked = ChunkedReader::new(&mut tee);
        let mut hashers = Hashers::new([algorithm]);
        let complete = match io::copy(&mut chunked, &mut hashers) {
            Ok(_) => true,
            Err(error) if BodyError::find_within(&error).is_some() => false,
            Err(error) => return Err(error),
        };
        io::copy(chunked.inner_mut(), &mut io::sink())?;
        hashers.finish().pop().filter(|_| complete)
    } else {
        io::copy(&mut tee, &mut io::sink())?;
        None
    };
    let stored = tee.hashers.finish().pop();
    // Hashers of one algorithm return one digest.
    let stored = stored.ok_or_else(|| io::Error::other("no digest was computed"))?;
    Ok((stored, entity))
}

/// A reader that hashes the bytes that are consumed.
pub(crate) struct Tee<R> {
    pub(crate) input: R,
    pub(crate) hashers: Hashers,
}

impl<R: BufRead> Read for Tee<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(out)?;
        self.hashers.update(out.get(..read).unwrap_or_default());
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Tee<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        // The consumed bytes were in the buffer, which another look does not change.
        if let Ok(buffer) = self.input.fill_buf() {
            self.hashers
                .update(buffer.get(..amount).unwrap_or_default());
        }
        self.input.consume(amount);
    }
}
