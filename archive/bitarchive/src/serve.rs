//! The start of a node as a process.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use archive_daemon::metrics::MetricError;
use archive_daemon::worker::DuplicateWorker;
use archive_daemon::{Daemon, ReloadWorker};
use archive_durable::{DiskError, read_state};
use archive_model::{NodeId, ReplicaId};
use archive_proof::TrustFile;
use archive_rpc::{ConnectError, Credentials, CredentialsError, Role, ServeError};
use tokio::task::{JoinError, spawn_blocking};

use crate::checksum::ChecksumTableError;
use crate::error::NodeError;
use crate::heartbeat::{DiskWorker, HeartbeatWorker};
use crate::metrics::{Instruments, MetricsWorker};
use crate::node::{EvidenceWorker, Node, NodeOptions, StrangerWorker};
use crate::reconcile::ReconcileReport;
use crate::rpc::{Door, Notifier, RunnerError, StartRunner, monitor_channel, services};
use crate::scrub::{Control, Scrub, ScrubContext};
use crate::settings::{InvalidSettings, Settings};

/// The reason why a node or a checksum replica does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting cannot work.
    #[error(transparent)]
    Settings(#[from] InvalidSettings),
    /// The certificate, the key or the authorities cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The certificate is that of another party: no monitor would believe its heartbeats.
    #[error("the certificate is {found}, not node/{node}; issue one with `holdfast pki issue`")]
    Identity {
        /// The identity in the certificate.
        found: String,
        /// The node of the settings.
        node: NodeId,
    },
    /// The certificate does not name both roles: the repository calls a checksum replica as the monitor and as the
    /// node.
    #[error(
        "the certificate is {found}, not monitor/{replica} and node/{node}; issue one with `holdfast pki issue`"
    )]
    BothIdentities {
        /// The identity in the certificate.
        found: String,
        /// The replica of the settings.
        replica: ReplicaId,
        /// The node of the settings.
        node: NodeId,
    },
    /// The table of record of a checksum replica cannot be used.
    #[error(transparent)]
    ChecksumTable(#[from] ChecksumTableError),
    /// The trust file is absent, or is not a trust file.
    #[error("{setting}: {}: {why}", .path.display())]
    Trust {
        /// The setting.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// The problem.
        why: String,
    },
    /// The disks or the catalog cannot be used.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The node cannot listen on its address.
    #[error(transparent)]
    Bind(#[from] ServeError),
    /// The address of the monitor is not an address.
    #[error("bitarchive.monitor: {0}")]
    Monitor(#[from] ConnectError),
    /// The process has a node of that name already.
    #[error(transparent)]
    Duplicate(#[from] DuplicateWorker),
    /// A bug: other instruments have the same names.
    #[error(transparent)]
    Metrics(#[from] MetricError),
    /// Batch jobs cannot be run.
    #[error(transparent)]
    Jobs(RunnerError),
    /// A system call failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A bug: opening the node panicked.
    #[error(transparent)]
    Join(#[from] JoinError),
}

/// Opens the node, listens, and returns the address. The node lives in the daemon's tasks until their stop. Its batch
/// jobs are run by the runner that `start_runner` makes.
///
/// # Errors
///
/// Returns the [`StartError`] that people have to mend first.
pub async fn serve(
    settings: Settings,
    daemon: Daemon,
    start_runner: StartRunner,
) -> Result<SocketAddr, StartError> {
    settings.check()?;
    let own = settings.bitarchive;
    let credentials = settings.rpc.credentials(daemon.clock.now().into())?;
    let identity = credentials.identity();
    if !identity.is(Role::Node, own.node.as_str()) {
        return Err(StartError::Identity {
            found: identity.to_string(),
            node: own.node,
        });
    }
    count_refusals(&credentials, &daemon)?;
    let options = NodeOptions {
        node: own.node.clone(),
        replica: own.replica.clone(),
        data: own.data,
        volumes: own.volumes,
        reserve: own.reserve.bytes(),
        trust: trust("bitarchive.trust", own.trust)?,
        attic: settings.attic,
    };
    let now = daemon.clock.now();
    let scrub = Arc::new(Control::open(&options.data, settings.scrub, now));
    let instruments = Instruments::new(&daemon.metrics, &own.node)?;
    let (node, found) = spawn_blocking(move || Node::open(options, now)).await??;
    let ReconcileReport {
        unchanged,
        added,
        missing,
        damaged,
        unexpected,
        foreign,
        manifests,
    } = found;
    tracing::info!(
        node = %own.node, unchanged, added, missing, damaged, unexpected, foreign, manifests,
        "the disks were reconciled with the catalog"
    );
    let node = Arc::new(node);

    let (listener, address) = archive_rpc::bind(&settings.rpc.listen).await?;
    let endpoint = own.endpoint.unwrap_or_else(|| address.to_string());
    let limits = settings.rpc.limits(settings.daemon.drain.duration() / 2);
    let clock = &daemon.clock;
    let workers = &daemon.workers;
    let id = own.node.as_str();
    let monitor = monitor_channel(&own.replica, &own.monitor, &credentials, &limits)?;
    let notifier = Arc::new(Notifier::new(&node, endpoint, monitor, clock));
    let heartbeat = HeartbeatWorker {
        node: own.node.clone(),
        notifier: Arc::clone(&notifier),
        heard: false,
    };
    workers.spawn_instance(id, heartbeat)?;
    let disks = DiskWorker {
        node: Arc::clone(&node),
        clock: clock.clone(),
        every: own.look,
        keep_uploads: own.keep_uploads,
    };
    workers.spawn_instance(id, disks)?;
    workers.spawn_instance(id, StrangerWorker::new(Arc::clone(&node.files), own.look))?;
    let renewed = credentials.clone();
    let reload = ReloadWorker::new(clock.clone(), move |now| Ok(renewed.reload(now.into())?));
    workers.spawn_instance(id, reload)?;
    spawn_keepers(&daemon, id, &node, &scrub, &instruments)?;

    let jobs = start_runner(&node, settings.batch_node, &daemon).map_err(StartError::Jobs)?;
    let door = Door {
        node,
        notifier,
        scrub,
        jobs,
        instruments,
        clock: clock.clone(),
        tasks: daemon.tasks.clone(),
        idle: own.idle.duration(),
    };
    let stop = daemon.tasks.stop().cancelled_owned();
    let server = archive_rpc::Server::new(services(door), credentials).within(limits);
    let serving = server.serve_and_log(listener, stop);
    daemon.tasks.spawn("rpc", serving);
    tracing::info!(node = %own.node, %address, "the node listens");
    Ok(address)
}

/// Starts what looks after the copies of a node: the watch of its catalog, the evidence in its attic, its metrics, its
/// scrub.
fn spawn_keepers(
    daemon: &Daemon,
    id: &str,
    node: &Arc<Node>,
    scrub: &Arc<Control>,
    instruments: &Instruments,
) -> Result<(), DuplicateWorker> {
    let clock = &daemon.clock;
    let workers = &daemon.workers;
    // A node that cannot write its catalog could answer for no file that it takes: it ends, and rebuilds the catalog at
    // the start.
    let watched = Arc::clone(node);
    daemon
        .tasks
        .spawn_watch("catalog", clock.clone(), move || watched.catalog.broken());
    let evidence = EvidenceWorker {
        attic: Arc::clone(&node.attic),
        clock: clock.clone(),
    };
    workers.spawn_instance(id, evidence)?;
    let show = MetricsWorker {
        node: Arc::clone(node),
        clock: clock.clone(),
        instruments: instruments.clone(),
    };
    workers.spawn_instance(id, show)?;
    let context = ScrubContext {
        node: Arc::clone(node),
        control: Arc::clone(scrub),
        clock: clock.clone(),
        instruments: instruments.clone(),
        stop: daemon.tasks.stop(),
    };
    workers.spawn_instance(id, Scrub::new(context, daemon.tasks.clone()))
}

/// Counts the calls and connections that the server refuses.
pub(crate) fn count_refusals(credentials: &Credentials, daemon: &Daemon) -> Result<(), StartError> {
    let identity = credentials.identity().to_string();
    let refused = daemon.metrics.refusals(&identity)?;
    credentials.on_refusal(move |what| {
        what.choose(&refused.calls, &refused.connections).inc();
    });
    Ok(())
}

pub(crate) fn trust(setting: &'static str, path: PathBuf) -> Result<TrustFile, StartError> {
    let missing = || StartError::Trust {
        setting,
        path: path.clone(),
        why: "there is no such file".to_owned(),
    };
    let text = read_state(&path)?.ok_or_else(missing)?;
    TrustFile::parse(&text).map_err(|error| StartError::Trust {
        setting,
        path,
        why: error.to_string(),
    })
}
