//! `holdfast verify audit`: the chain of the audit log, checked without any network.

use std::path::PathBuf;

use archive_durable::DiskError;
use archive_repository::audit_log::{Hash, LogError, Verified, Walk, verify_all};
use clap::Args;
use serde::Serialize;

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::tell;

/// Check that nobody has changed the audit log: its lines are chained by hashes
///
/// Needs the files of the log, `audit-000000.jsonl` and so on, or the directory with all of them: the repository's own
/// `audit`, or a copy of it. A line that was changed, removed, added or moved is named with its file. No line vouches for
/// the last one: compare its hash, which is printed, with one that was kept elsewhere, or give that with --head. Every
/// export has one: `audit_head`, in its last line.
///
/// The exit code is 1 if the chain is broken, or if no line has the hash that was given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast verify audit holdfast-data/repository/audit
  holdfast verify audit audit-000007.jsonl audit-000008.jsonl
  holdfast verify audit backup/audit --head 9f0c…64-digits…")]
pub(crate) struct VerifyAudit {
    /// The directory of the log, or files of it in their order
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The hash of a line, as an export or an earlier check told it; the log must have that line
    #[arg(long, value_name = "HEX", value_parser = hash)]
    head: Option<Hash>,
}

/// What the log says.
#[derive(Debug, Serialize)]
struct Said {
    #[serde(serialize_with = "crate::shown_path::list")]
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
    /// Bytes after the last whole line.
    torn: u64,
}

/// Where it is broken.
#[derive(Debug, Serialize)]
struct Broken {
    #[serde(serialize_with = "crate::shown_path::list")]
    files: Vec<PathBuf>,
    valid: bool,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::shown_path::optional"
    )]
    file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    error: Failure,
}

impl VerifyAudit {
    pub(super) fn run(self, context: &Context) -> Result<Exit, Failure> {
        let output = &context.output;
        let (place, error) = match self.check() {
            Ok(said) => {
                if output.is_json() {
                    output.document(&said)?;
                } else {
                    self.show(&said, context)?;
                }
                return Ok(Exit::Done);
            }
            Err(broken) => broken,
        };
        tell(&error.message);
        let exit = error.exit;
        if output.is_json() {
            let (file, line) = place.unzip();
            output.document(&Broken {
                files: self.files,
                valid: false,
                file,
                line,
                error,
            })?;
        }
        Ok(exit)
    }

    fn check(&self) -> Result<Said, (Option<(PathBuf, u64)>, Failure)> {
        let walk = match self.files.as_slice() {
            [directory] if directory.is_dir() => Walk::open(directory).map_err(broken)?,
            files => Walk::over(files.to_vec()),
        };
        let verified = verify_all(walk, self.head).map_err(broken)?;
        let Verified {
            lines,
            numbers,
            head,
            torn,
            sought,
        } = verified;
        let shown = self.shown();
        let failed = |why: String| (None, Failure::failed(format!("{shown}: {why}")));
        if lines == 0 {
            return Err(failed(
                "there is no line of an audit log in it; name the directory `audit` of a repository, or its files"
                    .to_owned(),
            ));
        }
        if let (Some(head), None) = (self.head, sought) {
            return Err(failed(format!(
                "the chain is whole, but no line of it has the hash {head}: it was written anew, or is older than that \
                 hash; compare it with another copy, and find out who changed it"
            )));
        }
        Ok(Said {
            files: self.files.clone(),
            valid: true,
            lines,
            first: numbers.start,
            last: numbers.end.saturating_sub(1),
            head: head.to_string(),
            sought,
            torn,
        })
    }

    fn shown(&self) -> String {
        match self.files.as_slice() {
            [one] => one.display().to_string(),
            files => format!("{} files", files.len()),
        }
    }

    fn show(&self, said: &Said, context: &Context) -> Result<(), Failure> {
        let Said {
            lines,
            first,
            last,
            head,
            ..
        } = said;
        let output = &context.output;
        output.line(&format!("{}: good", self.shown()))?;
        output.line(&format!("  {lines} lines, number {first} to {last}"))?;
        output.line(&format!("  sha256 of the last line {head}"))?;
        if let Some(number) = said.sought {
            output.line(&format!(
                "  the hash that was given is that of line number {number}"
            ))?;
        }
        if *first > 0 {
            tell(&format!(
                "what is before line number {first} was not looked at: name the earlier files, too"
            ));
        }
        if said.torn > 0 {
            let torn = said.torn;
            tell(&format!(
                "{torn} bytes after the last line are half a line: it was being written, or a crash cut it"
            ));
        }
        Ok(())
    }
}

fn hash(text: &str) -> Result<Hash, String> {
    Hash::parse(text).ok_or_else(|| "a hash has 64 of the digits 0-9 and a-f".to_owned())
}

/// What is broken, and where.
fn broken(error: LogError) -> (Option<(PathBuf, u64)>, Failure) {
    let message = error.to_string();
    match error {
        LogError::Changed { file, line, .. } => (Some((file, line)), Failure::failed(message)),
        LogError::Disk(DiskError { path, source, .. }) => {
            (None, Failure::unreadable(&path, &source))
        }
        LogError::Database(_) | LogError::Json(_) | LogError::Stopped => {
            (None, Failure::failed(message))
        }
    }
}
