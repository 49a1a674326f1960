//! The rest of a damaged file: every byte that some replica has intact, proven, and the ranges that none has.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::pin::Pin;

use archive_model::FileName;
use archive_proof::{Admission, Envelope};
use archive_rpc::StepReader;
use bytes::Bytes;
use proto_archive::wire::SalvageResponse;
use proto_archive::wire::get_response::Head;
use proto_archive::wire::salvage_response::Step;
use serde::Serialize;
use tokio_stream::{Stream, StreamExt};
use tonic::Status;

use super::segments::ExpectedRange;
use crate::error::ClientError;

/// A range that no replica has intact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Hole {
    /// The offset of the first byte.
    pub start: u64,
    /// The offset behind the last byte.
    pub end: u64,
    /// Whether the range may be good in a replica that could not be read now.
    pub unknown: bool,
}

/// The next part of a salvage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SalvagedPart {
    /// Proven bytes of the file.
    Bytes(Bytes),
    /// A range whose bytes no replica has intact.
    Hole(Hole),
}

/// A file that is being salvaged: bytes and holes, in order, which together are the range; or an error, and nothing
/// after it.
pub struct Salvage {
    /// The admission of the file; a trusted key signed it.
    pub admission: Admission,
    /// The admission in its signed form, verbatim.
    pub envelope: Envelope,
    /// The range that is salvaged: the part of the wanted range that the file has.
    pub range: Range<u64>,
    parts: Pin<Box<dyn Stream<Item = Result<SalvagedPart, ClientError>> + Send>>,
}

impl Salvage {
    /// Makes a salvage of `parts` that are in order, and end with the range or with an error.
    pub fn new(
        admission: Admission,
        envelope: Envelope,
        range: Range<u64>,
        parts: impl Stream<Item = Result<SalvagedPart, ClientError>> + Send + 'static,
    ) -> Self {
        Self {
            admission,
            envelope,
            range,
            parts: Box::pin(parts),
        }
    }

    /// Returns the next part; `None` once the range is complete.
    ///
    /// # Errors
    ///
    /// Fails if the call fails, or if the archive sends what does not prove itself or not all of the range.
    pub async fn next(&mut self) -> Result<Option<SalvagedPart>, ClientError> {
        self.parts.next().await.transpose()
    }
}

impl fmt::Debug for Salvage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Salvage")
            .field("admission", &self.admission)
            .field("range", &self.range)
            .finish_non_exhaustive()
    }
}

/// Returns the head, with which the answer must begin.
pub(super) fn read_salvage_head(
    name: &FileName,
    first: Option<Result<SalvageResponse, Status>>,
) -> Result<Head, ClientError> {
    match first {
        Some(Ok(SalvageResponse {
            step: Some(Step::Head(head)),
        })) => Ok(head),
        Some(Ok(_)) => Err(ClientError::Untrusted(format!(
            "{name}: the archive does not begin with the admission"
        ))),
        Some(Err(status)) => Err(ClientError::from_status(&status)),
        None => Err(ClientError::Unavailable(format!(
            "{name}: the archive ended the call at once"
        ))),
    }
}

/// A reader of segments and holes, which checks that each is the next part of the range.
pub(super) struct Parts(ExpectedRange);

impl Parts {
    pub(super) fn new(admission: &Admission, wanted: Range<u64>) -> Self {
        Self(ExpectedRange::new(admission, wanted))
    }
}

impl StepReader for Parts {
    type Message = SalvageResponse;
    type Item = SalvagedPart;
    type Error = ClientError;

    fn read(
        &mut self,
        message: SalvageResponse,
        out: &mut VecDeque<SalvagedPart>,
    ) -> Result<(), ClientError> {
        match message.step {
            Some(Step::Segment(segment)) => {
                let bytes = self.0.accept_segment(&segment)?.bytes;
                out.extend((!bytes.is_empty()).then_some(SalvagedPart::Bytes(bytes)));
            }
            Some(Step::Hole(hole)) => {
                let Range { start, end } = self.0.skip_hole(&(hole.start..hole.end))?;
                let unknown = hole.unknown;
                let hole = Hole {
                    start,
                    end,
                    unknown,
                };
                out.extend((start < end).then_some(SalvagedPart::Hole(hole)));
            }
            _ => {
                let what = "something comes that is neither a segment nor a hole";
                return Err(self.0.untrusted_answer(what));
            }
        }
        Ok(())
    }

    fn end(&mut self, _out: &mut VecDeque<SalvagedPart>) -> Result<(), ClientError> {
        self.0.check_complete()
    }
}
