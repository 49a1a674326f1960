//! The record proof: some bytes, and everything that proves offline which archived file they stand in, and where.
//!
//! Owns `holdfast-record-proof/1`. It is verified with the file itself and a [`TrustFile`], and nothing else.
//!
//! # FORMAT
//!
//! One line of JSON, ended by one line feed (`0x0A`; the JSON has no other), then a slice up to the end of the
//! file. Nothing is compressed; a record that is a gzip member stands in the slice as the member.
//!
//! ```text
//! {"version":"holdfast-record-proof/1","admission":"{\"payload\":…}","start":123,"end":4567}⏎
//! <slice>
//! ```
//!
//! `admission` is the signed admission of the archived file, a string that holds a DSSE envelope byte for byte
//! ([`crate::envelope`], [`crate::admission`]); in its payload are `name`, `size` and `root`, the BLAKE3 hash of the
//! whole file. `start` is the offset of the first byte that is proven, `end` one past the last; `start < end ≤ size`.
//! Fields that are not known are ignored while the number after the slash in `version` is 1 (`…/1` or `…/1.N`); with
//! any other, the file must not be interpreted. The line is at most 4 MiB long.
//!
//! The slice is of the groups (16384 bytes each, the last may be shorter) that the range touches: from `start` rounded
//! down to a multiple of 16384, up to `end` rounded up to one, at most `size`. It is the tree of [`crate::outboard`],
//! walked from the root, left child before right, only where the groups are:
//! - at a subtree over several groups: its pair, 64 bytes, the values of the left and of the right child; then the left
//!   child if a wanted group is in it; then the right child if one is in it;
//! - at a subtree over one group: the bytes of the group.
//!
//! # How to check it
//!
//! Verify the signature of the envelope with a key that you trust for that archive. Then walk: the first pair must
//! compress to `root` with the ROOT flag, each further pair to the value that the pair above it gives, and each group
//! must hash to its value at its position (sections 2.1 to 2.5 of the BLAKE3 paper). A file of one group has no pair:
//! the slice is the file, and its hash is `root`. After the last group the file must end. The bytes from `start` to
//! `end` are then those of the archived file. Other tools: the slice is what the Rust crate `bao-tree` encodes with a
//! block size of 2⁴ chunks.
//!
//! Not promised: that the range is one record, or a whole one: the bytes themselves show that. Nor that copies exist.

use std::io::{self, BufRead, Read, Write};
use std::ops::Range;

use archive_model::{FileContent, GROUP_SIZE};
use serde::{Deserialize, Serialize};

use crate::admission::{Admission, AdmissionError};
use crate::envelope::Envelope;
use crate::join::{JoinPart, join_records};
use crate::ranges::{DecodeError, decode_ranges};
use crate::trust::TrustFile;
use crate::version::{self, UnknownVersion};

const VERSION: &str = "holdfast-record-proof/1";

/// The longest first line that is read, in bytes: an envelope with every character escaped.
const LONGEST_HEADER: u64 = 4 * 1024 * 1024;

#[derive(Deserialize)]
struct Header {
    admission: Envelope,
    start: u64,
    end: u64,
}

#[derive(Serialize)]
struct HeaderLine<'a> {
    version: &'static str,
    admission: &'a Envelope,
    start: u64,
    end: u64,
}

/// The statement that a record proof proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenRecord {
    /// The admission of the archived file; a trusted key signed it.
    pub admission: Admission,
    /// The range of the bytes in that file.
    pub range: Range<u64>,
}

/// Verifies the record proof in `input`, and passes its bytes to `sink`, ascending, at most 16 KiB at a time.
///
/// Every byte that `sink` got is proven at once; but only when the function returns is it known that nothing is
/// missing. It keeps one group, and the first line, which has a limit: the range may be of any size.
///
/// # Errors
///
/// [`RecordProofError`]: the file is not a record proof, no trusted key signed its admission, the slice does not prove
/// the range, or `sink` does not take the bytes.
pub fn verify_record_proof(
    mut input: impl BufRead,
    trust: &TrustFile,
    mut sink: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<ProvenRecord, RecordProofError> {
    let mut line = Vec::new();
    (&mut input)
        .take(LONGEST_HEADER)
        .read_until(b'\n', &mut line)
        .map_err(|error| RecordProofError::Slice(DecodeError::Read(error)))?;
    if line.pop() != Some(b'\n') {
        return Err(RecordProofError::NoHeader);
    }
    let header: Header = version::parse_versioned::<_, RecordProofError>(&line, VERSION)?;
    let admission = Admission::verify(&header.admission, trust)?;
    let range = header.start..header.end;
    let groups = groups(&range, admission.size)?;
    decode_ranges(input, admission.content(), &[groups], |offset, bytes| {
        let within = |position: u64| {
            let inner = position.saturating_sub(offset);
            usize::try_from(inner).map_or(bytes.len(), |inner| inner.min(bytes.len()))
        };
        match bytes.get(within(range.start)..within(range.end)) {
            Some(wanted) if !wanted.is_empty() => sink(wanted),
            _ => Ok(()),
        }
    })?;
    Ok(ProvenRecord { admission, range })
}

/// Returns the whole groups that hold `range`, in bytes.
fn groups(range: &Range<u64>, size: u64) -> Result<Range<u64>, RecordProofError> {
    let Range { start, end } = *range;
    if start >= end || end > size {
        return Err(RecordProofError::Range { start, end, size });
    }
    let past = end.div_ceil(GROUP_SIZE).saturating_mul(GROUP_SIZE);
    Ok(start - start % GROUP_SIZE..past.min(size))
}

/// A writer of a record proof.
#[derive(Debug)]
pub struct ProofWriter<W> {
    out: W,
    content: FileContent,
    first: u64,
    /// The range of bytes that are still to come: whole groups.
    rest: Range<u64>,
}

impl<W: Write> ProofWriter<W> {
    /// Begins the proof of the bytes in `range` of the file that `envelope` admits; `admission` is the content of the
    /// envelope.
    ///
    /// # Errors
    ///
    /// [`RecordProofError`] if the file has no such range, or `out` does not take the first line.
    pub fn new(
        mut out: W,
        envelope: &Envelope,
        admission: &Admission,
        range: &Range<u64>,
    ) -> Result<Self, RecordProofError> {
        let rest = groups(range, admission.size)?;
        let mut line = serde_json::to_vec(&HeaderLine {
            version: VERSION,
            admission: envelope,
            start: range.start,
            end: range.end,
        })?;
        line.push(b'\n');
        out.write_all(&line)
            .map_err(|error| RecordProofError::Slice(DecodeError::Sink(error)))?;
        Ok(Self {
            out,
            content: admission.content(),
            first: rest.start,
            rest,
        })
    }

    /// Returns the range of bytes that are still to come, from a group's first to a group's last, or the file's.
    pub fn rest_range(&self) -> Range<u64> {
        self.rest.clone()
    }

    /// Adds the slice of the next bytes, which are whole groups and must follow those before.
    ///
    /// # Errors
    ///
    /// [`RecordProofError`] if the slice is not that of the next groups, does not prove them, or cannot be read or
    /// written.
    pub fn add_range(
        &mut self,
        range: Range<u64>,
        encoded: impl Read,
    ) -> Result<(), RecordProofError> {
        let Range { start, end } = range;
        let whole = end.is_multiple_of(GROUP_SIZE) || end == self.content.size;
        if start != self.rest.start || end <= start || end > self.rest.end || !whole {
            let Range {
                start: expected,
                end: last,
            } = self.rest;
            return Err(RecordProofError::Order {
                start,
                end,
                expected,
                last,
            });
        }
        let part = JoinPart {
            content: self.content,
            range,
        };
        join_records(encoded, &part, self.first, &mut self.out)?;
        self.rest.start = end;
        Ok(())
    }

    /// Ends the proof. All groups must have been added.
    ///
    /// # Errors
    ///
    /// [`RecordProofError`] if groups are missing, or the rest cannot be written.
    pub fn finish(mut self) -> Result<W, RecordProofError> {
        if !self.rest.is_empty() {
            return Err(RecordProofError::Slice(DecodeError::Cut));
        }
        self.out
            .flush()
            .map_err(|error| RecordProofError::Slice(DecodeError::Sink(error)))?;
        Ok(self.out)
    }
}

/// The reason why a file proves nothing, or a proof cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum RecordProofError {
    /// The file has no line at its beginning.
    #[error(
        "this is not a record proof, or it was cut in its first line: write it again with `holdfast record --proof`"
    )]
    NoHeader,
    /// The first line is not the JSON of a record proof.
    #[error("the record proof cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// The document is of another kind or version.
    #[error("the record proof cannot be read: {0}")]
    Version(#[from] UnknownVersion),
    /// The admission in the proof does not count.
    #[error("in the record proof, {0}")]
    Admission(#[from] AdmissionError),
    /// The range of the proof is not in the admitted file.
    #[error(
        "the record proof is of bytes {start} to {end} of a file of {size} bytes: there are no such bytes; distrust it"
    )]
    Range {
        /// The offset of the first byte of the range.
        start: u64,
        /// The offset behind the last byte of the range.
        end: u64,
        /// The admitted size of the file.
        size: u64,
    },
    /// A slice does not follow the one before.
    #[error(
        "a slice of bytes {start} to {end} does not follow; {expected} to {last} are still to come"
    )]
    Order {
        /// The offset of the first byte of the slice.
        start: u64,
        /// The offset behind the last byte of the slice.
        end: u64,
        /// The offset of the first byte that is missing.
        expected: u64,
        /// The offset behind the last byte that is missing.
        last: u64,
    },
    /// The slice does not prove the bytes.
    #[error("the record proof does not hold: {0}")]
    Slice(#[from] DecodeError),
}

#[cfg(test)]
mod tests;
