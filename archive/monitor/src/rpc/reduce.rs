//! The reduce step of a component over the wire: open, the component where it is wanted, the output of all files in; the
//! result out.
//!
//! It computes on a thread that may block, reads only as fast as it computes, and writes only as fast as it is read.

use std::convert::Infallible;
use std::io::{self, Read};
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use archive_batch::{Control, JobError, Sink, Stop};
use archive_component::{CompileError, Component, Components};
use archive_daemon::{Clock, Tasks};
use archive_model::limits::LONGEST_REASON;
use archive_model::{Program, Root};
use archive_rpc::{InvalidMessage, Kind};
use bytes::{Buf, Bytes};
use futures_util::{Stream, StreamExt};
use proto_archive::batch_run::Run;
use proto_archive::wire::{self, batch_reduce_request, batch_reduce_response, batch_run_response};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use tonic::{Response, Status};

use super::batch::{Answers, answered, gone, rest_of_component, stalled, unexpected};

/// How many messages wait on either side: each is at most 1 MiB.
const MESSAGES: usize = 4;

/// The most bytes of data in one message that is taken.
const LARGEST: usize = 1 << 20;

/// How many bytes of the result are sent at once.
const PIECE: usize = 256 * 1024;

/// How long a caller may leave the last answer unread.
const UNREAD: Duration = Duration::from_mins(2);

type Sender = mpsc::Sender<Result<wire::BatchReduceResponse, Status>>;

/// What all reduce steps share.
pub(super) struct Engine {
    components: Components,
    /// Held while a component is compiled.
    compiling: Arc<Semaphore>,
    slots: Arc<Semaphore>,
}

impl Engine {
    /// So many steps at once.
    pub(super) fn new(components: Components, most: NonZeroU16) -> Self {
        Self {
            components,
            compiling: Arc::new(Semaphore::new(1)),
            slots: Arc::new(Semaphore::new(most.get().into())),
        }
    }
}

/// What a call needs of the monitor.
pub(super) struct Call {
    pub(super) engine: Arc<Engine>,
    pub(super) clock: Clock,
    pub(super) stop: CancellationToken,
    pub(super) idle: Duration,
}

/// Runs a reduce step.
pub(super) fn run<S>(
    call: Call,
    tasks: &Tasks,
    steps: S,
) -> Response<Answers<wire::BatchReduceResponse>>
where
    S: Stream<Item = Result<wire::BatchReduceRequest, Status>> + Send + Unpin + 'static,
{
    let (answers, stream) = mpsc::channel(MESSAGES);
    tasks.spawn_once("reduce", async move {
        let input = Input {
            steps,
            idle: call.idle,
        };
        if let Err(status) = Box::pin(serve(&call, input, &answers)).await {
            // A caller that is gone, or does not read, needs no answer.
            drop(tokio::time::timeout(UNREAD, answers.send(Err(status))).await);
        }
        Ok::<(), Infallible>(())
    });
    Response::new(answered(stream))
}

/// Ends whatever computes.
struct Ending {
    control: Control,
    stop: CancellationToken,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.control.stop(Stop::Cancelled);
        self.stop.cancel();
    }
}

async fn serve<S>(call: &Call, mut input: Input<S>, answers: &Sender) -> Result<(), Status>
where
    S: Stream<Item = Result<wire::BatchReduceRequest, Status>> + Send + Unpin + 'static,
{
    let batch_reduce_request::Step::Open(open) = input.next().await? else {
        return Err(unexpected("open"));
    };
    let run = Run::read_reduce(open)?;
    let Program::Component(digest) = run.spec.program else {
        let reason = "is empty: the repository makes the results of built-in jobs itself";
        return Err(InvalidMessage::invalid("component", reason).into());
    };
    let slots = Arc::clone(&call.engine.slots);
    let slot = slots.try_acquire_owned().map_err(|_none_left| {
        Kind::Busy.status(
            "too many reduce steps run here (`batch_monitor.reduces` of the monitor); ask again later",
        )
    })?;
    let ending = Ending {
        control: Control::default(),
        stop: CancellationToken::new(),
    };
    tracing::info!(job = %run.id, %digest, "a reduce step begins");
    let work = async {
        let from = (answers, &ending.control);
        let component = component(call, &mut input, &run, digest, from).await?;
        if !component.about().reduces {
            let reason = "the component has no reduce step";
            return Err(Kind::NotFound.status(reason));
        }
        let reduced = reduce(
            component,
            &run,
            &mut input,
            &ending,
            (slot, answers.clone()),
        )
        .await?;
        end(reduced, answers).await
    };
    let ended = tokio::select! {
        biased;
        () = answers.closed() => Err(gone()),
        () = call.stop.cancelled() => {
            Err(Kind::Unavailable.status("the monitor is stopping; ask again when it is back"))
        }
        () = call.clock.sleep(run.left) => {
            ending.control.stop(Stop::Time);
            Err(Kind::TimedOut.status("the time of the job is over"))
        }
        ended = work => ended,
    };
    let why = ended.as_ref().err().map(Status::message);
    tracing::info!(job = %run.id, why, "a reduce step has ended");
    ended
}

/// The component, from the cache or from the caller.
async fn component<S>(
    call: &Call,
    input: &mut Input<S>,
    run: &Run,
    digest: Root,
    (answers, control): (&Sender, &Control),
) -> Result<Arc<Component>, Status>
where
    S: Stream<Item = Result<wire::BatchReduceRequest, Status>> + Send + Unpin + 'static,
{
    let components = call.engine.components.clone();
    if let Some(component) = blocking(move || components.get(&digest)).await? {
        return Ok(component);
    }
    let want = batch_reduce_response::Step::Want(batch_run_response::Want {});
    send(answers, want).await?;
    let (mut bytes, mut missing) = (Vec::new(), run.component_size);
    while missing > 0 {
        let batch_reduce_request::Step::Component(piece) = input.next().await? else {
            return Err(unexpected("component"));
        };
        missing = rest_of_component(missing, &piece)?;
        bytes.extend_from_slice(&piece);
    }
    let found = Root::from_bytes(*blake3::hash(&bytes).as_bytes());
    if found != digest {
        let reason = format!("the component is not {digest}, but {found}: send that one");
        return Err(Kind::Mismatch.status(reason));
    }
    let compiling = Arc::clone(&call.engine.compiling).acquire_owned().await;
    let permit = compiling.map_err(|error| Kind::Internal.status(error.to_string()))?;
    let (components, control) = (call.engine.components.clone(), control.clone());
    let compiled = blocking(move || {
        let _permit = permit;
        match components.get(&digest) {
            Some(component) => Ok(component),
            None => components.compile(&bytes, &control),
        }
    });
    compiled.await?.map_err(|error| match error {
        CompileError::Refused(_) => Kind::Mismatch.status(error.to_string()),
        CompileError::Stopped(_) => gone(),
        CompileError::Untried(_) => Kind::Unavailable.status(error.to_string()),
    })
}

/// Computes, while the input comes.
async fn reduce<S>(
    component: Arc<Component>,
    run: &Run,
    input: &mut Input<S>,
    ending: &Ending,
    (slot, answers): (OwnedSemaphorePermit, Sender),
) -> Result<Result<(), JobError>, Status>
where
    S: Stream<Item = Result<wire::BatchReduceRequest, Status>> + Send + Unpin + 'static,
{
    let (sender, receiver) = mpsc::channel(MESSAGES);
    let stop = ending.stop.clone();
    let mut reader = Reader {
        receiver,
        piece: Bytes::new(),
        stop: stop.clone(),
        runtime: Handle::current(),
    };
    let mut out = Written {
        answers,
        buffer: Vec::new(),
        left: run.spec.limits.output,
        control: ending.control.clone(),
        stop,
        runtime: Handle::current(),
    };
    let (arguments, limits) = (run.spec.arguments.clone(), run.spec.limits);
    let computing = blocking(move || {
        let _slot = slot;
        let control = out.control.clone();
        component.reduce(&arguments, limits, &mut reader, &mut out, &control)?;
        Ok(out.flush()?)
    });
    tokio::pin!(computing);
    let pumped = tokio::select! {
        // It may need no more than the first of it.
        reduced = &mut computing => return reduced,
        pumped = input.pump(sender) => pumped,
    };
    pumped?;
    computing.await
}

/// How it ended, as the caller is told.
async fn end(reduced: Result<(), JobError>, answers: &Sender) -> Result<(), Status> {
    let failure = match reduced {
        Ok(()) => String::new(),
        Err(JobError::Stopped(Stop::Time)) => {
            return Err(Kind::TimedOut.status("the time of the job is over"));
        }
        Err(JobError::Stopped(Stop::Output)) => {
            return Err(Kind::NoSpace.status("the reduce step has written more than it may"));
        }
        Err(JobError::Stopped(Stop::Cancelled)) => return Err(gone()),
        Err(error @ (JobError::Read(_) | JobError::Failed(_) | JobError::Broken(_))) => {
            let reason: String = error.to_string().chars().take(LONGEST_REASON).collect();
            if reason.is_empty() {
                "it failed without a reason".to_owned()
            } else {
                reason
            }
        }
    };
    let end = batch_reduce_response::End { failure };
    send(answers, batch_reduce_response::Step::End(end)).await
}

async fn send(answers: &Sender, step: batch_reduce_response::Step) -> Result<(), Status> {
    let answer = wire::BatchReduceResponse { step: Some(step) };
    answers.send(Ok(answer)).await.map_err(|_gone| gone())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Status> {
    let done = spawn_blocking(work).await;
    done.map_err(|error| Kind::Internal.status(error.to_string()))
}

/// What the caller says.
struct Input<S> {
    steps: S,
    idle: Duration,
}

impl<S> Input<S>
where
    S: Stream<Item = Result<wire::BatchReduceRequest, Status>> + Send + Unpin + 'static,
{
    async fn next(&mut self) -> Result<batch_reduce_request::Step, Status> {
        match tokio::time::timeout(self.idle, self.steps.next()).await {
            Ok(Some(Ok(message))) => Ok(message
                .step
                .ok_or_else(|| InvalidMessage::missing("step"))?),
            Ok(Some(Err(_)) | None) => Err(gone()),
            Err(_late) => Err(stalled(self.idle)),
        }
    }

    /// Hands on all the data. Where nobody takes it any more, the rest is not read.
    async fn pump(&mut self, sender: mpsc::Sender<Bytes>) -> Result<(), Status> {
        loop {
            match self.next().await? {
                batch_reduce_request::Step::Data(data) if (1..=LARGEST).contains(&data.len()) => {
                    if sender.send(data).await.is_err() {
                        return Ok(());
                    }
                }
                batch_reduce_request::Step::End(_) => return Ok(()),
                batch_reduce_request::Step::Data(data) => {
                    let reason = format!("has a message of {} bytes", data.len());
                    return Err(InvalidMessage::invalid("data", reason).into());
                }
                batch_reduce_request::Step::Open(_) | batch_reduce_request::Step::Component(_) => {
                    return Err(unexpected("data or end"));
                }
            }
        }
    }
}

/// The input as the component reads it.
struct Reader {
    receiver: mpsc::Receiver<Bytes>,
    piece: Bytes,
    stop: CancellationToken,
    runtime: Handle,
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() {
            let next = self.runtime.block_on(async {
                tokio::select! {
                    biased;
                    () = self.stop.cancelled() => Err(io::Error::other("the job was ended")),
                    next = self.receiver.recv() => Ok(next),
                }
            })?;
            self.piece = next.unwrap_or_default();
        }
        let count = self.piece.len().min(buffer.len());
        if let Some(to) = buffer.get_mut(..count) {
            self.piece.copy_to_slice(to);
        }
        Ok(count)
    }
}

/// The result as the component writes it.
struct Written {
    answers: Sender,
    buffer: Vec<u8>,
    /// How many bytes it may still write.
    left: u64,
    control: Control,
    stop: CancellationToken,
    runtime: Handle,
}

impl Written {
    fn flush(&mut self) -> Result<(), Stop> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let data = Bytes::from(std::mem::take(&mut self.buffer));
        let step = batch_reduce_response::Step::Data(data);
        let sent = self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => None,
                sent = send(&self.answers, step) => sent.ok(),
            }
        });
        sent.ok_or_else(|| self.control.why().unwrap_or(Stop::Cancelled))
    }
}

impl Sink for Written {
    fn write(&mut self, mut bytes: &[u8]) -> Result<(), Stop> {
        self.control.check()?;
        let Some(left) = self.left.checked_sub(bytes.len() as u64) else {
            self.control.stop(Stop::Output);
            return Err(Stop::Output);
        };
        self.left = left;
        while !bytes.is_empty() {
            let room = PIECE.saturating_sub(self.buffer.len()).min(bytes.len());
            let (now, later) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
            self.buffer.extend_from_slice(now);
            bytes = later;
            if self.buffer.len() >= PIECE {
                self.flush()?;
            }
        }
        Ok(())
    }
}
