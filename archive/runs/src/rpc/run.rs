//! A batch job over the wire: open, the component where it is wanted, then what comes of it until the end. The caller
//! keeps its side open as long as the job shall run.
//!
//! Here a caller may leave answers unread for as long as the job may run: it waits for the node whose next file comes
//! first. That it lives is seen by the connection.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use archive_batch::{Control, Plan, Stop};
use archive_bitarchive::{Node, rpc};
use archive_model::{FileName, JobLane, Program};
use archive_rpc::answers::open;
use archive_rpc::{AnswerStream, Answers, InvalidMessage, Kind};
use bytes::Bytes;
use proto_archive::batch_run::{JobRun, write_done};
use proto_archive::wire::{self, batch_run_request, batch_run_response};
use tokio::sync::mpsc::error::TrySendError;
use tokio_stream::{Stream, StreamExt};
use tonic::{Response, Status};

use super::job::{
    Ending, Pieces, blocking, check_replica, compile, next, note, over, refused, unexpected,
};
use crate::ended::Ended;
use crate::node_jobs::Batch;
use crate::running::{Order, Progress, Running, Step};

/// How many answers wait to be read.
const ANSWERS: usize = 16;

/// How often a caller hears that the job lives while its component is compiled.
const EVERY: Duration = Duration::from_secs(1);

/// Runs a job of a caller who says `steps`, for as long as it listens.
pub(super) fn run<S>(
    batch: &Arc<Batch>,
    idle: Duration,
    steps: S,
) -> Response<AnswerStream<wire::BatchRunResponse>>
where
    S: Stream<Item = Result<wire::BatchRunRequest, Status>> + Send + Unpin + 'static,
{
    let (stream, task) = open(ANSWERS, |answers| {
        let call = Call {
            batch: Arc::clone(batch),
            idle,
            steps,
            answers,
        };
        call.serve()
    });
    batch.tasks.spawn_once("batch", task);
    Response::new(stream)
}

struct Call<S> {
    batch: Arc<Batch>,
    idle: Duration,
    steps: S,
    answers: Answers<wire::BatchRunResponse>,
}

impl<S> Call<S>
where
    S: Stream<Item = Result<wire::BatchRunRequest, Status>> + Send + Unpin + 'static,
{
    async fn serve(mut self) -> Result<(), Status> {
        let batch_run_request::Step::Open(open) = self.step().await? else {
            return Err(unexpected("open"));
        };
        let run = JobRun::read(open)?;
        check_replica(&self.batch, &run)?;
        let selection = run.spec.selection();
        let selection =
            selection.map_err(|error| InvalidMessage::invalid("files", error.to_string()))?;
        let slot = self.batch.slot(run.lane).ok_or_else(|| {
            let node = self.batch.node.id();
            Kind::Busy.status(match run.lane {
                JobLane::Research => format!(
                    "{} batch jobs run on node {node} already (`batch_node.jobs`); ask again later",
                    self.batch.most_jobs()
                ),
                JobLane::Index => format!(
                    "{} batch jobs of the index run on node {node} already; ask again later",
                    JobLane::MOST_OF_INDEX
                ),
            })
        })?;
        let slot = slot.noting(note(&self.batch, &run).await?);
        let ending = Ending::default();
        tracing::info!(job = %run.id, program = ?run.spec.program, after = ?run.after, "a batch job begins");
        let (batch, answers) = (Arc::clone(&self.batch), self.answers.clone());
        let over = over(&batch, &answers, run.left, &ending.control);
        tokio::pin!(over);
        let plan = tokio::select! {
            biased;
            status = &mut over => return Err(status),
            never = pulse(&batch, &answers) => match never {},
            plan = self.plan(&run, &ending.control) => plan?,
        };
        let order = Order {
            id: run.id.clone(),
            plan,
            selection,
            after: run.after,
            output: run.spec.limits.output,
            ahead: self
                .batch
                .most_ahead(&run.spec.program, run.spec.limits.memory),
            control: ending.control.clone(),
            stop: ending.stop.clone(),
        };
        let mut running = Running::begin(&batch, slot, order);
        let ended = tokio::select! {
            biased;
            status = &mut over => Err(status),
            status = gone(&mut self.steps) => Err(status),
            ended = forward(&mut running, &batch.node, &answers) => ended,
        };
        let Progress { files, bytes, .. } = running.progress();
        let why = ended.as_ref().err().map(Status::message);
        tracing::info!(job = %run.id, files, bytes, why, "a batch job has ended");
        ended
    }

    async fn step(&mut self) -> Result<batch_run_request::Step, Status> {
        let message = next(&mut self.steps, self.idle).await?;
        Ok(message
            .step
            .ok_or_else(|| InvalidMessage::missing("step"))?)
    }

    /// What is done with each file.
    async fn plan(&mut self, run: &JobRun, control: &Control) -> Result<Box<dyn Plan>, Status> {
        let digest = match &run.spec.program {
            Program::BuiltIn(name) => {
                return archive_batch::plan(name, &run.spec.arguments)
                    .map_err(|error| refused(&error));
            }
            Program::Component(digest) => *digest,
        };
        let components = self.batch.components.clone();
        let found = blocking(move || components.get(&digest)).await?;
        let component = if let Some(component) = found {
            component
        } else {
            self.want().await?;
            let mut pieces = Pieces::new(run.component_size);
            while pieces.are_missing() {
                let batch_run_request::Step::Component(piece) = self.step().await? else {
                    return Err(unexpected("component"));
                };
                pieces.add(&piece)?;
            }
            compile(&self.batch, digest, pieces, control.clone()).await?
        };
        let (arguments, limits) = (run.spec.arguments.clone(), run.spec.limits);
        blocking(move || component.plan(&arguments, limits))
            .await?
            .map_err(|error| refused(&error))
    }

    async fn want(&mut self) -> Result<(), Status> {
        let want = batch_run_response::Step::Want(batch_run_response::Want {});
        let sent = self.answers.send(Ok(answer(want))).await;
        sent.map_err(|_gone| Status::cancelled("the caller is gone"))
    }
}

/// Says every second that the job lives, for as long as it has not begun.
#[expect(clippy::infinite_loop, reason = "it is dropped when the job begins")]
async fn pulse(batch: &Batch, answers: &Answers<wire::BatchRunResponse>) -> Infallible {
    loop {
        tokio::time::sleep(EVERY).await;
        let alive = progress(&Progress {
            node: batch.node.id().clone(),
            files: 0,
            files_total: 0,
            bytes: 0,
        });
        // Where it is full, the caller has others to read.
        drop(answers.try_send(Ok(answer(alive))));
    }
}

/// Waits until the caller ends the job, or says something that it must not.
async fn gone<S>(steps: &mut S) -> Status
where
    S: Stream<Item = Result<wire::BatchRunRequest, Status>> + Unpin,
{
    match steps.next().await {
        None | Some(Err(_)) => Status::cancelled("the stream ended: the job is cancelled"),
        Some(Ok(_)) => unexpected("expected: the job runs"),
    }
}

/// Sends what comes of a job, to its end.
async fn forward(
    running: &mut Running,
    node: &Node,
    answers: &Answers<wire::BatchRunResponse>,
) -> Result<(), Status> {
    loop {
        let step = running.next().await.map_err(|why| ended(&why))?;
        let is_last = matches!(step, Step::End(..));
        let Err(unsent) = answers.try_send(Ok(answer(written(node, step)))) else {
            if is_last {
                return Ok(());
            }
            continue;
        };
        let gone = || Status::cancelled("the caller is gone");
        match unsent {
            TrySendError::Closed(_) => return Err(gone()),
            TrySendError::Full(message) => {
                running.let_go();
                answers.send(message).await.map_err(|_gone| gone())?;
            }
        }
        if is_last {
            return Ok(());
        }
    }
}

fn written(node: &Node, step: Step) -> batch_run_response::Step {
    use batch_run_response::Step as Wire;
    match step {
        Step::Begin(name) => begin(&name),
        Step::Output(bytes) => output(bytes),
        Step::Done(done) => Wire::Done(write_done(*done)),
        Step::Progress(far) => progress(&far),
        Step::End(files, offline) => {
            let mut gaps = rpc::gaps(node);
            for (volume, reason) in offline {
                if gaps.iter().all(|gap| gap.volume != volume.as_str()) {
                    gaps.push(wire::Gap {
                        replica: node.replica().to_string(),
                        node: node.id().to_string(),
                        volume: volume.into(),
                        reason,
                    });
                }
            }
            Wire::End(batch_run_response::End { files, gaps })
        }
    }
}

fn begin(name: &FileName) -> batch_run_response::Step {
    batch_run_response::Step::Begin(batch_run_response::Begin {
        name: name.to_string(),
    })
}

fn output(bytes: Bytes) -> batch_run_response::Step {
    batch_run_response::Step::Output(bytes)
}

fn progress(far: &Progress) -> batch_run_response::Step {
    batch_run_response::Step::Progress(batch_run_response::Progress {
        node: far.node.to_string(),
        files: far.files,
        files_total: far.files_total,
        bytes: far.bytes,
    })
}

fn answer(step: batch_run_response::Step) -> wire::BatchRunResponse {
    wire::BatchRunResponse { step: Some(step) }
}

fn ended(ended: &Ended) -> Status {
    match ended {
        Ended::Stopped(Stop::Time) => Kind::TimedOut.status("the time of the job is over"),
        Ended::Stopped(Stop::Output) => {
            Kind::NoSpace.status("the job has written more than it may")
        }
        Ended::Stopped(Stop::Cancelled) => Status::cancelled("the job was cancelled"),
        Ended::Node(error) => rpc::status(error),
        Ended::Exhausted(why) => {
            Kind::Unavailable.status(format!("the node can open no more files now: {why}"))
        }
        Ended::Bug(_) => Kind::Internal.status(ended.to_string()),
    }
}
