//! `holdfast attic`: what was put aside, to be listed, restored or destroyed.

use archive_client::Preservation;
use archive_client::preservation::{AtticEntry, AtticSelection};
use archive_model::{Act, AtticItem, AtticPlace, Gap, ReplicaId, Root};
use clap::{Args, Subcommand};
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::describe;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::items::Items;
use tools_terminal::list::file_name;
use tools_terminal::output::{or_dash, size_text, tell_user};
use tools_terminal::reason::ReasonText;
use tools_terminal::session::Session;

use super::adopt::report_copy;
use super::requests::ask_for_act;

/// List and restore the items of the attics, or ask for one to be destroyed
///
/// Replaced and removed files, and the damaged groups that repairs replaced, stay in the attic of their volume,
/// together with the person, the time and the reason.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  holdfast attic list --replica two
  holdfast attic restore two/two-1/v0/20260101T000000Z-1a --reason 'removed by mistake'
  holdfast attic purge two/two-1/v0/20260101T000000Z-file --checksum 9f0c…64-digits… --reason 'court order' --as custodian/custodian-1")]
pub(crate) enum Attic {
    List(List),
    Restore(Restore),
    Purge(Purge),
}

/// List the items of the attics
///
/// Prints one line for each item: its place (REPLICA/NODE/VOLUME/ID), kind, size, time, file, person and reason. Needs
/// the role officer or custodian. The exit code is 1 if a node could not be asked.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast attic list
  holdfast attic list --replica two --file 12-34-20260101-00001.warc.gz")]
pub(crate) struct List {
    /// Only this replica [default: every replica]
    #[arg(long, value_name = "ID")]
    replica: Option<ReplicaId>,
    /// Only items of this file
    #[arg(long, value_name = "NAME")]
    file: Option<String>,
}

/// Restore a file from an attic
///
/// The file gets its name again if the name is free there, and if the bytes are what was admitted. What `holdfast
/// remove` took away must be wanted again first (`holdfast reinstate`). Needs the role officer. The exit code is 0 if the file is restored and good, and 5 if the name is taken or the bytes differ.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast attic restore two/two-1/v0/20260101T000000Z-1a --reason 'removed by mistake'")]
pub(crate) struct Restore {
    /// The place of the item, as `holdfast attic list` prints it
    #[arg(value_name = "REPLICA/NODE/VOLUME/ID")]
    place: AtticPlace,
    /// The reason; the audit trail keeps it
    #[arg(long, value_name = "TEXT")]
    reason: ReasonText,
}

/// Ask for an item of an attic to be destroyed
///
/// Nothing is destroyed yet: a second person must approve; the command is printed. The item is then destroyed
/// permanently. Name the file by its checksum, which its node compares with the bytes in the attic; groups and
/// leftovers have none. Nodes refuse to destroy an item that is younger than `attic.min_age` (30 days by default). If
/// the archive knows no good copy of the file besides this one, --last-copies is needed. Needs the role custodian. The
/// exit code is 0 if the request is recorded.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast attic purge two/two-1/v0/20260101T000000Z-file --checksum 9f0c…64-digits… --reason 'court order' --as custodian/custodian-1
  holdfast attic purge two/two-1/v0/20260101T000000Z-mend --reason 'evidence of a repair' --as custodian/custodian-1")]
pub(crate) struct Purge {
    /// The place of the item, as `holdfast attic list` prints it
    #[arg(value_name = "REPLICA/NODE/VOLUME/ID")]
    place: AtticPlace,
    /// BLAKE3 of the file in it, 64 hex digits; `holdfast stat` shows that of a file of the archive
    #[arg(long, value_name = "HEX")]
    checksum: Option<Root>,
    /// The reason; the audit trail keeps it
    #[arg(long, value_name = "TEXT")]
    reason: ReasonText,
    /// Confirm that no other good copy of the file is left: the file is then lost
    #[arg(long)]
    last_copies: bool,
}

impl Purge {
    async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let act = Act::Purge {
            place: self.place,
            checksum: self.checksum,
            last_copies: self.last_copies,
        };
        ask_for_act(context, &act, &self.reason).await
    }
}

/// The end of the list.
#[derive(Debug, Serialize)]
struct End {
    gaps: Vec<Gap>,
}

impl Attic {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        match self {
            Self::List(list) => list.run(context).await,
            Self::Restore(restore) => restore.run(context).await,
            Self::Purge(purge) => purge.run(context).await,
        }
    }
}

impl List {
    async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let selection = AtticSelection {
            replica: self.replica,
            name: self.file.as_deref().map(file_name).transpose()?,
        };
        let session = Session::open(&context.global)?;
        let keeper = session.keeper();
        let steps = keeper.attics(&selection).await;
        let mut steps = steps.map_err(|error| session.failure(error))?;
        let mut items = Items::begin_items(&context.output, "items")?;
        let mut gaps = Vec::new();
        let ended = loop {
            match steps.next().await {
                Ok(Some(AtticEntry::Item(item))) => items.write_item(&item, || line(&item))?,
                Ok(Some(AtticEntry::Gap(gap))) => gaps.push(gap),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.into()),
            }
        };
        for gap in &gaps {
            tell_user(&format!(
                "not listed: {}; see `holdfast status`",
                describe::describe_gap(gap)
            ));
        }
        let complete = gaps.is_empty();
        let exit = if complete { Exit::Done } else { Exit::Failed };
        items.end_items(complete, End { gaps }, ended, exit)
    }
}

impl Restore {
    async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let session = Session::open(&context.global)?;
        let kept = session
            .keeper()
            .restore(&self.place, self.reason.as_str())
            .await;
        let kept = kept.map_err(|error| session.failure(error))?;
        report_copy(&context.output, "restored", &kept)
    }
}

fn line(item: &AtticItem) -> String {
    let AtticItem {
        place,
        name,
        at,
        who,
        why,
        kind,
        bytes,
        ..
    } = item;
    let size = size_text(*bytes);
    let at = describe::time_or_dash(*at);
    let name = or_dash(name.as_ref());
    format!("{place}  {kind:<8}  {size:>9}  {at}  {name}  {who}: {why}")
}
