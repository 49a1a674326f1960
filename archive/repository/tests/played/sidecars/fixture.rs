//! The fixture of restores: two replicas of one node each that answer as a test tells them, correctly or not; and a
//! stopped repository.

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
    AdmissionsResponse, AtticRequest, AtticResponse, CopyCondition, FileEntry, FilesRequest, Gap,
    NodeStatus, ReplicaStateRequest, ReplicaStateResponse,
};
use tonic::codegen::BoxStream;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::lab::{Lab, replica};

/// Pages of names with their admissions.
pub(crate) type SidecarPages = Vec<Vec<(&'static str, String)>>;

/// The pages of a node, and its last message; `None` if its stream fails.
pub(crate) type NodeAnswer = (SidecarPages, Option<End>);

/// Ends correctly, with this count.
pub(crate) fn end(saying: SidecarPages, count: u64) -> NodeAnswer {
    (
        saying,
        Some(End {
            count,
            gaps: vec![],
        }),
    )
}

/// Ends with a volume that could not be read.
pub(crate) fn gap(saying: SidecarPages, count: u64) -> NodeAnswer {
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

/// Returns an admission that the archive has signed.
pub(crate) fn signed(name: &str, content: u8) -> String {
    admission(name, content)
        .sign(&signing_key())
        .unwrap()
        .as_str()
        .to_owned()
}

/// Returns an admission that no trusted key has signed.
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
    answer: NodeAnswer,
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
                condition: CopyCondition::Present.into(),
                stored: "2026-01-01T00:00:01Z".parse().ok(),
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

pub(crate) struct SidecarFixture {
    lab: Lab,
    monitors: Vec<(&'static str, String)>,
}

impl SidecarFixture {
    pub(crate) async fn start(one: NodeAnswer, two: NodeAnswer) -> Self {
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

    /// Creates the fixture without the signing key of the archive: a restore must not need it.
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
