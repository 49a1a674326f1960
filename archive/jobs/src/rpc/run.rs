//! One run of a job over the nodes of its replica: merges the answers of all nodes into one stream in the order of
//! names.
//!
//! Owns which nodes are asked, how long a node may be silent, and which event the job gets if one fails. A node is read
//! only as far as the merge needs it; its progress is passed on at once. A run that is dropped here ends on every node.
//!
//! Not promised: that what a node wrote is true. The merge checks that it is in order, announced and requested.

mod broken;

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use archive_daemon::Clock;
use archive_decisions::batch::life::{JobEvent, JobGap, shorten_words};
use archive_ledger::standing::StandingSnapshot;
use archive_model::{
    BatchFileOutcome, FileSelection, JobNode, NodeId, NodeState, ReplicaId, VolumeId,
};
use archive_replicas::{Replicas, is_given_up};
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use proto_archive::batch_run::{JobRun, read_done};
use proto_archive::convert as fields;
use proto_archive::wire::batch_run_request::Step as Request;
use proto_archive::wire::batch_run_response::Step as Answer;
use proto_archive::wire::node_client::NodeClient;
use proto_archive::wire::{self, BatchRunRequest, BatchRunResponse};
use tokio::sync::Notify;
use tokio_util::sync::DropGuard;
use tonic::Response;
use tonic::transport::Channel;

pub(crate) use broken::{NodeFailure, broken_event};

use super::requests::Requests;
use crate::chunks::JobBytes;
use crate::merge::{Merge, MergeItem};

/// The longest silence of a node while its messages are awaited. A node reports its progress every second.
const SILENCE: Duration = Duration::from_mins(1);

/// The order for a run.
#[derive(Debug)]
pub(crate) struct RunOrder {
    /// The order for each node.
    pub run: JobRun,
    /// The files of the job, as the merge checks them.
    pub selection: FileSelection,
    /// The bytes of the component; `None` for a built-in job.
    pub component: Option<JobBytes>,
    /// Nodes that are not asked.
    pub left_out: BTreeSet<NodeId>,
    /// Nodes without which no run begins: they were alive a moment ago.
    pub present: BTreeSet<NodeId>,
}

/// A message of a run.
#[derive(Debug)]
pub(crate) enum RunMessage {
    /// The next bytes about the next file.
    Output(Bytes),
    /// The end of a file.
    Done(Box<BatchFileOutcome>),
    /// The progress of a node.
    Progress(JobNode),
    /// The end of the run; the files of these nodes and volumes are missing.
    End(Vec<JobGap>),
}

/// A run under way.
pub(crate) struct ReplicaRun {
    merge: Merge<NodeFailure>,
    /// The runs on the nodes, by their index in the merge.
    nodes: Vec<NodeRun>,
    /// The index of the node that was heard last.
    last: usize,
    replica: ReplicaId,
    /// The nodes and volumes that were out of service when it began: they are no gaps.
    standing: Arc<StandingSnapshot>,
}

/// The run on one node.
struct NodeRun {
    node: NodeId,
    /// `None` if no more messages follow.
    messages: Option<NodeMessages>,
    /// Notified when the node requests the component. `None` if there is no component, or it was requested already.
    wanted: Option<Arc<Notify>>,
}

/// The messages of one node. When this is dropped, the requests end, and with them the run on the node: a peer notices
/// nothing else.
struct NodeMessages {
    stream: BoxStream<'static, Result<BatchRunResponse, NodeFailure>>,
    _open: DropGuard,
}

impl ReplicaRun {
    /// Begins a run on every one of `nodes` that is alive; the others are gaps.
    ///
    /// # Errors
    /// The event for the job if a node without which no run begins is not alive any more.
    pub(crate) fn begin_run(
        replicas: &Replicas,
        order: &RunOrder,
        nodes: &[NodeState],
        clock: &Clock,
    ) -> Result<Self, JobEvent> {
        let replica = order.run.spec.replica.clone();
        let (asked, gaps) = asked(order, nodes)?;
        let ids = asked.iter().map(|state| state.node.clone());
        let after = order.run.after.clone();
        let mut merge = Merge::new(ids, after, order.selection.clone(), gaps);
        let mut runs = Vec::new();
        for (index, state) in asked.into_iter().enumerate() {
            let wanted = Arc::new(Notify::new());
            let messages = match replicas.batch_channel(state) {
                Ok(channel) => Some(NodeMessages::open(channel, order, &wanted, clock.clone())),
                Err(error) => {
                    merge.fail_replica(index, NodeFailure::Said(error.into()));
                    None
                }
            };
            runs.push(NodeRun {
                node: state.node.clone(),
                messages,
                wanted: order.component.is_some().then_some(wanted),
            });
        }
        Ok(Self {
            merge,
            nodes: runs,
            last: 0,
            replica,
            standing: replicas.standing_now(),
        })
    }

    /// Returns the next message; behind the end, the end again.
    ///
    /// # Errors
    /// The event for the job if a node failed, after all that lies before.
    pub(crate) async fn next(&mut self) -> Result<RunMessage, JobEvent> {
        loop {
            match self.merge.pull_item() {
                Some(MergeItem::Output(bytes)) => return Ok(RunMessage::Output(bytes)),
                Some(MergeItem::Done(done)) => return Ok(RunMessage::Done(done)),
                Some(MergeItem::Broken(node, why)) => return Err(broken_event(&node, &why)),
                None if self.merge.is_finished() => return Ok(RunMessage::End(self.gaps())),
                None => {}
            }
            let (index, message) = self.next_message().await;
            if let Some(progress) = self.take(index, message) {
                return Ok(RunMessage::Progress(progress));
            }
        }
    }

    /// Waits for a message that the merge needs; returns it with the index of its node. `None` if the node sends no
    /// more.
    async fn next_message(&mut self) -> (usize, Option<Result<BatchRunResponse, NodeFailure>>) {
        let nodes = &mut self.nodes;
        let merge = &self.merge;
        let last = &mut self.last;
        poll_fn(|cx| {
            // The nodes take turns: a node that always has a message hides no other.
            let later = merge.hungry_replicas().filter(|index| *index > *last);
            for index in later.chain(merge.hungry_replicas().filter(|index| *index <= *last)) {
                let messages = nodes.get_mut(index).and_then(|run| run.messages.as_mut());
                let Some(messages) = messages else {
                    return Poll::Ready((index, None));
                };
                if let Poll::Ready(message) = messages.stream.poll_next_unpin(cx) {
                    *last = index;
                    return Poll::Ready((index, message));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Puts a message of a node into the merge. Its progress does not wait for its turn, and is returned.
    fn take(
        &mut self,
        index: usize,
        message: Option<Result<BatchRunResponse, NodeFailure>>,
    ) -> Option<JobNode> {
        let run = self.nodes.get_mut(index)?;
        let step = match message {
            Some(Ok(message)) => message.step,
            Some(Err(broken)) => {
                run.messages = None;
                self.merge.fail_replica(index, broken);
                return None;
            }
            None => {
                run.messages = None;
                self.merge.fail_replica(index, NodeFailure::Cut);
                return None;
            }
        };
        let lie = match step {
            None => "it sent an empty message".to_owned(),
            Some(Answer::Begin(begin)) => match fields::file_name("name", &begin.name) {
                Ok(name) => {
                    self.merge.begin_file(index, name);
                    return None;
                }
                Err(error) => error.to_string(),
            },
            Some(Answer::Output(bytes)) => {
                self.merge.push_output(index, bytes);
                return None;
            }
            Some(Answer::Done(done)) => match read_done(done) {
                Ok(done) => {
                    self.merge.end_file(index, Box::new(done));
                    return None;
                }
                Err(error) => error.to_string(),
            },
            Some(Answer::End(end)) => {
                run.messages = None;
                let gaps = end.gaps.iter().map(|gap| read_gap(&run.node, gap));
                self.merge.end_replica(index, end.files, gaps.collect());
                return None;
            }
            Some(Answer::Progress(progress)) => match fields::job_progress(&progress) {
                Ok(progress) if progress.node == run.node => return Some(progress),
                Ok(_) => "it reports for another node".to_owned(),
                Err(error) => format!("its report of progress makes no sense: {error}"),
            },
            Some(Answer::Want(_)) => match run.wanted.take() {
                Some(wanted) => {
                    wanted.notify_one();
                    return None;
                }
                None => "it requests a component that the job does not have, or twice".to_owned(),
            },
        };
        self.merge.accuse_replica(index, lie);
        None
    }

    /// Returns the gaps of the output, without places that are out of service.
    fn gaps(&self) -> Vec<JobGap> {
        let is_missed = |gap: &&JobGap| {
            let volume = NodeId::new(&gap.node)
                .ok()
                .zip(VolumeId::new(&gap.volume).ok());
            volume.is_none_or(|(node, volume)| {
                !is_given_up(&self.standing, &self.replica, &node, &volume)
            })
        };
        self.merge
            .gaps()
            .iter()
            .filter(is_missed)
            .cloned()
            .collect()
    }
}

impl NodeMessages {
    /// Begins the run on a node: nothing is dialled before its messages are awaited.
    fn open(channel: Channel, order: &RunOrder, wanted: &Arc<Notify>, clock: Clock) -> Self {
        let (requests, open) = Requests::until_dropped(requests(order, wanted));
        let mut client = NodeClient::new(channel);
        let answers = async move {
            let answers = client.run_batch(requests).await;
            answers.map(Response::into_inner)
        };
        let answers = stream::once(answers).try_flatten().boxed();
        let stream = stream::unfold((answers, clock), async |(mut answers, clock)| {
            let answer = match clock.run_with_timeout(SILENCE, answers.next()).await {
                Ok(answer) => answer?.map_err(NodeFailure::Said),
                Err(_late) => Err(NodeFailure::Silent(SILENCE)),
            };
            Some((answer, (answers, clock)))
        });
        Self {
            stream: stream.boxed(),
            _open: open,
        }
    }
}

/// Returns the requests to a node: the order, and the component if requested. The requests stay open as long as the run
/// shall go on.
fn requests(order: &RunOrder, wanted: &Arc<Notify>) -> BoxStream<'static, BatchRunRequest> {
    let open = Some(Request::Open(order.run.write_open()));
    let component = stream::iter(order.component.clone());
    let wanted = Arc::clone(wanted);
    let component = component.flat_map(move |component| {
        let wanted = Arc::clone(&wanted);
        let asked = stream::once(async move { wanted.notified().await });
        asked.flat_map(move |()| component.clone().into_chunks())
    });
    stream::once(std::future::ready(open))
        .chain(component.map(|bytes| bytes.map(Request::Component)))
        .chain(stream::pending())
        // A failed read ends the stream, and with it the run.
        .take_while(|step| std::future::ready(step.is_some()))
        .map(|step| BatchRunRequest { step })
        .boxed()
}

/// Returns the nodes to ask, by their ids, and the nodes and volumes that are not asked, each with its reason.
fn asked<'a>(
    order: &RunOrder,
    nodes: &'a [NodeState],
) -> Result<(Vec<&'a NodeState>, Vec<JobGap>), JobEvent> {
    let mut asked = Vec::new();
    let mut gaps = Vec::new();
    for state in nodes {
        let node = &state.node;
        if !state.alive {
            if order.present.contains(node) {
                return Err(JobEvent::Broke(format!(
                    "replica {}: node {node} was alive a moment ago and is silent now; waiting for it",
                    order.run.spec.replica
                )));
            }
            let said = match state.seen {
                Some(seen) => format!("silent since {seen}"),
                None => "not heard of since the monitor started".to_owned(),
            };
            gaps.push(JobGap::node_gap(node, said));
        } else if order.left_out.contains(node) {
            let said = "left out: it failed again and again".to_owned();
            gaps.push(JobGap::node_gap(node, said));
        } else {
            asked.push(state);
            let unreported = state.volumes.iter();
            let unreported = unreported.filter(|one| one.unreported && !one.retired);
            gaps.extend(unreported.filter_map(|one| {
                let said = one.problem.clone().unwrap_or_default();
                Some(JobGap::volume_gap(node, one.volume.as_ref()?, said))
            }));
        }
    }
    asked.sort_by(|one, other| one.node.cmp(&other.node));
    Ok((asked, gaps))
}

/// Reads a gap that a node names: it can only be in the node itself.
fn read_gap(node: &NodeId, gap: &wire::Gap) -> JobGap {
    let reason = shorten_words(&gap.reason);
    match VolumeId::new(&gap.volume) {
        Ok(volume) => JobGap::volume_gap(node, &volume, reason),
        Err(_) if gap.volume.is_empty() => JobGap::node_gap(node, reason),
        Err(error) => JobGap::node_gap(node, format!("{reason} ({error})")),
    }
}

#[cfg(test)]
mod tests;
