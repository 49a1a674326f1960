//! The directory of a job: `JOB_MILLISECONDS`, as NetarchiveSuite has it, with everything that the job writes.
//!
//! ```text
//! job.toml            the job and its order, with passwords: readable by its owner only
//! order.toml          the order without passwords, for the documentation
//! seeds.txt           the seeds
//! harvestInfo.xml     the harvest that the job belongs to
//! run.json            the choices of the person who began it
//! outcome.json        how the crawl ended, once it is over
//! state/              the frontier
//! logs/               crawl.log, progress-statistics.log
//! warcs/              archive files that are not yet stored
//! index/              the index of each archive file, and its size and time
//! reports/            the reports at the end
//! metadata/           the metadata file
//! receipts/           the receipt of each stored file
//! action/ done/       requests to the job that is running, and those that it has taken
//! ```

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use archive_durable::{AppendFile, DiskError, directory, read_small, replace, replace_secret};
use harvest_crawler::archive_files::ClosedFile;
use harvest_crawler::crawl::CrawlOutcome;
use harvest_model::order::PrintError;
use harvest_model::{InvalidOrder, Job};
use harvest_reports::index::{ArchiveIndex, IndexError, IndexLines, index_archive_file};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The longest `job.toml`.
const MAX_JOB: u64 = 256 << 20;

/// The longest description of a file.
const MAX_ENTRY: u64 = 64 << 10;

/// How much is copied at a time.
const PIECE: usize = 256 << 10;

/// Why the directory of a job cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JobDirectoryError {
    /// The disk.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// There is no job in it.
    #[error("{0} is not the directory of a job: it has no job.toml")]
    NoJob(PathBuf),
    /// Its job cannot be read.
    #[error("cannot read the job in {path}: {source}")]
    Job {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: InvalidOrder,
    },
    /// The job cannot be written as TOML.
    #[error("cannot write down the job: {0}")]
    Print(#[from] PrintError),
    /// An archive file cannot be indexed.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The description of an archive file, or another fact of the job, is damaged.
    #[error("cannot read {path}: {source}; look what it was, or begin another job")]
    Entry {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: serde_json::Error,
    },
}

/// An archive file that the crawl has closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// When it was closed.
    pub closed: Timestamp,
}

/// The choices of the person who began a job, which hold when it is gone on with.
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
    job: Job,
}

impl JobDirectory {
    /// Makes the directory of a new job in `base`, which is made as well.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Disk`], [`JobDirectoryError::Print`].
    pub fn create(base: &Path, job: Job, now: Timestamp) -> Result<Self, JobDirectoryError> {
        directory::make(base)?;
        let path = base.join(format!("{}_{}", job.id, now.as_millisecond()));
        directory::make_new(&path)?;
        let created = Self { path, job };
        for name in [
            "logs", "warcs", "index", "reports", "metadata", "receipts", "action", "done",
        ] {
            directory::make_unsynced(&created.path(name))?;
        }
        directory::sync(&created.path)?;
        let job = &created.job;
        let mut seeds = String::new();
        for seed in &job.seeds {
            seeds.push_str(seed.as_str());
            seeds.push('\n');
        }
        replace(&created.path("order.toml"), job.order.to_toml()?.as_bytes())?;
        replace(&created.path("seeds.txt"), seeds.as_bytes())?;
        let info = job.harvest_info_xml();
        replace(&created.path("harvestInfo.xml"), info.as_bytes())?;
        // It comes last: without it the directory is not that of a job.
        replace_secret(&created.path("job.toml"), job.to_toml()?.as_bytes())?;
        Ok(created)
    }

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
        let job = Job::parse(&String::from_utf8_lossy(&bytes));
        let job = job.map_err(|source| JobDirectoryError::Job { path: file, source })?;
        Ok(Self {
            path: path.to_owned(),
            job,
        })
    }

    /// Keeps the choices of the person who began the job.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Disk`].
    pub fn keep_run_settings(&self, settings: &RunSettings) -> Result<(), JobDirectoryError> {
        self.keep("run.json", settings)
    }

    /// The choices of the person who began the job; those of a job that has none are the defaults.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Entry`] if they are damaged, [`JobDirectoryError::Disk`].
    pub fn run_settings(&self) -> Result<RunSettings, JobDirectoryError> {
        Ok(self.kept("run.json")?.unwrap_or_default())
    }

    /// Keeps the outcome of the crawl: it is over, and is not gone on with.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Disk`].
    pub fn keep_outcome(&self, outcome: &CrawlOutcome) -> Result<(), JobDirectoryError> {
        self.keep("outcome.json", outcome)
    }

    /// The outcome of the crawl, once it is over.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Entry`] if it is damaged, [`JobDirectoryError::Disk`].
    pub fn outcome(&self) -> Result<Option<CrawlOutcome>, JobDirectoryError> {
        self.kept("outcome.json")
    }

    fn keep(&self, name: &str, value: &impl Serialize) -> Result<(), JobDirectoryError> {
        let path = self.path(name);
        let text = serde_json::to_vec(value);
        let text = text.map_err(|source| JobDirectoryError::Entry {
            path: path.clone(),
            source,
        })?;
        Ok(replace(&path, &text)?)
    }

    fn kept<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, JobDirectoryError> {
        let path = self.path(name);
        let Some(bytes) = read_small(&path, MAX_JOB)? else {
            return Ok(None);
        };
        let value = serde_json::from_slice(&bytes);
        value.map_err(|source| JobDirectoryError::Entry { path, source })
    }

    /// The job.
    pub const fn job(&self) -> &Job {
        &self.job
    }

    /// Where the directory is.
    pub fn root(&self) -> &Path {
        &self.path
    }

    /// Something in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Indexes an archive file that was closed, and describes it. One that has an index keeps it.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Index`], [`JobDirectoryError::Disk`].
    pub fn index_file(&self, closed: &ClosedFile) -> Result<(), JobDirectoryError> {
        let entry = self.path("index").join(format!("{}.json", closed.name));
        if read_small(&entry, MAX_ENTRY)?.is_some() {
            return Ok(());
        }
        let scratch = self.path("scratch");
        directory::make(&scratch)?;
        let archive = open(&closed.path)?;
        let mut index = index_archive_file(archive, &closed.name, &scratch)?;
        self.keep_lines(&closed.name, "cdx", &mut index.cdx)?;
        self.keep_lines(&closed.name, "cdxj", &mut index.captures)?;
        let description = serde_json::json!(FileEntry {
            name: closed.name.clone(),
            size: closed.size,
            closed: closed.closed,
        });
        replace(&entry, description.to_string().as_bytes())?;
        Ok(())
    }

    /// Copies the lines of an index out of their temporary file.
    fn keep_lines(
        &self,
        name: &str,
        kind: &str,
        lines: &mut IndexLines,
    ) -> Result<(), JobDirectoryError> {
        let path = self.path("index").join(format!("{name}.{kind}"));
        let mut kept = AppendFile::open(&path)?;
        kept.cut(0)?;
        let mut piece = vec![0; PIECE];
        loop {
            let count = lines.lines.read(&mut piece);
            let count = count.map_err(|source| JobDirectoryError::Read {
                path: path.clone(),
                source,
            })?;
            match piece.get(..count) {
                None | Some([]) => break,
                Some(bytes) => kept.append(bytes)?,
            }
        }
        kept.sync()?;
        Ok(())
    }

    /// The archive files that were indexed, by name.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Entry`] if a description is damaged, [`JobDirectoryError::Disk`].
    pub fn indexed_files(&self) -> Result<Vec<FileEntry>, JobDirectoryError> {
        let mut entries = Vec::new();
        for name in directory::names(&self.path("index"))? {
            let path = self.path("index").join(&name);
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let bytes = read_small(&path, MAX_ENTRY)?.unwrap_or_default();
            let entry = serde_json::from_slice(&bytes);
            let entry: FileEntry =
                entry.map_err(|source| JobDirectoryError::Entry { path, source })?;
            entries.push(entry);
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    /// The index of an archive file, as it was kept.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Read`] if it cannot be opened.
    pub fn index_of(&self, name: &str) -> Result<ArchiveIndex, JobDirectoryError> {
        let lines = |kind: &str| -> Result<IndexLines, JobDirectoryError> {
            let lines = open(&self.path("index").join(format!("{name}.{kind}")))?;
            Ok(IndexLines { lines, count: 0 })
        };
        Ok(ArchiveIndex {
            file: name.to_owned(),
            cdx: lines("cdx")?,
            captures: lines("cdxj")?,
            problem_count: 0,
            problems: Vec::new(),
        })
    }

    /// The archive files that lie in the directory under their final names.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Disk`].
    pub fn closed_files(&self, now: Timestamp) -> Result<Vec<ClosedFile>, JobDirectoryError> {
        let mut files = Vec::new();
        for entry in directory::list(&self.path("warcs"))? {
            let name = entry.name.to_string_lossy().into_owned();
            let directory::EntryKind::File { size, changed, .. } = entry.kind else {
                continue;
            };
            let extension = Path::new(&name).extension();
            if extension.is_some_and(|extension| extension == "open" || extension == "invalid") {
                continue;
            }
            files.push(ClosedFile {
                path: self.path("warcs").join(&name),
                name,
                size,
                closed: Timestamp::from_second(changed).unwrap_or(now),
            });
        }
        files.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(files)
    }
}

/// Opens a file for reading.
pub(crate) fn open(path: &Path) -> Result<File, JobDirectoryError> {
    File::open(path).map_err(|source| JobDirectoryError::Read {
        path: path.to_owned(),
        source,
    })
}
