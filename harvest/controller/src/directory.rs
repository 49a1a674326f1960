//! The directory of a job: `JOB_MILLISECONDS`, as NetarchiveSuite has it, with everything that the job writes.
//!
//! ```text
//! job.toml            the job and its order, with passwords: readable by its owner only
//! order.toml          the order without passwords, for the documentation
//! seeds.txt           the seeds
//! harvestInfo.xml     the harvest that the job belongs to
//! run.json            the choices of the person who began it
//! outcome.json        how the crawl ended, once it is over
//! duplicatereductionjobs.json   the jobs that it was deduplicated against
//! metadata.json       the name and size of the metadata file, once it is written
//! metadata-version.json   the number of the metadata file, where it is not the first one
//! view.socket         the door for those who watch the crawl, while it runs
//! state/              the frontier; it goes when all is stored, unless URIs are left or could not be had
//! logs/               crawl.log, progress-statistics.log, requests.log
//! warcs/              archive files that are not yet stored; NAME.invalid is damaged
//! index/              the index of each archive file, and its size and time
//! reports/            the reports at the end
//! metadata/           the metadata file
//! receipts/           the receipt of each stored file
//! lost-files/         files that lay in warcs/ and are not of this job
//! action/ done/       requests to the job that is running, and those that it has taken
//! ```

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use archive_durable::directory::EntryKind;
use archive_durable::{DiskError, directory, read_small, replace_file};
use archive_model::Root;
use harvest_crawler::archive_files::{ClosedFile, OPEN};
use harvest_crawler::crawl::CrawlOutcome;
use harvest_model::order::PrintOrderError;
use harvest_model::{HarvestJob, InvalidOrder};
use harvest_reports::index::ArchiveIndexError;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The ending of an archive file that is damaged.
pub(crate) const INVALID: &str = ".invalid";

mod begin;
mod index;
mod reopen;

pub(crate) use index::IndexedFile;
pub use reopen::JobRemains;

/// The file with the choices of the person who began a job.
const RUN_SETTINGS: &str = "run.json";

/// The longest `job.toml`.
const MAX_JOB: u64 = 256 << 20;

/// The longest request to a job that is running.
pub(crate) const MAX_REQUEST: u64 = 64 << 20;

/// The reason why the directory of a job cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JobDirectoryError {
    /// The disk fails.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The directory has no job.
    #[error("{0} is not the directory of a job: it has no job.toml")]
    NoJob(PathBuf),
    /// The job of the directory cannot be read.
    #[error("cannot read the job in {path}: {source}")]
    Job {
        /// The file that has the job.
        path: PathBuf,
        /// The fault of the job in that file.
        source: InvalidOrder,
    },
    /// The job cannot be written as TOML.
    #[error("cannot write the job as TOML: {0}")]
    Print(#[from] PrintOrderError),
    /// An archive file cannot be indexed.
    #[error(transparent)]
    Index(#[from] ArchiveIndexError),
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file that cannot be read.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The description of an archive file, or another fact of the job, is damaged.
    #[error("cannot read {path}: {source}; see what has damaged it, or begin another job")]
    Entry {
        /// The file that is damaged.
        path: PathBuf,
        /// The fault of the JSON in that file.
        source: serde_json::Error,
    },
}

/// An archive file that the crawl has closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawledFile {
    /// The name of the file.
    pub name: String,
    /// The size of the file in bytes.
    pub size: u64,
    /// The time at which the file was closed.
    pub closed: Timestamp,
    /// The BLAKE3 root of the file as it was closed: what has another one later was damaged since.
    pub root: Root,
}

/// The choices of the person who began a job, which hold when it is resumed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSettings {
    /// Whether nothing is stored.
    pub stores_nothing: bool,
    /// Whether local files stay after they are stored.
    pub keeps_files: bool,
    /// The organisation that harvests.
    pub organization: String,
}

/// The directory of a job.
#[derive(Clone, Debug)]
pub struct JobDirectory {
    path: PathBuf,
    job: HarvestJob,
}

impl JobDirectory {
    /// Opens the directory of a job that was begun.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::NoJob`], [`JobDirectoryError::Job`], [`JobDirectoryError::Disk`].
    pub fn open(path: &Path) -> Result<Self, JobDirectoryError> {
        let file = path.join("job.toml");
        let Some(bytes) = read_small(&file, MAX_JOB)? else {
            return Err(JobDirectoryError::NoJob(path.to_owned()));
        };
        let job = HarvestJob::parse(&String::from_utf8_lossy(&bytes));
        let job = job.map_err(|source| JobDirectoryError::Job { path: file, source })?;
        Ok(Self {
            path: path.to_owned(),
            job,
        })
    }

    /// Returns the choices of the person who began the job.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Read`] if they are absent, [`JobDirectoryError::Entry`] if they are damaged,
    /// [`JobDirectoryError::Disk`].
    pub fn run_settings(&self) -> Result<RunSettings, JobDirectoryError> {
        let absent = || JobDirectoryError::Read {
            path: self.path_of(RUN_SETTINGS),
            source: io::ErrorKind::NotFound.into(),
        };
        self.read_json(RUN_SETTINGS)?.ok_or_else(absent)
    }

    /// Keeps the outcome of the crawl: it is over, and is not resumed.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Disk`].
    pub fn keep_outcome(&self, outcome: &CrawlOutcome) -> Result<(), JobDirectoryError> {
        self.write_json("outcome.json", outcome)
    }

    /// Returns the outcome of the crawl, once it is over.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Entry`] if it is damaged, [`JobDirectoryError::Disk`].
    pub fn read_outcome(&self) -> Result<Option<CrawlOutcome>, JobDirectoryError> {
        self.read_json("outcome.json")
    }

    /// Keeps the numbers of the jobs whose captures the crawl is compared with.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Disk`].
    pub fn keep_deduplicated_against(&self, jobs: &[u64]) -> Result<(), JobDirectoryError> {
        self.write_json("duplicatereductionjobs.json", &jobs)
    }

    /// Returns the numbers of the jobs whose captures the crawl was compared with.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Entry`] if they are damaged, [`JobDirectoryError::Disk`].
    pub fn deduplicated_against(&self) -> Result<Vec<u64>, JobDirectoryError> {
        Ok(self
            .read_json("duplicatereductionjobs.json")?
            .unwrap_or_default())
    }

    fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), JobDirectoryError> {
        let text = self.to_json(name, value)?;
        Ok(replace_file(&self.path_of(name), &text)?)
    }

    /// Returns a value as the file of this name has it.
    fn to_json(&self, name: &str, value: &impl Serialize) -> Result<Vec<u8>, JobDirectoryError> {
        serde_json::to_vec(value).map_err(|source| JobDirectoryError::Entry {
            path: self.path_of(name),
            source,
        })
    }

    fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, JobDirectoryError> {
        let path = self.path_of(name);
        let Some(bytes) = read_small(&path, MAX_JOB)? else {
            return Ok(None);
        };
        let value = serde_json::from_slice(&bytes);
        value.map_err(|source| JobDirectoryError::Entry { path, source })
    }

    /// Returns the job.
    pub const fn job(&self) -> &HarvestJob {
        &self.job
    }

    /// Returns the path of the directory.
    pub fn root(&self) -> &Path {
        &self.path
    }

    /// Returns the path of something in it.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Keeps the name and size of the metadata file.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Disk`].
    pub fn keep_metadata_file(&self, entry: &CrawledFile) -> Result<(), JobDirectoryError> {
        self.write_json("metadata.json", entry)
    }

    /// Returns the metadata file, once it is written, wherever it is now.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Entry`] if its description is damaged, [`JobDirectoryError::Disk`].
    pub fn metadata_file(&self) -> Result<Option<CrawledFile>, JobDirectoryError> {
        self.read_json("metadata.json")
    }

    /// Deletes what nobody needs any more of a job that is done: its frontier.
    ///
    /// # Errors
    ///
    /// [`DiskError`].
    pub(crate) fn remove_frontier(&self) -> Result<(), DiskError> {
        let state = self.path_of("state");
        match directory::entry_kind(&state)? {
            Some(_) => remove_tree(&state),
            None => Ok(()),
        }
    }

    /// Returns the archive files that lie in the directory under their final names, in the order in which they were
    /// begun.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Disk`].
    pub fn closed_files(&self, now: Timestamp) -> Result<Vec<ClosedFile>, JobDirectoryError> {
        let mut files = Vec::new();
        for entry in directory::list_directory(&self.path_of("warcs"))? {
            let name = entry.name.to_string_lossy().into_owned();
            let EntryKind::File { size, changed, .. } = entry.kind else {
                continue;
            };
            if name.ends_with(OPEN) || name.ends_with(INVALID) {
                continue;
            }
            files.push(ClosedFile {
                path: self.path_of("warcs").join(&name),
                name,
                size,
                closed: Timestamp::from_second(changed).unwrap_or(now),
            });
        }
        files.sort_by_cached_key(|file| self.file_order(&file.name));
        Ok(files)
    }

    /// Returns the place of an archive file among those of the job: by its number, because clocks are set back.
    pub(crate) fn file_order(&self, name: &str) -> (u64, String) {
        let rest = name.strip_prefix(&self.job.archive_prefix());
        let number = rest.and_then(|rest| rest.split('-').nth(2)?.parse().ok());
        (number.unwrap_or(0), name.to_owned())
    }
}

/// Deletes a directory with all that is in it.
fn remove_tree(path: &Path) -> Result<(), DiskError> {
    for entry in directory::list_directory(path)? {
        let inner = path.join(&entry.name);
        match entry.kind {
            EntryKind::Directory => remove_tree(&inner)?,
            EntryKind::File { .. } | EntryKind::Other => directory::remove_name(&inner)?,
        }
    }
    directory::remove_empty(path)
}

/// Opens a file for reading.
pub(crate) fn open_file(path: &Path) -> Result<File, JobDirectoryError> {
    File::open(path).map_err(|source| JobDirectoryError::Read {
        path: path.to_owned(),
        source,
    })
}

/// Opens a file for reading; `None` if there is none yet.
pub(crate) fn open_if_there(path: &Path) -> Result<Option<File>, JobDirectoryError> {
    match open_file(path) {
        Err(JobDirectoryError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(None)
        }
        file => file.map(Some),
    }
}

/// Returns whether a name is one of those that editors and copies give to files that they have not finished.
pub(crate) fn is_temporary(name: &str) -> bool {
    let extension = Path::new(name).extension();
    let extension = extension.and_then(|extension| extension.to_str());
    name.starts_with('.')
        || name.ends_with('~')
        || matches!(extension, Some("part" | "tmp" | "swp" | "new"))
}
