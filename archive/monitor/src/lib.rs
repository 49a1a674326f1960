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

use archive_daemon::{Daemon, StartError, Starting};
use archive_part::Part;
use parking_lot::Mutex;

use metrics::Instruments;
use nodes::Nodes;
pub use settings::{MonitorSettings, Settings};
use watch::Watch;

/// Starts a monitor, and returns the address on which it listens. The monitor lives in the daemon's tasks until their
/// stop.
///
/// # Errors
///
/// [`StartError`] if the settings, the certificate or the address cannot be used.
pub fn serve_monitor(settings: Settings, daemon: Daemon) -> Starting<SocketAddr> {
    Box::pin(start(settings, daemon))
}

async fn start(settings: Settings, daemon: Daemon) -> Result<SocketAddr, StartError> {
    let part = Part::open(&settings, &daemon)?;
    let monitor = settings.monitor;
    let replica = monitor.replica.clone();
    let instruments = Instruments::new(&daemon.metrics, &replica)?;
    let nodes = Arc::new(Mutex::new(Nodes::new(monitor.silent_after.duration())));
    let watch = Watch {
        nodes: Arc::clone(&nodes),
        before: BTreeMap::new(),
        instruments: instruments.clone(),
        clock: daemon.clock.clone(),
        pause: monitor.heartbeat.duration(),
    };
    daemon.workers.spawn_instance(replica.as_str(), watch)?;
    let client_limits = part.limits.with_independent_streams();
    let client = rpc::NodesClient::new(part.credentials.clone(), client_limits);
    let door = rpc::Door {
        settings: monitor,
        clock: daemon.clock.clone(),
        stop: daemon.tasks.stop_token(),
        nodes,
        placements: Mutex::default(),
        client: Arc::new(client),
        listings: rpc::Door::listing_places(),
        instruments,
    };
    part.listen(rpc::monitor_services(door)).await
}
