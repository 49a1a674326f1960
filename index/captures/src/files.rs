//! The archived files that the index knows, how far each is, and changes of them.
//!
//! # Errors
//!
//! All functions fail with [`DbError`] if the database does.

use archive_db::DbError;

use crate::Captures;
use crate::rows::{FileRow, FollowRow, ProgressRow};

/// The progress of a file of the archive on its way into the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileProgress {
    /// Its captures have to be extracted, for the first time or again.
    Pending {
        /// The number of attempts that have failed.
        attempts: u32,
        /// The reason of the last failure.
        reason: Option<String>,
    },
    /// Its captures are in the index.
    Indexed,
    /// It was read and has no capture, or is no file with captures.
    NothingToIndex,
    /// It failed too often, and waits for a person.
    Parked {
        /// The number of attempts that have failed.
        attempts: u32,
        /// The reason of the last failure.
        reason: String,
    },
}

impl FileProgress {
    /// A file that nobody has tried yet.
    pub const PENDING: Self = Self::Pending {
        attempts: 0,
        reason: None,
    };
}

/// A file of the archive, as the index knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Its name.
    pub name: String,
    /// Its progress.
    pub progress: FileProgress,
    /// Whether the archive has withdrawn it: its captures are kept and not shown.
    pub is_withdrawn: bool,
    /// The number of captures that the index has of it, those of a withdrawn file included. A pending file may have
    /// captures of an earlier reading, which are shown until they are replaced.
    pub captures: u64,
    /// Text of the part that follows the archive, such as the root of the bytes that were read.
    pub note: Option<String>,
}

impl FileEntry {
    pub(crate) fn from_row(name: String, row: FileRow) -> Self {
        Self {
            name,
            progress: row.progress.into(),
            is_withdrawn: row.is_withdrawn,
            captures: row.captures.map_or(0, |(_, captures)| captures),
            note: row.note,
        }
    }
}

/// The position up to which the archive was followed: kept in the same batch as the changes that it tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowPosition {
    /// The feed: another one numbers its changes anew.
    pub feed: String,
    /// The number of the last change that the index has heard of.
    pub position: u64,
}

/// Numbers of files and captures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Files that are pending, and not withdrawn.
    pub pending: u64,
    /// Files that are indexed, and not withdrawn.
    pub indexed: u64,
    /// Files without captures, and not withdrawn.
    pub nothing_to_index: u64,
    /// Files that are parked, and not withdrawn.
    pub parked: u64,
    /// Files that are withdrawn.
    pub withdrawn: u64,
    /// Captures of files that are shown.
    pub captures: u64,
    /// Imported sets.
    pub sets: u64,
    /// Captures that were imported with these sets.
    pub set_captures: u64,
}

/// An imported set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetEntry {
    /// Its name.
    pub name: String,
    /// The number of captures that were imported; lines that name one record twice count twice.
    pub captures: u64,
}

/// Changes of files that take effect together, with the place in the feed that told of them.
#[derive(Debug)]
#[must_use = "nothing is changed before `commit`"]
pub struct FileUpdate {
    pub(crate) captures: Captures,
    pub(crate) changes: Vec<(String, FileChange)>,
    pub(crate) follow: Option<FollowPosition>,
}

/// One change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileChange {
    Progress(FileProgress),
    Note(Option<String>),
    Withdrawn(bool),
    Delete,
    /// Its captures were written under this number.
    Captures(u32, u64),
}

impl FileUpdate {
    /// Sets the progress of a file. A file that the index did not know is known from then on.
    pub fn progress(&mut self, name: &str, progress: FileProgress) -> &mut Self {
        self.add(name, FileChange::Progress(progress))
    }

    /// Stores a note with a file. A file that the index did not know is pending from then on.
    pub fn note(&mut self, name: &str, note: Option<String>) -> &mut Self {
        self.add(name, FileChange::Note(note))
    }

    /// Hides the captures of a file, also those that are added later.
    pub fn withdraw(&mut self, name: &str) -> &mut Self {
        self.add(name, FileChange::Withdrawn(true))
    }

    /// Shows the captures of a withdrawn file again.
    pub fn reinstate(&mut self, name: &str) -> &mut Self {
        self.add(name, FileChange::Withdrawn(false))
    }

    /// Forgets a file and its captures. Nothing is changed if the index does not know it.
    pub fn delete(&mut self, name: &str) -> &mut Self {
        self.add(name, FileChange::Delete)
    }

    /// Stores the position up to which the archive was followed.
    pub fn follow(&mut self, state: FollowPosition) -> &mut Self {
        self.follow = Some(state);
        self
    }

    /// Makes the changes: every query that begins afterwards sees all of them, and none that began before sees any.
    pub fn commit(self) -> Result<(), DbError> {
        let batch = self.captures.shared.database.batch();
        self.captures
            .shared
            .change(batch, self.changes, self.follow)
    }

    fn add(&mut self, name: &str, change: FileChange) -> &mut Self {
        self.changes.push((name.to_owned(), change));
        self
    }
}

impl Captures {
    /// Begins an update of files.
    pub fn update(&self) -> FileUpdate {
        FileUpdate {
            captures: self.clone(),
            changes: Vec::new(),
            follow: None,
        }
    }

    /// Hides the captures of a file at once, without writing them again.
    pub fn withdraw(&self, name: &str) -> Result<(), DbError> {
        let mut update = self.update();
        update.withdraw(name);
        update.commit()
    }

    /// Shows the captures of a withdrawn file again.
    pub fn reinstate(&self, name: &str) -> Result<(), DbError> {
        let mut update = self.update();
        update.reinstate(name);
        update.commit()
    }

    /// Forgets a file and its captures.
    pub fn delete(&self, name: &str) -> Result<(), DbError> {
        let mut update = self.update();
        update.delete(name);
        update.commit()
    }

    /// Returns the entry of a file, if the index knows it.
    pub fn file_entry(&self, name: &str) -> Result<Option<FileEntry>, DbError> {
        let name = name.to_owned();
        let row = self.shared.tables.files.get(&name)?;
        Ok(row.map(|row| FileEntry::from_row(name, row)))
    }

    /// Returns the files in the order of their names, behind a name.
    pub fn files(
        &self,
        after: Option<&str>,
    ) -> Result<impl Iterator<Item = Result<FileEntry, DbError>> + '_, DbError> {
        use std::ops::Bound::{Excluded, Unbounded};
        let start = after.map_or(Unbounded, |name| Excluded(name.to_owned()));
        let rows = self.shared.tables.files.range((start, Unbounded))?;
        Ok(rows.map(|row| row.map(|(name, row)| FileEntry::from_row(name, row))))
    }

    /// Returns the names of pending files that are not withdrawn, in order.
    pub fn pending(&self) -> Result<impl Iterator<Item = Result<String, DbError>> + '_, DbError> {
        self.names_in_queue(PENDING)
    }

    /// Returns the names of parked files that are not withdrawn, in order.
    pub fn parked(&self) -> Result<impl Iterator<Item = Result<String, DbError>> + '_, DbError> {
        self.names_in_queue(PARKED)
    }

    fn names_in_queue(
        &self,
        queue: u8,
    ) -> Result<impl Iterator<Item = Result<String, DbError>> + '_, DbError> {
        let rows = self.shared.tables.queue.prefix(&queue)?;
        Ok(rows.map(|row| row.map(|((_, name), ())| name)))
    }

    /// Returns the imported sets in the order of their names.
    pub fn sets(&self) -> Result<impl Iterator<Item = Result<SetEntry, DbError>> + '_, DbError> {
        let rows = self.shared.tables.sets.range(..)?;
        Ok(rows.map(|row| {
            row.map(|(name, row)| SetEntry {
                name,
                captures: row.captures,
            })
        }))
    }

    /// Returns how far the archive was followed; `None` if it was not.
    pub fn follow_position(&self) -> Result<Option<FollowPosition>, DbError> {
        let row = self.shared.tables.follow.get(&0)?;
        Ok(row.map(|FollowRow { feed, position }| FollowPosition { feed, position }))
    }
}

/// The queue of pending files.
pub(crate) const PENDING: u8 = 0;
/// The queue of parked files.
pub(crate) const PARKED: u8 = 1;

impl FileRow {
    /// Returns a file of which nothing is known yet.
    pub(crate) const fn new() -> Self {
        Self {
            progress: ProgressRow::Pending {
                attempts: 0,
                reason: None,
            },
            is_withdrawn: false,
            captures: None,
            note: None,
        }
    }

    /// Returns the queue that it waits in.
    pub(crate) const fn queue(&self) -> Option<u8> {
        match self.progress {
            _ if self.is_withdrawn => None,
            ProgressRow::Pending { .. } => Some(PENDING),
            ProgressRow::Parked { .. } => Some(PARKED),
            ProgressRow::Indexed | ProgressRow::Empty => None,
        }
    }

    /// Returns the number of the captures that are shown.
    pub(crate) const fn shown_number(&self) -> Option<u32> {
        match self.captures {
            Some((number, _)) if !self.is_withdrawn => Some(number),
            _ => None,
        }
    }
}

impl Counts {
    /// Counts a file, or counts it no more.
    pub(crate) fn count(&mut self, row: &FileRow, is_there: bool) {
        let add = |count: &mut u64, number: u64| {
            *count = if is_there {
                count.saturating_add(number)
            } else {
                count.saturating_sub(number)
            };
        };
        if row.is_withdrawn {
            add(&mut self.withdrawn, 1);
            return;
        }
        add(&mut self.captures, row.captures.map_or(0, |(_, n)| n));
        add(
            match row.progress {
                ProgressRow::Pending { .. } => &mut self.pending,
                ProgressRow::Indexed => &mut self.indexed,
                ProgressRow::Empty => &mut self.nothing_to_index,
                ProgressRow::Parked { .. } => &mut self.parked,
            },
            1,
        );
    }
}

impl From<ProgressRow> for FileProgress {
    fn from(row: ProgressRow) -> Self {
        match row {
            ProgressRow::Pending { attempts, reason } => Self::Pending { attempts, reason },
            ProgressRow::Indexed => Self::Indexed,
            ProgressRow::Empty => Self::NothingToIndex,
            ProgressRow::Parked { attempts, reason } => Self::Parked { attempts, reason },
        }
    }
}

impl From<FileProgress> for ProgressRow {
    fn from(progress: FileProgress) -> Self {
        match progress {
            FileProgress::Pending { attempts, reason } => Self::Pending { attempts, reason },
            FileProgress::Indexed => Self::Indexed,
            FileProgress::NothingToIndex => Self::Empty,
            FileProgress::Parked { attempts, reason } => Self::Parked { attempts, reason },
        }
    }
}
