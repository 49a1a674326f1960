//! The reduce step of a component over the wire: the caller opens it, sends the component if the node lacks it, then
//! the output of all files; the node sends the result.
//!
//! The step computes on a thread that may block, reads only as fast as it computes, and writes only as fast as its
//! reader reads.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use archive_batch::{BatchJobError, Sink, Stop, StopControl};
use archive_component::Component;
use archive_model::Program;
use archive_model::limits::LONGEST_REASON;
use archive_rpc::answers::{ROOM, open_answers};
use archive_rpc::{AnswerStream, Answers, CallErrorKind, InvalidMessage, run_blocking};
use bytes::{Buf, Bytes};
use proto_archive::batch_run::JobRun;
use proto_archive::wire::batch_reduce_request::Step as Request;
use proto_archive::wire::batch_reduce_response::{End, Ready, Step as Answer};
use proto_archive::wire::batch_run_response::Want;
use proto_archive::wire::{BatchReduceRequest, BatchReduceResponse};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;
use tonic::{Response, Status};

use super::job::{
    ComponentPieces, StopOnDrop, check_replica, compile_component, next, note_run,
    wait_for_early_end,
};
use crate::node_jobs::{NodeJobs, ReduceSlot};

/// The most messages of the input that wait to be read: each has at most 1 MiB.
const MESSAGES: usize = 4;

/// The most bytes of data that one message may have.
const LARGEST: usize = 1 << 20;

/// The number of bytes of the result that are sent at once.
const PIECE: usize = 256 * 1024;

/// Runs a reduce step for a caller that sends `steps`, for as long as it listens.
pub(super) fn run_reduce<S>(
    node_jobs: &Arc<NodeJobs>,
    idle: Duration,
    steps: S,
) -> Response<AnswerStream<BatchReduceResponse>>
where
    S: Stream<Item = Result<BatchReduceRequest, Status>> + Send + Unpin + 'static,
{
    let (stream, task) = open_answers(ROOM, |answers| {
        let call = ReduceCall {
            node_jobs: Arc::clone(node_jobs),
            input: Input { steps, idle },
            answers,
        };
        call.serve()
    });
    node_jobs.tasks.spawn_once("reduce", task);
    Response::new(stream)
}

struct ReduceCall<S> {
    node_jobs: Arc<NodeJobs>,
    input: Input<S>,
    answers: Answers<BatchReduceResponse>,
}

impl<S> ReduceCall<S>
where
    S: Stream<Item = Result<BatchReduceRequest, Status>> + Send + Unpin + 'static,
{
    async fn serve(mut self) -> Result<(), Status> {
        let Request::Open(open) = self.input.next().await? else {
            return Err(InvalidMessage::unexpected_step("open").into());
        };
        let run = JobRun::read_reduce(open)?;
        check_replica(&self.node_jobs, &run)?;
        let slot = self.node_jobs.reduce_slot().ok_or_else(|| {
            let most = self.node_jobs.most_reduces();
            let node = &self.node_jobs.node.id;
            CallErrorKind::Busy.to_status(format!(
                "{most} reduce steps run on node {node} already (`batch_node.reduces`); ask again later"
            ))
        })?;
        let slot = slot.noting_run(note_run(&self.node_jobs, &run).await?);
        let ending = StopOnDrop::default();
        tracing::info!(job = %run.id, program = %run.spec.program, "a reduce step begins");
        let node_jobs = Arc::clone(&self.node_jobs);
        let answers = self.answers.clone();
        let ended = tokio::select! {
            biased;
            status = wait_for_early_end(&node_jobs, &answers, run.left, &ending.control) => Err(status),
            ended = self.work(&run, slot, &ending) => ended,
        };
        let why = ended.as_ref().err().map(Status::message);
        tracing::info!(job = %run.id, why, "a reduce step has ended");
        ended
    }

    async fn work(
        &mut self,
        run: &JobRun,
        slot: ReduceSlot,
        ending: &StopOnDrop,
    ) -> Result<(), Status> {
        let component = self.component(run, &ending.control).await?;
        if !component.about().reduces {
            let reason = "the component has no reduce step";
            return Err(CallErrorKind::NotFound.to_status(reason));
        }
        send(&self.answers, Answer::Ready(Ready {})).await?;
        let reduced = self.reduce(component, run, slot, ending).await?;
        report_end(reduced, &self.answers).await
    }

    /// Gets the component from the cache or from the caller.
    async fn component(
        &mut self,
        run: &JobRun,
        control: &StopControl,
    ) -> Result<Arc<Component>, Status> {
        let Program::Component(digest) = run.spec.program else {
            let reason = "is empty: the repository makes the results of built-in jobs itself";
            return Err(InvalidMessage::invalid_field("component", reason).into());
        };
        let components = self.node_jobs.components.clone();
        if let Some(component) = run_blocking(move || components.get(&digest)).await? {
            return Ok(component);
        }
        send(&self.answers, Answer::Want(Want {})).await?;
        let mut pieces = ComponentPieces::new(run.component_size);
        while pieces.are_missing() {
            let Request::Component(piece) = self.input.next().await? else {
                return Err(InvalidMessage::unexpected_step("component").into());
            };
            pieces.add_piece(&piece)?;
        }
        compile_component(&self.node_jobs, digest, pieces, control.clone()).await
    }

    /// Computes while the input comes.
    async fn reduce(
        &mut self,
        component: Arc<Component>,
        run: &JobRun,
        slot: ReduceSlot,
        ending: &StopOnDrop,
    ) -> Result<Result<(), BatchJobError>, Status> {
        let (sender, receiver) = mpsc::channel(MESSAGES);
        let stop = ending.stop.clone();
        let mut reader = InputReader {
            receiver,
            piece: Bytes::new(),
            stop: stop.clone(),
            runtime: Handle::current(),
        };
        let mut out = ResultWriter {
            answers: self.answers.clone(),
            buffer: Vec::new(),
            left: run.spec.limits.output,
            control: ending.control.clone(),
            stop,
            runtime: Handle::current(),
        };
        let arguments = run.spec.arguments.clone();
        let limits = run.spec.limits;
        let computing = run_blocking(move || {
            let _slot = slot;
            let control = out.control.clone();
            let reducer = component.make_reducer(&arguments, limits)?;
            reducer.reduce_outputs(&mut reader, &mut out, &control)?;
            Ok(out.flush()?)
        });
        tokio::pin!(computing);
        let pumped = tokio::select! {
            // The step may need only the first part of the input.
            reduced = &mut computing => return Ok(reduced?),
            pumped = self.input.pump(sender) => pumped,
        };
        pumped?;
        Ok(computing.await?)
    }
}

/// Tells the caller how the step ended.
async fn report_end(
    reduced: Result<(), BatchJobError>,
    answers: &Answers<BatchReduceResponse>,
) -> Result<(), Status> {
    let failure = match reduced {
        Ok(()) => String::new(),
        Err(BatchJobError::Stopped(Stop::Time)) => {
            return Err(CallErrorKind::TimedOut.to_status("the time of the job is over"));
        }
        Err(BatchJobError::Stopped(Stop::Output)) => {
            return Err(
                CallErrorKind::NoSpace.to_status("the reduce step has written more than it may")
            );
        }
        Err(BatchJobError::Stopped(Stop::Cancelled)) => {
            return Err(Status::cancelled("the job was cancelled"));
        }
        Err(
            error @ (BatchJobError::Read(_) | BatchJobError::Failed(_) | BatchJobError::Broken(_)),
        ) => {
            let reason: String = error.to_string().chars().take(LONGEST_REASON).collect();
            if reason.is_empty() {
                "the reduce step failed without a reason".to_owned()
            } else {
                reason
            }
        }
    };
    send(answers, Answer::End(End { failure })).await
}

async fn send(answers: &Answers<BatchReduceResponse>, step: Answer) -> Result<(), Status> {
    let answer = BatchReduceResponse { step: Some(step) };
    let sent = answers.send(Ok(answer)).await;
    sent.map_err(|_gone| Status::cancelled("the caller has gone away"))
}

/// The messages of the caller.
struct Input<S> {
    steps: S,
    idle: Duration,
}

impl<S> Input<S>
where
    S: Stream<Item = Result<BatchReduceRequest, Status>> + Send + Unpin + 'static,
{
    async fn next(&mut self) -> Result<Request, Status> {
        let message = next(&mut self.steps, self.idle).await?;
        Ok(message
            .step
            .ok_or_else(|| InvalidMessage::missing_field("step"))?)
    }

    /// Passes on all the data. If nobody takes it any longer, the rest is not read.
    async fn pump(&mut self, sender: mpsc::Sender<Bytes>) -> Result<(), Status> {
        loop {
            match self.next().await? {
                Request::Data(data) if (1..=LARGEST).contains(&data.len()) => {
                    if sender.send(data).await.is_err() {
                        return Ok(());
                    }
                }
                Request::End(_) => return Ok(()),
                Request::Data(data) => {
                    let reason = format!("has a message of {} bytes", data.len());
                    return Err(InvalidMessage::invalid_field("data", reason).into());
                }
                Request::Open(_) | Request::Component(_) => {
                    return Err(InvalidMessage::unexpected_step("data or end").into());
                }
            }
        }
    }
}

/// The input as the component reads it.
struct InputReader {
    receiver: mpsc::Receiver<Bytes>,
    piece: Bytes,
    stop: CancellationToken,
    runtime: Handle,
}

impl Read for InputReader {
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
struct ResultWriter {
    answers: Answers<BatchReduceResponse>,
    buffer: Vec<u8>,
    /// The number of bytes that it may still write.
    left: u64,
    control: StopControl,
    stop: CancellationToken,
    runtime: Handle,
}

impl ResultWriter {
    fn flush(&mut self) -> Result<(), Stop> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let data = Bytes::from(std::mem::take(&mut self.buffer));
        let step = Answer::Data(data);
        let sent = self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => None,
                sent = send(&self.answers, step) => sent.ok(),
            }
        });
        sent.ok_or_else(|| self.control.stop_reason().unwrap_or(Stop::Cancelled))
    }
}

impl Sink for ResultWriter {
    fn write(&mut self, mut bytes: &[u8]) -> Result<(), Stop> {
        self.control.check_stop()?;
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
