//! `holdfast index`: the part that follows the archive, and what operators do with it; indexes that are built from
//! files.

mod dedup;
mod export;
mod import;
mod keep;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use index_client::SetName;
use tools_terminal::context::{CommandContext, Global};
use tools_terminal::exit::{Exit, Failure};

use super::parts::{load_part_settings, run_part};
use super::talk;

/// Run or manage the index: where and when each URL was captured
///
/// With --settings, runs the part `index`, which follows the archive and answers `holdfast captures`, until Ctrl-C or
/// SIGTERM. The exit code is then 3 if its settings are wrong, and 1 if it cannot continue. With a verb, asks the index
/// that the client file names, or builds a dedup index from files (`dedup`).
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true
)]
#[command(after_help = "Examples:
  holdfast index --settings index.toml
  holdfast index status
  holdfast index retry
  holdfast index import old.cdx --set netarkivet-2012
  holdfast index export -o captures.cdxj
  holdfast index dedup *-metadata-1.warc.gz -o earlier.dedup")]
pub(crate) struct Index {
    /// The settings file of the part
    #[arg(long, value_name = "FILE", required = true)]
    settings: Option<PathBuf>,
    #[command(subcommand)]
    verb: Option<Verb>,
}

/// A verb for an index.
#[derive(Debug, Subcommand)]
enum Verb {
    Status(keep::Status),
    Retry(keep::Retry),
    Rebuild(keep::Rebuild),
    Import(import::Import),
    Export(export::Export),
    Dedup(dedup::Dedup),
}

impl Index {
    pub(crate) fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        match self.verb {
            Some(Verb::Status(status)) => talk(status.run(context)),
            Some(Verb::Retry(retry)) => talk(retry.run(context)),
            Some(Verb::Rebuild(rebuild)) => talk(rebuild.run(context)),
            Some(Verb::Import(import)) => talk(import.run(context)),
            Some(Verb::Export(export)) => talk(export.run(context)),
            Some(Verb::Dedup(dedup)) => dedup.run(context),
            None => part(self.settings, context),
        }
    }
}

/// Reads the name of a set, and what else every command takes: `--set` of these verbs is the set of captures, not a
/// setting.
fn named_set(text: &str, context: &CommandContext) -> Result<(SetName, Global), Failure> {
    let set = SetName::new(text).map_err(|error| Failure::wrong_usage(error.to_string()))?;
    Ok((set, without_settings(context)))
}

fn without_settings(context: &CommandContext) -> Global {
    Global {
        set: Vec::new(),
        ..context.global.clone()
    }
}

/// Runs the part until a signal.
fn part(settings: Option<PathBuf>, context: &CommandContext) -> Result<Exit, Failure> {
    let file =
        settings.ok_or_else(|| Failure::wrong_usage("name the settings file with --settings"))?;
    let settings = load_part_settings(&file, &context.global.set)?;
    run_part(&file, settings, index_server::serve_index)
}
