//! The foreman of one bitarchive replica: which nodes live, where a file goes or is, one sorted listing out of many.
//!
//! Owns the answers to: who is alive ([`nodes`]), where uploads go ([`placement`]), what an answer lacks ([`gap`]). It
//! never sees a byte of a file, nor of what a batch job writes, and keeps nothing on disk; started anew it knows all
//! nodes after one heartbeat, and the nodes to miss as soon as the repository has asked for its state. Until then every
//! answer has a gap.
//!
//! The rooms in reading order:
//!
//! - pure: [`nodes`], [`placement`], [`listing`], [`gap`];
//! - [`mod@locate`] asks many nodes at once;
//! - `rpc` is the door: the service `Replica`, and the client of the service `Node`;
//! - [`settings`], `metrics`, `watch`: as in every part.
//!
//! Not promised: that an answer is complete. What it lacks is named, and a node that is known and silent is named
//! permanently; leaving out the nodes that were retired is the repository's affair.

pub mod gap;
pub mod listing;
pub mod locate;
mod metrics;
pub mod nodes;
pub mod placement;
mod rpc;
pub mod settings;
mod watch;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use archive_daemon::metrics::MetricError;
use archive_daemon::worker::DuplicateWorker;
use archive_daemon::{Daemon, ReloadWorker};
use archive_model::ReplicaId;
use archive_rpc::{CredentialsError, Role, ServeError};
use parking_lot::Mutex;

use metrics::Instruments;
use nodes::Nodes;
pub use settings::{InvalidSettings, MonitorSettings, Settings};
use watch::Watch;

/// The reason why a monitor does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings contradict each other.
    #[error(transparent)]
    Settings(#[from] InvalidSettings),
    /// The certificate, the key or the authorities cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The certificate is somebody else's: nodes would not talk to it.
    #[error(
        "the certificate is {found}, not monitor/{replica}; issue one with `holdfast pki issue`"
    )]
    Identity {
        /// The holder of the certificate.
        found: String,
        /// The replica this monitor is set to.
        replica: ReplicaId,
    },
    /// The monitor cannot listen on its address.
    #[error(transparent)]
    Bind(#[from] ServeError),
    /// A bug: the instruments are called as others are.
    #[error(transparent)]
    Metrics(#[from] MetricError),
    /// A second monitor of the same replica in this process.
    #[error(transparent)]
    Duplicate(#[from] DuplicateWorker),
}

/// Starts a monitor, and returns the address on which it listens. The monitor lives in the daemon's tasks until their
/// stop.
///
/// # Errors
///
/// [`StartError`] if the settings, the certificate or the address cannot be used.
pub async fn serve(settings: Settings, daemon: Daemon) -> Result<SocketAddr, StartError> {
    let monitor = settings.monitor;
    monitor.check()?;
    let replica = monitor.replica.clone();
    let credentials = settings.rpc.credentials(daemon.clock.now().into())?;
    let identity = credentials.identity();
    if !identity.is(Role::Monitor, replica.as_str()) {
        return Err(StartError::Identity {
            found: identity.to_string(),
            replica,
        });
    }
    let instruments = Instruments::new(&daemon.metrics, &replica)?;
    let refused = daemon.metrics.refusals(&identity.to_string())?;
    credentials.on_refusal(move |what| {
        what.choose(&refused.calls, &refused.connections).inc();
    });
    let (listener, address) = archive_rpc::bind(&settings.rpc.listen).await?;

    let nodes = Arc::new(Mutex::new(Nodes::new(monitor.silent_after.duration())));
    let watch = Watch {
        nodes: Arc::clone(&nodes),
        before: BTreeMap::new(),
        instruments: instruments.clone(),
        clock: daemon.clock.clone(),
        pause: monitor.heartbeat.duration(),
    };
    daemon.workers.spawn_instance(replica.as_str(), watch)?;
    let own = credentials.clone();
    let reload = ReloadWorker::new(daemon.clock.clone(), move |now| Ok(own.reload(now.into())?));
    daemon.workers.spawn_instance(replica.as_str(), reload)?;

    // Calls are cut before the tasks are, so that a client that does not read ends as a call and not as a failure.
    let limits = settings.rpc.limits(settings.daemon.drain.duration() / 2);
    let stop = daemon.tasks.stop();
    let client = rpc::NodesClient::new(credentials.clone(), limits.with_independent_streams());
    let door = rpc::Door {
        settings: monitor,
        clock: daemon.clock.clone(),
        stop: stop.clone(),
        nodes,
        placements: Mutex::default(),
        client: Arc::new(client),
        listings: rpc::Door::listing_places(),
        instruments,
    };
    let services = rpc::services(door);
    let stopped = stop.cancelled_owned();
    let server = archive_rpc::Server::new(services, credentials).within(limits);
    let serving = server.serve_and_log(listener, stopped);
    daemon.tasks.spawn("rpc", serving);
    tracing::info!(%replica, %address, "the monitor listens");
    Ok(address)
}
