//! A range of a file as slices that prove themselves to anyone who has the admission.

use std::fmt;
use std::ops::Range;
use std::pin::Pin;

use archive_proof::{Admission, Envelope};
use bytes::Bytes;
use tokio_stream::{Stream, StreamExt};

use crate::error::ClientError;

/// Some groups of a file and their proof: `archive_proof::decode` reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The range of bytes that the slice has: whole groups, or up to the end of the file.
    pub range: Range<u64>,
    /// The encoded slice, which was verified.
    pub encoded: Bytes,
}

/// Slices that follow each other without a gap, and end where the range ends, or with an error.
pub struct Slices {
    /// The admission of the file; a trusted key signed it.
    pub admission: Admission,
    /// The admission in its signed form, verbatim.
    pub envelope: Envelope,
    stream: Pin<Box<dyn Stream<Item = Result<Slice, ClientError>> + Send>>,
}

impl Slices {
    /// Makes slices that were verified, in order, and end with the range or with an error.
    pub fn new(
        admission: Admission,
        envelope: Envelope,
        slices: impl Stream<Item = Result<Slice, ClientError>> + Send + 'static,
    ) -> Self {
        Self {
            admission,
            envelope,
            stream: Box::pin(slices),
        }
    }

    /// Returns the next slice; `None` once the range is complete.
    ///
    /// # Errors
    ///
    /// Fails if the call fails, or if the archive sends what does not prove itself or not all of the range.
    pub async fn next(&mut self) -> Result<Option<Slice>, ClientError> {
        self.stream.next().await.transpose()
    }
}

impl fmt::Debug for Slices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slices")
            .field("admission", &self.admission)
            .finish_non_exhaustive()
    }
}
