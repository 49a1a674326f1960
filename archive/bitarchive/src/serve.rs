//! The start of a node as a process.

use std::net::SocketAddr;
use std::sync::Arc;

use archive_daemon::worker::DuplicateWorker;
use archive_daemon::{Daemon, StartError, Starting};
use archive_part::{Part, read_trust_file};
use tokio::task::spawn_blocking;

use crate::heartbeat::{DiskWorker, HeartbeatWorker};
use crate::metrics::{Instruments, MetricsWorker};
use crate::node::{EvidenceWorker, Node, NodeOptions, StrangerWorker};
use crate::reconcile::ReconcileReport;
use crate::rpc::{Door, Notifier, StartRunner, monitor_channel, node_services};
use crate::scrub::{Scrub, ScrubContext, ScrubControl};
use crate::settings::Settings;

/// Opens the node, listens, and returns the address. The node lives in the daemon's tasks until their stop. Its batch
/// jobs are run by the runner that `start_runner` makes.
///
/// # Errors
///
/// Returns the [`StartError`] that people have to mend first.
pub fn serve_node(
    settings: Settings,
    daemon: Daemon,
    start_runner: StartRunner,
) -> Starting<SocketAddr> {
    Box::pin(start(settings, daemon, start_runner))
}

async fn start(
    settings: Settings,
    daemon: Daemon,
    start_runner: StartRunner,
) -> Result<SocketAddr, StartError> {
    let part = Part::open(&settings, &daemon)?;
    let own = settings.bitarchive;
    let options = NodeOptions {
        node: own.node.clone(),
        replica: own.replica.clone(),
        data: own.data,
        volumes: own.volumes,
        reserve: own.reserve.bytes(),
        trust: read_trust_file("bitarchive.trust", &own.trust)?,
        attic: settings.attic,
    };
    let now = daemon.clock.now();
    let scrub = Arc::new(ScrubControl::open(&options.data, settings.scrub, now));
    let instruments = Instruments::new(&daemon.metrics, &own.node)?;
    let opened = spawn_blocking(move || Node::open(options, now)).await?;
    let (node, found) = opened.map_err(|error| StartError::failed("open the node", error))?;
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

    let (listener, address) = part.bind().await?;
    let endpoint = own.endpoint.unwrap_or_else(|| address.to_string());
    let clock = &daemon.clock;
    let workers = &daemon.workers;
    let id = own.node.as_str();
    let monitor = monitor_channel(&own.replica, &own.monitor, &part.credentials, &part.limits)
        .map_err(|error| StartError::of_setting("bitarchive.monitor", error))?;
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
    spawn_keepers(&daemon, id, &node, &scrub, &instruments)?;

    let jobs = start_runner(&node, settings.batch_node, &daemon)
        .map_err(|error| StartError::failed("run batch jobs", error))?;
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
    part.serve(listener, node_services(door));
    Ok(address)
}

/// Starts what looks after the copies of a node: the watch of its catalog, the evidence in its attic, its metrics, its
/// scrub.
fn spawn_keepers(
    daemon: &Daemon,
    id: &str,
    node: &Arc<Node>,
    scrub: &Arc<ScrubControl>,
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
        stop: daemon.tasks.stop_token(),
    };
    workers.spawn_instance(id, Scrub::new(context, daemon.tasks.clone()))
}
