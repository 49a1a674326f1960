//! The life of a job, from its seeds to its receipts.
//!
//! Owns the order: crawl, and store each archive file as soon as it is closed; document; store the metadata file last. Whatever
//! fails, the job ends in a state that its directory shows, and can be gone on with from there.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use archive_client::{ClientError, Ingest};
use archive_daemon::clock::{Chance, Clock};
use archive_durable::DiskError;
use harvest_crawler::archive_files::ClosedFile;
use harvest_crawler::crawl::{
    Control, Crawl, CrawlEnd, CrawlError, CrawlOutcome, CrawlProgress, CrawlSettings,
};
use harvest_crawler::process::KnownCaptures;
use harvest_model::Order;
use harvest_model::order::{Http2Use, RobotsPolicy};
use harvest_reports::progress::{CrawlState, EndMessage, FILE_NAME as PROGRESS_LOG};
use harvest_reports::warcinfo::{REWRITTEN_HEADS, Warcinfo};
use index_dedup::{DedupError, DedupIndex};
use tokio::sync::{mpsc, watch};

use crate::actions;
use crate::directory::{JobDirectory, JobDirectoryError};
use crate::document::{DocumentError, document};
use crate::progress_log::ProgressLog;
use crate::report::{FileOutcome, JobReport, JobStatus, QuarantinedPattern};
use crate::upload::Uploader;

/// The program that writes archive files, in their `warcinfo`.
const SOFTWARE: &str = concat!("Holdfast/", env!("CARGO_PKG_VERSION"));

/// Why a job has broken off.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// Its directory.
    #[error(transparent)]
    Directory(#[from] JobDirectoryError),
    /// The disk.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The crawl. What it has recorded is whole.
    #[error("the crawl broke off: {0}")]
    Crawl(#[from] CrawlError),
    /// The index of earlier captures.
    #[error(transparent)]
    Dedup(#[from] DedupError),
    /// The documentation.
    #[error("cannot document the crawl: {0}")]
    Document(#[from] DocumentError),
}

/// The surroundings of a job.
#[derive(Clone)]
pub struct JobParts {
    /// The time.
    pub clock: Clock,
    /// Randomness.
    pub chance: Chance,
    /// The archive that takes the files; `None`: they stay in the directory.
    pub archive: Option<Arc<dyn Ingest>>,
    /// How long an archive that cannot take a file is waited for.
    pub patience: Duration,
    /// Whether local files stay after they are stored.
    pub keeps_files: bool,
    /// The name of this machine.
    pub host: String,
    /// The address of this machine, for the metadata file.
    pub address: IpAddr,
    /// The organisation that harvests, in the URIs of the metadata file.
    pub organization: String,
}

impl std::fmt::Debug for JobParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobParts")
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

/// An event of a job that people are told.
#[derive(Clone, Copy, Debug)]
pub enum Notice<'a> {
    /// A file is in the archive, and its receipt is kept.
    Stored(&'a str),
    /// The archive cannot take a file now.
    Waiting {
        /// The name of the file.
        name: &'a str,
        /// The answer of the archive.
        error: &'a ClientError,
        /// How long until it is asked again.
        pause: Duration,
    },
    /// A file is not stored.
    NotStored {
        /// The name of the file.
        name: &'a str,
        /// Why not.
        why: &'a str,
    },
    /// A request was taken.
    Action(&'a str),
    /// A request cannot be taken.
    ActionRefused {
        /// The name of its file.
        name: &'a str,
        /// Why not.
        why: &'a str,
    },
    /// Outcomes whose records had not reached the disk were taken back; their URIs are fetched again.
    TakenBack(u64),
}

/// Runs a job to its end, or goes on with it. `control` gives further requests; `progress` is told how far it is.
///
/// # Errors
///
/// [`JobError`]: the job can be gone on with.
pub async fn run_job(
    directory: &JobDirectory,
    parts: &JobParts,
    control: mpsc::UnboundedReceiver<Control>,
    progress: watch::Sender<CrawlProgress>,
    notify: &(dyn Fn(Notice<'_>) + Send + Sync),
) -> Result<JobReport, JobError> {
    let job = directory.job();
    let warcinfo = warcinfo(directory, parts);
    let settings = CrawlSettings {
        directory: directory.root().to_owned(),
        job: Arc::new(job.clone()),
        host: parts.host.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        warcinfo: warcinfo.block(),
        known: known_captures(&job.order)?,
    };
    let uploads = Uploads {
        directory,
        uploader: parts.archive.as_deref().map(|archive| Uploader {
            archive,
            directory,
            clock: &parts.clock,
            patience: parts.patience,
            keeps_files: parts.keeps_files,
            notify,
        }),
        notify,
    };
    let left = directory.closed_files(parts.clock.now())?;
    let (outcome, mut files) = if let Some(outcome) = directory.outcome()? {
        let mut files = Vec::new();
        for closed in &left {
            files.push(uploads.take(closed).await?);
        }
        (outcome, files)
    } else {
        crawl(&uploads, parts, settings, control, progress, left).await?
    };
    let status = if outcome.end == CrawlEnd::Suspended {
        JobStatus::Suspended
    } else {
        let metadata = document(directory, parts, &warcinfo, &outcome)?;
        files.push(uploads.store(&metadata).await);
        let all = parts.archive.is_none() || files.iter().all(|file| file.stored);
        if all {
            JobStatus::Done
        } else {
            JobStatus::Failed
        }
    };
    let domains = crate::document::domains(directory)?;
    let quarantined = outcome.quarantined.iter();
    let quarantined = quarantined.map(|(pattern, uris)| QuarantinedPattern {
        pattern: pattern.clone(),
        uris: *uris,
    });
    Ok(JobReport {
        job: job.id,
        directory: directory.root().display().to_string(),
        status,
        stop_reason: end_message(outcome.end)
            .map_or("Suspended", EndMessage::as_str)
            .to_owned(),
        objects: outcome.progress.fetched,
        bytes: outcome.progress.bytes,
        files,
        domains,
        quarantined: quarantined.collect(),
    })
}

/// Crawls, and stores each archive file as soon as it is closed.
/// `left`: files that an earlier process has closed.
async fn crawl(
    uploads: &Uploads<'_>,
    parts: &JobParts,
    settings: CrawlSettings,
    mut control: mpsc::UnboundedReceiver<Control>,
    progress: watch::Sender<CrawlProgress>,
    left: Vec<ClosedFile>,
) -> Result<(CrawlOutcome, Vec<FileOutcome>), JobError> {
    let directory = uploads.directory;
    let (crawl, handle) = Crawl::new(settings, parts.clock.clone(), parts.chance.clone());
    let log_path = directory.path("logs").join(PROGRESS_LOG);
    let mut log = ProgressLog::open(&log_path, parts.clock.clone())?;
    let requests = handle.control.clone();
    for request in actions::taken_seeds(directory)? {
        drop(requests.send(request));
    }
    // Requests that were there before it count from its begin.
    while let Ok(request) = control.try_recv() {
        drop(requests.send(request));
    }
    let pass_on = async {
        while let Some(request) = control.recv().await {
            // The crawl may have ended meanwhile.
            drop(requests.send(request));
        }
        std::future::pending::<()>().await;
    };
    let mut watched = handle.progress.clone();
    let tell = async {
        while watched.changed().await.is_ok() {
            let current = watched.borrow_and_update().clone();
            progress.send_replace(current);
        }
    };
    let mut closed = handle.closed;
    let store = async {
        let mut files = Vec::new();
        for file in &left {
            files.push(uploads.take(file).await?);
        }
        while let Some(file) = closed.recv().await {
            files.push(uploads.take(&file).await?);
        }
        Ok::<_, JobError>(files)
    };
    let acting = actions::watch(
        directory,
        &parts.clock,
        handle.control.clone(),
        uploads.notify,
    );
    let crawling = async {
        let followed = log.follow(handle.progress);
        let (outcome, files, (), followed) = tokio::join!(crawl.run(), store, tell, followed);
        followed?;
        let outcome = outcome?;
        Ok::<_, JobError>((outcome, files?))
    };
    let ended = tokio::select! {
        ended = crawling => ended,
        // A disk that cannot be read for requests is the disk that the crawl is on.
        stopped = acting => Err(match stopped {
            Ok(()) => unreachable_watch(),
            Err(error) => JobError::Disk(error),
        }),
        () = pass_on => Err(unreachable_watch()),
    };
    match &ended {
        Ok((outcome, _)) => {
            if outcome.taken_back > 0 {
                (uploads.notify)(Notice::TakenBack(outcome.taken_back));
            }
            let state = end_message(outcome.end).map_or(CrawlState::Paused, CrawlState::Ended);
            log.end(&outcome.progress, state)?;
            if outcome.end != CrawlEnd::Suspended {
                directory.keep_outcome(outcome)?;
            }
        }
        Err(_) => log.note(CrawlState::Ended(EndMessage::AbnormalExit))?,
    }
    ended
}

/// Opens the index of earlier captures that an order names, and reads all of it once: a changed byte would give a wrong place.
fn known_captures(order: &Order) -> Result<Option<Arc<KnownCaptures>>, DedupError> {
    let Some(path) = &order.dedup.file else {
        return Ok(None);
    };
    let index = DedupIndex::open(path)?;
    index.verify()?;
    let with_text = order.dedup.all;
    Ok(Some(Arc::new(KnownCaptures { index, with_text })))
}

/// The error of a watch that ends though it goes on for as long as it is polled.
fn unreachable_watch() -> JobError {
    let source = std::io::Error::other("the watch of requests has ended by itself");
    JobError::Disk(DiskError::new(
        "watch",
        std::path::Path::new("action"),
        source,
    ))
}

/// The words of the end of a crawl; `None` of one that is to be gone on with.
pub(crate) const fn end_message(end: CrawlEnd) -> Option<EndMessage> {
    match end {
        CrawlEnd::Finished => Some(EndMessage::Finished),
        CrawlEnd::Terminated => Some(EndMessage::EndedByOperator),
        CrawlEnd::TimeLimit => Some(EndMessage::TimeLimit),
        CrawlEnd::DataLimit => Some(EndMessage::DataLimit),
        CrawlEnd::ObjectLimit => Some(EndMessage::DocumentLimit),
        CrawlEnd::Suspended => None,
    }
}

fn warcinfo(directory: &JobDirectory, parts: &JobParts) -> Warcinfo {
    let job = directory.job();
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let robots = match job.order.robots.policy {
        RobotsPolicy::Obey => "obey",
        RobotsPolicy::Ignore => "ignore",
    };
    let info = job.harvest_info().into_iter();
    let may_rewrite = job.order.http.http2 != Http2Use::Never;
    Warcinfo {
        software: SOFTWARE.to_owned(),
        ip: Some(parts.address),
        hostname: Some(parts.host.clone()),
        operator: given(&job.harvest.operator),
        publisher: None,
        audience: given(&job.harvest.audience),
        is_part_of: Some(job.id.to_string()),
        description: given(&job.harvest.comments),
        robots: Some(robots.to_owned()),
        user_agent: Some(job.order.user_agent(env!("CARGO_PKG_VERSION"))),
        from: job.order.http.from.clone(),
        http2: may_rewrite.then(|| REWRITTEN_HEADS.to_owned()),
        harvest_info: info.map(|(key, value)| (key.to_owned(), value)).collect(),
    }
}

/// Indexes files and stores them.
struct Uploads<'a> {
    directory: &'a JobDirectory,
    uploader: Option<Uploader<'a>>,
    notify: &'a (dyn Fn(Notice<'_>) + Send + Sync),
}

impl Uploads<'_> {
    /// Indexes an archive file that was closed, and stores it.
    async fn take(&self, closed: &ClosedFile) -> Result<FileOutcome, JobError> {
        let (directory, file) = (self.directory.clone(), closed.clone());
        let indexed = tokio::task::spawn_blocking(move || directory.index_file(&file)).await;
        indexed.map_err(|error| {
            let source = std::io::Error::other(error);
            JobError::Disk(DiskError::new("index", &closed.path, source))
        })??;
        Ok(self.store(closed).await)
    }

    /// Stores a file. One that the archive does not take stays, and is named in the report.
    async fn store(&self, closed: &ClosedFile) -> FileOutcome {
        let mut outcome = FileOutcome {
            name: closed.name.clone(),
            size: closed.size,
            stored: false,
            error: None,
        };
        if let Some(uploader) = &self.uploader {
            match uploader.upload(&closed.name, &closed.path).await {
                Ok(()) => outcome.stored = true,
                Err(error) => {
                    let why = error.to_string();
                    (self.notify)(Notice::NotStored {
                        name: &closed.name,
                        why: &why,
                    });
                    outcome.error = Some(why);
                }
            }
        }
        outcome
    }
}
