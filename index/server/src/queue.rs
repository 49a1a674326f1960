//! The files that wait for their captures: which of them are read next, and what follows from how that went.
//!
//! Pure: no clock, no disk, no await. Time is the duration since the start of the process. The queue holds a window of
//! the files whose row in the database says that they wait; the rest stays in the database until there is room.
//!
//! Invariant: a file is in the queue at most once, waiting or being read. A file that was dropped or put again while it
//! was being read is stale there: nothing that comes of that read counts.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use archive_model::FileName;

/// The number of failures that park a file.
pub const MOST_FAILURES: u32 = 3;

/// After how many failures the pause is the longest one.
const LAST_PAUSE: u32 = MOST_FAILURES - 1;

/// The limits of what is read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileQueueLimits {
    /// The most batches at the same time.
    pub batches: usize,
    /// The most files of a batch.
    pub files: usize,
    /// The most bytes of files of a batch; one larger file is a batch of its own.
    pub bytes: u64,
    /// The pause before a file is tried again after its first failure; it is tenfold after the second one, and while no
    /// node has read the file.
    pub pause: Duration,
}

/// The number of a batch, since the start of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchNumber(pub u64);

/// A file that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingFile {
    /// The name of the file.
    pub name: FileName,
    /// The size of the file in bytes.
    pub size: u64,
    /// The number of attempts that have failed.
    pub failures: u32,
}

/// Files that are to be read together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileBatch {
    /// The number of the batch.
    pub number: BatchNumber,
    /// The files, sorted by name.
    pub files: Vec<WaitingFile>,
}

/// The end of an attempt to read a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// The captures of the file are in the database.
    Extracted,
    /// No node has read the file, for this reason; that does not count as a failure.
    Unread(String),
    /// The attempt failed, for this reason.
    Failed(String),
}

/// The state of a file after an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueVerdict {
    /// The file is indexed.
    Indexed,
    /// The file waits for its next attempt.
    Retry {
        /// The number of attempts that have failed.
        failures: u32,
        /// The reason of the last failure, or the reason why the attempt could not be made.
        reason: String,
    },
    /// The file waits until an operator lets it be tried again.
    Parked {
        /// The number of attempts that have failed.
        failures: u32,
        /// The reason of the last one.
        reason: String,
    },
    /// The file was dropped from the queue while it was read: nothing is recorded.
    Stale,
}

/// A queue of the files that have to be read, in memory only.
#[derive(Clone, Debug)]
pub struct FileQueue {
    limits: FileQueueLimits,
    /// Files that may be read from that moment on.
    waiting: BTreeMap<FileName, WaitingEntry>,
    /// The waiting files in the order of their turns.
    turns: BTreeSet<(Duration, FileName)>,
    reading: BTreeMap<BatchNumber, BTreeMap<FileName, ReadingEntry>>,
    next: u64,
}

#[derive(Clone, Debug)]
struct WaitingEntry {
    size: u64,
    failures: u32,
    turn: Duration,
}

#[derive(Clone, Debug)]
struct ReadingEntry {
    size: u64,
    failures: u32,
    is_stale: bool,
}

impl FileQueue {
    /// Makes an empty queue.
    pub fn new(limits: FileQueueLimits) -> Self {
        Self {
            limits,
            waiting: BTreeMap::new(),
            turns: BTreeSet::new(),
            reading: BTreeMap::new(),
            next: 0,
        }
    }

    /// Adds a file at the end of the queue. An earlier entry of the file no longer counts.
    pub fn put_file(&mut self, file: WaitingFile, now: Duration) {
        self.drop_file(&file.name);
        let turn = now.saturating_add(self.pause(file.failures));
        self.wait(file.name, file.size, file.failures, turn);
    }

    /// Adds a file that waits in the database, unless the queue has it.
    pub fn refill_file(&mut self, file: WaitingFile, now: Duration) {
        let is_read = self
            .reading
            .values()
            .any(|files| files.get(&file.name).is_some_and(|entry| !entry.is_stale));
        if !is_read && !self.waiting.contains_key(&file.name) {
            self.wait(file.name, file.size, file.failures, now);
        }
    }

    /// Drops a file: it is withdrawn, or no longer in the archive.
    pub fn drop_file(&mut self, name: &FileName) {
        if let Some(entry) = self.waiting.remove(name) {
            self.turns.remove(&(entry.turn, name.clone()));
        }
        for files in self.reading.values_mut() {
            if let Some(entry) = files.get_mut(name) {
                entry.is_stale = true;
            }
        }
    }

    /// Empties the queue.
    pub fn clear_files(&mut self) {
        self.waiting.clear();
        self.turns.clear();
        for entry in self.reading.values_mut().flat_map(BTreeMap::values_mut) {
            entry.is_stale = true;
        }
    }

    /// Takes the files whose turn it is, if another batch may be read.
    pub fn next_batch(&mut self, now: Duration) -> Option<FileBatch> {
        if self.reading.len() >= self.limits.batches {
            return None;
        }
        let mut files = Vec::new();
        let mut bytes = 0_u64;
        while files.len() < self.limits.files {
            let Some((turn, name)) = self.turns.first() else {
                break;
            };
            let size = self.waiting.get(name).map_or(0, |entry| entry.size);
            let together = bytes.saturating_add(size);
            if *turn > now || (!files.is_empty() && together > self.limits.bytes) {
                break;
            }
            // A file that failed is read alone: whatever it does, it does to itself.
            let is_suspect = self
                .waiting
                .get(name)
                .is_some_and(|entry| entry.failures > 0);
            if is_suspect && !files.is_empty() {
                break;
            }
            let name = name.clone();
            self.turns.pop_first();
            let Some(entry) = self.waiting.remove(&name) else {
                continue;
            };
            bytes = together;
            files.push(WaitingFile {
                name,
                size: entry.size,
                failures: entry.failures,
            });
            if is_suspect {
                break;
            }
        }
        if files.is_empty() {
            return None;
        }
        files.sort_by(|one, other| one.name.cmp(&other.name));
        let number = BatchNumber(self.next);
        self.next = self.next.saturating_add(1);
        let reading = files.iter().map(|file| {
            let entry = ReadingEntry {
                size: file.size,
                failures: file.failures,
                is_stale: false,
            };
            (file.name.clone(), entry)
        });
        self.reading.insert(number, reading.collect());
        Some(FileBatch { number, files })
    }

    /// Returns whether the outcome of a file in a batch still counts.
    pub fn counts_for(&self, batch: BatchNumber, name: &FileName) -> bool {
        let files = self.reading.get(&batch);
        files
            .and_then(|files| files.get(name))
            .is_some_and(|entry| !entry.is_stale)
    }

    /// Returns the verdict on a file of a batch. A file that is tried again is back in the queue.
    pub fn settle_file(
        &mut self,
        batch: BatchNumber,
        name: &FileName,
        attempt: Attempt,
        now: Duration,
    ) -> QueueVerdict {
        let entry = self
            .reading
            .get_mut(&batch)
            .and_then(|files| files.remove(name));
        let Some(entry) = entry.filter(|entry| !entry.is_stale) else {
            return QueueVerdict::Stale;
        };
        let reason = match attempt {
            Attempt::Extracted => return QueueVerdict::Indexed,
            Attempt::Unread(reason) => {
                let failures = entry.failures;
                let turn = now.saturating_add(self.pause(LAST_PAUSE));
                self.wait(name.clone(), entry.size, failures, turn);
                return QueueVerdict::Retry { failures, reason };
            }
            Attempt::Failed(reason) => reason,
        };
        let failures = entry.failures.saturating_add(1);
        if failures >= MOST_FAILURES {
            return QueueVerdict::Parked { failures, reason };
        }
        let turn = now.saturating_add(self.pause(failures));
        self.wait(name.clone(), entry.size, failures, turn);
        QueueVerdict::Retry { failures, reason }
    }

    /// Ends a batch. Files of it that were not settled wait again, as if they had not been read: the batch could not be
    /// run, which is no fault of theirs.
    pub fn end_batch(&mut self, batch: BatchNumber, now: Duration) {
        for (name, entry) in self.reading.remove(&batch).unwrap_or_default() {
            if !entry.is_stale {
                self.wait(name, entry.size, entry.failures, now);
            }
        }
    }

    /// Returns how many files wait in the queue.
    pub fn count_waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns how many batches are being read.
    pub fn count_batches(&self) -> usize {
        self.reading.len()
    }

    /// Returns how long until the next turn, if there is room for another batch and a file waits.
    pub fn next_turn(&self, now: Duration) -> Option<Duration> {
        if self.reading.len() >= self.limits.batches {
            return None;
        }
        let (turn, _) = self.turns.first()?;
        Some(turn.saturating_sub(now))
    }

    fn wait(&mut self, name: FileName, size: u64, failures: u32, turn: Duration) {
        let entry = WaitingEntry {
            size,
            failures,
            turn,
        };
        if let Some(before) = self.waiting.insert(name.clone(), entry) {
            self.turns.remove(&(before.turn, name.clone()));
        }
        self.turns.insert((turn, name));
    }

    fn pause(&self, failures: u32) -> Duration {
        match failures.checked_sub(1) {
            None => Duration::ZERO,
            Some(power) => self
                .limits
                .pause
                .saturating_mul(10_u32.saturating_pow(power)),
        }
    }
}
