//! A job whose crawl is over, and goes on: with URIs that were left, with failures that are tried again, or by another
//! order.
//!
//! Owns that a crawl which goes on documents itself in a metadata file of its own: one that is archived stays what it is.

use archive_durable::directory::{DirectoryEntry, EntryKind};
use archive_durable::{directory, replace_file, replace_secret};
use harvest_crawler::crawl::CrawlEnd;
use harvest_model::CrawlOrder;
use harvest_model::order::{JobActivity, OrderChangeError};

use super::{JobDirectory, JobDirectoryError, is_temporary};

/// The file with the number of the metadata file.
const METADATA_VERSION: &str = "metadata-version.json";

/// The request by which a job tries all its failures again.
const RETRY_ALL: &str = "retry-failed.retry";

/// What is left to do for a job that a person takes up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobRemains {
    /// Its crawl, which is not over.
    Crawl,
    /// The documents and the storing of its files: its crawl is over.
    Storing,
    /// URIs that its crawl has left, or requests of people to it.
    Uris {
        /// The reason why its crawl had ended.
        end: CrawlEnd,
        /// The number of URIs that were left.
        remaining: u64,
    },
    /// Nothing but URIs that could not be had, which may be tried again.
    Failures(u64),
    /// Nothing.
    Nothing,
}

/// Returns whether an entry of `action` is a request: a file that its writer has finished.
fn is_request(entry: &DirectoryEntry) -> bool {
    let is_file = matches!(entry.kind, EntryKind::File { .. });
    is_file && !is_temporary(&entry.name.to_string_lossy())
}

impl JobDirectory {
    /// Returns what is left to do for the job.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError`].
    pub fn remains(&self, stores_nothing: bool) -> Result<JobRemains, JobDirectoryError> {
        let Some(outcome) = self.read_outcome()? else {
            return Ok(JobRemains::Crawl);
        };
        if !self.is_settled(stores_nothing)? {
            return Ok(JobRemains::Storing);
        }
        if directory::entry_kind(&self.path_of("state"))?.is_none() {
            return Ok(JobRemains::Nothing);
        }
        let remaining = outcome.remaining.values().sum();
        let has_requests = match directory::list_directory(&self.path_of("action")) {
            Err(error) if error.is_absent() => false,
            entries => entries?.iter().any(is_request),
        };
        Ok(if remaining > 0 || has_requests {
            JobRemains::Uris {
                end: outcome.end,
                remaining,
            }
        } else if outcome.progress.failed > 0 {
            JobRemains::Failures(outcome.progress.failed)
        } else {
            JobRemains::Nothing
        })
    }

    /// Returns whether all files of the job are where they are to be.
    fn is_settled(&self, stores_nothing: bool) -> Result<bool, JobDirectoryError> {
        let Some(metadata) = self.metadata_file()? else {
            return Ok(false);
        };
        if stores_nothing {
            return Ok(true);
        }
        let mut names = vec![metadata.name];
        names.extend(self.indexed_files()?.into_iter().map(|file| file.name));
        for name in names {
            if !self.has_receipt(&name)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Opens the crawl of a job again that is over: it goes on with what its frontier has. `retries_failed`: with all
    /// that could not be had, too.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError`].
    pub fn reopen_crawl(&self, retries_failed: bool) -> Result<(), JobDirectoryError> {
        if let Some(metadata) = self.metadata_file()? {
            if self.has_receipt(&metadata.name)? {
                self.take_next_metadata_name()?;
            } else {
                self.remove_metadata(&metadata.name)?;
            }
            directory::remove_name(&self.path_of("metadata.json"))?;
        }
        directory::make_unsynced(&self.path_of("action"))?;
        // Whatever a person had asked for when it ended.
        replace_file(&self.path_of("action").join("resume"), b"")?;
        if retries_failed {
            replace_file(&self.path_of("action").join(RETRY_ALL), b".*\n")?;
        }
        // The crawl is over until this is gone.
        Ok(directory::remove_name(&self.path_of("outcome.json"))?)
    }

    /// Gives the metadata file the next name: the archive has another one of its name. It is written again then.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError`].
    pub(crate) fn take_next_metadata_name(&self) -> Result<(), JobDirectoryError> {
        self.keep_metadata_version(self.metadata_version()?.saturating_add(1))
    }

    /// Deletes a metadata file that is written again.
    pub(crate) fn remove_metadata(&self, name: &str) -> Result<(), JobDirectoryError> {
        let path = self.path_of("metadata").join(name);
        if directory::entry_kind(&path)?.is_some() {
            directory::remove_name(&path)?;
        }
        Ok(())
    }

    /// Returns the number of the metadata file of the job, from 1: further ones are of crawls that went on, or of jobs
    /// whose number was taken.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError`].
    pub fn metadata_version(&self) -> Result<u32, JobDirectoryError> {
        Ok(self.read_json(METADATA_VERSION)?.unwrap_or(1))
    }

    /// Returns the name of a metadata file by its number, as NetarchiveSuite has it: `12-metadata-1.warc.gz`, or with a
    /// collection `COLLECTION-12-34-metadata-1.warc.gz`.
    pub(crate) fn metadata_name(&self, version: u32) -> String {
        let job = &self.job;
        let prefix = if job.collection.is_some() {
            job.archive_prefix()
        } else {
            job.id.to_string()
        };
        format!("{prefix}-metadata-{version}.warc.gz")
    }

    /// Keeps the number of the metadata file.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Disk`].
    pub fn keep_metadata_version(&self, version: u32) -> Result<(), JobDirectoryError> {
        self.write_json(METADATA_VERSION, &version)
    }

    /// Returns the order of the job with the keys of a text in place of its own.
    ///
    /// # Errors
    ///
    /// [`OrderChangeError`].
    pub fn changed_order(
        &self,
        text: &str,
        activity: JobActivity,
    ) -> Result<CrawlOrder, OrderChangeError> {
        self.job.order.changed_by(text, activity)
    }

    /// Keeps another order of the job, which holds from now on. Returns the job with it.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Disk`], [`JobDirectoryError::Print`].
    pub fn keep_order(&self, order: CrawlOrder) -> Result<Self, JobDirectoryError> {
        let changed = Self {
            path: self.path.clone(),
            job: self.job.clone().with_order(order),
        };
        let order = changed.job.order.to_toml()?;
        replace_file(&changed.path_of("order.toml"), order.as_bytes())?;
        let whole = changed.job.to_toml()?;
        replace_secret(&changed.path_of("job.toml"), whole.as_bytes())?;
        Ok(changed)
    }
}
