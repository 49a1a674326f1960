//! Opens the first parts of a start: the secrets of the repository and its tables.

use std::collections::BTreeSet;
use std::sync::Arc;

use archive_daemon::settings::InvalidSettings;
use archive_daemon::tasks::AnyError;
use archive_daemon::{Daemon, StartError};
use archive_ledger::admin::Admin;
use archive_ledger::admin::stamp::StampWorker;
use archive_ledger::anomalies::Anomalies;
use archive_ledger::standing::Standing;
use archive_model::VolumeKey;
use archive_proof::{Admission, Envelope, SigningKey, TrustFile};
use tokio::task::spawn_blocking;

use crate::membership;
use crate::settings::{RepositorySettings, Settings};

/// The keys with which the repository proves itself and others.
pub(super) struct Secrets {
    pub(super) key: SigningKey,
    pub(super) trust: TrustFile,
}

impl Secrets {
    /// Reads the files that the settings name.
    pub(super) fn read_secrets(settings: &RepositorySettings) -> Result<Self, StartError> {
        let key = settings.read_signing_key()?;
        let trust = settings.read_trust_file(&key)?;
        Ok(Self { key, trust })
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
    pub(super) async fn open_ledger(
        settings: &Settings,
        trust: &TrustFile,
        daemon: &Daemon,
    ) -> Result<Self, StartError> {
        let own = &settings.repository;
        let data = own.data.clone();
        let admin = spawn_blocking(move || Admin::open(&data)).await?;
        let admin = admin.map_err(data_failed)?;
        refuse_foreign(&admin, trust, &own.archive)?;
        admin
            .report_torn_tail(&own.archive, daemon.clock.now())
            .map_err(data_failed)?;
        daemon.workers.spawn_worker(StampWorker(admin.clone()))?;
        let watched = admin.clone();
        daemon
            .tasks
            .spawn_watch("admin-data", daemon.clock.clone(), move || watched.broken());
        let standing = Standing::open(admin.clone()).map_err(data_failed)?;
        let standing = standing.with_settings(&settings.replica_specs());
        let standing = Arc::new(standing.map_err(data_failed)?);
        let volumes = admin.known_volumes().map_err(data_failed)?;
        let specs = settings.replica_specs();
        if let Some(replica) = membership::left_out(&volumes, &specs, &standing.current_snapshot())
        {
            let left_out = format!(
                "replica {replica} has copies of files and is not in the settings: add its [[replica]] again; if it was \
                 given up, `holdfast replica retire {replica}` takes it out of service once it is there, and then it may \
                 be left out"
            );
            return Err(StartError::from(InvalidSettings::new(left_out)));
        }
        let of = admin.clone();
        let clock = daemon.clock.clone();
        let anomalies = spawn_blocking(move || Anomalies::open(&of, clock)).await?;
        Ok(Self {
            admin,
            standing,
            anomalies: Arc::new(anomalies.map_err(data_failed)?),
            volumes,
        })
    }
}

/// Refuses admin data of another archive: the first files have admissions.
fn refuse_foreign(admin: &Admin, trust: &TrustFile, archive: &str) -> Result<(), StartError> {
    for row in admin.list_files(None).map_err(data_failed)?.take(100) {
        let row = row.map_err(data_failed)?;
        let admission = row.admission.as_deref().map(str::as_bytes);
        let envelope = admission.and_then(|text| Envelope::parse(text).ok());
        let admission = envelope.and_then(|envelope| Admission::verify(&envelope, trust).ok());
        if let Some(admission) = admission.filter(|admission| admission.archive != archive) {
            let foreign = format!(
                "the admin data are those of archive {}, not of {archive}: correct repository.archive, or repository.data",
                admission.archive
            );
            return Err(StartError::of_setting("repository.archive", foreign));
        }
    }
    Ok(())
}

/// Makes the error of admin data that cannot be used.
pub(super) fn data_failed(error: impl Into<AnyError>) -> StartError {
    StartError::failed("open the admin data", error)
}
