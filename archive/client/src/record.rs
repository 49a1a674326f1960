//! Reads a record of an archived file, by the offset at which it begins, and proves it.
//!
//! The caller need not know the length of the record: the file is read from the offset on, in ranges that grow, until
//! the record ends. A caller who gives a length gets a record of up to 1 MiB in one range, and no more than it.
//! Every byte is proven before it is read as a record. The bytes are handed out as they are archived: of a gzip member,
//! the compressed ones.
//!
//! Not promised: that the record is valid. Only its end is looked for.

use std::io::Write;
use std::ops::Range;

use archive_formats::record_end::{NoRecord, RecordEnd, RecordKind, RecordProgress};
use archive_model::{FileName, GROUP_SIZE, ReplicaId};
use archive_proof::ranges::DecodeError;
use archive_proof::{Admission, Envelope, ProofWriter, RecordProofError};
use bytes::Bytes;

use crate::access::{Access, FileRange, FileStream};
use crate::error::ClientError;

/// The number of bytes of the first range: most records are smaller.
const FIRST: u64 = 64 * 1024;

/// The most bytes of a range where the end is not known.
const MOST: u64 = 16 * 1024 * 1024;

/// The most bytes of the first range, however long the caller says that the record is.
const MOST_FIRST: u64 = 1024 * 1024;

/// A record that is being read: its bytes come until the record ends, or with an error.
///
/// ```
/// use archive_client::{Access, ClientError, fetch_record};
/// use archive_model::FileName;
///
/// /// Reads the record of a file that begins at `offset`.
/// async fn read(archive: &dyn Access, name: &FileName, offset: u64) -> Result<Vec<u8>, ClientError> {
///     let mut record = fetch_record(archive, name, offset, None).await?;
///     let mut bytes = Vec::new();
///     while let Some(piece) = record.next().await? {
///         bytes.extend_from_slice(&piece);
///     }
///     Ok(bytes)
/// }
/// ```
#[derive(Debug)]
pub struct RecordStream<'a, A: ?Sized> {
    access: &'a A,
    reading: FileStream,
    replica: Option<ReplicaId>,
    start: u64,
    /// The offset behind the last byte that was handed out.
    at: u64,
    asked: u64,
    end: RecordEnd,
    is_whole: bool,
}

/// Begins to read the record of `name` that begins at `offset`, from one replica or from any.
///
/// # Errors
///
/// Fails if the archive does not give the file, or the file does not have this offset.
pub async fn fetch_record<'a, A: Access + ?Sized>(
    access: &'a A,
    name: &FileName,
    offset: u64,
    replica: Option<ReplicaId>,
) -> Result<RecordStream<'a, A>, ClientError> {
    begin(access, name, offset, FIRST, replica).await
}

/// Begins to read a record as [`fetch_record`] does, from any replica. Asks first for `length` bytes (at most
/// 1 MiB), a number from an index. The number has no other effect: the record ends where its own bytes say.
///
/// # Errors
///
/// Fails if the archive does not give the file, or the file does not have this offset.
pub async fn record_of_length<'a, A: Access + ?Sized>(
    access: &'a A,
    name: &FileName,
    offset: u64,
    length: u64,
) -> Result<RecordStream<'a, A>, ClientError> {
    let first = length.clamp(1, MOST_FIRST);
    begin(access, name, offset, first, None).await
}

async fn begin<'a, A: Access + ?Sized>(
    access: &'a A,
    name: &FileName,
    offset: u64,
    first: u64,
    replica: Option<ReplicaId>,
) -> Result<RecordStream<'a, A>, ClientError> {
    let wanted = FileRange {
        name: name.clone(),
        start: offset,
        end: upto(offset, first),
        replica: replica.clone(),
    };
    Ok(RecordStream {
        reading: access.get(&wanted).await?,
        access,
        replica,
        start: offset,
        at: offset,
        asked: first.max(FIRST),
        end: RecordEnd::new(),
        is_whole: false,
    })
}

impl<A: Access + ?Sized> RecordStream<'_, A> {
    /// Returns the next bytes; `None` once the record is complete.
    ///
    /// # Errors
    ///
    /// Fails if the bytes cannot be had or do not prove themselves, if no record begins at the offset, or if the record
    /// is broken.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        while !self.is_whole {
            let Some(mut bytes) = self.reading.next().await? else {
                self.go_on().await?;
                continue;
            };
            let seen = self.end.push(&bytes);
            if let RecordProgress::Ends(used) = seen.map_err(|error| self.none(&error))? {
                self.is_whole = true;
                bytes.truncate(used);
            }
            self.at += bytes.len() as u64;
            if !bytes.is_empty() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    /// Returns the range of the file that was handed out so far.
    pub const fn range(&self) -> Range<u64> {
        self.start..self.at
    }

    /// Returns the kind of the record; known once the first bytes have come.
    pub fn kind(&self) -> Option<RecordKind> {
        self.end.kind()
    }

    /// Returns the admission of the file that the record is in.
    pub const fn admission(&self) -> &Admission {
        &self.reading.admission
    }

    /// Returns the admission in its signed form.
    pub const fn envelope(&self) -> &Envelope {
        &self.reading.envelope
    }

    /// Asks for the range that follows, or checks that the file may end here.
    async fn go_on(&mut self) -> Result<(), ClientError> {
        let Admission {
            name, size, root, ..
        } = &self.reading.admission;
        if self.at >= *size {
            self.end.end_of_file().map_err(|error| self.none(&error))?;
            self.is_whole = true;
            return Ok(());
        }
        self.asked = self.asked.saturating_mul(2).min(MOST);
        let more = self.end.remaining().unwrap_or(self.asked);
        let wanted = FileRange {
            name: name.clone(),
            start: self.at,
            end: upto(self.at, more),
            replica: self.replica.clone(),
        };
        let next = self.access.get(&wanted).await?;
        if next.admission.root != *root {
            return Err(ClientError::Untrusted(format!(
                "{name}: the archive shows two admissions of different content"
            )));
        }
        self.reading = next;
        Ok(())
    }

    fn none(&self, error: &NoRecord) -> ClientError {
        let name = &self.reading.admission.name;
        let start = self.start;
        match error {
            NoRecord::Nothing(_) => ClientError::Invalid(format!(
                "{name}: at byte {start}: {error}; take the offset from an index"
            )),
            NoRecord::Broken { .. } => ClientError::Damaged(format!(
                "{name}: at byte {start}: {error}. So it was archived; `holdfast get {name} --range {start}-` reads the \
                 bytes as they are"
            )),
        }
    }
}

/// Returns the end of the group in which `more` bytes from `at` on end; `None` if it exceeds `u64`.
fn upto(at: u64, more: u64) -> Option<u64> {
    at.checked_add(more)?
        .div_ceil(GROUP_SIZE)
        .checked_mul(GROUP_SIZE)
}

/// Writes the record proof of the bytes in `range` to `out`: its holder needs neither the archive nor trust in us.
///
/// # Errors
///
/// Fails if the bytes cannot be had or do not prove themselves, or if the proof cannot be written.
pub async fn prove_record<A, W>(
    access: &A,
    name: &FileName,
    range: Range<u64>,
    out: W,
) -> Result<W, ClientError>
where
    A: Access + ?Sized,
    W: Write,
{
    let wanted = FileRange {
        start: range.start,
        end: Some(range.end),
        ..FileRange::whole_file(name.clone())
    };
    let mut slices = access.slices(&wanted).await?;
    let failed = |error: RecordProofError| match error {
        RecordProofError::Slice(DecodeError::Sink(source)) => ClientError::Source {
            what: format!("{name}: the proof cannot be written"),
            source,
        },
        other => ClientError::Untrusted(format!("{name}: {other}")),
    };
    let writer = ProofWriter::new(out, &slices.envelope, &slices.admission, &range);
    let mut writer = writer.map_err(failed)?;
    while let Some(slice) = slices.next().await? {
        let added = writer.add_range(slice.range, slice.encoded.as_ref());
        added.map_err(failed)?;
    }
    writer.finish().map_err(failed)
}
