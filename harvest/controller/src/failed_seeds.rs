//! The seeds that were not had, and why.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufReader;
use std::path::Path;

use archive_durable::DiskError;
use harvest_crawler::crawl::{CrawlEnd, CrawlOutcome};
use harvest_crawler::recorder::CRAWL_LOG;
use harvest_policy::status::FetchStatus;
use harvest_reports::log::{CrawlLogReader, LogEntry};
use serde::Serialize;
use url::Url;

use crate::directory::{JobDirectory, open_file};
use crate::error::HarvestJobError;

/// The most seeds that are named.
const MOST: usize = 1000;

/// A seed that was not had: it failed, was left out, or its host has answered that it lacks or refuses it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedSeed {
    /// The URI of the seed.
    pub seed: String,
    /// The status of the last try of the seed, as in the crawl log; 0: it was not tried.
    pub status: i32,
    /// The status in words.
    pub reason: &'static str,
}

impl FailedSeed {
    /// Returns whether the seed was tried, and its host could not be reached.
    pub const fn is_unreachable(&self) -> bool {
        FetchStatus::from_number(self.status).is_failure()
    }
}

/// Returns the seeds of a crawl that were not had; empty if it is to be resumed.
pub(crate) fn failed_seeds(
    job: &JobDirectory,
    outcome: &CrawlOutcome,
) -> Result<Vec<FailedSeed>, HarvestJobError> {
    if outcome.end == CrawlEnd::Suspended {
        return Ok(Vec::new());
    }
    let failing = outcome.failing_seeds.iter();
    let mut statuses: BTreeMap<String, i32> = failing.cloned().collect();
    let seeds: BTreeSet<&str> = job.job().seeds.iter().take(MOST).map(Url::as_str).collect();
    let path = job.path_of("logs").join(CRAWL_LOG);
    let failed = |error| HarvestJobError::Disk(DiskError::new("read", Path::new(CRAWL_LOG), error));
    for entry in CrawlLogReader::new(BufReader::new(open_file(&path)?)) {
        if let LogEntry::Line(line) = entry.map_err(failed)?
            && seeds.contains(line.uri.as_str())
        {
            // The crawl itself may know more than the log: of a process before, the log alone does.
            statuses.entry(line.uri).or_insert(line.status);
        }
    }
    let seeds = job.job().seeds.iter().take(MOST).filter_map(|seed| {
        let status = statuses.get(seed.as_str()).copied().unwrap_or(0);
        (!matches!(status, 1..400)).then(|| FailedSeed {
            seed: seed.to_string(),
            status,
            reason: reason(status),
        })
    });
    Ok(seeds.collect())
}

/// Returns a status in words, as a clause that follows the name of a seed and a colon.
const fn reason(status: i32) -> &'static str {
    match status {
        404 | 410 => "its host says that it is not there",
        401 | 403 => "its host refuses it",
        429 | 503 => "its host is too busy, however often it was asked",
        500.. => "its host failed to answer it",
        400.. => "its host does not take the request",
        _ => FetchStatus::from_number(status).reason(),
    }
}
