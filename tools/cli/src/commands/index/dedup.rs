//! `holdfast index dedup`: an index of earlier captures, built from metadata files.
//!
//! Owns the command line and the words around it. What is in one is decided by `index/dedup`.

use std::io;
use std::path::{Path, PathBuf};

use archive_daemon::ByteSize;
use clap::Args;
use index_dedup::{BuildReport, DedupBuildError, Workspace, build_index};
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::tell_user;
use tools_terminal::progress::TransferProgress;
use tools_terminal::save::{Partial, is_stdout};

use crate::commands::warc::open_input;

/// Build an index of earlier captures, for crawls that do not store unchanged content again
///
/// Reads the metadata files of earlier jobs, WARC or ARC, of Holdfast or of NetarchiveSuite. A duplicate leads to the
/// first capture of its content in all the files; a duplicate without such a capture is reported and left out. The exit
/// code is 1 if the index lacks something because of damage, a bad line or such a duplicate.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast index dedup *-metadata-1.warc.gz -o earlier.dedup
  holdfast index dedup --force -o earlier.dedup 1-metadata-1.warc 2-metadata-1.warc
  holdfast get 7-metadata-1.warc.gz -o - | holdfast index dedup - -o earlier.dedup")]
pub(crate) struct Dedup {
    /// Metadata files: WARC or ARC, plain, gzip or zstd; `-` is stdin
    #[arg(value_name = "METADATA", required = true)]
    files: Vec<PathBuf>,
    /// Output file; `-` is stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace the output file if it exists
    #[arg(long)]
    force: bool,
    /// Approximate memory for sorting; lines beyond it go to temporary files
    #[arg(long, value_name = "SIZE", default_value = "256 MB")]
    memory: ByteSize,
    /// Directory of temporary files [default: that of the system]
    #[arg(long, value_name = "DIR")]
    temporary: Option<PathBuf>,
}

/// The document about an index that was built.
#[derive(Serialize)]
struct DedupDocument<'a> {
    index: &'a Path,
    /// The number of metadata files that were read.
    files: u64,
    /// The number of lines in the logs and indexes of those files.
    lines: u64,
    /// The number of captures in the index.
    captures: u64,
    /// The number of duplicates that led to a first capture.
    duplicates: u64,
    /// The number of logged responses without a record.
    without_record: u64,
    problem_count: u64,
    /// The first thousand problems.
    problems: Vec<String>,
    exit: Exit,
}

impl Dedup {
    pub(super) fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let temporary = self.temporary.clone().unwrap_or_else(std::env::temp_dir);
        let workspace = Workspace {
            directory: &temporary,
            memory: usize::try_from(self.memory.bytes()).unwrap_or(usize::MAX),
        };
        // A name that is taken is refused before anything is read.
        let file = if is_stdout(&self.output, &context.output)? {
            None
        } else {
            Some(Partial::create(&self.output, self.force)?)
        };
        let progress = self.progress();
        let mut exits = Vec::new();
        let inputs = self.files.iter();
        let inputs = inputs.filter_map(|path| match open_input(path) {
            Ok(source) => Some((path.display().to_string(), progress.watch_reader(source))),
            Err(failure) => {
                progress.tell_user(&failure.message);
                exits.push(failure.exit);
                None
            }
        });
        let is_file = file.is_some();
        let built = match file {
            None => build_index(inputs, workspace, &mut context.output.writer()),
            Some(file) => {
                let mut output = io::BufWriter::new(file.writer()?);
                let built = build_index(inputs, workspace, &mut output);
                drop(output);
                if built.is_ok() {
                    file.keep()?;
                }
                built
            }
        };
        progress.finish();
        let report = built.map_err(failure)?;
        for problem in &report.problems {
            tell_user(&problem.to_string());
        }
        let unnamed = report
            .problem_count
            .saturating_sub(report.problems.len() as u64);
        if unnamed > 0 {
            tell_user(&format!("{unnamed} more problems"));
        }
        if report.problem_count > 0 {
            exits.push(Exit::Failed);
        }
        let exit = Exit::of_all(exits);
        if context.output.is_json() {
            context
                .output
                .write_document(&self.document(&report, exit))?;
        } else if is_file {
            context.output.write_line(&summary(&report))?;
        }
        Ok(exit)
    }

    /// Returns a bar for the bytes of all files, as far as they are known.
    fn progress(&self) -> TransferProgress {
        let sizes = self.files.iter().filter_map(|path| path.metadata().ok());
        TransferProgress::of_bytes(sizes.map(|metadata| metadata.len()).sum())
    }

    fn document<'a>(&'a self, report: &BuildReport, exit: Exit) -> DedupDocument<'a> {
        DedupDocument {
            index: &self.output,
            files: report.files,
            lines: report.lines,
            captures: report.captures,
            duplicates: report.duplicates,
            without_record: report.without_record,
            problem_count: report.problem_count,
            problems: report.problems.iter().map(ToString::to_string).collect(),
            exit,
        }
    }
}

fn summary(report: &BuildReport) -> String {
    let BuildReport {
        files,
        captures,
        duplicates,
        ..
    } = report;
    format!("{captures} captures, {duplicates} duplicates resolved, {files} metadata files read")
}

fn failure(error: DedupBuildError) -> Failure {
    match error {
        DedupBuildError::Output(error) => Failure::output_failed(&error),
        error @ (DedupBuildError::Temporary { .. } | DedupBuildError::Sort(_)) => {
            Failure::because_failed(format!("{error}; choose another place with --temporary"))
        }
    }
}
