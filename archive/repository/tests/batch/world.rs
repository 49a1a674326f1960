//! A repository over real TLS and RocksDB, its replica `one` played by a [`Monitor`]; and who calls it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use archive_daemon::{Chance, Clock, Daemon, DaemonSettings, NotifySettings, Period, Tasks};
use archive_durable::{directory, replace, replace_secret};
use archive_model::{Digests, FileName, NodeId, ReplicaId, ReplicaKind, ReplicaState, Root};
use archive_proof::{SigningKey, TrustFile, TrustedKey};
use archive_repository::admin::{Admin, AdminRow};
use archive_repository::store::{Content, FileRecord, Phase, ReplicaRecord};
use archive_repository::{BatchSettings, ReplicaSettings, RepositorySettings, Settings};
use archive_rpc::{
    Authority, CredentialPem, Credentials, Expected, Grant, Limits, Role, RpcSettings, ServeError,
    Services, Validity, bind, connect_lazy, serve,
};
use jiff::Timestamp;
use proto_archive::wire::batch_client::BatchClient;
use proto_archive::wire::batch_output_request::What;
use proto_archive::wire::batch_status::State;
use proto_archive::wire::batch_submit_request::{Open, Step};
use proto_archive::wire::replica_server::ReplicaServer;
use proto_archive::wire::{
    BatchOutputRequest, BatchRef, BatchSpec, BatchStatus, BatchSubmitRequest,
};
use tempfile::TempDir;
use tonic::Status;
use tonic::service::Routes;
use tonic::transport::Channel;

use crate::monitor::{Monitor, ROOT, SIZE};

pub(crate) struct World {
    directory: TempDir,
    authority: Authority,
    /// Of the monitor.
    tasks: Tasks,
    endpoint: String,
    pub(crate) monitor: Monitor,
    pub(crate) settings: BatchSettings,
}

/// A repository that runs.
pub(crate) struct Running {
    daemon: Daemon,
    address: String,
}

/// Somebody who calls it.
pub(crate) struct Caller(pub(crate) BatchClient<Channel>);

impl World {
    pub(crate) async fn new() -> Self {
        let authority = Authority::create("archive.example", validity(4)).unwrap();
        let mut world = Self {
            directory: TempDir::new().unwrap(),
            authority,
            tasks: Tasks::new(),
            endpoint: String::new(),
            monitor: Monitor::default(),
            settings: BatchSettings {
                running: 64,
                ..BatchSettings::default()
            },
        };
        let key = SigningKey::from_seed([1; 32]);
        let trust = TrustFile::new(vec![TrustedKey {
            archive: "kb".to_owned(),
            public_key: key.public_key(),
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
        replace_secret(&at("signing.pem"), key.to_pem().unwrap().as_bytes()).unwrap();
        directory::make(&world.data()).unwrap();
        drop(Admin::init(&world.data()).unwrap());
        world.endpoint = world.play().await;
        world
    }

    async fn play(&self) -> String {
        let now = SystemTime::from(Clock::system().now());
        let credentials = Credentials::from_pem(&self.pem("monitor/one"), now).unwrap();
        let (listener, address) = bind("127.0.0.1:0").await.unwrap();
        let services = Services {
            routes: Routes::new(ReplicaServer::new(self.monitor.clone())),
            rules: proto_archive::rules::rules(),
            descriptors: vec![proto_archive::DESCRIPTORS],
        };
        let stop = self.tasks.stop();
        let limits = Limits {
            drain: Duration::from_millis(100),
            ..Limits::default()
        };
        self.tasks.spawn("rpc", async move {
            let stop = stop.cancelled_owned();
            serve(listener, services, credentials, limits, stop).await?;
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

    /// The directory of a job.
    pub(crate) fn folder(&self, id: &str) -> PathBuf {
        self.data().join("batch").join(id)
    }

    fn all_settings(&self) -> Settings {
        let at = |name: &str| self.directory.path().join(name);
        let replica = |id: &str, kind| ReplicaSettings {
            id: id.parse().unwrap(),
            kind,
            required: true,
            monitor: self.endpoint.clone(),
            site: None,
            media: None,
        };
        Settings {
            repair: archive_repository::RepairSettings::default(),
            checks: archive_repository::CheckSettings {
                files: None,
                checksums: None,
            },
            drain: archive_repository::DrainSettings::default(),
            batch: self.settings.clone(),
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
                data: self.data(),
                signing_key: at("signing.pem"),
                trust: at("trust.json"),
                stall: Period::from_secs(5),
                md5: false,
                allow_single: true,
                export: Period::from_secs(0),
            },
            notify: NotifySettings::default(),
            replicas: vec![
                replica("one", ReplicaKind::Bitarchive),
                replica("sums", ReplicaKind::Checksum),
            ],
        }
    }

    /// Files that the admin data have in replica `one`, since long ago.
    pub(crate) fn store(&self, names: &[&str]) {
        let admin = Admin::init(&self.data()).unwrap();
        let mut changes = admin.change();
        for name in names {
            let long_ago = Timestamp::UNIX_EPOCH;
            let mut copy = ReplicaRecord::started(ReplicaKind::Bitarchive, true, long_ago);
            copy.state = ReplicaState::UploadCompleted;
            copy.node = Some(NodeId::new("n-2").unwrap());
            let record = FileRecord {
                name: FileName::new(name).unwrap(),
                phase: Phase::Complete,
                upload: None,
                content: Some(Content {
                    size: SIZE,
                    root: Root::from_bytes(ROOT),
                    digests: Digests::default(),
                }),
                replicas: BTreeMap::from([(ReplicaId::new("one").unwrap(), copy)]),
            };
            let row = AdminRow {
                record,
                depositor: "harvester/h".to_owned(),
                admission: None,
            };
            admin.put(&mut changes, &row).unwrap();
        }
        admin.commit(changes).unwrap();
    }

    pub(crate) async fn start(&self) -> Running {
        let daemon = Daemon::new(Clock::system(), Chance::system());
        let address = archive_repository::serve(self.all_settings(), daemon.clone())
            .await
            .unwrap();
        Running {
            daemon,
            address: address.to_string(),
        }
    }

    pub(crate) fn caller(&self, running: &Running, grant: &str) -> Caller {
        let now = SystemTime::from(Clock::system().now());
        let credentials = Credentials::from_pem(&self.pem(grant), now).unwrap();
        let expected = Expected::role(Role::Repository);
        let channel = connect_lazy(
            &running.address,
            &credentials,
            &expected,
            &Limits::default(),
        )
        .unwrap();
        Caller(BatchClient::new(channel))
    }

    pub(crate) async fn end(self, running: Running) {
        running.stop().await;
        self.tasks.stop_all();
        self.tasks.join(Duration::from_secs(40)).await.unwrap();
    }
}

impl Running {
    pub(crate) async fn stop(self) {
        self.daemon.tasks.stop_all();
        self.daemon
            .tasks
            .join(Duration::from_secs(40))
            .await
            .unwrap();
    }
}

/// The built-in job over all files of replica `one`.
pub(crate) fn file_list() -> BatchSpec {
    BatchSpec {
        job: "file-list".to_owned(),
        replica: "one".to_owned(),
        ..BatchSpec::default()
    }
}

impl Caller {
    pub(crate) async fn submit(
        &mut self,
        id: &str,
        spec: BatchSpec,
    ) -> Result<BatchStatus, Status> {
        self.submit_with(id, spec, &[]).await
    }

    pub(crate) async fn submit_with(
        &mut self,
        id: &str,
        spec: BatchSpec,
        component: &[u8],
    ) -> Result<BatchStatus, Status> {
        let open = Step::Open(Open {
            id: id.to_owned(),
            spec: Some(spec),
        });
        let pieces = component.chunks(1000);
        let pieces = pieces.map(|bytes| Step::Component(bytes.to_vec().into()));
        let steps: Vec<_> = std::iter::once(open).chain(pieces).collect();
        let steps = steps
            .into_iter()
            .map(|step| BatchSubmitRequest { step: Some(step) });
        let answer = self.0.batch_submit(tokio_stream::iter(steps)).await?;
        Ok(answer.into_inner())
    }

    pub(crate) async fn find(&mut self, id: &str) -> Result<BatchStatus, Status> {
        let id = id.to_owned();
        Ok(self.0.batch_find(BatchRef { id }).await?.into_inner())
    }

    pub(crate) async fn cancel(&mut self, id: &str) -> Result<BatchStatus, Status> {
        let id = id.to_owned();
        Ok(self.0.batch_cancel(BatchRef { id }).await?.into_inner())
    }

    /// Waits until a job is as it should be.
    pub(crate) async fn until(
        &mut self,
        id: &str,
        is_so: impl Fn(&BatchStatus) -> bool,
    ) -> BatchStatus {
        for _ in 0..600 {
            let status = self.find(id).await.unwrap();
            if is_so(&status) {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{:?}", self.find(id).await);
    }

    /// Waits for the end of a job.
    pub(crate) async fn ended(&mut self, id: &str) -> BatchStatus {
        self.until(id, |status| !status.ended.is_empty()).await
    }

    pub(crate) async fn output(&mut self, id: &str, what: What) -> Vec<u8> {
        self.output_from(id, what, 0).await.unwrap()
    }

    pub(crate) async fn output_from(
        &mut self,
        id: &str,
        what: What,
        offset: u64,
    ) -> Result<Vec<u8>, Status> {
        let request = BatchOutputRequest {
            id: id.to_owned(),
            what: what.into(),
            offset,
        };
        let mut stream = self.0.batch_output(request).await?.into_inner();
        let (mut bytes, mut size) = (Vec::new(), None);
        while let Some(message) = stream.message().await? {
            assert!(size.is_none(), "a message after the end");
            bytes.extend_from_slice(&message.data);
            size = message.end.then_some(message.size);
        }
        assert_eq!(size, Some(offset + bytes.len() as u64));
        Ok(bytes)
    }

    /// Its lines but for the first, which is the job itself.
    pub(crate) async fn manifest(&mut self, id: &str) -> String {
        let text = self.output(id, What::Manifest).await;
        let text = String::from_utf8(text).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        assert!(first.starts_with(&format!("{{\"job\":\"{id}\"")), "{first}");
        rest.to_owned()
    }

    /// How many files a manifest has, where there is one.
    pub(crate) async fn manifest_or_nothing(&mut self, id: &str) -> usize {
        let text = self.output(id, What::Manifest).await;
        let lines = text.split(|byte| *byte == b'\n').count() - 1;
        lines.saturating_sub(1)
    }
}

pub(crate) fn state(status: &BatchStatus) -> State {
    State::try_from(status.state).unwrap()
}

/// From an hour ago, for so many hours: those of a certificate lie within those of its authority.
fn validity(hours: u64) -> Validity {
    let now = SystemTime::from(Clock::system().now());
    let not_before = now.checked_sub(Duration::from_hours(1)).unwrap();
    Validity {
        not_before,
        not_after: not_before + Duration::from_hours(hours),
    }
}
