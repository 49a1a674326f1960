//! A crawl: seeds go in, archive files and a crawl log come out.
//!
//! Owns the course of one crawl: one thread decides what is fetched next and records what came of it; fetches and the work on
//! them go on beside it. A connection takes its next URI only when the last one is recorded. Knows no archive and no job.

mod control;
mod hosts;
mod outcome;
mod owner;
mod side;

use std::path::PathBuf;
use std::sync::Arc;

use archive_daemon::clock::{Chance, Clock, NoChance};
use archive_daemon::thread::{OwnThread, ThreadError};
use harvest_model::Job;
use harvest_policy::traps::InvalidTrap;
use hickory_resolver::net::NetError;
use tokio::sync::{Semaphore, mpsc, watch};

pub use self::control::{Control, ControlAnswer, ControlRequest, CrawlNotice};
pub use self::outcome::{ConnectionSnapshot, CrawlEnd, CrawlOutcome, CrawlProgress};
use self::owner::Owner;
use self::side::Side;
use crate::archive_files::{ArchiveFileSettings, ClosedFile};
use crate::cookies::Cookies;
use crate::dns::Dns;
use crate::exchange::tls::{TlsClient, system_authorities};
use crate::fetch::Fetcher;
use crate::frontier::FrontierSettings;
use crate::login::Logins;
use crate::process::{KnownCaptures, ProcessError, Processor};
use crate::recorder::{Recorder, RecorderError, RecorderSettings};
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
    pub job: Arc<Job>,
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

/// The reason why a crawl cannot begin, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum CrawlError {
    /// The recorder: the disk, the frontier, an archive file.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// A fetched URI cannot be worked up.
    #[error("cannot work up {uri}: {source}")]
    Process {
        /// The URI.
        uri: String,
        /// The reason.
        source: ProcessError,
    },
    /// The settings of name servers.
    #[error("cannot ask name servers: {0}; name one that answers")]
    Dns(#[from] NetError),
    /// TLS.
    #[error("cannot make TLS connections: {0}")]
    Tls(#[from] rustls::Error),
    /// The thread of the recorder.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// The runtime of the recorder.
    #[error("cannot begin the recorder of the crawl: {0}")]
    Runtime(std::io::Error),
    /// No randomness.
    #[error(transparent)]
    Chance(#[from] NoChance),
    /// The list of public suffixes.
    #[error(transparent)]
    Suffixes(#[from] SuffixListError),
    /// The crawler traps of the order.
    #[error("the crawler traps of the order: {0}")]
    Traps(#[from] InvalidTrap),
}

impl CrawlError {
    /// Whether what a crawl has kept is damaged: it cannot be gone on with, and nothing was changed.
    pub const fn is_damage(&self) -> bool {
        match self {
            Self::Recorder(error) => error.is_damage(),
            Self::Process { .. }
            | Self::Dns(_)
            | Self::Tls(_)
            | Self::Thread(_)
            | Self::Runtime(_)
            | Self::Chance(_)
            | Self::Suffixes(_)
            | Self::Traps(_) => false,
        }
    }
}

/// A crawl that goes on, as its job sees it.
#[derive(Debug)]
pub struct Crawl {
    settings: CrawlSettings,
    clock: Clock,
    chance: Chance,
    control: mpsc::UnboundedReceiver<Control>,
    requests: mpsc::UnboundedReceiver<ControlRequest>,
    open: watch::Sender<bool>,
    closed: mpsc::UnboundedSender<ClosedFile>,
    notices: mpsc::UnboundedSender<CrawlNotice>,
    progress: watch::Sender<CrawlProgress>,
}

/// The ends of a crawl that its job holds.
#[derive(Debug)]
pub struct CrawlHandle {
    /// Takes requests that nobody waits for.
    pub control: mpsc::UnboundedSender<Control>,
    /// Takes requests, and answers each once it is durable.
    pub requests: mpsc::UnboundedSender<ControlRequest>,
    /// Gives what people should know while it goes on.
    pub notices: mpsc::UnboundedReceiver<CrawlNotice>,
    /// Says that the crawl has opened what an earlier process has left of it; it ends without a word if that is not possible.
    pub opened: watch::Receiver<bool>,
    /// Gives archive files as they are closed.
    pub closed: mpsc::UnboundedReceiver<ClosedFile>,
    /// Gives progress.
    pub progress: watch::Receiver<CrawlProgress>,
}

impl Crawl {
    /// A crawl with its handle.
    pub fn new(settings: CrawlSettings, clock: Clock, chance: Chance) -> (Self, CrawlHandle) {
        let (control, to_owner) = mpsc::unbounded_channel();
        let (requests, asked) = mpsc::unbounded_channel();
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
            open,
            closed: closed_sender,
            notices,
            progress,
        };
        let handle = CrawlHandle {
            control,
            requests,
            notices: to_job,
            opened,
            closed,
            progress: watched,
        };
        (crawl, handle)
    }

    /// Crawls until nothing is left, a limit is reached, or a person ends it. The last archive file is closed then, unless the
    /// crawl is suspended. Inside a runtime only: fetches run on it, the recorder on a thread of its own.
    ///
    /// # Errors
    ///
    /// [`CrawlError`]: what is recorded is whole, and the crawl can be gone on with.
    pub async fn run(self) -> Result<CrawlOutcome, CrawlError> {
        let Self {
            settings,
            clock,
            chance,
            control,
            requests,
            open,
            closed,
            notices,
            progress,
        } = self;
        let begin = clock.instant();
        let settings = Arc::new(settings);
        let scratch = settings.directory.join("scratch");
        archive_durable::directory::make(&settings.directory).map_err(RecorderError::from)?;
        archive_durable::directory::make_unsynced(&scratch).map_err(RecorderError::from)?;
        let tls = TlsClient::new(system_authorities())?;
        let order = &settings.job.order;
        let fetcher = Fetcher::new(
            order,
            &settings.version,
            tls,
            scratch.clone(),
            clock.clone(),
        );
        let servers: Vec<_> = order.dns.servers.iter().map(|server| server.0).collect();
        let dns = Dns::new(&servers)?;
        let suffixes = suffix_list(order)?;
        let scope = order.scope_for(&settings.job.seeds, &suffixes)?;
        let queues = order.queue_names(Arc::new(suffixes));
        let recorder_settings = RecorderSettings {
            state: settings.directory.join("state"),
            logs: settings.directory.join("logs"),
            files: ArchiveFileSettings {
                directory: settings.directory.join("warcs"),
                prefix: settings.job.archive_prefix(),
                host: settings.host.clone(),
                max_size: order.files.max_size.bytes(),
                compresses: order.files.compress,
                // The list may change from release to release, and with it what a domain is.
                warcinfo: format!(
                    "{}public-suffixes: {}\r\n",
                    settings.warcinfo,
                    queues.suffixes.version()
                ),
            },
            frontier: FrontierSettings {
                limits: order.queue_rules(),
                cost: order.queues.cost,
                connections: order.queues.connections.get().into(),
                fresh_key: chance.bytes()?,
                begin: clock.now(),
            },
            quarantine: order.quarantine(),
        };
        let thread = OwnThread::new("crawl-recorder");
        let (opening_clock, opening_chance) = (clock.clone(), chance.clone());
        let opened = thread
            .run(move || Recorder::open(recorder_settings, opening_clock, opening_chance))
            .await?;
        let (recorder, taken_back) = opened?;
        open.send_replace(true);
        let hasher = recorder.frontier().hasher();
        let mut processor = Processor::new(order, scope, queues, hasher, scratch, chance.clone());
        processor.known.clone_from(&settings.known);
        let processor = Arc::new(processor);
        let (orders, taken) = mpsc::unbounded_channel();
        let (events, happened) = mpsc::unbounded_channel();
        let side = Side {
            fetcher,
            dns,
            questions: Semaphore::new(MOST_QUESTIONS),
            processor: Arc::clone(&processor),
            clock: clock.clone(),
            cookies: Cookies::new(&order.http, clock.clone()),
            logins: Logins::new(Arc::clone(&settings.job), chance.clone()),
            job: Arc::clone(&settings.job),
            chance,
            events,
        };
        let owner = Owner::new(
            recorder,
            &settings,
            processor,
            clock,
            owner::Channels {
                orders,
                events: happened,
                control,
                requests,
                closed,
                notices,
                progress,
            },
            begin,
        );
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(CrawlError::Runtime)?;
        let recording = thread.run(move || runtime.block_on(owner.run()));
        let side = Arc::new(side).serve(taken);
        let (ended, ()) = tokio::join!(recording, side);
        let outcome = ended??;
        Ok(CrawlOutcome {
            taken_back,
            ..outcome
        })
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "hosts of tests are nobody's tasks"
)]
mod tests;
