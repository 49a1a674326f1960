//! Opens the first parts of a start: the secrets of the repository and its tables.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive_daemon::Daemon;
use archive_daemon::metrics::MetricError;
use archive_daemon::notify::NotifyError;
use archive_daemon::worker::DuplicateWorker;
use archive_durable::{DiskError, read_secret, read_state};
use archive_ledger::admin::stamp::StampWorker;
use archive_ledger::admin::{Admin, AdminError};
use archive_ledger::anomalies::Anomalies;
use archive_ledger::standing::Standing;
use archive_model::{ReplicaId, VolumeKey};
use archive_proof::{SigningKey, TrustFile};
use archive_rpc::{ConnectError, Credentials, CredentialsError, Role, ServeError};
use tokio::task::{JoinError, spawn_blocking};

use crate::membership;
use crate::settings::{InvalidSettings, Settings};

/// The reason why the repository does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings contradict each other.
    #[error(transparent)]
    Settings(#[from] InvalidSettings),
    /// The certificate, the key or the authorities cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The certificate is not that of a repository: no monitor or node would accept it.
    #[error(
        "the certificate is {0}, not that of a repository; issue one with `holdfast pki issue`"
    )]
    Identity(String),
    /// A file that the settings name is missing or invalid.
    #[error("{setting}: {}: {why}", .path.display())]
    File {
        /// The setting.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The admin data cannot be used.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The address cannot be listened on.
    #[error(transparent)]
    Bind(#[from] ServeError),
    /// The address of a monitor is invalid.
    #[error("replica.monitor: {0}")]
    Monitor(#[from] ConnectError),
    /// The name of an instrument is taken.
    #[error(transparent)]
    Metric(#[from] MetricError),
    /// The table of incidents cannot be read.
    #[error(transparent)]
    Notify(#[from] NotifyError),
    /// A replica with copies is missing from the settings: its copies would not count any more, although nobody has
    /// decided so.
    #[error(
        "replica {0} has copies of files and is not in the settings: add its [[replica]] again; if it was given up, \
         `holdfast replica retire {0}` takes it out of service once it is there, and then it may be left out"
    )]
    LeftOut(ReplicaId),
    /// A second repository in this process.
    #[error(transparent)]
    Duplicate(#[from] DuplicateWorker),
    /// A system call failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A bug: opening the admin data panicked.
    #[error(transparent)]
    Join(#[from] JoinError),
}

/// The certificates and keys with which the repository proves itself and others.
pub(super) struct Secrets {
    pub(super) credentials: Credentials,
    pub(super) key: SigningKey,
    pub(super) trust: TrustFile,
}

impl Secrets {
    /// Reads the files that the settings name.
    pub(super) fn read(settings: &Settings, daemon: &Daemon) -> Result<Self, StartError> {
        let own = &settings.repository;
        let credentials = settings.rpc.credentials(daemon.clock.now().into())?;
        let identity = credentials.identity();
        if !identity.has(Role::Repository) {
            return Err(StartError::Identity(identity.to_string()));
        }
        let refused = daemon.metrics.refusals(&identity.to_string())?;
        credentials.on_refusal(move |what| {
            what.choose(&refused.calls, &refused.connections).inc();
        });
        let key = read_secret(&own.signing_key)?;
        let key = parsed("repository.signing_key", &own.signing_key, key, |text| {
            SigningKey::from_pem(&String::from_utf8_lossy(text)).map_err(|error| error.to_string())
        })?;
        let trust = read_state(&own.trust)?;
        let trust = parsed("repository.trust", &own.trust, trust, |text| {
            TrustFile::parse(text).map_err(|error| error.to_string())
        })?;
        Ok(Self {
            credentials,
            key,
            trust,
        })
    }
}

/// The tables of the archive.
pub(super) struct Ledger {
    pub(super) admin: Admin,
    pub(super) standing: Arc<Standing>,
    pub(super) anomalies: Arc<Anomalies>,
    /// The volumes that have copies.
    pub(super) volumes: BTreeSet<VolumeKey>,
}

impl Ledger {
    /// Opens the tables, and refuses settings that leave a replica with copies out.
    pub(super) async fn open(settings: &Settings, daemon: &Daemon) -> Result<Self, StartError> {
        let own = &settings.repository;
        let data = own.data.clone();
        let admin = spawn_blocking(move || Admin::open(&data)).await??;
        admin.report_torn_tail(&own.archive, daemon.clock.now())?;
        daemon.workers.spawn(StampWorker(admin.clone()))?;
        let watched = admin.clone();
        daemon
            .tasks
            .spawn_watch("admin-data", daemon.clock.clone(), move || watched.broken());
        let standing = Arc::new(Standing::open(admin.clone()).map_err(AdminError::from)?);
        let volumes = admin.volumes().map_err(AdminError::from)?;
        let specs = settings.specs();
        if let Some(replica) = membership::left_out(&volumes, &specs, &standing.now()) {
            return Err(StartError::LeftOut(replica));
        }
        let of = admin.clone();
        let clock = daemon.clock.clone();
        let anomalies = spawn_blocking(move || Anomalies::open(&of, clock)).await?;
        Ok(Self {
            admin,
            standing,
            anomalies: Arc::new(anomalies.map_err(AdminError::from)?),
            volumes,
        })
    }
}

fn parsed<T>(
    setting: &'static str,
    path: &Path,
    text: Option<Vec<u8>>,
    parse: impl FnOnce(&[u8]) -> Result<T, String>,
) -> Result<T, StartError> {
    let wrong = |why: String| StartError::File {
        setting,
        path: path.to_owned(),
        why,
    };
    let text = text.ok_or_else(|| wrong("there is no such file".to_owned()))?;
    parse(&text).map_err(wrong)
}
