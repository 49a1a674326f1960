//! The reasons why a job breaks off.

use std::path::PathBuf;

use archive_durable::DiskError;
use harvest_crawler::crawl::CrawlError;
use index_dedup::DedupError;

use crate::directory::JobDirectoryError;
use crate::document::DocumentError;
use crate::lock::LockError;
use crate::salvage::SalvageError;

/// The reason why a job has broken off.
#[derive(Debug, thiserror::Error)]
pub enum HarvestJobError {
    /// The directory of the job cannot be used.
    #[error(transparent)]
    Directory(#[from] JobDirectoryError),
    /// A second process works on the job, or its directory cannot be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The disk fails.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The files of a process that has died cannot be salvaged.
    #[error(transparent)]
    Salvage(#[from] SalvageError),
    /// The crawl. What it has recorded is whole.
    #[error("the crawl broke off: {0}")]
    Crawl(#[from] CrawlError),
    /// The frontier of the crawl cannot be used.
    #[error(
        "the state of the crawl is damaged: {source}; restore the files from a copy, or give {} up: the job then ends with what it \
         has recorded",
        state.display()
    )]
    Frontier {
        /// The directory of the frontier.
        state: PathBuf,
        /// The reason why the frontier cannot be used.
        source: Box<CrawlError>,
    },
    /// The index of earlier captures cannot be used.
    #[error(transparent)]
    Dedup(#[from] DedupError),
    /// The crawl cannot be documented.
    #[error("cannot document the crawl: {0}")]
    Document(#[from] DocumentError),
    /// A task that works on the files of the job broke off.
    #[error("cannot {what}: {source}")]
    Task {
        /// The work of the task, as a verb: `cannot …`.
        what: &'static str,
        /// The reason why the task ended.
        source: tokio::task::JoinError,
    },
}
