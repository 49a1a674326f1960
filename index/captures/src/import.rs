//! Takes the captures of indexes that others made: CDX with any legend, and CDXJ.

use std::collections::HashMap;
use std::io::{self, BufRead};

use archive_db::{Batch, DbError};
use archive_formats::cdx::{BadLine, Capture, ReadError, Reader};
use thiserror::Error;

use crate::Captures;
use crate::moment::Moment;
use crate::packed::pack;
use crate::place::{Place, Position};
use crate::rows::{NumberRow, SetRow};
use crate::sweep::file_number;
use crate::writer::BATCH;

/// The longest line that is read, in bytes.
pub const MAX_LINE: usize = 1 << 20;

/// The most damaged lines that a report names.
pub const MAX_NAMED: usize = 100;

/// How many names of files an import keeps at hand.
const ROOM: usize = 1 << 16;

/// A line of an input that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{input}: {line}")]
pub struct DamagedLine {
    /// The name of the input.
    pub input: String,
    /// The line, and the reason.
    pub line: BadLine,
}

/// The outcome of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// How many captures were read; those that name one record of one URL and time twice stand in the index once.
    pub captures: u64,
    /// How many of them have no URL, and keep the key that they had.
    pub without_url: u64,
    /// How many lines could not be read.
    pub damaged: u64,
    /// The first of them.
    pub damaged_lines: Vec<DamagedLine>,
    /// How many captures the set had before, if there was one.
    pub replaced: Option<u64>,
}

/// Why an import stops.
#[derive(Debug, Error)]
pub enum ImportError {
    /// The input cannot be read.
    #[error("cannot read {input}: {source}")]
    Input {
        /// The name of the input.
        input: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A set without a name.
    #[error("a set of imported captures needs a name")]
    NoName,
    /// The database failed.
    #[error("cannot write the index of captures: {0}")]
    Database(#[from] DbError),
}

/// Takes the captures of one set, from one input or several.
///
/// Nobody sees them before [`Importer::complete`], which puts them in the place of those that the set had. Captures of an
/// import that was dropped or cut off are never seen, and [`Captures::sweep`] takes them away.
#[derive(Debug)]
#[must_use = "the captures are seen once the import is completed"]
pub struct Importer {
    captures: Captures,
    set: String,
    import: u32,
    batch: Batch,
    numbers: HashMap<String, u32>,
    report: ImportReport,
}

impl Captures {
    /// Begins a set of imported captures, or one that replaces the set of this name.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if the name is empty, or the database fails.
    pub fn import(&self, set: &str) -> Result<Importer, ImportError> {
        if set.is_empty() {
            return Err(ImportError::NoName);
        }
        let import = {
            let mut ledger = self.shared.ledger();
            let import = ledger.next_import();
            ledger.importing.insert(import);
            import
        };
        let mut importer = Importer {
            captures: self.clone(),
            set: set.to_owned(),
            import,
            batch: self.shared.database.batch(),
            numbers: HashMap::new(),
            report: ImportReport::default(),
        };
        let imports = &self.shared.tables.imports;
        importer.batch.put(imports, &import, &importer.set)?;
        Ok(importer)
    }

    /// Deletes an imported set at once. Returns how many captures it had, if there was one.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the database fails.
    pub fn delete_set(&self, set: &str) -> Result<Option<u64>, DbError> {
        let shared = &self.shared;
        let set = set.to_owned();
        let mut ledger = shared.ledger();
        let Some(row) = shared.tables.sets.get(&set)? else {
            return Ok(None);
        };
        let numbers = self.numbers_of(row.import)?;
        let mut batch = shared.database.batch();
        batch.delete(&shared.tables.sets, &set)?;
        shared.show(&mut ledger, batch, |shown| {
            for number in numbers {
                shown.set(number, false);
            }
        })?;
        ledger.counts.sets = ledger.counts.sets.saturating_sub(1);
        let left = ledger.counts.set_captures.saturating_sub(row.captures);
        ledger.counts.set_captures = left;
        Ok(Some(row.captures))
    }

    /// The numbers of the files of an import.
    fn numbers_of(&self, import: u32) -> Result<Vec<u32>, DbError> {
        let rows = self.shared.tables.import_files.prefix(&import)?;
        rows.map(|row| row.map(|(_, number)| file_number(number)))
            .collect()
    }
}

impl Importer {
    /// Reads an input of any form to its end. Damaged lines are left out and named in the report by the name of the input.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if the input or the database fails.
    pub fn read(&mut self, input: &str, lines: impl BufRead) -> Result<(), ImportError> {
        for line in Reader::new(lines, MAX_LINE) {
            match line {
                Ok(capture) => self.push(&capture)?,
                Err(ReadError::Line(line)) => self.note(input, line),
                Err(ReadError::Io(source)) => {
                    return Err(ImportError::Input {
                        input: input.to_owned(),
                        source,
                    });
                }
            }
        }
        Ok(())
    }

    /// Adds one capture. Its key is made again from its URL.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the database fails.
    pub fn push(&mut self, capture: &Capture) -> Result<(), DbError> {
        let file = self.number(capture.file.as_deref().unwrap_or_default())?;
        let shared = &self.captures.shared;
        let place = Place {
            key: shared.rules.key_of(capture),
            time: Moment::of(capture.timestamp),
            file,
            position: match (capture.offset, &capture.file) {
                (Some(offset), Some(_)) => Position::Offset(offset),
                // Two lines that do not say where their records are may mean two.
                _ => Position::Line(self.report.captures),
            },
        };
        let value = pack(&place, capture);
        self.batch.put(&shared.tables.captures, &place, &value)?;
        self.report.captures += 1;
        self.report.without_url += u64::from(capture.original.is_none());
        if self.batch.size() >= BATCH {
            shared.flush(&mut self.batch)?;
            if self.numbers.len() >= ROOM {
                // All of them are in the table by now.
                self.numbers.clear();
            }
        }
        Ok(())
    }

    /// Shows the captures in the place of those that the set had, and makes them durable.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the database fails.
    pub fn complete(mut self) -> Result<ImportReport, DbError> {
        let shared = &self.captures.shared;
        shared.flush(&mut self.batch)?;
        let mut ledger = shared.ledger();
        let before = shared.tables.sets.get(&self.set)?;
        let added = self.captures.numbers_of(self.import)?;
        let removed = match &before {
            Some(row) => self.captures.numbers_of(row.import)?,
            None => Vec::new(),
        };
        let row = SetRow {
            import: self.import,
            captures: self.report.captures,
        };
        let mut batch = shared.database.batch();
        batch.put(&shared.tables.sets, &self.set, &row)?;
        shared.show(&mut ledger, batch, |shown| {
            for number in removed {
                shown.set(number, false);
            }
            for number in added {
                shown.set(number, true);
            }
        })?;
        self.report.replaced = before.as_ref().map(|row| row.captures);
        let counts = &mut ledger.counts;
        counts.sets += u64::from(before.is_none());
        let left = counts
            .set_captures
            .saturating_sub(self.report.replaced.unwrap_or(0));
        counts.set_captures = left.saturating_add(row.captures);
        drop(ledger);
        shared.database.sync()?;
        Ok(std::mem::take(&mut self.report))
    }

    fn note(&mut self, input: &str, line: BadLine) {
        self.report.damaged += 1;
        if self.report.damaged_lines.len() < MAX_NAMED {
            self.report.damaged_lines.push(DamagedLine {
                input: input.to_owned(),
                line,
            });
        }
    }

    /// The number of a file of this import.
    fn number(&mut self, file: &str) -> Result<u32, DbError> {
        if let Some(number) = self.numbers.get(file) {
            return Ok(*number);
        }
        let shared = &self.captures.shared;
        let key = (self.import, file.to_owned());
        let number = match shared.tables.import_files.get(&key)? {
            Some(number) => file_number(number),
            None => {
                let number = shared.ledger().next_number();
                let row = NumberRow {
                    set: Some(self.set.clone()),
                    name: file.to_owned(),
                };
                self.batch.put(&shared.tables.numbers, &number, &row)?;
                let files = &shared.tables.import_files;
                self.batch.put(files, &key, &u64::from(number))?;
                number
            }
        };
        self.numbers.insert(file.to_owned(), number);
        Ok(number)
    }
}

impl Drop for Importer {
    fn drop(&mut self) {
        let mut ledger = self.captures.shared.ledger();
        ledger.importing.remove(&self.import);
    }
}
