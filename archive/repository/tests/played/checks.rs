//! Tests of a check of checksums, of a replica whose node does not find what its monitor lists.

use std::sync::Arc;

use archive_daemon::Clock;
use archive_model::ReplicaKind;
use archive_rpc::CallErrorKind;
use parking_lot::{Mutex, MutexGuard};
use proto_archive::wire::check_request::Kind as CheckKind;
use proto_archive::wire::check_response::{Report, Step};
use proto_archive::wire::node_server::{Node, NodeServer};
use proto_archive::wire::preservation_client::PreservationClient;
use proto_archive::wire::replica_server::{Replica, ReplicaServer};
use proto_archive::wire::{
    AnomalyKind, CheckRequest, CopyCondition, FileEntry, FindRequest, FindResponse, NodeStatus,
    ReplicaStateRequest, ReplicaStateResponse, VerifyRequest, VerifyResponse,
};
use tonic::codegen::BoxStream;
use tonic::service::Routes;
use tonic::{Request, Response, Status};
use tools_testing::in_time;

use crate::lab::{Lab, StartedRepository, replica, stored_copy};

const NODES: [&str; 2] = ["n-1", "n-2"];

/// The course of events for a file on the volume `v-1` of the node `n-1`, by the admin data and at first by the
/// monitor.
#[derive(Default)]
struct Script {
    /// The address of each node.
    endpoints: Vec<(&'static str, String)>,
    /// The places that the monitor reports, one after each time that a node was asked to read the file; the last one
    /// stays.
    places: Vec<Option<&'static str>>,
    /// Whether `n-2` finds the file; `n-1` does not.
    is_found: bool,
    /// The nodes that were asked to read the file.
    read: Vec<&'static str>,
}

#[derive(Clone)]
struct Monitor(Arc<Mutex<Script>>);

struct FakeNode {
    id: &'static str,
    monitor: Monitor,
}

fn entry(node: &str) -> FileEntry {
    FileEntry {
        name: "a".to_owned(),
        node: node.to_owned(),
        volume: "v-1".to_owned(),
        size: 7,
        root: vec![1; 32].into(),
        condition: CopyCondition::Present.into(),
        stored: "2026-01-01T00:00:01Z".parse().ok(),
        ..FileEntry::default()
    }
}

impl Monitor {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock()
    }
}

#[tonic::async_trait]
impl Replica for Monitor {
    async fn replica_state(
        &self,
        _request: Request<ReplicaStateRequest>,
    ) -> Result<Response<ReplicaStateResponse>, Status> {
        let node = |(node, endpoint): &(&str, String)| NodeStatus {
            node: (*node).to_owned(),
            endpoint: endpoint.clone(),
            alive: true,
            seen: "2026-01-01T00:00:00Z".to_owned(),
            ..NodeStatus::default()
        };
        Ok(Response::new(ReplicaStateResponse {
            replica: String::new(),
            nodes: self.script().endpoints.iter().map(node).collect(),
        }))
    }

    async fn locate(
        &self,
        _request: Request<FindRequest>,
    ) -> Result<Response<FindResponse>, Status> {
        let script = self.script();
        let asked = script.places.get(script.read.len());
        let place = *asked.or(script.places.last()).unwrap();
        Ok(Response::new(FindResponse {
            entries: place.map(entry).into_iter().collect(),
            ..FindResponse::default()
        }))
    }
}

#[tonic::async_trait]
impl Node for FakeNode {
    async fn verify(
        &self,
        _request: Request<VerifyRequest>,
    ) -> Result<Response<BoxStream<VerifyResponse>>, Status> {
        let mut script = self.monitor.script();
        script.read.push(self.id);
        if self.id == "n-1" || !script.is_found {
            return Err(CallErrorKind::NotFound.to_status("a is not there"));
        }
        let read = VerifyResponse {
            bytes: 7,
            entry: Some(entry(self.id)),
            found: vec![1; 32].into(),
        };
        Ok(Response::new(Box::pin(tokio_stream::once(Ok(read)))))
    }
}

/// Returns the report of a check of checksums of the file, and the nodes that were asked to read it.
async fn check(script: Script) -> (Report, Vec<&'static str>) {
    let lab = Lab::new();
    let copy = stored_copy("n-1", Some("v-1"));
    lab.store(&["a"], 7, [1; 32], "one", copy);
    let monitor = Monitor(Arc::new(Mutex::new(script)));
    for id in NODES {
        let node = FakeNode {
            id,
            monitor: monitor.clone(),
        };
        let routes = Routes::new(NodeServer::new(node));
        let endpoint = lab.play(&format!("node/{id}"), routes).await;
        monitor.script().endpoints.push((id, endpoint));
    }
    let routes = Routes::new(ReplicaServer::new(monitor.clone()));
    let endpoint = lab.play("monitor/one", routes).await;
    let settings = lab.settings(vec![replica("one", ReplicaKind::Bitarchive, &endpoint)]);
    let started = StartedRepository::start(settings, Clock::system_clock()).await;
    let mut officer = PreservationClient::new(lab.channel(&started, "officer/olga"));
    let request = CheckRequest {
        kind: CheckKind::Checksums.into(),
        names: vec!["a".to_owned()],
        ..CheckRequest::default()
    };
    let mut steps = officer.check(request).await.unwrap().into_inner();
    let mut report = None;
    while let Some(step) = steps.message().await.unwrap() {
        if let Some(Step::Report(told)) = step.step {
            report = Some(told);
        }
    }
    drop((steps, officer));
    started.stop().await;
    lab.end().await;
    let read = monitor.script().read.clone();
    (report.unwrap(), read)
}

/// Fails if a listed copy that nobody has read passes for intact, is no gap, or is not read where it is now.
#[tokio::test(flavor = "multi_thread")]
async fn copy_listed_and_not_read_is_not_intact() {
    let one = Some("n-1");
    let two = Some("n-2");
    for (what, places, is_found, read, intact, gaps) in [
        ("still listed", vec![one], true, &NODES[..1], 0, vec!["n-1"]),
        ("moved", vec![one, two], true, &NODES, 1, vec![]),
        (
            "listed elsewhere",
            vec![one, two],
            false,
            &NODES,
            0,
            vec!["n-2"],
        ),
        ("back", vec![one, two, one], false, &NODES, 0, vec!["n-2"]),
        ("gone", vec![one, None], true, &NODES[..1], 0, vec![]),
    ] {
        let script = Script {
            places,
            is_found,
            ..Script::default()
        };
        let (report, was_read) = in_time(check(script)).await;
        assert_eq!(was_read, read, "{what}: {report:?}");
        assert_eq!(
            (report.files, report.intact),
            (1, intact),
            "{what}: {report:?}"
        );
        let nodes: Vec<_> = report.gaps.iter().map(|gap| &*gap.node).collect();
        assert_eq!(nodes, gaps, "{what}: {report:?}");
        let missing = report
            .anomalies
            .iter()
            .any(|one| one.kind() == AnomalyKind::Missing);
        assert_eq!(missing, what == "gone", "{what}: {report:?}");
    }
}
