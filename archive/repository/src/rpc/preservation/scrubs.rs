//! What scrubbing does on every node, and orders to it.

use archive_model::{NodeId, ReplicaKind};
use archive_rpc::Kind;
use proto_archive::{convert as fields, wire};
use tonic::Status;

use super::Door;

/// Asks, or orders, every node that is meant.
pub(super) async fn run(
    door: &Door,
    request: wire::ScrubsRequest,
) -> Result<wire::ScrubsResponse, Status> {
    let replica = match request.replica.as_str() {
        "" => None,
        id => Some(fields::replica_id(id)?),
    };
    let only = match request.node.as_str() {
        "" => None,
        id => Some(fields::node_id(id)?),
    };
    let order = request.order.unwrap_or_default();
    let mut answer = wire::ScrubsResponse::default();
    let mut is_met = false;
    let specs = door.preserver.in_service();
    let specs = specs.iter();
    let specs = specs.filter(|spec| spec.kind == ReplicaKind::Bitarchive);
    for spec in specs.filter(|spec| replica.as_ref().is_none_or(|id| *id == spec.id)) {
        let (admin, id) = (door.admin.clone(), spec.id.clone());
        let nodes = crate::preserver::blocking(move || admin.nodes(&id)).await?;
        for node in nodes {
            if only.as_ref().is_some_and(|only| *only != node) {
                continue;
            }
            is_met = true;
            let asking = door.replicas.scrub(&spec.id, &node, order);
            let asked = door
                .clock
                .timeout(door.settings.stall.duration(), asking)
                .await;
            match asked {
                Ok(Ok(state)) => answer.scrubs.push(wire::scrubs_response::One {
                    replica: spec.id.to_string(),
                    state: Some(state),
                }),
                Ok(Err(status)) if Kind::of(&status) == Kind::Invalid => return Err(status),
                Ok(Err(status)) => answer
                    .gaps
                    .push(gap(spec.id.as_str(), &node, status.message())),
                Err(late) => answer
                    .gaps
                    .push(gap(spec.id.as_str(), &node, &late.to_string())),
            }
        }
    }
    if !is_met && (only.is_some() || replica.is_some()) {
        return Err(Kind::NotFound.status("no such node or replica is known"));
    }
    Ok(answer)
}

fn gap(replica: &str, node: &NodeId, reason: &str) -> wire::Gap {
    wire::Gap {
        replica: replica.to_owned(),
        node: node.to_string(),
        volume: String::new(),
        reason: reason.to_owned(),
    }
}
