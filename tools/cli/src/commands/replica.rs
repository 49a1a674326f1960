//! `holdfast replica`: the complete copies of the archive.

use archive_client::{Access, ArchiveStatus, Preservation};
use archive_model::{Act, ReplicaId};
use clap::{Args, Subcommand};
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::{Output, TableColumn, TextTable, size_text};
use tools_terminal::reason::ReasonText;
use tools_terminal::session::Session;

use super::requests::ask_for_act;

/// List replicas, fill a new one, or retire one
///
/// A replica is one complete copy of the archive in one place.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  holdfast replica list
  holdfast replica bootstrap three
  holdfast replica retire one --reason 'the site is closed'")]
pub(crate) enum Replica {
    /// List the replicas
    ///
    /// Needs the role reader or operator. The exit code is 1 if a replica does not answer.
    #[command(after_help = "Examples:
  holdfast replica list
  holdfast replica list --json")]
    List {},
    Bootstrap(Bootstrap),
    Retire(Retire),
}

/// Fill a replica that is new, or has lost everything, from the others
///
/// The command returns at once; the work continues by itself, also after a restart, and `holdfast status` shows how
/// many files are still missing. Every copy is verified like one that is stored. Needs the role operator. The exit code
/// is 0 if the work has begun.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast replica bootstrap three")]
pub(crate) struct Bootstrap {
    /// The replica, as the repository's settings name it
    #[arg(value_name = "ID")]
    replica: ReplicaId,
}

/// Ask for a replica to be taken out of service for good
///
/// Nothing happens yet: an officer or a custodian must approve; the command is printed. From then on nothing is stored
/// in the replica, and its files do not count as copies. A retired replica cannot be reinstated. Needs the role
/// operator or custodian. The exit code is 0 if the request is recorded.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast replica retire one --reason 'the site is closed'")]
pub(crate) struct Retire {
    /// The replica, as `holdfast replica list` prints it
    #[arg(value_name = "ID")]
    replica: ReplicaId,
    /// The reason; the audit trail keeps it
    #[arg(long, value_name = "TEXT")]
    reason: ReasonText,
}

impl Replica {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        match self {
            Self::List {} => list(context).await,
            Self::Bootstrap(Bootstrap { replica }) => bootstrap(context, &replica).await,
            Self::Retire(Retire { replica, reason }) => {
                ask_for_act(context, &Act::RetireReplica(replica), &reason).await
            }
        }
    }
}

async fn bootstrap(context: &CommandContext, replica: &ReplicaId) -> Result<Exit, Failure> {
    let session = Session::open(&context.global)?;
    let begun = session.keeper().bootstrap(replica).await;
    let begun = begun.map_err(|error| session.failure(error))?;
    if context.output.is_json() {
        context.output.write_document(&begun)?;
    } else {
        let files = begun.files;
        let bytes = size_text(begun.bytes);
        context.output.write_line(&format!(
            "replica {replica}: {files} files, {bytes}, are being copied; see `holdfast status`"
        ))?;
    }
    Ok(Exit::Done)
}

async fn list(context: &CommandContext) -> Result<Exit, Failure> {
    let session = Session::open(&context.global)?;
    let status = session.reader().status().await;
    let status = status.map_err(|error| session.failure(error))?;
    if context.output.is_json() {
        context
            .output
            .write_document(&serde_json::json!({ "replicas": status.replicas }))?;
    } else {
        show(&context.output, &status)?;
    }
    let silent = status
        .replicas
        .iter()
        .any(|replica| replica.problem.is_some());
    Ok(if silent { Exit::Failed } else { Exit::Done })
}

fn show(output: &Output, status: &ArchiveStatus) -> Result<(), Failure> {
    let mut table = TextTable::new(&[
        TableColumn::Left("REPLICA"),
        TableColumn::Left("KIND"),
        TableColumn::Left("REQUIRED"),
        TableColumn::Right("NODES"),
        TableColumn::Right("VOLUMES"),
        TableColumn::Right("FREE"),
        TableColumn::Left("STATE"),
    ]);
    for replica in &status.replicas {
        let in_service = || replica.nodes.iter().filter(|node| !node.is_retired());
        let alive = in_service().filter(|node| node.alive).count();
        let volumes = || {
            let all = replica.nodes.iter().flat_map(|node| &node.volumes);
            all.filter(|volume| !volume.retired)
        };
        let free = volumes().fold(0, |sum: u64, volume| sum.saturating_add(volume.free));
        table.push([
            replica.replica.to_string(),
            replica.kind.to_string(),
            if replica.required { "yes" } else { "no" }.to_owned(),
            format!("{alive}/{}", in_service().count()),
            volumes().count().to_string(),
            size_text(free),
            replica
                .problem
                .clone()
                .unwrap_or_else(|| "answers".to_owned()),
        ]);
    }
    output.write_table(&table)
}
