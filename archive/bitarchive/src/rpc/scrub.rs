//! The scrub over the wire: its orders, and its state.

use archive_model::{NodeKey, ScrubOrder};
use archive_rpc::CallErrorKind;
use jiff::Timestamp;
use proto_archive::{convert as fields, wire};
use tonic::Status;

use crate::node::Node;
use crate::scrub::ScrubControl;

pub(crate) fn order_scrub(
    node: &Node,
    control: &ScrubControl,
    request: &wire::ScrubRequest,
    now: Timestamp,
) -> Result<wire::ScrubState, Status> {
    let order = fields::scrub_order(request)?;
    if order != ScrubOrder::Tell {
        control
            .give_order(order, now)
            .map_err(|error| CallErrorKind::Storage.to_status(error.to_string()))?;
        tracing::info!(%order, "the scrub got an order");
    }
    let key = NodeKey {
        replica: node.replica.clone(),
        node: node.id.clone(),
    };
    Ok(fields::scrub_state(control.scrub_state(key, now)))
}
