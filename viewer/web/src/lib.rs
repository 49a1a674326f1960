//! The part `viewer`: the replay listener, where captures are looked up and replayed, and the page host, where people
//! find them.
//!
//! Owns the two listeners ([`serve`]), and all that is needed to ask the index, the archive and the rules with each
//! request. Decisions are made in `viewer-replay`; this crate waits, streams and limits.
//!
//! The rooms in reading order, from those that use no other one to the listeners:
//!
//! - [`settings`], `metrics` (as in every part), `visitors` (who asks), `answer` (errors in words);
//! - `collections` (which captures are in which collection, and who sees them);
//! - `records` (proven bytes of the archive in, heads and bodies out);
//! - `server` (one request to the replay listener in, one answer out): its modules are the routes, and
//!   `server::proxied` is the same archive for the proxy, which is a crate of its own and asks by one trait;
//! - `pages` (one request to the page host in, one page out): it says how a page is added;
//! - `listener` (connections and their limits), [`serve`] (the start of all of it).
//!
//! Invariants: every route asks the one access decision; no answer sets a cookie; an answer that breaks off never looks
//! complete; what is down is 503 and never 404; nothing here can fetch anything from the web; pages and replay are
//! never on one host.

mod answer;
mod collections;
mod listener;
mod metrics;
mod pages;
mod records;
mod server;
pub mod settings;
mod visitors;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use archive_client::client_file::read_trust_file;
use archive_client::{ClientFileError, ClientLimits, Reader};
use archive_daemon::metrics::MetricError;
use archive_daemon::worker::DuplicateWorker;
use archive_daemon::{Clock, Daemon, Period, ReloadWorker};
use archive_rpc::browser::{BrowserAcceptor, BrowserOptions, SiteError, SiteFiles, UnknownHosts};
use archive_rpc::{
    ConnectError, Credentials, CredentialsError, ExpectedIdentity, Limits, Role, Rules, ServeError,
    Services, connect_lazy,
};
use index_client::{IndexClient, IndexLimits};
use tokio::net::TcpListener;
use viewer_proxy::ProxyError;
use viewer_proxy::connections::ConnectionLimits;

use collections::Collections;
pub use collections::RulesError;
use listener::SiteListener;
use metrics::Instruments;
pub use pages::TextsError;
use pages::{PageHost, PageParts};
use records::Records;
pub use server::WorkerError as ServiceWorkerError;
use server::{Server, ServerParts, WorkerScript};
pub use settings::{InvalidSettings, Settings, WebSettings};

/// The reason why a viewer does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings contradict each other.
    #[error(transparent)]
    Settings(#[from] InvalidSettings),
    /// The rules of a collection cannot be used.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// A certificate, a key or the authorities cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The certificate for browsers cannot be used.
    #[error("cannot use {section}.certificate: {why}")]
    Site {
        /// The section of the listener.
        section: &'static str,
        /// The fault of the certificate.
        why: SiteError,
    },
    /// The service worker of the operator cannot be used.
    #[error(transparent)]
    ServiceWorker(#[from] ServiceWorkerError),
    /// The certificate is somebody else's: the archive and the index would not talk to it.
    #[error("the certificate is {0}, not viewer/<name>; issue one with `holdfast pki issue`")]
    Identity(String),
    /// The trust file cannot be used.
    #[error(transparent)]
    Trust(#[from] ClientFileError),
    /// The address of the repository or of the index is no address.
    #[error("cannot use viewer.{setting}: {why}")]
    Peer {
        /// The name of the setting.
        setting: &'static str,
        /// The fault of the address.
        why: ConnectError,
    },
    /// The address for questions about its health cannot be listened on.
    #[error(transparent)]
    Bind(#[from] ServeError),
    /// An address for browsers cannot be listened on.
    #[error("{section}.listen: cannot listen on {address}: {source}")]
    Listen {
        /// The section of the listener.
        section: &'static str,
        /// The address of the listener.
        address: SocketAddr,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The proxy does not start.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// A bug: the instruments are called as others are.
    #[error(transparent)]
    Metrics(#[from] MetricError),
    /// A bug: the texts of the pages cannot be used.
    #[error(transparent)]
    Texts(#[from] TextsError),
    /// A second viewer in this process.
    #[error(transparent)]
    Duplicate(#[from] DuplicateWorker),
}

/// Starts a viewer and returns the address of its replay listener. It runs in the daemon's tasks until their stop.
///
/// # Errors
///
/// Fails when the settings, rules or certificates cannot be used, or an address is taken.
pub async fn serve(settings: Settings, daemon: Daemon) -> Result<SocketAddr, StartError> {
    settings.check()?;
    let collections = Collections::open(&settings.all_collections())?;
    let visitors = settings.visitors()?;
    let credentials = settings.rpc.credentials(daemon.clock.now().into())?;
    let identity = credentials.identity();
    if !identity.has(Role::Viewer) {
        return Err(StartError::Identity(identity.to_string()));
    }
    let instruments = Instruments::new(&daemon.metrics)?;
    let replay = settings.replay.clone();
    let pair = (&replay.certificate, &replay.key);
    let tls = acceptor("replay", pair, replay.head_time, &daemon.clock)?;
    let limits = settings.rpc.limits(settings.daemon.drain.duration() / 2);
    let peer = |setting, address: &str, role| {
        let expected = ExpectedIdentity::role(role);
        connect_lazy(address, &credentials, &expected, &limits)
            .map_err(|why| StartError::Peer { setting, why })
    };
    let repository = peer("repository", &settings.viewer.repository, Role::Repository)?;
    let index = peer("index", &settings.viewer.index, Role::Index)?;
    let trust = Arc::new(read_trust_file(&settings.viewer.trust)?);
    let archive = Reader::new(repository, trust, ClientLimits::default());
    let mut parts = ServerParts {
        index: Arc::new(IndexClient::new(index, IndexLimits::default())),
        records: Records::new(
            Arc::new(archive),
            replay.records.get(),
            replay.unread_time.duration(),
        ),
        collections: collections.clone(),
        visitors,
        instruments,
        clock: daemon.clock.clone(),
        page_host: None,
        worker: WorkerScript::open(replay.service_worker.as_deref())?,
    };
    let (listener, address) = bind("replay", replay.listen).await?;
    let drain = settings.daemon.drain.duration() / 2;
    let pages = match &settings.web {
        Some(web) => {
            let own = origin(replay.url.as_deref(), tls.is_some(), address);
            Some(open_pages(web, &parts, own, drain).await?)
        }
        None => None,
    };
    parts.page_host = pages.as_ref().map(|pages| pages.origin.clone());
    watch_health(&settings, &daemon, credentials.clone(), limits).await?;
    daemon.workers.spawn(collections.reloading())?;
    let page_tls = pages.as_ref().and_then(|pages| pages.door.tls.clone());
    let doors: Vec<Arc<BrowserAcceptor>> = tls.iter().cloned().chain(page_tls).collect();
    let reload = ReloadWorker::new(daemon.clock.clone(), move |now| {
        credentials.reload(now.into())?;
        for door in &doors {
            door.reload(now.into())?;
        }
        Ok(())
    });
    daemon.workers.spawn(reload)?;
    let limits = ConnectionLimits {
        connections: replay.connections.get(),
        longest_target: usize::try_from(replay.longest_url.bytes()).unwrap_or(usize::MAX),
        head_time: replay.head_time.duration(),
        unread: replay.unread_time.duration(),
        drain,
    };
    let server = Arc::new(Server::new(parts, replay, address));
    if let Some(proxy) = settings.proxy {
        viewer_proxy::serve(proxy, Arc::clone(&server), drain, &daemon).await?;
    }
    let door = SiteListener {
        listener,
        tls,
        limits,
    };
    let serving = door.serve(server, daemon.tasks.stop());
    daemon.tasks.spawn("replay", serving);
    tracing::info!(%address, "replay listens");
    if let Some(pages) = pages {
        let serving = pages.door.serve(pages.host, daemon.tasks.stop());
        daemon.tasks.spawn("pages", serving);
    }
    Ok(address)
}

/// The page host, before it serves.
struct OpenPages {
    /// The origin under which visitors reach it.
    origin: String,
    door: SiteListener,
    host: Arc<PageHost>,
}

/// Opens the page host beside the replay host, which visitors reach at `replay`.
async fn open_pages(
    web: &WebSettings,
    parts: &ServerParts,
    replay: String,
    drain: Duration,
) -> Result<OpenPages, StartError> {
    let pair = (&web.certificate, &web.key);
    let tls = acceptor("web", pair, web.head_time, &parts.clock)?;
    let (listener, address) = bind("web", web.listen).await?;
    let origin = origin(web.url.as_deref(), tls.is_some(), address);
    tracing::info!(%address, %origin, "pages listen");
    let parts = PageParts {
        index: Arc::clone(&parts.index),
        collections: parts.collections.clone(),
        visitors: parts.visitors.clone(),
        instruments: parts.instruments.clone(),
        clock: parts.clock.clone(),
        origin: origin.clone(),
        replay,
    };
    let limits = ConnectionLimits {
        connections: web.connections.get(),
        longest_target: usize::try_from(web.longest_url.bytes()).unwrap_or(usize::MAX),
        head_time: web.head_time.duration(),
        unread: web.unread_time.duration(),
        drain,
    };
    Ok(OpenPages {
        origin,
        door: SiteListener {
            listener,
            tls,
            limits,
        },
        host: Arc::new(PageHost::new(parts, web.clone())?),
    })
}

/// Returns the origin under which visitors reach a listener: as it is set, or else by its address.
fn origin(url: Option<&str>, has_tls: bool, address: SocketAddr) -> String {
    let scheme = if has_tls { "https" } else { "http" };
    url.map_or_else(|| format!("{scheme}://{address}"), str::to_owned)
}

async fn bind(
    section: &'static str,
    listen: SocketAddr,
) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::Listen {
        section,
        address: listen,
        source,
    };
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Returns the door for browsers, where there is a certificate for it.
fn acceptor(
    section: &'static str,
    pair: (&Option<PathBuf>, &Option<PathBuf>),
    handshake: Period,
    clock: &Clock,
) -> Result<Option<Arc<BrowserAcceptor>>, StartError> {
    let (Some(certificate), Some(key)) = pair else {
        return Ok(None);
    };
    let files = vec![SiteFiles {
        certificate: certificate.clone(),
        key: key.clone(),
    }];
    let options = BrowserOptions {
        handshake: handshake.duration(),
        ..BrowserOptions::default()
    };
    let now = clock.now().into();
    let acceptor = BrowserAcceptor::for_sites(files, UnknownHosts::First, options, now)
        .map_err(|why| StartError::Site { section, why })?;
    Ok(Some(Arc::new(acceptor)))
}

/// Answers questions about health, over gRPC as every part does.
async fn watch_health(
    settings: &Settings,
    daemon: &Daemon,
    credentials: Credentials,
    limits: Limits,
) -> Result<(), StartError> {
    let refused = daemon
        .metrics
        .refusals(&credentials.identity().to_string())?;
    credentials.on_refusal(move |what| {
        what.choose(&refused.calls, &refused.connections).inc();
    });
    let (listener, address) = archive_rpc::bind(&settings.rpc.listen).await?;
    let services = Services {
        routes: tonic::service::Routes::default(),
        rules: Rules::new(),
        descriptors: Vec::new(),
    };
    let stop = daemon.tasks.stop();
    let stopped = stop.cancelled_owned();
    let server = archive_rpc::Server::new(services, credentials).within(limits);
    let serving = server.serve_and_log(listener, stopped);
    daemon.tasks.spawn("rpc", serving);
    tracing::info!(%address, "the viewer listens");
    Ok(())
}
