//! `holdfast verify audit`: the chain of the audit log, checked without any network.

use std::path::PathBuf;

use archive_durable::DiskError;
use archive_ledger::admin::stamp::{self, LogEnd};
use archive_ledger::audit_log::{LineHash, LogError, LogSummary, LogWalk, verify_all};
use clap::Args;
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::tell_user;

/// Verify that the audit log was not changed: its lines are chained by hashes
///
/// Needs the files of the log, `audit-000000.jsonl` and so on, or the directory with all of them: `audit` in the data
/// directory of the repository, or a copy of it. A line that was changed, removed, added or moved is named with its
/// file.
///
/// The chain alone does not show whether lines were removed from its end. The stamp of the admin data, `admin.stamp`,
/// has the number of lines and the hash of the last one: it is read if it lies beside the directory `audit`, or if
/// --stamp names it. --head gives a hash that was kept elsewhere, such as `audit_head` in the last line of an export.
/// Without either, the output says that removed lines at the end are not noticed.
///
/// The exit code is 1 if the chain is broken, if lines that the stamp counts are not there, or if no line has the hash
/// that was given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast verify audit holdfast-data/repository/audit
  holdfast verify audit audit-000007.jsonl audit-000008.jsonl
  holdfast verify audit backup/audit --head 9f0c…64-digits…
  holdfast verify audit backup/audit --stamp holdfast-data/repository/admin.stamp")]
pub(crate) struct VerifyAudit {
    /// The directory of the log, or files of it in their order
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The hash of a line, from an export or an earlier run; the log must have that line
    #[arg(long, value_name = "HEX", value_parser = hash)]
    head: Option<LineHash>,
    /// The stamp of the admin data, with which the end of the log is compared [default: `admin.stamp` beside the
    /// directory]
    #[arg(long, value_name = "FILE")]
    stamp: Option<PathBuf>,
}

/// The end that a log has at least, as a stamp says.
#[derive(Debug, Serialize)]
struct KnownEnd {
    stamp: PathBuf,
    #[serde(flatten)]
    end: LogEnd,
}

/// The statement of the log, for programs.
#[derive(Debug, Serialize)]
struct LogStatement {
    #[serde(serialize_with = "tools_terminal::shown_path::list")]
    files: Vec<PathBuf>,
    valid: bool,
    lines: u64,
    /// The numbers of the first and the last line.
    first: u64,
    last: u64,
    /// The hash of the last line.
    head: String,
    /// The number of the line whose hash was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    sought: Option<u64>,
    /// The end that a stamp knows, which is in the log; `None` if there was no stamp to compare with.
    known: Option<KnownEnd>,
    /// The number of bytes after the last whole line.
    torn: u64,
}

/// The place where the log is broken.
#[derive(Debug, Serialize)]
struct Broken {
    #[serde(serialize_with = "tools_terminal::shown_path::list")]
    files: Vec<PathBuf>,
    valid: bool,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "tools_terminal::shown_path::optional"
    )]
    file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    error: Failure,
}

impl VerifyAudit {
    pub(super) fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let output = &context.output;
        let (place, error) = match self.check() {
            Ok(said) => {
                if output.is_json() {
                    output.write_document(&said)?;
                } else {
                    self.show(&said, context)?;
                }
                return Ok(Exit::Done);
            }
            Err(broken) => broken,
        };
        tell_user(&error.message);
        let exit = error.exit;
        if output.is_json() {
            let (file, line) = place.unzip();
            output.write_document(&Broken {
                files: self.files,
                valid: false,
                file,
                line,
                error,
            })?;
        }
        Ok(exit)
    }

    fn check(&self) -> Result<LogStatement, (Option<(PathBuf, u64)>, Failure)> {
        // Before the log: a repository that runs appends to the log first.
        let known = self.known().map_err(|why| (None, why))?;
        let walk = match self.files.as_slice() {
            [directory] if directory.is_dir() => LogWalk::open(directory).map_err(broken)?,
            files => LogWalk::over_files(files.to_vec()),
        };
        let head = known
            .as_ref()
            .and_then(|known| LineHash::parse(&known.end.head));
        let sought: Vec<LineHash> = self.head.into_iter().chain(head).collect();
        let verified = verify_all(walk, &sought).map_err(broken)?;
        let LogSummary {
            lines,
            numbers,
            head,
            torn,
            sought,
        } = verified;
        let shown = self.shown();
        let failed = |why: String| (None, Failure::because_failed(format!("{shown}: {why}")));
        if lines == 0 && known.is_none() {
            return Err(failed(
                "there is no line of an audit log in it; name the directory `audit` of a repository, or its files"
                    .to_owned(),
            ));
        }
        let found = self.head.and_then(|_| sought.first().copied().flatten());
        if let (Some(head), None) = (self.head, found) {
            return Err(failed(format!(
                "the chain is whole, but no line of it has the hash {head}: it was written anew, or is older than that \
                 hash; compare it with another copy, and find out who changed it"
            )));
        }
        if let Some(KnownEnd { stamp, end }) = &known {
            let last = end.lines.saturating_sub(1);
            let stamp = stamp.display();
            if numbers.end <= last {
                let gone = end.lines.saturating_sub(numbers.end);
                return Err(failed(format!(
                    "the last {gone} lines are missing: by {stamp} there are lines up to number {last}, and the log ends with \
                     {}; restore the log from a copy or from an export, and find out who removed them",
                    numbers.end.saturating_sub(1)
                )));
            }
            if sought.last().copied().flatten() != Some(last) {
                return Err(failed(format!(
                    "the chain is whole, but by {stamp} line number {last} has the hash {}: the log was written anew; \
                     restore it from a copy or from an export, and find out who changed it",
                    end.head
                )));
            }
        }
        Ok(LogStatement {
            files: self.files.clone(),
            valid: true,
            lines,
            first: numbers.start,
            last: numbers.end.saturating_sub(1),
            head: head.to_string(),
            sought: found,
            known,
            torn,
        })
    }

    /// Returns the end that a stamp knows, if there is one to be compared with.
    fn known(&self) -> Result<Option<KnownEnd>, Failure> {
        let stamp = match (&self.stamp, self.files.as_slice()) {
            (Some(stamp), _) => stamp.clone(),
            (None, [directory]) if directory.is_dir() => directory.join("../admin.stamp"),
            (None, _) => return Ok(None),
        };
        let reach = stamp::read_stamp(&stamp)
            .map_err(|error| Failure::because_failed(error.to_string()))?;
        if reach.is_none() && self.stamp.is_some() {
            return Err(Failure::because_failed(format!(
                "{}: there is no such file; name the `admin.stamp` of a repository",
                stamp.display()
            )));
        }
        let end = reach.and_then(|reach| reach.audit);
        Ok(end.map(|end| KnownEnd { stamp, end }))
    }

    fn shown(&self) -> String {
        match self.files.as_slice() {
            [one] => one.display().to_string(),
            files => format!("{} files", files.len()),
        }
    }

    fn show(&self, said: &LogStatement, context: &CommandContext) -> Result<(), Failure> {
        let LogStatement {
            lines,
            first,
            last,
            head,
            ..
        } = said;
        let output = &context.output;
        output.write_line(&format!("{}: good", self.shown()))?;
        output.write_line(&format!("  {lines} lines, number {first} to {last}"))?;
        output.write_line(&format!("  sha256 of the last line {head}"))?;
        if let Some(number) = said.sought {
            output.write_line(&format!(
                "  the hash that was given is that of line number {number}"
            ))?;
        }
        match &said.known {
            Some(KnownEnd { stamp, end }) => output.write_line(&format!(
                "  all {} lines that {} knows are there",
                end.lines,
                stamp.display()
            ))?,
            None if said.sought.is_none() => tell_user(
                "the end of the log was compared with nothing: lines that were removed from it are not noticed; give \
                 --stamp with the `admin.stamp` of the repository, or --head",
            ),
            None => {}
        }
        if *first > 0 {
            tell_user(&format!(
                "the lines before number {first} were not checked: name the earlier files, too"
            ));
        }
        if said.torn > 0 {
            let torn = said.torn;
            tell_user(&format!(
                "{torn} bytes after the last line are half a line: it was being written, or a crash cut it"
            ));
        }
        Ok(())
    }
}

fn hash(text: &str) -> Result<LineHash, String> {
    LineHash::parse(text).ok_or_else(|| "a hash has 64 of the digits 0-9 and a-f".to_owned())
}

/// Returns the place of the damage and the failure to report.
fn broken(error: LogError) -> (Option<(PathBuf, u64)>, Failure) {
    let message = error.to_string();
    match error {
        LogError::Changed { file, line, .. } => {
            (Some((file, line)), Failure::because_failed(message))
        }
        LogError::Disk(DiskError { path, source, .. }) => {
            (None, Failure::unreadable_file(&path, &source))
        }
        LogError::Database(_) | LogError::Json(_) | LogError::Stopped => {
            (None, Failure::because_failed(message))
        }
    }
}
