//! The harvest of each domain, as the logs of a job tell it.

use std::io::BufReader;

use archive_durable::directory;
use harvest_crawler::recorder::CRAWL_LOG;
use harvest_crawler::suffixes::suffix_list;
use harvest_reports::harvest::{HarvestReport, StopReason};
use harvest_reports::log::{CrawlLogReader, LogEntry};
use harvest_reports::progress::{FILE_NAME as PROGRESS_LOG, last_line};
use serde::Serialize;

use crate::directory::{JobDirectory, open_file};
use crate::document::{DocumentError, log_error};

/// The harvest of a domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DomainOutcome {
    /// The name of the domain.
    pub domain: String,
    /// The number of objects that were fetched of the domain.
    pub objects: u64,
    /// The number of bytes of those objects.
    pub bytes: u64,
    /// The reason why the harvest of the domain stopped, in words that NetarchiveSuite uses.
    pub stop_reason: &'static str,
}

/// Returns the harvest of each domain, as the logs tell it.
pub(crate) fn domain_outcomes(job: &JobDirectory) -> Result<Vec<DomainOutcome>, DocumentError> {
    let path = job.path_of("logs").join(PROGRESS_LOG);
    let last = match directory::entry_kind(&path)? {
        Some(_) => last_line(BufReader::new(open_file(&path)?)).map_err(log_error(&path))?,
        None => None,
    };
    let reason = StopReason::from_last_progress_line(last.as_deref());
    let mut report = HarvestReport::new(reason, false);
    let suffixes = suffix_list(&job.job().order)?;
    let path = job.path_of("logs").join(CRAWL_LOG);
    for entry in CrawlLogReader::new(BufReader::new(open_file(&path)?)) {
        match entry.map_err(log_error(&path))? {
            LogEntry::Line(line) => {
                report.add_line(&line, |host| {
                    Some(suffixes.registered_domain(host).to_owned())
                });
            }
            // Unreadable lines are counted in crawl-report.txt.
            LogEntry::Unreadable(_) => {}
        }
    }
    let domains = report.domains().map(|(domain, report)| DomainOutcome {
        domain: domain.to_owned(),
        objects: report.objects,
        bytes: report.bytes,
        stop_reason: stop_reason(report.stop_reason),
    });
    Ok(domains.collect())
}

/// Returns the words of a stop reason.
const fn stop_reason(reason: StopReason) -> &'static str {
    match reason {
        StopReason::DownloadComplete => "download complete",
        StopReason::ObjectLimit => "object limit",
        StopReason::SizeLimit => "size limit",
        StopReason::ConfigSizeLimit => "size limit of the configuration",
        StopReason::DownloadUnfinished => "download unfinished",
        StopReason::ConfigObjectLimit => "object limit of the configuration",
        StopReason::TimeLimit => "time limit",
    }
}
