//! The audit trail: who did what to which file, and when; from the log and, beyond its end, from the table.
//! [`TrailWriter`] writes it from the table into the log.
//!
//! # Errors
//!
//! Reading fails with [`LogError`] if the log or the table cannot be read, or they do not follow each other.

#[cfg(test)]
mod tests;
mod trail_writer;

use std::fmt;
use std::path::Path;

use archive_db::DbError;
use archive_model::FileName;
use jiff::Timestamp;

use crate::admin::{Admin, AuditLine, TrailSnapshot};
use crate::audit_log::{LogError, LogWalk, TrailLine};

pub use trail_writer::{TrailWriter, WriterParts};

/// The filter of a reading of the trail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrailFilter {
    /// The file whose lines are wanted; `None` for all files.
    pub file: Option<FileName>,
    /// The time from which on lines are wanted; `None` for all times.
    pub since: Option<Timestamp>,
}

impl TrailFilter {
    /// Whether the filter lets a line pass.
    pub fn matches_line(&self, line: &AuditLine) -> bool {
        let is_file = self.file.is_none() || self.file == line.file;
        is_file && self.since.is_none_or(|since| line.at >= since)
    }
}

/// The trail, oldest line first, without holes. The first error is the last item. Memory holds one line.
pub struct Trail<'a> {
    log: Option<LogWalk>,
    rows: Box<dyn Iterator<Item = Result<(u64, AuditLine), DbError>> + 'a>,
    next: u64,
    /// The number of the last line; `None` if the trail is empty.
    last: Option<u64>,
    is_done: bool,
}

impl fmt::Debug for Trail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trail").finish_non_exhaustive()
    }
}

impl<'a> Trail<'a> {
    /// Reads the trail of the admin data, whose log is in `directory`.
    pub fn read_trail(admin: &'a Admin, directory: &Path) -> Result<Self, LogError> {
        Self::from_snapshot(admin.trail_snapshot()?, directory)
    }

    /// Reads the trail from a snapshot, without lines that came later.
    pub fn from_snapshot(trail: TrailSnapshot<'a>, directory: &Path) -> Result<Self, LogError> {
        // The rows were read first: lines that have gone from the table since are in the log.
        let log = Some(LogWalk::open(directory)?);
        Ok(Self {
            log,
            rows: trail.lines,
            next: 0,
            last: trail.last,
            is_done: false,
        })
    }

    fn read_next(&mut self) -> Result<Option<TrailLine>, LogError> {
        if self.last.is_none_or(|last| self.next > last) {
            return Ok(None);
        }
        if let Some(log) = &mut self.log {
            if let Some(entry) = log.next().transpose()? {
                return Ok(Some(entry));
            }
            self.log = None;
        }
        for row in self.rows.by_ref() {
            let (number, line) = row?;
            if number < self.next {
                continue;
            }
            if number > self.next {
                return Err(self.hole());
            }
            return Ok(Some(TrailLine {
                number,
                line,
                previous: None,
            }));
        }
        Err(self.hole())
    }

    fn hole(&self) -> LogError {
        LogError::Changed {
            file: "audit".into(),
            line: 0,
            why: format!(
                "line number {} is neither in it nor in the admin data",
                self.next
            ),
        }
    }
}

impl Iterator for Trail<'_> {
    type Item = Result<TrailLine, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let read = self.read_next().transpose();
        match &read {
            Some(Ok(entry)) => self.next = entry.number + 1,
            Some(Err(_)) | None => self.is_done = true,
        }
        read
    }
}
