//! The body of a record, as the thread that reads the record has it.
//!
//! Owns the bytes of the body up to their first fault, and what their digest is worth once the record was read to its
//! end.

use std::io::{self, Read};
use std::ops::Range;

use archive_formats::digest::Digest;
use archive_formats::http::{BodyError, PayloadCheck};
use archive_formats::warc::{Record, WarcType};
use bytes::{Buf, Bytes};
use viewer_replay::response::{AuditedBody, StoredMessage};

use super::answer::AnswerSender;
use super::archive_chunks::ArchiveChunks;
use super::{CHUNK, PayloadVerdict, RecordError, WHOLE, WholeBody};

/// The body of a record: without the framing of chunks, and with its content encodings. A fault in it is an error of
/// [`Read`], which is no [`BodyError`]: no decoder takes it for a fault of what it decodes.
pub(crate) struct StoredBody<'a> {
    /// The bytes that were read already, as far as nobody has taken them.
    prefix: Bytes,
    length: Option<u64>,
    rest: BodyRest<'a>,
}

/// The rest of a body, behind its prefix.
enum BodyRest<'a> {
    /// The body is short: all of it was read.
    Read(WholeBody),
    /// The body is long: more than the prefix.
    Unread(Box<AuditedBody<Record<'a, ArchiveChunks>>>),
}

impl<'a> StoredBody<'a> {
    /// Reads the beginning of a body, and all of it if it is short.
    pub(super) fn begin_body(
        message: &StoredMessage,
        record: Record<'a, ArchiveChunks>,
    ) -> Result<Self, RecordError> {
        let length = record
            .announced_length()
            .and_then(|length| message.entity_length(length));
        let digest = payload_digest(&record);
        let mut entity = AuditedBody::new(message, record, digest);
        let mut prefix = Vec::new();
        let fault = read_chunk(&mut entity, &mut prefix, WHOLE + 1)?;
        let prefix = Bytes::from(prefix);
        if prefix.len() > WHOLE {
            return Ok(Self {
                prefix,
                length,
                rest: BodyRest::Unread(Box::new(entity)),
            });
        }
        let verdict = judge_entity(entity)?;
        Ok(Self {
            length: Some(prefix.len() as u64),
            rest: BodyRest::Read(WholeBody {
                bytes: prefix.clone(),
                verdict,
                fault,
            }),
            prefix,
        })
    }

    /// Returns the length of the body, if it is known.
    pub(super) const fn length(&self) -> Option<u64> {
        self.length
    }

    /// Returns the body if it is short.
    pub(super) fn whole(&self) -> Option<WholeBody> {
        match &self.rest {
            BodyRest::Read(whole) => Some(whole.clone()),
            BodyRest::Unread(_) => None,
        }
    }

    /// Sends a range of the body. The digest is checked only if the range is the whole body.
    pub(super) fn send_range(
        mut self,
        range: &Range<u64>,
        answer: &AnswerSender,
    ) -> Result<PayloadVerdict, RecordError> {
        let mut chunk_start = 0;
        while chunk_start < range.end {
            let chunk = self.next_chunk()?;
            if chunk.is_empty() {
                break;
            }
            answer.send_chunk(cut_chunk(&chunk, chunk_start, range))?;
            chunk_start += chunk.len() as u64;
        }
        if range.start > 0 || self.length.is_some_and(|length| range.end < length) {
            return Ok(PayloadVerdict::Unchecked);
        }
        self.judge_payload()
    }

    /// Returns the next bytes; none at the end.
    fn next_chunk(&mut self) -> Result<Bytes, RecordError> {
        if !self.prefix.is_empty() {
            return Ok(std::mem::take(&mut self.prefix));
        }
        let BodyRest::Unread(entity) = &mut self.rest else {
            return Ok(Bytes::new());
        };
        let mut chunk = Vec::with_capacity(CHUNK);
        match read_chunk(entity, &mut chunk, CHUNK)? {
            // A fault that is behind some bytes is met again by the next call.
            Some(fault) if chunk.is_empty() => Err(RecordError::Broken(fault)),
            _ => Ok(chunk.into()),
        }
    }

    /// Reads what is left of the record, and returns what the digest of its payload is worth. A record that is damaged
    /// or shorter than it says is an error.
    pub(crate) fn judge_payload(self) -> Result<PayloadVerdict, RecordError> {
        match self.rest {
            BodyRest::Read(whole) => Ok(whole.verdict),
            BodyRest::Unread(entity) => judge_entity(*entity),
        }
    }
}

impl Read for StoredBody<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if !self.prefix.is_empty() {
            return (&mut self.prefix).reader().read(out);
        }
        let BodyRest::Unread(entity) = &mut self.rest else {
            return Ok(0);
        };
        entity.read(out).map_err(|error| {
            let error = match BodyError::find_within(&error) {
                Some(fault) => RecordError::Broken(fault.to_string()),
                None => error.into(),
            };
            io::Error::other(error)
        })
    }
}

/// Returns the digest that a record names for the payload in it. That of a revisit is of a payload elsewhere.
fn payload_digest(record: &Record<'_, ArchiveChunks>) -> Option<Digest> {
    if record.kind() == WarcType::Revisit {
        return None;
    }
    let digest = record.header().text_of("WARC-Payload-Digest")?;
    digest.trim().parse().ok()
}

fn judge_entity(
    entity: AuditedBody<Record<'_, ArchiveChunks>>,
) -> Result<PayloadVerdict, RecordError> {
    let audit = entity.finish()?;
    let end = audit.block.read_end().map_err(io::Error::from)?;
    if !end.complete {
        let defect = end.defects.first().map(ToString::to_string);
        let words =
            defect.unwrap_or_else(|| "its block does not have the length that it says".to_owned());
        return Err(RecordError::Broken(format!(
            "the record is not whole: {words}"
        )));
    }
    Ok(match audit.verdict {
        Some(PayloadCheck::Matches(_)) => PayloadVerdict::Matches,
        Some(PayloadCheck::Differs { .. }) => PayloadVerdict::Differs,
        Some(PayloadCheck::CannotCheck(_)) | None => PayloadVerdict::Unchecked,
    })
}

/// Reads up to a number of bytes; fewer come only at the end, or before a fault of the body, which is returned.
pub(crate) fn read_chunk(
    body: &mut dyn Read,
    chunk: &mut Vec<u8>,
    most: usize,
) -> Result<Option<String>, RecordError> {
    match body.take(most as u64).read_to_end(chunk) {
        Ok(_) => Ok(None),
        Err(error) => match BodyError::find_within(&error) {
            Some(fault) => Ok(Some(fault.to_string())),
            None => Err(error.into()),
        },
    }
}

/// Returns the part of a chunk of a body, which begins at `chunk_start`, that lies in a range.
pub(super) fn cut_chunk(chunk: &Bytes, chunk_start: u64, range: &Range<u64>) -> Bytes {
    let at = |place: u64| {
        let inside = place.saturating_sub(chunk_start);
        usize::try_from(inside)
            .unwrap_or(usize::MAX)
            .min(chunk.len())
    };
    let start = at(range.start);
    let end = at(range.end);
    chunk.slice(start..end.max(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the part of a body is cut at the wrong byte.
    #[test]
    fn chunks_are_cut_at_their_bytes() {
        let chunk = Bytes::from_static(b"0123456789");
        for (chunk_start, range, expected) in [
            (0, 0..10, "0123456789"),
            (0, 0..u64::MAX, "0123456789"),
            (0, 3..5, "34"),
            (0, 9..10, "9"),
            (0, 10..20, ""),
            (0, Range { start: 4, end: 2 }, ""),
            (100, 0..u64::MAX, "0123456789"),
            (100, 103..105, "34"),
            (100, 0..102, "01"),
            (100, 108..200, "89"),
            (100, 0..100, ""),
        ] {
            let cut = cut_chunk(&chunk, chunk_start, &range);
            assert_eq!(cut, expected, "{chunk_start}, {range:?}");
        }
    }
}
