//! The report of a job: how it ended, and what the archive has of it.

use harvest_reports::harvest::StopReason;
use serde::Serialize;

/// The state in which a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobStatus {
    /// Crawled, documented, and stored as far as it is to be.
    Done,
    /// A file is not stored, or the crawl broke off.
    Failed,
    /// To be gone on with.
    Suspended,
}

/// A file of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileOutcome {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Whether the archive has it, and its receipt is kept.
    pub stored: bool,
    /// Why it is not stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The harvest of a domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DomainOutcome {
    /// The domain.
    pub domain: String,
    /// Its objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Why it stopped, in the words of NetarchiveSuite.
    pub stop_reason: &'static str,
}

/// The report of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobReport {
    /// The number of the job.
    pub job: u64,
    /// Its directory.
    pub directory: String,
    /// How it ended.
    pub status: JobStatus,
    /// Why the crawl ended, in Heritrix' words.
    pub stop_reason: String,
    /// The URIs that were fetched.
    pub objects: u64,
    /// The bytes of their records.
    pub bytes: u64,
    /// The files.
    pub files: Vec<FileOutcome>,
    /// The domains.
    pub domains: Vec<DomainOutcome>,
    /// The patterns of URIs under quarantine.
    pub quarantined: Vec<QuarantinedPattern>,
}

/// A pattern of URIs that only made more of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QuarantinedPattern {
    /// The pattern, by which a person frees it.
    pub pattern: String,
    /// The number of its URIs that are held back.
    pub uris: u64,
}

/// The words of a stop reason.
pub(crate) const fn stop_reason(reason: StopReason) -> &'static str {
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
