//! Uploads into one node: open, bytes, and the admission or the order to forget them.
//!
//! # Errors
//! All functions fail with a [`CallError`] if the node cannot be reached or refuses the upload.

use archive_model::{FileCopy, FileName, NodeId, Root, UploadId};
use archive_rpc::{CallError, CallErrorKind};
use bytes::Bytes;
use proto_archive::wire::upload_request::{Close, Forget, Open, Start, Step};
use proto_archive::wire::upload_response::Step as Answer;
use proto_archive::{convert as fields, wire};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::dialer::{Lane, LaneUse};

/// A node that was chosen for an upload.
#[derive(Clone, Debug)]
pub struct ChosenNode {
    /// The node.
    pub node: NodeId,
    pub(super) lane: Lane,
}

/// The answer of a node to an opened upload.
#[derive(Debug)]
pub enum UploadOpening {
    /// The node accepts bytes, and may have some already.
    Ready(Offer),
    /// The node has the file already.
    Stored(FileCopy),
}

/// The bytes of an upload that a node has already.
#[derive(Debug)]
pub struct Offer {
    /// The number of bytes.
    pub offset: u64,
    /// The root of these bytes.
    pub root: Root,
    upload: ReplicaUpload,
}

impl Offer {
    /// Continues after the first `offset` bytes; the node forgets those beyond.
    pub async fn start_upload(self, offset: u64) -> Result<ReplicaUpload, CallError> {
        send(&self.upload.steps, Step::Start(Start { offset })).await?;
        Ok(self.upload)
    }
}

/// An upload into one node.
#[derive(Debug)]
pub struct ReplicaUpload {
    steps: mpsc::Sender<wire::UploadRequest>,
    answers: Streaming<wire::UploadResponse>,
    _use: LaneUse,
}

impl ChosenNode {
    /// Opens the upload, for a sender that can continue at each of `points`; without any, the bytes of an earlier
    /// stream are forgotten.
    pub async fn open_offer(
        &self,
        upload: &UploadId,
        name: &FileName,
        size: u64,
        points: Vec<u64>,
    ) -> Result<UploadOpening, CallError> {
        let (steps, requests) = mpsc::channel(4);
        let open = Open {
            upload: upload.to_string(),
            name: name.to_string(),
            size,
            points,
        };
        send(&steps, Step::Open(open)).await?;
        let mut client = self.lane.client.clone();
        let mut answers = client
            .upload(ReceiverStream::new(requests))
            .await?
            .into_inner();
        match next(&mut answers).await? {
            Answer::Stored(entry) => Ok(UploadOpening::Stored(fields::file_copy(&entry)?)),
            Answer::Ready(ready) => Ok(UploadOpening::Ready(Offer {
                offset: ready.offset,
                root: fields::read_root("root", &ready.root)?,
                upload: ReplicaUpload {
                    steps,
                    answers,
                    _use: self.lane.note_use(),
                },
            })),
        }
    }
}

impl ReplicaUpload {
    /// Sends bytes, as fast as the node accepts them.
    pub async fn send_bytes(&mut self, bytes: Bytes) -> Result<(), CallError> {
        match send(&self.steps, Step::Data(bytes)).await {
            Ok(()) => Ok(()),
            // The stream broke; the answer of the node has the reason.
            Err(broken) => Err(self.why().await.unwrap_or(broken)),
        }
    }

    /// Tells the node that the upload will not be continued, and waits until the node has forgotten it.
    pub async fn forget_upload(mut self) -> Result<(), CallError> {
        send(&self.steps, Step::Forget(Forget {})).await?;
        match self.answers.message().await? {
            None => Ok(()),
            Some(_) => {
                Err(CallErrorKind::Internal.to_error("the node answered `forget` with a message"))
            }
        }
    }

    /// Sends the admission and waits until the node has committed.
    pub async fn close_upload(mut self, admission: &str) -> Result<FileCopy, CallError> {
        let close = Close {
            admission: admission.to_owned(),
        };
        if let Err(broken) = send(&self.steps, Step::Close(close)).await {
            return Err(self.why().await.unwrap_or(broken));
        }
        match next(&mut self.answers).await? {
            Answer::Stored(entry) => Ok(fields::file_copy(&entry)?),
            Answer::Ready(_) => {
                Err(CallErrorKind::Internal.to_error("the node said `ready` to `close`"))
            }
        }
    }

    /// Returns the error that the node sent before its stream broke.
    async fn why(&mut self) -> Option<CallError> {
        self.answers.message().await.err().map(CallError::from)
    }
}

async fn send(steps: &mpsc::Sender<wire::UploadRequest>, step: Step) -> Result<(), CallError> {
    let message = wire::UploadRequest { step: Some(step) };
    steps
        .send(message)
        .await
        .map_err(|_closed| CallErrorKind::Unavailable.to_error("the node ended the upload"))
}

async fn next(answers: &mut Streaming<wire::UploadResponse>) -> Result<Answer, CallError> {
    let ended =
        || CallErrorKind::Unavailable.to_error("the node ended the upload without an answer");
    answers
        .message()
        .await?
        .and_then(|message| message.step)
        .ok_or_else(ended)
}
