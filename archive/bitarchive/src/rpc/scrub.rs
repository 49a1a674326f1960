//! The scrub over the wire: its orders, and its state.

use archive_model::{NodeKey, ScrubOrder};
use archive_rpc::Kind;
use jiff::Timestamp;
use proto_archive::{convert as fields, wire};
use tonic::Status;

use crate::node::Node;
use crate::scrub::Control;

pub(crate) fn scrub(
    node: &Node,
    control: &Control,
    request: &wire::ScrubRequest,
    now: Timestamp,
) -> Result<wire::ScrubState, Status> {
    let order = fields::scrub_order(request)?;
    if order != ScrubOrder::Tell {
        control
            .order(order, now)
            .map_err(|error| Kind::Storage.status(error.to_string()))?;
        tracing::info!(%order, "the scrub got an order");
    }
    let key = NodeKey {
        replica: node.replica.clone(),
        node: node.id.clone(),
    };
    Ok(fields::scrub_state(control.state(key, now)))
}
