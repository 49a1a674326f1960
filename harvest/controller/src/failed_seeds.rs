//! The seeds that were not had, and why.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufReader;

use harvest_crawler::crawl::{CrawlEnd, CrawlOutcome};
use harvest_crawler::recorder::CRAWL_LOG;
use harvest_policy::status::FetchStatus;
use harvest_reports::log::{CrawlLogReader, LogEntry};
use serde::Serialize;
use url::Url;

use crate::directory::{JobDirectory, JobDirectoryError, open_if_there};
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
    let seeds = job.job().seeds.iter().map(Url::as_str).collect();
    let mut statuses = last_statuses(job, &seeds)?;
    // The crawl itself knows more than the log: of a process before, the log alone does.
    statuses.extend(outcome.failing_seeds.iter().cloned());
    let seeds = job.job().seeds.iter().filter_map(|seed| {
        let status = statuses.get(seed.as_str()).copied().unwrap_or(0);
        (!matches!(status, 1..400)).then(|| FailedSeed {
            seed: seed.to_string(),
            status,
            reason: reason(status),
        })
    });
    Ok(seeds.take(MOST).collect())
}

/// Returns the statuses of the last lines that seeds have in the crawl log.
fn last_statuses(
    job: &JobDirectory,
    seeds: &BTreeSet<&str>,
) -> Result<BTreeMap<String, i32>, JobDirectoryError> {
    let path = job.path_of("logs").join(CRAWL_LOG);
    let mut statuses = BTreeMap::new();
    let Some(log) = open_if_there(&path)? else {
        return Ok(statuses);
    };
    for entry in CrawlLogReader::new(BufReader::new(log)) {
        let entry = entry.map_err(|source| JobDirectoryError::Read {
            path: path.clone(),
            source,
        })?;
        if let LogEntry::Line(line) = entry
            && seeds.contains(line.uri.as_str())
        {
            statuses.insert(line.uri, line.status);
        }
    }
    Ok(statuses)
}

/// The state of a seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SeedState {
    /// The URI of the seed.
    pub seed: String,
    /// The status of its last try, as in the crawl log; `None`: it has no line there yet.
    pub status: Option<i32>,
    /// The state in words.
    pub words: &'static str,
}

impl JobDirectory {
    /// Returns the states of the job's seeds whose hosts are asked about. Reads the whole crawl log.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Read`].
    pub fn seed_states(
        &self,
        is_about: impl Fn(&str) -> bool,
    ) -> Result<Vec<SeedState>, JobDirectoryError> {
        let seeds = self.job().seeds.iter();
        let asked = seeds.filter(|seed| is_about(seed.host_str().unwrap_or_default()));
        let asked: Vec<&str> = asked.map(Url::as_str).collect();
        let statuses = last_statuses(self, &asked.iter().copied().collect())?;
        let states = asked.into_iter().map(|seed| {
            let status = statuses.get(seed).copied();
            SeedState {
                seed: seed.to_owned(),
                status,
                words: match status {
                    None => "it waits, or is being tried",
                    Some(1..400) => "it was fetched",
                    Some(status) => reason(status),
                },
            }
        });
        Ok(states.collect())
    }
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
