//! The state of scrubbing on every node, and orders to it. Operators may see it; officers may order it.

use archive_model::{Gap, NodeId, NodeKey, ReplicaId, ReplicaKind, ScrubOrder};
use archive_rpc::{CallError, CallErrorKind, Identity, Role};
use futures_util::future::{join_all, try_join_all};
use proto_archive::{convert as fields, wire};
use tonic::{Request, Status};

use super::Door;
use super::acting;

/// Asks every selected node for the state of its scrub, or gives it an order.
pub(super) async fn run_scrubs(
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
        door.archive.note_line(who.to_string(), None, what).await?;
    }
    let nodes = nodes(door, replica.as_ref(), only.as_ref()).await?;
    if nodes.is_empty() && (only.is_some() || replica.is_some()) {
        return Err(CallErrorKind::NotFound.to_status("no node or replica of that name is known"));
    }
    // The nodes are asked at once: one that does not answer delays none of the others.
    let calls = &door.archive.calls;
    let asking = nodes
        .iter()
        .map(|key| calls.answered_call(calls.replicas.order_scrub(&key.replica, &key.node, order)));
    let mut answer = wire::ScrubsResponse::default();
    for (key, asked) in nodes.iter().zip(join_all(asking).await) {
        match asked {
            Ok(state) => answer.scrubs.push(wire::scrubs_response::One {
                replica: key.replica.to_string(),
                state: Some(fields::scrub_state(state)),
            }),
            Err(error) if error.kind == CallErrorKind::Invalid => return Err(error.into()),
            Err(error) => answer.gaps.push(gap(key, error.reason)),
        }
    }
    Ok(answer)
}

/// Returns the nodes that are meant, in the order of the replicas. The monitors are asked at once.
async fn nodes(
    door: &Door,
    replica: Option<&ReplicaId>,
    only: Option<&NodeId>,
) -> Result<Vec<NodeKey>, CallError> {
    let mut specs = door.archive.in_service();
    specs.retain(|spec| {
        spec.kind == ReplicaKind::Bitarchive && replica.is_none_or(|id| *id == spec.id)
    });
    let asking = specs.iter().map(|spec| door.people.nodes_of(&spec.id));
    let mut keys = Vec::new();
    for (spec, nodes) in specs.iter().zip(try_join_all(asking).await?) {
        let nodes = nodes.into_iter();
        let nodes = nodes.filter(|node| only.is_none_or(|only| only == node));
        keys.extend(nodes.map(|node| NodeKey {
            replica: spec.id.clone(),
            node,
        }));
    }
    Ok(keys)
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
    let identity = Identity::from_request(request)?;
    if !identity.has_role(Role::Officer) {
        let said = format!("{identity} may see scrubs, but not order them; an officer may");
        return Err(CallErrorKind::Refused.to_status(said));
    }
    Ok((order, Some(word)))
}

fn gap(key: &NodeKey, reason: String) -> wire::Gap {
    fields::gap_message(Gap::of_node(key.replica.clone(), key.node.clone(), reason))
}
