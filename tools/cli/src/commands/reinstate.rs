//! `holdfast reinstate`: ask for a withdrawn copy to be wanted again.

use archive_model::{Act, ReplicaId};
use clap::Args;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::list::file_name;
use tools_terminal::reason::ReasonText;

use super::requests::ask_for_act;

/// Ask for a removed copy to be wanted again
///
/// Takes back what `holdfast remove` decided: a second person, a custodian, must approve; the command is printed. The
/// replica then gets the file again from another replica. If none has it, restore it from the attic (`holdfast attic
/// restore`), which is refused before. Needs the role custodian or officer.
///
/// The exit code is 0 if the request is recorded.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast reinstate a.warc.gz --replica two --reason 'the court lifted its order' --as custodian/custodian-1")]
pub(crate) struct Reinstate {
    /// The file's name in the archive
    name: String,
    /// The replica that shall have the file again
    #[arg(long, value_name = "ID")]
    replica: ReplicaId,
    /// The reason; the audit trail keeps it
    #[arg(long, value_name = "TEXT")]
    reason: ReasonText,
}

impl Reinstate {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let act = Act::ReinstateCopy {
            name: file_name(&self.name)?,
            replica: self.replica,
        };
        ask_for_act(context, &act, &self.reason).await
    }
}
