//! `holdfast batch run`: hands a job in, watches it, fetches what it left.

use std::path::{Path, PathBuf};

use archive_client::Batch;
use archive_client::batch::{Code, JobState, JobStatus, JobSubmission};
use archive_daemon::{ByteSize, Chance, Period};
use archive_model::{JobId, NameList, NamePattern, ReplicaId};
use clap::Args;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::list::read_names;
use tools_terminal::output::tell_user;
use tools_terminal::session::Session;

use super::output::Places;
use super::status::{exit_of, show_job};
use super::watch::watch_job;
use super::{check, job_id};

/// The most gaps that are reported one by one.
const MOST_GAPS: usize = 20;

/// Run a job, wait for it, and fetch its result
///
/// A job is a built-in one (`holdfast batch jobs`) or a WebAssembly component of your own (--wasm). It is on the disk
/// of the archive before anything runs, so that Ctrl-C, or a cut connection, ends only the waiting: continue with
/// `holdfast batch status`, `cancel` and `output`. Needs the role researcher.
///
/// The exit code is 0 if every file was read and none failed, and 1 if files failed or were not read, or if the job
/// failed or was cancelled. The result is then made from the other files, and what it lacks is named.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast batch run extract-cdx --files '.*\\.warc\\.gz' -o index.cdxj
  holdfast batch run checksum --arg algorithm=md5 --replica two -o md5.txt -e failed.jsonl
  holdfast batch run --wasm titles.wasm --arg language=da --timeout '2 h' -o titles.txt
  holdfast batch run extract-cdx --names today.txt --keep '1 h' -o today.cdxj
  holdfast batch run mime-statistics --detach")]
pub(crate) struct Run {
    /// The built-in job
    #[arg(
        value_name = "JOB",
        required_unless_present = "wasm",
        conflicts_with = "wasm"
    )]
    job: Option<String>,
    /// Run this WebAssembly component instead; it is checked first, as `batch check` does
    #[arg(long, value_name = "FILE")]
    wasm: Option<PathBuf>,
    /// An argument of the job; may be given several times, once for each key
    #[arg(long = "arg", value_name = "KEY=VALUE", value_parser = argument)]
    arguments: Vec<(String, String)>,
    /// Only files whose whole name matches this regular expression [default: every file]
    #[arg(long, value_name = "REGEX")]
    files: Option<NamePattern>,
    /// Only the files that this list names, one on each line, at most 10,000; names that no node has are reported
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    names: Option<PathBuf>,
    /// Read the files of this replica [default: the first replica with all its nodes alive]
    #[arg(long, value_name = "ID")]
    replica: Option<ReplicaId>,
    #[command(flatten)]
    places: Places,
    /// Longest time that the job may run, such as '2 h', after the wait for its turn [default: as the archive is set]
    #[arg(long, value_name = "DURATION")]
    timeout: Option<Period>,
    /// Longest time that a component may compute for one file [default: as the archive is set]
    #[arg(long, value_name = "DURATION")]
    file_timeout: Option<Period>,
    /// Most memory of a component, such as '512 MiB' [default: as the archive is set]
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteSize>,
    /// Most output of the job, such as '64 GiB' [default: as the archive is set]
    #[arg(long, value_name = "SIZE")]
    max_output: Option<ByteSize>,
    /// Time that the output is kept after the end of the job [default and maximum: as the archive is set]
    #[arg(long, value_name = "DURATION")]
    keep: Option<Period>,
    /// The id of the job: to submit it again does not run it twice [default: a new id]
    #[arg(long, value_name = "ID", value_parser = job_id)]
    id: Option<JobId>,
    /// Print the id, and do not wait for the job
    #[arg(long, conflicts_with_all = ["output", "errors", "manifest", "force"])]
    detach: bool,
}

/// Reads `KEY=VALUE`, where the value may have more of `=`.
fn argument(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

impl Run {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        self.places.check_places(context)?;
        let submission = self.submission()?;
        let session = Session::open(&context.global)?;
        let researcher = session.researcher();
        let job = researcher.submit(&submission).await;
        let job = job.map_err(|error| session.failure(error))?;
        if self.detach {
            return detached(context, &job);
        }
        let id = &job.id;
        tell_user(&format!(
            "job {id} is handed in; Ctrl-C ends only the waiting (`holdfast batch cancel {id}` ends the job)"
        ));
        let job = watch_job(context, &session, &researcher, job).await?;
        self.places
            .fetch_outputs(context, &session, &researcher, &job.id)
            .await?;
        if context.output.is_json() {
            show_job(context, &job)?;
        }
        self.summarise(&job);
        Ok(exit_of(&job))
    }

    fn submission(&self) -> Result<JobSubmission, Failure> {
        let code = match (&self.job, &self.wasm) {
            (Some(job), _) => Code::BuiltIn(job.clone()),
            (None, Some(path)) => component(path)?,
            (None, None) => {
                return Err(Failure::wrong_usage(
                    "name a job, or a component with --wasm",
                ));
            }
        };
        let id = self.id.clone().map_or_else(fresh, Ok)?;
        let names = self.names.as_deref().map(names).transpose()?;
        Ok(JobSubmission {
            id,
            code,
            arguments: self.arguments.clone(),
            files: self.files.as_ref().map(ToString::to_string),
            names,
            replica: self.replica.clone(),
            avoided: Vec::new(),
            time: self.timeout.map(Into::into),
            file_time: self.file_timeout.map(Into::into),
            memory: self.memory.map(ByteSize::bytes),
            output: self.max_output.map(ByteSize::bytes),
            keep: self.keep.map(Into::into),
        })
    }

    /// Prints beside the result what it lacks.
    fn summarise(&self, job: &JobStatus) {
        let JobStatus {
            id,
            files,
            failed,
            unread,
            ..
        } = job;
        let reason = match &job.reason {
            Some(reason) => format!(": {reason}"),
            None => String::new(),
        };
        let state = job.state;
        if matches!(state, JobState::Failed | JobState::Cancelled) {
            tell_user(&format!(
                "job {id} is {state}{reason}; what it wrote before is all there is, and is not reduced"
            ));
        }
        for gap in job.gaps.iter().take(MOST_GAPS) {
            tell_user(&format!(
                "not read: {}",
                tools_terminal::describe::describe_gap(gap)
            ));
        }
        if job.is_whole() {
            tell_user(&format!("job {id}: {files} file(s) read, none failed"));
            return;
        }
        let where_to_look = if self.places.has_errors() {
            String::new()
        } else {
            format!("; `holdfast batch output {id} -e FILE` says which, where and why")
        };
        tell_user(&format!(
            "job {id}: {files} file(s) read, {failed} of them with failures; {unread} not read{where_to_look}"
        ));
    }
}

/// Reads the list of the files that a job runs over.
fn names(path: &Path) -> Result<NameList, Failure> {
    NameList::new(read_names(path)?)
        .map_err(|error| Failure::wrong_usage(format!("{}: {error}", path.display())))
}

fn detached(context: &CommandContext, job: &JobStatus) -> Result<Exit, Failure> {
    if context.output.is_json() {
        context.output.write_document(job)?;
    } else {
        context.output.write_line(job.id.as_str())?;
    }
    Ok(Exit::Done)
}

/// Reads a component and checks it as each node does: what a node would refuse is not sent.
fn component(path: &Path) -> Result<Code, Failure> {
    let (bytes, component) = check::read_component(path)?;
    Ok(Code::Component {
        digest: component.digest(),
        bytes: bytes.into(),
    })
}

/// Makes an id that no other job has.
fn fresh() -> Result<JobId, Failure> {
    let random: [u8; 8] = Chance::system_chance()
        .random_bytes()
        .map_err(|error| Failure::because_failed(format!("{error}; name the job with --id")))?;
    let text = format!("b-{}", hex::encode(random));
    JobId::new(&text).map_err(|error| Failure::because_failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a value that has an equals sign is cut there, or if an argument without a name or a value is sent.
    #[test]
    fn argument_splits_at_first_equals_sign() {
        let check = |text: &str, expected: Option<(&str, &str)>| {
            let read = argument(text).ok();
            let read = read
                .as_ref()
                .map(|(name, value)| (name.as_str(), value.as_str()));
            assert_eq!(read, expected, "{text}");
        };
        check("url=a=b", Some(("url", "a=b")));
        check("url=", Some(("url", "")));
        check("=x", None);
        check("url", None);
    }

    /// Fails if two runs get one id, so that the second person is shown the job of the first.
    #[test]
    fn each_job_has_an_id_of_its_own() {
        let one = fresh().unwrap();
        let other = fresh().unwrap();
        assert_ne!(one, other);
        assert!(one.as_str().starts_with("b-"), "{one}");
    }
}
