//! The feed of the archive on its way into the database: listings that are compared, and changes that are kept with
//! their position in one batch.
//!
//! # Errors
//!
//! All functions fail with [`DbError`] if the database does.

use std::time::Duration;

use archive_client::FeedStep;
use archive_db::DbError;
use archive_model::{FeedChange, FeedFile, FeedPosition, FileContent, FileName};
use index_captures::{FileInIndex, FileProgress, FollowPosition};

use super::{Follower, FollowerState, MOST_CHANGES, WINDOW, content_of, waiting_file};
use crate::decide::{FileAction, KnownFile, on_change, on_listing, write_content};
use crate::queue::WaitingFile;

/// A listing that is being compared with the index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListingComparison {
    /// Files up to this name were compared.
    after: Option<String>,
    files: Vec<FeedFile>,
}

/// The place of one reading of the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FeedReading {
    /// The number of times that everything had been forgotten when it began.
    epoch: u64,
    /// The listing that is compared; absent: changes are followed.
    listing: Option<ListingComparison>,
}

impl FeedReading {
    /// Returns whether a listing is compared.
    pub(crate) const fn is_listing(&self) -> bool {
        self.listing.is_some()
    }
}

impl Follower {
    /// Begins a reading of the feed: from the position that was kept, if there is one.
    pub(crate) fn begin_reading(&self) -> Result<(FeedReading, Option<FeedPosition>), DbError> {
        let reading = FeedReading {
            epoch: self.lock().epoch,
            listing: None,
        };
        Ok((reading, self.feed_position()?))
    }

    /// Returns the position up to which the archive was followed, if it was.
    pub(crate) fn feed_position(&self) -> Result<Option<FeedPosition>, DbError> {
        let state = self.captures.follow_position()?;
        Ok(state.and_then(|state| {
            let lineage = u64::from_str_radix(&state.feed, 16).ok()?;
            let number = state.position;
            Some(FeedPosition { number, lineage })
        }))
    }

    /// Applies steps of the feed, in their order. Returns `false` if everything was forgotten meanwhile, and the feed
    /// has to be begun anew; nothing of a reading that was begun before counts.
    pub(crate) fn apply_changes(
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
                FeedStep::Listing => reading.listing = Some(ListingComparison::default()),
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

    /// Applies changes, and records the position of the last one in the same batch.
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
                Ok(known) => known,
                Err(UnplannedFile) => self
                    .captures
                    .file_entry(name)?
                    .map(|entry| known_file(&entry)),
            };
            let content = change.file.content();
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
        for entry in self.captures.list_files(comparing.after.as_deref())? {
            let entry = entry?;
            let is_beyond = last
                .as_ref()
                .is_none_or(|last| entry.name.as_str() > last.as_str());
            if is_beyond && end.is_none() {
                break;
            }
            while let Some(new) = listed.next_if(|file| file.name.as_str() < entry.name.as_str()) {
                let content = new.content();
                update.push(new.name, on_listing(None, Some(content)), content);
            }
            let same = listed.next_if(|file| file.name.as_str() == entry.name.as_str());
            let known = Some(known_file(&entry));
            let content = same.as_ref().map(FeedFile::content);
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
            let content = new.content();
            update.push(new.name, on_listing(None, Some(content)), content);
        }
        comparing.after = last
            .map(|name| name.as_str().to_owned())
            .or(comparing.after.take());
        self.commit(&mut state, update, end)
    }

    /// Writes changes, and then updates the queue.
    fn commit(
        &self,
        state: &mut FollowerState,
        changes: FileChanges,
        position: Option<FeedPosition>,
    ) -> Result<(), DbError> {
        if changes.is_empty() && position.is_none() {
            return Ok(());
        }
        let mut update = self.captures.update_files();
        for change in &changes.all {
            let name = change.name.as_str();
            match change.action {
                FileAction::Nothing => {}
                FileAction::Index => {
                    update
                        .set_progress(name, FileProgress::PENDING)
                        .set_note(name, Some(write_content(change.content)));
                }
                FileAction::IndexAnew => {
                    update
                        .delete_file(name)
                        .set_progress(name, FileProgress::PENDING)
                        .set_note(name, Some(write_content(change.content)));
                }
                FileAction::Withdraw => {
                    update.withdraw_file(name);
                }
                FileAction::Reinstate => {
                    update.reinstate_file(name);
                }
            }
        }
        if let Some(position) = position {
            update.set_position(FollowPosition {
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
                    Self::put(state, file, now);
                }
                FileAction::Withdraw => state.queue.drop_file(&change.name),
                FileAction::Reinstate => {
                    let entry = self.captures.file_entry(change.name.as_str())?;
                    if let Some(file) = entry.as_ref().and_then(waiting_file) {
                        Self::put(state, file, now);
                    }
                }
            }
        }
        Ok(())
    }

    fn put(state: &mut FollowerState, file: WaitingFile, now: Duration) {
        if state.queue.count_waiting() < WINDOW {
            state.queue.put_file(file, now);
        } else {
            state.queue.drop_file(&file.name);
            state.has_more = true;
        }
    }
}

/// The content of a file of which the index kept none.
const NO_CONTENT: FileContent = FileContent {
    size: 0,
    root: archive_model::Root::from_bytes([0; 32]),
};

/// Changes that are to be written together.
#[derive(Debug, Default)]
struct FileChanges {
    all: Vec<PlannedChange>,
}

/// The error that no planned change is about a file.
struct UnplannedFile;

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

    /// Returns the file as it will be after the changes; `Err` if no change is about it.
    fn known(&self, name: &str) -> Result<Option<KnownFile>, UnplannedFile> {
        let last = self
            .all
            .iter()
            .rev()
            .find(|change| change.name.as_str() == name)
            .ok_or(UnplannedFile)?;
        Ok(Some(KnownFile {
            content: Some(last.content),
            is_withdrawn: last.action == FileAction::Withdraw,
        }))
    }

    fn len(&self) -> usize {
        self.all.len()
    }

    fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

fn known_file(entry: &FileInIndex) -> KnownFile {
    KnownFile {
        content: content_of(entry),
        is_withdrawn: entry.is_withdrawn,
    }
}
