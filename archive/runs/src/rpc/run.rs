//! A batch job over the wire: the caller opens it and sends the component if the node lacks it; the node sends output
//! until the end. The caller keeps its side open for as long as the job is to run.
//!
//! A caller may leave answers unread for as long as the job may run: it may be waiting for another node, whose next
//! file comes first. The connection shows that it lives.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use archive_batch::{Plan, Stop, StopControl};
use archive_bitarchive::{Node, rpc};
use archive_model::{FileName, Gap, JobClass, JobNode, Program, VolumeName};
use archive_rpc::answers::open_answers;
use archive_rpc::{AnswerStream, Answers, CallErrorKind, InvalidMessage, run_blocking};
use bytes::Bytes;
use proto_archive::batch_run::{JobRun, write_done};
use proto_archive::convert as fields;
use proto_archive::wire::{self, batch_run_request, batch_run_response};
use tokio::sync::mpsc::error::TrySendError;
use tokio_stream::{Stream, StreamExt};
use tonic::{Response, Status};

use super::job::{
    ComponentPieces, StopOnDrop, check_replica, compile_component, next, note_run, refused_status,
    wait_for_early_end,
};
use crate::early_end::EarlyEnd;
use crate::node_jobs::NodeJobs;
use crate::running::{RunOrder, RunStep, RunningJob};

/// The most answers that wait to be read.
const ANSWERS: usize = 16;

/// The time between two signs of life while a component is compiled.
const EVERY: Duration = Duration::from_secs(1);

/// Runs a job for a caller that sends `steps`, for as long as it listens.
pub(super) fn run_files<S>(
    node_jobs: &Arc<NodeJobs>,
    idle: Duration,
    steps: S,
) -> Response<AnswerStream<wire::BatchRunResponse>>
where
    S: Stream<Item = Result<wire::BatchRunRequest, Status>> + Send + Unpin + 'static,
{
    let (stream, task) = open_answers(ANSWERS, |answers| {
        let call = RunCall {
            node_jobs: Arc::clone(node_jobs),
            idle,
            steps,
            answers,
        };
        call.serve()
    });
    node_jobs.tasks.spawn_once("batch", task);
    Response::new(stream)
}

struct RunCall<S> {
    node_jobs: Arc<NodeJobs>,
    idle: Duration,
    steps: S,
    answers: Answers<wire::BatchRunResponse>,
}

impl<S> RunCall<S>
where
    S: Stream<Item = Result<wire::BatchRunRequest, Status>> + Send + Unpin + 'static,
{
    async fn serve(mut self) -> Result<(), Status> {
        let batch_run_request::Step::Open(open) = self.step().await? else {
            return Err(InvalidMessage::unexpected_step("open").into());
        };
        let run = JobRun::read_open(open)?;
        check_replica(&self.node_jobs, &run)?;
        let selection = run.spec.selection();
        let selection =
            selection.map_err(|error| InvalidMessage::invalid_field("files", error.to_string()))?;
        let slot = self.node_jobs.take_slot(run.class).ok_or_else(|| {
            let node = &self.node_jobs.node.id;
            CallErrorKind::Busy.to_status(match run.class {
                JobClass::Research => format!(
                    "{} batch jobs run on node {node} already (`batch_node.jobs`); ask again later",
                    self.node_jobs.most_jobs()
                ),
                JobClass::Index => format!(
                    "{} batch jobs of the index run on node {node} already; ask again later",
                    JobClass::MOST_OF_INDEX
                ),
            })
        })?;
        let slot = slot.noting_run(note_run(&self.node_jobs, &run).await?);
        let ending = StopOnDrop::default();
        tracing::info!(job = %run.id, program = %run.spec.program, after = run.after.as_ref().map(tracing::field::display), "a batch job begins");
        let node_jobs = Arc::clone(&self.node_jobs);
        let answers = self.answers.clone();
        let over = wait_for_early_end(&node_jobs, &answers, run.left, &ending.control);
        tokio::pin!(over);
        let plan = tokio::select! {
            biased;
            status = &mut over => return Err(status),
            never = pulse(&node_jobs, &answers) => match never {},
            plan = self.plan(&run, &ending.control) => plan?,
        };
        let order = RunOrder {
            id: run.id.clone(),
            plan,
            selection,
            after: run.after,
            output: run.spec.limits.output,
            ahead: self
                .node_jobs
                .most_ahead(&run.spec.program, run.spec.limits.memory),
            control: ending.control.clone(),
            stop: ending.stop.clone(),
        };
        let mut running = RunningJob::begin_job(&node_jobs, slot, order);
        let ended = tokio::select! {
            biased;
            status = &mut over => Err(status),
            status = wait_for_cancel(&mut self.steps) => Err(status),
            ended = forward(&mut running, &node_jobs.node, &answers) => ended,
        };
        let JobNode { files, bytes, .. } = running.job_progress();
        let why = ended.as_ref().err().map(Status::message);
        tracing::info!(job = %run.id, files, bytes, why, "a batch job has ended");
        ended
    }

    async fn step(&mut self) -> Result<batch_run_request::Step, Status> {
        let message = next(&mut self.steps, self.idle).await?;
        Ok(message
            .step
            .ok_or_else(|| InvalidMessage::missing_field("step"))?)
    }

    /// Makes the plan for each file.
    async fn plan(&mut self, run: &JobRun, control: &StopControl) -> Result<Box<dyn Plan>, Status> {
        let digest = match &run.spec.program {
            Program::BuiltIn(name) => {
                return archive_batch::plan_job(name, &run.spec.arguments)
                    .map_err(|error| refused_status(&error));
            }
            Program::Component(digest) => *digest,
        };
        let components = self.node_jobs.components.clone();
        let found = run_blocking(move || components.get(&digest)).await?;
        let component = if let Some(component) = found {
            component
        } else {
            self.want().await?;
            let mut pieces = ComponentPieces::new(run.component_size);
            while pieces.are_missing() {
                let batch_run_request::Step::Component(piece) = self.step().await? else {
                    return Err(InvalidMessage::unexpected_step("component").into());
                };
                pieces.add_piece(&piece)?;
            }
            compile_component(&self.node_jobs, digest, pieces, control.clone()).await?
        };
        let arguments = run.spec.arguments.clone();
        let limits = run.spec.limits;
        run_blocking(move || component.make_plan(&arguments, limits))
            .await?
            .map_err(|error| refused_status(&error))
    }

    async fn want(&mut self) -> Result<(), Status> {
        let want = batch_run_response::Step::Want(batch_run_response::Want {});
        let sent = self.answers.send(Ok(answer(want))).await;
        sent.map_err(|_gone| Status::cancelled("the caller has gone away"))
    }
}

/// Sends a sign of life every second until the job begins.
#[expect(clippy::infinite_loop, reason = "it is dropped when the job begins")]
async fn pulse(node_jobs: &NodeJobs, answers: &Answers<wire::BatchRunResponse>) -> Infallible {
    loop {
        tokio::time::sleep(EVERY).await;
        let alive = fields::job_progress_message(JobNode {
            node: node_jobs.node.id.clone(),
            files: 0,
            files_total: None,
            bytes: 0,
            seen: None,
        });
        let alive = answer(batch_run_response::Step::Progress(alive));
        // If the channel is full, the caller has other answers to read.
        _ = answers.try_send(Ok(alive));
    }
}

/// Waits until the caller ends the job, or sends a step that is not allowed.
async fn wait_for_cancel<S>(steps: &mut S) -> Status
where
    S: Stream<Item = Result<wire::BatchRunRequest, Status>> + Unpin,
{
    match steps.next().await {
        None | Some(Err(_)) => Status::cancelled("the stream ended: the job is cancelled"),
        Some(Ok(_)) => InvalidMessage::unexpected_step("expected: the job runs").into(),
    }
}

/// Sends the steps of a job, to its end.
async fn forward(
    running: &mut RunningJob,
    node: &Node,
    answers: &Answers<wire::BatchRunResponse>,
) -> Result<(), Status> {
    loop {
        let step = running.next().await.map_err(|why| ended(&why))?;
        let is_last = matches!(step, RunStep::End(..));
        let Err(unsent) = answers.try_send(Ok(answer(written(node, step)))) else {
            if is_last {
                return Ok(());
            }
            continue;
        };
        let gone = || Status::cancelled("the caller has gone away");
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

fn written(node: &Node, step: RunStep) -> batch_run_response::Step {
    use batch_run_response::Step as Wire;
    match step {
        RunStep::Begin(name) => begin(&name),
        RunStep::Output(bytes) => output(bytes),
        RunStep::Done(done) => Wire::Done(write_done(*done)),
        RunStep::Progress(progress) => Wire::Progress(fields::job_progress_message(progress)),
        RunStep::End(files, offline) => {
            let mut gaps = rpc::wire_gaps(node);
            for (volume, reason) in offline {
                if gaps.iter().all(|gap| gap.volume != volume.as_str()) {
                    let replica = node.replica.clone();
                    let id = node.id.clone();
                    let gap = Gap::of_volume(replica, id, VolumeName::Id(volume), reason);
                    gaps.push(fields::gap_message(gap));
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

fn answer(step: batch_run_response::Step) -> wire::BatchRunResponse {
    wire::BatchRunResponse { step: Some(step) }
}

fn ended(ended: &EarlyEnd) -> Status {
    match ended {
        EarlyEnd::Stopped(Stop::Time) => {
            CallErrorKind::TimedOut.to_status("the time of the job is over")
        }
        EarlyEnd::Stopped(Stop::Output) => {
            CallErrorKind::NoSpace.to_status("the job has written more than it may")
        }
        EarlyEnd::Stopped(Stop::Cancelled) => Status::cancelled("the job was cancelled"),
        EarlyEnd::Node(error) => rpc::error_status(error),
        EarlyEnd::Exhausted(why) => CallErrorKind::Unavailable
            .to_status(format!("the node can open no more files now: {why}")),
        EarlyEnd::Bug(_) => CallErrorKind::Internal.to_status(ended.to_string()),
    }
}
