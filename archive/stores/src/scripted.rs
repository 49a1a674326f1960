//! Replicas of one node each, for tests: real calls over TLS, answered by a script.
//!
//! The node of replica `one` is `one-1`. It has what its replica lists.

#![expect(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "helpers of tests"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Clock, Tasks};
use archive_ledger::standing::StandingView;
use archive_model::{Groups, ReplicaId, ReplicaKind, Root};
use archive_replicas::{Dialer, ReplicaSettings, Replicas};
use archive_rpc::testing::TestAuthority;
use archive_rpc::{
    CallErrorKind, Credentials, RpcLimits, ServeError, Server, Services, bind_address,
};
use futures_util::{StreamExt, stream};
use parking_lot::{Mutex, MutexGuard};
use proto_archive::wire::node_server::{Node, NodeServer};
use proto_archive::wire::replica_server::{Replica, ReplicaServer};
use proto_archive::wire::upload_request::Step;
use proto_archive::wire::upload_response::{Ready, Step as Answer};
use proto_archive::{convert as fields, wire};
use tokio::sync::mpsc;
use tonic::codegen::BoxStream;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};

use crate::assemble::{Assembler, DonorLoad};
use crate::calls::ReplicaCalls;
use crate::mail::{CoordinatorMessage, Mail};
use crate::transfer::{ResumePoints, Transfers};

/// The answers of the replicas, and the orders they were given.
#[derive(Default)]
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct Script {
    /// The answer of each replica that is asked where a file is; the same for every file.
    pub found: BTreeMap<String, wire::FindResponse>,
    /// Done once, before the next answer that needs no look at the disks.
    pub at_locate: Option<Box<dyn FnOnce() + Send>>,
    /// The content of the attic of every node.
    pub attic: Vec<wire::AtticItem>,
    /// The orders to nodes to put aside or destroy.
    pub acts: Vec<String>,
    /// The replicas whose copies were read again, in this order.
    pub read: Vec<String>,
    /// Whether a monitor that is asked for a place never answers.
    pub places_nothing: bool,
    /// The conduct of every node towards uploads; `None` if it does not know them.
    pub uploads: Option<UploadConduct>,
    /// The bytes of the uploads that nodes have committed, in this order.
    pub committed: Vec<Vec<u8>>,
    /// The number of times that monitors were asked for the states of their nodes.
    pub states: usize,
    /// The addresses that monitors report instead of those of their nodes; an empty one: the node is silent.
    pub endpoints: BTreeMap<String, String>,
}

/// The conduct of a node towards an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadConduct {
    /// The node takes the bytes, and commits them once their admission comes.
    Commits,
    /// The node has the file already.
    HasFile,
    /// The node refuses the upload.
    RefusesUpload,
    /// The node refuses the first bytes.
    RefusesBytes,
    /// The node reads no byte, and says nothing.
    ReadsNothing,
    /// The node takes the bytes, and refuses their admission.
    RefusesAdmission,
}

/// The replicas `one` and `two`.
#[expect(missing_debug_implementations, reason = "its script holds a function")]
pub struct ScriptedReplicas {
    /// The calls to the replicas.
    pub replicas: Arc<Replicas>,
    /// The settings of the replicas.
    pub specs: Vec<ReplicaSettings>,
    /// The tasks that serve the monitors and the nodes.
    pub tasks: Tasks,
    script: Arc<Mutex<Script>>,
}

impl ScriptedReplicas {
    /// Starts the monitor and the node of each replica on free ports.
    pub async fn start() -> Self {
        Self::start_at(Clock::system_clock()).await
    }

    /// Starts them; the calls to the replicas have this clock.
    pub async fn start_at(clock: Clock) -> Self {
        let authority = TestAuthority::new();
        let tasks = Tasks::new();
        let script = Arc::<Mutex<Script>>::default();
        let mut specs = Vec::new();
        for replica in ["one", "two"] {
            let mut part = ScriptedPart {
                replica,
                endpoint: String::new(),
                script: Arc::clone(&script),
            };
            let routes = Routes::new(NodeServer::new(part.clone()));
            let grant = format!("node/{replica}-1");
            part.endpoint = listen(&tasks, authority.credentials(&[&grant]), routes).await;
            let routes = Routes::new(ReplicaServer::new(part));
            let grant = format!("monitor/{replica}");
            specs.push(ReplicaSettings {
                id: replica.parse().unwrap(),
                kind: ReplicaKind::Bitarchive,
                required: true,
                monitor: listen(&tasks, authority.credentials(&[&grant]), routes).await,
                site: None,
                media: None,
            });
        }
        let own = authority.credentials(&["repository/kb"]);
        let dialer = Dialer::new(own, RpcLimits::default());
        let replicas = Replicas::new(&specs, dialer, StandingView::default(), clock).unwrap();
        for ReplicaSettings { id, .. } in &specs {
            replicas.set_members(id, vec![format!("{id}-1").parse().unwrap()]);
        }
        Self {
            replicas: Arc::new(replicas),
            specs,
            tasks,
            script,
        }
    }

    /// Returns the script, to be changed.
    pub fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock()
    }

    /// Sets which copies a replica lists, and that all of its volumes answer.
    pub fn lists(&self, replica: &str, entries: Vec<wire::FileEntry>) {
        let found = wire::FindResponse {
            entries,
            ..wire::FindResponse::default()
        };
        self.script().found.insert(replica.to_owned(), found);
    }

    /// Returns the means of stores and probes, and the messages to the coordinator.
    pub fn transfers(&self) -> (Transfers, mpsc::Receiver<CoordinatorMessage>) {
        let (mail, messages) = Mail::new();
        let transfers = Transfers {
            calls: self.calls(),
            mail,
            tasks: self.tasks.clone(),
            md5: false,
            resume_points: ResumePoints::default(),
            stores: crate::metrics::Stores::new(&archive_daemon::Metrics::new()).unwrap(),
        };
        (transfers, messages)
    }

    /// Returns a reader of the files of the replicas.
    pub fn assembler(&self) -> Assembler {
        Assembler {
            calls: self.calls(),
            load: DonorLoad::default(),
        }
    }

    fn calls(&self) -> ReplicaCalls {
        ReplicaCalls {
            replicas: Arc::clone(&self.replicas),
            clock: Clock::system_clock(),
            stall: Duration::from_mins(1),
        }
    }
}

/// Parses the id of a replica.
pub fn id(replica: &str) -> ReplicaId {
    replica.parse().unwrap()
}

/// Returns a good copy of the content that `restore::testing` admits, on a volume of the only node.
pub fn good(replica: &str, volume: &str, content: u8) -> wire::FileEntry {
    wire::FileEntry {
        node: format!("{replica}-1"),
        volume: volume.to_owned(),
        size: u64::from(content),
        root: fields::root_bytes(&Root::from_bytes([content; 32])),
        condition: wire::CopyCondition::Present.into(),
        stored: "2026-01-01T00:00:01Z".parse().ok(),
        ..wire::FileEntry::default()
    }
}

/// Returns a copy like that of [`good`], damaged in its first group.
pub fn damaged(replica: &str, volume: &str, content: u8) -> wire::FileEntry {
    wire::FileEntry {
        condition: wire::CopyCondition::Damaged.into(),
        corrupt: fields::group_ranges(&Groups::all(1)),
        ..good(replica, volume, content)
    }
}

/// Returns a whole file of seven bytes in an attic.
pub fn attic_file(volume: &str, id: &str, name: &str) -> wire::AtticItem {
    wire::AtticItem {
        volume: volume.to_owned(),
        id: id.to_owned(),
        name: name.to_owned(),
        kind: wire::attic_item::Kind::File.into(),
        bytes: 7,
        ..wire::AtticItem::default()
    }
}

/// Returns the gap for a volume that could not be asked.
pub fn silent(replica: &str, volume: &str) -> wire::Gap {
    wire::Gap {
        replica: replica.to_owned(),
        node: format!("{replica}-1"),
        volume: volume.to_owned(),
        reason: "offline".to_owned(),
    }
}

async fn listen(tasks: &Tasks, credentials: Credentials, routes: Routes) -> String {
    let (listener, address) = bind_address("127.0.0.1:0").await.unwrap();
    let services = Services {
        routes,
        rules: proto_archive::rules::archive_rules(),
        descriptors: vec![proto_archive::DESCRIPTORS],
    };
    let stop = tasks.stop_token();
    tasks.spawn("rpc", async move {
        let server = Server::new(services, credentials);
        server
            .serve_connections(listener, stop.cancelled_owned())
            .await?;
        Ok::<(), ServeError>(())
    });
    address.to_string()
}

/// The monitor and the node of a replica.
#[derive(Clone)]
struct ScriptedPart {
    replica: &'static str,
    /// The endpoint of the node.
    endpoint: String,
    script: Arc<Mutex<Script>>,
}

impl ScriptedPart {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock()
    }

    /// Returns `item` as one in the attic of this replica's node.
    fn item(&self, item: wire::AtticItem) -> wire::AtticItem {
        wire::AtticItem {
            node: format!("{}-1", self.replica),
            ..item
        }
    }

    /// Returns the answer of a node that has the file.
    fn stored(&self, name: String, size: u64) -> wire::UploadResponse {
        let copy = good(self.replica, "v-1", 7);
        let step = Some(Answer::Stored(wire::FileEntry { name, size, ..copy }));
        wire::UploadResponse { step }
    }

    /// Reads an upload to its end, and returns the answer to its admission.
    async fn receive(
        self,
        conduct: UploadConduct,
        mut steps: Streaming<wire::UploadRequest>,
    ) -> Result<wire::UploadResponse, Status> {
        let mut name = String::new();
        let mut bytes = Vec::new();
        if conduct == UploadConduct::ReadsNothing {
            std::future::pending::<()>().await;
        }
        while let Some(message) = steps.message().await? {
            match message.step {
                Some(Step::Open(open)) if conduct == UploadConduct::HasFile => {
                    return Ok(self.stored(open.name, 7));
                }
                Some(Step::Open(open)) => name = open.name,
                Some(Step::Data(_)) if conduct == UploadConduct::RefusesBytes => {
                    return Err(CallErrorKind::Mismatch.to_status("it takes no bytes"));
                }
                Some(Step::Data(part)) => bytes.extend_from_slice(&part),
                Some(Step::Close(_)) if conduct == UploadConduct::RefusesAdmission => {
                    return Err(
                        CallErrorKind::Mismatch.to_status("the admission is of other bytes")
                    );
                }
                Some(Step::Close(_)) => {
                    let size = bytes.len() as u64;
                    self.script().committed.push(bytes);
                    return Ok(self.stored(name, size));
                }
                Some(Step::Start(_) | Step::Forget(_)) | None => {}
            }
        }
        Err(Status::cancelled("the upload ended"))
    }
}

#[tonic::async_trait]
impl Replica for ScriptedPart {
    async fn locate(
        &self,
        request: Request<wire::FindRequest>,
    ) -> Result<Response<wire::FindResponse>, Status> {
        let mut script = self.script();
        if !request.get_ref().on_disk
            && let Some(act) = script.at_locate.take()
        {
            act();
        }
        let mut found = script.found.get(self.replica).cloned().unwrap_or_default();
        for entry in &mut found.entries {
            entry.name.clone_from(&request.get_ref().name);
        }
        Ok(Response::new(found))
    }

    async fn place(
        &self,
        _request: Request<wire::PlaceRequest>,
    ) -> Result<Response<wire::PlaceResponse>, Status> {
        if self.script().places_nothing {
            std::future::pending::<()>().await;
        }
        Ok(Response::new(wire::PlaceResponse {
            node: format!("{}-1", self.replica),
            endpoint: self.endpoint.clone(),
        }))
    }

    async fn replica_state(
        &self,
        _request: Request<wire::ReplicaStateRequest>,
    ) -> Result<Response<wire::ReplicaStateResponse>, Status> {
        let mut script = self.script();
        script.states += 1;
        let endpoint = script.endpoints.get(self.replica);
        let endpoint = endpoint.unwrap_or(&self.endpoint).clone();
        let node = wire::NodeStatus {
            node: format!("{}-1", self.replica),
            alive: !endpoint.is_empty(),
            endpoint,
            ..wire::NodeStatus::default()
        };
        Ok(Response::new(wire::ReplicaStateResponse {
            replica: self.replica.to_owned(),
            nodes: vec![node],
        }))
    }
}

#[tonic::async_trait]
impl Node for ScriptedPart {
    async fn upload(
        &self,
        request: Request<Streaming<wire::UploadRequest>>,
    ) -> Result<Response<BoxStream<wire::UploadResponse>>, Status> {
        let conduct = self.script().uploads;
        let conduct = conduct.ok_or_else(|| Status::unimplemented("no uploads"))?;
        if conduct == UploadConduct::RefusesUpload {
            return Err(CallErrorKind::Mismatch.to_status("it takes no upload"));
        }
        let ready = Ready {
            offset: 0,
            root: fields::root_bytes(&Root::from_bytes([0; 32])),
        };
        let step = Some(Answer::Ready(ready));
        let ready = Ok(wire::UploadResponse { step });
        let first = Some(ready).filter(|_| conduct != UploadConduct::HasFile);
        let receiving = self.clone().receive(conduct, request.into_inner());
        let answers = stream::iter(first).chain(stream::once(receiving));
        Ok(Response::new(Box::pin(answers)))
    }

    async fn verify(
        &self,
        request: Request<wire::VerifyRequest>,
    ) -> Result<Response<BoxStream<wire::VerifyResponse>>, Status> {
        let mut script = self.script();
        script.read.push(self.replica.to_owned());
        let found = script.found.get(self.replica).into_iter();
        let mut entries = found.flat_map(|found| &found.entries);
        let entry = entries.find(|entry| entry.volume == request.get_ref().volume);
        let entry = entry.ok_or_else(|| Status::not_found("no copy"))?.clone();
        let done = wire::VerifyResponse {
            entry: Some(wire::FileEntry {
                name: request.get_ref().name.clone(),
                ..entry
            }),
            ..wire::VerifyResponse::default()
        };
        Ok(Response::new(Box::pin(tokio_stream::once(Ok(done)))))
    }

    async fn put_aside(
        &self,
        request: Request<wire::PutAsideRequest>,
    ) -> Result<Response<wire::AtticItem>, Status> {
        let wire::PutAsideRequest { name, volume, .. } = request.into_inner();
        let mut script = self.script();
        if let Some(found) = script.found.get_mut(self.replica) {
            found.entries.retain(|entry| entry.volume != volume);
        }
        script
            .acts
            .push(format!("{}: put aside from {volume}", self.replica));
        let item = attic_file(&volume, "x-1", &name);
        Ok(Response::new(self.item(item)))
    }

    async fn attic(
        &self,
        _request: Request<wire::AtticRequest>,
    ) -> Result<Response<BoxStream<wire::AtticResponse>>, Status> {
        let all = wire::AtticResponse {
            items: self
                .script()
                .attic
                .iter()
                .map(|item| self.item(item.clone()))
                .collect(),
            end: Some(wire::files_response::End::default()),
        };
        Ok(Response::new(Box::pin(tokio_stream::once(Ok(all)))))
    }

    async fn purge(
        &self,
        request: Request<wire::AtticRef>,
    ) -> Result<Response<wire::PurgeResponse>, Status> {
        let id = request.into_inner().id;
        self.script()
            .acts
            .push(format!("{}: purge {id}", self.replica));
        Ok(Response::new(wire::PurgeResponse { bytes: 7 }))
    }
}
