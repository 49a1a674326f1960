//! The index of captures as its users see it.
//!
//! Owns this end of `holdfast.index.v1`: programs that look captures up hold a [`CaptureSearch`], and [`IndexClient`] is one
//! over gRPC, with the verbs of operators beside it.
//!
//! The rooms, in reading order: [`captures`] is the trait, [`client`] speaks gRPC, [`error`] says what to do about a
//! failure.
//!
//! ```
//! use archive_formats::cdx::query::CaptureQuery;
//! use index_client::{CaptureSearch, IndexCallError};
//!
//! /// Counts captures, of an index far away or of one in a test.
//! async fn count(index: &dyn CaptureSearch, query: &CaptureQuery) -> Result<u64, IndexCallError> {
//!     let mut captures = index.query(query).await?;
//!     let mut count = 0;
//!     while captures.next().await?.is_some() {
//!         count += 1;
//!     }
//!     Ok(count)
//! }
//! ```
//!
//! Invariants:
//! - an answer that was cut is an error, never a shorter answer;
//! - every wait has a limit, and memory is bounded: the index sends no faster than its answers are read.
//!
//! With the feature `fake`, it has an index in memory for the tests of code that asks one.
//!
//! Not promised: that a capture can be read. Its file may be lost, damaged, or on a machine that is down.

#![warn(missing_docs)]

pub mod captures;
pub mod client;
pub mod error;
#[cfg(feature = "fake")]
pub mod fake;

pub use captures::{CaptureSearch, CaptureStream};
pub use client::{ExportStream, IndexClient, IndexLimits};
pub use error::IndexCallError;
#[cfg(feature = "fake")]
pub use fake::FakeIndex;
pub use proto_index::export::{ExportFormat, InvalidExportFormat};
pub use proto_index::sets::{ImportFault, ImportOutcome, InvalidSetName, SetName};
pub use proto_index::status::{Comparison, FollowState, IndexStatus, ParkedFile, SetStatus};

use std::pin::Pin;

/// The answer of an index, once it comes. Dropping it gives the call up.
pub type IndexFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, IndexCallError>> + Send + 'a>>;
