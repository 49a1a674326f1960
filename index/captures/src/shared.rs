//! The state that all handles of an index share: the tables, which files are shown, and the changes of both.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Weak};

use archive_db::error::InvalidRow;
use archive_db::{ChangeBatch, Database, DbError, InvalidValue};
use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::keys::KeyRules;
use crate::names::{CaptureSource, FileNames};
use crate::place::Place;
use crate::progress::{FileChange, FollowPosition, IndexCounts};
use crate::rows::{BATCH, FileRow, FollowRow, ProgressRow, Tables};
use crate::visible::NumberSet;

/// An open index.
#[derive(Debug)]
pub(crate) struct SharedState {
    pub(crate) database: Database,
    pub(crate) tables: Tables,
    pub(crate) rules: KeyRules,
    /// Replaced when other files are shown. Held for writing while the batch is written that says so.
    pub(crate) view: RwLock<Arc<View>>,
    /// Held by one change at a time.
    pub(crate) ledger: Mutex<Ledger>,
    pub(crate) names: FileNames,
}

/// The files that a query sees.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) shown: NumberSet,
    /// The number of views before it.
    pub(crate) generation: u64,
}

/// The numbers, counts and unfinished work that changes look at.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) last_number: u32,
    pub(crate) last_import: u32,
    pub(crate) counts: IndexCounts,
    /// The numbers of files that are being written.
    pub(crate) writing: HashSet<u32>,
    /// The imports that are being written.
    pub(crate) importing: HashSet<u32>,
    /// Earlier views that a query may still use.
    pub(crate) earlier: Vec<Weak<View>>,
    pub(crate) sweep: Option<Sweep>,
}

/// A sweep under way.
#[derive(Debug)]
pub(crate) struct Sweep {
    /// The numbers whose rows go.
    pub(crate) dead: NumberSet,
    /// The numbers of files among these, without those of imports.
    pub(crate) numbers: Vec<u32>,
    /// The imports whose rows go.
    pub(crate) imports: Vec<u32>,
    /// The last row that was read; `None` before the first one.
    pub(crate) last: Option<Place>,
    /// The generation of the view when the sweep began: queries with an earlier view may still see what goes.
    pub(crate) generation: u64,
    pub(crate) has_read_all: bool,
}

impl Ledger {
    /// Returns a number that no file has.
    pub(crate) fn next_number(&mut self) -> u32 {
        self.last_number = self.last_number.saturating_add(1);
        self.last_number
    }

    /// Returns a number that no import has.
    pub(crate) fn next_import(&mut self) -> u32 {
        self.last_import = self.last_import.saturating_add(1);
        self.last_import
    }

    /// Returns the generation of the oldest view that a query still uses, up to the current one.
    pub(crate) fn oldest_generation(&mut self, current: u64) -> u64 {
        self.earlier.retain(|view| view.strong_count() > 0);
        let views = self.earlier.iter().filter_map(Weak::upgrade);
        let oldest = views.map(|view| view.generation).min();
        oldest.unwrap_or(current).min(current)
    }
}

impl SharedState {
    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock()
    }

    /// Returns the error of a row that cannot be read.
    pub(crate) fn unreadable_row(
        &self,
        table: &str,
        key: String,
        why: impl Into<String>,
    ) -> DbError {
        DbError::Unreadable {
            path: self.database.path().to_path_buf(),
            table: table.to_owned(),
            key,
            what: InvalidRow::Value(InvalidValue::Undecodable(why.into())),
        }
    }

    /// Returns the source of a number that a capture has.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the database fails, or lacks the number: it is damaged.
    pub(crate) fn capture_source(&self, number: u32) -> Result<Arc<CaptureSource>, DbError> {
        if let Some(source) = self.names.get(number) {
            return Ok(source);
        }
        let row = self.tables.numbers.get(&number)?.ok_or_else(|| {
            let why = "it is absent, and captures have this number";
            self.unreadable_row(self.tables.numbers.name(), number.to_string(), why)
        })?;
        let source = Arc::new(CaptureSource {
            set: row.set.map(Arc::from),
            file: (!row.name.is_empty()).then(|| Arc::from(row.name)),
        });
        self.names.insert_name(number, &source);
        Ok(source)
    }

    /// Writes a batch that is full, and begins another one.
    pub(crate) fn flush_full(&self, batch: &mut ChangeBatch) -> Result<(), DbError> {
        if batch.size() >= BATCH {
            self.flush_counts(batch)?;
        }
        Ok(())
    }

    /// Writes a batch, and begins another one.
    pub(crate) fn flush_counts(&self, batch: &mut ChangeBatch) -> Result<(), DbError> {
        std::mem::replace(batch, self.database.batch()).write()?;
        Ok(())
    }

    /// Reads under the current view: no change takes effect in between.
    pub(crate) fn with_view<T>(&self, read: impl FnOnce(&Arc<View>) -> T) -> T {
        read(&self.view.read())
    }

    /// Writes a batch and shows other files, at once for all readers.
    pub(crate) fn show_file(
        &self,
        ledger: &mut Ledger,
        batch: ChangeBatch,
        change: impl FnOnce(&mut NumberSet),
    ) -> Result<(), DbError> {
        let mut view = self.view.write();
        let mut shown = view.shown.clone();
        change(&mut shown);
        batch.write()?;
        let next = View {
            shown,
            generation: view.generation + 1,
        };
        let earlier = std::mem::replace(&mut *view, Arc::new(next));
        ledger.earlier.retain(|view| view.strong_count() > 0);
        ledger.earlier.push(Arc::downgrade(&earlier));
        Ok(())
    }

    /// Makes changes of files, together with what is in the batch.
    pub(crate) fn change_file(
        &self,
        mut batch: ChangeBatch,
        changes: Vec<(String, FileChange)>,
        follow: Option<FollowPosition>,
    ) -> Result<(), DbError> {
        let mut ledger = self.ledger();
        let mut files: BTreeMap<String, ChangedFile> = BTreeMap::new();
        for (name, change) in changes {
            let file = match files.remove(&name) {
                Some(file) => file,
                None => ChangedFile::new(self.tables.files.get(&name)?),
            };
            files.insert(name, file.apply(change));
        }
        let mut counts = ledger.counts;
        for (name, changed) in &files {
            self.put(&mut batch, name, changed)?;
            if let Some(row) = &changed.before {
                counts.count_file(row, false);
            }
            if let Some(row) = &changed.after {
                counts.count_file(row, true);
            }
        }
        if let Some(FollowPosition { feed, position }) = follow {
            let row = FollowRow { feed, position };
            batch.put(&self.tables.follow, &0, &row)?;
        }
        self.show_file(&mut ledger, batch, |shown| {
            for changed in files.values() {
                if let Some(number) = changed.before.as_ref().and_then(FileRow::shown_number) {
                    shown.set_number(number, false);
                }
                if let Some(number) = changed.after.as_ref().and_then(FileRow::shown_number) {
                    shown.set_number(number, true);
                }
            }
        })?;
        ledger.counts = counts;
        Ok(())
    }

    /// Forgets all files of the archive. Of withdrawn ones it keeps that they are: imported sets may name them.
    pub(crate) fn forget_files(&self) -> Result<(), DbError> {
        let mut ledger = self.ledger();
        let tables = &self.tables;
        let mut batch = self.database.batch();
        let mut counts = IndexCounts {
            sets: ledger.counts.sets,
            set_captures: ledger.counts.set_captures,
            ..IndexCounts::default()
        };
        let mut numbers = Vec::new();
        let mut withdrawn = Vec::new();
        for row in tables.files.scan()? {
            let (name, row) = row?;
            if row.is_withdrawn {
                withdrawn.push(name);
            }
            if let Some((number, _)) = row.captures {
                batch.put(&tables.dead, &number, &())?;
                numbers.push(number);
            }
        }
        batch.clear_table(&tables.files)?;
        for name in withdrawn {
            let row = FileRow {
                is_withdrawn: true,
                ..FileRow::new()
            };
            batch.put(&tables.files, &name, &row)?;
            counts.count_file(&row, true);
        }
        batch.clear_table(&tables.queue)?;
        batch.delete(&tables.follow, &0)?;
        self.show_file(&mut ledger, batch, |shown| {
            for number in numbers {
                shown.set_number(number, false);
            }
        })?;
        ledger.counts = counts;
        Ok(())
    }

    /// Writes the rows of a changed file.
    fn put(
        &self,
        batch: &mut ChangeBatch,
        name: &String,
        changed: &ChangedFile,
    ) -> Result<(), DbError> {
        let tables = &self.tables;
        match &changed.after {
            Some(row) => batch.put(&tables.files, name, row)?,
            None => batch.delete(&tables.files, name)?,
        }
        let queue = |row: &Option<FileRow>| row.as_ref().and_then(FileRow::queue_rank);
        let before = queue(&changed.before);
        let after = queue(&changed.after);
        if before != after {
            if let Some(queue) = before {
                batch.delete(&tables.queue, &(queue, name.clone()))?;
            }
            if let Some(queue) = after {
                batch.put(&tables.queue, &(queue, name.clone()), &())?;
            }
        }
        let number = |row: &Option<FileRow>| row.as_ref().and_then(|row| row.captures);
        let number = |row| number(row).map(|(number, _)| number);
        let before = number(&changed.before);
        let after = number(&changed.after);
        if before != after {
            if let Some(number) = before {
                batch.put(&tables.dead, &number, &())?;
            }
            if let Some(number) = after {
                batch.delete(&tables.dead, &number)?;
            }
        }
        Ok(())
    }
}

/// A file before and after changes.
struct ChangedFile {
    before: Option<FileRow>,
    after: Option<FileRow>,
}

impl ChangedFile {
    fn new(row: Option<FileRow>) -> Self {
        Self {
            after: row.clone(),
            before: row,
        }
    }

    fn apply(mut self, change: FileChange) -> Self {
        if change == FileChange::Delete {
            self.after = None;
            return self;
        }
        let row = self.after.get_or_insert(FileRow::new());
        match change {
            FileChange::Progress(progress) => row.progress = progress.into(),
            FileChange::Note(note) => row.note = note,
            FileChange::Withdrawn(is_withdrawn) => row.is_withdrawn = is_withdrawn,
            FileChange::Captures(number, captures) => {
                row.captures = (captures > 0).then_some((number, captures));
                row.progress = if captures > 0 {
                    ProgressRow::Indexed
                } else {
                    ProgressRow::Empty
                };
            }
            FileChange::Delete => {}
        }
        self
    }
}
