//! The admin data and the audit trail as lines of JSON, for operators.

use archive_rpc::Idle;
use bytes::Bytes;
use proto_archive::wire::preservation_client::PreservationClient;
use proto_archive::wire::{ExportRequest, ExportResponse};
use tokio_stream::StreamExt;
use tonic::Streaming;
use tonic::transport::Channel;

use crate::error::ClientError;
use crate::limits::ClientLimits;

/// The largest message that is read, in bytes.
const LARGEST_MESSAGE: usize = 32 << 20;

/// How the last line begins.
const END: &[u8] = b"{\"end\":";

/// An export that comes. Whoever restores it compares its digest; here only its end is looked for.
#[derive(Debug)]
pub struct AdminExport {
    stream: Idle<Streaming<ExportResponse>>,
    /// The beginning of the last line that was seen.
    last: Vec<u8>,
    is_line_done: bool,
}

impl AdminExport {
    /// Asks the repository at the other end of `channel` for it.
    pub async fn begin(channel: Channel, limits: ClientLimits) -> Result<Self, ClientError> {
        let mut client =
            PreservationClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE);
        let asked = tokio::time::timeout(limits.answer(), client.export(ExportRequest {}));
        let answer = asked
            .await
            .map_err(|_late| ClientError::TimedOut("the archive does not answer".to_owned()))?
            .map_err(|status| ClientError::from_status(&status))?;
        Ok(Self {
            stream: Idle::new(answer.into_inner(), limits.answer()),
            last: Vec::new(),
            is_line_done: true,
        })
    }

    /// The next bytes; none: it is complete.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        match self.stream.next().await {
            Some(Ok(message)) => {
                self.look(&message.lines);
                Ok(Some(message.lines))
            }
            Some(Err(status)) => Err(ClientError::from_status(&status)),
            None if self.is_line_done && self.last == END => Ok(None),
            None => Err(ClientError::Unavailable("the export was cut".to_owned())),
        }
    }

    fn look(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.is_line_done {
                self.last.clear();
            }
            let room = END.len().saturating_sub(self.last.len()).min(part.len());
            self.last
                .extend_from_slice(part.get(..room).unwrap_or_default());
            self.is_line_done = part.ends_with(b"\n");
        }
    }
}
