//! The part `viewer`: the replay listener, where captures are looked up and replayed, and the page host, where people
//! find them.
//!
//! Owns the two listeners ([`serve_viewer`]), and all that is needed to ask the index, the archive and the rules with each
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
//! - `listener` (connections and their limits), [`serve_viewer`] (the start of all of it).
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

use archive_client::{ArchiveReader, ClientLimits};
use archive_daemon::run::bind_setting;
use archive_daemon::settings::{InvalidSettings, Section, SettingsForm};
use archive_daemon::{Daemon, DaemonSettings, Period, ReloadWorker, StartError, Starting};
use archive_part::{Part, PartSettings, read_trust_file};
use archive_proof::TrustFile;
use archive_rpc::browser::{BrowserAcceptor, BrowserOptions, SiteFiles, UnknownHosts};
use archive_rpc::{Role, RpcSettings, Rules, Services};
use index_client::{IndexClient, IndexLimits};
use jiff::Timestamp;
use viewer_proxy::ProxySettings;
use viewer_proxy::connections::ConnectionLimits;

use collections::Collections;
pub use collections::RulesError;
use listener::SiteListener;
use metrics::Instruments;
pub use pages::TextsError;
use pages::{PageHost, PageParts};
use records::Records;
pub use server::WorkerScriptError as ServiceWorkerError;
use server::{Server, ServerParts, WorkerScript};
use settings::{
    AccessSettings, CollectionSettings, EmbargoSettings, NetworkSettings, PeriodSettings,
    ReplaySettings, ViewerSettings,
};
pub use settings::{Settings, WebSettings};

impl PartSettings for Settings {
    const PART: &'static str = "viewer";
    const FORM: SettingsForm = SettingsForm {
        section: "viewer",
        sections: &[
            Section::section_of::<Self>(""),
            Section::section_of::<DaemonSettings>("daemon"),
            Section::section_of::<RpcSettings>("rpc"),
            Section::section_of::<ViewerSettings>("viewer"),
            Section::section_of::<ReplaySettings>("replay"),
            Section::section_of::<WebSettings>("web"),
            Section::section_of::<ProxySettings>("proxy"),
            Section::section_of::<AccessSettings>("access"),
            Section::section_of::<NetworkSettings>("access.network"),
            Section::section_of::<CollectionSettings>("collection"),
            Section::section_of::<EmbargoSettings>("collection.embargo"),
            Section::section_of::<PeriodSettings>("collection.embargo.newer"),
            Section::section_of::<PeriodSettings>("collection.embargo.older"),
        ],
        example: r#"
[rpc]
listen = "127.0.0.1:7405"
certificate = "pki/viewer.pem"
key = "pki/viewer.key"
authorities = "pki/authorities.pem"

[viewer]
repository = "127.0.0.1:7401"
index = "127.0.0.1:7407"
trust = "trust.json"

[web]
url = "http://localhost:7410"

[proxy]
listen = "127.0.0.1:7409"
data = "proxy"

[[access.network]]
network = "10.0.0.0/8"
group = "staff"

[[collection]]
name = "all"

[collection.embargo]
newer = { years = 1 }
older = { days = 1 }
"#,
    };

    fn daemon(&self) -> &DaemonSettings {
        &self.daemon
    }

    fn rpc(&self) -> &RpcSettings {
        &self.rpc
    }

    fn holders(&self) -> Vec<(Role, Option<&str>)> {
        vec![(Role::Viewer, None)]
    }

    fn check_values(&self) -> Result<(), InvalidSettings> {
        self.check()
    }

    fn check_files(&self, now: Timestamp) -> Result<(), StartError> {
        OpenFiles::open(self, now).map(drop)
    }
}

/// What the files hold that the settings name.
struct OpenFiles {
    collections: Collections,
    trust: Arc<TrustFile>,
    worker: WorkerScript,
    replay_tls: Option<Arc<BrowserAcceptor>>,
    pages_tls: Option<Arc<BrowserAcceptor>>,
}

impl OpenFiles {
    fn open(settings: &Settings, now: Timestamp) -> Result<Self, StartError> {
        let ReplaySettings {
            certificate,
            key,
            head_time,
            service_worker,
            ..
        } = &settings.replay;
        let worker = WorkerScript::open_script(service_worker.as_deref())
            .map_err(|error| StartError::of_setting("replay.service_worker", error))?;
        let pages_tls = match &settings.web {
            Some(web) => open_acceptor(
                "web",
                web.certificate.as_ref(),
                web.key.as_ref(),
                web.head_time,
                now,
            )?,
            None => None,
        };
        Ok(Self {
            collections: Collections::open(&settings.all_collections())?,
            trust: Arc::new(read_trust_file("viewer.trust", &settings.viewer.trust)?),
            worker,
            replay_tls: open_acceptor(
                "replay",
                certificate.as_ref(),
                key.as_ref(),
                *head_time,
                now,
            )?,
            pages_tls,
        })
    }
}

/// Starts a viewer and returns the address of its replay listener. It runs in the daemon's tasks until their stop.
///
/// # Errors
///
/// Fails when the settings, rules or certificates cannot be used, or an address is taken.
pub fn serve_viewer(settings: Settings, daemon: Daemon) -> Starting<SocketAddr> {
    Box::pin(start(settings, daemon))
}

async fn start(settings: Settings, daemon: Daemon) -> Result<SocketAddr, StartError> {
    let part = Part::open(&settings, &daemon)?;
    let files = OpenFiles::open(&settings, daemon.clock.now())?;
    let visitors = settings.visitor_settings()?;
    let instruments = Instruments::new(&daemon.metrics)?;
    let replay = settings.replay.clone();
    let peers = &settings.viewer;
    let repository = part.connect("viewer.repository", &peers.repository, Role::Repository)?;
    let index = part.connect("viewer.index", &peers.index, Role::Index)?;
    let archive = ArchiveReader::new(repository, files.trust, ClientLimits::default());
    let mut parts = ServerParts {
        index: Arc::new(IndexClient::new(index, IndexLimits::default())),
        records: Records::new(
            Arc::new(archive),
            replay.records.get(),
            replay.unread_time.duration(),
        ),
        collections: files.collections.clone(),
        visitors,
        instruments,
        clock: daemon.clock.clone(),
        page_host: None,
        worker: files.worker,
    };
    let (listener, address) = bind_setting("replay.listen", replay.listen).await?;
    let drain = settings.daemon.drain.duration() / 2;
    let pages = match &settings.web {
        Some(web) => {
            let own = origin(replay.url.as_deref(), files.replay_tls.is_some(), address);
            Some(open_pages(web, &parts, files.pages_tls.clone(), own, drain).await?)
        }
        None => None,
    };
    parts.page_host = pages.as_ref().map(|pages| pages.origin.clone());
    // The viewer offers no service of its own: it answers questions about its health.
    let services = Services {
        routes: tonic::service::Routes::default(),
        rules: Rules::new(),
        descriptors: Vec::new(),
    };
    part.listen(services).await?;
    daemon
        .workers
        .spawn_worker(files.collections.reload_worker())?;
    let acceptors = [files.replay_tls.clone(), files.pages_tls];
    let acceptors: Vec<Arc<BrowserAcceptor>> = acceptors.into_iter().flatten().collect();
    let reload = ReloadWorker::new(daemon.clock.clone(), move |now| {
        for acceptor in &acceptors {
            acceptor.reload_certificates(now.into())?;
        }
        Ok(())
    });
    daemon.workers.spawn_instance("browsers", reload)?;
    let limits = ConnectionLimits {
        connections: replay.connections.get(),
        longest_target: usize::try_from(replay.longest_url.bytes()).unwrap_or(usize::MAX),
        head_time: replay.head_time.duration(),
        unread: replay.unread_time.duration(),
        drain,
    };
    let server = Arc::new(Server::new(parts, replay, address));
    if let Some(proxy) = settings.proxy {
        viewer_proxy::serve_proxy(proxy, Arc::clone(&server), drain, &daemon).await?;
    }
    let door = SiteListener {
        listener,
        tls: files.replay_tls,
        limits,
    };
    let serving = door.serve_site(server, daemon.tasks.stop_token());
    daemon.tasks.spawn("replay", serving);
    tracing::info!(%address, "replay listens");
    if let Some(pages) = pages {
        let serving = pages.door.serve_site(pages.host, daemon.tasks.stop_token());
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
    tls: Option<Arc<BrowserAcceptor>>,
    replay: String,
    drain: Duration,
) -> Result<OpenPages, StartError> {
    let (listener, address) = bind_setting("web.listen", web.listen).await?;
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
    let host = PageHost::new(parts, web.clone())
        .map_err(|error| StartError::failed("read the texts of the pages", error))?;
    Ok(OpenPages {
        origin,
        door: SiteListener {
            listener,
            tls,
            limits,
        },
        host: Arc::new(host),
    })
}

/// Returns the origin under which visitors reach a listener: as it is set, or else by its address.
fn origin(url: Option<&str>, has_tls: bool, address: SocketAddr) -> String {
    let scheme = if has_tls { "https" } else { "http" };
    url.map_or_else(|| format!("{scheme}://{address}"), str::to_owned)
}

/// Returns the door for browsers, where there is a certificate for it.
fn open_acceptor(
    section: &str,
    certificate: Option<&PathBuf>,
    key: Option<&PathBuf>,
    handshake: Period,
    now: Timestamp,
) -> Result<Option<Arc<BrowserAcceptor>>, StartError> {
    let (Some(certificate), Some(key)) = (certificate, key) else {
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
    let acceptor = BrowserAcceptor::for_sites(files, UnknownHosts::First, options, now.into());
    let acceptor = acceptor
        .map_err(|error| StartError::of_setting(&format!("{section}.certificate"), error))?;
    Ok(Some(Arc::new(acceptor)))
}
