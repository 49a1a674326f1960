//! The trail in the admin data: the lines that the log does not have yet, and how far it has come.
//!
//! # Errors
//!
//! All functions fail with [`DbError`] if the database does.

use std::fmt;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::atomic::Ordering;

use archive_db::{DbError, Table};

use super::{Admin, AuditLine};
use crate::audit_log::{LogPosition, TrailRows};

/// The table with the position that the log has reached, in one row.
pub(super) type LogEnds = Table<u64, LogPosition>;

/// The trail as the table has it at one moment.
pub struct TrailSnapshot<'a> {
    /// The lines of the trail in the table: the newest one at least, if there is any.
    pub lines: Box<dyn Iterator<Item = Result<(u64, AuditLine), DbError>> + 'a>,
    /// The number of the newest line.
    pub last: Option<u64>,
}

impl fmt::Debug for TrailSnapshot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrailSnapshot").finish_non_exhaustive()
    }
}

impl Admin {
    /// Returns the lines of the trail that the table still has, from this number on.
    pub fn audit_rows(
        &self,
        from: u64,
    ) -> Result<impl Iterator<Item = Result<(u64, AuditLine), DbError>> + '_, DbError> {
        self.audit.range((Included(from), Unbounded))
    }

    /// Returns the number that the next line of the trail gets, without reading the table.
    pub fn next_line(&self) -> u64 {
        self.next_line.load(Ordering::Acquire)
    }

    /// Returns the trail up to its newest line. The number of that line is read first: lines that are added meanwhile
    /// are behind it.
    pub fn trail_snapshot(&self) -> Result<TrailSnapshot<'_>, DbError> {
        self.trail_with(|| {})
    }

    /// Returns the same; `meanwhile` happens between the two readings of the table.
    pub(crate) fn trail_with(
        &self,
        meanwhile: impl FnOnce(),
    ) -> Result<TrailSnapshot<'_>, DbError> {
        let last = self.audit.last()?.map(|(number, _)| number);
        meanwhile();
        let lines = Box::new(self.audit.scan()?);
        Ok(TrailSnapshot { lines, last })
    }

    /// Returns the position up to which the log has surely come; `None` if it was never begun.
    pub fn log_end(&self) -> Result<Option<LogPosition>, DbError> {
        self.log_end.get(&0)
    }

    /// Remembers how far the log has come, and takes away the rows that are in it, but for the one of number `last`.
    pub fn set_log_end(&self, position: LogPosition, last: u64) -> Result<(), DbError> {
        let mut batch = self.database.batch();
        // Rows before that were deleted the last time; to look there again would read their tombstones.
        let from = self
            .log_end()?
            .map_or(0, |before| before.chain.next().saturating_sub(1));
        for row in self.audit.range((Included(from), Excluded(last)))? {
            batch.delete(&self.audit, &row?.0)?;
        }
        batch.put(&self.log_end, &0, &position)?;
        batch.commit()?;
        self.stamp.log_ends(&position);
        Ok(())
    }
}

impl TrailRows for Admin {
    fn row(&self, number: u64) -> Result<Option<AuditLine>, DbError> {
        self.audit.get(&number)
    }
}
