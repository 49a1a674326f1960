//! The proxy mode of the viewer: browsers and tools set it as their HTTP proxy, and see the archive instead of the web.
//!
//! Owns the listener ([`serve_proxy`]), the tunnels that end in it, the authority that makes certificates for archived hosts,
//! the control hosts, and what is remembered of each client. Asks the archive through one trait, [`ProxiedArchive`],
//! behind which the part `viewer` decides who sees what, as it does for all its routes.
//!
//! The rooms in reading order:
//!
//! - `archive`: the trait; [`settings`]: the section `[proxy]`;
//! - [`connections`]: connections and their limits, for all listeners of the viewer;
//! - `listener`, `prefixed`, `body`: tunnels, bodies and their limits;
//! - `requested`: which URL a request means; [`reading`]: all that its head says; `server`: its answer; `page`: answers
//!   in words;
//! - `control`: commands, and which callers may use them;
//! - `clients`, `missing`: views and lists of missing URLs, bounded and forgotten in time;
//! - `authority`: the key and the certificate that people install.
//!
//! Invariants: nothing here can connect to anything; an archived page has no origin of the control hosts and cannot
//! call their commands; the authority is the proxy's own and never that of the environment.
//!
//! Not promised: that a client is who it says. Views and lists are conveniences, and access is decided by the address
//! alone.

mod archive;
mod authority;
mod body;
mod clients;
pub mod connections;
mod control;
mod listener;
mod missing;
mod page;
mod prefixed;
pub mod reading;
mod requested;
mod server;
pub mod settings;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::run::bind_setting;
use archive_daemon::{Daemon, StartError, Worker, WorkerStep, WorkerStepError};
use archive_rpc::browser::{BrowserAcceptor, BrowserOptions, MakeCertificate};

pub use archive::{CaptureAnswer, CaptureRequest, NoAnswer, ProxiedArchive, StoredRequest};
pub use authority::AuthorityError;
use authority::ProxyAuthority;
use clients::{ClientLimits, Clients};
use connections::{BrowserListener, ConnectionLimits};
use server::{ProxyServer, ServerParts};
pub use settings::ProxySettings;

/// The pause between two searches for idle clients.
const EXPIRY: Duration = Duration::from_mins(5);

/// Starts a proxy and returns its address. It runs in the daemon's tasks until their stop; answers under way may take
/// `drain` then.
///
/// # Errors
///
/// Fails when the settings or the authority cannot be used, or the address is taken.
pub async fn serve_proxy<A: ProxiedArchive>(
    settings: ProxySettings,
    archive: Arc<A>,
    drain: Duration,
    daemon: &Daemon,
) -> Result<SocketAddr, StartError> {
    settings.check()?;
    let known = archive.collections();
    if let Some(name) = settings
        .collection
        .as_ref()
        .filter(|name| !known.contains(name))
    {
        return Err(ProxySettings::unknown_collection(name).into());
    }
    let clock = daemon.clock.clone();
    let chance = daemon.chance.clone();
    let authority = Arc::new(
        ProxyAuthority::open(&settings.data, clock, chance)
            .map_err(|error| StartError::of_setting("proxy.data", error))?,
    );
    let maker: Arc<dyn MakeCertificate> = Arc::<ProxyAuthority>::clone(&authority);
    let options = BrowserOptions {
        handshake: settings.head_time.duration(),
        ..BrowserOptions::default()
    };
    let tls = Arc::new(
        BrowserAcceptor::making_certificates(maker, options)
            .map_err(|error| StartError::failed("set up TLS", error))?,
    );
    let in_bytes =
        |size: archive_daemon::ByteSize| usize::try_from(size.bytes()).unwrap_or(usize::MAX);
    let clients = Arc::new(Clients::new(ClientLimits {
        clients: settings.clients.get(),
        urls: settings.missing.get(),
        bytes: in_bytes(settings.missing_bytes),
        idle: settings.idle.duration(),
    }));
    let server = Arc::new(ProxyServer::new(ServerParts {
        archive,
        authority,
        clients: Arc::clone(&clients),
        collection: settings.collection,
        longest_url: in_bytes(settings.longest_url),
        clock: daemon.clock.clone(),
        connections: daemon.metrics.gauge(
            "viewer_proxy_connections",
            "Connections to the proxy that are open",
            &[],
        )?,
        misses: daemon.metrics.counter(
            "viewer_proxy_missing_total",
            "Requests to the proxy for what is not in the archive",
            &[],
        )?,
    }));
    let (listener, address) = bind_setting("proxy.listen", settings.listen).await?;
    daemon.workers.spawn_worker(ExpiryWorker {
        clients,
        clock: daemon.clock.clone(),
    })?;
    let listener = BrowserListener {
        listener,
        limits: ConnectionLimits {
            connections: settings.connections.get(),
            longest_target: in_bytes(settings.longest_url),
            head_time: settings.head_time.duration(),
            unread: settings.unread_time.duration(),
            drain,
        },
        open: server.connections().clone(),
        stop: daemon.tasks.stop_token(),
    };
    daemon
        .tasks
        .spawn("proxy", listener::serve_listener(listener, tls, server));
    tracing::info!(%address, "the proxy listens");
    Ok(address)
}

/// The job that forgets idle clients.
struct ExpiryWorker {
    clients: Arc<Clients>,
    clock: archive_daemon::Clock,
}

impl Worker for ExpiryWorker {
    const NAME: &'static str = "proxy-clients";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        self.clients.expire_clients(self.clock.instant());
        Ok(WorkerStep::Idle(EXPIRY))
    }
}
