//! The nodes of a replica: how they are, and what their scrubs do.

use archive_model::{NodeId, ReplicaId};
use jiff::Timestamp;
use proto_archive::{convert as fields, wire};
use tonic::Status;

use super::Replicas;
use crate::attention::NodeSeen;

const OFFLINE: &str = "offline";

/// How a node is, as its monitor sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeReport {
    pub(crate) node: NodeId,
    /// Whether its last sign of life is recent enough.
    pub(crate) alive: bool,
    /// Whether the monitor has heard of it since it started.
    pub(crate) heard: bool,
    pub(crate) volumes: Vec<VolumeReport>,
    /// Changes whenever a finding comes, changes or goes.
    pub(crate) findings_stamp: u64,
    /// When the copy that has waited longest was last verified.
    pub(crate) oldest: Option<Timestamp>,
}

/// How a volume is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VolumeReport {
    /// Its id, or its path where it bears none.
    pub(crate) volume: String,
    /// In one line; the same line, the same state.
    pub(crate) state: String,
}

impl VolumeReport {
    /// Whether nobody can look at what it has. A retired one has nothing any more.
    pub(crate) fn is_offline(&self) -> bool {
        self.state.starts_with(OFFLINE)
    }
}

impl Replicas {
    /// How the nodes of a replica are.
    pub(crate) async fn reports(&self, replica: &ReplicaId) -> Result<Vec<NodeReport>, Status> {
        let nodes = self.state(replica).await?;
        nodes.iter().map(report).collect()
    }

    /// The nodes of a replica, as far as people must look at them.
    pub(crate) async fn nodes_seen(&self, replica: &ReplicaId) -> Result<Vec<NodeSeen>, Status> {
        let seen = |status: wire::NodeStatus| -> Result<NodeSeen, Status> {
            Ok(NodeSeen {
                is_alive: status.alive,
                seen: status.seen,
                // What is retired has nothing to read any more.
                verify_by: fields::optional_time("verify_by", &status.verify_by)?
                    .filter(|_| status.mode != "retired"),
                offline: status
                    .volumes
                    .into_iter()
                    .filter(|volume| !volume.problem.is_empty() && !volume.retired)
                    .map(|volume| match volume.volume.as_str() {
                        "" => (volume.path, volume.problem),
                        _ => (volume.volume, volume.problem),
                    })
                    .collect(),
                node: status.node,
            })
        };
        self.state(replica).await?.into_iter().map(seen).collect()
    }

    /// What the scrub of a node does, after an order to it.
    pub(crate) async fn scrub(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        order: wire::ScrubRequest,
    ) -> Result<wire::ScrubState, Status> {
        let mut client = self.node_client(replica, node).await?;
        let answer = client.scrub(order).await;
        answer
            .map(tonic::Response::into_inner)
            .map_err(|status| self.failed(node, status))
    }
}

fn report(status: &wire::NodeStatus) -> Result<NodeReport, Status> {
    Ok(NodeReport {
        node: fields::node_id(&status.node)?,
        alive: status.alive,
        heard: !status.seen.is_empty(),
        volumes: status.volumes.iter().map(volume).collect(),
        findings_stamp: status.findings_stamp,
        oldest: fields::optional_time("oldest_verification", &status.oldest_verification)?,
    })
}

fn volume(status: &wire::VolumeStatus) -> VolumeReport {
    let state = match (status.retired, status.problem.as_str()) {
        (true, _) => "retired".to_owned(),
        (false, "") => "online".to_owned(),
        (false, problem) => format!("{OFFLINE}: {problem}"),
    };
    VolumeReport {
        volume: if status.volume.is_empty() {
            status.path.clone()
        } else {
            status.volume.clone()
        },
        state,
    }
}
