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
