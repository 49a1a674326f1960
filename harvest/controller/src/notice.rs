//! The events of a job that people are told while it runs.

use std::time::Duration;

use archive_client::ClientError;
use harvest_crawler::crawl::CrawlNotice;

/// An event of a job that people are told.
#[derive(Clone, Copy, Debug)]
pub enum JobNotice<'a> {
    /// A file is in the archive, and its receipt is kept.
    Stored(&'a str),
    /// The archive cannot take a file now.
    Waiting {
        /// The name of the file.
        name: &'a str,
        /// The answer of the archive.
        error: &'a ClientError,
        /// The time until the archive is asked again.
        pause: Duration,
    },
    /// A file is not stored.
    NotStored {
        /// The name of the file.
        name: &'a str,
        /// The reason why the file is not stored.
        why: &'a str,
    },
    /// A request was carried out.
    Action {
        /// The name of the file of the request.
        name: &'a str,
        /// The effect, in words.
        done: &'a str,
    },
    /// A notice of the crawl.
    Crawl(&'a CrawlNotice),
    /// A request cannot be taken.
    ActionRefused {
        /// The name of the file of the request.
        name: &'a str,
        /// The reason why the request cannot be taken.
        why: &'a str,
    },
    /// Requests in the directory `action` cannot be read or put away, and are looked at again.
    ActionsUnread(&'a str),
    /// Outcomes whose records had not reached the disk were taken back; their URIs are fetched again.
    TakenBack(u64),
    /// A file of a process that died was salvaged, or is in the way.
    Salvaged {
        /// The name of the file.
        name: &'a str,
        /// The effect on the file, in words.
        what: &'a str,
    },
    /// The archive has a metadata file of this name, of another job of the same number: this job's has another one.
    MetadataNameTaken {
        /// The name that is taken.
        taken: &'a str,
        /// The name of this job's metadata file.
        name: &'a str,
    },
    /// The crawl cannot be watched by `holdfast crawl status`, and goes on.
    NoViewDoor(&'a str),
    /// The crawl has written no archive file.
    NothingHarvested,
}

/// The function that people are told by.
pub(crate) type NoticeHandler<'a> = &'a (dyn Fn(JobNotice<'_>) + Send + Sync);
