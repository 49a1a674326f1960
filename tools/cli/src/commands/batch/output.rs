//! `holdfast batch output`: what a job left, on this machine.

use std::path::{Path, PathBuf};

use archive_client::batch::JobOutput;
use archive_client::{Batch, Researcher};
use archive_model::JobId;
use clap::Args;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::save::{Destination, is_stdout};
use tools_terminal::session::Session;

use super::JobSelector;
use super::status::{exit_of, show_job};

/// Fetch the output of a job
///
/// Fetches the result, unless an option asks for something else; for a job that failed or was cancelled, its output as
/// far as it came. Needs the role researcher. The exit code is 0 if the output was fetched and is whole, 1 if it was
/// fetched and lacks something (`holdfast batch status` says what), and 4 while the job has not ended.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast batch output b-7f3a9c > result.txt
  holdfast batch output b-7f3a9c -o result.txt -e errors.jsonl --manifest read.jsonl")]
pub(crate) struct Output {
    #[command(flatten)]
    job: JobSelector,
    #[command(flatten)]
    places: Places,
}

/// The files that the outputs of a job are written to.
#[derive(Debug, Args)]
pub(super) struct Places {
    /// Output file of the result; `-` is stdout [default: stdout, unless another output is asked for]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Output file of failures and of files that no node has read: one JSON document on each line
    #[arg(short, long, value_name = "FILE")]
    errors: Option<PathBuf>,
    /// Output file of the manifest, the files that were read with their roots: one JSON document on each line
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Replace the output files if they exist
    #[arg(long)]
    force: bool,
}

impl Output {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let session = Session::open(&context.global)?;
        let researcher = session.researcher();
        let job = researcher.find(&self.job.id).await;
        let job = job.map_err(|error| session.failure(error))?;
        self.places.check_places(context)?;
        self.places
            .fetch_outputs(context, &session, &researcher, &job.id)
            .await?;
        if context.output.is_json() {
            show_job(context, &job)?;
        }
        Ok(exit_of(&job))
    }
}

impl Places {
    /// Returns whether no output is named, so that the result goes to stdout.
    fn is_default(&self) -> bool {
        self.output.is_none() && self.errors.is_none() && self.manifest.is_none()
    }

    /// Refuses what cannot be, before a job has run for hours.
    pub(super) fn check_places(&self, context: &CommandContext) -> Result<(), Failure> {
        let wanted = [&self.output, &self.errors, &self.manifest];
        let given: Vec<&Path> = wanted.into_iter().flatten().map(PathBuf::as_path).collect();
        let mut on_stdout = 0;
        for path in &given {
            if is_stdout(path, &context.output)? {
                on_stdout += 1;
            } else if given.iter().filter(|other| other == &path).count() > 1 {
                let path = path.display();
                return Err(Failure::wrong_usage(format!(
                    "{path} is named twice; name a file for each"
                )));
            } else if !self.force && path.symlink_metadata().is_ok() {
                let path = path.display();
                return Err(Failure::new(
                    Exit::Refused,
                    format!(
                        "{path}: is there already and was not touched; use --force, or another name"
                    ),
                ));
            }
        }
        if on_stdout > 1 {
            return Err(Failure::wrong_usage(
                "only one thing can go to stdout; name files for the others",
            ));
        }
        Ok(())
    }

    /// Fetches what is asked for. With `--json`, nothing goes to stdout but the document.
    pub(super) async fn fetch_outputs(
        &self,
        context: &CommandContext,
        session: &Session,
        researcher: &Researcher,
        id: &JobId,
    ) -> Result<(), Failure> {
        let stdout = PathBuf::from("-");
        let result = if self.is_default() && !context.output.is_json() {
            Some(&stdout)
        } else {
            self.output.as_ref()
        };
        let wanted = [
            (JobOutput::Result, result),
            (JobOutput::Errors, self.errors.as_ref()),
            (JobOutput::Manifest, self.manifest.as_ref()),
        ];
        for (left, path) in wanted {
            let Some(path) = path else { continue };
            let mut steps = researcher
                .output(id, left, 0)
                .await
                .map_err(|error| session.failure(error))?;
            let mut destination = Destination::open(path, self.force, &context.output)?;
            while let Some(bytes) = steps.next().await.map_err(|error| session.failure(error))? {
                destination.write(&bytes)?;
            }
            destination.finish()?;
        }
        Ok(())
    }

    /// Returns whether the failures are fetched.
    pub(super) const fn has_errors(&self) -> bool {
        self.errors.is_some()
    }
}
