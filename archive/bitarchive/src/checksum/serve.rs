//! The start of a checksum replica.

use std::net::SocketAddr;
use std::sync::Arc;

use archive_daemon::{Daemon, ReloadWorker};
use archive_rpc::Role;
use tokio::task::spawn_blocking;

use super::metrics::MetricsWorker;
use super::replica::{ChecksumReplica, ChecksumReplicaOptions};
use super::settings::Settings;
use crate::rpc::checksum::{Door, services};
use crate::serve::{StartError, count_refusals, trust};

/// Opens the table, listens, and returns the address. The replica lives in the daemon's tasks until their stop.
///
/// # Errors
///
/// Returns the [`StartError`] that people have to mend first.
pub async fn serve(settings: Settings, daemon: Daemon) -> Result<SocketAddr, StartError> {
    settings.check()?;
    let own = settings.checksum_replica;
    let credentials = settings.rpc.credentials(daemon.clock.now().into())?;
    let identity = credentials.identity();
    let is_whole = identity.is(Role::Monitor, own.replica.as_str())
        && identity.is(Role::Node, own.node.as_str());
    if !is_whole {
        return Err(StartError::BothIdentities {
            found: identity.to_string(),
            replica: own.replica,
            node: own.node,
        });
    }
    count_refusals(&credentials, &daemon)?;
    let options = ChecksumReplicaOptions {
        node: own.node,
        replica: own.replica,
        data: own.data,
        reserve: own.reserve.bytes(),
        removals_per_hour: own.removals_per_hour,
        trust: trust("checksum_replica.trust", own.trust)?,
    };
    let opened = spawn_blocking(move || ChecksumReplica::open(options)).await?;
    let replica = Arc::new(opened?);

    let (listener, address) = archive_rpc::bind(&settings.rpc.listen).await?;
    let limits = settings.rpc.limits(settings.daemon.drain.duration() / 2);
    let instance = replica.replica().as_str();
    daemon.workers.spawn_instance(
        instance,
        MetricsWorker::new(Arc::clone(&replica), &daemon.metrics)?,
    )?;
    let renewed = credentials.clone();
    let reload = ReloadWorker::new(daemon.clock.clone(), move |now| {
        Ok(renewed.reload(now.into())?)
    });
    daemon.workers.spawn_instance(instance, reload)?;

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
    tracing::info!(replica = %replica.replica(), %address, "the checksum replica listens");
    let stopped = daemon.tasks.stop().cancelled_owned();
    let server = archive_rpc::Server::new(services(door), credentials).within(limits);
    let serving = server.serve_and_log(listener, stopped);
    daemon.tasks.spawn("rpc", serving);
    Ok(address)
}
