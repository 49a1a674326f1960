//! `holdfast batch status` and `cancel`: one job.

use archive_client::Batch;
use archive_client::batch::{JobState, JobStatus};
use clap::Args;

use super::watch::watch;
use super::{Which, said};
use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::session::Session;

/// Show how a job stands
///
/// Shows the program and its limits, how far each node is, and what the output lacks. Needs one of the roles
/// researcher,
/// operator. The exit code is 0 while it waits or runs and when it is whole, and 1 if files failed or were not read, or
/// if it failed or was cancelled.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast batch status b-7f3a9c
  holdfast batch status b-7f3a9c --json")]
pub(crate) struct Status {
    #[command(flatten)]
    which: Which,
}

/// End a job that waits or runs
///
/// Its result up to then is kept and can be fetched, and the files that were not read are counted and named; this waits
/// for that. A job that has ended stays as it is. Researchers end their own jobs, operators any. The exit code is 0 if
/// it is cancelled, and 1 if it had ended otherwise before.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast batch cancel b-7f3a9c")]
pub(crate) struct Cancel {
    #[command(flatten)]
    which: Which,
}

impl Status {
    pub(crate) async fn run(self, context: &Context) -> Result<Exit, Failure> {
        let session = Session::open(&context.global)?;
        let job = session.researcher().find(&self.which.id).await;
        let job = job.map_err(|error| session.failure(error))?;
        show(context, &job)?;
        Ok(exit(&job))
    }
}

impl Cancel {
    pub(crate) async fn run(self, context: &Context) -> Result<Exit, Failure> {
        let session = Session::open(&context.global)?;
        let researcher = session.researcher();
        let job = researcher.cancel(&self.which.id).await;
        let job = job.map_err(|error| session.failure(error))?;
        let job = watch(context, &session, &researcher, job).await?;
        show(context, &job)?;
        Ok(if job.state == JobState::Cancelled {
            Exit::Done
        } else {
            Exit::Failed
        })
    }
}

/// Of a job that goes on there is nothing wrong yet.
pub(super) fn exit(job: &JobStatus) -> Exit {
    if !job.state.has_ended() || job.is_whole() {
        Exit::Done
    } else {
        Exit::Failed
    }
}

pub(super) fn show(context: &Context, job: &JobStatus) -> Result<(), Failure> {
    if context.output.is_json() {
        return context.output.document(job);
    }
    said::job(job)
        .iter()
        .try_for_each(|line| context.output.line(line))
}
