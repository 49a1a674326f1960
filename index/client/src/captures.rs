//! Queries for captures, as one trait.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use archive_formats::cdx::Capture;
use archive_formats::cdx::query::CaptureQuery;
use tokio_stream::{Stream, StreamExt};

use crate::Answer;
use crate::error::IndexError;

/// An index that can be asked for captures.
pub trait Captures: Send + Sync {
    /// Begins to read the answer to a query.
    fn query<'a>(&'a self, query: &'a CaptureQuery) -> Answer<'a, CaptureStream>;
}

/// Captures as they come. They end only when they are whole: a cut is an error, and nothing follows an error. Dropping them
/// ends the work of the index.
pub struct CaptureStream(Pin<Box<dyn Stream<Item = Result<Capture, IndexError>> + Send>>);

impl CaptureStream {
    /// Makes a stream of captures that ends when it is whole, or with an error.
    pub fn new(captures: impl Stream<Item = Result<Capture, IndexError>> + Send + 'static) -> Self {
        Self(Box::pin(captures))
    }

    /// Reads the next capture; `None` after the last one.
    ///
    /// # Errors
    ///
    /// Fails when the index cannot answer, or the answer was cut.
    pub async fn next(&mut self) -> Result<Option<Capture>, IndexError> {
        self.0.next().await.transpose()
    }
}

impl Stream for CaptureStream {
    type Item = Result<Capture, IndexError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for CaptureStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureStream").finish_non_exhaustive()
    }
}
