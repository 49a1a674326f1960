//! The options of a database: its name, version and tables, the databases that are refused, and the memory that it may
//! use.

use std::path::Path;

use crate::database::Database;
use crate::error::DbError;
use crate::reach::Reach;
use crate::tuning::{Compression, Tuning};

/// A step of migration from a version of a database to the next one.
///
/// The step runs before any user sees the database. A crash may run it again from its beginning.
pub type Migration = fn(&Database) -> Result<(), DbError>;

/// A function that cuts a file to a length, durably, or returns the reason why it could not.
pub type Cut = fn(&Path, u64) -> Result<(), String>;

/// The options for [`Database::open`].
///
/// ```
/// use archive_db::{Memory, Options};
///
/// let memory = Memory::new()?;
/// let first = Options::new("example", 1, &["sizes"]);
/// drop(memory.open(&first)?);
/// // The next build reads version 1 as well, by a step to version 2.
/// let second = Options::new("example", 2, &["sizes", "names"]).migration(|_database| Ok(()));
/// assert_eq!(memory.open(&second)?.found_version(), Some(1));
/// # Ok::<(), archive_db::DbError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) name: &'static str,
    pub(crate) version: u32,
    pub(crate) tables: Vec<&'static str>,
    pub(crate) migrations: Vec<Migration>,
    pub(crate) at_least: u64,
    pub(crate) identity: Option<String>,
    pub(crate) cut: Option<Cut>,
    pub(crate) tuning: Tuning,
}

impl Options {
    /// Describes a database named `name`, of format version `version` (from 1), with these tables. Absent tables are
    /// created.
    pub fn new(name: &'static str, version: u32, tables: &[&'static str]) -> Self {
        Self {
            name,
            version,
            tables: tables.to_vec(),
            migrations: Vec::new(),
            at_least: 0,
            identity: None,
            cut: None,
            tuning: Tuning::new(),
        }
    }

    /// Accepts another older version, which this step migrates to the version after it.
    ///
    /// The first call gives the step to the current version, the next one the step before it, and so on.
    #[must_use]
    pub fn migration(mut self, step: Migration) -> Self {
        self.migrations.push(step);
        self
    }

    /// Refuses a database whose [`Database::sequence`] is below `sequence`, or that is absent: for records.
    #[must_use]
    pub const fn at_least(mut self, sequence: u64) -> Self {
        self.at_least = sequence;
        self
    }

    /// Refuses a database that has not reached this point, that is another one, or that is absent: for records.
    #[must_use]
    pub fn reaches(mut self, reach: Reach) -> Self {
        self.identity = reach.identity;
        self.at_least(reach.sequence)
    }

    /// Lets `cut` remove a write that a power cut has torn at the end of the newest log: some of its sectors are zeros,
    /// and nothing can be read behind it. For records whose user brings [`Options::at_least`] up to date before it
    /// acknowledges a commit: the torn write was not acknowledged then.
    #[must_use]
    pub const fn torn_tail(mut self, cut: Cut) -> Self {
        self.cut = Some(cut);
        self
    }

    /// Lets batches be written without a sync, by [`crate::Batch::write`], and made durable together by
    /// [`Database::sync`]. A power cut takes the last of them and leaves a prefix of the writes, in all tables. For
    /// users that know how to repeat them.
    #[must_use]
    pub const fn syncs_later(mut self) -> Self {
        self.tuning.syncs_later = true;
        self
    }

    /// Sets about how many bytes cached blocks and unwritten rows may take together; the default is 128 MiB.
    #[must_use]
    pub const fn memory(mut self, bytes: usize) -> Self {
        self.tuning.memory = bytes;
        self
    }

    /// Sets the compression of one table from now on. The default for every table is LZ4.
    #[must_use]
    pub fn compression(mut self, table: &'static str, compression: Compression) -> Self {
        self.tuning.compress(table, compression);
        self
    }

    /// Returns the oldest version that this build reads.
    pub(crate) fn oldest(&self) -> u32 {
        let steps = u32::try_from(self.migrations.len()).expect("a build has few migrations");
        self.version.saturating_sub(steps).max(1)
    }

    /// Returns the step that leads from `version` to the next one.
    pub(crate) fn step_from(&self, version: u32) -> Option<Migration> {
        let back = self.version.checked_sub(version)?.checked_sub(1)?;
        self.migrations.get(usize::try_from(back).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a migration runs on another version than that for which it was written, or a version without one is
    /// accepted.
    #[test]
    fn migrations_count_back_from_the_current_version() {
        let options = Options::new("catalog", 3, &[]).migration(|_| Ok(()));
        assert_eq!(options.oldest(), 2);
        assert!(options.step_from(2).is_some());
        for version in [0, 1, 3, 4, u32::MAX] {
            assert!(options.step_from(version).is_none(), "{version}");
        }
    }
}
