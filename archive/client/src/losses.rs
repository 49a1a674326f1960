//! The records of an archive file that lie in damaged bytes.
//!
//! The damaged bytes tell nothing. The rest does: a good copy where one exists, and elsewhere the header of a record
//! that begins before the hole, and the next record behind it. The file is read from its beginning up to the last
//! damaged byte, proven as every read is, out of every replica that has intact bytes.
//!
//! Not promised: the name of a record whose header is lost. The bytes in which such records lie are reported as
//! unknown.

mod stretches;
mod walk;

use std::fmt;
use std::io;
use std::ops::Range;

use archive_model::FileName;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::access::{Access, FileRange, SalvagedPart};
use crate::error::{ClientError, visible_text};

pub use walk::{DamageMap, records_in};

/// The number of parts of a file that may wait to be read.
const WAITING: usize = 2;

/// The records that lie in damaged bytes.
///
/// ```
/// use archive_client::{Access, ClientError, find_losses};
/// use archive_model::FileName;
///
/// /// Prints the records that lie in the first damaged group of a file.
/// async fn tell(archive: &dyn Access, name: &FileName) -> Result<(), ClientError> {
///     let losses = find_losses(archive, name, vec![0..16_384], &|_bytes_read| {}).await?;
///     for record in losses.records {
///         println!("{} {}", record.offset, record.url.unwrap_or_default());
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// The records, in the order of the file.
    pub records: Vec<LostRecord>,
    /// The ranges in which no record can be named: from the last byte of one that can to the first byte of the next.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<Span>,
    /// The number of records beyond those in `records`: they would be too many to keep.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: u64,
    /// Whether the whole file has no WARC or ARC record.
    #[serde(skip_serializing_if = "is_false")]
    pub not_an_archive_file: bool,
}

/// A record in damaged bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LostRecord {
    /// The offset in the file of the record, or of its member in a compressed file.
    pub offset: u64,
    /// The number of bytes that the record takes in the file, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// The type of the record, as WARC names it.
    #[serde(rename = "type")]
    pub kind: String,
    /// The URI that was captured in the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The date of the capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The identifier of the record; records of ARC files have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Whether every byte of the record is damaged.
    pub whole: bool,
}

/// A range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The offset of the first byte.
    pub start: u64,
    /// The offset behind the last byte.
    pub end: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_false(it: &bool) -> bool {
    !*it
}

/// Shows the record for people: `partly offset 1234 response 2026-… http://… <urn:…>`.
impl fmt::Display for LostRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = if self.whole { "wholly" } else { "partly" };
        write!(
            f,
            "{whole}  offset {}  {}",
            self.offset,
            visible_text(&self.kind)
        )?;
        for value in [&self.date, &self.url].into_iter().flatten() {
            write!(f, "  {}", visible_text(value))?;
        }
        match &self.id {
            Some(id) => write!(f, "  {}", visible_text(id)),
            None => Ok(()),
        }
    }
}

/// The parts of a file as they come from the archive.
struct PartReceiver(mpsc::Receiver<Option<SalvagedPart>>);

impl Iterator for PartReceiver {
    type Item = io::Result<SalvagedPart>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.0.blocking_recv() {
            Some(Some(part)) => Some(Ok(part)),
            Some(None) => None,
            None => Some(Err(io::ErrorKind::UnexpectedEof.into())),
        }
    }
}

/// Returns the records of an archived file in byte `ranges` of it. `watch` is called with the offset up to which the
/// file was read.
///
/// The file is read only as far as needed. Bytes that are damaged in one replica come from another.
///
/// # Errors
///
/// Fails if the file cannot be salvaged up to the last damaged byte.
pub async fn find_losses<A: Access + ?Sized>(
    access: &A,
    name: &FileName,
    ranges: Vec<Range<u64>>,
    watch: &(dyn Fn(u64) + Send + Sync),
) -> Result<Losses, ClientError> {
    if ranges.iter().all(Range::is_empty) {
        return Ok(Losses::default());
    }
    let mut salvage = access.salvage(&FileRange::whole_file(name.clone())).await?;
    let map = DamageMap::new(name, salvage.range.clone(), ranges);
    let (parts, received) = mpsc::channel(WAITING);
    let looked = spawn_blocking(move || records_in(PartReceiver(received), &map));
    let mut at = salvage.range.start;
    let ended = loop {
        let part = match salvage.next().await {
            Ok(part) => part,
            Err(error) => break Err(error),
        };
        let is_last = part.is_none();
        at = match &part {
            Some(SalvagedPart::Bytes(bytes)) => at + bytes.len() as u64,
            Some(SalvagedPart::Hole(hole)) => hole.end,
            None => at,
        };
        // The receiver was dropped: the reader needs no more parts.
        if parts.send(part).await.is_err() || is_last {
            break Ok(());
        }
        watch(at);
    };
    drop(parts);
    let found = looked.await;
    ended?;
    match found {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(error)) => Err(ClientError::Bug(format!(
            "{name}: what was proven cannot be read: {error}"
        ))),
        Err(error) => Err(ClientError::Bug(format!(
            "{name}: looking for records ended: {error}"
        ))),
    }
}

#[cfg(test)]
mod tests;
