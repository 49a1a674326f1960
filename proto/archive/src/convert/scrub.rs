//! Orders to scrubs, and the state of scrubs, in both directions.

use std::time::Duration;

use archive_model::{NodeScrub, ReplicaId, ScrubOrder};
use archive_rpc::InvalidMessage;

use super::{node_id, optional_time, scrub_activity, text_of, unknown_value};
use crate::wire;
use crate::wire::scrub_request::Order;

/// Reads an order.
///
/// # Errors
/// A number that no order has.
pub fn scrub_order(request: &wire::ScrubRequest) -> Result<ScrubOrder, InvalidMessage> {
    let some = |number: u64| (number > 0).then_some(number);
    let order = Order::try_from(request.order).or(Err(unknown_value("order", request.order)))?;
    Ok(match order {
        Order::Unspecified => ScrubOrder::Tell,
        Order::Pause => ScrubOrder::Pause(some(request.pause_seconds).map(Duration::from_secs)),
        Order::Resume => ScrubOrder::Resume,
        Order::Throttle => ScrubOrder::Throttle(some(request.bytes_per_second)),
    })
}

/// Writes an order.
pub fn scrub_request(order: ScrubOrder) -> wire::ScrubRequest {
    let (order, pause_seconds, bytes_per_second) = match order {
        ScrubOrder::Tell => (Order::Unspecified, 0, 0),
        // 0 would mean a pause as long as is allowed.
        ScrubOrder::Pause(length) => {
            let seconds = length.map_or(0, |length| length.as_secs().max(1));
            (Order::Pause, seconds, 0)
        }
        ScrubOrder::Resume => (Order::Resume, 0, 0),
        ScrubOrder::Throttle(rate) => (Order::Throttle, 0, rate.unwrap_or(0)),
    };
    wire::ScrubRequest {
        order: order.into(),
        pause_seconds,
        bytes_per_second,
    }
}

/// Reads the state of a node of `replica`.
///
/// # Errors
/// The first field that is missing or invalid.
pub fn node_scrub(
    replica: ReplicaId,
    state: &wire::ScrubState,
) -> Result<NodeScrub, InvalidMessage> {
    Ok(NodeScrub {
        replica,
        node: node_id(&state.node)?,
        state: scrub_activity("activity", state.activity)?,
        paused_until: optional_time("paused_until", &state.paused_until)?,
        bytes_per_second: (state.bytes_per_second > 0).then_some(state.bytes_per_second),
        due: state.due,
        next: optional_time("next", &state.next)?,
        oldest: optional_time("oldest", &state.oldest)?,
        unknown: state.unknown,
        files: state.files,
        bytes: state.bytes,
        found: state.found,
        deadline_seconds: state.deadline_seconds,
    })
}

/// Writes the state of a node without its replica, which the context names.
pub fn scrub_state(scrub: NodeScrub) -> wire::ScrubState {
    wire::ScrubState {
        node: scrub.node.into(),
        activity: wire::scrub_state::Activity::from(scrub.state).into(),
        paused_until: text_of(scrub.paused_until),
        bytes_per_second: scrub.bytes_per_second.unwrap_or_default(),
        due: scrub.due,
        next: text_of(scrub.next),
        oldest: text_of(scrub.oldest),
        unknown: scrub.unknown,
        files: scrub.files,
        bytes: scrub.bytes,
        found: scrub.found,
        deadline_seconds: scrub.deadline_seconds,
    }
}

#[cfg(test)]
mod tests {
    use archive_model::ScrubActivity;
    use jiff::Timestamp;

    use super::*;

    /// Fails if an order means something else at its other end, such as a short pause one for a whole day.
    #[test]
    fn scrub_order_is_read_as_written() {
        for order in [
            ScrubOrder::Tell,
            ScrubOrder::Pause(None),
            ScrubOrder::Pause(Some(Duration::from_secs(90))),
            ScrubOrder::Resume,
            ScrubOrder::Throttle(None),
            ScrubOrder::Throttle(Some(7)),
        ] {
            assert_eq!(scrub_order(&scrub_request(order)), Ok(order));
        }
        let short = ScrubOrder::Pause(Some(Duration::from_millis(1)));
        assert_eq!(scrub_request(short).pause_seconds, 1);
        let newer = wire::ScrubRequest {
            order: 9,
            ..wire::ScrubRequest::default()
        };
        assert!(scrub_order(&newer).is_err());
    }

    /// Fails if a field of a state is lost on its way, or the state of a newer node is guessed.
    #[test]
    fn scrub_state_is_read_as_written() {
        let replica: ReplicaId = "one".parse().unwrap();
        let scrub = NodeScrub {
            replica: replica.clone(),
            node: "n".parse().unwrap(),
            state: ScrubActivity::Paused,
            paused_until: Some(Timestamp::UNIX_EPOCH),
            bytes_per_second: Some(1),
            due: 2,
            next: Some(Timestamp::UNIX_EPOCH),
            oldest: None,
            unknown: 3,
            files: 4,
            bytes: 5,
            found: 6,
            deadline_seconds: 7,
        };
        let state = scrub_state(scrub.clone());
        assert_eq!(node_scrub(replica.clone(), &state), Ok(scrub));
        for activity in [0, 99] {
            let newer = wire::ScrubState {
                activity,
                ..state.clone()
            };
            let error = node_scrub(replica.clone(), &newer).unwrap_err().to_string();
            assert!(error.contains("`activity`"), "{error}");
        }
    }
}
