//! `holdfast node`: the machines of the replicas.

use archive_client::{Access, ArchiveStatus, Preservation};
use archive_model::{Act, Mode, NodeId, NodeSelector, NodeState, ReplicaId};
use clap::{Args, Subcommand};
use tools_terminal::context::CommandContext;
use tools_terminal::describe;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::{Output, TableColumn, TextTable, or_dash, size_text};
use tools_terminal::reason::ReasonText;
use tools_terminal::session::Session;

use super::requests::ask_for_act;

/// List nodes, and set which of them take new files
///
/// A node is one machine of a replica. To retire or reinstate one takes a second person.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  holdfast node list
  holdfast node read-only two-1
  holdfast node retire two-1 --reason 'sold'")]
pub(crate) enum Node {
    /// List the nodes of every replica
    ///
    /// Needs the role reader or operator. The exit code is 1 if a node or a monitor does not answer.
    #[command(after_help = "Examples:
  holdfast node list
  holdfast node list --json | jq '.nodes[].node'")]
    List {},
    /// Let a node take no new files
    ///
    /// The copies that it has stay, and are read and repaired. Needs the role operator. The exit code is 0 if the node
    /// itself confirms the change.
    #[command(after_help = "Examples:
  holdfast node read-only two-1")]
    ReadOnly(NodeArgument),
    /// Let a node take new files again
    ///
    /// This also ends a drain. Needs the role operator. The exit code is 0 if the node itself confirms the change.
    #[command(after_help = "Examples:
  holdfast node read-write two-1")]
    ReadWrite(NodeArgument),
    /// Empty a node, before it is retired
    ///
    /// The node takes no new files, and the archive copies its files to other nodes of its replica; each old copy goes
    /// to the attic once the new copy is whole. `holdfast node list` shows the progress, and what holds it up.
    /// `holdfast node read-write` ends the drain; files that have moved stay where they are. Needs the role operator.
    /// The exit code is 0 if the node itself confirms the change.
    #[command(after_help = "Examples:
  holdfast node drain two-1")]
    Drain(NodeArgument),
    Retire(Retire),
    Reinstate(Reinstate),
}

#[derive(Debug, Args)]
pub(crate) struct NodeArgument {
    /// The node, as `holdfast node list` prints it
    #[arg(value_name = "ID")]
    node: NodeId,
    /// The replica of the node; needed only if nodes of several replicas have that id
    #[arg(long, value_name = "ID")]
    replica: Option<ReplicaId>,
}

/// Ask for a node to be taken out of service for good
///
/// Nothing happens yet: an officer or a custodian must approve; the command is printed. From then on the files of the
/// node count as missing in its replica, and are copied there from others. Drain the node first. Needs the role
/// operator or custodian. The exit code is 0 if the request is recorded.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast node retire two-1 --reason 'the machine burnt down'")]
pub(crate) struct Retire {
    #[command(flatten)]
    node: NodeArgument,
    /// The reason; the audit trail keeps it
    #[arg(long, value_name = "TEXT")]
    reason: ReasonText,
    /// Confirm that this takes the last good copies of files; then only custodians may ask and approve
    #[arg(long)]
    last_copies: bool,
}

/// Ask for a retired node to be taken back into service
///
/// Nothing happens yet: an officer or a custodian must approve; the command is printed. Volumes of the node that were
/// retired themselves stay retired. Needs the role operator or custodian. The exit code is 0 if the request is
/// recorded.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast node reinstate two-1 --reason 'it was the other machine'")]
pub(crate) struct Reinstate {
    #[command(flatten)]
    node: NodeArgument,
    /// The reason; the audit trail keeps it
    #[arg(long, value_name = "TEXT")]
    reason: ReasonText,
}

impl Node {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let (node, mode) = match self {
            Self::List {} => return list(context).await,
            Self::Retire(Retire {
                node: NodeArgument { node, replica },
                reason,
                last_copies,
            }) => {
                let act = Act::RetireNode {
                    node: NodeSelector { replica, node },
                    last_copies,
                };
                return ask_for_act(context, &act, &reason).await;
            }
            Self::Reinstate(Reinstate {
                node: NodeArgument { node, replica },
                reason,
            }) => {
                let act = Act::ReinstateNode(NodeSelector { replica, node });
                return ask_for_act(context, &act, &reason).await;
            }
            Self::ReadOnly(one) => (one, Mode::ReadOnly),
            Self::ReadWrite(one) => (one, Mode::ReadWrite),
            Self::Drain(one) => (one, Mode::Draining),
        };
        let NodeArgument { node, replica } = node;
        let name = NodeSelector { replica, node };
        let session = Session::open(&context.global)?;
        let status = session.keeper().node(&name, mode).await;
        let status = status.map_err(|error| session.failure(error))?;
        if context.output.is_json() {
            context.output.write_document(&status)?;
        } else {
            let said = status.mode.map_or("in no known mode", Mode::as_str);
            let node = &name.node;
            context
                .output
                .write_line(&format!("node {node} is {said}"))?;
        }
        Ok(if status.mode == Some(mode) {
            Exit::Done
        } else {
            Exit::Failed
        })
    }
}

async fn list(context: &CommandContext) -> Result<Exit, Failure> {
    let session = Session::open(&context.global)?;
    let status = session.reader().status().await;
    let status = status.map_err(|error| session.failure(error))?;
    if context.output.is_json() {
        let nodes: Vec<_> = each(&status)
            .map(|(replica, node)| serde_json::json!({ "replica": replica, "node": node.node, "status": node }))
            .collect();
        context
            .output
            .write_document(&serde_json::json!({ "nodes": nodes, "drains": status.drains }))?;
    } else {
        show(&context.output, &status)?;
    }
    let silent = status
        .replicas
        .iter()
        .any(|replica| replica.problem.is_some())
        || each(&status).any(|(_, node)| !node.is_retired() && !node.alive);
    Ok(if silent { Exit::Failed } else { Exit::Done })
}

/// Returns every node with its replica.
fn each(status: &ArchiveStatus) -> impl Iterator<Item = (&str, &NodeState)> {
    status.replicas.iter().flat_map(|replica| {
        let id = replica.replica.as_str();
        replica.nodes.iter().map(move |node| (id, node))
    })
}

fn show(output: &Output, status: &ArchiveStatus) -> Result<(), Failure> {
    let mut table = TextTable::new(&[
        TableColumn::Left("REPLICA"),
        TableColumn::Left("NODE"),
        TableColumn::Left("STATE"),
        TableColumn::Left("MODE"),
        TableColumn::Right("VOLUMES"),
        TableColumn::Right("USABLE"),
        TableColumn::Right("FINDINGS"),
        TableColumn::Left("OLDEST VERIFICATION"),
        TableColumn::Left("ENDPOINT"),
    ]);
    for (replica, node) in each(status) {
        let state = if node.is_retired() {
            "retired".to_owned()
        } else if node.alive {
            "alive".to_owned()
        } else {
            format!("silent since {}", describe::time_or_dash(node.seen))
        };
        table.push([
            replica.to_owned(),
            node.node.to_string(),
            state,
            or_dash(node.mode.as_ref()),
            node.volumes.len().to_string(),
            size_text(node.usable),
            node.findings.to_string(),
            describe::time_or_dash(node.oldest_verification),
            node.endpoint.clone(),
        ]);
    }
    output.write_table(&table)?;
    for drain in &status.drains {
        output.write_line(&describe::describe_drain(drain))?;
    }
    Ok(())
}
