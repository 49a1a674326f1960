//! `holdfast crawl list`: the jobs of a directory, and `holdfast crawl order`: an order that explains itself.

use std::path::{Path, PathBuf};

use clap::Args;
use harvest_controller::lock::{JobLock, LockError};
use harvest_controller::{JobDirectory, JobDirectoryError};
use harvest_crawler::crawl::CrawlEnd;
use harvest_model::CrawlOrder;
use jiff::Timestamp;
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::describe;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::{TableColumn, TextTable, or_dash};

use super::BASE;
use super::status::list_jobs;

/// List the jobs of a directory, the oldest first
///
/// The exit code is 0 whatever the state of a job is, and 1 if a directory cannot be read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast crawl list
  holdfast crawl list /data/crawls --json | jq '.[] | select(.state == \"idle\")'")]
pub(super) struct CrawlList {
    /// The directory in which the directories of jobs lie
    #[arg(value_name = "DIR", default_value = BASE)]
    directory: PathBuf,
}

/// A job in the list.
#[derive(Debug, Serialize)]
struct ListedJob {
    job: u64,
    directory: String,
    begun: Timestamp,
    seeds: usize,
    state: &'static str,
    fetched: Option<u64>,
    remaining: Option<u64>,
}

impl CrawlList {
    /// Lists the jobs.
    pub(super) fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let mut jobs = Vec::new();
        for path in list_jobs(&self.directory)? {
            jobs.push(listed(&path).map_err(|error| Failure::because_failed(error.to_string()))?);
        }
        if context.output.is_json() {
            context.output.write_document(&jobs)?;
            return Ok(Exit::Done);
        }
        let mut table = TextTable::new(&[
            TableColumn::Right("JOB"),
            TableColumn::Left("BEGUN"),
            TableColumn::Left("STATE"),
            TableColumn::Right("SEEDS"),
            TableColumn::Right("FETCHED"),
            TableColumn::Right("LEFT"),
            TableColumn::Left("DIRECTORY"),
        ]);
        for job in jobs {
            table.push([
                job.job.to_string(),
                describe::describe_time(job.begun),
                job.state.to_owned(),
                job.seeds.to_string(),
                or_dash(job.fetched.as_ref()),
                or_dash(job.remaining.as_ref()),
                job.directory,
            ]);
        }
        context.output.write_table(&table)?;
        Ok(Exit::Done)
    }
}

fn listed(path: &Path) -> Result<ListedJob, JobDirectoryError> {
    let directory = JobDirectory::open(path)?;
    let outcome = directory.read_outcome()?;
    let is_running = matches!(JobLock::acquire(&directory), Err(LockError::Busy(_)));
    let state = match (&outcome, is_running) {
        (None, true) => "crawling",
        (None, false) => "suspended",
        (Some(_), true) => "storing",
        (Some(outcome), false) => match outcome.end {
            CrawlEnd::Finished => "finished",
            CrawlEnd::Idle => "idle",
            CrawlEnd::TimeLimit | CrawlEnd::DataLimit | CrawlEnd::ObjectLimit => "limit",
            CrawlEnd::Terminated | CrawlEnd::Suspended => "stopped",
            CrawlEnd::Broken => "broken",
        },
    };
    let job = directory.job();
    Ok(ListedJob {
        job: job.id,
        directory: path.display().to_string(),
        begun: job.submitted,
        seeds: job.seeds.len(),
        state,
        fetched: outcome.as_ref().map(|outcome| outcome.progress.fetched),
        remaining: outcome
            .as_ref()
            .map(|outcome| outcome.remaining.values().sum()),
    })
}

/// Print an order with all its keys, their defaults and what each means
///
/// It can be given to --order as it is. The exit code is 0.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast crawl order > order.toml")]
pub(super) struct PrintedOrder {}

impl PrintedOrder {
    /// Prints the order.
    pub(super) fn run(context: &CommandContext) -> Result<Exit, Failure> {
        let order = CrawlOrder::default();
        if context.output.is_json() {
            context.output.write_document(&order)?;
            return Ok(Exit::Done);
        }
        let text = order
            .to_toml()
            .map_err(|error| Failure::because_failed(error.to_string()))?;
        context.output.write_line(text.trim_end())?;
        Ok(Exit::Done)
    }
}
