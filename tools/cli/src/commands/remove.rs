//! `holdfast remove`: ask for a copy to be moved into the attic.

use archive_model::{Act, ReplicaId, Root};
use clap::Args;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::list::file_name;
use tools_terminal::reason::ReasonText;

use super::requests::ask_for_act;

/// Ask for the copy of one replica to be removed
///
/// Nothing is removed yet: a second person must approve; the command is printed. The copy then goes to the attic, where
/// it stays for at least `attic.min_age` (30 days by default). The file is withdrawn from that replica: it is not
/// missing there and not repaired, and its name stays taken permanently. If a drain has left a second copy of it in the
/// replica, that one goes as well. `holdfast reinstate` takes it back, which needs two persons too. Name the copy by its
/// checksum. Needs the role custodian.
///
/// To remove a wrong copy, or a file that the archive does not know, give its own checksum (`b3sum` on its node). The
/// file is then not withdrawn: the right copy, if there is one, is stored there again.
///
/// The exit code is 0 if the request is recorded.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast remove a.warc.gz --replica two --checksum 9f0c…64-digits… --reason 'court order 12/26' --as custodian/custodian-1")]
pub(crate) struct Remove {
    /// The file's name in the archive
    name: String,
    /// The replica whose copy is to go
    #[arg(long, value_name = "ID")]
    replica: ReplicaId,
    /// BLAKE3 of the copy, 64 hex digits; `holdfast stat` shows it
    #[arg(long, value_name = "HEX")]
    checksum: Root,
    /// The reason; the audit trail keeps it
    #[arg(long, value_name = "TEXT")]
    reason: ReasonText,
    /// Confirm that no other good copy of the file is left, or that this act leaves none
    #[arg(long)]
    last_copies: bool,
}

impl Remove {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let act = Act::Remove {
            name: file_name(&self.name)?,
            replica: self.replica,
            checksum: self.checksum,
            last_copies: self.last_copies,
        };
        ask_for_act(context, &act, &self.reason).await
    }
}
