//! Starts the repository: opens its tables, starts its workers, and listens.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive_daemon::metrics::MetricError;
use archive_daemon::notify::NotifyError;
use archive_daemon::worker::DuplicateWorker;
use archive_daemon::{Daemon, Notifier, ReloadWorker};
use archive_durable::{DiskError, read_secret, read_state};
use archive_jobs::{Batches, RetentionWorker};
use archive_ledger::admin::stamp::Stamping;
use archive_ledger::admin::{Admin, AdminError};
use archive_ledger::anomalies::Anomalies;
use archive_ledger::audit::TrailWriter;
use archive_ledger::requests::table::Requests;
use archive_ledger::standing::Standing;
use archive_model::ReplicaId;
use archive_proof::{SigningKey, TrustFile};
use archive_replicas::{Dialer, NodeWatch, Replicas};
use archive_rpc::{ConnectError, CredentialsError, Role, ServeError};
use archive_stores::assemble::{Assembler, DonorLoad};
use archive_stores::calls::ReplicaCalls;
use archive_stores::coordinator::{self, Coordinator, Retries};
use archive_stores::heal::Healer;
use archive_stores::mail::Mail;
use archive_stores::metrics::Stores;
use archive_stores::transfer::{Pace, ResumePoints, Transfers};
use tokio::runtime::Handle;
use tokio::task::{JoinError, spawn_blocking};

use crate::alarm::Alarm;
use crate::archive::Archive;
use crate::attention::Attention;
use crate::automatic::{Automatic, Volumes};
use crate::bootstrap::FillWorker;
use crate::daily_export::DailyExport;
use crate::drain::{Drain as Draining, DrainBoard, DrainContext};
use crate::incidents::IncidentTable;
use crate::membership::{self, Membership};
use crate::metrics::Instruments;
use crate::people::{ExpiryWorker, People};
use crate::preserver::{NameClaims, Preserver};
use crate::rpc::{Door, services};
use crate::schedule::Schedule;
use crate::settings::{BatchSettings, InvalidSettings, RepositorySettings, Settings};

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
    /// A replica with copies is missing from the settings: its copies would not count any more, although nobody has decided so.
    #[error(
        "replica {0} has copies of files and is not in the settings: add its [[replica]] again; if it is gone for good, \
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

/// Opens the admin data, resumes all work under way, listens, and returns the address. The repository lives in the daemon's
/// tasks until they stop.
///
/// # Errors
/// [`StartError`] says which setting, file or table prevents the start.
pub async fn serve(settings: Settings, daemon: Daemon) -> Result<SocketAddr, StartError> {
    settings.check()?;
    let specs = settings.specs();
    let own = settings.repository;
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
    let key = read("repository.signing_key", (&own.signing_key, key), |text| {
        SigningKey::from_pem(&String::from_utf8_lossy(text)).map_err(|error| error.to_string())
    })?;
    let trust = read_state(&own.trust)?;
    let trust = read("repository.trust", (&own.trust, trust), |text| {
        TrustFile::parse(text).map_err(|error| error.to_string())
    })?;
    let data = own.data.clone();
    let admin = spawn_blocking(move || Admin::open(&data)).await??;
    admin.report_torn_tail(&own.archive, daemon.clock.now())?;
    daemon.workers.spawn(Stamping(admin.clone()))?;
    let watched = admin.clone();
    daemon
        .tasks
        .spawn_watch("admin-data", daemon.clock.clone(), move || watched.broken());
    let standing = Arc::new(Standing::open(admin.clone()).map_err(AdminError::from)?);
    let volumes = admin.volumes().map_err(AdminError::from)?;
    if let Some(replica) = membership::left_out(&volumes, &specs, &standing.now()) {
        return Err(StartError::LeftOut(replica));
    }

    let (listener, address) = archive_rpc::bind(&settings.rpc.listen).await?;
    let limits = settings.rpc.limits(settings.daemon.drain.duration() / 2);
    let replicas = Arc::new(Replicas::new(
        &settings.replicas,
        Dialer::new(credentials.clone(), limits),
        standing.view(),
        daemon.clock.clone(),
    )?);
    // Before any request: a monitor that does not know the nodes and volumes would miss none of them.
    replicas.set_volumes(volumes);
    for spec in &settings.replicas {
        let known = admin.nodes(&spec.id).map_err(AdminError::from)?;
        replicas.set_members(&spec.id, known);
    }
    let (mail, messages) = Mail::new();
    let calls = ReplicaCalls {
        replicas: Arc::clone(&replicas),
        clock: daemon.clock.clone(),
        stall: own.stall.duration(),
    };
    let transfers = Transfers {
        calls: calls.clone(),
        mail: mail.clone(),
        tasks: daemon.tasks.clone(),
        md5: own.md5,
        resume_points: ResumePoints::default(),
        stores: Stores::new(&daemon.metrics)?,
    };
    let assembler = Assembler {
        calls: calls.clone(),
        load: DonorLoad::default(),
    };
    let (of, clock) = (admin.clone(), daemon.clock.clone());
    let anomalies = spawn_blocking(move || Anomalies::open(&of, clock)).await?;
    let anomalies = Arc::new(anomalies.map_err(AdminError::from)?);
    let retries = Retries::default();
    let coordinator = Coordinator::new(coordinator::Parts {
        archive: own.archive.clone(),
        key: key.clone(),
        specs: specs.clone(),
        standing: Arc::clone(&standing),
        limits: archive_decisions::store::Limits::default(),
        admin: admin.clone(),
        healer: Healer::new(transfers.clone(), assembler.clone()),
        transfers: transfers.clone(),
        clock: daemon.clock.clone(),
        chance: daemon.chance.clone(),
        messages,
        anomalies: Arc::clone(&anomalies),
        retries: retries.clone(),
    });
    let watch = NodeWatch::new(Arc::clone(&replicas), &settings.replicas);
    daemon.workers.spawn(watch)?;
    let archive = Archive {
        admin: admin.clone(),
        anomalies,
        standing: Arc::clone(&standing),
        specs: Arc::new(settings.replicas.clone()),
        calls,
        assembler,
        mail: mail.clone(),
        tasks: daemon.tasks.clone(),
        chance: daemon.chance.clone(),
    };
    let membership = Membership::new(archive.clone());
    daemon.workers.spawn(membership)?;
    let preserver = Preserver {
        archive: archive.clone(),
        instruments: Instruments::new(&daemon.metrics)?,
        policy: Arc::new(settings.repair.policy()),
        who: format!("repository/{}", own.archive).into(),
        repairing: NameClaims::default(),
        suspected: NameClaims::default(),
    };
    let stores = transfers.stores.clone();
    let people = Arc::new(People {
        archive: archive.clone(),
        requests: Requests::new(admin.clone()).map_err(AdminError::from)?,
        transfers,
        specs: specs.clone(),
        spool: own.data.join("spool"),
        acting: tokio::sync::Mutex::default(),
    });
    people.begin().await?;
    daemon.workers.spawn(ExpiryWorker(Arc::clone(&people)))?;
    daemon.workers.spawn(FillWorker::new(Arc::clone(&people)))?;
    let drains = DrainBoard::new(preserver.instruments.clone());
    let rate = settings.drain.bytes_per_second.bytes();
    daemon.workers.spawn(Draining::new(DrainContext {
        people: Arc::clone(&people),
        own: preserver.clone(),
        board: drains.clone(),
        pace: Pace::new(daemon.clock.clone(), rate),
    }))?;
    let renewed = credentials.clone();
    let reload = ReloadWorker::new(daemon.clock.clone(), move |now| {
        Ok(renewed.reload(now.into())?)
    });
    daemon.workers.spawn(reload)?;
    let source = format!("repository {}", own.archive);
    let told = Arc::new(IncidentTable::open(&admin).map_err(AdminError::from)?);
    let notifier = Notifier::start(&source, &settings.notify, &daemon, told)?;
    let ledger = Ledger {
        admin: &admin,
        own: &own,
        notifier: &notifier,
        mail: &mail,
    };
    ledger.start(&daemon)?;
    if !notifier.is_silent() {
        let (own, delay) = (preserver.clone(), settings.notify.delay.duration());
        daemon
            .workers
            .spawn(Attention::new(own.clone(), notifier.clone()))?;
        daemon
            .workers
            .spawn(Alarm::new(own, notifier.clone(), delay))?;
    }
    let (runtime, stop) = (Handle::current(), daemon.tasks.stop());
    daemon
        .tasks
        .spawn_blocking("coordinator", move || coordinator.run(&runtime, &stop));

    let volumes = Arc::new(Volumes::open(&admin).map_err(AdminError::from)?);
    let automatic = Automatic::new(preserver.clone(), Arc::clone(&volumes));
    daemon.workers.spawn(automatic)?;
    let schedule = Schedule::new(preserver.clone(), &settings.checks);
    daemon.workers.spawn(schedule.map_err(AdminError::from)?)?;

    let batches = start_batches(
        &daemon,
        (&admin, &standing),
        &replicas,
        (settings.batch, own.data.clone()),
    )
    .await?;
    let door = Door {
        archive,
        batches,
        settings: Arc::new(own),
        trust: Arc::new(trust),
        key: Arc::new(key),
        notifier,
        preserver,
        volumes,
        drains,
        retries,
        stores,
        people,
        listings: Door::places(),
        followers: Door::follower_places(),
    };
    let stop = daemon.tasks.stop();
    let (services, stopped) = (services(door), stop.cancelled_owned());
    let server = archive_rpc::Server::new(services, credentials).within(limits);
    let serving = server.serve_and_log(listener, stopped);
    daemon.tasks.spawn("rpc", serving);
    tracing::info!(%address, "the repository is listening");
    Ok(address)
}

/// Resumes the batch jobs, and runs them.
async fn start_batches(
    daemon: &Daemon,
    (admin, standing): (&Admin, &Arc<Standing>),
    replicas: &Arc<Replicas>,
    (settings, data): (BatchSettings, PathBuf),
) -> Result<Batches, StartError> {
    let (keep, patience) = (settings.keep.duration(), settings.patience.duration());
    let jobs = archive_jobs::JobTable::new(admin.clone(), daemon.clock.clone(), keep, patience);
    let parts = archive_jobs::BatchParts {
        jobs: jobs.map_err(AdminError::from)?,
        admin: admin.clone(),
        standing: standing.view(),
        replicas: Arc::clone(replicas),
        clock: daemon.clock.clone(),
        meters: archive_jobs::Meters::new(&daemon.metrics)?,
        settings,
        data,
    };
    let opened = spawn_blocking(move || Batches::open(parts)).await?;
    let batches = opened.map_err(|error| match error {
        archive_jobs::OpenError::Db(error) => AdminError::from(error).into(),
        archive_jobs::OpenError::Disk(error) => StartError::Disk(error),
    })?;
    daemon.workers.spawn(RetentionWorker(batches.clone()))?;
    let (own, tasks) = (batches.clone(), daemon.tasks.clone());
    daemon.tasks.spawn("batch", async move {
        own.dispatch(tasks).await;
    });
    Ok(batches)
}

/// The parts that the audit trail and the exports need.
struct Ledger<'a> {
    admin: &'a Admin,
    own: &'a RepositorySettings,
    notifier: &'a Notifier,
    mail: &'a Mail,
}

impl Ledger<'_> {
    fn start(&self, daemon: &Daemon) -> Result<(), StartError> {
        let refused = daemon.metrics.gauge(
            "repository_audit_log_refused",
            "Whether the audit log was changed or damaged, so that nothing is appended to it",
            &[],
        )?;
        let (clock, stop) = (daemon.clock.clone(), daemon.tasks.stop());
        daemon.workers.spawn(TrailWriter::new(
            self.admin.clone(),
            self.own.data.join("audit"),
            self.notifier.clone(),
            refused,
            (clock, stop),
        ))?;
        if self.own.export.duration().is_zero() {
            return Ok(());
        }
        daemon.workers.spawn(DailyExport {
            admin: self.admin.clone(),
            archive: self.own.archive.clone(),
            data: self.own.data.clone(),
            period: self.own.export.duration(),
            mail: self.mail.clone(),
            notifier: self.notifier.clone(),
            tasks: daemon.tasks.clone(),
            clock: daemon.clock.clone(),
            stop: daemon.tasks.stop(),
        })?;
        Ok(())
    }
}

fn read<T>(
    setting: &'static str,
    (path, text): (&Path, Option<Vec<u8>>),
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
