//! Scrubbing on every node.

use archive_model::{Gap, NodeId, NodeScrub, ReplicaId, ScrubOrder};
use archive_rpc::InvalidMessage;
use proto_archive::{convert, wire};
use serde::Serialize;

/// The nodes whose scrubs are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubSelection {
    /// Only nodes of this replica.
    pub replica: Option<ReplicaId>,
    /// Only this node.
    pub node: Option<NodeId>,
}

/// The state of the scrubs, and the nodes that could not be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scrubs {
    /// The scrub of each node.
    pub scrubs: Vec<NodeScrub>,
    /// The replicas and nodes that could not be asked; empty if all answered.
    pub gaps: Vec<Gap>,
}

impl ScrubSelection {
    /// Returns the request that gives these nodes an order.
    pub(super) fn wire_request(&self, order: ScrubOrder) -> wire::ScrubsRequest {
        wire::ScrubsRequest {
            order: Some(convert::scrub_request(order)),
            replica: self
                .replica
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            node: self
                .node
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
        }
    }
}

impl TryFrom<wire::ScrubsResponse> for Scrubs {
    type Error = InvalidMessage;

    fn try_from(message: wire::ScrubsResponse) -> Result<Self, InvalidMessage> {
        let scrubs = message.scrubs.iter().map(node_scrub);
        Ok(Self {
            scrubs: scrubs.collect::<Result<_, _>>()?,
            gaps: message
                .gaps
                .iter()
                .map(convert::read_gap)
                .collect::<Result<_, _>>()?,
        })
    }
}

fn node_scrub(message: &wire::scrubs_response::One) -> Result<NodeScrub, InvalidMessage> {
    let state = message.state.as_ref();
    let state = state.ok_or_else(|| InvalidMessage::missing_field("state"))?;
    convert::node_scrub(convert::replica_id(&message.replica)?, state)
}
