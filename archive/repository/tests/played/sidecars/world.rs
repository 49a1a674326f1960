//! Two replicas of one node each that say what a test tells them to say, true or not; and a stopped repository.

use std::path::PathBuf;

use archive_model::{ReplicaKind, Root};
use archive_proof::testing::signing_key;
use archive_proof::{Admission, SigningKey};
use archive_repository::Settings;
use proto_archive::wire::admissions_response::One;
use proto_archive::wire::files_response::End;
use proto_archive::wire::node_server::{Node, NodeServer};
use proto_archive::wire::replica_server::{Replica, ReplicaServer};
use proto_archive::wire::{
    AdmissionsResponse, AtticRequest, AtticResponse, Condition, FileEntry, FilesRequest, Gap,
    NodeStatus, ReplicaStateRequest, ReplicaStateResponse,
};
use tonic::codegen::BoxStream;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::lab::{Lab, replica};

/// Pages of names with their admissions.
pub(crate) type Saying = Vec<Vec<(&'static str, String)>>;

/// The pages of a node, and how it ends; none: it breaks off.
pub(crate) type Answer = (Saying, Option<End>);

/// Ends as a node should, with this count.
pub(crate) fn end(saying: Saying, count: u64) -> Answer {
    (
        saying,
        Some(End {
            count,
            gaps: vec![],
        }),
    )
}

/// Ends with a volume that could not be looked at.
pub(crate) fn gap(saying: Saying, count: u64) -> Answer {
    let gap = Gap {
        reason: "absent".to_owned(),
        volume: "v-2".to_owned(),
        ..Gap::default()
    };
    let gaps = vec![gap];
    (saying, Some(End { count, gaps }))
}

fn admission(name: &str, content: u8) -> Admission {
    Admission {
        size: 7,
        root: Root::from_bytes([content; 32]),
        ..archive_proof::testing::admission(name, b"")
    }
}

/// Signed by the archive.
pub(crate) fn signed(name: &str, content: u8) -> String {
    admission(name, content)
        .sign(&signing_key())
        .unwrap()
        .as_str()
        .to_owned()
}

/// Signed by nobody whom the archive trusts.
pub(crate) fn foreign(name: &str, content: u8) -> String {
    let key = SigningKey::from_seed([9; 32]);
    admission(name, content)
        .sign(&key)
        .unwrap()
        .as_str()
        .to_owned()
}

struct FakeNode {
    id: String,
    answer: Answer,
}

#[tonic::async_trait]
impl Node for FakeNode {
    async fn admissions(
        &self,
        _request: Request<FilesRequest>,
    ) -> Result<Response<BoxStream<AdmissionsResponse>>, Status> {
        let one = |(name, admission): &(&str, String)| One {
            entry: Some(FileEntry {
                name: (*name).to_owned(),
                node: self.id.clone(),
                volume: "v-1".to_owned(),
                condition: Condition::Present.into(),
                stored: "2026-01-01T00:00:01Z".to_owned(),
                ..FileEntry::default()
            }),
            admission: admission.clone(),
        };
        let page = |page: &Vec<(&str, String)>| AdmissionsResponse {
            admissions: page.iter().map(one).collect(),
            end: None,
        };
        let mut pages: Vec<_> = self.answer.0.iter().map(page).collect();
        if let Some(end) = &self.answer.1 {
            pages.push(AdmissionsResponse {
                admissions: vec![],
                end: Some(end.clone()),
            });
        }
        let stream = tokio_stream::iter(pages.into_iter().map(Ok));
        Ok(Response::new(Box::pin(stream)))
    }

    async fn attic(
        &self,
        _request: Request<AtticRequest>,
    ) -> Result<Response<BoxStream<AtticResponse>>, Status> {
        let nothing = AtticResponse {
            items: vec![],
            end: Some(End::default()),
        };
        Ok(Response::new(Box::pin(tokio_stream::once(Ok(nothing)))))
    }
}

struct FakeMonitor {
    node: String,
    endpoint: String,
}

#[tonic::async_trait]
impl Replica for FakeMonitor {
    async fn replica_state(
        &self,
        _request: Request<ReplicaStateRequest>,
    ) -> Result<Response<ReplicaStateResponse>, Status> {
        let node = NodeStatus {
            node: self.node.clone(),
            endpoint: self.endpoint.clone(),
            alive: true,
            ..NodeStatus::default()
        };
        Ok(Response::new(ReplicaStateResponse {
            replica: String::new(),
            nodes: vec![node],
        }))
    }
}

pub(crate) struct World {
    lab: Lab,
    monitors: Vec<(&'static str, String)>,
}

impl World {
    pub(crate) async fn start(one: Answer, two: Answer) -> Self {
        let lab = Lab::new();
        let mut monitors = Vec::new();
        for (replica, answer) in [("one", one), ("two", two)] {
            let id = format!("{replica}-1");
            let node = FakeNode {
                id: id.clone(),
                answer,
            };
            let routes = Routes::new(NodeServer::new(node));
            let endpoint = lab.play(&format!("node/{id}"), routes).await;
            let monitor = FakeMonitor { node: id, endpoint };
            let routes = Routes::new(ReplicaServer::new(monitor));
            let address = lab.play(&format!("monitor/{replica}"), routes).await;
            monitors.push((replica, address));
        }
        Self { lab, monitors }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.lab.data()
    }

    /// Without the key with which the archive signs: nothing of this may need it.
    pub(crate) fn settings(&self) -> Settings {
        let replicas = self.monitors.iter();
        let replicas = replicas.map(|(id, monitor)| replica(id, ReplicaKind::Bitarchive, monitor));
        let mut settings = self.lab.settings(replicas.collect());
        settings.repository.signing_key = self.lab.at("none");
        settings
    }

    pub(crate) async fn stop(self) {
        self.lab.end().await;
    }
}
