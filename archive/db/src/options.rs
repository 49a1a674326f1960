//! The options of a database: its name, version and tables, the databases that are refused, and the memory that it may
//! use.

use std::path::Path;

use crate::reach::Reach;
use crate::tuning::{TableCompression, Tuning};

/// A function that cuts a file to a length, durably, or returns the reason why it could not.
pub type CutFile = fn(&Path, u64) -> Result<(), String>;

/// The options for [`crate::Database::open`].
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    pub(crate) name: &'static str,
    pub(crate) version: u32,
    pub(crate) tables: Vec<&'static str>,
    pub(crate) at_least: u64,
    pub(crate) identity: Option<String>,
    pub(crate) cut: Option<CutFile>,
    pub(crate) tuning: Tuning,
}

impl DatabaseOptions {
    /// Describes a database named `name`, of format version `version`, with these tables. A database of another version
    /// is refused. Absent tables are created.
    pub fn new(name: &'static str, version: u32, tables: &[&'static str]) -> Self {
        Self {
            name,
            version,
            tables: tables.to_vec(),
            at_least: 0,
            identity: None,
            cut: None,
            tuning: Tuning::new(),
        }
    }

    /// Refuses a database whose [`crate::Database::sequence`] is below `sequence`, or that is absent: for records.
    #[must_use]
    pub const fn at_least(mut self, sequence: u64) -> Self {
        self.at_least = sequence;
        self
    }

    /// Refuses a database that has not reached this point, that is another one, or that is absent: for records.
    #[must_use]
    pub fn with_reach(mut self, reach: Reach) -> Self {
        self.identity = Some(reach.identity);
        self.at_least(reach.sequence)
    }

    /// Lets `cut` remove a write that a power cut has torn at the end of the newest log: some of its sectors are zeros,
    /// and nothing can be read behind it. For records whose user brings [`DatabaseOptions::at_least`] up to date before it
    /// acknowledges a commit: the torn write was not acknowledged then.
    #[must_use]
    pub const fn torn_tail(mut self, cut: CutFile) -> Self {
        self.cut = Some(cut);
        self
    }

    /// Lets batches be written without a sync, by [`crate::ChangeBatch::write`], and made durable together by
    /// [`crate::Database::sync`]. A power cut takes the last of them and leaves a prefix of the writes, in all tables. For
    /// users that know how to repeat them.
    #[must_use]
    pub const fn syncs_later(mut self) -> Self {
        self.tuning.syncs_later = true;
        self
    }

    /// Sets about how many bytes cached blocks and unwritten rows may take together; the default is 128 MiB.
    #[must_use]
    pub const fn with_memory(mut self, bytes: usize) -> Self {
        self.tuning.memory = bytes;
        self
    }

    /// Sets the compression of one table from now on. The default for every table is LZ4.
    #[must_use]
    pub fn with_compression(mut self, table: &'static str, compression: TableCompression) -> Self {
        self.tuning.compress_table(table, compression);
        self
    }
}
