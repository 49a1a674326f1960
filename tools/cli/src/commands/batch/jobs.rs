//! `holdfast batch jobs`: what can be run without a program of one's own.

use archive_client::Batch;
use archive_client::batch::JobDescription;
use clap::Args;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::session::Session;

/// List the built-in jobs and their arguments
///
/// Prints the name of each job, what it does, what one line of its output means, its arguments, and how the outputs of
/// all files become one result. Needs the role researcher. The exit code is 0.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast batch jobs
  holdfast batch jobs --json")]
pub(crate) struct Jobs {}

impl Jobs {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let session = Session::open(&context.global)?;
        let jobs = session.researcher().jobs().await;
        let jobs = jobs.map_err(|error| session.failure(error))?;
        if context.output.is_json() {
            context
                .output
                .write_document(&serde_json::json!({ "jobs": jobs }))?;
            return Ok(Exit::Done);
        }
        for job in &jobs {
            for line in text(job) {
                context.output.write_line(&line)?;
            }
        }
        Ok(Exit::Done)
    }
}

/// Returns the lines that tell people of a kind of job.
fn text(job: &JobDescription) -> Vec<String> {
    let JobDescription {
        name,
        about,
        output,
        arguments,
        reduce,
    } = job;
    let mut lines = vec![name.clone(), format!("  {about}")];
    lines.push(format!("  output: {output} ({reduce})"));
    for argument in arguments {
        let given = if argument.required {
            "required".to_owned()
        } else if argument.default.is_empty() {
            "default: nothing".to_owned()
        } else {
            format!("default: {}", argument.default)
        };
        let name = &argument.name;
        let about = &argument.about;
        lines.push(format!("  --arg {name}=…  {about} [{given}]"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use archive_client::batch::JobArgument;
    use archive_model::Reduce;

    use super::*;

    /// Fails if the list of jobs does not tell required arguments from others, or hides what is assumed for those.
    #[test]
    fn an_argument_says_whether_it_must_be_given() {
        let argument = |name: &str, required, default: &str| JobArgument {
            name: name.into(),
            about: "what".into(),
            required,
            default: default.into(),
        };
        let job = JobDescription {
            name: "find".into(),
            about: "Finds.".into(),
            output: "LINE".into(),
            arguments: vec![argument("url", true, ""), argument("mime", false, ".*")],
            reduce: Reduce::Sort,
        };
        let lines = text(&job).join("\n");
        assert!(lines.contains("--arg url=…  what [required]"), "{lines}");
        assert!(
            lines.contains("--arg mime=…  what [default: .*]"),
            "{lines}"
        );
    }
}
