//! The state of scrubbing on every node, and orders to it. Operators may see it; officers may order it.

use archive_model::{Gap, NodeId, ReplicaId, ReplicaKind, ScrubOrder};
use archive_rpc::{Identity, Kind, Role};
use proto_archive::{convert as fields, wire};
use tonic::{Request, Status};

use super::Door;
use super::acting;

/// Asks every selected node for the state of its scrub, or gives it an order.
pub(super) async fn run(
    door: &Door,
    request: Request<wire::ScrubsRequest>,
) -> Result<wire::ScrubsResponse, Status> {
    let (order, word) = order(&request)?;
    let who = acting(&request, Role::Officer)?;
    let request = request.into_inner();
    let replica = match request.replica.as_str() {
        "" => None,
        id => Some(fields::replica_id(id)?),
    };
    let only = match request.node.as_str() {
        "" => None,
        id => Some(fields::node_id(id)?),
    };
    if let Some(word) = word {
        // Recorded before it is done: an order may reach some nodes only.
        let whose = match (&only, &replica) {
            (Some(node), _) => format!("of node {node}"),
            (None, Some(replica)) => format!("of replica {replica}"),
            (None, None) => "everywhere".to_owned(),
        };
        let what = format!("scrubs {whose}: {word}");
        door.archive.note(who.to_string(), None, what).await?;
    }
    let mut answer = wire::ScrubsResponse::default();
    let mut is_met = false;
    let specs = door.archive.in_service();
    let specs = specs.iter();
    let specs = specs.filter(|spec| spec.kind == ReplicaKind::Bitarchive);
    for spec in specs.filter(|spec| replica.as_ref().is_none_or(|id| *id == spec.id)) {
        for node in door.people.nodes_of(&spec.id).await? {
            if only.as_ref().is_some_and(|only| *only != node) {
                continue;
            }
            is_met = true;
            let calls = &door.archive.calls;
            let asking = calls.replicas.scrub(&spec.id, &node, order);
            match calls.answered(asking).await {
                Ok(state) => answer.scrubs.push(wire::scrubs_response::One {
                    replica: spec.id.to_string(),
                    state: Some(fields::scrub_state(state)),
                }),
                Err(error) if error.kind == Kind::Invalid => return Err(error.into()),
                Err(error) => answer.gaps.push(gap(&spec.id, &node, error.reason)),
            }
        }
    }
    if !is_met && (only.is_some() || replica.is_some()) {
        return Err(Kind::NotFound.status("no node or replica of that name is known"));
    }
    Ok(answer)
}

/// Returns the order, and in words if the caller does not only ask. An order needs an officer.
fn order(request: &Request<wire::ScrubsRequest>) -> Result<(ScrubOrder, Option<String>), Status> {
    let order = request.get_ref().order.unwrap_or_default();
    let order = fields::scrub_order(&order)?;
    let word = match order {
        ScrubOrder::Tell => return Ok((order, None)),
        ScrubOrder::Pause(_) => "pause".to_owned(),
        ScrubOrder::Resume => "resume".to_owned(),
        ScrubOrder::Throttle(rate) => {
            format!("at most {} bytes a second", rate.unwrap_or_default())
        }
    };
    let identity = Identity::of(request)?;
    if !identity.has(Role::Officer) {
        let said = format!("{identity} may see scrubs, but not order them; an officer may");
        return Err(Kind::Refused.status(said));
    }
    Ok((order, Some(word)))
}

fn gap(replica: &ReplicaId, node: &NodeId, reason: String) -> wire::Gap {
    fields::gap_message(Gap::of_node(replica.clone(), node.clone(), reason))
}
