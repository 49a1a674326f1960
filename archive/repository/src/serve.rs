//! Brings the repository up.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive_daemon::metrics::MetricError;
use archive_daemon::worker::DuplicateWorker;
use archive_daemon::{Daemon, Step, Worker, WorkerError};
use archive_durable::{DiskError, read_state};
use archive_proof::{SigningKey, TrustFile};
use archive_rpc::{ConnectError, Credentials, CredentialsError, Drained, Limits, Role, ServeError};
use tokio::runtime::Handle;
use tokio::task::{JoinError, spawn_blocking};

use crate::admin::{Admin, AdminError};
use crate::anomalies::Anomalies;
use crate::assemble::Assembler;
use crate::automatic::{Automatic, Volumes};
use crate::coordinator::{Coordinator, Mail};
use crate::heal::Healer;
use crate::membership::Membership;
use crate::metrics::Instruments;
use crate::preserver::{Names, Preserver};
use crate::replicas::Replicas;
use crate::rpc::{Door, services};
use crate::schedule::Schedule;
use crate::settings::{InvalidSettings, Settings};
use crate::transfer::Transfers;

/// Why the repository does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings contradict each other.
    #[error(transparent)]
    Settings(#[from] InvalidSettings),
    /// The certificate, the key or the authorities cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The certificate is somebody else's: no monitor or node would listen to it.
    #[error(
        "the certificate is {0}, not that of a repository; issue one with `holdfast pki issue`"
    )]
    Identity(String),
    /// A file that the settings name is absent or not what it should be.
    #[error("{setting}: {}: {why}", .path.display())]
    File {
        /// The setting.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The admin data cannot be used.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// Its address cannot be listened on.
    #[error(transparent)]
    Bind(#[from] ServeError),
    /// The address of a monitor is none.
    #[error("replica.monitor: {0}")]
    Monitor(#[from] ConnectError),
    /// An instrument of that name is taken.
    #[error(transparent)]
    Metric(#[from] MetricError),
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

/// Opens the admin data, goes on with what was on its way, listens, and returns the address. It lives in the daemon's
/// tasks until their stop.
pub async fn serve(settings: Settings, daemon: Daemon) -> Result<SocketAddr, StartError> {
    settings.check()?;
    let specs = settings.specs();
    let own = settings.repository;
    let credentials = settings.rpc.credentials(daemon.clock.now().into())?;
    let identity = credentials.identity();
    if !identity.has(Role::Repository) {
        return Err(StartError::Identity(identity.to_string()));
    }
    let key = read("repository.signing_key", &own.signing_key, |text| {
        SigningKey::from_pem(&String::from_utf8_lossy(text)).map_err(|error| error.to_string())
    })?;
    let trust = read("repository.trust", &own.trust, |text| {
        TrustFile::parse(text).map_err(|error| error.to_string())
    })?;
    let data = own.data.clone();
    let admin = spawn_blocking(move || Admin::open(&data)).await??;

    let (listener, address) = archive_rpc::bind(&settings.rpc.listen).await?;
    let limits = Limits {
        drain: settings.daemon.drain.duration() / 2,
        ..Limits::default()
    };
    let replicas = Arc::new(Replicas::new(
        &settings.replicas,
        credentials.clone(),
        limits,
    )?);
    // Before anybody asks: a monitor that is told of no nodes would miss none.
    for spec in &settings.replicas {
        let known = admin.nodes(&spec.id).map_err(AdminError::from)?;
        replicas.set_members(&spec.id, known);
    }
    let (mail, letters) = Mail::new();
    let transfers = Transfers {
        replicas: Arc::clone(&replicas),
        mail: mail.clone(),
        tasks: daemon.tasks.clone(),
        clock: daemon.clock.clone(),
        stall: own.stall.duration(),
        md5: own.md5,
    };
    let assembler = Assembler {
        replicas: Arc::clone(&replicas),
        clock: daemon.clock.clone(),
        stall: own.stall.duration(),
    };
    let coordinator = Coordinator {
        archive: own.archive.clone(),
        key,
        specs,
        limits: crate::store::Limits::default(),
        admin: admin.clone(),
        healer: Healer {
            transfers: transfers.clone(),
            assembler: assembler.clone(),
        },
        transfers,
        clock: daemon.clock.clone(),
        chance: daemon.chance.clone(),
        letters,
        files: HashMap::new(),
        timers: BTreeSet::new(),
        depositors: HashMap::new(),
        last_requester: 0,
    };
    let membership = Membership::new(admin.clone(), Arc::clone(&replicas), &settings.replicas);
    daemon.workers.spawn(membership)?;
    daemon.workers.spawn(Reload {
        credentials: credentials.clone(),
        clock: daemon.clock.clone(),
    })?;
    let (runtime, stop) = (Handle::current(), daemon.tasks.stop());
    daemon
        .tasks
        .spawn_blocking("coordinator", move || coordinator.run(&runtime, &stop));

    let (of, clock) = (admin.clone(), daemon.clock.clone());
    let anomalies = spawn_blocking(move || Anomalies::open(&of, clock)).await?;
    let preserver = Preserver {
        admin: admin.clone(),
        anomalies: Arc::new(anomalies.map_err(AdminError::from)?),
        replicas: Arc::clone(&replicas),
        assembler: assembler.clone(),
        specs: Arc::new(settings.replicas.clone()),
        mail: mail.clone(),
        tasks: daemon.tasks.clone(),
        clock: daemon.clock.clone(),
        chance: daemon.chance.clone(),
        instruments: Instruments::new(&daemon.metrics)?,
        policy: Arc::new(settings.repair.policy()),
        stall: own.stall.duration(),
        own: format!("repository/{}", own.archive).into(),
        repairing: Names::default(),
        suspected: Names::default(),
    };
    let volumes = Arc::new(Volumes::open(&admin).map_err(AdminError::from)?);
    let automatic = Automatic::new(preserver.clone(), Arc::clone(&volumes));
    daemon.workers.spawn(automatic)?;
    let schedule = Schedule::new(preserver.clone(), &settings.checks);
    daemon.workers.spawn(schedule.map_err(AdminError::from)?)?;

    let door = Door {
        settings: Arc::new(own),
        specs: Arc::new(settings.replicas),
        trust: Arc::new(trust),
        admin,
        assembler,
        preserver,
        volumes,
        replicas,
        mail,
        tasks: daemon.tasks.clone(),
        clock: daemon.clock.clone(),
    };
    let stop = daemon.tasks.stop();
    daemon.tasks.spawn("rpc", async move {
        let drained = archive_rpc::serve(
            listener,
            services(door),
            credentials,
            limits,
            stop.cancelled_owned(),
        )
        .await?;
        if drained == Drained::Cut {
            tracing::warn!(after = ?limits.drain, "calls still under way were cut");
        }
        Ok::<(), ServeError>(())
    });
    tracing::info!(%address, "the repository listens");
    Ok(address)
}

fn read<T>(
    setting: &'static str,
    path: &Path,
    parse: impl FnOnce(&[u8]) -> Result<T, String>,
) -> Result<T, StartError> {
    let wrong = |why: String| StartError::File {
        setting,
        path: path.to_owned(),
        why,
    };
    let text = read_state(path)?.ok_or_else(|| wrong("there is no such file".to_owned()))?;
    parse(&text).map_err(wrong)
}

/// Takes up certificates that were exchanged on disk, and new lists of revoked ones.
struct Reload {
    credentials: Credentials,
    clock: archive_daemon::Clock,
}

impl Worker for Reload {
    const NAME: &'static str = "credentials";

    async fn step(&mut self) -> Result<Step, WorkerError> {
        let (credentials, now) = (self.credentials.clone(), self.clock.now());
        spawn_blocking(move || credentials.reload(now.into())).await??;
        Ok(Step::Idle(std::time::Duration::from_mins(1)))
    }
}
