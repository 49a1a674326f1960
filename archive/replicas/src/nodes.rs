//! The nodes of a replica, and what their scrubs do.

use archive_model::{NodeId, NodeState, ReplicaId};
use archive_rpc::CallError;
use proto_archive::wire;

use super::Replicas;
use super::people::mark_retired;

impl Replicas {
    /// Marks what is out of service, and ids that two parts bear, at nodes that were heard.
    pub fn marked(&self, replica: &ReplicaId, mut nodes: Vec<NodeState>) -> Vec<NodeState> {
        let now = self.standing.now();
        for node in &mut nodes {
            mark_retired(&now, replica, node);
        }
        self.lock_members()
            .mark_namesakes(&now, replica, &mut nodes);
        nodes
    }

    /// The nodes that were heard, but for those of another replica.
    pub fn own_nodes(&self, replica: &ReplicaId, heard: &[NodeState]) -> Vec<NodeId> {
        let (members, now) = (self.lock_members(), self.standing.now());
        let nodes = heard.iter().map(|state| &state.node);
        let own = nodes.filter(|node| !members.is_foreign(&now, replica, node));
        own.cloned().collect()
    }

    /// The nodes of a replica that are in service. One that was retired may be switched off, and nobody misses it.
    pub async fn nodes_in_service(&self, replica: &ReplicaId) -> Result<Vec<NodeState>, CallError> {
        let mut nodes = self.state(replica).await?;
        nodes.retain(|node| !node.is_retired());
        Ok(nodes)
    }

    /// What the scrub of a node does, after an order to it.
    pub async fn scrub(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        order: wire::ScrubRequest,
    ) -> Result<wire::ScrubState, CallError> {
        let mut client = self.node_client(replica, node).await?;
        let answer = client.scrub(order).await;
        answer
            .map(tonic::Response::into_inner)
            .map_err(|error| self.failed(replica, node, error))
    }
}
