//! The contents of the attics: asks every node of every replica, and names those that do not answer.

use archive_model::{AtticItem, AtticKind, FileName, Gap, NodeId, ReplicaId};
use archive_rpc::{CallError, CallErrorKind};
use proto_archive::{convert as fields, wire};
use tonic::{Response, Status};

use super::super::{AnswerStream, Answers, Door, send_answer};

pub(super) fn list_attics(
    door: &Door,
    request: &wire::AtticsRequest,
) -> Result<Response<AnswerStream<wire::AtticsResponse>>, Status> {
    let replicas: Vec<ReplicaId> = match request.replica.as_str() {
        "" => {
            let now = door.archive.standing.current_snapshot();
            let ids = door.archive.specs.iter().map(|spec| spec.id.clone());
            ids.filter(|id| !now.is_retired(id)).collect()
        }
        id => {
            let id = fields::replica_id(id)?;
            door.people.check_configured(&id)?;
            vec![id]
        }
    };
    let name = match request.name.as_str() {
        "" => None,
        name => Some(fields::file_name("name", name)?),
    };
    let own = door.clone();
    Ok(door.answer("attics", |answers| async move {
        gather(&own, replicas, name.as_ref(), &answers).await
    }))
}

/// Asks every node; those that do not answer are gaps.
async fn gather(
    door: &Door,
    replicas: Vec<ReplicaId>,
    name: Option<&FileName>,
    answers: &Answers<wire::AtticsResponse>,
) -> Result<(), Status> {
    let mut gaps = Vec::new();
    for replica in replicas {
        let nodes = match door.archive.calls.replicas.nodes_state(&replica).await {
            Ok(nodes) => nodes,
            Err(error) => {
                gaps.push(Gap::of_replica(replica, error.reason));
                continue;
            }
        };
        for node in nodes.into_iter().filter(|node| !node.is_retired()) {
            match one_attic(door, &replica, &node.node, name, answers).await? {
                Ok(of_volumes) => gaps.extend(of_volumes),
                Err(error) => gaps.push(Gap::of_node(replica.clone(), node.node, error.reason)),
            }
        }
    }
    let last = wire::AtticsResponse {
        items: Vec::new(),
        gaps: gaps.into_iter().map(fields::gap_message).collect(),
    };
    send_answer(answers, last).await
}

/// Forwards the items of one node. Returns its gaps, or the error that ended its answer.
async fn one_attic(
    door: &Door,
    replica: &ReplicaId,
    node: &NodeId,
    name: Option<&FileName>,
    answers: &Answers<wire::AtticsResponse>,
) -> Result<Result<Vec<Gap>, CallError>, Status> {
    let calls = &door.archive.calls;
    let opening = calls.replicas.list_attic(replica, node, name);
    let mut attic = match calls.answered_call(opening).await {
        Ok(attic) => attic,
        Err(error) => return Ok(Err(error)),
    };
    let mut gaps = Vec::new();
    loop {
        let page = match calls.answered_call(attic.next()).await {
            Ok(Some(page)) => page,
            Ok(None) => {
                return Ok(Err(
                    CallErrorKind::Unavailable.to_error("it ended before its end")
                ));
            }
            Err(error) => return Ok(Err(error)),
        };
        let mut items = Vec::new();
        for item in page.items {
            match item {
                // A row of a checksum replica lies in no attic: it has no place, and cannot be restored from there.
                Ok(item) if item.kind == AtticKind::Row => {}
                Ok(item) => items.push(wire::attics_response::One {
                    replica: replica.to_string(),
                    item: Some(fields::attic_item_message(AtticItem {
                        admission: None,
                        ..item
                    })),
                }),
                // One gap stands for all such items: a node could name them without end.
                Err(_) if !gaps.is_empty() => {}
                Err(error) => {
                    let reason = format!("an item of its attic cannot be listed: {error}");
                    gaps.push(Gap::of_node(replica.clone(), node.clone(), reason));
                }
            }
        }
        if !items.is_empty() {
            let gaps = Vec::new();
            send_answer(answers, wire::AtticsResponse { items, gaps }).await?;
        }
        if let Some(end) = page.end {
            gaps.extend(end);
            return Ok(Ok(gaps));
        }
    }
}
