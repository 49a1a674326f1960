//! The reduce step of a component on a node: sends the output of all files there, and receives the result.
//!
//! Owns the choice of the node: tries the nodes that are alive, one after another, until one has a place for the step;
//! begins with another node after each failure.

use std::time::Duration;

use archive_daemon::Clock;
use archive_decisions::batch::life::JobEvent;
use archive_model::{NodeId, NodeState};
use archive_replicas::Replicas;
use archive_rpc::CallErrorKind;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::ready;
use futures_util::stream::{self, BoxStream};
use proto_archive::batch_run::JobRun;
use proto_archive::wire::batch_reduce_request::{End, Step as Request};
use proto_archive::wire::batch_reduce_response::Step as Answer;
use proto_archive::wire::node_client::NodeClient;
use proto_archive::wire::{BatchReduceRequest, BatchReduceResponse};
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use super::requests::Requests;
use super::run::{NodeFailure, broken_event};
use crate::chunks::JobBytes;
use crate::merge::{LARGEST_OUTPUT, SourceError};

/// The time in which a node must say whether it has the component.
const BEGIN: Duration = Duration::from_mins(1);

/// The parts of a reduce step.
#[derive(Debug)]
pub(crate) struct ReductionOrder {
    /// The order for the node.
    pub run: JobRun,
    /// The bytes of the component.
    pub component: JobBytes,
    /// The output of all files.
    pub input: JobBytes,
}

/// A reduce step that a node has begun; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Reduction {
    node: NodeId,
    answers: Streaming<BatchReduceResponse>,
    /// The requests of the node.
    asked: mpsc::Sender<NodeRequest>,
    /// Ends the requests, and so the step, when this is dropped: a peer notices nothing else.
    _open: DropGuard,
}

/// A request of a node.
#[derive(Clone, Copy, Debug)]
enum NodeRequest {
    Component,
    Input,
}

/// A message of a reduce step.
#[derive(Debug)]
pub(crate) enum ReductionMessage {
    /// The next bytes of the result.
    Data(Bytes),
    /// The end of the result, or the reason why there is no result.
    End(Result<(), String>),
}

/// Begins the step on one of `nodes` that is alive and has a place for it, the one at `first` first. Returns `None` if
/// the component has no reduce step.
///
/// # Errors
/// The event for the job: a node refuses it, no node has a place for it, or the last node that was asked failed.
pub(crate) async fn begin_reduction(
    replicas: &Replicas,
    order: &ReductionOrder,
    nodes: &[NodeState],
    first: u64,
    clock: &Clock,
) -> Result<Option<Reduction>, JobEvent> {
    let alive: Vec<&NodeState> = nodes.iter().filter(|state| state.alive).collect();
    let count = (alive.len() as u64).max(1);
    let skipped = usize::try_from(first % count).expect("a place in a list fits in memory");
    let in_turn = alive.iter().cycle().skip(skipped).take(alive.len());
    let mut last = JobEvent::Silent(format!(
        "cannot make the result: no node of replica {} is alive",
        order.run.spec.replica
    ));
    for state in in_turn {
        match begin_on(replicas, order, state, clock).await {
            Err(next @ (JobEvent::Busy(_) | JobEvent::NodeBroke(..))) => {
                // A busy node will have a place again: that counts more than a failure.
                if !matches!(last, JobEvent::Busy(_)) {
                    last = next;
                }
            }
            begun => return begun,
        }
    }
    Err(last)
}

async fn begin_on(
    replicas: &Replicas,
    order: &ReductionOrder,
    state: &NodeState,
    clock: &Clock,
) -> Result<Option<Reduction>, JobEvent> {
    let broke = |broken| broken_event(&state.node, &SourceError::Failed(broken));
    let channel = replicas
        .batch_channel(state)
        .map_err(|error| broke(NodeFailure::Said(error.into())))?;
    let begun = clock.run_with_timeout(BEGIN, Reduction::open(state.node.clone(), channel, order));
    let begun = begun
        .await
        .map_err(|_late| broke(NodeFailure::Silent(BEGIN)))?;
    let mut reduction = begun.map_err(|status| broke(NodeFailure::Said(status)))?;
    let mut is_asked = false;
    loop {
        let answer = if is_asked {
            // While it compiles, it sends nothing.
            reduction.answer().await
        } else {
            let answer = clock.run_with_timeout(BEGIN, reduction.answer()).await;
            answer.unwrap_or(Err(NodeFailure::Silent(BEGIN)))
        };
        match answer {
            Ok(Answer::Want(_)) if !is_asked => {
                is_asked = true;
                reduction.ask(NodeRequest::Component).await;
            }
            Ok(Answer::Ready(_)) => {
                reduction.ask(NodeRequest::Input).await;
                return Ok(Some(reduction));
            }
            Ok(Answer::Want(_) | Answer::Data(_) | Answer::End(_)) => {
                return Err(reduction.lied("it did not say that it is ready"));
            }
            Err(NodeFailure::Said(status))
                if CallErrorKind::from_status(&status) == CallErrorKind::NotFound =>
            {
                return Ok(None);
            }
            Err(broken) => return Err(broke(broken)),
        }
    }
}

impl Reduction {
    async fn open(node: NodeId, channel: Channel, order: &ReductionOrder) -> Result<Self, Status> {
        let (asks, asked) = mpsc::channel(2);
        let (requests, open) = Requests::until_dropped(requests(order, asked));
        Ok(Self {
            node,
            answers: NodeClient::new(channel)
                .reduce_batch(requests)
                .await?
                .into_inner(),
            asked: asks,
            _open: open,
        })
    }

    /// Returns the next message.
    ///
    /// # Errors
    /// The event for the job if the node failed.
    pub(crate) async fn next(&mut self) -> Result<ReductionMessage, JobEvent> {
        match self.answer().await {
            Ok(Answer::Data(bytes)) if bytes.len() <= LARGEST_OUTPUT => {
                Ok(ReductionMessage::Data(bytes))
            }
            Ok(Answer::Data(bytes)) => {
                Err(self.lied(&format!("it sent {} bytes in one message", bytes.len())))
            }
            Ok(Answer::End(end)) if end.failure.is_empty() => Ok(ReductionMessage::End(Ok(()))),
            Ok(Answer::End(end)) => Ok(ReductionMessage::End(Err(end.failure))),
            Ok(Answer::Want(_) | Answer::Ready(_)) => {
                Err(self.lied("it began again in the middle of the result"))
            }
            Err(broken) => Err(broken_event(&self.node, &SourceError::Failed(broken))),
        }
    }

    async fn ask(&self, what: NodeRequest) {
        if self.asked.send(what).await.is_err() {
            tracing::debug!(node = %self.node, "the call to a node has ended; its answer says why");
        }
    }

    async fn answer(&mut self) -> Result<Answer, NodeFailure> {
        let answer = self.answers.message().await.map_err(NodeFailure::Said)?;
        let step = answer.ok_or(NodeFailure::Cut)?.step;
        step.ok_or_else(|| {
            NodeFailure::Said(CallErrorKind::Internal.to_status("it sent an empty message"))
        })
    }

    fn lied(&self, what: &str) -> JobEvent {
        broken_event(&self.node, &SourceError::Lied(what.to_owned()))
    }
}

/// Returns the requests to a node: the order, and the bytes that it asks for. The requests stay open as long as the
/// step shall run.
fn requests(
    order: &ReductionOrder,
    asked: mpsc::Receiver<NodeRequest>,
) -> BoxStream<'static, BatchReduceRequest> {
    let open = stream::once(ready(Some(Request::Open(order.run.write_reduce()))));
    let component = order.component.clone();
    let input = order.input.clone();
    let asked = stream::unfold(asked, async |mut asked| Some((asked.recv().await?, asked)));
    let bytes = asked.flat_map(move |asked| match asked {
        NodeRequest::Component => {
            let pieces = component.clone().into_chunks();
            pieces.map(|bytes| bytes.map(Request::Component)).boxed()
        }
        NodeRequest::Input => {
            let pieces = input.clone().into_chunks();
            let pieces = pieces.map(|bytes| bytes.map(Request::Data));
            let end = stream::once(ready(Some(Request::End(End {}))));
            pieces.chain(end).boxed()
        }
    });
    open.chain(bytes)
        // A failed read ends the stream, and with it the step.
        .take_while(|step| ready(step.is_some()))
        .map(|step| BatchReduceRequest { step })
        .boxed()
}
