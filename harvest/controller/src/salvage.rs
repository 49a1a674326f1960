//! The files that a dead process has left in the directory of a job.
//!
//! Owns what becomes of them before the job is resumed. Where the frontier is there, the recorder of the crawl cuts its
//! open file and log behind the last outcome that all have. Where it is lost, the crawl cannot be resumed: its open
//! file is cut behind the last whole record and closed, one that is damaged before its end is set aside as
//! `NAME.invalid`, and the job ends with what was recorded. Files that are not of this job are moved to `lost-files`.
//! Nothing is deleted but an open file without a record of the crawl.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

use archive_durable::directory::EntryKind;
use archive_durable::{AppendFile, DiskError, directory};
use archive_formats::warc::{ReadRecordError, WarcReader};
use harvest_crawler::archive_files::OPEN;
use harvest_crawler::crawl::{CrawlEnd, CrawlOutcome, CrawlProgress};
use harvest_crawler::recorder::CRAWL_LOG;
use harvest_policy::status::FetchStatus;
use harvest_reports::log::{CrawlLogReader, LogEntry};
use harvest_reports::progress::{CrawlState, EndMessage, FILE_NAME as PROGRESS_LOG};

use crate::directory::{INVALID, JobDirectory, JobDirectoryError};
use crate::environment::JobEnvironment;
use crate::notice::{JobNotice, NoticeHandler};
use crate::progress_log::{ProgressLog, cut_to_whole_lines};

/// The reason why files cannot be salvaged.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    /// The disk fails.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The directory of the job.
    #[error(transparent)]
    Directory(#[from] JobDirectoryError),
    /// A file cannot be read.
    #[error("cannot read {path}, which an earlier process of the job has left: {source}")]
    Read {
        /// The file that cannot be read.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// An archive file cannot be read.
    #[error("cannot read {path}, which an earlier process of the job has left: {source}")]
    Archive {
        /// The archive file that cannot be read.
        path: PathBuf,
        /// The error of the reader.
        source: ReadRecordError,
    },
}

impl JobDirectory {
    /// Gives a damaged archive file the name `NAME.invalid`.
    ///
    /// # Errors
    ///
    /// [`DiskError`].
    pub fn set_aside(&self, name: &str) -> Result<(), DiskError> {
        let path = self.path_of("warcs").join(name);
        directory::move_new(
            &path,
            &self.path_of("warcs").join(format!("{name}{INVALID}")),
        )
    }

    /// Returns the damaged archive files, as they are named now, with their sizes.
    ///
    /// # Errors
    ///
    /// [`DiskError`].
    pub fn set_aside_files(&self) -> Result<Vec<(String, u64)>, DiskError> {
        let mut files = Vec::new();
        for entry in directory::list_directory(&self.path_of("warcs"))? {
            let name = entry.name.to_string_lossy().into_owned();
            if let (true, EntryKind::File { size, .. }) = (name.ends_with(INVALID), entry.kind) {
                files.push((name, size));
            }
        }
        Ok(files)
    }
}

/// Makes the files of a job such that it can go on.
pub(crate) fn salvage_crawl(
    job: &JobDirectory,
    environment: &JobEnvironment,
    notify: NoticeHandler<'_>,
) -> Result<(), SalvageError> {
    move_lost_files(job, notify)?;
    let log = job.path_of("logs").join(CRAWL_LOG);
    let has_outcome = job.read_outcome()?.is_some();
    if !has_outcome && (has_frontier(job)? || file_length(&log)? == 0) {
        return Ok(());
    }
    for name in file_names(&job.path_of("warcs"))? {
        if name.ends_with(OPEN) {
            let what = close_open_file(&job.path_of("warcs").join(&name))?;
            notify(JobNotice::Salvaged { name: &name, what });
        }
    }
    if !has_outcome {
        cut_to_whole_lines(&log)?;
        let outcome = outcome_from_log(&log)?;
        note_end(job, environment)?;
        job.keep_outcome(&outcome)?;
        notify(JobNotice::Salvaged {
            name: "state",
            what: "the frontier is lost: the crawl cannot go on, and what it has recorded is stored",
        });
    }
    Ok(())
}

/// Moves files that are not of this job out of the way.
fn move_lost_files(job: &JobDirectory, notify: NoticeHandler<'_>) -> Result<(), SalvageError> {
    let prefix = format!("{}-", job.job().archive_prefix());
    for name in file_names(&job.path_of("warcs"))? {
        if name.starts_with(&prefix) {
            continue;
        }
        directory::make_directory(&job.path_of("lost-files"))?;
        let lost = job.path_of("lost-files").join(&name);
        directory::move_new(&job.path_of("warcs").join(&name), &lost)?;
        notify(JobNotice::Salvaged {
            name: &name,
            what: "is not of this job, and was moved to `lost-files`",
        });
    }
    Ok(())
}

fn file_names(folder: &Path) -> Result<Vec<String>, DiskError> {
    let names = directory::list_names(folder)?.into_iter();
    let mut names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

fn has_frontier(job: &JobDirectory) -> Result<bool, DiskError> {
    let state = job.path_of("state");
    Ok(match directory::entry_kind(&state)? {
        Some(EntryKind::Directory) => !directory::list_names(&state)?.is_empty(),
        _ => false,
    })
}

fn file_length(path: &Path) -> Result<u64, DiskError> {
    Ok(match directory::entry_kind(path)? {
        Some(EntryKind::File { size, .. }) => size,
        _ => 0,
    })
}

/// The whole records of an archive file.
#[derive(Debug, Default, PartialEq, Eq)]
struct WholeRecords {
    count: u64,
    /// The end of the last one before any damage.
    end: u64,
    /// Whether whole records follow damage.
    is_broken: bool,
}

/// Closes an archive file that was being written. Returns the words for what was done.
fn close_open_file(path: &Path) -> Result<&'static str, SalvageError> {
    let unreadable = |source| SalvageError::Read {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(unreadable)?;
    let records = whole_records(file).map_err(|source| SalvageError::Archive {
        path: path.to_owned(),
        source,
    })?;
    let closed = path.with_extension("");
    // The first record says what the file is, and no more.
    let has_crawl = records.count > 1;
    if !has_crawl && records.end == file_length(path)? {
        directory::remove_name(path)?;
        return Ok("has no record of the crawl, and was deleted");
    }
    if !has_crawl || records.is_broken {
        let mut name = closed.into_os_string();
        name.push(INVALID);
        directory::move_new(path, Path::new(&name))?;
        return Ok("is damaged before its end, and was set aside as `.invalid`");
    }
    AppendFile::open(path)?.cut(records.end)?;
    directory::move_new(path, &closed)?;
    Ok("was cut behind its last whole record, and closed")
}

fn whole_records(file: File) -> Result<WholeRecords, ReadRecordError> {
    let mut reader = WarcReader::new(BufReader::new(file));
    let mut whole = WholeRecords::default();
    let mut is_damaged = false;
    while let Some(record) = reader.next_record()? {
        let end = record.read_end()?;
        let costs = end.defects.iter().any(|one| one.class.costs_content());
        // Damage is named with the record that follows it, and leaves a gap before that one.
        is_damaged |= end.offset != whole.end;
        let is_whole = end.complete && (is_damaged || !costs);
        match end.length.filter(|_| is_whole) {
            None => is_damaged = true,
            Some(_) if is_damaged => whole.is_broken = true,
            Some(length) => {
                whole.count += 1;
                whole.end = end.offset.saturating_add(length);
            }
        }
    }
    let defects = reader.take_defects();
    let mut defects = defects.iter().filter(|one| one.class.costs_content());
    whole.is_broken |= defects.any(|defect| defect.offset < whole.end);
    Ok(whole)
}

/// Notes the end of the crawl where the harvest report looks for it.
fn note_end(job: &JobDirectory, environment: &JobEnvironment) -> Result<(), DiskError> {
    let path = job.path_of("logs").join(PROGRESS_LOG);
    let mut log = ProgressLog::reopen(&path, environment.clock.clone())?;
    log.note_state(CrawlState::Ended(EndMessage::AbnormalExit))
}

/// Returns the outcome of a crawl of which nothing but its log is left.
fn outcome_from_log(log: &Path) -> Result<CrawlOutcome, SalvageError> {
    let unreadable = |source| SalvageError::Read {
        path: log.to_owned(),
        source,
    };
    let mut progress = CrawlProgress::default();
    let file = File::open(log).map_err(unreadable)?;
    for entry in CrawlLogReader::new(BufReader::new(file)) {
        let LogEntry::Line(line) = entry.map_err(unreadable)? else {
            continue;
        };
        let status = FetchStatus::from_number(line.status);
        progress.fetched += u64::from(status.is_success());
        progress.failed += u64::from(status.is_failure());
        let bytes = line.content_size().unwrap_or(0);
        progress.bytes = progress.bytes.saturating_add(bytes);
    }
    Ok(CrawlOutcome {
        end: CrawlEnd::Broken,
        progress,
        taken_back: 0,
        duration: Duration::ZERO,
        remaining: BTreeMap::new(),
        remaining_of_seeds: BTreeMap::new(),
        quarantined: Vec::new(),
        failing_seeds: Vec::new(),
        connections: Vec::new(),
    })
}

#[cfg(test)]
mod tests;
