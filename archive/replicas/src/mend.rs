//! The mending of one copy: sends the groups that the copy lacks, each with its proof, and receives the outcome.
//!
//! # Errors
//! All functions fail with a [`CallError`] if the node cannot be reached, or has ended the repair.

use archive_model::{FileCopy, MendOrder, NodeKey};
use archive_rpc::{CallError, CallErrorKind};
use bytes::Bytes;
use proto_archive::wire::mend_request::{Close, Step};
use proto_archive::{convert as fields, wire};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::Replicas;

/// The most messages on their way in either direction.
const WINDOW: usize = 16;

/// The caller's end of a mending call: bytes are sent and answers received in parallel.
#[derive(Debug)]
pub struct MendCall {
    steps: Option<mpsc::Sender<wire::MendRequest>>,
    answers: mpsc::Receiver<Result<MendAnswer, CallError>>,
}

/// A message of a node that mends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MendAnswer {
    /// The number of bytes that were read back.
    Progress(u64),
    /// The copy is mended.
    Done {
        /// The copy in its new state.
        copy: FileCopy,
        /// The item with the replaced groups in the attic of its volume.
        attic: String,
    },
}

impl Replicas {
    /// Begins to mend a copy of the node. The future beside it carries the call: it must be polled until it ends, or
    /// dropped, which ends the call and leaves the copy as it was.
    pub async fn begin_mend(
        &self,
        at: &NodeKey,
        order: &MendOrder,
    ) -> Result<(MendCall, impl Future<Output = ()> + Send + use<'_>), CallError> {
        let mut client = self.node_client(&at.replica, &at.node).await?;
        let (steps, requests) = mpsc::channel(WINDOW);
        let (sender, answers) = mpsc::channel(WINDOW);
        send(&steps, Step::Open(fields::mend_open(order))).await?;
        let replica = at.replica.clone();
        let node = at.node.clone();
        let call = async move {
            let ended = async {
                let mut stream = client
                    .mend(ReceiverStream::new(requests))
                    .await
                    .map_err(|error| self.call_failed(&replica, &node, error))?
                    .into_inner();
                while let Some(message) = stream.message().await? {
                    let mended = match &message.entry {
                        None => MendAnswer::Progress(message.bytes),
                        Some(entry) => MendAnswer::Done {
                            copy: fields::file_copy(entry)?,
                            attic: message.attic,
                        },
                    };
                    if sender.send(Ok(mended)).await.is_err() {
                        return Ok(());
                    }
                }
                Err(CallErrorKind::Unavailable
                    .to_error("the node ended the repair without a result"))
            };
            let ended: Result<(), CallError> = ended.await;
            if let Err(error) = ended {
                // A caller that has the result does not listen any more.
                _ = sender.send(Err(error)).await;
            }
        };
        Ok((
            MendCall {
                steps: Some(steps),
                answers,
            },
            call,
        ))
    }
}

impl MendCall {
    /// Sends the next part.
    pub async fn send_segment(
        &self,
        offset: u64,
        length: u64,
        encoded: Bytes,
    ) -> Result<(), CallError> {
        let segment = wire::Segment {
            offset,
            length,
            encoded,
        };
        self.step(Step::Segment(segment)).await
    }

    /// Ends the groups: only this lets the node change anything.
    pub async fn close_mend(&mut self) -> Result<(), CallError> {
        self.step(Step::Close(Close {})).await?;
        self.steps = None;
        Ok(())
    }

    /// Returns the next message of the node.
    pub async fn next(&mut self) -> Result<MendAnswer, CallError> {
        let ended =
            || CallErrorKind::Unavailable.to_error("the node ended the repair without a result");
        self.answers.recv().await.ok_or_else(ended)?
    }

    async fn step(&self, step: Step) -> Result<(), CallError> {
        let closed = || CallErrorKind::Internal.to_error("the repair was closed already");
        send(self.steps.as_ref().ok_or_else(closed)?, step).await
    }
}

async fn send(steps: &mpsc::Sender<wire::MendRequest>, step: Step) -> Result<(), CallError> {
    let message = wire::MendRequest { step: Some(step) };
    steps
        .send(message)
        .await
        .map_err(|_closed| CallErrorKind::Unavailable.to_error("the node ended the repair"))
}
