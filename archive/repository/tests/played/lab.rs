//! The directory and the certificate authority of a repository under test, and the fake parts around it.

use std::path::PathBuf;
use std::time::Duration;

use archive_daemon::{Daemon, DaemonSettings, NotifySettings, Period, Tasks};
use archive_durable::{directory, replace, replace_secret};
use archive_model::ReplicaKind;
use archive_proof::testing::{signing_key, trust_in};
use archive_repository::settings::{BatchSettings, CheckSettings, DrainSettings, RepairSettings};
use archive_repository::{ReplicaSettings, RepositorySettings, Settings};
use archive_rpc::testing::TestAuthority;
use archive_rpc::{Credentials, Limits, RpcSettings, ServeError, Server, Services, bind};
use tempfile::TempDir;
use tonic::service::Routes;

pub(crate) struct Lab {
    directory: TempDir,
    authority: TestAuthority,
    /// The certificates of the fake parts.
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
        let own = lab.authority.pem(&["repository/kb"]);
        replace(&lab.at("trust.json"), trust.to_json().unwrap().as_bytes()).unwrap();
        replace(&lab.at("own.pem"), own.certificate.as_bytes()).unwrap();
        replace(&lab.at("authorities.pem"), own.authorities.as_bytes()).unwrap();
        replace_secret(&lab.at("own.key"), own.key.as_bytes()).unwrap();
        replace_secret(&lab.at("signing.pem"), signing.as_bytes()).unwrap();
        directory::make(&lab.data()).unwrap();
        lab
    }

    /// Serves with the certificate of `grant`, and returns the address.
    pub(crate) async fn play(&self, grant: &str, routes: Routes) -> String {
        let credentials = self.credentials(grant);
        let (listener, address) = bind("127.0.0.1:0").await.unwrap();
        let services = Services {
            routes,
            rules: proto_archive::rules::rules(),
            descriptors: vec![proto_archive::DESCRIPTORS],
        };
        let stop = self.tasks.stop();
        let limits = Limits {
            drain: Duration::from_millis(100),
            ..Limits::default()
        };
        self.tasks.spawn("rpc", async move {
            let server = Server::new(services, credentials).within(limits);
            server.serve(listener, stop.cancelled_owned()).await?;
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
                md5: false,
                allow_single: true,
                export: Period::from_secs(0),
            },
            notify: NotifySettings::default(),
            replicas,
        }
    }

    pub(crate) async fn end(self) {
        self.tasks.stop_all();
        self.tasks.join(Duration::from_secs(40)).await.unwrap();
    }
}

/// A started repository, which is stopped even if a test panics: the test would otherwise wait for its threads.
pub(crate) struct StartedRepository(pub(crate) Daemon);

impl StartedRepository {
    pub(crate) async fn stop(self) {
        self.0.tasks.stop_all();
        let limit = Duration::from_secs(40);
        self.0.tasks.join(limit).await.unwrap();
    }
}

impl Drop for StartedRepository {
    fn drop(&mut self) {
        self.0.tasks.stop_all();
    }
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
