//! The state of scrubbing on every node, and orders to it. Operators may see it; officers may order it.

use archive_model::{NodeId, ReplicaKind};
use archive_rpc::{Identity, Kind, Role};
use proto_archive::wire::scrub_request::Order;
use proto_archive::{convert as fields, wire};
use tonic::{Request, Status};

use super::Door;
use super::acting;

/// Asks, or orders, every selected node.
pub(super) async fn run(
    door: &Door,
    request: Request<wire::ScrubsRequest>,
) -> Result<wire::ScrubsResponse, Status> {
    let word = order(&request)?;
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
        door.people.note(who.to_string(), None, what).await?;
    }
    let order = request.order.unwrap_or_default();
    let mut answer = wire::ScrubsResponse::default();
    let mut is_met = false;
    let specs = door.preserver.in_service();
    let specs = specs.iter();
    let specs = specs.filter(|spec| spec.kind == ReplicaKind::Bitarchive);
    for spec in specs.filter(|spec| replica.as_ref().is_none_or(|id| *id == spec.id)) {
        for node in door.people.nodes_of(&spec.id).await? {
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
                Ok(Err(error)) if error.kind == Kind::Invalid => return Err(error.into()),
                Ok(Err(error)) => answer
                    .gaps
                    .push(gap(spec.id.as_str(), &node, &error.reason)),
                Err(late) => answer
                    .gaps
                    .push(gap(spec.id.as_str(), &node, &late.to_string())),
            }
        }
    }
    if !is_met && (only.is_some() || replica.is_some()) {
        return Err(Kind::NotFound.status("no node or replica of that name is known"));
    }
    Ok(answer)
}

/// Returns the order in words, or `None` if the caller only asks. An order needs an officer.
fn order(request: &Request<wire::ScrubsRequest>) -> Result<Option<String>, Status> {
    let order = request.get_ref().order.unwrap_or_default();
    let word = match order.order() {
        // A number that this build does not know is refused by the nodes, for the same reason.
        Order::Unspecified if order.order == 0 => return Ok(None),
        Order::Unspecified => format!("order {}", order.order),
        Order::Pause => "pause".to_owned(),
        Order::Resume => "resume".to_owned(),
        Order::Throttle => format!("at most {} bytes a second", order.bytes_per_second),
    };
    let identity = Identity::of(request)?;
    if !identity.has(Role::Officer) {
        let said = format!("{identity} may see scrubs, but not order them; an officer may");
        return Err(Kind::Refused.status(said));
    }
    Ok(Some(word))
}

fn gap(replica: &str, node: &NodeId, reason: &str) -> wire::Gap {
    wire::Gap {
        replica: replica.to_owned(),
        node: node.to_string(),
        volume: String::new(),
        reason: reason.to_owned(),
    }
}
