//! A database: a directory of RocksDB with named tables.

use std::path::Path;
use std::sync::Arc;

use crate::batch::ChangeBatch;
use crate::engine::Engine;
use crate::error::{BrokenDatabase, DbError};
use crate::key::Key;
use crate::reach::Reach;
use crate::table::Table;
use crate::torn::TornTail;
use crate::value::TableValue;

/// An open database. Clones share it; it is closed, and may be opened again, when the last of them and of its
/// tables is dropped.
///
/// ```
/// use archive_db::{MemoryPlace, DatabaseOptions};
///
/// # fn main() -> Result<(), archive_db::DbError> {
/// let database = MemoryPlace::new()?.open(&DatabaseOptions::new("example", 1, &["sizes"]))?;
/// let sizes = database.table::<String, u64>("sizes")?;
/// let mut batch = database.batch();
/// for (name, size) in [("b.warc", 2), ("a.warc", 1)] {
///     batch.put(&sizes, &name.to_owned(), &size)?;
/// }
/// let sequence = batch.commit()?;
/// assert_eq!(database.sequence(), sequence);
///
/// // Rows come in the order of their keys, and damage is an error, never a short listing.
/// let rows = sizes.scan()?.collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(rows, [("a.warc".to_owned(), 1), ("b.warc".to_owned(), 2)]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Database {
    pub(crate) inner: Arc<Engine>,
    pub(crate) is_new: bool,
    pub(crate) torn: Option<TornTail>,
}

impl Database {
    /// Returns the table `name`, which is one of those of [`crate::DatabaseOptions::new`].
    ///
    /// A table has the same types of key and value permanently; with other types its rows cannot be read.
    ///
    /// # Errors
    ///
    /// Returns [`DbError::NoTable`] if the database has no table of this name.
    pub fn table<K: Key, V: TableValue>(&self, name: &str) -> Result<Table<K, V>, DbError> {
        self.inner.family(name)?;
        Ok(Table::new(Arc::clone(&self.inner), name))
    }

    /// Begins a batch of changes to any of the tables.
    pub fn batch(&self) -> ChangeBatch {
        ChangeBatch::new(Arc::clone(&self.inner))
    }

    /// Makes durable the changes that were written without a sync ([`ChangeBatch::write`]).
    ///
    /// # Errors
    ///
    /// Returns [`DbError::Io`] if the log cannot be synced: changes since the last sync may be lost at a power cut.
    pub fn sync(&self) -> Result<(), DbError> {
        let synced = self.inner.db.flush_wal(self.inner.is_on_disk);
        synced.map_err(|error| self.inner.failed_write(self.inner.engine_error(&error)))
    }

    /// Returns the sequence number of the last committed change. It never falls while the database is whole.
    pub fn sequence(&self) -> u64 {
        self.inner.db.latest_sequence_number()
    }

    /// Returns the identity of the database: a text given when it was created, which only its copies share.
    pub fn identity(&self) -> &str {
        self.inner.identity()
    }

    /// Returns the point that the database has reached, to be kept in a second place.
    pub fn reach(&self) -> Reach {
        Reach {
            sequence: self.sequence(),
            identity: self.identity().to_owned(),
        }
    }

    /// Returns whether the opening created the database.
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns the write that was cut away when the database was opened, if [`crate::DatabaseOptions::torn_tail`] allowed that.
    pub const fn torn(&self) -> Option<&TornTail> {
        self.torn.as_ref()
    }

    /// Reads every table to its end, past the cache, with every checksum. Returns the number of rows.
    ///
    /// This proves that the bytes can be read, not that rows decode: a scan of each table proves that.
    ///
    /// # Errors
    ///
    /// Returns [`DbError::Damaged`] if a checksum does not match, and [`DbError::Io`] if the disk fails.
    pub fn verify(&self) -> Result<u64, DbError> {
        let mut rows: u64 = 0;
        for name in self.inner.tables() {
            rows = rows.saturating_add(self.inner.count(name)?);
        }
        Ok(rows)
    }

    /// Returns the reason why no write can succeed any more, if there is one. A caller that has acknowledged writes
    /// then has to end, or to open the database again: each further commit fails.
    pub fn broken(&self) -> Option<BrokenDatabase> {
        self.inner.broken().map(BrokenDatabase)
    }

    /// Returns the directory of the database.
    pub fn path(&self) -> &Path {
        self.inner.path()
    }
}
