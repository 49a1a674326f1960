//! `holdfast batch`: programs over the files of a replica, where the bytes are.

mod check;
mod describe;
mod jobs;
mod list;
mod output;
mod run;
mod status;
mod watch;

use archive_model::JobId;
use clap::{Args, Subcommand};
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};

/// Run programs over archived files, where their bytes are
///
/// A job runs on every node of a replica, over each file that its expression matches: a built-in job, or a WebAssembly
/// component of your own. Its output is collected in the order of the names of the files and becomes one result. Jobs
/// outlive restarts of any part, and their output is kept for some time. Needs the role researcher.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  holdfast batch jobs
  holdfast batch run checksum --files '12-.*' -o checksums.txt
  holdfast batch check titles.wasm
  holdfast batch run --wasm titles.wasm --arg language=da -o titles.txt
  holdfast batch list")]
pub(crate) enum Batch {
    Check(check::Check),
    Jobs(jobs::Jobs),
    Run(Box<run::Run>),
    List(list::List),
    Status(status::Status),
    Cancel(status::Cancel),
    Output(output::Output),
}

/// The job that is meant.
#[derive(Debug, Args)]
pub(super) struct JobSelector {
    /// The id of the job, as `holdfast batch list` prints it
    #[arg(value_name = "ID", value_parser = job_id)]
    id: JobId,
}

fn job_id(text: &str) -> Result<JobId, String> {
    JobId::new(text).map_err(|error| error.to_string())
}

impl Batch {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        match self {
            Self::Check(check) => check.run(context),
            Self::Jobs(jobs) => jobs.run(context).await,
            Self::Run(run) => run.run(context).await,
            Self::List(list) => list.run(context).await,
            Self::Status(status) => status.run(context).await,
            Self::Cancel(cancel) => cancel.run(context).await,
            Self::Output(output) => output.run(context).await,
        }
    }
}
