//! The start of a checksum replica.

use std::net::SocketAddr;
use std::sync::Arc;

use archive_daemon::{Daemon, StartError, Starting};
use archive_part::{Part, read_trust_file};
use tokio::task::spawn_blocking;

use super::metrics::MetricsWorker;
use super::replica::{ChecksumReplica, ChecksumReplicaOptions};
use super::settings::Settings;
use crate::rpc::checksum::{Door, checksum_services};

/// Opens the table, listens, and returns the address. The replica lives in the daemon's tasks until their stop.
///
/// # Errors
///
/// Returns the [`StartError`] that people have to mend first.
pub fn serve_checksum_replica(settings: Settings, daemon: Daemon) -> Starting<SocketAddr> {
    Box::pin(start(settings, daemon))
}

async fn start(settings: Settings, daemon: Daemon) -> Result<SocketAddr, StartError> {
    let part = Part::open(&settings, &daemon)?;
    let own = settings.checksum_replica;
    let options = ChecksumReplicaOptions {
        node: own.node,
        replica: own.replica,
        data: own.data,
        reserve: own.reserve.bytes(),
        removals_per_hour: own.removals_per_hour,
        trust: read_trust_file("checksum_replica.trust", &own.trust)?,
    };
    let opened = spawn_blocking(move || ChecksumReplica::open(options)).await?;
    let replica = opened.map_err(|error| StartError::failed("open the record", error))?;
    let replica = Arc::new(replica);

    let (listener, address) = part.bind().await?;
    let instance = replica.replica().as_str();
    daemon.workers.spawn_instance(
        instance,
        MetricsWorker::new(Arc::clone(&replica), &daemon.metrics)?,
    )?;

    let watched = Arc::clone(&replica);
    daemon
        .tasks
        .spawn_watch("table", daemon.clock.clone(), move || {
            watched.table().broken()
        });
    let door = Door {
        replica: Arc::clone(&replica),
        clock: daemon.clock.clone(),
        tasks: daemon.tasks.clone(),
        idle: own.idle.duration(),
        endpoint: own.endpoint.unwrap_or_else(|| address.to_string()),
    };
    part.serve(listener, checksum_services(door));
    Ok(address)
}
