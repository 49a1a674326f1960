//! The connections to monitors and nodes, each to the one that bears the name.
//!
//! Owns who answers: a node is dialled under its own name, so that another one at its address is refused. Owns also
//! that streams of bytes keep nothing else waiting: a connection carries a limited number of calls, so these have
//! connections of their own, as many as they need.

use std::collections::BTreeMap;
use std::sync::Arc;

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

/// The most streams of bytes on one connection: half of what a node accepts there, so that none waits for its turn.
const STREAMS: usize = 128;

/// The connections to a node at the address where it was dialled.
#[derive(Debug)]
struct DialledNode {
    endpoint: String,
    /// The connection for all that is no stream of bytes.
    control: NodeClient<Channel>,
    lanes: Vec<Lane>,
}

/// A connection to a node for streams of bytes. Each stream holds its [`LaneUse`] until it has ended.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) client: NodeClient<Channel>,
    users: LaneUse,
}

/// Counts as a stream on a connection while it is held.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaneUse(Arc<()>);

impl Lane {
    /// Returns the number of streams on it, if the dialer holds it too.
    fn streams(&self) -> usize {
        Arc::strong_count(&self.users.0) - 1
    }

    /// Counts a stream.
    pub(crate) fn note_use(&self) -> LaneUse {
        self.users.clone()
    }
}

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
        let dialled = self.dialled(&mut nodes, replica, node, endpoint)?;
        Ok(dialled.control.clone())
    }

    /// Returns a connection to a node at an address for a stream of bytes: the one with the fewest streams, or a new
    /// one if all have many.
    pub(crate) fn dial_lane(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        endpoint: &str,
    ) -> Result<Lane, CallError> {
        let mut nodes = self.lock();
        let dialled = self.dialled(&mut nodes, replica, node, endpoint)?;
        let least = dialled.lanes.iter().min_by_key(|lane| lane.streams());
        if let Some(lane) = least.filter(|lane| lane.streams() < STREAMS) {
            let lane = lane.clone();
            dialled.lanes.retain(|one| one.streams() > 0);
            return Ok(lane);
        }
        let lane = Lane {
            client: self.client(node, endpoint)?,
            users: LaneUse::default(),
        };
        dialled.lanes.push(lane.clone());
        Ok(lane)
    }

    fn dialled<'a>(
        &self,
        nodes: &'a mut BTreeMap<NodeKey, DialledNode>,
        replica: &ReplicaId,
        node: &NodeId,
        endpoint: &str,
    ) -> Result<&'a mut DialledNode, CallError> {
        let key = key(replica, node);
        if nodes
            .get(&key)
            .is_none_or(|known| known.endpoint != endpoint)
        {
            let dialled = DialledNode {
                endpoint: endpoint.to_owned(),
                control: self.client(node, endpoint)?,
                lanes: Vec::new(),
            };
            nodes.insert(key.clone(), dialled);
        }
        let absent = || CallErrorKind::Internal.to_error("a node was dialled and is not there");
        nodes.get_mut(&key).ok_or_else(absent)
    }

    fn client(&self, node: &NodeId, endpoint: &str) -> Result<NodeClient<Channel>, CallError> {
        let channel = self.dial(node, endpoint, &self.limits)?;
        Ok(NodeClient::new(channel).max_decoding_message_size(16 << 20))
    }

    /// Returns the address at which a node was dialled.
    pub(crate) fn dialled_endpoint(&self, replica: &ReplicaId, node: &NodeId) -> Option<String> {
        let nodes = self.lock();
        let dialled = nodes.get(&key(replica, node))?;
        Some(dialled.endpoint.clone())
    }

    /// Forgets the connections to a node.
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

#[cfg(test)]
mod tests {
    use archive_rpc::testing::TestAuthority;

    use super::*;

    /// Fails if streams wait for each other on one connection while there may be another, a new one is made for each,
    /// or those that nobody uses stay.
    #[tokio::test]
    async fn streams_have_as_many_connections_as_they_need() {
        let credentials = TestAuthority::new().credentials(&["repository/kb"]);
        let dialer = Dialer::new(credentials, RpcLimits::default());
        let (replica, node) = ("one".parse().unwrap(), "n-1".parse().unwrap());
        let lane = || dialer.dial_lane(&replica, &node, "127.0.0.1:1").unwrap();
        let lanes = || {
            dialer
                .lock()
                .values()
                .map(|one| one.lanes.len())
                .sum::<usize>()
        };
        let mut streams: Vec<Lane> = (0..3 * STREAMS).map(|_| lane()).collect();
        assert_eq!(lanes(), 3);
        streams.truncate(1);
        drop(lane());
        assert_eq!(lanes(), 2, "the used one, and that of the last stream");
        drop(streams);
        drop(lane());
        assert_eq!(lanes(), 1);
        dialer.forget_node(&replica, &node);
        assert_eq!(lanes(), 0);
    }
}
