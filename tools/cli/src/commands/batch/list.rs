//! `holdfast batch list`: the jobs that are kept.

use std::collections::BTreeMap;

use archive_client::Batch;
use archive_client::batch::{JobState, JobStatus};
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
/// The jobs by which indexes have new files read are one line of sum at the end; --all lists them too. Needs the role
/// researcher or operator. The exit code is 0, whatever is listed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast batch list --own
  holdfast batch list --open --json
  holdfast batch list --all")]
pub(crate) struct List {
    /// Only your own jobs
    #[arg(long)]
    own: bool,
    /// Only jobs that have not ended
    #[arg(long)]
    open: bool,
    /// Also each job of an index
    #[arg(long)]
    all: bool,
}

/// The jobs of indexes that were not listed, by their state.
#[derive(Debug, Default, Serialize)]
struct End {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    jobs_of_indexes: BTreeMap<JobState, u64>,
}

impl End {
    fn count(&mut self, job: &JobStatus) {
        *self.jobs_of_indexes.entry(job.state).or_default() += 1;
    }

    /// Returns the line of sum, if there is something to sum.
    fn line(&self) -> Option<String> {
        let states = self.jobs_of_indexes.iter();
        let states: Vec<String> = states
            .map(|(state, count)| format!("{count} {state}"))
            .collect();
        let all: u64 = self.jobs_of_indexes.values().sum();
        (all > 0).then(|| {
            format!(
                "and {all} of indexes ({}): `holdfast batch list --all` lists them",
                states.join(", ")
            )
        })
    }
}

impl List {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let session = Session::open(&context.global)?;
        let jobs = session.researcher().list(self.own, self.open).await;
        let mut jobs = jobs.map_err(|error| session.failure(error))?;
        let mut items = Items::begin_items(&context.output, "jobs")?;
        let mut end = End::default();
        let ended = loop {
            match jobs.next().await {
                Ok(Some(job)) if !self.all && is_of_index(&job) => end.count(&job),
                Ok(Some(job)) => items.write_item(&job, || line(&job))?,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.into()),
            }
        };
        if let Some(sum) = end.line() {
            items.write_line(&sum)?;
        }
        items.end_items(true, end, ended, Exit::Done)
    }
}

/// Whether an index had files read by the job, as it does for each that is stored.
fn is_of_index(job: &JobStatus) -> bool {
    job.who.starts_with("index/")
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
