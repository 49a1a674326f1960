//! The archived files that the index knows, and changes of them.
//!
//! # Errors
//!
//! All functions fail with [`DbError`] if the database does.

use archive_db::DbError;

use crate::CaptureIndex;
use crate::progress::{FileChange, FileProgress, FollowPosition};
use crate::rows::{FileRow, FollowRow, PARKED, PENDING};

/// A file of the archive, as the index knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInIndex {
    /// The name of the file.
    pub name: String,
    /// The progress of the file on its way into the index.
    pub progress: FileProgress,
    /// Whether the archive has withdrawn the file: its captures are kept and not shown.
    pub is_withdrawn: bool,
    /// The number of captures that the index has of it, those of a withdrawn file included. A pending file may have
    /// captures of an earlier reading, which are shown until they are replaced.
    pub captures: u64,
    /// Text of the part that follows the archive, such as the root of the bytes that were read.
    pub note: Option<String>,
}

impl FileInIndex {
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

/// An imported set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetEntry {
    /// The name of the set.
    pub name: String,
    /// The number of captures that were imported; lines that name one record twice count twice.
    pub captures: u64,
}

/// Changes of files that take effect together, with the place in the feed that reported them.
///
/// ```
/// use index_captures::{CaptureIndex, FileProgress, FollowPosition, MemoryPlace, OpenOptions};
///
/// let memory = MemoryPlace::new()?;
/// let captures = CaptureIndex::open_in_memory(&memory, &OpenOptions::default())?.captures;
/// let mut update = captures.update_files();
/// update.set_progress("a.warc.gz", FileProgress::PENDING).withdraw_file("b.warc.gz");
/// update.set_position(FollowPosition { feed: "one".to_owned(), position: 2 });
/// update.commit()?;
/// assert_eq!(captures.counts().pending, 1);
/// assert_eq!(captures.follow_position()?.map(|at| at.position), Some(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "nothing is changed before `commit`"]
pub struct FileUpdate {
    pub(crate) captures: CaptureIndex,
    pub(crate) changes: Vec<(String, FileChange)>,
    pub(crate) follow: Option<FollowPosition>,
}

impl FileUpdate {
    /// Sets the progress of a file. A file that the index did not know is known from then on.
    pub fn set_progress(&mut self, name: &str, progress: FileProgress) -> &mut Self {
        self.add(name, FileChange::Progress(progress))
    }

    /// Stores a note with a file. A file that the index did not know is pending from then on.
    pub fn set_note(&mut self, name: &str, note: Option<String>) -> &mut Self {
        self.add(name, FileChange::Note(note))
    }

    /// Hides the captures of a file, also those that are added later.
    pub fn withdraw_file(&mut self, name: &str) -> &mut Self {
        self.add(name, FileChange::Withdrawn(true))
    }

    /// Shows the captures of a withdrawn file again.
    pub fn reinstate_file(&mut self, name: &str) -> &mut Self {
        self.add(name, FileChange::Withdrawn(false))
    }

    /// Forgets a file and its captures. Nothing is changed if the index does not know it.
    pub fn delete_file(&mut self, name: &str) -> &mut Self {
        self.add(name, FileChange::Delete)
    }

    /// Stores the position up to which the archive was followed.
    pub fn set_position(&mut self, state: FollowPosition) -> &mut Self {
        self.follow = Some(state);
        self
    }

    /// Makes the changes: every query that begins afterwards sees all of them, and none that began before sees any.
    pub fn commit(self) -> Result<(), DbError> {
        let batch = self.captures.shared.database.batch();
        self.captures
            .shared
            .change_file(batch, self.changes, self.follow)
    }

    fn add(&mut self, name: &str, change: FileChange) -> &mut Self {
        self.changes.push((name.to_owned(), change));
        self
    }
}

impl CaptureIndex {
    /// Begins an update of files.
    pub fn update_files(&self) -> FileUpdate {
        FileUpdate {
            captures: self.clone(),
            changes: Vec::new(),
            follow: None,
        }
    }

    /// Hides the captures of a file at once, without writing them again.
    pub fn withdraw_file(&self, name: &str) -> Result<(), DbError> {
        let mut update = self.update_files();
        update.withdraw_file(name);
        update.commit()
    }

    /// Shows the captures of a withdrawn file again.
    pub fn reinstate_file(&self, name: &str) -> Result<(), DbError> {
        let mut update = self.update_files();
        update.reinstate_file(name);
        update.commit()
    }

    /// Forgets a file and its captures.
    pub fn delete_file(&self, name: &str) -> Result<(), DbError> {
        let mut update = self.update_files();
        update.delete_file(name);
        update.commit()
    }

    /// Returns the entry of a file, if the index knows it.
    pub fn file_entry(&self, name: &str) -> Result<Option<FileInIndex>, DbError> {
        let name = name.to_owned();
        let row = self.shared.tables.files.get(&name)?;
        Ok(row.map(|row| FileInIndex::from_row(name, row)))
    }

    /// Returns the files in the order of their names, behind a name.
    pub fn list_files(
        &self,
        after: Option<&str>,
    ) -> Result<impl Iterator<Item = Result<FileInIndex, DbError>> + '_, DbError> {
        use std::ops::Bound::{Excluded, Unbounded};
        let start = after.map_or(Unbounded, |name| Excluded(name.to_owned()));
        let rows = self.shared.tables.files.range((start, Unbounded))?;
        Ok(rows.map(|row| row.map(|(name, row)| FileInIndex::from_row(name, row))))
    }

    /// Returns the names of pending files that are not withdrawn, in order.
    pub fn pending_files(
        &self,
    ) -> Result<impl Iterator<Item = Result<String, DbError>> + '_, DbError> {
        self.names_in_queue(PENDING)
    }

    /// Returns the names of parked files that are not withdrawn, in order.
    pub fn parked_files(
        &self,
    ) -> Result<impl Iterator<Item = Result<String, DbError>> + '_, DbError> {
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
    pub fn list_sets(
        &self,
    ) -> Result<impl Iterator<Item = Result<SetEntry, DbError>> + '_, DbError> {
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
