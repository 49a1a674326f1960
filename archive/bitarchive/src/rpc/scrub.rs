//! The scrub over the wire: its orders, and its state.

use std::time::Duration;

use archive_model::ScrubActivity;
use archive_rpc::{InvalidMessage, Kind};
use jiff::Timestamp;
use proto_archive::wire;
use tonic::Status;

use crate::node::Node;
use crate::scrub::{Activity, Control, ScrubOrder, ScrubState};

pub(crate) fn scrub(
    node: &Node,
    control: &Control,
    request: &wire::ScrubRequest,
    now: Timestamp,
) -> Result<wire::ScrubState, Status> {
    use wire::scrub_request::Order as Wire;
    let order = Wire::try_from(request.order).map_err(|error| {
        InvalidMessage::invalid(
            "order",
            format!("{} is not an order ({error})", request.order),
        )
    })?;
    let order = match order {
        Wire::Unspecified => None,
        Wire::Pause => Some(ScrubOrder::Pause(Duration::from_secs(
            request.pause_seconds,
        ))),
        Wire::Resume => Some(ScrubOrder::Resume),
        Wire::Throttle => Some(ScrubOrder::Throttle(request.bytes_per_second)),
    };
    if let Some(order) = order {
        control
            .order(order, now)
            .map_err(|error| Kind::Storage.status(error.to_string()))?;
        tracing::info!(?order, "the scrub got an order");
    }
    Ok(write(node, &control.state(now)))
}

fn write(node: &Node, state: &ScrubState) -> wire::ScrubState {
    let time = |time: Option<Timestamp>| time.map(|time| time.to_string()).unwrap_or_default();
    let (activity, paused_until) = match state.activity {
        Activity::Running => (ScrubActivity::Running, None),
        Activity::Idle => (ScrubActivity::Idle, None),
        Activity::Paused(until) => (ScrubActivity::Paused, Some(until)),
        Activity::Off => (ScrubActivity::Off, None),
    };
    wire::ScrubState {
        node: node.id().to_string(),
        activity: wire::scrub_state::Activity::from(activity).into(),
        paused_until: time(paused_until),
        bytes_per_second: state.rate,
        due: state.due,
        next: time(state.next),
        oldest: time(state.oldest),
        unknown: state.unknown,
        files: state.files,
        bytes: state.bytes,
        found: state.found,
        deadline_seconds: state.deadline.as_secs(),
    }
}
