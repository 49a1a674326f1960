//! The life of a job, from its seeds to its receipts.
//!
//! Owns the order: salvage what a dead process left; crawl, and store each archive file as soon as it is closed; document; store the
//! metadata file last; report. The outcome of a crawl is kept before any upload is waited for. Whatever fails, the job ends in
//! a state that its directory shows, and can be gone on with from there.

use std::convert::Infallible;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use archive_client::{ClientError, Ingest};
use archive_daemon::clock::{Chance, Clock};
use archive_durable::DiskError;
use harvest_crawler::archive_files::ClosedFile;
use harvest_crawler::crawl::{Control, CrawlEnd, CrawlError, CrawlNotice, CrawlProgress};
use harvest_model::order::{Http2Use, RobotsPolicy};
use harvest_reports::warcinfo::{REWRITTEN_HEADS, Warcinfo};
use index_dedup::DedupError;
use tokio::sync::{mpsc, watch};

use crate::directory::{JobDirectory, JobDirectoryError};
use crate::document::{DocumentError, document};
use crate::lock::{JobLock, LockError};
use crate::report::{JobEnd, JobReport, report};
use crate::salvage::{SalvageError, salvage};
use crate::upload::Uploader;

/// The program that writes archive files, in their `warcinfo`.
const SOFTWARE: &str = concat!("Holdfast/", env!("CARGO_PKG_VERSION"));

/// The reason why a job has broken off.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// Its directory.
    #[error(transparent)]
    Directory(#[from] JobDirectoryError),
    /// Another process works on it, or its directory cannot be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The disk.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The files of a process that has died cannot be salvaged.
    #[error(transparent)]
    Salvage(#[from] SalvageError),
    /// The crawl. What it has recorded is whole.
    #[error("the crawl broke off: {0}")]
    Crawl(#[from] CrawlError),
    /// The frontier of the crawl.
    #[error(
        "the state of the crawl is damaged: {source}; restore the files from a copy, or give {} up: the job then ends with what it \
         has recorded",
        state.display()
    )]
    Frontier {
        /// Its directory.
        state: PathBuf,
        /// The reason why it cannot be used.
        source: Box<CrawlError>,
    },
    /// The index of earlier captures.
    #[error(transparent)]
    Dedup(#[from] DedupError),
    /// The documentation.
    #[error("cannot document the crawl: {0}")]
    Document(#[from] DocumentError),
    /// Work on the files of the job.
    #[error("cannot {what}: {source}")]
    Task {
        /// The work.
        what: &'static str,
        /// The reason.
        source: tokio::task::JoinError,
    },
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
    /// The time to wait for an archive that takes no file.
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
        /// The time until it is asked again.
        pause: Duration,
    },
    /// A file is not stored.
    NotStored {
        /// The name of the file.
        name: &'a str,
        /// The reason.
        why: &'a str,
    },
    /// A request was carried out.
    Action {
        /// The name of its file.
        name: &'a str,
        /// The effect, in words.
        done: &'a str,
    },
    /// Something that the crawl tells people.
    Crawl(&'a CrawlNotice),
    /// A request cannot be taken.
    ActionRefused {
        /// The name of its file.
        name: &'a str,
        /// The reason.
        why: &'a str,
    },
    /// Outcomes whose records had not reached the disk were taken back; their URIs are fetched again.
    TakenBack(u64),
    /// A file of a process that died was salvaged, or is in the way.
    Salvaged {
        /// The name of the file.
        name: &'a str,
        /// The effect on it, in words.
        what: &'a str,
    },
    /// The crawl has written no archive file.
    NothingHarvested,
}

/// The function that people are told by.
pub(crate) type Notify<'a> = &'a (dyn Fn(Notice<'_>) + Send + Sync);

/// A job that runs.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) directory: &'a JobDirectory,
    pub(crate) parts: &'a JobParts,
    pub(crate) warcinfo: &'a Warcinfo,
    /// Takes each file that is whole, to be stored.
    pub(crate) files: &'a mpsc::UnboundedSender<ClosedFile>,
    pub(crate) notify: Notify<'a>,
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
    let _lock = JobLock::take(directory)?;
    let warcinfo = warcinfo(directory, parts);
    let (files, whole) = mpsc::unbounded_channel();
    let (to_crawl, requests) = mpsc::unbounded_channel();
    let (suspend, suspended) = watch::channel(false);
    salvage(directory, parts, notify)?;
    let writing = Box::pin(async move {
        let run = Run {
            directory,
            parts,
            warcinfo: &warcinfo,
            files: &files,
            notify,
        };
        let outcome = if let Some(outcome) = directory.outcome()? {
            let files = directory.closed_files(parts.clock.now())?;
            run.close_all(files).await?;
            outcome
        } else {
            Box::pin(run.crawl(requests, progress)).await?
        };
        if outcome.end != CrawlEnd::Suspended {
            run.document(&outcome).await?;
        }
        Ok::<_, JobError>(outcome)
    });
    let storing = Box::pin(async {
        let uploader = Uploader::new(directory, parts, notify);
        Ok(uploader.upload_all(whole, suspended.clone()).await)
    });
    let (outcome, failures) = tokio::select! {
        biased;
        never = pass_on(control, to_crawl, suspend) => match never {},
        ended = async { tokio::try_join!(writing, storing) } => ended?,
    };
    let end = JobEnd {
        outcome,
        failures,
        is_suspended: *suspended.borrow(),
        stores_nothing: parts.archive.is_none(),
    };
    let report = report(directory, &end)?;
    directory.clear(report.status)?;
    Ok(report)
}

/// Passes requests on to the crawl. One to suspend the job ends its uploads, too.
async fn pass_on(
    mut control: mpsc::UnboundedReceiver<Control>,
    to_crawl: mpsc::UnboundedSender<Control>,
    suspend: watch::Sender<bool>,
) -> Infallible {
    while let Some(request) = control.recv().await {
        if request == Control::Suspend {
            suspend.send_replace(true);
        }
        // The crawl may have ended.
        drop(to_crawl.send(request));
    }
    std::future::pending().await
}

impl Run<'_> {
    /// Takes archive files that an earlier process has closed. One that cannot be indexed does not hold up the others; the first such
    /// error is given at the end.
    pub(crate) async fn close_all(&self, files: Vec<ClosedFile>) -> Result<(), JobError> {
        let mut first = Ok(());
        for file in files {
            first = first.and(self.close_or_tell(file).await);
        }
        first
    }

    /// Takes an archive file as [`Run::close`] does, and tells people at once why it cannot be taken: it is taken when the job goes on.
    pub(crate) async fn close_or_tell(&self, file: ClosedFile) -> Result<(), JobError> {
        let name = file.name.clone();
        let closed = self.close(file).await;
        if let Err(error) = &closed {
            let why = format!("{error}; it is stored once the job is resumed");
            (self.notify)(Notice::NotStored {
                name: &name,
                why: &why,
            });
        }
        closed
    }

    /// Indexes an archive file that was closed, and hands it on to be stored. A damaged one stays, as `NAME.invalid`.
    async fn close(&self, file: ClosedFile) -> Result<(), JobError> {
        let (directory, indexed) = (self.directory.clone(), file.clone());
        let damage = blocking("index an archive file", move || {
            directory.index_file(&indexed)
        });
        if let Some(damage) = damage.await? {
            self.directory.set_aside(&file.name)?;
            (self.notify)(Notice::NotStored {
                name: &file.name,
                why: &format!(
                    "it is damaged, and lies in `warcs` as {}.invalid: {damage}",
                    file.name
                ),
            });
        } else {
            // Uploads that were ended take nothing more.
            drop(self.files.send(file));
        }
        Ok(())
    }

    /// Writes the reports and the metadata file, and hands it on to be stored.
    async fn document(
        &self,
        outcome: &harvest_crawler::crawl::CrawlOutcome,
    ) -> Result<(), JobError> {
        if self.directory.indexed_files()?.is_empty() {
            (self.notify)(Notice::NothingHarvested);
        }
        let (directory, parts) = (self.directory.clone(), self.parts.clone());
        let (warcinfo, outcome) = (self.warcinfo.clone(), outcome.clone());
        let written = blocking("write the metadata file", move || {
            document(&directory, &parts, &warcinfo, &outcome)
        });
        if let Some(metadata) = written.await? {
            drop(self.files.send(metadata));
        }
        Ok(())
    }
}

/// Does work that blocks on a thread that may.
async fn blocking<T: Send + 'static, E: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, JobError>
where
    JobError: From<E>,
{
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|source| JobError::Task { what, source })??)
}

fn warcinfo(directory: &JobDirectory, parts: &JobParts) -> Warcinfo {
    let job = directory.job();
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let word = |policy| match policy {
        RobotsPolicy::Obey => "obey",
        RobotsPolicy::Ignore => "ignore",
    };
    let mut robots = word(job.order.robots.policy).to_owned();
    for overlay in &job.order.overlays {
        if let Some(policy) = overlay.robots {
            robots.push_str("; ");
            robots.push_str(word(policy));
            robots.push_str(" for ");
            robots.push_str(overlay.surt.as_str());
        }
    }
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
        robots: Some(robots),
        user_agent: Some(job.order.user_agent(env!("CARGO_PKG_VERSION"))),
        from: job.order.http.from.clone(),
        http2: may_rewrite.then(|| REWRITTEN_HEADS.to_owned()),
        harvest_info: info.map(|(key, value)| (key.to_owned(), value)).collect(),
    }
}
