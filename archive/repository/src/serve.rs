//! Starts the repository: opens its tables, starts its workers, and listens.

mod open;

use std::net::SocketAddr;
use std::sync::Arc;

use archive_daemon::{Daemon, Gauge, Notifier, StartError, Starting};
use archive_jobs::{Batches, RetentionWorker};
use archive_ledger::admin::JobLedger;
use archive_ledger::audit::{TrailWriter, WriterParts};
use archive_ledger::requests::table::Requests;
use archive_part::Part;
use archive_replicas::{Dialer, NodeWatch, Replicas};
use archive_stores::assemble::{Assembler, DonorLoad};
use archive_stores::calls::ReplicaCalls;
use archive_stores::coordinator::{self, Coordinator, Retries};
use archive_stores::copier::Copier;
use archive_stores::mail::{CoordinatorMessage, Mail};
use archive_stores::metrics::Stores;
use archive_stores::transfer::{Pace, ResumePoints, Transfers};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::alarm::Alarm;
use crate::archive::Archive;
use crate::attention::Attention;
use crate::automatic::{Automatic, Volumes};
use crate::claims::NameClaims;
use crate::daily_export::AdminExportWorker;
use crate::drain::{Drain as Draining, DrainBoard, DrainContext};
use crate::fill::FillWorker;
use crate::incidents::IncidentTable;
use crate::membership::Membership;
use crate::metrics::Instruments;
use crate::people::{ExpiryWorker, People};
use crate::preserver::Preserver;
use crate::room::{Room, RoomWorker};
use crate::rpc::{Door, repository_services};
use crate::schedule::Schedule;
use crate::settings::Settings;
use open::{Ledger, Secrets, data_failed};

/// Opens the admin data, resumes all work under way, listens, and returns the address. The repository lives in the
/// daemon's tasks until they stop.
///
/// # Errors
/// [`StartError`] says which setting, file or table prevents the start.
pub fn serve_repository(settings: Settings, daemon: Daemon) -> Starting<SocketAddr> {
    Box::pin(start(settings, daemon))
}

async fn start(settings: Settings, daemon: Daemon) -> Result<SocketAddr, StartError> {
    let part = Part::open(&settings, &daemon)?;
    let secrets = Secrets::read_secrets(&settings.repository)?;
    let ledger = Ledger::open_ledger(&settings, &secrets.trust, &daemon).await?;
    let (listener, address) = part.bind().await?;
    let (start, messages) = Start::new(settings, daemon, &part, secrets, ledger)?;
    start.watch_nodes()?;
    let preserver = start.preserver()?;
    let people = start.people().await?;
    let drains = start.drains(&people, &preserver)?;
    let notifier = start.notifier(&preserver)?;
    let retries = start.coordinator(messages);
    let volumes = start.checks(&preserver)?;
    let batches = start.batches().await?;
    let door = Door {
        archive: start.archive.clone(),
        settings: Arc::new(start.settings.repository.clone()),
        trust: Arc::new(start.secrets.trust.clone()),
        key: Arc::new(start.secrets.key.clone()),
        notifier,
        preserver,
        volumes,
        drains,
        batches,
        retries,
        stores: start.transfers.stores.clone(),
        room: start.room.clone(),
        audit_refused: start.audit_refused.clone(),
        people,
        listings: Door::call_places(),
        followers: Door::follower_places(),
    };
    part.serve(listener, repository_services(door));
    Ok(address)
}

/// A start under way: what is open, and what the actors that it starts share.
struct Start {
    settings: Settings,
    daemon: Daemon,
    secrets: Secrets,
    archive: Archive,
    transfers: Transfers,
    room: Room,
    /// Is 1 while nothing is appended to the audit log.
    audit_refused: Gauge,
}

impl Start {
    /// Connects the tables with the replicas. The messages are those to the coordinator.
    fn new(
        settings: Settings,
        daemon: Daemon,
        part: &Part,
        secrets: Secrets,
        ledger: Ledger,
    ) -> Result<(Self, mpsc::Receiver<CoordinatorMessage>), StartError> {
        let Ledger {
            admin,
            standing,
            anomalies,
            volumes,
        } = ledger;
        let dialer = Dialer::new(part.credentials.clone(), part.limits);
        let view = standing.standing_view();
        let clock = daemon.clock.clone();
        let replicas = Replicas::new(&settings.replicas, dialer, view, clock)
            .map_err(|error| StartError::of_setting("replica.monitor", error))?;
        // Before any request: a monitor that does not know the nodes and volumes would miss none of them.
        replicas.set_volumes(volumes);
        for spec in &settings.replicas {
            let known = admin.list_nodes(&spec.id).map_err(data_failed)?;
            replicas.set_members(&spec.id, known);
        }
        let (mail, messages) = Mail::new();
        let calls = ReplicaCalls {
            replicas: Arc::new(replicas),
            clock: daemon.clock.clone(),
            stall: settings.repository.stall.duration(),
        };
        let transfers = Transfers {
            calls: calls.clone(),
            mail: mail.clone(),
            tasks: daemon.tasks.clone(),
            md5: settings.repository.md5,
            resume_points: ResumePoints::default(),
            stores: Stores::new(&daemon.metrics)?,
        };
        let assembler = Assembler {
            calls: calls.clone(),
            load: DonorLoad::default(),
        };
        let archive = Archive {
            admin,
            anomalies,
            standing,
            specs: Arc::new(settings.replicas.clone()),
            calls,
            assembler,
            mail,
            claims: NameClaims::default(),
            tasks: daemon.tasks.clone(),
            chance: daemon.chance.clone(),
        };
        let audit_refused = daemon.metrics.gauge(
            "repository_audit_log_refused",
            "Whether the audit log was changed or damaged, or its disk is full, so that nothing is appended to it",
            &[],
        )?;
        let start = Self {
            settings,
            daemon,
            secrets,
            archive,
            transfers,
            room: Room::default(),
            audit_refused,
        };
        Ok((start, messages))
    }

    /// Starts the watch of the nodes, and the worker that learns of new ones.
    fn watch_nodes(&self) -> Result<(), StartError> {
        let replicas = Arc::clone(&self.archive.calls.replicas);
        let watch = NodeWatch::new(replicas, &self.settings.replicas);
        self.daemon.workers.spawn_worker(watch)?;
        let membership = Membership::new(self.archive.clone());
        Ok(self.daemon.workers.spawn_worker(membership)?)
    }

    /// Creates the common ground of checks and repairs.
    fn preserver(&self) -> Result<Preserver, StartError> {
        Ok(Preserver {
            archive: self.archive.clone(),
            instruments: Instruments::new(&self.daemon.metrics)?,
            policy: Arc::new(self.settings.repair.repair_policy()),
            who: format!("repository/{}", self.settings.repository.archive).into(),
            suspected: NameClaims::default(),
        })
    }

    /// Resumes the acts of people, and what follows from them.
    async fn people(&self) -> Result<Arc<People>, StartError> {
        let requests = Requests::new(self.archive.admin.clone());
        let people = Arc::new(People {
            archive: self.archive.clone(),
            requests: requests.map_err(data_failed)?,
            transfers: self.transfers.clone(),
            specs: self.settings.replica_specs(),
            spool: self.settings.repository.data.join("spool"),
            acting: tokio::sync::RwLock::default(),
        });
        people.begin_work().await.map_err(data_failed)?;
        let workers = &self.daemon.workers;
        workers.spawn_worker(ExpiryWorker(Arc::clone(&people)))?;
        workers.spawn_worker(FillWorker::new(Arc::clone(&people)))?;
        Ok(people)
    }

    /// Resumes the drains.
    fn drains(
        &self,
        people: &Arc<People>,
        preserver: &Preserver,
    ) -> Result<DrainBoard, StartError> {
        let drains = DrainBoard::new(preserver.instruments.clone());
        let rate = self.settings.drain.bytes_per_second.bytes();
        self.daemon
            .workers
            .spawn_worker(Draining::new(DrainContext {
                people: Arc::clone(people),
                own: preserver.clone(),
                board: drains.clone(),
                pace: Pace::new(self.daemon.clock.clone(), rate),
                announced: Mutex::default(),
            }))?;
        Ok(drains)
    }

    /// Starts the notifier, and the workers that have something to notify of: the audit trail, the exports, and, if
    /// somebody is notified, those that look for incidents.
    fn notifier(&self, preserver: &Preserver) -> Result<Notifier, StartError> {
        let source = format!("repository {}", self.settings.repository.archive);
        let incidents = IncidentTable::open(&self.archive.admin).map_err(data_failed)?;
        let notify = &self.settings.notify;
        let notifier =
            Notifier::start_notifier(&source, notify, &self.daemon, Arc::new(incidents))?;
        let room = RoomWorker::new(
            self.room.clone(),
            self.settings.repository.data.clone(),
            self.settings.repository.reserve.bytes(),
            notifier.clone(),
        );
        self.daemon.workers.spawn_worker(room)?;
        self.audit_trail(&notifier)?;
        self.daily_export(&notifier)?;
        if !notifier.is_silent() {
            let own = preserver.clone();
            let delay = notify.delay.duration();
            let attention = Attention::new(own.clone(), notifier.clone());
            self.daemon.workers.spawn_worker(attention)?;
            let alarm = Alarm::new(own, notifier.clone(), delay);
            self.daemon.workers.spawn_worker(alarm)?;
        }
        Ok(notifier)
    }

    /// Starts the worker that writes the audit trail into files.
    fn audit_trail(&self, notifier: &Notifier) -> Result<(), StartError> {
        Ok(self
            .daemon
            .workers
            .spawn_worker(TrailWriter::new(WriterParts {
                admin: self.archive.admin.clone(),
                directory: self.settings.repository.data.join("audit"),
                notifier: notifier.clone(),
                refused: self.audit_refused.clone(),
                clock: self.daemon.clock.clone(),
                stop: self.daemon.tasks.stop_token(),
            }))?)
    }

    /// Starts the worker that exports the admin data into the archive, unless the settings turn it off.
    fn daily_export(&self, notifier: &Notifier) -> Result<(), StartError> {
        let own = &self.settings.repository;
        if own.export.duration().is_zero() {
            return Ok(());
        }
        Ok(self.daemon.workers.spawn_worker(AdminExportWorker {
            admin: self.archive.admin.clone(),
            archive: own.archive.clone(),
            data: own.data.clone(),
            period: own.export.duration(),
            mail: self.archive.mail.clone(),
            notifier: notifier.clone(),
            tasks: self.daemon.tasks.clone(),
            clock: self.daemon.clock.clone(),
            stop: self.daemon.tasks.stop_token(),
        })?)
    }

    /// Runs the coordinator on a thread of its own. Returns the times at which it tries failed copies again.
    fn coordinator(&self, messages: mpsc::Receiver<CoordinatorMessage>) -> Retries {
        let retries = Retries::default();
        let assembler = self.archive.assembler.clone();
        let coordinator = Coordinator::new(coordinator::Parts {
            archive: self.settings.repository.archive.clone(),
            key: self.secrets.key.clone(),
            specs: self.settings.replica_specs(),
            standing: Arc::clone(&self.archive.standing),
            limits: archive_decisions::store::StoreLimits::default(),
            admin: self.archive.admin.clone(),
            copier: Copier::new(self.transfers.clone(), assembler),
            transfers: self.transfers.clone(),
            clock: self.daemon.clock.clone(),
            chance: self.daemon.chance.clone(),
            messages,
            anomalies: Arc::clone(&self.archive.anomalies),
            retries: retries.clone(),
        });
        let runtime = Handle::current();
        let stop = self.daemon.tasks.stop_token();
        self.daemon.tasks.spawn_blocking("coordinator", move || {
            coordinator.run_rounds(&runtime, &stop)
        });
        retries
    }

    /// Starts the repairs and checks that no person asks for. Returns the states of the volumes that these have seen.
    fn checks(&self, preserver: &Preserver) -> Result<Arc<Volumes>, StartError> {
        let volumes = Arc::new(Volumes::open(&self.archive.admin).map_err(data_failed)?);
        let automatic = Automatic::new(preserver.clone(), Arc::clone(&volumes));
        self.daemon.workers.spawn_worker(automatic)?;
        let schedule = Schedule::new(preserver.clone(), &self.settings.checks);
        let schedule = schedule.map_err(data_failed)?;
        self.daemon.workers.spawn_worker(schedule)?;
        Ok(volumes)
    }

    /// Resumes the batch jobs, and runs them.
    async fn batches(&self) -> Result<Batches, StartError> {
        let settings = self.settings.batch.clone();
        let keep = settings.keep.duration();
        let patience = settings.patience.duration();
        let ledger = JobLedger::open(self.archive.admin.clone()).map_err(data_failed)?;
        let clock = self.daemon.clock.clone();
        let jobs = archive_jobs::JobTable::new(ledger, clock.clone(), keep, patience);
        let parts = archive_jobs::BatchParts {
            jobs,
            standing: self.archive.standing.standing_view(),
            replicas: Arc::clone(&self.archive.calls.replicas),
            clock,
            meters: archive_jobs::Meters::new(&self.daemon.metrics)?,
            settings,
            data: self.settings.repository.data.clone(),
        };
        let opened = spawn_blocking(move || Batches::open(parts)).await?;
        let batches = opened.map_err(data_failed)?;
        let retention = RetentionWorker(batches.clone());
        self.daemon.workers.spawn_worker(retention)?;
        let own = batches.clone();
        let tasks = self.daemon.tasks.clone();
        self.daemon.tasks.spawn("batch", async move {
            own.dispatch_jobs(tasks).await;
        });
        Ok(batches)
    }
}
