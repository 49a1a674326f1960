//! The nodes of a replica, and their scrubs.
//!
//! # Errors
//! All functions fail with a [`CallError`] if the monitor or node cannot be reached or refuses the call.

use archive_model::{NodeId, NodeScrub, NodeState, ReplicaId, ScrubOrder};
use archive_rpc::CallError;
use proto_archive::convert as fields;

use super::Replicas;
use super::people::mark_retired;

impl Replicas {
    /// Marks the nodes and volumes that are out of service, and ids that two parts bear, in the states of nodes that
    /// were heard.
    pub fn marked(&self, replica: &ReplicaId, mut nodes: Vec<NodeState>) -> Vec<NodeState> {
        let now = self.standing.now();
        for node in &mut nodes {
            mark_retired(&now, replica, node);
        }
        self.lock_members()
            .mark_namesakes(&now, replica, &mut nodes);
        nodes
    }

    /// Returns the nodes that were heard, except those of another replica.
    pub fn own_nodes(&self, replica: &ReplicaId, heard: &[NodeState]) -> Vec<NodeId> {
        let (members, now) = (self.lock_members(), self.standing.now());
        let nodes = heard.iter().map(|state| &state.node);
        let own = nodes.filter(|node| !members.is_foreign(&now, replica, node));
        own.cloned().collect()
    }

    /// Returns the nodes of a replica that are in service. A retired one may be switched off, and is not missed.
    pub async fn nodes_in_service(&self, replica: &ReplicaId) -> Result<Vec<NodeState>, CallError> {
        let mut nodes = self.state(replica).await?;
        nodes.retain(|node| !node.is_retired());
        Ok(nodes)
    }

    /// Sends an order to the scrub of a node, and returns its state.
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
