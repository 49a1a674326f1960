//! The archive as its users see it.
//!
//! Owns this end of the services `Ingest`, `Access`, `Preservation` and `Batch`, and the file with the addresses of the
//! archive and the identities of the client ([`ClientFile`]). Harvesters hold an [`Ingest`], readers an [`Access`],
//! those who look after the archive a [`Preservation`], those who run jobs over it a [`Batch`]; [`Depositor`],
//! [`ArchiveReader`], [`Keeper`] and [`Researcher`] are these traits over gRPC.
//!
//! Invariants:
//! - a store is a success only with a receipt that a trusted key signed, for this name, size and content;
//! - a byte is handed out only after it was proven against an admission that a trusted key signed, for this name;
//! - a listing, check or trail that was cut is an error, and an incomplete answer names its gaps;
//! - every wait has a limit, and every answer a bounded size.
//!
//! With the feature `fake`, the crate has an archive in memory for the tests of those who hold these traits.
//!
//! Not promised: anything about an answer without content (a status, a listing): it is as true as the repository, whose
//! certificate was checked. The crate writes no files; receipts and files are handed to the caller.
//!
//! The rooms in reading order:
//!
//! - [`client_file`] (where the archive is, and who one is), [`limits`], `retry` (how long and how often this end
//!   waits);
//! - [`ingest`] (storing a file), [`access`] (reading, listing and salvaging files), [`steps`] (answers that come one
//!   by one);
//! - [`mod@record`] (one record of a file), [`losses`](mod@losses) (the records in damaged bytes);
//! - [`preservation`] (checks, repairs and acts of those who look after the archive), [`batch`] (jobs over its files);
//! - [`archive_status`], [`file_status`] (the nouns of answers), [`error`] (why an answer is missing).
//!
//! ```
//! use archive_client::{Access, ClientError, FileRange};
//! use archive_model::FileName;
//!
//! /// Counts the bytes of a file: each was proven before it is handed out.
//! async fn count(archive: &dyn Access, name: FileName) -> Result<usize, ClientError> {
//!     let mut reading = archive.get(&FileRange::whole_file(name)).await?;
//!     let mut count = 0;
//!     while let Some(bytes) = reading.next().await? {
//!         count += bytes.len();
//!     }
//!     Ok(count)
//! }
//! ```

#![warn(missing_docs)]

pub mod access;
pub mod archive_status;
pub mod batch;
pub mod client_file;
pub mod error;
#[cfg(feature = "fake")]
pub mod fake;
pub mod file_status;
pub mod ingest;
pub mod limits;
pub mod losses;
pub mod preservation;
pub mod record;
mod retry;
pub mod steps;

pub use access::{
    Access, ArchiveReader, Completeness, FeedStep, FileRange, FileStream, HeldReceipt, Hole,
    ListEntry, ListItem, Listing, Salvage, SalvagedPart, Selection, Slice, Slices,
};
pub use archive_status::{ArchiveStatus, Drain, FilesToLeave, ReplicaOverview};
pub use batch::{Batch, Researcher};
pub use client_file::{ClientFile, ClientFileError, ClientIdentity, Endpoints, IdentityName};
pub use error::{ClientError, ErrorClass};
#[cfg(feature = "fake")]
pub use fake::FakeArchive;
pub use file_status::{FileStatus, ReplicaProgress, ReplicaStatus};
pub use ingest::{AnnouncedDigests, Deposit, Depositor, Ingest, StoreEvent, StoredFile};
pub use limits::ClientLimits;
pub use losses::{Losses, LostRecord, Span, find_losses};
pub use preservation::{Keeper, Preservation};
pub use record::{RecordStream, fetch_record, prove_record, record_of_length};
pub use steps::ArchiveSteps;

use std::pin::Pin;

/// A call whose result is still to come. Dropping it cancels the call.
pub type CallFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ClientError>> + Send + 'a>>;
