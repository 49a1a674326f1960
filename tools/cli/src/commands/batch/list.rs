//! `holdfast batch list`: the jobs that are kept.

use archive_client::Batch;
use archive_client::batch::JobStatus;
use clap::Args;
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::items::Items;
use tools_terminal::session::Session;

use super::describe;

/// List the jobs that wait, run, or have output
///
/// Prints one line for each job, newest first: id, state, time and person of the submission, files read, and program.
/// Needs the role researcher or operator. The exit code is 0, whatever is listed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast batch list --own
  holdfast batch list --open --json")]
pub(crate) struct List {
    /// Only your own jobs
    #[arg(long)]
    own: bool,
    /// Only jobs that have not ended
    #[arg(long)]
    open: bool,
}

#[derive(Debug, Serialize)]
struct End {}

impl List {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let session = Session::open(&context.global)?;
        let jobs = session.researcher().list(self.own, self.open).await;
        let mut jobs = jobs.map_err(|error| session.failure(error))?;
        let mut items = Items::begin_items(&context.output, "jobs")?;
        let ended = loop {
            match jobs.next().await {
                Ok(Some(job)) => items.write_item(&job, || line(&job))?,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.into()),
            }
        };
        items.end_items(true, End {}, ended, Exit::Done)
    }
}

fn line(job: &JobStatus) -> String {
    let JobStatus {
        id,
        state,
        who,
        submitted,
        files,
        ..
    } = job;
    let submitted = tools_terminal::describe::describe_time(*submitted);
    let what = describe::describe_spec(&job.spec);
    format!("{id}  {state:<9}  {submitted}  {who}  {files} file(s)  {what}")
}
