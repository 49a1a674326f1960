//! The index as it follows the archive: what is decided about files is in the database before anything is done about
//! it.
//!
//! Owns the order of decisions: the queue is held by one decision at a time, and is never ahead of the database. All
//! functions may block on the disk; asynchronous callers use a blocking thread.
//!
//! # Errors
//!
//! All functions fail with [`DbError`] if the database does. All that works on it then ends: where it is damaged, it is
//! begun anew.

mod reading;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use archive_daemon::Clock;
use archive_db::DbError;
use archive_model::{FileContent, FileName};
use index_captures::{CaptureIndex, FileInIndex, FileProgress, FileWriter, IndexCounts};
use parking_lot::{Mutex, MutexGuard};

use crate::decide::parse_content;
use crate::queue::{
    Attempt, BatchNumber, FileBatch, FileQueue, FileQueueLimits, QueueVerdict, WaitingFile,
};

/// The most waiting files that the queue holds; the others wait in the database.
const WINDOW: usize = 20_000;

/// The index as it follows the archive.
#[derive(Debug)]
pub(crate) struct Follower {
    captures: CaptureIndex,
    clock: Clock,
    origin: Instant,
    state: Mutex<FollowerState>,
}

#[derive(Debug)]
struct FollowerState {
    queue: FileQueue,
    /// Whether files may wait in the database that the queue has not.
    has_more: bool,
    /// Raised when all captures of files are forgotten: what a listing before that said does not count.
    epoch: u64,
}

/// The outcome of an attempt to read a file.
#[derive(Debug)]
pub(crate) enum FileOutcome {
    /// The captures of the file were written.
    Extracted(FileWriter),
    /// No node has read the file whole, for this reason. The file waits, and has not failed.
    Unread(String),
    /// The file has failed, for this reason; with the captures that could be read, if there are any.
    Failed(String, Option<FileWriter>),
}

impl Follower {
    pub(crate) fn new(captures: CaptureIndex, limits: FileQueueLimits, clock: Clock) -> Self {
        let origin = clock.instant();
        Self {
            captures,
            clock,
            origin,
            state: Mutex::new(FollowerState {
                queue: FileQueue::new(limits),
                has_more: true,
                epoch: 0,
            }),
        }
    }

    pub(crate) const fn captures(&self) -> &CaptureIndex {
        &self.captures
    }

    /// Takes the files that are read next, if there are any and there is room for another batch.
    pub(crate) fn next_batch(&self) -> Result<Option<FileBatch>, DbError> {
        let mut state = self.lock();
        let now = self.now();
        if state.has_more && state.queue.count_waiting() < WINDOW / 2 {
            state.has_more = false;
            for name in self.captures.pending_files()? {
                if state.queue.count_waiting() >= WINDOW {
                    state.has_more = true;
                    break;
                }
                let entry = self.captures.file_entry(&name?)?;
                if let Some(file) = entry.as_ref().and_then(waiting_file) {
                    state.queue.refill_file(file, now);
                }
            }
        }
        Ok(state.queue.next_batch(now))
    }

    /// Records how the attempt to read a file of a batch ended. Returns the verdict on the file.
    pub(crate) fn settle_file(
        &self,
        batch: BatchNumber,
        name: &FileName,
        outcome: FileOutcome,
    ) -> Result<QueueVerdict, DbError> {
        let mut state = self.lock();
        let (attempt, writer) = match outcome {
            FileOutcome::Extracted(writer) => (Attempt::Extracted, Some(writer)),
            FileOutcome::Unread(reason) => (Attempt::Unread(reason), None),
            FileOutcome::Failed(reason, writer) => (Attempt::Failed(reason), writer),
        };
        let verdict = state.queue.settle_file(batch, name, attempt, self.now());
        match &verdict {
            QueueVerdict::Stale => {}
            QueueVerdict::Indexed => {
                if let Some(writer) = writer {
                    writer.complete_file(None)?;
                }
            }
            QueueVerdict::Retry { failures, reason } => {
                let mut update = self.captures.update_files();
                let pending = FileProgress::Pending {
                    attempts: *failures,
                    reason: Some(reason.clone()),
                };
                update.set_progress(name.as_str(), pending);
                update.commit()?;
            }
            QueueVerdict::Parked { failures, reason } => {
                if let Some(writer) = writer {
                    writer.complete_file(None)?;
                }
                let mut update = self.captures.update_files();
                let parked = FileProgress::Parked {
                    attempts: *failures,
                    reason: self.parked_reason(reason),
                };
                update.set_progress(name.as_str(), parked);
                update.commit()?;
            }
        }
        Ok(verdict)
    }

    /// Ends a batch: files of it that were not settled wait again.
    pub(crate) fn end_batch(&self, batch: BatchNumber) {
        let now = self.now();
        self.lock().queue.end_batch(batch, now);
    }

    /// Returns whether a file of a batch still counts.
    pub(crate) fn counts_for(&self, batch: BatchNumber, name: &FileName) -> bool {
        self.lock().queue.counts_for(batch, name)
    }

    /// Returns how long until a file may be read, if one waits and there is room for another batch.
    pub(crate) fn next_turn(&self) -> Option<Duration> {
        let now = self.now();
        self.lock().queue.next_turn(now)
    }

    /// Lets files be tried again that are parked, with fresh attempts: those that are named, or all. Returns how many,
    /// or which name is not parked.
    pub(crate) fn retry_files(&self, names: &[FileName]) -> Result<Result<u64, FileName>, DbError> {
        let mut state = self.lock();
        let mut files = Vec::new();
        if names.is_empty() {
            for name in self.captures.parked_files()? {
                files.push(name?);
            }
        }
        for name in names {
            let entry = self.captures.file_entry(name.as_str())?;
            let is_parked = entry.is_some_and(|entry| {
                !entry.is_withdrawn && matches!(entry.progress, FileProgress::Parked { .. })
            });
            if !is_parked {
                return Ok(Err(name.clone()));
            }
            files.push(name.as_str().to_owned());
        }
        files.sort();
        files.dedup();
        for some in files.chunks(MOST_CHANGES) {
            let mut update = self.captures.update_files();
            for name in some {
                update.set_progress(name, FileProgress::PENDING);
            }
            update.commit()?;
        }
        state.has_more = true;
        Ok(Ok(files.len() as u64))
    }

    /// Puts a file back into the queue: its captures in the index are not those of its bytes.
    pub(crate) fn read_again(&self, name: &FileName) -> Result<(), DbError> {
        let mut state = self.lock();
        let entry = self.captures.file_entry(name.as_str())?;
        let is_indexed = entry.is_some_and(|entry| {
            matches!(
                entry.progress,
                FileProgress::Indexed | FileProgress::NothingToIndex
            )
        });
        if is_indexed {
            let mut update = self.captures.update_files();
            update.set_progress(name.as_str(), FileProgress::PENDING);
            update.commit()?;
            state.has_more = true;
        }
        Ok(())
    }

    /// Forgets all files and their captures, and how far the archive was followed. Returns the number of captures that
    /// went.
    pub(crate) fn forget_files(&self) -> Result<u64, DbError> {
        let mut state = self.lock();
        let captures = self.captures.counts().captures;
        state.queue.clear_files();
        state.epoch = state.epoch.saturating_add(1);
        self.captures.forget_files()?;
        state.has_more = true;
        Ok(captures)
    }

    /// Returns how many files and captures there are.
    pub(crate) fn counts(&self) -> IndexCounts {
        self.captures.counts()
    }

    /// Splits the reason of a parked file from the time at which it was parked, which comes first.
    fn parked_reason(&self, reason: &str) -> String {
        format!("{} {reason}", self.clock.now())
    }

    fn now(&self) -> Duration {
        self.clock.elapsed_since(self.origin)
    }

    /// Locks the state. Nothing panics while it holds the lock, so that what is inside is whole even then.
    fn lock(&self) -> MutexGuard<'_, FollowerState> {
        self.state.lock()
    }
}

/// The most changes of one batch of the database.
const MOST_CHANGES: usize = 1000;

/// Splits the reason of a parked file from the time before it.
pub(crate) fn split_reason(reason: &str) -> (Option<jiff::Timestamp>, &str) {
    match reason.split_once(' ') {
        Some((time, rest)) if time.parse::<jiff::Timestamp>().is_ok() => (time.parse().ok(), rest),
        _ => (None, reason),
    }
}

/// Returns the content of a file, as the index keeps it.
pub(crate) fn content_of(entry: &FileInIndex) -> Option<FileContent> {
    entry.note.as_deref().and_then(parse_content)
}

/// Returns a file that waits, if it does.
fn waiting_file(entry: &FileInIndex) -> Option<WaitingFile> {
    let FileProgress::Pending { attempts, .. } = entry.progress else {
        return None;
    };
    if entry.is_withdrawn {
        return None;
    }
    Some(WaitingFile {
        name: FileName::new(&entry.name).ok()?,
        size: content_of(entry).map_or(0, |content| content.size),
        failures: attempts,
    })
}
