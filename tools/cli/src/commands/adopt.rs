//! `holdfast adopt`: take an unexpected file into the archive.

use archive_client::Preservation;
use archive_model::{Act, FileCopy, ReplicaId, Root};
use clap::Args;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::list::file_name;
use tools_terminal::output::{Output, size_text};
use tools_terminal::reason::ReasonText;
use tools_terminal::session::Session;

use super::requests::ask_for_act;

/// Take into the archive an unexpected file that a replica has
///
/// The node reads the bytes of the file, which must be what was admitted under its name; it is then a file like any
/// other. A file that the archive does not know is taken in if its own admission was signed by a trusted key. Needs the
/// role officer.
///
/// With --new-root, requests that content of another root becomes right under a name that has no good copy left. A
/// second person must approve that; the command is printed. Needs the role custodian or officer.
///
/// The exit code is 0 if the file was adopted, or the request was recorded, and 5 if the bytes are not what was
/// admitted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast adopt 12-34-20260101-00001.warc.gz --replica two
  holdfast adopt a.warc.gz --replica two --new-root 9f0c…64-digits… --reason 'only copy left' --as custodian/custodian-1")]
pub(crate) struct Adopt {
    /// The file's name in the archive
    name: String,
    /// The replica that has it
    #[arg(long, value_name = "ID")]
    replica: ReplicaId,
    /// BLAKE3 of the content that becomes right from now on, 64 hex digits
    #[arg(long, value_name = "HEX", requires = "reason")]
    new_root: Option<Root>,
    /// The reason for the new root; the audit trail keeps it
    #[arg(long, value_name = "TEXT", requires = "new_root")]
    reason: Option<ReasonText>,
}

impl Adopt {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let name = file_name(&self.name)?;
        if let (Some(root), Some(reason)) = (self.new_root, &self.reason) {
            let act = Act::NewRoot {
                name,
                replica: self.replica,
                root,
            };
            return ask_for_act(context, &act, reason).await;
        }
        let session = Session::open(&context.global)?;
        let kept = session.keeper().adopt(&name, &self.replica).await;
        let kept = kept.map_err(|error| session.failure(error))?;
        report_copy(&context.output, "adopted", &kept)
    }
}

/// Prints where a file is now; it is a failure if it is not good there.
pub(super) fn report_copy(output: &Output, done: &str, kept: &FileCopy) -> Result<Exit, Failure> {
    if output.is_json() {
        output.write_document(kept)?;
    } else {
        let FileCopy {
            name, size: bytes, ..
        } = kept;
        output.write_line(&format!(
            "{name}  {done}, {} on node {}, volume {}: {}",
            size_text(*bytes),
            kept.place.node,
            kept.place.volume,
            kept.condition.as_str()
        ))?;
    }
    Ok(if kept.is_present() {
        Exit::Done
    } else {
        Exit::Failed
    })
}
