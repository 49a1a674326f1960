//! An environment with its authority, a monitor in it, and hands for calls.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use archive_daemon::{Chance, Clock, Daemon, DaemonSettings, Period, StartError};
use archive_model::ReplicaId;
use archive_monitor::{MonitorSettings, Settings, serve_monitor};
use archive_rpc::testing::TestAuthority;
use archive_rpc::{
    Credentials, ExpectedIdentity, Grant, Role, RpcLimits, RpcSettings, connect_lazy,
};
use proto_archive::wire::replica_client::ReplicaClient;
use proto_archive::wire::{
    FileEntry, FilesRequest, FilesResponse, FindRequest, FindResponse, Gap, HeartbeatRequest, Mode,
    NodeStatus, PlaceRequest, PlaceResponse, ReplicaStateRequest, VolumeStatus,
};
use tempfile::TempDir;
use tonic::transport::Channel;
use tonic::{Status, Streaming};
use tools_testing::{PATIENCE, in_time};

/// The limits of a monitor that soon notices what stalls. Long enough for honest nodes on a busy machine.
const SOON: Period = Period::from_secs(2);

pub(crate) struct MonitorEnvironment {
    authority: TestAuthority,
    files: TempDir,
}

pub(crate) struct Monitor {
    pub(crate) address: SocketAddr,
    pub(crate) daemon: Daemon,
}

/// A caller with a certificate, connected to a monitor.
pub(crate) struct Caller(ReplicaClient<Channel>);

/// A listing as it was received.
#[derive(Debug, Default)]
pub(crate) struct ReceivedListing {
    pub(crate) entries: Vec<FileEntry>,
    pub(crate) messages: Vec<usize>,
    pub(crate) count: u64,
    pub(crate) gaps: Vec<Gap>,
}

impl MonitorEnvironment {
    pub(crate) fn new() -> Self {
        Self {
            authority: TestAuthority::new(),
            files: TempDir::new().expect("directory"),
        }
    }

    pub(crate) fn credentials(&self, grant: &str) -> Credentials {
        self.authority.credentials(&[grant])
    }

    /// Settings of the monitor of `one`, with the certificate of `grant`.
    pub(crate) fn settings(&self, grant: &str) -> Settings {
        let pem = self.authority.pem(&[grant]);
        let write_pem = |name: &str, text: &str| -> PathBuf {
            let path = self
                .files
                .path()
                .join(format!("{}-{name}", grant.replace('/', "-")));
            write(&path, text.as_bytes());
            // As a private key is.
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("closed");
            path
        };
        Settings {
            daemon: DaemonSettings::default(),
            rpc: RpcSettings::new(
                "127.0.0.1:0",
                write_pem("certificate.pem", &pem.certificate),
                write_pem("key.pem", &pem.key),
                write_pem("authorities.pem", &pem.authorities),
            ),
            monitor: MonitorSettings::new(ReplicaId::new("one").expect("id")),
        }
    }

    pub(crate) async fn try_start(settings: Settings, clock: Clock) -> Result<Monitor, StartError> {
        let daemon = Daemon::new(clock, Chance::system_chance());
        let address = serve_monitor(settings, daemon.clone()).await?;
        Ok(Monitor { address, daemon })
    }

    pub(crate) async fn monitor(&self) -> Monitor {
        Self::try_start(self.settings("monitor/one"), Clock::system_clock())
            .await
            .expect("a monitor")
    }

    pub(crate) async fn impatient_monitor(&self) -> Monitor {
        let mut settings = self.settings("monitor/one");
        (settings.monitor.find, settings.monitor.idle) = (SOON, SOON);
        Self::try_start(settings, Clock::system_clock())
            .await
            .expect("a monitor")
    }

    pub(crate) fn caller(&self, grant: &str, monitor: &Monitor) -> Caller {
        let expected =
            ExpectedIdentity::named_grant(&Grant::new(Role::Monitor, "one").expect("grant"));
        let address = monitor.address.to_string();
        let channel = connect_lazy(
            &address,
            &self.credentials(grant),
            &expected,
            &RpcLimits::default(),
        );
        Caller(ReplicaClient::new(channel.expect("channel")))
    }

    /// Returns the repository as a caller, after it has said that it knows no node.
    pub(crate) async fn repository(&self, monitor: &Monitor) -> Caller {
        let mut caller = self.caller("repository/main", monitor);
        caller.state(&[]).await;
        caller
    }

    /// Sends a heartbeat of a node at `endpoint` with `usable` bytes of room.
    pub(crate) async fn beat(&self, monitor: &Monitor, node: &str, endpoint: &str, usable: u64) {
        let mut caller = self.caller(&format!("node/{node}"), monitor);
        caller
            .heartbeat(status(node, endpoint, usable))
            .await
            .expect("believed");
    }
}

impl Monitor {
    /// Asks it to stop and waits until it has.
    pub(crate) async fn stop(self) {
        self.daemon.tasks.stop_all();
        self.daemon
            .tasks
            .join_tasks(PATIENCE)
            .await
            .expect("a clean stop");
    }
}

impl Caller {
    pub(crate) async fn heartbeat(&mut self, status: NodeStatus) -> Result<u64, Status> {
        let answer = self.0.heartbeat(HeartbeatRequest {
            status: Some(status),
        });
        Ok(in_time(answer).await?.into_inner().interval_ms)
    }

    pub(crate) async fn empty_heartbeat(&mut self) -> Result<u64, Status> {
        Ok(in_time(self.0.heartbeat(HeartbeatRequest { status: None }))
            .await?
            .into_inner()
            .interval_ms)
    }

    pub(crate) async fn place(
        &mut self,
        name: &str,
        upload: &str,
        size: u64,
        avoid: &[&str],
    ) -> Result<PlaceResponse, Status> {
        let avoid = avoid.iter().map(|node| (*node).to_owned()).collect();
        let request = PlaceRequest {
            name: name.to_owned(),
            upload: upload.to_owned(),
            size,
            avoid,
        };
        in_time(self.0.place(request))
            .await
            .map(tonic::Response::into_inner)
    }

    pub(crate) async fn locate(&mut self, name: &str) -> Result<FindResponse, Status> {
        in_time(self.0.locate(FindRequest {
            name: name.to_owned(),
            ..FindRequest::default()
        }))
        .await
        .map(tonic::Response::into_inner)
    }

    pub(crate) async fn open_listing(
        &mut self,
        after: &str,
    ) -> Result<Streaming<FilesResponse>, Status> {
        self.open(after, false).await
    }

    /// Begins a listing of findings.
    pub(crate) async fn open_findings(&mut self) -> Result<Streaming<FilesResponse>, Status> {
        self.open("", true).await
    }

    async fn open(
        &mut self,
        after: &str,
        only_findings: bool,
    ) -> Result<Streaming<FilesResponse>, Status> {
        in_time(self.0.listing(FilesRequest {
            after: after.to_owned(),
            only_findings,
            ..FilesRequest::default()
        }))
        .await
        .map(tonic::Response::into_inner)
    }

    /// Reads a listing to its end.
    pub(crate) async fn listing(&mut self, after: &str) -> ReceivedListing {
        let mut messages = self.open_listing(after).await.expect("a listing");
        let mut listed = ReceivedListing::default();
        loop {
            let message = in_time(messages.message())
                .await
                .expect("no error")
                .expect("an end");
            listed.messages.push(prost::Message::encoded_len(&message));
            listed.entries.extend(message.entries);
            if let Some(end) = message.end {
                (listed.count, listed.gaps) = (end.count, end.gaps);
                assert_eq!(
                    in_time(messages.message()).await.expect("no error"),
                    None,
                    "nothing after the end"
                );
                return listed;
            }
        }
    }

    pub(crate) async fn state(&mut self, known: &[&str]) -> Vec<NodeStatus> {
        let known = known.iter().map(|node| (*node).to_owned()).collect();
        let answer = in_time(self.0.replica_state(ReplicaStateRequest {
            known,
            retired: Vec::new(),
            volumes: Vec::new(),
        }))
        .await
        .expect("a state")
        .into_inner();
        assert_eq!(answer.replica, "one");
        answer.nodes
    }
}

impl ReceivedListing {
    /// Returns the entries as `name@node`, in the order in which they came.
    pub(crate) fn names(&self) -> Vec<String> {
        self.entries
            .iter()
            .map(|entry| format!("{}@{}", entry.name, entry.node))
            .collect()
    }

    pub(crate) fn gaps(&self) -> Vec<String> {
        gaps(&self.gaps)
    }
}

/// Returns the gaps as `node/volume: reason`.
pub(crate) fn gaps(gaps: &[Gap]) -> Vec<String> {
    assert!(gaps.iter().all(|gap| gap.replica == "one"), "{gaps:?}");
    gaps.iter()
        .map(|gap| format!("{}/{}: {}", gap.node, gap.volume, gap.reason))
        .collect()
}

/// Puts a file in place of what is there.
pub(crate) fn write(path: &Path, bytes: &[u8]) {
    let file = File::options()
        .create(true)
        .write(true)
        .truncate(true)
        .open(path);
    file.and_then(|mut file| file.write_all(bytes))
        .expect("written");
}

/// Returns the status that a healthy node reports of itself.
pub(crate) fn status(node: &str, endpoint: &str, usable: u64) -> NodeStatus {
    let volume = VolumeStatus {
        volume: "v1".to_owned(),
        path: "/volumes/1".to_owned(),
        mode: Mode::ReadWrite.into(),
        total: 1000,
        free: usable,
        ..VolumeStatus::default()
    };
    NodeStatus {
        node: node.to_owned(),
        endpoint: endpoint.to_owned(),
        volumes: vec![volume],
        usable,
        ..NodeStatus::default()
    }
}
