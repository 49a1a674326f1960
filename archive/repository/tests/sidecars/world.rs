//! Two replicas of one node each that say what a test tells them to say, true or not; and a stopped repository.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use archive_daemon::{DaemonSettings, NotifySettings, Period, Tasks};
use archive_durable::{directory, replace, replace_secret};
use archive_model::{Digests, FileName, ReplicaKind, Root, UploadId};
use archive_proof::{Admission, SigningKey, TrustFile, TrustedKey};
use archive_repository::{ReplicaSettings, RepositorySettings, Settings};
use archive_rpc::{
    Authority, CredentialPem, Credentials, Grant, Limits, RpcSettings, ServeError, Services,
    Validity, bind, serve,
};
use jiff::Timestamp;
use proto_archive::wire::admissions_response::One;
use proto_archive::wire::files_response::End;
use proto_archive::wire::node_server::{Node, NodeServer};
use proto_archive::wire::replica_server::{Replica, ReplicaServer};
use proto_archive::wire::{
    AdmissionsResponse, AtticRequest, AtticResponse, Condition, FileEntry, FilesRequest, Gap,
    NodeStatus, ReplicaStateRequest, ReplicaStateResponse,
};
use tempfile::TempDir;
use tonic::codegen::BoxStream;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

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
        archive: "kb".to_owned(),
        name: FileName::new(name).unwrap(),
        size: 7,
        root: Root::from_bytes([content; 32]),
        digests: Digests::default(),
        depositor: "harvester/h".to_owned(),
        admitted: "2026-01-01T00:00:00Z".parse().unwrap(),
        upload: UploadId::new("u").unwrap(),
    }
}

fn key() -> SigningKey {
    SigningKey::from_seed([1; 32])
}

/// Signed by the archive.
pub(crate) fn signed(name: &str, content: u8) -> String {
    admission(name, content)
        .sign(&key())
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
    directory: TempDir,
    authority: Authority,
    tasks: Tasks,
    monitors: Vec<String>,
}

impl World {
    pub(crate) async fn start(one: Answer, two: Answer) -> Self {
        let authority = Authority::create("archive.example", validity(4)).unwrap();
        let mut world = Self {
            directory: TempDir::new().unwrap(),
            authority,
            tasks: Tasks::new(),
            monitors: Vec::new(),
        };
        let trust = TrustFile::new(vec![TrustedKey {
            archive: "kb".to_owned(),
            public_key: key().public_key(),
            from: Timestamp::UNIX_EPOCH,
            until: None,
        }])
        .unwrap();
        let own = world.pem("repository/kb");
        let at = |name: &str| world.directory.path().join(name);
        replace(&at("trust.json"), trust.to_json().unwrap().as_bytes()).unwrap();
        replace(&at("own.pem"), own.certificate.as_bytes()).unwrap();
        replace(&at("authorities.pem"), own.authorities.as_bytes()).unwrap();
        replace_secret(&at("own.key"), own.key.as_bytes()).unwrap();
        directory::make(&at("data")).unwrap();
        for (replica, answer) in [("one", one), ("two", two)] {
            let id = format!("{replica}-1");
            let node = FakeNode {
                id: id.clone(),
                answer,
            };
            let routes = Routes::new(NodeServer::new(node));
            let endpoint = world.serve(&format!("node/{id}"), routes).await;
            let monitor = FakeMonitor { node: id, endpoint };
            let routes = Routes::new(ReplicaServer::new(monitor));
            let address = world.serve(&format!("monitor/{replica}"), routes).await;
            world.monitors.push(address);
        }
        world
    }

    async fn serve(&self, grant: &str, routes: Routes) -> String {
        let now = SystemTime::from(archive_daemon::Clock::system().now());
        let credentials = Credentials::from_pem(&self.pem(grant), now).unwrap();
        let (listener, address) = bind("127.0.0.1:0").await.unwrap();
        let services = Services {
            routes,
            rules: proto_archive::rules::rules(),
            descriptors: vec![proto_archive::DESCRIPTORS],
        };
        let stop = self.tasks.stop();
        self.tasks.spawn("rpc", async move {
            let limits = Limits::default();
            serve(
                listener,
                services,
                credentials,
                limits,
                stop.cancelled_owned(),
            )
            .await?;
            Ok::<(), ServeError>(())
        });
        address.to_string()
    }

    fn pem(&self, grant: &str) -> CredentialPem {
        let grant: Grant = grant.parse().unwrap();
        let issued = self
            .authority
            .issue(&[grant], &["127.0.0.1"], validity(3))
            .unwrap();
        CredentialPem {
            certificate: issued.certificate,
            key: issued.key,
            authorities: self.authority.certificate().to_owned(),
            revoked: None,
        }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub(crate) fn settings(&self) -> Settings {
        let at = |name: &str| self.directory.path().join(name);
        let replica = |(id, monitor): (&str, &String)| ReplicaSettings {
            id: id.parse().unwrap(),
            kind: ReplicaKind::Bitarchive,
            required: true,
            monitor: monitor.clone(),
            site: None,
            media: None,
        };
        Settings {
            repair: archive_repository::settings::RepairSettings::default(),
            checks: archive_repository::settings::CheckSettings::default(),
            drain: archive_repository::settings::DrainSettings::default(),
            batch: archive_repository::settings::BatchSettings::default(),
            daemon: DaemonSettings::default(),
            rpc: RpcSettings {
                listen: "127.0.0.1:0".to_owned(),
                certificate: at("own.pem"),
                key: at("own.key"),
                authorities: at("authorities.pem"),
                revoked: None,
            },
            repository: RepositorySettings {
                archive: "kb".to_owned(),
                data: at("data"),
                signing_key: at("none"),
                trust: at("trust.json"),
                stall: Period::from_secs(30),
                md5: false,
                allow_single: false,
                export: Period::from_secs(0),
            },
            notify: NotifySettings::default(),
            replicas: ["one", "two"]
                .into_iter()
                .zip(&self.monitors)
                .map(replica)
                .collect(),
        }
    }

    pub(crate) async fn stop(self) {
        self.tasks.stop_all();
        self.tasks.join(Duration::from_secs(40)).await.unwrap();
    }
}

/// From an hour ago, for so many hours: those of a certificate lie within those of its authority.
fn validity(hours: u64) -> Validity {
    let now = SystemTime::from(archive_daemon::Clock::system().now());
    let not_before = now.checked_sub(Duration::from_hours(1)).unwrap();
    Validity {
        not_before,
        not_after: not_before + Duration::from_hours(hours),
    }
}
