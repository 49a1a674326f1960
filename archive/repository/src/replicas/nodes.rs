//! The nodes of a replica: how they are, and what their scrubs do.

use archive_model::{NodeId, ReplicaId};
use jiff::Timestamp;
use proto_archive::{convert as fields, wire};
use tonic::Status;

use super::Replicas;
use crate::attention::NodeSeen;

const OFFLINE: &str = "offline";

/// The mode of a node that people took out of service.
pub(super) const RETIRED: &str = "retired";

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
    /// How the nodes of a replica are, but for those that were retired.
    pub(crate) async fn reports(&self, replica: &ReplicaId) -> Result<Vec<NodeReport>, Status> {
        let nodes = self.state(replica).await?;
        let in_service = nodes.iter().filter(|status| is_in_service(status));
        in_service.map(report).collect()
    }

    /// The nodes of a replica, as far as people must look at them: none that was retired.
    pub(crate) async fn nodes_seen(&self, replica: &ReplicaId) -> Result<Vec<NodeSeen>, Status> {
        let nodes = self.state(replica).await?.into_iter();
        nodes.filter(is_in_service).map(seen).collect()
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
            .map_err(|status| self.failed(replica, node, status))
    }
}

/// Whether anybody misses the node. One that was retired may be switched off.
fn is_in_service(status: &wire::NodeStatus) -> bool {
    status.mode != RETIRED
}

fn seen(status: wire::NodeStatus) -> Result<NodeSeen, Status> {
    Ok(NodeSeen {
        is_alive: status.alive,
        seen: status.seen,
        verify_by: fields::optional_time("verify_by", &status.verify_by)?,
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
        problem: status.problem,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a node that was retired is missed once it is switched off.
    #[test]
    fn retired_node_is_missed_by_nobody() {
        let node = |mode: &str| wire::NodeStatus {
            node: "n-1".to_owned(),
            mode: mode.to_owned(),
            ..wire::NodeStatus::default()
        };
        assert!(!is_in_service(&node(RETIRED)));
        for mode in ["", "read-write", "draining"] {
            assert!(is_in_service(&node(mode)), "{mode}");
        }
    }
}
