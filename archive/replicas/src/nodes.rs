//! The nodes of a replica, and what their scrubs do.

use archive_model::{NodeId, NodeScrub, NodeState, ReplicaId, ScrubOrder};
use archive_rpc::CallError;
use proto_archive::convert as fields;

use super::Replicas;

impl Replicas {
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
        order: ScrubOrder,
    ) -> Result<NodeScrub, CallError> {
        let mut client = self.node_client(replica, node).await?;
        let answer = client.scrub(fields::scrub_request(order)).await;
        let state = answer.map_err(|error| self.failed(replica, node, error))?;
        Ok(fields::node_scrub(replica.clone(), state.get_ref())?)
    }
}
