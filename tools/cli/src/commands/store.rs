//! `holdfast store`: files into every replica, each with its receipt.

mod sources;
mod store_context;

pub(super) use self::store_context::make_directory;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use archive_model::ReplicaId;
use clap::Args;
use serde::Serialize;
use tokio::task::JoinSet;
use tools_terminal::checksums::Checksums;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::{Output, size_text, tell_user};
use tools_terminal::progress::TransferProgress;
use tools_terminal::session::Session;

use self::sources::Source;
use self::store_context::{StoreContext, StoredDocument};

/// Store files in every replica, and get a receipt for each
///
/// A file is stored under its own name, without its directory. Storing the same content again succeeds; other content
/// under a name that is taken is refused permanently. Keep the source until its receipt is there. Needs the role
/// harvester. The exit code is 0 only if every required replica has verified every file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast store 12-34-20260101-00001.warc.gz
  holdfast store --recursive /crawls/34 --receipts /crawls/34-receipts --jobs 16
  holdfast store *.warc.gz --checksums SHA256SUMS")]
pub(crate) struct Store {
    /// Files, and directories with --recursive
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Store the files in the directories, at any depth
    #[arg(short, long)]
    recursive: bool,
    /// Number of files to store at once
    #[arg(short, long, value_name = "COUNT", default_value = "4")]
    jobs: NonZeroUsize,
    /// A list by b3sum, sha256sum or md5sum: every file must be in it, and have the checksum that it names
    #[arg(long, value_name = "FILE", conflicts_with = "no_digest")]
    checksums: Option<PathBuf>,
    /// Output directory of the receipts, as NAME.receipt.json [default: no receipts are written]
    #[arg(long, value_name = "DIR")]
    receipts: Option<PathBuf>,
    /// Do not compute digests first: nothing then protects the bytes on their way from this disk to the archive
    #[arg(long)]
    no_digest: bool,
}

/// The outcome for one path.
#[derive(Debug, Serialize)]
struct Outcome {
    #[serde(serialize_with = "tools_terminal::shown_path::one")]
    path: PathBuf,
    #[serde(flatten)]
    done: Option<StoredDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure>,
}

impl Outcome {
    fn new(path: PathBuf, result: Result<StoredDocument, Failure>) -> Self {
        match result {
            Ok(done) => Self {
                path,
                done: Some(done),
                error: None,
            },
            Err(error) => Self {
                path,
                done: None,
                error: Some(error),
            },
        }
    }

    fn exit(&self) -> Exit {
        self.error.as_ref().map_or(Exit::Done, |error| error.exit)
    }
}

impl Store {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let checksums = self
            .checksums
            .as_deref()
            .map(Checksums::read_checksums)
            .transpose()?;
        let session = Session::open(&context.global)?;
        if let Some(directory) = &self.receipts {
            store_context::make_directory(directory)?;
        }
        let found = sources::find_sources(&self.paths, self.recursive);
        let total = found
            .iter()
            .filter_map(|source| source.file.as_ref().ok())
            .map(|file| file.size)
            .sum();
        let progress = if context.output.is_json() {
            TransferProgress::hidden()
        } else {
            TransferProgress::of_bytes(total)
        };
        let shared = Arc::new(StoreContext {
            depositor: session.depositor(),
            checksums,
            no_digest: self.no_digest,
            receipts: self.receipts,
            progress: progress.clone(),
        });
        let outcomes = store_all(&shared, found, self.jobs, &context.output).await?;
        progress.finish();
        let failed = outcomes
            .iter()
            .filter(|outcome| outcome.error.is_some())
            .count();
        let stored = outcomes.len() - failed;
        if context.output.is_json() {
            let document =
                serde_json::json!({ "files": outcomes, "stored": stored, "failed": failed });
            context.output.write_document(&document)?;
        } else if outcomes.is_empty() {
            tell_user("the named paths contain no file; nothing was stored");
        } else if outcomes.len() > 1 {
            context
                .output
                .write_line(&format!("{stored} stored, {failed} failed"))?;
        }
        Ok(Exit::of_all(outcomes.iter().map(Outcome::exit)))
    }
}

/// Stores up to `--jobs` files at once, tries all, and reports each outcome as soon as it is known.
async fn store_all(
    shared: &Arc<StoreContext>,
    found: Vec<Source>,
    jobs: NonZeroUsize,
    output: &Output,
) -> Result<Vec<Outcome>, Failure> {
    let mut outcomes = Vec::new();
    let mut running = JoinSet::new();
    let mut waiting = found.into_iter();
    let mut waits = true;
    loop {
        while waits && running.len() < jobs.get() {
            let Some(Source { path, file }) = waiting.next() else {
                waits = false;
                break;
            };
            match file {
                Ok(file) => {
                    let shared = Arc::clone(shared);
                    running.spawn(async move {
                        let result = shared.store_source(&path, &file).await;
                        Outcome::new(path, result)
                    });
                }
                Err(failure) => {
                    let outcome = Outcome::new(path, Err(failure));
                    say(shared, &outcome, output)?;
                    outcomes.push(outcome);
                }
            }
        }
        match running.join_next().await {
            Some(Ok(outcome)) => {
                say(shared, &outcome, output)?;
                outcomes.push(outcome);
            }
            Some(Err(error)) => {
                return Err(Failure::new(
                    Exit::Bug,
                    format!("a store ended: {error}; this is a bug, please report it"),
                ));
            }
            None => return Ok(outcomes),
        }
    }
}

fn say(shared: &StoreContext, outcome: &Outcome, output: &Output) -> Result<(), Failure> {
    if let Some(failure) = &outcome.error {
        shared.progress.tell_user(&failure.message);
        return Ok(());
    }
    let Some(done) = outcome.done.as_ref().filter(|_| !output.is_json()) else {
        return Ok(());
    };
    let word = if done.already {
        "already there"
    } else {
        "stored"
    };
    let replicas = done
        .replicas
        .iter()
        .map(ReplicaId::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    let line = format!(
        "{}  {word}, {} in {replicas}",
        done.name,
        size_text(done.size)
    );
    shared.progress.suspend(|| output.write_line(&line))
}
