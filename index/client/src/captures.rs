//! Queries for captures, as one trait.

use archive_formats::cdx::Capture;
use archive_formats::cdx::query::CaptureQuery;
use archive_rpc::CallSteps;

use crate::IndexFuture;
use crate::error::IndexCallError;

/// An index that can be asked for captures.
pub trait CaptureSearch: Send + Sync {
    /// Begins to read the answer to a query.
    fn query<'a>(&'a self, query: &'a CaptureQuery) -> IndexFuture<'a, CaptureStream>;
}

/// Captures as they come. They end only when they are whole: a cut is an error, and nothing follows an error. Dropping
/// them ends the work of the index.
pub type CaptureStream = CallSteps<Capture, IndexCallError>;
