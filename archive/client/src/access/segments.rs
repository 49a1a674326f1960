//! The bytes of a reading: segments as they come, each proven against the admitted root before a byte is handed on.

use std::collections::VecDeque;
use std::ops::Range;

use archive_model::{FileContent, FileName, GROUP_SIZE};
use archive_proof::{Admission, DecodeError, decode_ranges};
use archive_rpc::StepReader;
use bytes::Bytes;
use proto_archive::wire::get_response::Step;
use proto_archive::wire::{GetResponse, Segment};

use crate::error::ClientError;

/// A segment that was proven.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// The bytes of the segment that are wanted.
    pub(super) bytes: Bytes,
    /// The range of bytes that the segment proves: whole groups.
    pub(super) range: Range<u64>,
    /// The segment as it came.
    pub(super) encoded: Bytes,
}

/// The bytes that must come: everything in the range, widened to whole groups, in order and without a gap.
pub(super) struct ExpectedRange {
    name: FileName,
    content: FileContent,
    /// The range of bytes that are wanted.
    wanted: Range<u64>,
    /// The range of bytes that are still to come, from a group's first byte to a group's last.
    rest: Range<u64>,
}

impl ExpectedRange {
    pub(super) fn new(admission: &Admission, wanted: Range<u64>) -> Self {
        let end = wanted.end.div_ceil(GROUP_SIZE).saturating_mul(GROUP_SIZE);
        Self {
            name: admission.name.clone(),
            content: admission.content(),
            rest: wanted.start - wanted.start % GROUP_SIZE..end.min(admission.size),
            wanted,
        }
    }

    /// Skips `hole`, a range that no replica has, and returns the part of it that was wanted.
    pub(super) fn skip_hole(&mut self, hole: &Range<u64>) -> Result<Range<u64>, ClientError> {
        let Range { start, end } = self.rest;
        // A hole consists of whole groups, or ends with the range that was asked for.
        let begins = hole.start == start || (start < hole.start && hole.start == self.wanted.start);
        let ends =
            hole.end == end || hole.end == self.wanted.end || hole.end.is_multiple_of(GROUP_SIZE);
        if !begins || !ends || hole.start >= hole.end || hole.end > end {
            return Err(self.untrusted_answer(&format!(
                "a hole from {} to {} does not fit; {end} is the end",
                hole.start, hole.end
            )));
        }
        self.rest.start = if hole.end == self.wanted.end {
            end
        } else {
            hole.end
        };
        Ok(hole.start.max(self.wanted.start)..hole.end.min(self.wanted.end))
    }

    /// Proves a segment and returns the part of it that is wanted.
    pub(super) fn accept_segment(&mut self, segment: &Segment) -> Result<Piece, ClientError> {
        let Segment {
            offset,
            length,
            ref encoded,
        } = *segment;
        if self.content.size == 0 && offset == 0 && length == 0 {
            return self.prove(0..0, encoded).map(|bytes| Piece {
                bytes,
                range: 0..0,
                encoded: encoded.clone(),
            });
        }
        let Range {
            start: expected,
            end,
        } = self.rest;
        if offset != expected {
            return Err(self.untrusted_answer(&format!(
                "the next segment should begin at {expected}, and begins at {offset}"
            )));
        }
        let ends = offset.checked_add(length).filter(|last| *last <= end);
        let whole = |last: &u64| last.is_multiple_of(GROUP_SIZE) || *last == end;
        let Some(last) = ends.filter(whole).filter(|_| length > 0) else {
            return Err(self.untrusted_answer(&format!(
                "a segment at {offset} of {length} bytes does not fit; {end} is the end"
            )));
        };
        let bytes = self.prove(offset..last, encoded)?;
        self.rest.start = last;
        let within = |position: u64| {
            let inner = position.clamp(offset, last) - offset;
            usize::try_from(inner).unwrap_or(bytes.len())
        };
        let bytes = bytes.slice(within(self.wanted.start)..within(self.wanted.end));
        Ok(Piece {
            bytes,
            range: offset..last,
            encoded: encoded.clone(),
        })
    }

    fn prove(&self, range: Range<u64>, encoded: &[u8]) -> Result<Bytes, ClientError> {
        // Every byte is in the encoding, so that a peer cannot make us reserve more than it sent.
        let room = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let mut bytes = Vec::with_capacity(room.min(encoded.len()));
        let ranges = std::slice::from_ref(&range);
        decode_ranges(encoded, self.content, ranges, |_offset, proven| {
            bytes.extend_from_slice(proven);
            Ok(())
        })
        .map_err(|error: DecodeError| self.untrusted_answer(&error.to_string()))?;
        Ok(bytes.into())
    }

    pub(super) fn untrusted_answer(&self, reason: &str) -> ClientError {
        ClientError::Untrusted(format!(
            "{}: after byte {}: {reason}",
            self.name, self.rest.start
        ))
    }

    pub(super) fn check_complete(&self) -> Result<(), ClientError> {
        let name = &self.name;
        let rest = &self.rest;
        if rest.start < rest.end {
            return Err(ClientError::Unavailable(format!(
                "{name}: the answer ends at byte {} of {}",
                rest.start, rest.end
            )));
        }
        Ok(())
    }
}

impl StepReader for ExpectedRange {
    type Message = GetResponse;
    type Item = Piece;
    type Error = ClientError;

    fn read(&mut self, message: GetResponse, out: &mut VecDeque<Piece>) -> Result<(), ClientError> {
        let Some(Step::Segment(segment)) = message.step else {
            return Err(self.untrusted_answer("something comes that is no segment"));
        };
        let piece = self.accept_segment(&segment)?;
        // Only the segment of an empty file has no wanted byte: no wanted range of another file is empty, and each
        // group that must come has a byte of it. Nothing is lost: what an empty file has is in its admission, and no
        // proof is of no bytes.
        if !piece.bytes.is_empty() {
            out.push_back(piece);
        }
        Ok(())
    }

    fn end(&mut self, _out: &mut VecDeque<Piece>) -> Result<(), ClientError> {
        self.check_complete()
    }
}
