//! `holdfast replace`: the right bytes in place of a wrong copy.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archive_client::Preservation;
use archive_client::preservation::CopyReplacement;
use archive_model::{ReplicaId, Root};
use clap::Args;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::list::file_name;
use tools_terminal::output::size_text;
use tools_terminal::progress::TransferProgress;
use tools_terminal::reason::ReasonText;
use tools_terminal::session::Session;

/// Put the right bytes in the place of a wrong copy
///
/// FILE must have the root under which NAME was admitted; other bytes are refused. The wrong copy goes to the attic,
/// from where `holdfast attic restore` restores it. Name the wrong copy by its checksum, so that no other copy can go.
/// If another replica has an intact copy, use `holdfast repair` instead. Needs the role officer.
///
/// The exit code is 0 if the new copy was read back and is good, and 5 if a checksum is not the expected one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast replace a.warc.gz --replica two --checksum 9f0c…64-digits… --with /backup/a.warc.gz --reason 'from tape 7'")]
pub(crate) struct Replace {
    /// The file's name in the archive
    name: String,
    /// The replica whose copy is wrong
    #[arg(long, value_name = "ID")]
    replica: ReplicaId,
    /// BLAKE3 of the copy that is to go, 64 hex digits
    #[arg(long, value_name = "HEX")]
    checksum: Root,
    /// The file with the right bytes
    #[arg(long, value_name = "FILE")]
    with: PathBuf,
    /// The reason; the audit trail keeps it
    #[arg(long, value_name = "TEXT")]
    reason: ReasonText,
}

impl Replace {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let name = file_name(&self.name)?;
        let path = &self.with;
        let unreadable = |error| Failure::unreadable_file(path, &error);
        let source = File::open(path).map_err(unreadable)?;
        let metadata = source.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            let path = path.display();
            return Err(Failure::wrong_usage(format!(
                "{path}: not a file; name one with --with"
            )));
        }
        let session = Session::open(&context.global)?;
        let replacement = CopyReplacement {
            name,
            replica: self.replica,
            checksum: self.checksum,
            reason: self.reason.as_str().to_owned(),
            source: Arc::new(source),
            size: metadata.len(),
        };
        let progress = if context.output.is_json() {
            TransferProgress::hidden()
        } else {
            TransferProgress::of_bytes(replacement.size)
        };
        let sent = AtomicU64::new(0);
        let watch = |now| progress.step_bytes(sent.swap(now, Ordering::Relaxed), now);
        let replaced = session.keeper().replace(&replacement, &watch).await;
        progress.finish();
        let replaced = replaced.map_err(|error| session.failure(error))?;
        if context.output.is_json() {
            context.output.write_document(&replaced)?;
        } else {
            let entry = &replaced.entry;
            context.output.write_line(&format!(
                "{}  replaced in {}, {}; the wrong copy is in attic {}",
                entry.name,
                replacement.replica,
                size_text(entry.size),
                replaced.attic.place
            ))?;
        }
        Ok(Exit::Done)
    }
}
