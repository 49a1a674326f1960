//! The harvest of each domain, as the logs of a job tell it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::BufReader;

use archive_durable::directory;
use harvest_crawler::crawl::{CrawlEnd, CrawlOutcome};
use harvest_crawler::recorder::CRAWL_LOG;
use harvest_crawler::suffixes::suffix_list;
use harvest_reports::harvest::{HarvestReport, StopReason, in_unicode};
use harvest_reports::log::{CrawlLogReader, LogEntry};
use harvest_reports::progress::{FILE_NAME as PROGRESS_LOG, last_line};
use serde::Serialize;
use url::Url;

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
    /// The reason why the harvest of the domain stopped, in words that NetarchiveSuite uses. Of a domain with URIs left,
    /// of whose seeds none was had, or whose crawl has lost its frontier, it is never "download complete".
    pub stop_reason: &'static str,
    /// The number of URIs that were found from its seeds and not fetched.
    pub remaining: u64,
}

impl DomainOutcome {
    /// Returns whether all of the domain was fetched.
    pub fn is_complete(&self) -> bool {
        self.stop_reason == stop_reason(StopReason::DownloadComplete)
    }
}

/// Returns the harvest of each domain, as the logs tell it.
pub(crate) fn domain_outcomes(
    job: &JobDirectory,
    outcome: &CrawlOutcome,
) -> Result<Vec<DomainOutcome>, DocumentError> {
    let path = job.path_of("logs").join(PROGRESS_LOG);
    let last = match directory::entry_kind(&path)? {
        Some(_) => last_line(BufReader::new(open_file(&path)?)).map_err(log_error(&path))?,
        None => None,
    };
    let reason = match outcome.end {
        // Each domain is as complete as what is left of it says.
        CrawlEnd::Idle => StopReason::DownloadComplete,
        _ => StopReason::from_last_progress_line(last.as_deref()),
    };
    let mut report = HarvestReport::new(reason, false);
    let suffixes = suffix_list(&job.job().order)?;
    let domain_of = |host: &str| in_unicode(suffixes.registered_domain(host));
    let seeds: HashSet<&str> = job.job().seeds.iter().map(Url::as_str).collect();
    let mut had_seeds = HashSet::new();
    let path = job.path_of("logs").join(CRAWL_LOG);
    for entry in CrawlLogReader::new(BufReader::new(open_file(&path)?)) {
        match entry.map_err(log_error(&path))? {
            LogEntry::Line(line) => {
                if matches!(line.status, 1..400)
                    && seeds.contains(line.uri.as_str())
                    && let Ok(url) = Url::parse(&line.uri)
                {
                    had_seeds.extend(url.host_str().map(domain_of));
                }
                report.add_line(&line, |host| {
                    Some(suffixes.registered_domain(host).to_owned())
                });
            }
            // Unreadable lines are counted in crawl-report.txt.
            LogEntry::Unreadable(_) => {}
        }
    }
    let seed_domains = job.job().seeds.iter().filter_map(Url::host_str);
    let mut seed_domains: BTreeSet<String> = seed_domains.map(domain_of).collect();
    let mut remaining = HashMap::<String, u64>::new();
    for (host, count) in &outcome.remaining_of_seeds {
        *remaining.entry(domain_of(host)).or_default() += count;
    }
    let is_broken = outcome.end == CrawlEnd::Broken;
    let mut domains: Vec<DomainOutcome> = Vec::new();
    for (domain, report) in report.domains() {
        let remaining = remaining.remove(domain).unwrap_or(0);
        let lacks_seeds = seed_domains.remove(domain) && !had_seeds.contains(domain);
        let reason = match report.stop_reason {
            StopReason::DownloadComplete if is_broken || remaining > 0 || lacks_seeds => {
                StopReason::DownloadUnfinished
            }
            reason => reason,
        };
        domains.push(DomainOutcome {
            domain: domain.to_owned(),
            objects: report.objects,
            bytes: report.bytes,
            stop_reason: stop_reason(reason),
            remaining,
        });
    }
    // Those that the crawl did not come to.
    seed_domains.extend(remaining.keys().cloned());
    domains.extend(seed_domains.into_iter().map(|domain| DomainOutcome {
        objects: 0,
        bytes: 0,
        stop_reason: stop_reason(StopReason::DownloadUnfinished),
        remaining: remaining.remove(&domain).unwrap_or(0),
        domain,
    }));
    Ok(domains)
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
