//! The report of a job: how it ended, and what the archive has of it.
//!
//! Owns that it names all files of the job, by whichever process they were written or stored: those of which the
//! directory has an index or a receipt, and those that were set aside.

use std::collections::BTreeMap;

use harvest_crawler::crawl::{CrawlEnd, CrawlOutcome};
use harvest_reports::progress::EndMessage;
use serde::Serialize;

use crate::directory::JobDirectory;
use crate::domains::{DomainOutcome, domain_outcomes};
use crate::error::HarvestJobError;
use crate::failed_seeds::{FailedSeed, failed_seeds};
use crate::progress_log::end_message;

/// The state in which a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HarvestJobEnd {
    /// The job was crawled, documented, and stored as far as it is to be.
    Done,
    /// A file is not stored, or the crawl broke off.
    Failed,
    /// The job is to be resumed.
    Suspended,
}

/// The kind of the end of a crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrawlOutcomeKind {
    /// No URI was left that may be fetched.
    Finished,
    /// Nothing was left but URIs that wait for hosts which cannot be reached.
    Idle,
    /// A limit of the order was reached.
    Limit,
    /// A person has ended the crawl, for now or for good.
    Stopped,
    /// The crawl broke off.
    Broken,
}

const fn outcome_kind(end: CrawlEnd) -> CrawlOutcomeKind {
    match end {
        CrawlEnd::Finished => CrawlOutcomeKind::Finished,
        CrawlEnd::Idle => CrawlOutcomeKind::Idle,
        CrawlEnd::TimeLimit | CrawlEnd::DataLimit | CrawlEnd::ObjectLimit => {
            CrawlOutcomeKind::Limit
        }
        CrawlEnd::Terminated | CrawlEnd::Suspended => CrawlOutcomeKind::Stopped,
        CrawlEnd::Broken => CrawlOutcomeKind::Broken,
    }
}

/// A file of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobReportFile {
    /// The name of the file.
    pub name: String,
    /// The size of the file in bytes.
    pub size: u64,
    /// Whether the archive has the file, and the receipt is kept.
    pub stored: bool,
    /// The reason why the file is not stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The report of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobReport {
    /// The number of the job.
    pub job: u64,
    /// The directory of the job.
    pub directory: String,
    /// The way in which the job ended.
    pub status: HarvestJobEnd,
    /// The kind of the end of the crawl.
    pub outcome: CrawlOutcomeKind,
    /// The reason why the crawl ended, in Heritrix' words.
    pub stop_reason: String,
    /// The number of URIs that were fetched.
    pub objects: u64,
    /// The number of bytes in the records of those URIs.
    pub bytes: u64,
    /// The files: archive files in their order, and the metadata file last.
    pub files: Vec<JobReportFile>,
    /// The harvest of each domain.
    pub domains: Vec<DomainOutcome>,
    /// The patterns of URIs under quarantine.
    pub quarantined: Vec<QuarantinedPattern>,
    /// The number of URIs that were found and not fetched.
    pub remaining: u64,
    /// The number of URIs that could not be had.
    pub failed: u64,
    /// The seeds that were not had, with the reason of each; the first thousand.
    pub failed_seeds: Vec<FailedSeed>,
}

/// A pattern of URIs that only made more of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QuarantinedPattern {
    /// The pattern, by which a person frees it.
    pub pattern: String,
    /// The number of URIs with the pattern that are held back.
    pub uris: u64,
}

/// The end of a job.
#[derive(Debug)]
pub(crate) struct JobEnd {
    pub(crate) outcome: CrawlOutcome,
    /// The reasons why files were not stored, by name.
    pub(crate) failures: BTreeMap<String, String>,
    /// Whether a person has ended it, to go on later.
    pub(crate) is_suspended: bool,
    pub(crate) stores_nothing: bool,
}

/// Makes the report of a job that has ended.
pub(crate) fn write_report(
    directory: &JobDirectory,
    end: &JobEnd,
) -> Result<JobReport, HarvestJobError> {
    let files = files(directory, &end.failures)?;
    let outcome = &end.outcome;
    let quarantined = outcome.quarantined.iter();
    let quarantined = quarantined.map(|(pattern, uris)| QuarantinedPattern {
        pattern: pattern.clone(),
        uris: *uris,
    });
    Ok(JobReport {
        job: directory.job().id,
        directory: directory.root().display().to_string(),
        status: status(end, &files),
        outcome: outcome_kind(outcome.end),
        stop_reason: if outcome.end == CrawlEnd::Idle {
            // The log has Heritrix' words, which say less.
            "Idle: nothing was left but what waits for hosts that cannot be reached".to_owned()
        } else {
            end_message(outcome.end)
                .map_or("Suspended", EndMessage::as_str)
                .to_owned()
        },
        objects: outcome.progress.fetched,
        bytes: outcome.progress.bytes,
        files,
        domains: domain_outcomes(directory, outcome)?,
        quarantined: quarantined.collect(),
        remaining: outcome.remaining.values().sum(),
        failed: outcome.progress.failed,
        failed_seeds: failed_seeds(directory, outcome)?,
    })
}

fn status(end: &JobEnd, files: &[JobReportFile]) -> HarvestJobEnd {
    let is_stored =
        |file: &JobReportFile| file.stored || (end.stores_nothing && file.error.is_none());
    let is_all_stored = files.iter().all(is_stored);
    if end.outcome.end == CrawlEnd::Suspended || (end.is_suspended && !is_all_stored) {
        HarvestJobEnd::Suspended
    } else if is_all_stored && end.outcome.end != CrawlEnd::Broken {
        HarvestJobEnd::Done
    } else {
        HarvestJobEnd::Failed
    }
}

fn files(
    directory: &JobDirectory,
    failures: &BTreeMap<String, String>,
) -> Result<Vec<JobReportFile>, HarvestJobError> {
    let mut files = Vec::new();
    for entry in directory.indexed_files()? {
        files.push(file_outcome(directory, entry.name, entry.size, failures)?);
    }
    for (name, size) in directory.set_aside_files()? {
        files.push(JobReportFile {
            error: Some(format!("damaged: it lies in `warcs` as {name}")),
            name,
            size,
            stored: false,
        });
    }
    files.sort_by_cached_key(|file| directory.file_order(&file.name));
    if let Some(entry) = directory.metadata_file()? {
        files.push(file_outcome(directory, entry.name, entry.size, failures)?);
    }
    Ok(files)
}

fn file_outcome(
    directory: &JobDirectory,
    name: String,
    size: u64,
    failures: &BTreeMap<String, String>,
) -> Result<JobReportFile, HarvestJobError> {
    let error = failures.get(&name).cloned();
    Ok(JobReportFile {
        stored: error.is_none() && directory.has_receipt(&name)?,
        name,
        size,
        error,
    })
}
