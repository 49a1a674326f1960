//! The service `Replica` of a checksum replica: the answer to every question about nodes is itself.

use archive_model::{Mode, NodeId, NodeState, VolumeState};
use archive_rpc::{CallErrorKind, InvalidMessage};
use jiff::Timestamp;
use proto_archive::wire::replica_server::Replica;
use proto_archive::{convert as fields, wire};
use tonic::{Request, Response, Status};

use super::super::AnswerStream;
use super::{ChecksumReplica, Door};

type Answer<T> = Result<Response<T>, Status>;
type Stream<T> = Answer<AnswerStream<T>>;

#[tonic::async_trait]
impl Replica for Door {
    async fn heartbeat(
        &self,
        _request: Request<wire::HeartbeatRequest>,
    ) -> Answer<wire::HeartbeatResponse> {
        let replica = self.replica.replica();
        Err(CallErrorKind::Invalid.to_status(format!(
            "replica {replica} keeps checksums only and has no other nodes; correct the setting `monitor` of that node"
        )))
    }

    /// Answers with itself even if the caller avoids it: any other answer would hide why its only node could not.
    async fn place(&self, request: Request<wire::PlaceRequest>) -> Answer<wire::PlaceResponse> {
        let request = request.into_inner();
        fields::file_name("name", &request.name)?;
        fields::upload_id(&request.upload)?;
        for node in &request.avoid {
            named("avoid", node)?;
        }
        Ok(Response::new(wire::PlaceResponse {
            node: self.replica.node().to_string(),
            endpoint: self.endpoint.clone(),
        }))
    }

    async fn locate(&self, request: Request<wire::FindRequest>) -> Answer<wire::FindResponse> {
        let name = fields::file_name("name", &request.into_inner().name)?;
        self.find(name).await
    }

    async fn listing(&self, request: Request<wire::FilesRequest>) -> Stream<wire::FilesResponse> {
        self.files(&request.into_inner())
    }

    async fn replica_state(
        &self,
        request: Request<wire::ReplicaStateRequest>,
    ) -> Answer<wire::ReplicaStateResponse> {
        let wire::ReplicaStateRequest { known, retired, .. } = request.into_inner();
        for node in retired {
            named("retired", &node)?;
        }
        let mut others = Vec::new();
        for node in known {
            let node = named("known", &node)?;
            if node != *self.replica.node() {
                others.push(fields::node_status(NodeState::unheard_node(node)));
            }
        }
        let endpoint = self.endpoint.clone();
        let seen = self.clock.now();
        self.ask(move |replica| {
            let own = fields::node_status(replica_report(replica, endpoint, seen));
            Ok(wire::ReplicaStateResponse {
                replica: replica.replica().to_string(),
                nodes: std::iter::once(own).chain(others).collect(),
            })
        })
        .await
    }
}

/// Reads the id of a node in a list.
fn named(field: &'static str, node: &str) -> Result<NodeId, InvalidMessage> {
    NodeId::new(node).map_err(|error| InvalidMessage::invalid_field(field, error.to_string()))
}

/// Reports its state in the terms of a node with one volume, which was heard of at this moment.
pub(super) fn replica_report(
    replica: &ChecksumReplica,
    endpoint: String,
    seen: Timestamp,
) -> NodeState {
    let (space, problem) = match replica.space() {
        Ok(space) => (Some(space), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let volume = VolumeState {
        volume: Some(replica.volume().clone()),
        path: replica.data().display().to_string(),
        problem,
        mode: Mode::ReadWrite,
        total: space.map(|(space, _)| space.total).unwrap_or_default(),
        free: space.map(|(space, _)| space.free).unwrap_or_default(),
        ..VolumeState::default()
    };
    NodeState {
        endpoint,
        volumes: vec![volume],
        usable: space.map(|(_, usable)| usable).unwrap_or_default(),
        seen: Some(seen),
        alive: true,
        mode: Some(Mode::ReadWrite),
        ..NodeState::unheard_node(replica.node().clone())
    }
}
