//! The connections to monitors and nodes, each to the one that bears the name.
//!
//! Owns who answers: a node is dialled under its own name, so that another one at its address is refused.

use std::collections::BTreeMap;

use archive_model::{NodeId, NodeKey, NodeState, ReplicaId};
use archive_rpc::{
    CallError, CallErrorKind, ConnectError, Credentials, ExpectedIdentity, Grant, Role, RpcLimits,
    connect_lazy,
};
use parking_lot::{Mutex, MutexGuard};
use proto_archive::wire::node_client::NodeClient;
use proto_archive::wire::replica_client::ReplicaClient;
use tonic::transport::Channel;

use crate::settings::ReplicaSettings;

/// The address where a node was dialled, and the channel to it.
type DialledNode = (String, NodeClient<Channel>);

/// The means of dialling monitors and nodes, and the connections to the nodes.
#[derive(Debug)]
pub struct Dialer {
    credentials: Credentials,
    limits: RpcLimits,
    /// The connections: two replicas may each have a node of one name, and each is asked for its own copies.
    nodes: Mutex<BTreeMap<NodeKey, DialledNode>>,
}

impl Dialer {
    /// Creates a dialer without connections.
    pub fn new(credentials: Credentials, limits: RpcLimits) -> Self {
        Self {
            credentials,
            // A caller that does not read must not delay the answers of others.
            limits: limits.with_independent_streams(),
            nodes: Mutex::default(),
        }
    }

    /// Returns a client of a monitor, which is dialled at the first call.
    pub(crate) fn dial_monitor(
        &self,
        replica: &ReplicaSettings,
    ) -> Result<ReplicaClient<Channel>, ConnectError> {
        let expected = expected(Role::Monitor, replica.id.as_str())?;
        let channel = connect_lazy(&replica.monitor, &self.credentials, &expected, &self.limits)?;
        Ok(ReplicaClient::new(channel))
    }

    /// Returns a connection of its own to a node at its reported address, for small messages.
    pub(crate) fn batch_channel(&self, state: &NodeState) -> Result<Channel, CallError> {
        let limits = self.limits.with_small_messages();
        self.dial(&state.node, &state.endpoint, &limits)
    }

    /// Returns a client of a node at an address: the one that was dialled there, if there is one.
    pub(crate) fn dial_node(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        endpoint: &str,
    ) -> Result<NodeClient<Channel>, CallError> {
        let mut nodes = self.lock();
        let key = key(replica, node);
        if let Some((_, client)) = nodes.get(&key).filter(|(known, _)| known == endpoint) {
            return Ok(client.clone());
        }
        let channel = self.dial(node, endpoint, &self.limits)?;
        let client = NodeClient::new(channel).max_decoding_message_size(16 << 20);
        nodes.insert(key, (endpoint.to_owned(), client.clone()));
        Ok(client)
    }

    /// Returns the client of a node that was dialled, wherever that was.
    pub(crate) fn dialled_nodes(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
    ) -> Option<NodeClient<Channel>> {
        let nodes = self.lock();
        let (_, client) = nodes.get(&key(replica, node))?;
        Some(client.clone())
    }

    /// Forgets the client of a node.
    pub(crate) fn forget_node(&self, replica: &ReplicaId, node: &NodeId) {
        self.lock().remove(&key(replica, node));
    }

    fn dial(
        &self,
        node: &NodeId,
        endpoint: &str,
        limits: &RpcLimits,
    ) -> Result<Channel, CallError> {
        expected(Role::Node, node.as_str())
            .and_then(|expected| connect_lazy(endpoint, &self.credentials, &expected, limits))
            .map_err(|error| CallErrorKind::Unavailable.to_error(error.to_string()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<NodeKey, DialledNode>> {
        self.nodes.lock()
    }
}

fn key(replica: &ReplicaId, node: &NodeId) -> NodeKey {
    NodeKey {
        replica: replica.clone(),
        node: node.clone(),
    }
}

/// Returns the identity that must answer. A name that no certificate can have is refused, so that no other one answers.
fn expected(role: Role, name: &str) -> Result<ExpectedIdentity, ConnectError> {
    Grant::new(role, name)
        .map(|grant| ExpectedIdentity::named_grant(&grant))
        .map_err(|error| ConnectError::Address(error.to_string()))
}
