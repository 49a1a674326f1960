//! Payloads held against their digest while they are sent, in both readings that the field has.
//!
//! Owns one pass over the bytes: what is sent is the entity, and both the entity and the bytes as they are stored are
//! hashed. The verdict is that of [`check_payload`](archive_formats::http::check_payload), which reads a block a second
//! time.

use std::io::{self, BufRead, Chain, Cursor, Read};

use archive_formats::digest::{Digest, DigestValue, Hashers};
use archive_formats::http::{
    BodyError, ChunkedReader, Head, PayloadCheck, PayloadReading, UncheckedReason,
};

use super::StoredMessage;

/// The result of an audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadAudit<R> {
    /// The worth of the digest; `None` if the record has none.
    pub verdict: Option<PayloadCheck>,
    /// The reason why the entity ends before its end, if it does.
    pub damage: Option<BodyError>,
    /// The block, which was read to its end.
    pub block: R,
}

/// An entity as it is sent, which is hashed on its way.
#[derive(Debug)]
pub struct AuditedBody<R> {
    entity: Entity<R>,
    hashers: Option<Hashers>,
    digest: Option<Digest>,
    damage: Option<BodyError>,
}

/// The stored bytes behind the head: those that were read with it, then the rest.
type StoredBytes<R> = HashingReader<Chain<Cursor<Vec<u8>>, R>>;

#[derive(Debug)]
enum Entity<R> {
    Plain(Box<StoredBytes<R>>),
    Chunked(Box<ChunkedReader<StoredBytes<R>>>),
}

impl<R: BufRead> AuditedBody<R> {
    /// Returns the entity behind the head of a message, to be held against a digest.
    pub fn new(message: &StoredMessage, block: R, digest: Option<Digest>) -> Self {
        let hashers = || {
            let algorithm = digest.as_ref()?.algorithm()?;
            Some(Hashers::new([algorithm]))
        };
        let head = message.framing();
        let unread = head.map(Head::unread_bytes).unwrap_or_default().to_vec();
        let stored = HashingReader {
            input: Cursor::new(unread).chain(block),
            hashers: hashers(),
        };
        let is_chunked = head.is_some_and(Head::is_chunked);
        Self {
            hashers: if is_chunked { hashers() } else { None },
            entity: if is_chunked {
                Entity::Chunked(Box::new(ChunkedReader::new(stored)))
            } else {
                Entity::Plain(Box::new(stored))
            },
            digest,
            damage: None,
        }
    }

    /// Reads the bytes that were not read yet, and says what the digest is worth.
    ///
    /// # Errors
    /// Fails if the input fails.
    pub fn finish(mut self) -> io::Result<PayloadAudit<R>> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match self.read(&mut buffer) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if BodyError::find_within(&error).is_some() => break,
                Err(error) => return Err(error),
            }
        }
        let stored = match self.entity {
            Entity::Plain(stored) => *stored,
            Entity::Chunked(chunked) => {
                let mut stored = chunked.into_inner();
                io::copy(&mut stored, &mut io::sink())?;
                stored
            }
        };
        let damage = self.damage;
        let entity = self.hashers.and_then(only).filter(|_| damage.is_none());
        let verdict =
            self.digest.map(
                |digest| match (digest.value(), stored.hashers.and_then(only)) {
                    (Some(expected), Some(stored)) => verdict(expected, stored, entity),
                    _ => PayloadCheck::CannotCheck(UncheckedReason::Algorithm),
                },
            );
        Ok(PayloadAudit {
            verdict,
            damage,
            block: stored.input.into_inner().1,
        })
    }
}

fn only(hashers: Hashers) -> Option<DigestValue> {
    hashers.finish().pop()
}

fn verdict(
    expected: &DigestValue,
    stored: DigestValue,
    entity: Option<DigestValue>,
) -> PayloadCheck {
    let is_stored = stored == *expected;
    let is_entity = entity.as_ref() == Some(expected);
    match (is_stored, is_entity) {
        (true, true) => PayloadCheck::Matches(PayloadReading::Only),
        (true, false) if entity.is_none() => PayloadCheck::Matches(PayloadReading::Only),
        (true, false) => PayloadCheck::Matches(PayloadReading::Stored),
        (false, true) => PayloadCheck::Matches(PayloadReading::Entity),
        (false, false) => PayloadCheck::Differs { stored, entity },
    }
}

impl<R: BufRead> Read for AuditedBody<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(damage) = self.damage {
            return Err(damage.into());
        }
        let read = match &mut self.entity {
            Entity::Plain(stored) => stored.read(out),
            Entity::Chunked(chunked) => chunked.read(out),
        };
        match &read {
            Ok(count) => {
                if let Some(hashers) = &mut self.hashers {
                    hashers.update(&out[..*count]);
                }
            }
            Err(error) => self.damage = BodyError::find_within(error),
        }
        read
    }
}

/// A reader that hashes the bytes that are read from its input.
#[derive(Debug)]
struct HashingReader<R> {
    input: R,
    hashers: Option<Hashers>,
}

impl<R: BufRead> Read for HashingReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(out)?;
        if let Some(hashers) = &mut self.hashers {
            hashers.update(&out[..count]);
        }
        Ok(count)
    }
}

impl<R: BufRead> BufRead for HashingReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        if let Some(hashers) = &mut self.hashers
            // The bytes were in the buffer, which another look does not change.
            && let Ok(buffer) = self.input.fill_buf()
        {
            hashers.update(&buffer[..amount]);
        }
        self.input.consume(amount);
    }
}
