//! A crawl: seeds go in, archive files and a crawl log come out.
//!
//! Owns the course of one crawl: one thread decides what is fetched next and records what came of it; fetches and the
//! work on them run beside it. A connection takes its next URI only when the last one is recorded. Knows no archive and
//! no job.

mod control;
mod hosts;
mod log_line;
mod outcome;
mod owner;
pub mod view;
mod workers;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use archive_daemon::clock::{Chance, Clock, NoChance};
use archive_daemon::thread::{OwnThread, ThreadError};
use harvest_model::HarvestJob;
use harvest_model::order::TlsUse;
use harvest_policy::queue_name::QueueNaming;
use harvest_policy::scope::Scope;
use harvest_policy::traps::InvalidTrap;
use hickory_resolver::net::NetError;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, mpsc, watch};

pub use self::control::{
    ControlAnswer, ControlRequest, CrawlCommand, CrawlNotice, FailedUri, ViewRequest,
};
pub use self::outcome::{ConnectionSnapshot, CrawlEnd, CrawlOutcome, CrawlProgress};
use self::owner::{CrawlOwner, OwnerChannels, OwnerSetup};
use self::workers::CrawlWorkers;
use crate::archive_files::{ArchiveFileSettings, ClosedFile};
use crate::cookies::CrawlCookies;
use crate::dns::DnsResolver;
use crate::exchange::old_tls::OldTlsClient;
use crate::exchange::tls::{TlsClient, system_authorities};
use crate::fetch::{Fetcher, FetcherSettings};
use crate::frontier::FrontierSettings;
use crate::login::CrawlLogins;
use crate::process::{FetchProcessor, FetchProcessorSettings, KnownCaptures, ProcessError};
use crate::recorder::{CrawlRecorder, RecorderError, RecorderSettings};
use crate::suffixes::{SuffixListError, suffix_list};

/// The bytes that have to be free on the disk of a crawl for a fetch to begin (NetarchiveSuite's `minSpaceLeft`).
pub const MIN_FREE: u64 = 400_000_000;

/// The most questions to name servers at a time.
const MOST_QUESTIONS: usize = 64;

/// The settings of a crawl.
#[derive(Clone, Debug)]
pub struct CrawlSettings {
    /// The directory of the crawl: `state`, `logs`, `warcs` and `scratch` lie in it.
    pub directory: PathBuf,
    /// The seeds, and the order that says how they are crawled.
    pub job: Arc<HarvestJob>,
    /// The name of this machine, in the names of archive files.
    pub host: String,
    /// The version of the crawler, for its user agent.
    pub version: String,
    /// The lines of `warcinfo`.
    pub warcinfo: String,
    /// The captures of earlier jobs.
    pub known: Option<Arc<KnownCaptures>>,
    /// The bytes that have to be free on the disk for a fetch to begin: [`MIN_FREE`].
    pub min_free: u64,
}

/// The reason why a crawl cannot begin, or cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum CrawlError {
    /// The recorder: the disk, the frontier, an archive file.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// A fetched URI cannot be processed.
    #[error("cannot process the response of {uri}: {source}")]
    Process {
        /// The URI that was fetched.
        uri: String,
        /// The reason why the response cannot be processed.
        source: ProcessError,
    },
    /// The settings of name servers.
    #[error("cannot ask name servers: {0}; name one that answers")]
    Dns(#[from] NetError),
    /// TLS.
    #[error("cannot make TLS connections: {0}")]
    Tls(#[from] rustls::Error),
    /// TLS of old.
    #[error(
        "cannot use the system's OpenSSL: {0}; do without it by `http.tls = \"modern\"` in the order"
    )]
    OldTls(#[from] openssl::error::ErrorStack),
    /// The thread of the recorder.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// The runtime of the recorder.
    #[error("cannot start the recorder of the crawl: {0}")]
    Runtime(std::io::Error),
    /// No randomness.
    #[error(transparent)]
    Chance(#[from] NoChance),
    /// The list of public suffixes.
    #[error(transparent)]
    Suffixes(#[from] SuffixListError),
    /// The crawler traps of the order.
    #[error("cannot use the crawler traps of the order: {0}")]
    Traps(#[from] InvalidTrap),
}

impl CrawlError {
    /// Returns whether what a crawl has kept is damaged: it cannot be resumed, and nothing was changed.
    pub const fn is_damage(&self) -> bool {
        match self {
            Self::Recorder(error) => error.is_damage(),
            _ => false,
        }
    }
}

impl CrawlSettings {
    /// Makes the directory of the crawl, and the one for large responses in it. Returns the latter.
    fn make_directories(&self) -> Result<PathBuf, CrawlError> {
        let scratch = self.directory.join("scratch");
        archive_durable::directory::make_directory(&self.directory).map_err(RecorderError::from)?;
        archive_durable::directory::make_unsynced(&scratch).map_err(RecorderError::from)?;
        Ok(scratch)
    }

    fn fetcher(&self, scratch: &Path, clock: &Clock) -> Result<Fetcher, CrawlError> {
        let tls = TlsClient::new(system_authorities())?;
        let old_tls = match self.job.order.http.tls {
            TlsUse::Any => Some(OldTlsClient::new()?),
            TlsUse::Modern => None,
        };
        let settings = FetcherSettings {
            order: &self.job.order,
            version: &self.version,
            scratch: scratch.to_owned(),
        };
        Ok(Fetcher::new(settings, tls, old_tls, clock.clone()))
    }

    fn resolver(&self) -> Result<DnsResolver, CrawlError> {
        let servers = self.job.order.dns.servers.iter();
        let servers: Vec<_> = servers.map(|server| server.0).collect();
        Ok(DnsResolver::new(&servers)?)
    }

    /// Returns the rules by which URIs belong to the crawl, and the rule by which queues get their names.
    fn scope_and_queues(&self) -> Result<(Scope, QueueNaming), CrawlError> {
        let order = &self.job.order;
        let suffixes = suffix_list(order)?;
        let scope = order.scope_for(&self.job.seeds, &suffixes)?;
        Ok((scope, order.queue_names(Arc::new(suffixes))))
    }

    /// Returns the settings of the recorder. The key of the frontier is drawn anew; a frontier that is there keeps its
    /// own.
    fn recorder(
        &self,
        queues: &QueueNaming,
        clock: &Clock,
        chance: &Chance,
    ) -> Result<RecorderSettings, CrawlError> {
        let order = &self.job.order;
        Ok(RecorderSettings {
            state: self.directory.join("state"),
            logs: self.directory.join("logs"),
            files: ArchiveFileSettings {
                directory: self.directory.join("warcs"),
                prefix: self.job.archive_prefix(),
                host: self.host.clone(),
                max_size: order.files.max_size.bytes(),
                compresses: order.files.compress,
                // The list may change from release to release, and with it what a domain is.
                warcinfo: format!(
                    "{}public-suffixes: {}\r\n",
                    self.warcinfo,
                    queues.suffixes.version()
                ),
            },
            frontier: FrontierSettings {
                limits: order.queue_rules(),
                cost: order.queues.cost,
                connections: order.queues.connections.get().into(),
                fresh_key: chance.random_bytes()?,
                begin: clock.now(),
            },
            quarantine: order.quarantine(),
        })
    }
}

/// A crawl, as the job that runs it sees it.
#[derive(Debug)]
pub struct Crawl {
    settings: CrawlSettings,
    clock: Clock,
    chance: Chance,
    control: mpsc::UnboundedReceiver<CrawlCommand>,
    requests: mpsc::UnboundedReceiver<ControlRequest>,
    views: mpsc::UnboundedReceiver<ViewRequest>,
    open: watch::Sender<bool>,
    closed: mpsc::UnboundedSender<ClosedFile>,
    notices: mpsc::UnboundedSender<CrawlNotice>,
    progress: watch::Sender<CrawlProgress>,
}

/// The ends of a crawl that its job holds.
#[derive(Debug)]
pub struct CrawlHandle {
    /// The way for requests whose answer nobody waits for.
    pub control: mpsc::UnboundedSender<CrawlCommand>,
    /// The way for requests that are answered once they are durable.
    pub requests: mpsc::UnboundedSender<ControlRequest>,
    /// The way for questions of people who watch the crawl.
    pub views: mpsc::UnboundedSender<ViewRequest>,
    /// The notices for people while the crawl runs.
    pub notices: mpsc::UnboundedReceiver<CrawlNotice>,
    /// Becomes `true` once the crawl has opened what an earlier process has left of it; the channel closes before if
    /// that is not possible.
    pub opened: watch::Receiver<bool>,
    /// The archive files, each as soon as it is closed.
    pub closed: mpsc::UnboundedReceiver<ClosedFile>,
    /// The progress of the crawl.
    pub progress: watch::Receiver<CrawlProgress>,
}

impl Crawl {
    /// Returns a crawl with its handle.
    pub fn new(settings: CrawlSettings, clock: Clock, chance: Chance) -> (Self, CrawlHandle) {
        let (control, to_owner) = mpsc::unbounded_channel();
        let (requests, asked) = mpsc::unbounded_channel();
        let (views, watching) = mpsc::unbounded_channel();
        let (notices, to_job) = mpsc::unbounded_channel();
        let (open, opened) = watch::channel(false);
        let (closed_sender, closed) = mpsc::unbounded_channel();
        let (progress, watched) = watch::channel(CrawlProgress::default());
        let crawl = Self {
            settings,
            clock,
            chance,
            control: to_owner,
            requests: asked,
            views: watching,
            open,
            closed: closed_sender,
            notices,
            progress,
        };
        let handle = CrawlHandle {
            control,
            requests,
            views,
            notices: to_job,
            opened,
            closed,
            progress: watched,
        };
        (crawl, handle)
    }

    /// Crawls until nothing is left, a limit is reached, or a person ends it. The last archive file is closed then,
    /// unless the crawl is suspended. Inside a runtime only: fetches run on it, the recorder on a thread of its own.
    ///
    /// # Errors
    ///
    /// [`CrawlError`]: what is recorded is whole, and the crawl can be resumed.
    pub async fn run_crawl(self) -> Result<CrawlOutcome, CrawlError> {
        let Self {
            settings,
            clock,
            chance,
            control,
            requests,
            views,
            open,
            closed,
            notices,
            progress,
        } = self;
        let begin = clock.instant();
        let order = &settings.job.order;
        let scratch = settings.make_directories()?;
        let fetcher = settings.fetcher(&scratch, &clock)?;
        let dns = settings.resolver()?;
        let (scope, queues) = settings.scope_and_queues()?;
        let recorder = settings.recorder(&queues, &clock, &chance)?;
        let thread = OwnThread::new("crawl-recorder");
        let own_clock = clock.clone();
        let own_chance = chance.clone();
        let opened = thread
            .run_on_thread(move || CrawlRecorder::open(recorder, own_clock, own_chance))
            .await?;
        let (recorder, taken_back) = opened?;
        open.send_replace(true);
        let processor = Arc::new(FetchProcessor::new(FetchProcessorSettings {
            order,
            scope,
            queues,
            hasher: recorder.frontier().uri_hasher(),
            scratch,
            chance: chance.clone(),
            known: settings.known.clone(),
        }));
        let (commands, taken) = mpsc::unbounded_channel();
        let (events, happened) = mpsc::unbounded_channel();
        let room = Arc::new(AtomicU64::new(u64::MAX));
        let workers = CrawlWorkers {
            fetcher,
            dns,
            questions: Semaphore::new(MOST_QUESTIONS),
            processor: Arc::clone(&processor),
            clock: clock.clone(),
            cookies: CrawlCookies::new(&order.http, clock.clone()),
            room: Arc::clone(&room),
            logins: CrawlLogins::new(Arc::clone(&settings.job), chance.clone()),
            chance,
            events,
        };
        let setup = OwnerSetup {
            recorder,
            processor,
            clock,
            room,
            channels: OwnerChannels {
                commands,
                events: happened,
                control,
                requests,
                views,
                closed,
                notices,
                progress,
            },
            begin,
        };
        let owner = CrawlOwner::new(&settings, setup);
        let runtime = recorder_runtime()?;
        let recording = thread.run_on_thread(move || runtime.block_on(owner.run_owner()));
        let workers = Arc::new(workers).serve_commands(taken);
        let (ended, ()) = tokio::join!(recording, workers);
        Ok(CrawlOutcome {
            taken_back,
            ..ended??
        })
    }
}

/// Makes the runtime of the recorder's thread. Nothing runs on it but the owner of the crawl.
fn recorder_runtime() -> Result<Runtime, CrawlError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(CrawlError::Runtime)
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "hosts of tests are nobody's tasks"
)]
mod tests;
