//! A batch job under way: nodes' messages in, merged messages out.
//!
//! It lives as long as its caller listens, and no longer than its time. A node is read only as far as the merge has use
//! for it; progress is passed on as it comes.

mod broken;
mod component;
mod places;

use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use archive_daemon::{Clock, Gauge, Tasks};
use archive_model::{Program, ReplicaId};
use archive_rpc::{Idle, InvalidMessage, Kind};
use futures_util::{Stream, StreamExt, stream};
use proto_archive::batch_run::{Run, read_done, write_done};
use proto_archive::convert as fields;
use proto_archive::wire::{self, batch_run_request, batch_run_response};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tonic::{Response, Status};

use broken::Broken;
pub(super) use component::rest_of_component;
use component::{Component, requests};
pub(super) use places::Places;

use super::convert;
use super::nodes_client::{BatchMessages, Nodes as Client};
use crate::batch::{Merge, Out};
use crate::metrics::Instruments;
use crate::nodes::{Address, Survey};

/// How many answers wait to be read: each is at most 1 MiB.
const ANSWERS: usize = 4;

/// How long a caller may leave the last answer unread.
const UNREAD: Duration = Duration::from_mins(2);

/// How often the progress of one node is passed on at most.
const OFTEN: Duration = Duration::from_millis(500);

pub(super) type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

type Sender = mpsc::Sender<Result<wire::BatchRunResponse, Status>>;

/// What a call needs of the monitor.
pub(super) struct Call {
    pub(super) replica: ReplicaId,
    pub(super) client: Arc<Client>,
    pub(super) clock: Clock,
    pub(super) stop: CancellationToken,
    pub(super) idle: Duration,
    pub(super) instruments: Instruments,
}

/// Runs a job over the nodes of the survey; without a place it only says so.
pub(super) fn run<S>(
    call: Call,
    tasks: &Tasks,
    places: Places,
    survey: Survey,
    steps: S,
) -> Response<Answers<wire::BatchRunResponse>>
where
    S: Stream<Item = Result<wire::BatchRunRequest, Status>> + Send + Unpin + 'static,
{
    let (answers, stream) = mpsc::channel(ANSWERS);
    tasks.spawn_once("batch", async move {
        let served = Box::pin(serve(call, &places, survey, steps, &answers)).await;
        if let Err(status) = served {
            // A caller that is gone, or does not read, needs no answer.
            drop(tokio::time::timeout(UNREAD, answers.send(Err(status))).await);
        }
        Ok::<(), Infallible>(())
    });
    Response::new(answered(stream))
}

/// What is received, as a stream.
pub(super) fn answered<T: Send + 'static>(stream: mpsc::Receiver<Result<T, Status>>) -> Answers<T> {
    let next = async |mut stream: mpsc::Receiver<Result<T, Status>>| {
        let answer = stream.recv().await?;
        Some((answer, stream))
    };
    Box::pin(stream::unfold(stream, next))
}

/// Counts a job while it runs.
struct Counted(Gauge);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

async fn serve<S>(
    call: Call,
    places: &Places,
    survey: Survey,
    mut steps: S,
    answers: &Sender,
) -> Result<(), Status>
where
    S: Stream<Item = Result<wire::BatchRunRequest, Status>> + Send + Unpin + 'static,
{
    let first = tokio::time::timeout(call.idle, steps.next()).await;
    let open = match first {
        Ok(Some(Ok(wire::BatchRunRequest {
            step: Some(batch_run_request::Step::Open(open)),
        }))) => open,
        Ok(Some(Ok(_))) => return Err(unexpected("open")),
        Ok(Some(Err(_)) | None) => return Err(gone()),
        Err(_late) => return Err(stalled(call.idle)),
    };
    let run = Run::read(open.clone())?;
    if run.spec.replica != call.replica {
        let reason = format!("is not {}, whose monitor this is", call.replica);
        return Err(InvalidMessage::invalid("replica", reason).into());
    }
    let _permit = places.take(run.lane)?;
    call.instruments.batch_jobs.inc();
    let _counted = Counted(call.instruments.batch_jobs.clone());
    if let Some(node) = survey.lacks(&run.present) {
        return Err(Kind::Unavailable.status(format!(
            "node {node} was alive a moment ago and is not heard now; look again, and wait for it"
        )));
    }
    let survey = survey.without(&run.without);
    tracing::info!(job = %run.id, nodes = survey.ask.len(), after = ?run.after, "a batch job begins");
    let mut job = Job::begin(&call, &open, &run, survey, steps);
    let ended = tokio::select! {
        biased;
        () = answers.closed() => Err(gone()),
        () = call.stop.cancelled() => {
            Err(Kind::Unavailable.status("the monitor is stopping; ask again when it is back"))
        }
        () = call.clock.sleep(run.left) => {
            Err(Kind::TimedOut.status("the time of the job is over"))
        }
        ended = job.forward(&call, answers) => ended,
    };
    let why = ended.as_ref().err().map(Status::message);
    tracing::info!(job = %run.id, files = job.merge.files(), why, "a batch job has ended");
    ended
}

/// One job on all nodes.
struct Job<S> {
    steps: S,
    merge: Merge<Broken>,
    /// By the index that the merge knows them by.
    nodes: Vec<Node>,
    component: Component,
    /// The node that was heard last.
    last: usize,
}

/// One node of a job.
struct Node {
    address: Address,
    messages: Option<Messages>,
    /// Where the component goes; none: it was asked for already, or there is none.
    wants: Option<oneshot::Sender<()>>,
    told: Option<Instant>,
}

/// What a node sends; the outer error is a silence.
type Messages = Idle<
    Pin<Box<dyn Stream<Item = Result<Result<wire::BatchRunResponse, Status>, Status>> + Send>>,
>;

enum Event {
    Node(
        usize,
        Option<Result<Result<wire::BatchRunResponse, Status>, Status>>,
    ),
    Caller(Option<Result<wire::BatchRunRequest, Status>>),
}

impl<S> Job<S>
where
    S: Stream<Item = Result<wire::BatchRunRequest, Status>> + Send + Unpin + 'static,
{
    fn begin(
        call: &Call,
        open: &batch_run_request::Open,
        run: &Run,
        survey: Survey,
        steps: S,
    ) -> Self {
        let ids = survey.ask.iter().map(|address| address.node.clone());
        let mut merge = Merge::new(ids, run.after.clone(), survey.gaps);
        let has_component = matches!(run.spec.program, Program::Component(_));
        let component = Component::new(run.component_size, call.idle);
        let mut nodes = Vec::new();
        let open = batch_run_request::Open {
            without: Vec::new(),
            present: Vec::new(),
            ..open.clone()
        };
        for (index, address) in survey.ask.into_iter().enumerate() {
            let (wants, wanted) = oneshot::channel();
            let requests = requests(open.clone(), wanted, component.pieces());
            let asked = call.client.run_batch(&address, requests);
            let messages = match asked {
                Ok(messages) => Some(watched(messages, call.idle)),
                Err(error) => {
                    let status = Kind::Unavailable.status(error.to_string());
                    merge.fail(index, Broken::Said(status));
                    None
                }
            };
            nodes.push(Node {
                address,
                messages,
                wants: has_component.then_some(wants),
                told: None,
            });
        }
        Self {
            steps,
            merge,
            nodes,
            component,
            last: 0,
        }
    }

    /// Sends what comes of the job, to its end.
    async fn forward(&mut self, call: &Call, answers: &Sender) -> Result<(), Status> {
        loop {
            while let Some(out) = self.merge.pull() {
                let step = match out {
                    Out::Output(bytes) => batch_run_response::Step::Output(bytes),
                    Out::Done(done) => {
                        call.instruments.batch_files.inc();
                        batch_run_response::Step::Done(write_done(*done))
                    }
                    Out::Broken(node, why) => {
                        let is_waited_for = self.component.is_coming();
                        return Err(broken::status(&node, &why, call.idle, is_waited_for));
                    }
                };
                send(answers, step).await?;
            }
            if self.merge.is_finished() {
                let gaps = self.merge.gaps();
                for gap in gaps {
                    tracing::info!(replica = %call.replica, %gap, "a batch job is partial");
                }
                let end = batch_run_response::End {
                    files: self.merge.files(),
                    gaps: convert::gaps(&call.replica, gaps),
                };
                return send(answers, batch_run_response::Step::End(end)).await;
            }
            match self.wait(call).await? {
                Event::Node(index, message) => {
                    if let Some(step) = self.take(index, message, call) {
                        send(answers, step).await?;
                    }
                }
                Event::Caller(message) => self.receive(message)?,
            }
        }
    }

    /// Waits for a message that can be used.
    async fn wait(&mut self, call: &Call) -> Result<Event, Status> {
        let (nodes, merge, steps) = (&mut self.nodes, &self.merge, &mut self.steps);
        let (component, last) = (&mut self.component, &mut self.last);
        poll_fn(|cx| {
            if let Poll::Ready(step) = Pin::new(&mut *steps).poll_next(cx) {
                return Poll::Ready(Ok(Event::Caller(step)));
            }
            // Each in its turn: one that always has something to say hides no other.
            let later = merge.hungry().filter(|index| *index > *last);
            for index in later.chain(merge.hungry().filter(|index| *index <= *last)) {
                let Some(messages) = nodes.get_mut(index).and_then(|node| node.messages.as_mut())
                else {
                    return Poll::Ready(Ok(Event::Node(index, None)));
                };
                if let Poll::Ready(message) = Pin::new(messages).poll_next(cx) {
                    *last = index;
                    return Poll::Ready(Ok(Event::Node(index, message)));
                }
            }
            if component.poll_late(cx).is_ready() {
                return Poll::Ready(Err(stalled(call.idle)));
            }
            Poll::Pending
        })
        .await
    }

    /// Puts what a node sent into the merge. What does not wait for its turn comes back.
    fn take(
        &mut self,
        index: usize,
        message: Option<Result<Result<wire::BatchRunResponse, Status>, Status>>,
        call: &Call,
    ) -> Option<batch_run_response::Step> {
        use batch_run_response::Step;
        let node = self.nodes.get_mut(index)?;
        let id = node.address.node.clone();
        let step = match message {
            Some(Ok(Ok(message))) => message.step,
            Some(Ok(Err(status))) => {
                self.merge.fail(index, Broken::Said(status));
                return None;
            }
            Some(Err(_silence)) => {
                self.merge.fail(index, Broken::Silent);
                return None;
            }
            None => {
                self.merge.fail(index, Broken::Cut);
                return None;
            }
        };
        let lie = |merge: &mut Merge<Broken>, reason: &dyn fmt::Display| {
            merge.lied(index, reason.to_string());
        };
        match step {
            None => lie(&mut self.merge, &"it sent an empty message"),
            Some(Step::Begin(begin)) => match fields::file_name("name", &begin.name) {
                Ok(name) => self.merge.begin(index, name),
                Err(error) => lie(&mut self.merge, &error),
            },
            Some(Step::Output(bytes)) => self.merge.output(index, bytes),
            Some(Step::Done(done)) => match read_done(done) {
                Ok(done) => self.merge.done(index, Box::new(done)),
                Err(error) => lie(&mut self.merge, &error),
            },
            Some(Step::End(end)) => {
                let gaps = end.gaps.iter().map(|gap| convert::gap(&id, gap)).collect();
                self.merge.end(index, end.files, gaps);
                node.messages = None;
            }
            Some(Step::Progress(progress)) => {
                if progress.node != id.as_str() {
                    lie(&mut self.merge, &"it speaks for another node");
                    return None;
                }
                let now = call.clock.instant();
                let is_soon = node
                    .told
                    .is_some_and(|told| now.saturating_duration_since(told) < OFTEN);
                if !is_soon {
                    node.told = Some(now);
                    return Some(Step::Progress(progress));
                }
            }
            Some(Step::Want(_)) => match node.wants.take() {
                Some(wants) => {
                    if wants.send(()).is_err() {
                        tracing::debug!(node = %id, "it went away while it wanted the component");
                    }
                    let want = Step::Want(batch_run_response::Want {});
                    return self.component.want().then_some(want);
                }
                None => lie(
                    &mut self.merge,
                    &"it wants a component that there is not, or twice",
                ),
            },
        }
        None
    }

    /// The caller sends the component, or goes away.
    fn receive(
        &mut self,
        message: Option<Result<wire::BatchRunRequest, Status>>,
    ) -> Result<(), Status> {
        let Some(Ok(message)) = message else {
            return Err(gone());
        };
        match message.step {
            Some(batch_run_request::Step::Component(piece)) if self.component.is_coming() => {
                Ok(self.component.receive(piece)?)
            }
            Some(batch_run_request::Step::Component(_) | batch_run_request::Step::Open(_))
            | None => Err(unexpected("expected")),
        }
    }
}

fn watched(messages: BatchMessages, idle: Duration) -> Messages {
    Idle::new(Box::pin(messages.map(Ok)), idle)
}

async fn send(answers: &Sender, step: batch_run_response::Step) -> Result<(), Status> {
    let answer = wire::BatchRunResponse { step: Some(step) };
    answers.send(Ok(answer)).await.map_err(|_gone| gone())
}

pub(super) fn gone() -> Status {
    Status::cancelled("the stream ended: the job is cancelled")
}

pub(super) fn stalled(idle: Duration) -> Status {
    Kind::TimedOut.status(format!("stalled: no message within {idle:?}"))
}

pub(super) fn unexpected(expected: &str) -> Status {
    InvalidMessage::invalid("step", format!("is not {expected}")).into()
}
