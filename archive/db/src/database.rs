//! One database: a directory of RocksDB with named tables.

use std::path::Path;
use std::sync::Arc;

use crate::batch::Batch;
use crate::engine::Engine;
use crate::error::{BrokenDatabase, DbError};
use crate::key::Key;
use crate::reach::Reach;
use crate::table::Table;
use crate::torn::TornTail;
use crate::value::Value;

/// An open database. Clones share it; it is closed, and may be opened again, when the last of them and of its
/// tables is gone.
#[derive(Clone, Debug)]
pub struct Database {
    pub(crate) inner: Arc<Engine>,
    pub(crate) found: Option<u32>,
    pub(crate) torn: Option<TornTail>,
}

impl Database {
    /// The table `name`, which is one of [`crate::Options::new`]'s.
    ///
    /// A table has one type of key and of value for ever; asking with another yields unreadable rows.
    pub fn table<K: Key, V: Value>(&self, name: &str) -> Result<Table<K, V>, DbError> {
        self.inner.family(name)?;
        Ok(Table::new(Arc::clone(&self.inner), name))
    }

    /// A batch of changes to any of the tables.
    pub fn batch(&self) -> Batch {
        Batch::new(Arc::clone(&self.inner))
    }

    /// Makes durable what was written without a sync ([`Batch::write`]).
    ///
    /// # Errors
    ///
    /// [`DbError::Io`] if the log cannot be synced: what it has since the last sync may be lost at a power cut.
    pub fn sync(&self) -> Result<(), DbError> {
        let synced = self.inner.db.flush_wal(self.inner.is_on_disk);
        synced.map_err(|error| self.inner.failed_write(self.inner.failed(&error)))
    }

    /// The sequence number of the last committed change: never falls while the database is whole.
    pub fn sequence(&self) -> u64 {
        self.inner.db.latest_sequence_number()
    }

    /// Which database it is: text that no other one has, given when it was made. A copy has it too.
    pub fn identity(&self) -> &str {
        self.inner.identity()
    }

    /// How far it has come, to be kept in a second place.
    pub fn reach(&self) -> Reach {
        Reach {
            sequence: self.sequence(),
            identity: Some(self.identity().to_owned()),
        }
    }

    /// The version that it had before it was opened; none: it was made.
    pub const fn found_version(&self) -> Option<u32> {
        self.found
    }

    /// The write that was cut away when it was opened, where [`crate::Options::torn_tail`] allowed that.
    pub const fn torn(&self) -> Option<&TornTail> {
        self.torn.as_ref()
    }

    /// Reads every table to its end, past the cache, with every checksum; gives the number of rows.
    ///
    /// It tells that what is stored can be read, not that rows decode: a scan of each table does that.
    pub fn verify(&self) -> Result<u64, DbError> {
        let mut rows: u64 = 0;
        for name in self.inner.tables() {
            rows = rows.saturating_add(self.inner.count(name)?);
        }
        Ok(rows)
    }

    /// Why nothing can be written any more, if a write failed so. A caller that answers for its writes has to end then,
    /// or to open the database again: each further commit fails.
    pub fn broken(&self) -> Option<BrokenDatabase> {
        self.inner.broken().map(BrokenDatabase)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.inner.path()
    }
}
