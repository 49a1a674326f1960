//! `holdfast remove`: ask for a copy to be moved into the attic.

use archive_model::{Act, ReplicaId, Root};
use clap::Args;

use super::get::name;
use super::requests::ask;
use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::reason::Reason;

/// Ask for the copy of one replica to be removed
///
/// Nothing is removed yet: a second person must approve; how is printed. Then the copy goes to the attic, where it
/// stays for `attic.min_age` at least, 30 days unless it says otherwise. The file is withdrawn from that replica: not
/// missing, not repaired, and its name stays taken permanently. You say which copy goes by its checksum. Needs the role
/// custodian.
///
/// A wrong copy, or a file that the archive does not know, goes by its own checksum (`b3sum` on its node). Nothing is
/// withdrawn then: the right copy is brought, where there is one.
///
/// The exit code is 0 when the request is recorded.
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
    reason: Reason,
    /// Confirm that no other copy is left, or that this leaves none
    #[arg(long)]
    last_copies: bool,
}

impl Remove {
    pub(crate) async fn run(self, context: &Context) -> Result<Exit, Failure> {
        let act = Act::Remove {
            name: name(&self.name)?,
            replica: self.replica,
            checksum: self.checksum,
            last_copies: self.last_copies,
        };
        ask(context, &act, &self.reason).await
    }
}
