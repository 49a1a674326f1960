//! `holdfast index status`, `retry` and `rebuild`: what an operator does with the index.

use archive_model::FileName;
use clap::Args;
use index_client::{FollowState, IndexStatus};
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::{Output, tell_user};
use tools_terminal::session::Session;

/// Show how far the index has followed the archive, and which files it could not read
///
/// Needs the role operator. The exit code is 1 if files are parked, if the archive does not answer, if a file that was
/// read again differed from the index, or if the database was damaged and rebuilt, or lacks a set since then. The
/// output says which of these is the case.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast index status
  holdfast index status --json | jq '.parked[].name'")]
pub(super) struct Status {}

/// Try parked files again
///
/// A file is parked after it was found damaged, or to be no WARC or ARC, three times; `holdfast index status` names the
/// files and the reasons. Files whose nodes are down are not parked: they are tried again by themselves. Needs the role
/// operator. The exit code is 1 if one of the files is not parked; nothing is then done.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast index retry                        every parked file
  holdfast index retry 12-34-00001.warc.gz")]
pub(super) struct Retry {
    /// Only these files [default: every parked file]
    #[arg(value_name = "NAME")]
    names: Vec<FileName>,
}

/// Delete all captures that came from files, and extract them again
///
/// Imported sets stay. The captures of a file are not found until it is read again. Needs the role operator. The exit
/// code is 0 if the captures were deleted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast index rebuild --yes")]
pub(super) struct Rebuild {
    /// Confirm that captures are not found until their files are read again
    #[arg(long, required = true)]
    yes: bool,
}

impl Status {
    pub(super) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let session = Session::open(&context.global)?;
        let index = session.index()?;
        let mut status = index.index_status(None).await?;
        // An answer names a thousand parked files.
        while let Some(last) = status.parked.last().map(|file| file.name.clone()) {
            if status.parked.len() as u64 >= status.parked_files {
                break;
            }
            let more = index.index_status(Some(&last)).await?.parked;
            if more.is_empty() {
                break;
            }
            status.parked.extend(more);
        }
        if context.output.is_json() {
            context.output.write_document(&status)?;
        } else {
            show(&context.output, &status)?;
        }
        let problems = problems(&status);
        for problem in &problems {
            tell_user(problem);
        }
        Ok(if problems.is_empty() {
            Exit::Done
        } else {
            Exit::Failed
        })
    }
}

fn show(output: &Output, status: &IndexStatus) -> Result<(), Failure> {
    let position = status.position.map_or_else(
        || "no change yet".to_owned(),
        |number| format!("change {number}"),
    );
    output.write_line(&format!(
        "{} captures of {} files; {} at {position}; {} files behind; index {}",
        status.captures,
        status.indexed,
        status.state.word(),
        status.behind,
        status.version
    ))?;
    for set in &status.sets {
        output.write_line(&format!("set {}: {} captures", set.name, set.captures))?;
    }
    if let Some(last) = &status.comparison {
        output.write_line(&format!(
            "{} files compared since the start, {} differed; last {} at {}: {} captures, {} differences",
            status.compared, status.differed, last.name, last.time, last.captures, last.differences
        ))?;
    }
    for file in &status.parked {
        output.write_line(&format!(
            "parked: {} since {} after {} failures: {}",
            file.name, file.since, file.failures, file.reason
        ))?;
    }
    Ok(())
}

/// Returns the problems that an operator has to know.
fn problems(status: &IndexStatus) -> Vec<String> {
    let mut problems = Vec::new();
    if let Some(problem) = &status.problem {
        problems.push(problem.clone());
    } else if matches!(status.state, FollowState::Starting | FollowState::Waiting) {
        problems.push("the archive has not answered yet; ask again".to_owned());
    }
    if status.parked_files > 0 {
        problems.push(format!(
            "{} files are parked: see why above, then try them again with `holdfast index retry`",
            status.parked_files
        ));
    }
    if status.differed > 0 {
        problems.push(format!(
            "{} files differed from the index when they were read again, and were indexed again; see the log",
            status.differed
        ));
    }
    if let Some(reason) = &status.rebuilt {
        problems.push(format!(
            "the database was begun anew at the start, because {reason}; files are indexed again by themselves"
        ));
    }
    for set in &status.lost_sets {
        problems.push(format!(
            "set {set} went with a damaged database; import its files again with `holdfast index import --set {set}`"
        ));
    }
    problems
}

impl Retry {
    pub(super) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let session = Session::open(&context.global)?;
        let files = session.index()?.retry_files(&self.names).await?;
        if context.output.is_json() {
            let document = serde_json::json!({ "files": files });
            context.output.write_document(&document)?;
        } else {
            context
                .output
                .write_line(&format!("{files} files are tried again"))?;
        }
        Ok(Exit::Done)
    }
}

impl Rebuild {
    pub(super) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        if !self.yes {
            return Err(Failure::wrong_usage("say --yes if that is meant"));
        }
        let session = Session::open(&context.global)?;
        let captures = session.index()?.rebuild_index().await?;
        if context.output.is_json() {
            let document = serde_json::json!({ "deleted": captures });
            context.output.write_document(&document)?;
        } else {
            context.output.write_line(&format!(
                "{captures} captures deleted; `holdfast index status` shows how far they are extracted again"
            ))?;
        }
        Ok(Exit::Done)
    }
}
