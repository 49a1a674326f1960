//! An environment with an authority and a signing key, a checksum replica in it, and helpers for calls.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use archive_bitarchive::checksum::{
    ChecksumReplicaSettings, ChecksumTable, Settings, serve_checksum_replica,
};
use archive_daemon::StartError;
use archive_daemon::{ByteSize, Chance, Clock, Daemon, DaemonSettings, Period};
use archive_model::Root;
use archive_proof::testing::trust_in;
use archive_proof::{Admission, SigningKey};
use archive_rpc::testing::TestAuthority;
use archive_rpc::{ExpectedIdentity, Grant, Role, RpcLimits, RpcSettings, connect_lazy};
use proto_archive::wire::node_client::NodeClient;
use proto_archive::wire::replica_client::ReplicaClient;
use proto_archive::wire::upload_request::{Close, Forget, Open, Start, Step};
use proto_archive::wire::upload_response::{Ready, Step as Answer};
use proto_archive::wire::{FileEntry, FilesRequest, FilesResponse, UploadRequest, UploadResponse};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};
pub(crate) use tools_testing::PATIENCE;

/// The time that a sender may be silent.
pub(crate) const IDLE: Period = Period::from_secs(2);

/// The key whose admissions are believed.
pub(crate) const TRUSTED: [u8; 32] = [1; 32];

pub(crate) struct TestReplica {
    authority: TestAuthority,
    files: TempDir,
    uploads: AtomicU64,
}

/// A replica that runs, with clients for both of its services.
pub(crate) struct RunningReplica {
    daemon: Daemon,
    pub(crate) node: NodeClient<Channel>,
    pub(crate) replica: ReplicaClient<Channel>,
}

/// An open upload, for which the replica is ready.
pub(crate) struct OpenUpload {
    pub(crate) steps: mpsc::Sender<UploadRequest>,
    pub(crate) answers: Streaming<UploadResponse>,
}

pub(crate) fn root(bytes: &[u8]) -> Root {
    Root::from_bytes(*blake3::hash(bytes).as_bytes())
}

/// Returns the admission that the repository would sign for these bytes.
pub(crate) fn admission(name: &str, upload: &str, bytes: &[u8]) -> Admission {
    Admission {
        upload: upload.parse().expect("upload"),
        ..archive_proof::testing::admission(name, bytes)
    }
}

pub(crate) fn signed(admission: &Admission, seed: [u8; 32]) -> String {
    let envelope = admission
        .sign(&SigningKey::from_seed(seed))
        .expect("signed");
    envelope.as_str().to_owned()
}

fn write(path: &std::path::Path, bytes: &[u8]) {
    archive_durable::replace_file(path, bytes).expect("written");
}

impl TestReplica {
    /// Makes an empty table as an operator would make it.
    pub(crate) fn new() -> Self {
        let test = Self {
            authority: TestAuthority::new(),
            files: TempDir::new().expect("directory"),
            uploads: AtomicU64::new(0),
        };
        test.init();
        let trust = trust_in(&SigningKey::from_seed(TRUSTED));
        let trust = trust.to_json().expect("trust file");
        write(&test.path("trust.json"), trust.as_bytes());
        test
    }

    pub(crate) fn init(&self) {
        let node = "three-1".parse();
        let replica = "three".parse();
        ChecksumTable::init(&self.data(), &node.expect("id"), &replica.expect("id"))
            .expect("a record");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// Returns an upload id that was not used before.
    pub(crate) fn upload(&self) -> String {
        format!("u-{}", self.uploads.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn settings(&self, grants: &[&str]) -> Settings {
        let pem = self.authority.pem(grants);
        write(&self.path("own.pem"), pem.certificate.as_bytes());
        let key = pem.key.as_bytes();
        archive_durable::replace_secret(&self.path("own.key"), key).expect("written");
        write(&self.path("authority.pem"), pem.authorities.as_bytes());
        Settings {
            daemon: DaemonSettings::default(),
            rpc: RpcSettings::new(
                "127.0.0.1:0",
                self.path("own.pem"),
                self.path("own.key"),
                self.path("authority.pem"),
            ),
            checksum_replica: ChecksumReplicaSettings {
                node: "three-1".parse().expect("id"),
                replica: "three".parse().expect("id"),
                data: self.data(),
                trust: self.path("trust.json"),
                endpoint: None,
                idle: IDLE,
                reserve: ByteSize::from_bytes(1_000_000),
                removals_per_hour: 2,
            },
        }
    }

    pub(crate) async fn try_start(&self, settings: Settings) -> Result<RunningReplica, StartError> {
        let daemon = Daemon::new(Clock::system_clock(), Chance::system_chance());
        let address = serve_checksum_replica(settings, daemon.clone())
            .await?
            .to_string();
        let own = self.authority.credentials(&["repository/kb", "node/n"]);
        let channel = |role, name| {
            let expected = ExpectedIdentity::named_grant(&Grant::new(role, name).expect("grant"));
            connect_lazy(&address, &own, &expected, &RpcLimits::default()).expect("channel")
        };
        Ok(RunningReplica {
            daemon,
            node: NodeClient::new(channel(Role::Node, "three-1")),
            replica: ReplicaClient::new(channel(Role::Monitor, "three")),
        })
    }

    pub(crate) async fn start(&self) -> RunningReplica {
        let settings = self.settings(&["monitor/three", "node/three-1"]);
        self.try_start(settings).await.expect("it starts")
    }

    /// Stores a file whole, as the repository would.
    pub(crate) async fn store(
        &self,
        running: &RunningReplica,
        name: &str,
        bytes: &[u8],
    ) -> Result<FileEntry, Status> {
        let upload = self.upload();
        let envelope = signed(&admission(name, &upload, bytes), TRUSTED);
        match running.open(&upload, name, bytes.len() as u64).await? {
            Err(entry) => Ok(entry),
            Ok(sending) => sending.send(bytes, envelope).await,
        }
    }
}

impl RunningReplica {
    /// Stops the replica; every task must have ended well.
    pub(crate) async fn stop(self) {
        drop((self.node, self.replica));
        self.daemon.tasks.stop_all();
        self.daemon
            .tasks
            .join_tasks(PATIENCE)
            .await
            .expect("a good end");
    }

    /// Opens an upload. Returns it when it is ready, or the entry of a file that is there already.
    pub(crate) async fn open(
        &self,
        upload: &str,
        name: &str,
        size: u64,
    ) -> Result<Result<OpenUpload, FileEntry>, Status> {
        let opened = self.open_at(upload, name, size, Vec::new()).await?;
        Ok(match opened {
            Err(entry) => Err(entry),
            Ok((sending, ready)) => {
                assert_eq!(ready.offset, 0, "there is nothing to resume from");
                say(&sending.steps, Step::Start(Start { offset: 0 })).await;
                Ok(sending)
            }
        })
    }

    /// Opens an upload for a sender that can resume at one of `points`. Returns the offer, or the entry of the file.
    pub(crate) async fn open_at(
        &self,
        upload: &str,
        name: &str,
        size: u64,
        points: Vec<u64>,
    ) -> Result<Result<(OpenUpload, Ready), FileEntry>, Status> {
        let (steps, requests) = mpsc::channel(4);
        let open = Open {
            upload: upload.to_owned(),
            name: name.to_owned(),
            size,
            points,
        };
        say(&steps, Step::Open(open)).await;
        let mut node = self.node.clone();
        let answers = node.upload(ReceiverStream::new(requests)).await?;
        let mut sending = OpenUpload {
            steps,
            answers: answers.into_inner(),
        };
        match sending.next().await? {
            Answer::Stored(entry) => Ok(Err(entry)),
            Answer::Ready(ready) => Ok(Ok((sending, ready))),
        }
    }

    pub(crate) async fn list(&self, after: &str) -> Vec<FilesResponse> {
        let request = FilesRequest {
            after: after.to_owned(),
            only_findings: false,
            on_disk: false,
        };
        let mut replica = self.replica.clone();
        let mut stream = replica
            .listing(request)
            .await
            .expect("listing")
            .into_inner();
        let mut messages = Vec::new();
        while let Some(message) = stream.message().await.expect("a message") {
            messages.push(message);
        }
        messages
    }

    /// Returns the names of a listing, which must say that it is whole.
    pub(crate) async fn names(&self) -> Vec<String> {
        let messages = self.list("").await;
        let end = messages
            .last()
            .and_then(|last| last.end.clone())
            .expect("an end");
        let entries = messages.into_iter().flat_map(|message| message.entries);
        let names: Vec<String> = entries.map(|entry| entry.name).collect();
        assert_eq!((end.count, end.gaps.len()), (names.len() as u64, 0));
        names
    }
}

/// Sends a step; if the stream has ended, its answer says why.
pub(crate) async fn say(steps: &mpsc::Sender<UploadRequest>, step: Step) {
    _ = steps.send(UploadRequest { step: Some(step) }).await;
}

impl OpenUpload {
    async fn next(&mut self) -> Result<Answer, Status> {
        let message = timeout(PATIENCE, self.answers.message()).await;
        let message = message.expect("an answer in time")?;
        Ok(message.and_then(|one| one.step).expect("an answer"))
    }

    pub(crate) async fn send(
        mut self,
        bytes: &[u8],
        envelope: String,
    ) -> Result<FileEntry, Status> {
        for chunk in bytes.chunks(100_000) {
            say(&self.steps, Step::Data(chunk.to_vec().into())).await;
        }
        say(
            &self.steps,
            Step::Close(Close {
                admission: envelope,
            }),
        )
        .await;
        match self.next().await? {
            Answer::Stored(entry) => Ok(entry),
            Answer::Ready(_) => Err(Status::internal("ready, to `close`")),
        }
    }

    /// Says that the upload is not resumed, and waits until the replica has forgotten it.
    pub(crate) async fn forget(mut self) {
        say(&self.steps, Step::Forget(Forget {})).await;
        let message = timeout(PATIENCE, self.answers.message()).await;
        let message = message.expect("an end in time").expect("no refusal");
        assert_eq!(message, None);
    }

    /// Returns the reason why the stream has ended.
    pub(crate) async fn refusal(mut self) -> Status {
        self.next().await.expect_err("a refusal")
    }
}
