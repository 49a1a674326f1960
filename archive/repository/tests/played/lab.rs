//! The directory and the certificate authority of a repository under test, its files, its start and its end, and the
//! fake parts around it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use archive_daemon::{
    ByteSize, Chance, Clock, Daemon, DaemonSettings, NotifySettings, Period, StartError, Tasks,
};
use archive_decisions::store::{Content, FileRecord, NamePhase, ReplicaRecord};
use archive_durable::{directory, replace_file, replace_secret};
use archive_ledger::admin::{Admin, AdminRow};
use archive_model::{Digests, FileName, ReplicaKind, ReplicaState, Root};
use archive_proof::testing::{signing_key, trust_in};
use archive_repository::settings::{BatchSettings, CheckSettings, DrainSettings, RepairSettings};
use archive_repository::{ReplicaSettings, RepositorySettings, Settings};
use archive_rpc::testing::TestAuthority;
use archive_rpc::{
    Credentials, ExpectedIdentity, Role, RpcLimits, RpcSettings, ServeError, Server, Services,
    bind_address, connect_lazy,
};
use jiff::Timestamp;
use tempfile::TempDir;
use tonic::service::Routes;
use tonic::transport::Channel;

pub(crate) struct Lab {
    directory: TempDir,
    authority: TestAuthority,
    /// The fake parts.
    tasks: Tasks,
}

impl Lab {
    /// Prepares all files that a repository needs before its first start.
    pub(crate) fn new() -> Self {
        let lab = Self {
            directory: TempDir::new().unwrap(),
            authority: TestAuthority::new(),
            tasks: Tasks::new(),
        };
        let trust = trust_in(&signing_key());
        let signing = signing_key().to_pem().unwrap();
        lab.certify(&["repository/kb"]);
        replace_file(&lab.at("trust.json"), trust.to_json().unwrap().as_bytes()).unwrap();
        replace_secret(&lab.at("signing.pem"), signing.as_bytes()).unwrap();
        directory::make_directory(&lab.data()).unwrap();
        lab
    }

    /// Gives the repository a certificate.
    pub(crate) fn certify(&self, grants: &[&str]) {
        let own = self.authority.pem(grants);
        replace_file(&self.at("own.pem"), own.certificate.as_bytes()).unwrap();
        replace_file(&self.at("authorities.pem"), own.authorities.as_bytes()).unwrap();
        replace_secret(&self.at("own.key"), own.key.as_bytes()).unwrap();
    }

    /// Serves with the certificate of `grant`, and returns the address.
    pub(crate) async fn play(&self, grant: &str, routes: Routes) -> String {
        let credentials = self.credentials(grant);
        let (listener, address) = bind_address("127.0.0.1:0").await.unwrap();
        let services = Services {
            routes,
            rules: proto_archive::rules::archive_rules(),
            descriptors: vec![proto_archive::DESCRIPTORS],
        };
        let stop = self.tasks.stop_token();
        let limits = RpcLimits {
            drain: Duration::from_millis(100),
            ..RpcLimits::default()
        };
        self.tasks.spawn("rpc", async move {
            let server = Server::new(services, credentials).within_limits(limits);
            server
                .serve_connections(listener, stop.cancelled_owned())
                .await?;
            Ok::<(), ServeError>(())
        });
        address.to_string()
    }

    pub(crate) fn credentials(&self, grant: &str) -> Credentials {
        self.authority.credentials(&[grant])
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.at("data")
    }

    /// Returns settings under which nothing happens by the clock alone.
    pub(crate) fn settings(&self, replicas: Vec<ReplicaSettings>) -> Settings {
        Settings {
            repair: RepairSettings::default(),
            checks: CheckSettings {
                files: None,
                checksums: None,
            },
            drain: DrainSettings::default(),
            batch: BatchSettings::default(),
            daemon: DaemonSettings::default(),
            rpc: RpcSettings::new(
                "127.0.0.1:0",
                self.at("own.pem"),
                self.at("own.key"),
                self.at("authorities.pem"),
            ),
            repository: RepositorySettings {
                archive: "kb".to_owned(),
                data: self.data(),
                signing_key: self.at("signing.pem"),
                trust: self.at("trust.json"),
                stall: Period::from_secs(5),
                least_rate: ByteSize::from_bytes(100),
                reserve: ByteSize::from_bytes(0),
                md5: false,
                allow_single: true,
                export: Period::from_secs(0),
            },
            notify: NotifySettings::default(),
            replicas,
        }
    }

    /// Adds files to the admin data: all of this size and root, complete since long ago, with this copy in one replica.
    pub(crate) fn store(
        &self,
        names: &[&str],
        size: u64,
        root: [u8; 32],
        replica: &str,
        copy: ReplicaRecord,
    ) {
        let admin = Admin::init(&self.data()).unwrap();
        let mut changes = admin.begin_changes();
        let replicas = BTreeMap::from([(replica.parse().unwrap(), copy)]);
        for name in names {
            let record = FileRecord {
                name: FileName::new(name).unwrap(),
                phase: NamePhase::Complete,
                upload: None,
                content: Some(Content {
                    size,
                    root: Root::from_bytes(root),
                    digests: Digests::default(),
                }),
                replicas: replicas.clone(),
            };
            let row = AdminRow {
                record,
                depositor: "harvester/h".to_owned(),
                admission: None,
            };
            admin.put_row(&mut changes, &row).unwrap();
        }
        admin.commit_changes(changes).unwrap();
    }

    /// Makes a channel to a repository, with the certificate of `grant`.
    pub(crate) fn channel(&self, started: &StartedRepository, grant: &str) -> Channel {
        let channel = connect_lazy(
            started.address.as_ref().unwrap(),
            &self.credentials(grant),
            &ExpectedIdentity::any_of_role(Role::Repository),
            &RpcLimits::default(),
        );
        channel.unwrap()
    }

    pub(crate) async fn end(self) {
        end(&self.tasks).await;
    }
}

/// A repository that was started.
pub(crate) struct StartedRepository {
    pub(crate) daemon: Daemon,
    /// The address of the repository, unless it refused to start.
    pub(crate) address: Result<String, StartError>,
}

impl StartedRepository {
    pub(crate) async fn start(settings: Settings, clock: Clock) -> Self {
        let daemon = Daemon::new(clock, Chance::system_chance());
        let served = archive_repository::serve_repository(settings, daemon.clone()).await;
        Self {
            daemon,
            address: served.map(|address| address.to_string()),
        }
    }

    pub(crate) async fn stop(self) {
        end(&self.daemon.tasks).await;
    }
}

/// Stops tasks, each of which must end well.
async fn end(tasks: &Tasks) {
    tasks.stop_all();
    tasks.join_tasks(Duration::from_secs(40)).await.unwrap();
}

/// Creates the record of a copy that was stored long ago.
pub(crate) fn stored_copy(node: &str, volume: Option<&str>) -> ReplicaRecord {
    let mut copy =
        ReplicaRecord::started_record(ReplicaKind::Bitarchive, true, Timestamp::UNIX_EPOCH);
    copy.state = ReplicaState::UploadCompleted;
    copy.node = Some(node.parse().unwrap());
    copy.volume = volume.map(|volume| volume.parse().unwrap());
    copy
}

/// Creates a required replica with the address of its monitor.
pub(crate) fn replica(id: &str, kind: ReplicaKind, monitor: &str) -> ReplicaSettings {
    ReplicaSettings {
        id: id.parse().unwrap(),
        kind,
        required: true,
        monitor: monitor.to_owned(),
        site: None,
        media: None,
    }
}
