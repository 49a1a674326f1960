//! Tests of the audit trail where the answer of a node gets lost: what was ordered is there all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use archive_daemon::Clock;
use archive_decisions::store::RecordedUpload;
use archive_ledger::admin::Admin;
use archive_ledger::anomalies::{Anomalies, Filing, Look, LookQuality};
use archive_model::{
    AnomalyKind, CopyPlace, FileContent, FileName, Finder, Groups, ReplicaKind, Root,
};
use archive_proof::{CopyBytes, encode_ranges};
use proto_archive::wire::mend_request::Step;
use proto_archive::wire::node_server::{Node, NodeServer};
use proto_archive::wire::preservation_client::PreservationClient;
use proto_archive::wire::replace_request::{self, Open};
use proto_archive::wire::replica_server::{Replica, ReplicaServer};
use proto_archive::wire::set_volume_request::Order;
use proto_archive::wire::{
    AdoptFileRequest, AdoptRequest, AtticItem, AtticRef, AtticRequest, AtticResponse, AtticsRef,
    AuditRequest, CopyCondition, FileEntry, FindRequest, FindResponse, GroupRange, MendRequest,
    MendResponse, Mode, NodeRequest, NodeStatus, PutAsideRequest, ReadRequest, RepairRequest,
    ReplaceRequest, ReplicaStateRequest, ReplicaStateResponse, Segment, SetModeRequest,
    SetVolumeRequest, VerifyRequest, VerifyResponse, VolumeRequest, VolumeStatus, attic_item,
    files_response,
};
use tonic::codegen::BoxStream;
use tonic::service::Routes;
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming};
use tools_testing::in_time;

use crate::lab::{Lab, StartedRepository, replica, stored_copy};

/// The content of the file `a`: one group.
const BYTES: &[u8] = b"content";

/// The node of one replica, which has `a` and, in replica `one`, `b` without a sidecar. The copy of `a` in replica
/// `one` is damaged.
#[derive(Clone)]
struct FakeNode {
    replica: &'static str,
    /// Whether the node answers orders as it should.
    answers: Arc<AtomicBool>,
}

struct FakeMonitor {
    node: FakeNode,
    endpoint: String,
}

fn root() -> Root {
    archive_proof::testing::admission("a", BYTES).root
}

impl FakeNode {
    fn entry(&self, name: &str) -> FileEntry {
        let (condition, corrupt) = match (self.replica, name) {
            ("one", "a") => (
                CopyCondition::Damaged,
                vec![GroupRange { start: 0, end: 1 }],
            ),
            ("one", _) => (CopyCondition::Unexpected, vec![]),
            _ => (CopyCondition::Present, vec![]),
        };
        FileEntry {
            name: name.to_owned(),
            node: format!("{}-1", self.replica),
            volume: "v-1".to_owned(),
            size: BYTES.len() as u64,
            root: root().as_bytes().to_vec().into(),
            condition: condition.into(),
            corrupt,
            stored: "2026-01-01T00:00:01Z".parse().ok(),
            ..FileEntry::default()
        }
    }

    fn state(&self) -> NodeStatus {
        NodeStatus {
            node: format!("{}-1", self.replica),
            alive: true,
            volumes: vec![VolumeStatus {
                volume: "v-1".to_owned(),
                mode: Mode::ReadWrite.into(),
                ..VolumeStatus::default()
            }],
            ..NodeStatus::default()
        }
    }

    /// Returns the answer to an order, which nobody can read unless the node shall answer.
    fn ordered(&self) -> Response<NodeStatus> {
        let is_read = self.answers.load(Ordering::Relaxed);
        Response::new(if is_read {
            self.state()
        } else {
            NodeStatus::default()
        })
    }
}

#[tonic::async_trait]
impl Replica for FakeMonitor {
    async fn replica_state(
        &self,
        _request: Request<ReplicaStateRequest>,
    ) -> Result<Response<ReplicaStateResponse>, Status> {
        let node = NodeStatus {
            endpoint: self.endpoint.clone(),
            ..self.node.state()
        };
        Ok(Response::new(ReplicaStateResponse {
            replica: String::new(),
            nodes: vec![node],
        }))
    }

    async fn locate(
        &self,
        request: Request<FindRequest>,
    ) -> Result<Response<FindResponse>, Status> {
        Ok(Response::new(FindResponse {
            entries: vec![self.node.entry(&request.get_ref().name)],
            ..FindResponse::default()
        }))
    }
}

#[tonic::async_trait]
impl Node for FakeNode {
    async fn verify(
        &self,
        request: Request<VerifyRequest>,
    ) -> Result<Response<BoxStream<VerifyResponse>>, Status> {
        let read = VerifyResponse {
            bytes: BYTES.len() as u64,
            entry: Some(self.entry(&request.get_ref().name)),
            ..VerifyResponse::default()
        };
        Ok(Response::new(Box::pin(tokio_stream::once(Ok(read)))))
    }

    async fn read(
        &self,
        _request: Request<ReadRequest>,
    ) -> Result<Response<BoxStream<Segment>>, Status> {
        let size = BYTES.len() as u64;
        let copy = CopyBytes {
            data: &BYTES,
            outboard: None,
        };
        let mut encoded = Vec::new();
        let content = FileContent { root: root(), size };
        let range = 0..size;
        let ranges = std::slice::from_ref(&range);
        encode_ranges(copy, content, ranges, &mut encoded).unwrap();
        let segment = Segment {
            offset: 0,
            length: size,
            encoded: encoded.into(),
        };
        Ok(Response::new(Box::pin(tokio_stream::once(Ok(segment)))))
    }

    async fn mend(
        &self,
        request: Request<Streaming<MendRequest>>,
    ) -> Result<Response<BoxStream<MendResponse>>, Status> {
        let mut steps = request.into_inner();
        while let Some(message) = steps.message().await? {
            if let Some(Step::Close(_)) = message.step {
                break;
            }
        }
        Err(Status::unavailable("the answer gets lost"))
    }

    async fn adopt(&self, _request: Request<AdoptRequest>) -> Result<Response<FileEntry>, Status> {
        Ok(Response::new(FileEntry::default()))
    }

    async fn put_aside(
        &self,
        _request: Request<PutAsideRequest>,
    ) -> Result<Response<AtticItem>, Status> {
        Ok(Response::new(AtticItem::default()))
    }

    async fn attic(
        &self,
        _request: Request<AtticRequest>,
    ) -> Result<Response<BoxStream<AtticResponse>>, Status> {
        let item = AtticItem {
            node: format!("{}-1", self.replica),
            volume: "v-1".to_owned(),
            id: "x-1".to_owned(),
            name: "c".to_owned(),
            at: "2026-01-01T00:00:01Z".to_owned(),
            kind: attic_item::Kind::File.into(),
            ..AtticItem::default()
        };
        let page = AtticResponse {
            items: vec![item],
            end: Some(files_response::End::default()),
        };
        Ok(Response::new(Box::pin(tokio_stream::once(Ok(page)))))
    }

    async fn restore_item(
        &self,
        _request: Request<AtticRef>,
    ) -> Result<Response<FileEntry>, Status> {
        Ok(Response::new(FileEntry::default()))
    }

    async fn set_volume(
        &self,
        _request: Request<SetVolumeRequest>,
    ) -> Result<Response<NodeStatus>, Status> {
        Ok(self.ordered())
    }

    async fn set_mode(
        &self,
        _request: Request<SetModeRequest>,
    ) -> Result<Response<NodeStatus>, Status> {
        Ok(self.ordered())
    }
}

/// A repository over two replicas of one node each.
struct ActFixture {
    lab: Lab,
    started: StartedRepository,
    answers: Arc<AtomicBool>,
}

impl ActFixture {
    async fn start() -> Self {
        let lab = Lab::new();
        let copy = stored_copy("one-1", Some("v-1"));
        let size = BYTES.len() as u64;
        lab.store(&["a", "b"], size, *root().as_bytes(), "one", copy);
        damage(&lab);
        let answers = Arc::<AtomicBool>::default();
        let mut replicas = Vec::new();
        for id in ["one", "two"] {
            let node = FakeNode {
                replica: id,
                answers: Arc::clone(&answers),
            };
            let routes = Routes::new(NodeServer::new(node.clone()));
            let endpoint = lab.play(&format!("node/{id}-1"), routes).await;
            let monitor = FakeMonitor { node, endpoint };
            let routes = Routes::new(ReplicaServer::new(monitor));
            let address = lab.play(&format!("monitor/{id}"), routes).await;
            replicas.push(replica(id, ReplicaKind::Bitarchive, &address));
        }
        let settings = lab.settings(replicas);
        let started = StartedRepository::start(settings, Clock::system_clock()).await;
        Self {
            lab,
            started,
            answers,
        }
    }

    fn client(&self, grant: &str) -> PreservationClient<Channel> {
        PreservationClient::new(self.lab.channel(&self.started, grant))
    }

    async fn sets_mode(&self) -> Result<(), Status> {
        let mode = Mode::ReadOnly.into();
        let request = NodeRequest {
            node: "one-1".to_owned(),
            order: Some(SetModeRequest { mode }),
            ..NodeRequest::default()
        };
        let mut operator = self.client("operator/otto");
        operator.node(request).await.map(drop)
    }

    async fn orders_volume(&self) -> Result<(), Status> {
        let order = SetVolumeRequest {
            order: Order::Drain.into(),
            volume: "v-1".to_owned(),
            ..SetVolumeRequest::default()
        };
        let request = VolumeRequest {
            order: Some(order),
            node: "one-1".to_owned(),
            replica: "one".to_owned(),
        };
        let mut operator = self.client("operator/otto");
        operator.volume(request).await.map(drop)
    }

    /// Returns the lines of the audit trail that begin with these words.
    async fn trail(&self, words: &str) -> Vec<String> {
        let request = AuditRequest::default();
        let stream = self.client("officer/olga").audit(request).await;
        let mut stream = stream.unwrap().into_inner();
        let mut lines = Vec::new();
        while let Some(message) = stream.message().await.unwrap() {
            let said = message.lines.into_iter().map(|line| line.what);
            lines.extend(said.filter(|what| what.starts_with(words)));
        }
        lines
    }

    async fn end(self) {
        self.started.stop().await;
        self.lab.end().await;
    }
}

/// Gives `a` an admission, and files that its copy in replica `one` is damaged.
fn damage(lab: &Lab) {
    let admin = Admin::open(&lab.data()).unwrap();
    let name = FileName::new("a").unwrap();
    let mut row = admin.file(&name).unwrap().unwrap();
    row.admission = Some("signed".to_owned());
    row.record.upload = Some(RecordedUpload {
        id: "u-1".parse().unwrap(),
        claim: row.record.content.as_ref().unwrap().into(),
    });
    let mut changes = admin.begin_changes();
    admin.put_row(&mut changes, &row).unwrap();
    admin.commit_changes(changes).unwrap();
    let anomalies = Anomalies::open(&admin, Clock::system_clock()).unwrap();
    let filing = Filing {
        file: &name,
        replica: &"one".parse().unwrap(),
        who: "officer/olga",
    };
    let look = Look {
        found: vec![AnomalyKind::Corrupt(Groups::all(1))],
        quality: LookQuality::Listing,
        by: Finder::Check,
        is_second: false,
        size: BYTES.len() as u64,
        place: Some(CopyPlace {
            node: "one-1".parse().unwrap(),
            volume: "v-1".parse().unwrap(),
        }),
    };
    anomalies.file_look(filing, &look).unwrap();
}

/// Fails if an act is recorded only once its node has answered: a node whose answer gets lost may have carried it out.
#[tokio::test(flavor = "multi_thread")]
async fn trail_has_acts_whose_answer_is_lost() {
    let fixture = ActFixture::start().await;
    in_time(fixture.sets_mode()).await.unwrap_err();
    in_time(fixture.orders_volume()).await.unwrap_err();
    let mut officer = fixture.client("officer/olga");
    let adopting = AdoptFileRequest {
        name: "b".to_owned(),
        replica: "one".to_owned(),
    };
    in_time(officer.adopt(adopting)).await.unwrap_err();
    let restoring = AtticsRef {
        replica: "one".to_owned(),
        node: "one-1".to_owned(),
        volume: "v-1".to_owned(),
        id: "x-1".to_owned(),
        reason: "a test".to_owned(),
        ..AtticsRef::default()
    };
    in_time(officer.restore(restoring)).await.unwrap_err();
    let open = Open {
        name: "a".to_owned(),
        replica: "one".to_owned(),
        checksum: root().as_bytes().to_vec().into(),
        reason: "a test".to_owned(),
    };
    let steps = [
        replace_request::Step::Open(open),
        replace_request::Step::Data(BYTES.into()),
    ];
    let steps = steps.map(|step| ReplaceRequest { step: Some(step) });
    let replacing = officer.replace(tokio_stream::iter(steps));
    let replaced = in_time(replacing).await.unwrap_err();
    let repairing = RepairRequest {
        names: vec!["a".to_owned()],
        ..RepairRequest::default()
    };
    let steps = in_time(officer.repair(repairing)).await;
    let mut steps = steps.unwrap().into_inner();
    let mut told = Vec::new();
    while let Some(step) = in_time(steps.message()).await.unwrap() {
        told.push(step.what);
    }
    drop((steps, officer));
    for said in [
        "node one-1 of replica one: to be read-only",
        "volume v-1  on node one-1 of replica one: to be set to drain",
        "the file that one has on volume v-1 to be adopted",
        "x-1 to be restored from the attic of volume v-1 of node one-1",
        "the copy in one to be put into the attic of volume v-1 of node one-1 and replaced: a test",
        "to be repaired on volume v-1 of node one-1: groups 0 of one: ",
    ] {
        let lines = fixture.trail(said).await;
        assert_eq!(lines.len(), 1, "{said}: {lines:?} {replaced} {told:?}");
    }
    fixture.end().await;
}

/// Fails if the trail does not say that an order was carried out, or says so before.
#[tokio::test(flavor = "multi_thread")]
async fn trail_says_what_was_ordered_and_done() {
    let fixture = ActFixture::start().await;
    fixture.answers.store(true, Ordering::Relaxed);
    in_time(fixture.sets_mode()).await.unwrap();
    in_time(fixture.orders_volume()).await.unwrap();
    for (of, word) in [
        ("node one-1 of replica one", "read-only"),
        ("volume v-1  on node one-1 of replica one", "set to drain"),
    ] {
        let expected = [format!("{of}: to be {word}"), format!("{of}: {word}")];
        assert_eq!(fixture.trail(&format!("{of}:")).await, expected);
    }
    fixture.end().await;
}
