//! The index as it follows the archive: what is decided about files is in the database before anything is done about it.
//!
//! Owns the order of decisions: the queue is held by one decision at a time, and is never ahead of the database. All functions
//! may block on the disk; asynchronous callers use a blocking thread.
//!
//! # Errors
//!
//! All functions fail with [`DbError`] if the database does. The part then ends: it is opened, or built anew, at its next
//! start.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use archive_client::FeedStep;
use archive_daemon::Clock;
use archive_db::DbError;
use archive_model::{FeedChange, FeedFile, FeedPosition, FileName};
use index_captures::{Captures, Counts, FileEntry, FileWriter, FollowState, Progress};

use crate::decide::{FileAction, FileContent, KnownFile, on_change, on_listing};
use crate::queue::{Attempt, BatchNumber, FileBatch, Queue, QueueLimits, Verdict, WaitingFile};

/// How many waiting files the queue holds; the others wait in the database.
const WINDOW: usize = 20_000;

/// The index as it follows the archive.
#[derive(Debug)]
pub(crate) struct Follower {
    captures: Captures,
    clock: Clock,
    origin: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    queue: Queue,
    /// Whether files may wait in the database that the queue has not.
    has_more: bool,
    /// Raised when all captures of files are forgotten: what a listing before that said does not count.
    epoch: u64,
}

/// A listing that is being compared with the index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparing {
    /// Files up to this name were compared.
    after: Option<String>,
    files: Vec<FeedFile>,
}

/// The place of one reading of the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FeedReading {
    /// How often everything had been forgotten when it began.
    epoch: u64,
    /// The listing that is compared; absent: changes are followed.
    listing: Option<Comparing>,
}

impl FeedReading {
    /// Whether a listing is compared.
    pub(crate) const fn is_listing(&self) -> bool {
        self.listing.is_some()
    }
}

/// The outcome of an attempt to read a file.
#[derive(Debug)]
pub(crate) enum FileOutcome {
    /// Its captures were written.
    Extracted(FileWriter),
    /// It has failed, and why; the captures that could be read, if there are any.
    Failed(String, Option<FileWriter>),
}

impl Follower {
    pub(crate) fn new(captures: Captures, limits: QueueLimits, clock: Clock) -> Self {
        let origin = clock.instant();
        Self {
            captures,
            clock,
            origin,
            state: Mutex::new(State {
                queue: Queue::new(limits),
                has_more: true,
                epoch: 0,
            }),
        }
    }

    pub(crate) const fn captures(&self) -> &Captures {
        &self.captures
    }

    /// Begins a reading of the feed: from the position that was kept, if there is one.
    pub(crate) fn begin_reading(&self) -> Result<(FeedReading, Option<FeedPosition>), DbError> {
        let reading = FeedReading {
            epoch: self.lock().epoch,
            listing: None,
        };
        Ok((reading, self.position()?))
    }

    /// Returns the position up to which the archive was followed, if it was.
    pub(crate) fn position(&self) -> Result<Option<FeedPosition>, DbError> {
        let state = self.captures.follow_state()?;
        Ok(state.and_then(|state| {
            let lineage = u64::from_str_radix(&state.feed, 16).ok()?;
            let number = state.position;
            Some(FeedPosition { number, lineage })
        }))
    }

    /// Takes steps of the feed, in their order. `false`: everything was forgotten meanwhile, and the feed has to be begun
    /// anew; nothing of a reading that was begun before counts.
    pub(crate) fn apply(
        &self,
        steps: Vec<FeedStep>,
        reading: &mut FeedReading,
    ) -> Result<bool, DbError> {
        let mut changes: Vec<FeedChange> = Vec::new();
        for step in steps {
            if !matches!(step, FeedStep::Change(_)) {
                self.change(&std::mem::take(&mut changes), reading)?;
            }
            match step {
                FeedStep::Listing => reading.listing = Some(Comparing::default()),
                FeedStep::File(file) => {
                    if let Some(listing) = &mut reading.listing {
                        listing.files.push(file);
                    }
                }
                FeedStep::Listed(position) => {
                    self.compare(reading, Some(position))?;
                    reading.listing = None;
                }
                FeedStep::Change(change) => changes.push(change),
                FeedStep::CaughtUp(_) => {}
            }
        }
        self.change(&changes, reading)?;
        self.compare(reading, None)?;
        Ok(self.lock().epoch == reading.epoch)
    }

    /// Takes changes, and keeps how far they go in the same batch.
    fn change(&self, changes: &[FeedChange], reading: &FeedReading) -> Result<(), DbError> {
        let Some(last) = changes.last() else {
            return Ok(());
        };
        let mut state = self.lock();
        if state.epoch != reading.epoch {
            return Ok(());
        }
        let mut update = FileChanges::default();
        for change in changes {
            let name = change.file.name.as_str();
            // A change may be about a file that an earlier one of them was about.
            let known = match update.known(name) {
                Some(known) => known,
                None => self
                    .captures
                    .file_entry(name)?
                    .map(|entry| known_file(&entry)),
            };
            let content = FileContent::from(&change.file);
            let action = on_change(known, change.kind, content);
            update.push(change.file.name.clone(), action, content);
        }
        self.commit(&mut state, update, Some(last.position))
    }

    /// Compares the listed files with those that the index knows; with a position, the listing is complete.
    fn compare(&self, reading: &mut FeedReading, end: Option<FeedPosition>) -> Result<(), DbError> {
        let epoch = reading.epoch;
        let Some(comparing) = &mut reading.listing else {
            return Ok(());
        };
        let listed = std::mem::take(&mut comparing.files);
        let mut state = self.lock();
        if (listed.is_empty() && end.is_none()) || state.epoch != epoch {
            return Ok(());
        }
        let last = listed.last().map(|file| file.name.clone());
        let mut update = FileChanges::default();
        let mut listed = listed.into_iter().peekable();
        for entry in self.captures.files(comparing.after.as_deref())? {
            let entry = entry?;
            let is_beyond = last
                .as_ref()
                .is_none_or(|last| entry.name.as_str() > last.as_str());
            if is_beyond && end.is_none() {
                break;
            }
            while let Some(new) = listed.next_if(|file| file.name.as_str() < entry.name.as_str()) {
                let content = FileContent::from(&new);
                update.push(new.name, on_listing(None, Some(content)), content);
            }
            let same = listed.next_if(|file| file.name.as_str() == entry.name.as_str());
            let known = Some(known_file(&entry));
            let content = same.as_ref().map(FileContent::from);
            let action = on_listing(known, content);
            if action == FileAction::Nothing {
                continue;
            }
            let Ok(name) = FileName::new(&entry.name) else {
                continue;
            };
            let kept = content.or(known.and_then(|known| known.content));
            update.push(name, action, kept.unwrap_or(NO_CONTENT));
            if update.len() >= MOST_CHANGES {
                self.commit(&mut state, std::mem::take(&mut update), None)?;
            }
        }
        for new in listed {
            let content = FileContent::from(&new);
            update.push(new.name, on_listing(None, Some(content)), content);
        }
        comparing.after = last
            .map(|name| name.as_str().to_owned())
            .or(comparing.after.take());
        self.commit(&mut state, update, end)
    }

    /// Writes changes, and then tells the queue.
    fn commit(
        &self,
        state: &mut State,
        changes: FileChanges,
        position: Option<FeedPosition>,
    ) -> Result<(), DbError> {
        if changes.is_empty() && position.is_none() {
            return Ok(());
        }
        let mut update = self.captures.update();
        for change in &changes.all {
            let name = change.name.as_str();
            match change.action {
                FileAction::Nothing => {}
                FileAction::Index => {
                    update
                        .progress(name, Progress::PENDING)
                        .note(name, Some(change.content.to_string()));
                }
                FileAction::IndexAnew => {
                    update
                        .delete(name)
                        .progress(name, Progress::PENDING)
                        .note(name, Some(change.content.to_string()));
                }
                FileAction::Withdraw => {
                    update.withdraw(name);
                }
                FileAction::BringBack => {
                    update.bring_back(name);
                }
                FileAction::Delete => {
                    update.delete(name);
                }
            }
        }
        if let Some(position) = position {
            update.follow(FollowState {
                feed: format!("{:016x}", position.lineage),
                position: position.number,
            });
        }
        update.commit()?;
        let now = self.now();
        for change in changes.all {
            match change.action {
                FileAction::Nothing => {}
                FileAction::Index | FileAction::IndexAnew => {
                    let file = WaitingFile {
                        name: change.name,
                        size: change.content.size,
                        failures: 0,
                    };
                    self.put(state, file, now);
                }
                FileAction::Withdraw | FileAction::Delete => state.queue.drop_file(&change.name),
                FileAction::BringBack => {
                    let entry = self.captures.file_entry(change.name.as_str())?;
                    if let Some(file) = entry.as_ref().and_then(waiting_file) {
                        self.put(state, file, now);
                    }
                }
            }
        }
        Ok(())
    }

    fn put(&self, state: &mut State, file: WaitingFile, now: Duration) {
        if state.queue.waiting() < WINDOW {
            state.queue.put(file, now);
        } else {
            state.queue.drop_file(&file.name);
            state.has_more = true;
        }
    }

    /// Takes the files that are read next, if there are any and there is room for another batch.
    pub(crate) fn next_batch(&self) -> Result<Option<FileBatch>, DbError> {
        let mut state = self.lock();
        let now = self.now();
        if state.has_more && state.queue.waiting() < WINDOW / 2 {
            state.has_more = false;
            for name in self.captures.pending()? {
                if state.queue.waiting() >= WINDOW {
                    state.has_more = true;
                    break;
                }
                let entry = self.captures.file_entry(&name?)?;
                if let Some(file) = entry.as_ref().and_then(waiting_file) {
                    state.queue.refill(file, now);
                }
            }
        }
        Ok(state.queue.next_batch(now))
    }

    /// Records how the attempt to read a file of a batch ended. Says what becomes of it.
    pub(crate) fn settle(
        &self,
        batch: BatchNumber,
        name: &FileName,
        outcome: FileOutcome,
    ) -> Result<Verdict, DbError> {
        let mut state = self.lock();
        let (attempt, writer) = match outcome {
            FileOutcome::Extracted(writer) => (Attempt::Extracted, Some(writer)),
            FileOutcome::Failed(reason, writer) => (Attempt::Failed(reason), writer),
        };
        let reason = match &attempt {
            Attempt::Failed(reason) => Some(reason.clone()),
            Attempt::Extracted => None,
        };
        let verdict = state.queue.settle(batch, name, attempt, self.now());
        match &verdict {
            Verdict::Stale => {}
            Verdict::Indexed => {
                if let Some(writer) = writer {
                    writer.complete(None)?;
                }
            }
            Verdict::Retry { failures } => {
                let mut update = self.captures.update();
                let attempts = *failures;
                update.progress(name.as_str(), Progress::Pending { attempts, reason });
                update.commit()?;
            }
            Verdict::Parked { failures, reason } => {
                if let Some(writer) = writer {
                    writer.complete(None)?;
                }
                let mut update = self.captures.update();
                let parked = Progress::Parked {
                    attempts: *failures,
                    reason: self.parked_reason(reason),
                };
                update.progress(name.as_str(), parked);
                update.commit()?;
            }
        }
        Ok(verdict)
    }

    /// Ends a batch: files of it that were not settled wait again.
    pub(crate) fn end(&self, batch: BatchNumber) {
        let now = self.now();
        self.lock().queue.end(batch, now);
    }

    /// Returns whether a file of a batch still counts.
    pub(crate) fn counts_for(&self, batch: BatchNumber, name: &FileName) -> bool {
        self.lock().queue.counts(batch, name)
    }

    /// Returns how long until a file may be read, if one waits and there is room for another batch.
    pub(crate) fn next_turn(&self) -> Option<Duration> {
        let now = self.now();
        self.lock().queue.next_turn(now)
    }

    /// Lets files be tried again that are parked, with fresh attempts: those that are named, or all. Says how many, or which
    /// name is not parked.
    pub(crate) fn retry(&self, names: &[FileName]) -> Result<Result<u64, FileName>, DbError> {
        let mut state = self.lock();
        let mut files = Vec::new();
        if names.is_empty() {
            for name in self.captures.parked()? {
                files.push(name?);
            }
        }
        for name in names {
            let entry = self.captures.file_entry(name.as_str())?;
            let is_parked = entry.is_some_and(|entry| {
                !entry.is_withdrawn && matches!(entry.progress, Progress::Parked { .. })
            });
            if !is_parked {
                return Ok(Err(name.clone()));
            }
            files.push(name.as_str().to_owned());
        }
        files.sort();
        files.dedup();
        for some in files.chunks(MOST_CHANGES) {
            let mut update = self.captures.update();
            for name in some {
                update.progress(name, Progress::PENDING);
            }
            update.commit()?;
        }
        state.has_more = true;
        Ok(Ok(u64::try_from(files.len()).unwrap_or(u64::MAX)))
    }

    /// Lets a file be read again whose captures are not those that it has.
    pub(crate) fn read_again(&self, name: &FileName) -> Result<(), DbError> {
        let mut state = self.lock();
        let entry = self.captures.file_entry(name.as_str())?;
        let is_indexed = entry.is_some_and(|entry| {
            matches!(entry.progress, Progress::Indexed | Progress::NothingToIndex)
        });
        if is_indexed {
            let mut update = self.captures.update();
            update.progress(name.as_str(), Progress::PENDING);
            update.commit()?;
            state.has_more = true;
        }
        Ok(())
    }

    /// Forgets all files and their captures, and how far the archive was followed. Says how many captures went.
    pub(crate) fn forget_files(&self) -> Result<u64, DbError> {
        let mut state = self.lock();
        let captures = self.captures.counts().captures;
        state.queue.clear();
        state.epoch = state.epoch.saturating_add(1);
        self.captures.forget_files()?;
        state.has_more = true;
        Ok(captures)
    }

    /// Returns how many files and captures there are.
    pub(crate) fn counts(&self) -> Counts {
        self.captures.counts()
    }

    /// The reason of a parked file begins with the time at which it was parked.
    fn parked_reason(&self, reason: &str) -> String {
        format!("{} {reason}", self.clock.now())
    }

    fn now(&self) -> Duration {
        self.clock.instant().saturating_duration_since(self.origin)
    }

    /// Nothing panics while it holds the lock, so what is inside is whole even then.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The most changes of one batch of the database.
const MOST_CHANGES: usize = 1000;

/// The content of a file of which the index kept none.
const NO_CONTENT: FileContent = FileContent {
    size: 0,
    root: archive_model::Root::from_bytes([0; 32]),
};

/// Splits the reason of a parked file from the time before it.
pub(crate) fn split_reason(reason: &str) -> (Option<jiff::Timestamp>, &str) {
    match reason.split_once(' ') {
        Some((time, rest)) if time.parse::<jiff::Timestamp>().is_ok() => (time.parse().ok(), rest),
        Some(_) | None => (None, reason),
    }
}

/// Changes that are to be written together.
#[derive(Debug, Default)]
struct FileChanges {
    all: Vec<PlannedChange>,
}

#[derive(Debug)]
struct PlannedChange {
    name: FileName,
    action: FileAction,
    content: FileContent,
}

impl FileChanges {
    fn push(&mut self, name: FileName, action: FileAction, content: FileContent) {
        if action != FileAction::Nothing {
            self.all.push(PlannedChange {
                name,
                action,
                content,
            });
        }
    }

    /// The file as it will be, if a change is about it.
    fn known(&self, name: &str) -> Option<Option<KnownFile>> {
        let last = self
            .all
            .iter()
            .rev()
            .find(|change| change.name.as_str() == name)?;
        let shown = |is_withdrawn| {
            Some(KnownFile {
                content: Some(last.content),
                is_withdrawn,
            })
        };
        Some(match last.action {
            FileAction::Delete => None,
            FileAction::Withdraw => shown(true),
            FileAction::Nothing
            | FileAction::Index
            | FileAction::IndexAnew
            | FileAction::BringBack => shown(false),
        })
    }

    fn len(&self) -> usize {
        self.all.len()
    }

    fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

fn known_file(entry: &FileEntry) -> KnownFile {
    KnownFile {
        content: content_of(entry),
        is_withdrawn: entry.is_withdrawn,
    }
}

/// The content of a file, as the index keeps it.
pub(crate) fn content_of(entry: &FileEntry) -> Option<FileContent> {
    entry.note.as_deref().and_then(|note| note.parse().ok())
}

/// A file that waits, if it does.
fn waiting_file(entry: &FileEntry) -> Option<WaitingFile> {
    let Progress::Pending { attempts, .. } = entry.progress else {
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
