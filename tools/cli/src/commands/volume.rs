//! `holdfast volume`: the disks of the nodes.

use archive_client::preservation::VolumeOrder;
use archive_client::{Access, ArchiveStatus, Preservation};
use archive_daemon::Chance;
use archive_model::{
    Act, DiskOrder, Mode, NodeId, NodeState, ReplicaId, VolumeId, VolumeSelector, VolumeState,
};
use clap::{Args, Subcommand};
use tools_terminal::context::CommandContext;
use tools_terminal::describe;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::{Output, TableColumn, TextTable, or_dash, size_text};
use tools_terminal::reason::ReasonText;
use tools_terminal::session::Session;

use super::requests::ask_for_act;

/// List disks, take new ones into service, and set which of them take new files
///
/// A volume is one disk of a node, labelled once, permanently. A verb that changes one prints the resulting volumes of
/// its node; the exit code is 1 if the volume is not in the ordered state, or offline. To retire or reinstate one takes
/// a second person.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  holdfast volume list
  holdfast volume init /srv/disk-5 --node two-1
  holdfast volume clear 6f1c0a
  holdfast volume retire 6f1c0a --reason 'dead'")]
pub(crate) enum Volume {
    /// List the volumes of every node
    ///
    /// Needs the role reader or operator. The exit code is 1 if a volume that is not retired is offline, or if a node
    /// does not answer.
    #[command(after_help = "Examples:
  holdfast volume list
  holdfast volume list --json")]
    List {},
    Init(Init),
    Adopt(Adopt),
    /// Trust a volume again after a write to it failed
    ///
    /// Look at the disk first. After a failed write a volume is offline until a person has cleared it. Needs the role
    /// operator. The exit code is 1 if the volume is still offline.
    #[command(after_help = "Examples:
  holdfast volume clear 6f1c0a")]
    Clear(VolumeArgument),
    /// Let a volume take no new files
    ///
    /// The copies on it stay, and are read and repaired. Needs the role operator. The exit code is 0 if its node
    /// confirms the change.
    #[command(after_help = "Examples:
  holdfast volume read-only 6f1c0a")]
    ReadOnly(VolumeArgument),
    /// Let a volume take new files again
    ///
    /// This also ends a drain. Needs the role operator. The exit code is 0 if its node confirms the change.
    #[command(after_help = "Examples:
  holdfast volume read-write 6f1c0a")]
    ReadWrite(VolumeArgument),
    /// Empty a volume, before it is retired
    ///
    /// The volume takes no new files, and the archive copies its files to other volumes of its node, or to other nodes
    /// of its replica; each old copy goes to the attic of the volume once the new copy is whole. `holdfast volume list`
    /// shows the progress, and what holds it up. `holdfast volume read-write` ends the drain; files that have moved
    /// stay where they are. Needs the role operator. The exit code is 0 if its node confirms the change.
    #[command(after_help = "Examples:
  holdfast volume drain 6f1c0a")]
    Drain(VolumeArgument),
    Retire(Retire),
    Reinstate(Reinstate),
}

#[derive(Debug, Args)]
pub(crate) struct VolumeArgument {
    /// The volume, as `holdfast volume list` prints it
    #[arg(value_name = "ID")]
    volume: VolumeId,
    /// The node of the volume; needed only if several volumes have that id
    #[arg(long, value_name = "ID")]
    node: Option<NodeId>,
    /// The replica of the volume; needed only if nodes of several replicas have the same id
    #[arg(long, value_name = "ID")]
    replica: Option<ReplicaId>,
}

#[derive(Debug, Args)]
pub(crate) struct NodeArgument {
    /// The node of the disk
    #[arg(long, value_name = "ID")]
    node: NodeId,
    /// The replica of the node; needed only if nodes of several replicas have that id
    #[arg(long, value_name = "ID")]
    replica: Option<ReplicaId>,
}

impl From<VolumeArgument> for VolumeSelector {
    fn from(argument: VolumeArgument) -> Self {
        let VolumeArgument {
            volume,
            node,
            replica,
        } = argument;
        Self {
            volume,
            node,
            replica,
        }
    }
}

/// Label an empty directory of a node as a new volume
///
/// A directory that contains anything is refused. From then on the node also stores new files there. Needs the role
/// operator. The exit code is 0 if the volume is online, and 5 if the directory is refused.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast volume init /srv/disk-5 --node two-1")]
pub(crate) struct Init {
    /// The absolute path of the directory, on the machine of the node
    #[arg(value_name = "PATH", value_parser = absolute)]
    path: String,
    #[command(flatten)]
    node: NodeArgument,
    /// Permanent id of the volume [default: 32 random hex digits]
    #[arg(long, value_name = "ID")]
    id: Option<VolumeId>,
}

/// Take over a disk that another node has labelled
///
/// Use it for a disk that was moved to another machine with all that is on it. Its files are then those of the new
/// node; the old node must no longer have the disk. Needs the role operator. The exit code is 0 if the volume is
/// online.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast volume adopt /srv/disk-5 --node two-2")]
pub(crate) struct Adopt {
    /// The absolute path at which the disk is mounted, on the machine of the node
    #[arg(value_name = "PATH", value_parser = absolute)]
    path: String,
    #[command(flatten)]
    node: NodeArgument,
}

/// Ask for a volume to be taken out of service for good
///
/// Nothing happens yet: an officer or a custodian must approve; the command is printed. From then on the files of the
/// volume count as missing in its replica, and are copied there from others. Drain the volume first. Needs the role
/// operator or custodian. The exit code is 0 if the request is recorded.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast volume retire 6f1c0a --reason 'the disk is dead'")]
pub(crate) struct Retire {
    #[command(flatten)]
    volume: VolumeArgument,
    /// The reason; the audit trail keeps it
    #[arg(long, value_name = "TEXT")]
    reason: ReasonText,
    /// Confirm that this takes the last good copies of files; then only custodians may ask and approve
    #[arg(long)]
    last_copies: bool,
}

/// Ask for a retired volume to be taken back into service
///
/// Nothing happens yet: an officer or a custodian must approve; the command is printed. At the approval the node must
/// be alive: it compares the disk with its catalog. Files that were copied elsewhere meanwhile stay there as well.
/// Needs the role operator or custodian. The exit code is 0 if the request is recorded.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast volume reinstate 6f1c0a --reason 'it was the other disk'")]
pub(crate) struct Reinstate {
    #[command(flatten)]
    volume: VolumeArgument,
    /// The reason; the audit trail keeps it
    #[arg(long, value_name = "TEXT")]
    reason: ReasonText,
}

/// Reads a path on the machine of a node: it begins at the root.
fn absolute(text: &str) -> Result<String, String> {
    if text.starts_with('/') && !text.chars().any(char::is_control) {
        return Ok(text.to_owned());
    }
    Err(
        "the path is one of the node's machine: write it from the root, as in /srv/disk-5"
            .to_owned(),
    )
}

impl Volume {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let order = match self {
            Self::List {} => return list(context).await,
            Self::Retire(Retire {
                volume,
                reason,
                last_copies,
            }) => {
                let act = Act::RetireVolume {
                    volume: volume.into(),
                    last_copies,
                };
                return ask_for_act(context, &act, &reason).await;
            }
            Self::Reinstate(Reinstate { volume, reason }) => {
                let act = Act::ReinstateVolume(volume.into());
                return ask_for_act(context, &act, &reason).await;
            }
            Self::Init(Init {
                path,
                node: NodeArgument { node, replica },
                id,
            }) => VolumeOrder {
                order: DiskOrder::Init(path, id.map_or_else(fresh, Ok)?),
                node: Some(node),
                replica,
            },
            Self::Adopt(Adopt {
                path,
                node: NodeArgument { node, replica },
            }) => VolumeOrder {
                order: DiskOrder::Adopt(path, None),
                node: Some(node),
                replica,
            },
            Self::Clear(one) => VolumeOrder::about_volume(one.into(), DiskOrder::Clear),
            Self::ReadOnly(one) => VolumeOrder::about_volume(one.into(), DiskOrder::ReadOnly),
            Self::ReadWrite(one) => VolumeOrder::about_volume(one.into(), DiskOrder::ReadWrite),
            Self::Drain(one) => VolumeOrder::about_volume(one.into(), DiskOrder::Drain),
        };
        let session = Session::open(&context.global)?;
        let status = session.keeper().volume(&order).await;
        let status = status.map_err(|error| session.failure(error))?;
        if context.output.is_json() {
            context.output.write_document(&status)?;
        } else {
            let mut table = table();
            push(&mut table, "-", &status);
            context.output.write_table(&table)?;
        }
        Ok(if obeyed(&order.order, &status) {
            Exit::Done
        } else {
            Exit::Failed
        })
    }
}

/// Makes an id that no other volume has.
fn fresh() -> Result<VolumeId, Failure> {
    let random: [u8; 16] = Chance::system_chance()
        .random_bytes()
        .map_err(|error| Failure::because_failed(format!("{error}; name the volume with --id")))?;
    VolumeId::new(&hex::encode(random)).map_err(|error| Failure::because_failed(error.to_string()))
}

/// Returns whether the volume is online, and in the mode that was ordered.
fn obeyed(order: &DiskOrder, status: &NodeState) -> bool {
    let mode = match order {
        DiskOrder::ReadWrite(_) => Some(Mode::ReadWrite),
        DiskOrder::ReadOnly(_) => Some(Mode::ReadOnly),
        DiskOrder::Drain(_) => Some(Mode::Draining),
        _ => None,
    };
    let is_meant = |one: &&VolumeState| match order {
        DiskOrder::Adopt(path, _) => one.path == *path,
        DiskOrder::Init(_, id)
        | DiskOrder::Clear(id)
        | DiskOrder::ReadWrite(id)
        | DiskOrder::ReadOnly(id)
        | DiskOrder::Drain(id)
        | DiskOrder::Retire(id)
        | DiskOrder::Reinstate(id) => one.volume.as_ref() == Some(id),
    };
    let found = status.volumes.iter().find(is_meant);
    found.is_some_and(|volume| {
        volume.problem.is_none() && mode.is_none_or(|mode| volume.mode == mode)
    })
}

async fn list(context: &CommandContext) -> Result<Exit, Failure> {
    let session = Session::open(&context.global)?;
    let status = session.reader().status().await;
    let status = status.map_err(|error| session.failure(error))?;
    if context.output.is_json() {
        let volumes: Vec<_> = status
            .replicas
            .iter()
            .flat_map(|replica| replica.nodes.iter().map(move |node| (replica, node)))
            .flat_map(|(replica, node)| {
                node.volumes.iter().map(move |volume| {
                    serde_json::json!({
                        "replica": replica.replica, "node": node.node, "alive": node.alive, "volume": volume.volume,
                        "status": volume,
                    })
                })
            })
            .collect();
        context
            .output
            .write_document(&serde_json::json!({ "volumes": volumes, "drains": status.drains }))?;
    } else {
        show(&context.output, &status)?;
    }
    let wrong = status.replicas.iter().any(|replica| {
        replica.problem.is_some()
            || replica
                .nodes
                .iter()
                .any(|node| !node.is_retired() && (!node.alive || is_offline(node)))
    });
    Ok(if wrong { Exit::Failed } else { Exit::Done })
}

fn is_offline(node: &NodeState) -> bool {
    node.volumes
        .iter()
        .any(|volume| !volume.retired && volume.problem.is_some())
}

fn table() -> TextTable {
    TextTable::new(&[
        TableColumn::Left("REPLICA"),
        TableColumn::Left("NODE"),
        TableColumn::Left("VOLUME"),
        TableColumn::Left("STATE"),
        TableColumn::Right("FREE"),
        TableColumn::Right("TOTAL"),
        TableColumn::Left("PATH"),
        TableColumn::Left("PROBLEM"),
    ])
}

fn show(output: &Output, status: &ArchiveStatus) -> Result<(), Failure> {
    let mut table = table();
    for replica in &status.replicas {
        for node in &replica.nodes {
            push(&mut table, replica.replica.as_str(), node);
        }
    }
    output.write_table(&table)?;
    for drain in &status.drains {
        output.write_line(&describe::describe_drain(drain))?;
    }
    Ok(())
}

fn push(table: &mut TextTable, replica: &str, node: &NodeState) {
    for volume in &node.volumes {
        let state = match (&volume.problem, volume.retired) {
            (_, true) => "retired",
            (Some(_), false) => "offline",
            (None, false) => volume.mode.as_str(),
        };
        table.push([
            replica.to_owned(),
            node.node.to_string(),
            or_dash(volume.volume.as_ref()),
            state.to_owned(),
            size_text(volume.free),
            size_text(volume.total),
            volume.path.clone(),
            volume.problem.clone().unwrap_or_default(),
        ]);
    }
}
