//! Queries for captures, as one trait.

use archive_formats::cdx::Capture;
use archive_formats::cdx::query::CaptureQuery;
use archive_rpc::Steps;

use crate::Answer;
use crate::error::IndexError;

/// An index that can be asked for captures.
pub trait Captures: Send + Sync {
    /// Begins to read the answer to a query.
    fn query<'a>(&'a self, query: &'a CaptureQuery) -> Answer<'a, CaptureStream>;
}

/// Captures as they come. They end only when they are whole: a cut is an error, and nothing follows an error. Dropping
/// them ends the work of the index.
pub type CaptureStream = Steps<Capture, IndexError>;
