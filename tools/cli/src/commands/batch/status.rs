//! `holdfast batch status` and `cancel`: one job.

use archive_client::Batch;
use archive_client::batch::{JobState, JobStatus};
use clap::Args;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::session::Session;

use super::watch::watch_job;
use super::{JobSelector, describe};

/// Show the state of a job
///
/// Shows the program and its limits, the progress of each node, and what the output lacks. Needs the role researcher or
/// operator. The exit code is 0 while the job waits or runs and when it is whole, and 1 if files failed or were not
/// read, or if the job failed or was cancelled.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast batch status b-7f3a9c
  holdfast batch status b-7f3a9c --json")]
pub(crate) struct Status {
    #[command(flatten)]
    job: JobSelector,
}

/// End a job that waits or runs
///
/// The output up to then is kept and can be fetched. The command waits until the files that were not read are counted
/// and named. A job that has ended stays as it is. Researchers end their own jobs, operators any job. The exit code is
/// 0 if the job is cancelled, and 1 if it had ended before.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast batch cancel b-7f3a9c")]
pub(crate) struct Cancel {
    #[command(flatten)]
    job: JobSelector,
}

impl Status {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let session = Session::open(&context.global)?;
        let job = session.researcher().find(&self.job.id).await;
        let job = job.map_err(|error| session.failure(error))?;
        show_job(context, &job)?;
        Ok(exit_of(&job))
    }
}

impl Cancel {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let session = Session::open(&context.global)?;
        let researcher = session.researcher();
        let job = researcher.cancel(&self.job.id).await;
        let job = job.map_err(|error| session.failure(error))?;
        let job = watch_job(context, &session, &researcher, job).await?;
        show_job(context, &job)?;
        Ok(if job.state == JobState::Cancelled {
            Exit::Done
        } else {
            Exit::Failed
        })
    }
}

/// Returns the exit code of a job. A job that still runs has nothing wrong yet.
pub(super) fn exit_of(job: &JobStatus) -> Exit {
    if !job.state.has_ended() || job.is_whole() {
        Exit::Done
    } else {
        Exit::Failed
    }
}

pub(super) fn show_job(context: &CommandContext, job: &JobStatus) -> Result<(), Failure> {
    if context.output.is_json() {
        return context.output.write_document(job);
    }
    describe::describe_job(job)
        .iter()
        .try_for_each(|line| context.output.write_line(line))
}
