//! Writes the captures of one file; queries see all of them at once.

use archive_db::{ChangeBatch, DbError};
use archive_formats::cdx::Capture;

use crate::CaptureIndex;
use crate::moment::Moment;
use crate::packed::pack_capture;
use crate::place::{Place, Position};
use crate::progress::{FileChange, FollowPosition};
use crate::rows::{BATCH, NumberRow};

/// The writer of the captures of one file of the archive.
///
/// Nobody sees them before [`FileWriter::complete_file`], which puts them in the place of those that the file had. Captures
/// of a writer that was dropped, or whose process was killed, are never seen, and [`CaptureIndex::sweep_rows`] takes them away.
///
/// ```
/// use archive_formats::cdx::Capture;
/// use index_captures::{CaptureIndex, MemoryPlace, OpenOptions};
///
/// let memory = MemoryPlace::new()?;
/// let captures = CaptureIndex::open_in_memory(&memory, &OpenOptions::default())?.captures;
/// let mut writer = captures.begin_file("a.warc.gz")?;
/// writer.push_capture(&Capture::new("dk,a)/", "20260102030405".parse()?))?;
/// assert_eq!(captures.counts().captures, 0, "nothing is seen before the file is complete");
/// writer.complete_file(None)?;
/// assert_eq!(captures.counts().captures, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "the captures are seen once the writer is completed"]
pub struct FileWriter {
    captures: CaptureIndex,
    name: String,
    number: u32,
    batch: ChangeBatch,
    /// Whether a batch was written, and the number is among the dead ones.
    is_begun: bool,
    count: u64,
    note: Option<FileChange>,
}

impl CaptureIndex {
    /// Begins the captures of a file of the archive: its first ones, or those that replace what it has.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the database fails.
    pub fn begin_file(&self, name: &str) -> Result<FileWriter, DbError> {
        let number = {
            let mut ledger = self.shared.ledger();
            let number = ledger.next_number();
            ledger.writing.insert(number);
            number
        };
        let mut writer = FileWriter {
            captures: self.clone(),
            name: name.to_owned(),
            number,
            batch: self.shared.database.batch(),
            is_begun: false,
            count: 0,
            note: None,
        };
        let row = NumberRow {
            set: None,
            name: name.to_owned(),
        };
        let numbers = &self.shared.tables.numbers;
        writer.batch.put(numbers, &number, &row)?;
        Ok(writer)
    }
}

impl FileWriter {
    /// Adds a capture. Its key is made again from its URL; its file is that of the writer, whatever it says.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the database fails; the writer is dropped then.
    pub fn push_capture(&mut self, capture: &Capture) -> Result<(), DbError> {
        let shared = &self.captures.shared;
        let place = Place {
            key: shared.rules.key_of(capture),
            time: Moment::from_stamp(capture.timestamp),
            file: self.number,
            position: match capture.offset {
                Some(offset) => Position::Offset(offset),
                None => Position::Line(self.count),
            },
        };
        let value = pack_capture(&place, capture);
        self.batch.put(&shared.tables.captures, &place, &value)?;
        self.count += 1;
        if self.batch.size() >= BATCH {
            self.flush()?;
        }
        Ok(())
    }

    /// Stores a note with the file once the writer is completed.
    pub fn set_note(&mut self, note: Option<String>) {
        self.note = Some(FileChange::Note(note));
    }

    /// Shows the captures in the place of those that the file had, and says that it is indexed, or that it has nothing
    /// to index; keeps how far the archive was followed in the same batch, if that is given. Returns the number of
    /// captures.
    ///
    /// The change is logged, and durable with the next [`CaptureIndex::sync`].
    ///
    /// # Errors
    ///
    /// [`DbError`] if the database fails.
    pub fn complete_file(mut self, follow: Option<FollowPosition>) -> Result<u64, DbError> {
        let shared = &self.captures.shared;
        let mut batch = shared.database.batch();
        if self.count > 0 {
            std::mem::swap(&mut batch, &mut self.batch);
        }
        let captures = FileChange::Captures(self.number, self.count);
        let changes = [Some(captures), self.note.take()].into_iter().flatten();
        let changes = changes.map(|change| (self.name.clone(), change)).collect();
        shared.change_file(batch, changes, follow)?;
        Ok(self.count)
    }

    fn flush(&mut self) -> Result<(), DbError> {
        let shared = &self.captures.shared;
        if !self.is_begun {
            self.batch.put(&shared.tables.dead, &self.number, &())?;
            self.is_begun = true;
        }
        shared.flush_counts(&mut self.batch)
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        self.captures.shared.ledger().writing.remove(&self.number);
    }
}
