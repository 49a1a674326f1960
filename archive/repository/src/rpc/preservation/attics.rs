//! The contents of the attics: asks every node of every replica, and names those that do not answer.

use archive_model::{NodeId, ReplicaId};
use archive_rpc::Kind;
use proto_archive::{convert as fields, wire};
use tonic::{Response, Status};

use super::super::{AnswerStream, Answers, Door, send};

pub(super) fn attics(
    door: &Door,
    request: &wire::AtticsRequest,
) -> Result<Response<AnswerStream<wire::AtticsResponse>>, Status> {
    let replicas: Vec<ReplicaId> = match request.replica.as_str() {
        "" => {
            let now = door.people.standing.now();
            let ids = door.specs.iter().map(|spec| spec.id.clone());
            ids.filter(|id| !now.is_retired(id)).collect()
        }
        id => {
            let id = fields::replica_id(id)?;
            door.people.configured(&id)?;
            vec![id]
        }
    };
    let name = match request.name.as_str() {
        "" => String::new(),
        name => fields::file_name("name", name)?.to_string(),
    };
    let own = door.clone();
    Ok(door.answer("attics", |answers| async move {
        gather(&own, replicas, &name, &answers).await
    }))
}

/// Asks every node; those that do not answer are gaps.
async fn gather(
    door: &Door,
    replicas: Vec<ReplicaId>,
    name: &str,
    answers: &Answers<wire::AtticsResponse>,
) -> Result<(), Status> {
    let mut gaps = Vec::new();
    for replica in replicas {
        let gap = |node: &str, reason: &str| wire::Gap {
            replica: replica.to_string(),
            node: node.to_owned(),
            volume: String::new(),
            reason: reason.to_owned(),
        };
        let nodes = match door.replicas.state(&replica).await {
            Ok(nodes) => nodes,
            Err(error) => {
                gaps.push(gap("", &error.reason));
                continue;
            }
        };
        for node in nodes.into_iter().filter(|node| !node.is_retired()) {
            match one_attic(door, &replica, &node.node, name, answers).await? {
                Ok(of_volumes) => gaps.extend(of_volumes),
                Err(status) => gaps.push(gap(node.node.as_str(), status.message())),
            }
        }
    }
    let last = wire::AtticsResponse {
        items: Vec::new(),
        gaps,
    };
    send(answers, last).await
}

/// Forwards the items of one node. Returns its gaps, or the error that ended its answer.
async fn one_attic(
    door: &Door,
    replica: &ReplicaId,
    node: &NodeId,
    name: &str,
    answers: &Answers<wire::AtticsResponse>,
) -> Result<Result<Vec<wire::Gap>, Status>, Status> {
    let idle = door.settings.stall.duration();
    let opening = door.replicas.attic(replica, node, name);
    let mut messages = match door.clock.timeout(idle, opening).await {
        Ok(Ok(messages)) => messages,
        Ok(Err(error)) => return Ok(Err(error.into())),
        Err(late) => return Ok(Err(Kind::TimedOut.status(late.to_string()))),
    };
    loop {
        let message = match door.clock.timeout(idle, messages.message()).await {
            Ok(Ok(Some(message))) => message,
            Ok(Ok(None)) => return Ok(Err(Kind::Unavailable.status("it ended before its end"))),
            Ok(Err(status)) => return Ok(Err(status)),
            Err(late) => return Ok(Err(Kind::TimedOut.status(late.to_string()))),
        };
        let of = |item| wire::attics_response::One {
            replica: replica.to_string(),
            item: Some(item),
        };
        // A row of a checksum replica lies in no attic: it has no place, and cannot be restored from there.
        let items = message.items.into_iter();
        let items = items.filter(|item| !item.id.is_empty());
        let without = |item| wire::AtticItem {
            admission: String::new(),
            ..item
        };
        let items: Vec<_> = items.map(without).map(of).collect();
        if !items.is_empty() {
            let gaps = Vec::new();
            send(answers, wire::AtticsResponse { items, gaps }).await?;
        }
        if let Some(end) = message.end {
            let named = |gap| wire::Gap {
                replica: replica.to_string(),
                ..gap
            };
            return Ok(Ok(end.gaps.into_iter().map(named).collect()));
        }
    }
}
