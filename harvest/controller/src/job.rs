//! The life of a job, from its seeds to its receipts.
//!
//! Owns the order: salvage what a dead process left; crawl, and store each archive file as soon as it is closed;
//! document; store the metadata file last; report. The outcome of a crawl is kept before any upload is waited for.
//! Whatever fails, the job ends in a state that its directory shows, and can be resumed from there.

use std::convert::Infallible;
use std::fmt;

use archive_model::FileName;
use harvest_crawler::crawl::{CrawlCommand, CrawlEnd, CrawlProgress};
use harvest_model::order::Http2Use;
use harvest_reports::warcinfo::{REWRITTEN_HEADS, Warcinfo};
use tokio::sync::{mpsc, watch};

use crate::directory::JobDirectory;
use crate::environment::JobEnvironment;
use crate::error::HarvestJobError;
use crate::lock::JobLock;
use crate::notice::{JobNotice, NoticeHandler};
use crate::report::{HarvestJobEnd, JobEnd, JobReport, write_report};
use crate::run::JobRun;
use crate::salvage::salvage_crawl;
use crate::upload::Uploader;

/// The program that writes archive files, in their `warcinfo`.
const SOFTWARE: &str = concat!("Holdfast/", env!("CARGO_PKG_VERSION"));

/// The most names that are tried for a metadata file: an archive that claims to have all of them is not believed, and
/// refuses the file itself when it is stored.
const MOST_VERSIONS: u32 = 1000;

/// The console of a job: what people ask of it while it runs, and what they hear of it.
pub struct JobConsole<'a> {
    /// Further requests to the crawl.
    pub requests: mpsc::UnboundedReceiver<CrawlCommand>,
    /// Told how far the crawl is.
    pub progress: watch::Sender<CrawlProgress>,
    /// Told of each notice.
    pub notify: &'a (dyn Fn(JobNotice<'_>) + Send + Sync),
}

impl fmt::Debug for JobConsole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobConsole").finish_non_exhaustive()
    }
}

/// Runs a job to its end, from its start or from where an earlier process has left it.
///
/// # Errors
///
/// [`HarvestJobError`]: the job can be resumed.
pub async fn run_job(
    directory: &JobDirectory,
    environment: &JobEnvironment,
    console: JobConsole<'_>,
) -> Result<JobReport, HarvestJobError> {
    let JobConsole {
        requests: control,
        progress,
        notify,
    } = console;
    let _lock = JobLock::acquire(directory)?;
    let warcinfo = warcinfo(directory, environment);
    let (files, whole) = mpsc::unbounded_channel();
    let (to_crawl, requests) = mpsc::unbounded_channel();
    let (suspend, suspended) = watch::channel(false);
    salvage_crawl(directory, environment, notify)?;
    choose_metadata_name(directory, environment, notify).await?;
    let writing = Box::pin(async move {
        let run = JobRun {
            directory,
            environment,
            warcinfo: &warcinfo,
            files: &files,
            notify,
        };
        let outcome = if let Some(outcome) = directory.read_outcome()? {
            let files = directory.closed_files(environment.clock.now())?;
            run.close_all(files).await?;
            outcome
        } else {
            Box::pin(run.run_crawl(requests, progress)).await?
        };
        if outcome.end != CrawlEnd::Suspended {
            run.document_crawl(&outcome).await?;
        }
        Ok::<_, HarvestJobError>(outcome)
    });
    let storing = Box::pin(async {
        let uploader = Uploader::new(directory, environment, notify);
        Ok(uploader.upload_all(whole, suspended.clone()).await)
    });
    let (outcome, failures) = tokio::select! {
        biased;
        never = forward_commands(control, to_crawl, suspend) => match never {},
        ended = async { tokio::try_join!(writing, storing) } => ended?,
    };
    let end = JobEnd {
        outcome,
        failures,
        is_suspended: *suspended.borrow(),
        stores_nothing: environment.archive.is_none(),
    };
    let report = write_report(directory, &end)?;
    if report.status == HarvestJobEnd::Done {
        // A later run of the job may fetch what is left, or try again what could not be had.
        if report.remaining == 0 && report.failed == 0 && report.quarantined.is_empty() {
            directory.remove_frontier()?;
        }
        directory.forget_passwords()?;
    }
    Ok(report)
}

/// Looks, before a crawl begins, whether the archive has a metadata file of this job's number already: a file of that
/// name could never be stored. One that belongs to somebody else is found when it is stored.
async fn choose_metadata_name(
    directory: &JobDirectory,
    environment: &JobEnvironment,
    notify: NoticeHandler<'_>,
) -> Result<(), HarvestJobError> {
    let Some(archive) = environment.archive.as_deref() else {
        return Ok(());
    };
    if directory.metadata_file()?.is_some() {
        return Ok(());
    }
    let first = directory.metadata_version()?;
    let mut version = first;
    while version - first < MOST_VERSIONS
        && let Ok(name) = FileName::new(&directory.metadata_name(version))
        && !directory.has_receipt(name.as_str())?
        // An archive that does not answer now is asked when the file is stored.
        && archive.stat(&name).await.is_ok()
    {
        version = version.saturating_add(1);
    }
    if version != first {
        directory.keep_metadata_version(version)?;
        notify(JobNotice::MetadataNameTaken {
            taken: &directory.metadata_name(first),
            name: &directory.metadata_name(version),
        });
    }
    Ok(())
}

/// Passes requests on to the crawl. One to suspend the job ends its uploads, too.
async fn forward_commands(
    mut control: mpsc::UnboundedReceiver<CrawlCommand>,
    to_crawl: mpsc::UnboundedSender<CrawlCommand>,
    suspend: watch::Sender<bool>,
) -> Infallible {
    while let Some(request) = control.recv().await {
        if request == CrawlCommand::Suspend {
            suspend.send_replace(true);
        }
        // The crawl may have ended.
        _ = to_crawl.send(request);
    }
    std::future::pending().await
}

fn warcinfo(directory: &JobDirectory, environment: &JobEnvironment) -> Warcinfo {
    let job = directory.job();
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let mut robots = job.order.robots.policy.as_str().to_owned();
    for overlay in &job.order.overlays {
        if let Some(policy) = overlay.robots {
            robots.push_str("; ");
            robots.push_str(policy.as_str());
            robots.push_str(" for ");
            robots.push_str(overlay.surt.as_str());
        }
    }
    let info = job.harvest_info().into_iter();
    let may_rewrite = job.order.http.http2 != Http2Use::Never;
    Warcinfo {
        software: SOFTWARE.to_owned(),
        ip: Some(environment.address),
        hostname: Some(environment.host.clone()),
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
