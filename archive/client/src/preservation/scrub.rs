//! Scrubbing on every node.

use std::time::Duration;

use archive_model::{NodeId, ReplicaId, ScrubActivity};
use archive_rpc::InvalidMessage;
use jiff::Timestamp;
use proto_archive::wire::scrub_request::Order;
use proto_archive::{convert, wire};
use serde::Serialize;

use crate::archive_status::Gap;

/// An order to scrubbing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScrubOrder {
    /// Nothing: only tell.
    Tell,
    /// Pause for so long; none: as long as is allowed. A pause ends itself.
    Pause(Option<Duration>),
    /// Go on.
    Resume,
    /// Read at most this number of bytes a second; if absent, as many as the deadline asks for.
    Throttle(Option<u64>),
}

/// Which nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubSelection {
    /// Only those of this replica.
    pub replica: Option<ReplicaId>,
    /// Only this one.
    pub node: Option<NodeId>,
}

/// The state of scrubbing, and the nodes that could not be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scrubs {
    /// One for each node.
    pub scrubs: Vec<NodeScrub>,
    /// The replicas and nodes that could not be asked; empty if everybody answered.
    pub gaps: Vec<Gap>,
}

/// The state of scrubbing on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeScrub {
    /// The replica.
    pub replica: ReplicaId,
    /// The node.
    pub node: NodeId,
    /// The state of the scrub.
    pub state: ScrubActivity,
    /// When the pause ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Timestamp>,
    /// The most that is read a second now, in bytes; absent: the node does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<u64>,
    /// Files that are due now.
    pub due: u64,
    /// When the next is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// When the copy that has waited longest was last verified; absent: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Timestamp>,
    /// Copies that were not verified since the catalog was built.
    pub unknown: u64,
    /// Files read since the node started.
    pub files: u64,
    /// Bytes read since the node started.
    pub bytes: u64,
    /// Damaged copies found since the node started.
    pub found: u64,
    /// Within how many seconds every copy is read once.
    pub deadline_seconds: u64,
}

impl ScrubSelection {
    /// The request that gives these nodes an order.
    pub(super) fn request(&self, order: ScrubOrder) -> wire::ScrubsRequest {
        let (order, pause_seconds, bytes_per_second) = match order {
            ScrubOrder::Tell => (Order::Unspecified, 0, 0),
            // 0 would mean as long as is allowed.
            ScrubOrder::Pause(length) => {
                let seconds = length.map_or(0, |length| length.as_secs().max(1));
                (Order::Pause, seconds, 0)
            }
            ScrubOrder::Resume => (Order::Resume, 0, 0),
            ScrubOrder::Throttle(rate) => (Order::Throttle, 0, rate.unwrap_or(0)),
        };
        wire::ScrubsRequest {
            order: Some(wire::ScrubRequest {
                order: order.into(),
                pause_seconds,
                bytes_per_second,
            }),
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
        let scrubs = message.scrubs.into_iter().map(NodeScrub::try_from);
        Ok(Self {
            scrubs: scrubs.collect::<Result<_, _>>()?,
            gaps: message
                .gaps
                .into_iter()
                .map(Gap::try_from)
                .collect::<Result<_, _>>()?,
        })
    }
}

impl TryFrom<wire::scrubs_response::One> for NodeScrub {
    type Error = InvalidMessage;

    fn try_from(message: wire::scrubs_response::One) -> Result<Self, InvalidMessage> {
        let state = message
            .state
            .ok_or_else(|| InvalidMessage::missing("state"))?;
        Ok(Self {
            replica: convert::replica_id(&message.replica)?,
            node: convert::node_id(&state.node)?,
            state: convert::scrub_activity("activity", state.activity)?,
            paused_until: convert::optional_time("paused_until", &state.paused_until)?,
            bytes_per_second: (state.bytes_per_second > 0).then_some(state.bytes_per_second),
            due: state.due,
            next: convert::optional_time("next", &state.next)?,
            oldest: convert::optional_time("oldest", &state.oldest)?,
            unknown: state.unknown,
            files: state.files,
            bytes: state.bytes,
            found: state.found,
            deadline_seconds: state.deadline_seconds,
        })
    }
}

#[cfg(test)]
mod tests {
    use proto_archive::wire::scrub_state::Activity;

    use super::*;

    #[test]
    fn scrub_order_keeps_meaning_on_wire() {
        let sent = |order| {
            let request = ScrubSelection::default().request(order).order.unwrap();
            (
                request.order(),
                request.pause_seconds,
                request.bytes_per_second,
            )
        };
        let pause = |millis| ScrubOrder::Pause(Some(Duration::from_millis(millis)));
        assert_eq!(sent(ScrubOrder::Tell), (Order::Unspecified, 0, 0));
        assert_eq!(sent(ScrubOrder::Pause(None)), (Order::Pause, 0, 0));
        assert_eq!(sent(pause(90_000)), (Order::Pause, 90, 0));
        assert_eq!(sent(pause(1)), (Order::Pause, 1, 0), "not for a whole day");
        assert_eq!(sent(ScrubOrder::Resume), (Order::Resume, 0, 0));
        assert_eq!(sent(ScrubOrder::Throttle(Some(7))), (Order::Throttle, 0, 7));
        assert_eq!(sent(ScrubOrder::Throttle(None)), (Order::Throttle, 0, 0));
    }

    #[test]
    fn a_state_of_a_newer_node_is_refused() {
        let one = |activity: i32| wire::scrubs_response::One {
            replica: "one".into(),
            state: Some(wire::ScrubState {
                node: "n-1".into(),
                activity,
                ..wire::ScrubState::default()
            }),
        };
        let off = NodeScrub::try_from(one(Activity::Off.into()))
            .unwrap()
            .state;
        assert_eq!(off, ScrubActivity::Off);
        assert_eq!(
            NodeScrub::try_from(one(Activity::Idle.into()))
                .unwrap()
                .bytes_per_second,
            None
        );
        for activity in [0, 99] {
            let error = NodeScrub::try_from(one(activity)).unwrap_err().to_string();
            assert!(error.contains("`activity`"), "{error}");
        }
        let silent = wire::scrubs_response::One {
            replica: "one".into(),
            state: None,
        };
        assert!(NodeScrub::try_from(silent).is_err());
    }
}
