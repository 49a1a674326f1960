//! The handle of an open index.
//!
//! # Errors
//!
//! All functions fail with [`DbError`] if the database does.

use std::sync::Arc;

use archive_db::DbError;
use archive_formats::cdx::Capture;

use crate::moment::Moment;
use crate::place::{Place, Position};
use crate::progress::IndexCounts;
use crate::shared::SharedState;

/// An open index of captures. Clones share it; it is closed when the last of them is dropped.
///
/// ```
/// use archive_formats::cdx::Capture;
/// use index_captures::{CaptureIndex, MemoryPlace, OpenOptions};
///
/// let memory = MemoryPlace::new()?;
/// let captures = CaptureIndex::open_in_memory(&memory, &OpenOptions::default())?.captures;
///
/// let mut capture = Capture::new("", "20260102030405".parse()?);
/// capture.original = Some("http://www.example.org/".to_owned());
/// capture.offset = Some(4711);
/// let mut writer = captures.begin_file("1-1.warc.gz")?;
/// writer.push_capture(&capture)?;
/// assert_eq!(writer.complete_file(None)?, 1);
///
/// captures.withdraw_file("1-1.warc.gz")?;
/// let entry = captures.file_entry("1-1.warc.gz")?.ok_or("the file is not known")?;
/// assert_eq!((entry.captures, entry.is_withdrawn), (1, true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct CaptureIndex {
    pub(crate) shared: Arc<SharedState>,
}

impl CaptureIndex {
    /// Makes durable all that was changed. Changes survive the end of the process without it; a power cut may take
    /// those since the last call, the latest ones first, with the [`FollowPosition`](crate::FollowPosition) that came
    /// with them.
    pub fn sync(&self) -> Result<(), DbError> {
        self.shared.database.sync()
    }

    /// Returns how far the index has come, a number that grows with each change. An index that is opened with less than
    /// was made durable has lost rows; see [`OpenOptions::at_least`](crate::OpenOptions::at_least).
    pub fn sequence(&self) -> u64 {
        self.shared.database.sequence()
    }

    /// Returns how many files and captures there are.
    pub fn counts(&self) -> IndexCounts {
        self.shared.ledger().counts
    }

    /// Returns the capture that the index has of a file of the archive at the place where this one is: same URL, time
    /// and offset. `line` says how many captures of the file were before it, which counts where it has no offset. For
    /// comparisons of the index with its files; also of a withdrawn file.
    pub fn find_capture(
        &self,
        file: &str,
        capture: &Capture,
        line: u64,
    ) -> Result<Option<Capture>, DbError> {
        let shared = &self.shared;
        let row = shared.tables.files.get(&file.to_owned())?;
        let Some((number, _)) = row.and_then(|row| row.captures) else {
            return Ok(None);
        };
        let place = Place {
            key: shared.rules.key_of(capture),
            time: Moment::from_stamp(capture.timestamp),
            file: number,
            position: capture
                .offset
                .map_or(Position::Line(line), Position::Offset),
        };
        match shared.tables.captures.get(&place)? {
            Some(packed) => Ok(Some(shared.unpack_row(&place, &packed)?.0)),
            None => Ok(None),
        }
    }

    /// Forgets all files of the archive, with their captures and how far the archive was followed: before they are
    /// indexed anew. Imported sets stay, and so does which files are withdrawn: they stay hidden in the sets, too.
    pub fn forget_files(&self) -> Result<(), DbError> {
        self.shared.forget_files()
    }

    /// Reads every row with its checksum; gives how many there are.
    pub fn verify(&self) -> Result<u64, DbError> {
        self.shared.database.verify()
    }
}
