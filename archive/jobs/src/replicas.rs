//! Batch jobs over the wire: a run over one replica, and the reduce step of a component at its monitor.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use archive_ledger::standing::Now;
use archive_model::{
    FailureKind, FileFailure, FileOutcome, JobLane, JobSpec, NodeId, Program, ReplicaId,
};
use archive_replicas::{Replicas, is_given_up};
use archive_rpc::{InvalidMessage, Kind};
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use proto_archive::wire::batch_reduce_request::Step as ReduceStep;
use proto_archive::wire::batch_run_request::{Open, Step};
use proto_archive::{batch_broken, convert as fields, wire};
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{Status, Streaming};

use crate::chunks::JobBytes;
use crate::life::Gap as BatchGap;

/// The longest message of output, in bytes.
const MESSAGE: usize = 1 << 20;

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct BatchOrder {
    pub id: String,
    pub spec: JobSpec,
    pub component_size: u64,
    pub after: String,
    /// How long it may still take.
    pub left: Duration,
    /// Nodes that a run is not to ask.
    pub without: Vec<NodeId>,
    /// Nodes without which it is not to begin.
    pub present: Vec<NodeId>,
    /// Among which jobs it has its place.
    pub lane: JobLane,
}

/// What a run brings.
#[derive(Debug)]
pub(crate) enum Brought {
    /// The next bytes about the next file.
    Output(Bytes),
    /// A file is done.
    Done(Box<FileOutcome>),
    /// How far a node is.
    Progress(NodeProgress),
    /// That was all.
    End { files: u64, gaps: Vec<BatchGap> },
}

/// How far a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeProgress {
    /// The node.
    pub node: NodeId,
    /// Files that are done.
    pub files: u64,
    /// Files that it has to do.
    pub files_total: u64,
    /// Bytes that were read.
    pub bytes: u64,
}

/// A run under way; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct BatchRun {
    messages: Streaming<wire::BatchRunResponse>,
    /// Ends what is sent, and so the run, when this is dropped: a peer hears of nothing else.
    _open: DropGuard,
    wanted: Arc<Notify>,
    has_component: bool,
    replica: ReplicaId,
    now: Arc<Now>,
}

/// What a reduce step brings.
#[derive(Debug)]
pub(crate) enum Reduced {
    /// The component is not there: begin again and send it, unless it is being sent.
    Want,
    /// The next bytes of the result.
    Data(Bytes),
    /// That was all; or why there is no result.
    End(Result<(), String>),
}

/// A reduce step under way; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct BatchReduction {
    messages: Streaming<wire::BatchReduceResponse>,
    /// None: the component is not sent.
    wanted: Option<Arc<Notify>>,
    /// As of a run.
    _open: DropGuard,
}

/// The node because of which a run broke off, where its status names one.
pub(crate) fn broken_node(status: &Status) -> Option<NodeId> {
    batch_broken::broken_node(status)
}

/// A monitor does not say what it must.
fn lie(what: &str) -> Status {
    Kind::Invalid.status(format!("the monitor {what}"))
}

/// Begins a run. `component` gives the bytes of the component, when they are asked for.
pub(crate) fn run_batch(
    replicas: &Replicas,
    order: &BatchOrder,
    component: Option<JobBytes>,
) -> BoxFuture<'static, Result<BatchRun, Status>> {
    let (wanted, open) = (Arc::new(Notify::new()), CancellationToken::new());
    let has_component = component.is_some();
    let requests = run_requests(order, &wanted, component).until(&open);
    let open = open.drop_guard();
    let (replica, now) = (order.spec.replica.clone(), replicas.now());
    let monitor = replicas.batch_monitor(&replica);
    let begun = async move {
        let messages = monitor?.run_batch(requests).await?.into_inner();
        Ok(BatchRun {
            messages,
            _open: open,
            wanted,
            has_component,
            replica,
            now,
        })
    };
    begun.boxed()
}

/// Begins the reduce step of a component over `input`. With `component`, its bytes are sent first, as soon as they are
/// asked for.
pub(crate) fn reduce_batch(
    replicas: &Replicas,
    order: &BatchOrder,
    component: Option<JobBytes>,
    input: JobBytes,
) -> BoxFuture<'static, Result<BatchReduction, Status>> {
    let (wanted, open) = (Arc::new(Notify::new()), CancellationToken::new());
    let is_sent = component.is_some();
    let requests = reduce_requests(order, &wanted, component, input).until(&open);
    let open = open.drop_guard();
    let monitor = replicas.batch_monitor(&order.spec.replica);
    let begun = async move {
        let messages = monitor?.reduce_batch(requests).await?.into_inner();
        Ok(BatchReduction {
            messages,
            _open: open,
            wanted: is_sent.then_some(wanted),
        })
    };
    begun.boxed()
}

/// What is sent. A type of its own: the compiler loses sight of the lifetime of a bare one within calls.
struct Requests<T>(BoxStream<'static, T>);

impl<T: Send + 'static> Requests<T> {
    /// The same, to its end or until nobody listens to the answers any more.
    fn until(self, open: &CancellationToken) -> Self {
        Self(self.0.take_until(open.clone().cancelled_owned()).boxed())
    }
}

impl<T> Stream for Requests<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.as_mut().poll_next(cx)
    }
}

/// What is sent for a run: the order, and the component when it is wanted.
fn run_requests(
    order: &BatchOrder,
    wanted: &Arc<Notify>,
    component: Option<JobBytes>,
) -> Requests<wire::BatchRunRequest> {
    let open = Step::Open(Open {
        id: order.id.clone(),
        spec: Some(spec_to_wire(&order.spec, order.component_size)),
        after: order.after.clone(),
        left_ms: millis(order.left),
        without: order.without.iter().map(NodeId::to_string).collect(),
        present: order.present.iter().map(NodeId::to_string).collect(),
        of_index: order.lane == JobLane::Index,
    });
    let bytes = after_want(wanted, component).map(|bytes| bytes.map(Step::Component));
    let steps = stream::once(std::future::ready(Some(open)))
        .chain(bytes)
        // What cannot be read any more ends the stream, and with it the run.
        .take_while(|step| std::future::ready(step.is_some()))
        .map(|step| wire::BatchRunRequest { step });
    Requests(steps.boxed())
}

/// What is sent for a reduce step: the order, the component first where it is sent at all, and the output.
fn reduce_requests(
    order: &BatchOrder,
    wanted: &Arc<Notify>,
    component: Option<JobBytes>,
    input: JobBytes,
) -> Requests<wire::BatchReduceRequest> {
    use wire::batch_reduce_request::{End, Open};
    let open = ReduceStep::Open(Open {
        id: order.id.clone(),
        spec: Some(spec_to_wire(&order.spec, order.component_size)),
        left_ms: millis(order.left),
    });
    let waiting = Arc::clone(wanted);
    let component = stream::iter(component).flat_map(move |component| {
        let waiting = Arc::clone(&waiting);
        let bytes = stream::once(async move { waiting.notified().await });
        bytes.flat_map(move |()| component.clone().chunks())
    });
    let component = component.map(|bytes| bytes.map(ReduceStep::Component));
    let data = input.chunks().map(|bytes| bytes.map(ReduceStep::Data));
    let end = ReduceStep::End(End {});
    let steps = stream::once(std::future::ready(Some(open)))
        .chain(component)
        .chain(data)
        .chain(stream::once(std::future::ready(Some(end))))
        .take_while(|step| std::future::ready(step.is_some()))
        .map(|step| wire::BatchReduceRequest { step });
    Requests(steps.boxed())
}

/// Nothing until it is wanted, then the bytes, then nothing for ever: the stream stays open as long as the run shall.
fn after_want(
    wanted: &Arc<Notify>,
    component: Option<JobBytes>,
) -> BoxStream<'static, Option<Bytes>> {
    let Some(component) = component else {
        return stream::pending().boxed();
    };
    let waiting = Arc::clone(wanted);
    stream::once(async move { waiting.notified().await })
        .flat_map(move |()| component.clone().chunks())
        .chain(stream::pending())
        .boxed()
}

impl BatchRun {
    /// The next of what comes. None: it was cut.
    pub(crate) async fn next(&mut self) -> Result<Option<Brought>, Status> {
        use wire::batch_run_response::Step;
        loop {
            let Some(message) = self.messages.message().await? else {
                return Ok(None);
            };
            let step = message.step.ok_or_else(|| lie("sent an empty message"))?;
            return Ok(Some(match step {
                Step::Want(_) if self.has_component => {
                    // Asked once: a second time nothing more is sent.
                    self.wanted.notify_one();
                    continue;
                }
                Step::Begin(_) => return Err(lie("speaks as if it were a node")),
                Step::Want(_) => return Err(lie("wants the component of a built-in job")),
                Step::Output(bytes) if bytes.len() > MESSAGE => {
                    return Err(lie("sent a message of more than 1 MiB"));
                }
                Step::Output(bytes) => Brought::Output(bytes),
                Step::Done(done) => Brought::Done(Box::new(outcome(done)?)),
                Step::Progress(progress) => Brought::Progress(NodeProgress {
                    node: fields::node_id(&progress.node)?,
                    files: progress.files,
                    files_total: progress.files_total,
                    bytes: progress.bytes,
                }),
                Step::End(end) => Brought::End {
                    files: end.files,
                    gaps: self.gaps(end.gaps),
                },
            }));
        }
    }

    /// Without what is out of service: nobody misses it.
    fn gaps(&self, gaps: Vec<wire::Gap>) -> Vec<BatchGap> {
        let is_retired = |gap: &wire::Gap| {
            let is_node = NodeId::new(&gap.node)
                .is_ok_and(|node| self.now.is_retired_node(&self.replica, &node));
            is_node || is_given_up(&self.now, &self.replica, &gap.node, &gap.volume)
        };
        gaps.into_iter()
            .filter(|gap| !is_retired(gap))
            .map(|gap| BatchGap {
                node: gap.node,
                volume: gap.volume,
                reason: gap.reason,
            })
            .collect()
    }
}

impl BatchReduction {
    /// The next of what comes. None: it was cut.
    pub(crate) async fn next(&mut self) -> Result<Option<Reduced>, Status> {
        use wire::batch_reduce_response::Step;
        let Some(message) = self.messages.message().await? else {
            return Ok(None);
        };
        let step = message.step.ok_or_else(|| lie("sent an empty message"))?;
        Ok(Some(match step {
            Step::Want(_) => {
                if let Some(wanted) = &self.wanted {
                    wanted.notify_one();
                }
                Reduced::Want
            }
            Step::Data(bytes) if bytes.len() > MESSAGE => {
                return Err(lie("sent a message of more than 1 MiB"));
            }
            Step::Data(bytes) => Reduced::Data(bytes),
            Step::End(end) if end.failure.is_empty() => Reduced::End(Ok(())),
            Step::End(end) => Reduced::End(Err(end.failure)),
        }))
    }
}

fn outcome(done: wire::batch_run_response::Done) -> Result<FileOutcome, Status> {
    let failures = done.failures.into_iter().map(|failure| {
        let kind = FailureKind::ALL
            .into_iter()
            .find(|kind| kind.word() == failure.kind)
            .ok_or_else(|| InvalidMessage::invalid("kind", "is no kind of failure"))?;
        Ok(FileFailure {
            kind,
            offset: failure.offset,
            reason: failure.reason,
        })
    });
    Ok(FileOutcome {
        name: fields::file_name("name", &done.name)?,
        node: fields::node_id(&done.node)?,
        volume: fields::volume_id(&done.volume)?,
        root: fields::root("root", &done.root)?,
        size: done.size,
        records: done.records,
        output: done.output,
        failures: failures.collect::<Result<_, InvalidMessage>>()?,
        more_failures: done.more_failures,
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What is to be done, as it stands on the wire.
pub fn spec_to_wire(spec: &JobSpec, component_size: u64) -> wire::BatchSpec {
    let (job, component) = match &spec.program {
        Program::BuiltIn(name) => (name.clone(), Bytes::new()),
        Program::Component(root) => (String::new(), fields::root_bytes(root)),
    };
    let arguments = spec.arguments.iter();
    let arguments = arguments.map(|(name, value)| wire::batch_spec::Value {
        name: name.clone(),
        value: value.clone(),
    });
    wire::BatchSpec {
        job,
        component,
        component_size,
        arguments: arguments.collect(),
        files: spec.files.clone(),
        replica: spec.replica.to_string(),
        time_ms: millis(spec.limits.time),
        file_time_ms: millis(spec.limits.file_time),
        memory: spec.limits.memory,
        output: spec.limits.output,
        names: fields::names(spec.names.as_ref()),
        keep_ms: spec.keep.map_or(0, millis),
    }
}
