//! Imports the captures of indexes that others made: CDX with any legend, and CDXJ.

use std::collections::HashMap;
use std::io::{self, BufRead};
use std::sync::mpsc::{self, SyncSender};
use std::{panic, thread};

use archive_db::{ChangeBatch, DbError, Ingestion};
use archive_formats::cdx::{BadLine, Capture, CdxReader, ReadLineError};
use thiserror::Error;

use crate::CaptureIndex;
use crate::keys::KeyRules;
use crate::moment::Moment;
use crate::packed::pack_into;
use crate::place::{Place, Position};
use crate::rows::{NumberRow, PackedCapture, SetRow, file_number};

/// The longest line that is read, in bytes.
pub const MAX_LINE: usize = 1 << 20;

/// The most damaged lines that a report names.
pub const MAX_NAMED: usize = 100;

/// Captures are handed over when they take this many bytes.
const CHUNK: usize = 256 << 10;

/// The most chunks that wait: as many as are read while those before them become a file.
const CHUNKS: usize = 48;

/// Captures are written when they take this many bytes.
const GATHERED: usize = 16 << 20;

/// The most names of files that an import keeps at hand.
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
    /// The number of captures that were read; those that name one record of one URL and time twice stand in the index
    /// once.
    pub captures: u64,
    /// The number of captures that have no URL, and keep the key that they had.
    pub without_url: u64,
    /// The number of lines that could not be read.
    pub damaged: u64,
    /// The first of the lines that could not be read.
    pub damaged_lines: Vec<DamagedLine>,
    /// The number of captures that the set had before, if there was one.
    pub replaced: Option<u64>,
}

/// The reason why an import stops.
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

/// The import of one set, from one input or several.
///
/// Nobody sees them before [`Importer::complete_import`], which puts them in the place of those that the set had. Captures of
/// an import that was dropped or cut off are never seen, and [`CaptureIndex::sweep_rows`] takes them away.
///
/// ```
/// # use index_captures::{CaptureIndex, MemoryPlace, OpenOptions};
/// # let memory = MemoryPlace::new()?;
/// let captures = CaptureIndex::open_in_memory(&memory, &OpenOptions::default())?.captures;
/// let mut importer = captures.begin_import("old")?;
/// importer.read_lines("old.cdxj", &b"dk,a)/ 20260102030405 {}\nnonsense\n"[..])?;
/// assert_eq!(importer.complete_import()?.damaged, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "the captures are seen once the import is completed"]
pub struct Importer {
    captures: CaptureIndex,
    set: String,
    import: u32,
    /// The rows that name the files of the captures: written before them.
    batch: ChangeBatch,
    rows: Ingestion<Place, PackedCapture>,
    /// Captures are written when they take this many bytes.
    gathered: usize,
    numbers: HashMap<String, u32>,
    report: ImportReport,
}

impl CaptureIndex {
    /// Begins a set of imported captures, or one that replaces the set of this name.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if the name is empty, or the database fails.
    pub fn begin_import(&self, set: &str) -> Result<Importer, ImportError> {
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
            rows: self.shared.database.ingestion(&self.shared.tables.captures),
            gathered: GATHERED,
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
        shared.show_file(&mut ledger, batch, |shown| {
            for number in numbers {
                shown.set_number(number, false);
            }
        })?;
        ledger.counts.sets = ledger.counts.sets.saturating_sub(1);
        let left = ledger.counts.set_captures.saturating_sub(row.captures);
        ledger.counts.set_captures = left;
        Ok(Some(row.captures))
    }

    /// Returns the numbers of the files of an import.
    fn numbers_of(&self, import: u32) -> Result<Vec<u32>, DbError> {
        let rows = self.shared.tables.import_files.prefix(&import)?;
        rows.map(|row| row.map(|(_, number)| file_number(number)))
            .collect()
    }
}

impl Importer {
    /// Reads an input of any form to its end. Damaged lines are left out, and reported with the name of the input.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if the input or the database fails.
    pub fn read_lines(&mut self, input: &str, lines: impl BufRead) -> Result<(), ImportError> {
        let mut damaged = Vec::new();
        let mut damaged_count = 0;
        let rules = self.captures.shared.rules;
        // Lines are read while those before them are written.
        let read = thread::scope(|scope| {
            let (sender, receiver) = mpsc::sync_channel::<PreparedChunk>(CHUNKS);
            let writer = scope.spawn(|| receiver.into_iter().try_for_each(|rows| self.put(&rows)));
            let read = send(lines, rules, &sender, |line| {
                damaged_count += 1;
                if damaged.len() < MAX_NAMED {
                    damaged.push(line);
                }
            });
            drop(sender);
            let written = writer.join();
            written.unwrap_or_else(|panic| panic::resume_unwind(panic))?;
            Ok::<_, DbError>(read)
        })?;
        for line in damaged {
            self.note(input, line);
        }
        self.report.damaged += damaged_count;
        read.map_err(|source| ImportError::Input {
            input: input.to_owned(),
            source,
        })
    }

    /// Adds one capture. Its key is made again from its URL; a capture without a URL keeps its key.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the database fails.
    pub fn push_capture(&mut self, capture: &Capture) -> Result<(), DbError> {
        let mut rows = PreparedChunk::default();
        rows.add(self.captures.shared.rules, capture);
        self.put(&rows)
    }

    /// Adds captures that are prepared.
    fn put(&mut self, rows: &PreparedChunk) -> Result<(), DbError> {
        let mut numbers = Vec::with_capacity(rows.files.len());
        for file in &rows.files {
            numbers.push(self.number(file)?);
        }
        let mut place = Place::before_time("", Moment::FIRST);
        let mut packed = PackedCapture(Vec::new());
        for (row, key, value) in rows.iter() {
            place.key.clear();
            place.key.push_str(key);
            place.time = row.time;
            place.file = numbers[row.file];
            place.position = match row.offset {
                Some(offset) => Position::Offset(offset),
                // Two lines that do not say where their records are may mean two.
                None => Position::Line(self.report.captures),
            };
            packed.0.clear();
            packed.0.extend_from_slice(value);
            self.rows.put(&place, &packed)?;
            self.report.captures += 1;
            self.report.without_url += u64::from(row.is_without_url);
        }
        if self.numbers.len() >= ROOM {
            self.captures.shared.flush_counts(&mut self.batch)?;
            // All of them are in the table by now.
            self.numbers.clear();
        }
        if self.rows.size() >= self.gathered {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the gathered rows, after the numbers of their files: a sweep finds the rows of an import that is cut off.
    fn flush(&mut self) -> Result<(), DbError> {
        self.captures.shared.flush_counts(&mut self.batch)?;
        self.rows.write()
    }

    /// Shows the captures in the place of those that the set had, and makes them durable.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the database fails.
    pub fn complete_import(mut self) -> Result<ImportReport, DbError> {
        self.flush()?;
        let shared = &self.captures.shared;
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
        shared.show_file(&mut ledger, batch, |shown| {
            for number in removed {
                shown.set_number(number, false);
            }
            for number in added {
                shown.set_number(number, true);
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

    /// Records a damaged line, if there is room.
    fn note(&mut self, input: &str, line: BadLine) {
        if self.report.damaged_lines.len() < MAX_NAMED {
            self.report.damaged_lines.push(DamagedLine {
                input: input.to_owned(),
                line,
            });
        }
    }

    /// Returns the number of a file of this import.
    fn number(&mut self, file: &str) -> Result<u32, DbError> {
        if let Some(number) = self.numbers.get(file) {
            return Ok(*number);
        }
        let shared = &self.captures.shared;
        let key = (self.import, file.to_owned());
        let number = if let Some(number) = shared.tables.import_files.get(&key)? {
            file_number(number)
        } else {
            let number = shared.ledger().next_number();
            let row = NumberRow {
                set: Some(self.set.clone()),
                name: file.to_owned(),
            };
            self.batch.put(&shared.tables.numbers, &number, &row)?;
            let files = &shared.tables.import_files;
            self.batch.put(files, &key, &u64::from(number))?;
            number
        };
        self.numbers.insert(file.to_owned(), number);
        Ok(number)
    }
}

/// Captures whose keys are made and whose fields are packed, in a few allocations that go from one thread to the other.
#[derive(Debug, Default)]
struct PreparedChunk {
    /// The keys of the rows, one after the other; `packed` has the packed fields in the same way.
    keys: String,
    packed: Vec<u8>,
    rows: Vec<PreparedRow>,
    /// The files of the rows, each as often as it follows another one.
    files: Vec<String>,
    /// The number of bytes of the names of those files.
    names: usize,
}

/// A row of a [`PreparedChunk`].
#[derive(Debug)]
struct PreparedRow {
    /// The ends of the key and of the fields of this row.
    ends: (usize, usize),
    time: Moment,
    /// The place of the capture's file in the list of files.
    file: usize,
    /// The offset of the record in its file; `None` if one of them is not known.
    offset: Option<u64>,
    is_without_url: bool,
}

impl PreparedChunk {
    fn add(&mut self, rules: KeyRules, capture: &Capture) {
        let file = capture.file.as_deref();
        let name = file.unwrap_or_default();
        if self.files.last().is_none_or(|last| last != name) {
            self.files.push(name.to_owned());
            self.names += name.len() + size_of::<String>();
        }
        let offset = capture.offset.filter(|_| file.is_some());
        let place = Place {
            key: rules.key_of(capture),
            time: Moment::from_stamp(capture.timestamp),
            // Neither the number of the file nor that of the line is in the fields.
            file: 0,
            position: offset.map_or(Position::Line(0), Position::Offset),
        };
        pack_into(&mut self.packed, &place, capture);
        self.keys.push_str(&place.key);
        self.rows.push(PreparedRow {
            ends: (self.keys.len(), self.packed.len()),
            time: place.time,
            file: self.files.len() - 1,
            offset,
            is_without_url: capture.original.is_none(),
        });
    }

    /// Returns the rows with their keys and their packed fields.
    fn iter(&self) -> impl Iterator<Item = (&PreparedRow, &str, &[u8])> {
        let mut begin = (0, 0);
        self.rows.iter().map(move |row| {
            let key = &self.keys[begin.0..row.ends.0];
            let packed = &self.packed[begin.1..row.ends.1];
            begin = row.ends;
            (row, key, packed)
        })
    }

    /// Returns about how much memory it takes.
    fn size(&self) -> usize {
        let rows = self.rows.len() * size_of::<PreparedRow>();
        self.keys.len() + self.packed.len() + self.names + rows
    }
}

/// Reads lines and sends their captures in chunks. Ends early if the receiver was dropped: the writer failed.
fn send(
    lines: impl BufRead,
    rules: KeyRules,
    sender: &SyncSender<PreparedChunk>,
    mut note: impl FnMut(BadLine),
) -> io::Result<()> {
    let mut rows = PreparedChunk::default();
    for line in CdxReader::new(lines, MAX_LINE) {
        match line {
            Ok(capture) => rows.add(rules, &capture),
            Err(ReadLineError::Line(line)) => note(line),
            Err(ReadLineError::Io(source)) => return Err(source),
        }
        if rows.size() >= CHUNK && sender.send(std::mem::take(&mut rows)).is_err() {
            return Ok(());
        }
    }
    // If the receiver was dropped, the writer failed and says so.
    let _received = sender.send(rows).is_ok();
    Ok(())
}

impl Drop for Importer {
    fn drop(&mut self) {
        let mut ledger = self.captures.shared.ledger();
        ledger.importing.remove(&self.import);
    }
}

#[cfg(test)]
impl Importer {
    /// Makes the import write its captures often, and as files.
    pub(crate) fn in_small_files(mut self) -> Self {
        let shared = &self.captures.shared;
        let rows = shared.database.ingestion(&shared.tables.captures);
        self.rows = rows.least_file(0);
        self.gathered = 1 << 16;
        self
    }
}
