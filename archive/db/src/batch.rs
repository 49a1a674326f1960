//! Changes to any tables of one database, committed together.
//!
//! # Errors
//!
//! Changes are refused with [`DbError::NoTable`] for a table of another database, and with [`DbError::Unwritable`] for
//! a value that could not be read back. A commit fails with [`DbError::Io`] if the log cannot be written or synced.

use std::sync::Arc;

use rocksdb::{WriteBatch, WriteOptions};

use crate::engine::Engine;
use crate::error::DbError;
use crate::key::{Key, to_bytes};
use crate::table::Table;
use crate::value::{self, TableValue};

/// Changes that are committed all or not at all. Later changes of one key win over earlier ones.
///
/// A batch is held in memory: a caller with many rows commits every few thousand, or uses a [`crate::Load`].
///
/// Both rows are in the database afterwards, or neither:
///
/// ```
/// use archive_db::{MemoryPlace, DatabaseOptions};
///
/// let database = MemoryPlace::new()?.open(&DatabaseOptions::new("example", 1, &["sizes", "names"]))?;
/// let sizes = database.table::<String, u64>("sizes")?;
/// let names = database.table::<u64, String>("names")?;
/// let mut batch = database.batch();
/// batch.put(&sizes, &"a.warc".to_owned(), &7)?;
/// batch.put(&names, &7, &"a.warc".to_owned())?;
/// batch.commit()?;
/// assert_eq!((sizes.count()?, names.count()?), (1, 1));
/// # Ok::<(), archive_db::DbError>(())
/// ```
#[must_use = "nothing is written before `commit`"]
pub struct ChangeBatch {
    inner: Arc<Engine>,
    writes: WriteBatch,
}

impl ChangeBatch {
    pub(crate) fn new(inner: Arc<Engine>) -> Self {
        Self {
            inner,
            writes: WriteBatch::default(),
        }
    }

    /// Sets the row of `key`, whether it existed or not.
    pub fn put<K: Key, V: TableValue>(
        &mut self,
        table: &Table<K, V>,
        key: &K,
        value: &V,
    ) -> Result<(), DbError> {
        let value = value::encode_value(value).map_err(|what| DbError::Unwritable {
            table: table.name().to_owned(),
            what,
        })?;
        self.writes
            .put_cf(table.family_in(&self.inner)?, to_bytes(key), value);
        Ok(())
    }

    /// Sets a row whose key and value are already encoded.
    pub(crate) fn put_encoded<K: Key, V: TableValue>(
        &mut self,
        table: &Table<K, V>,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), DbError> {
        let family = table.family_in(&self.inner)?;
        self.writes.put_cf(family, key, value);
        Ok(())
    }

    /// Removes the row of `key`, if it exists.
    pub fn delete<K: Key, V: TableValue>(
        &mut self,
        table: &Table<K, V>,
        key: &K,
    ) -> Result<(), DbError> {
        self.writes
            .delete_cf(table.family_in(&self.inner)?, to_bytes(key));
        Ok(())
    }

    /// Removes every row that `table` has now, at the cost of one change; rows that are put afterwards stay.
    pub fn clear_table<K: Key, V: TableValue>(
        &mut self,
        table: &Table<K, V>,
    ) -> Result<(), DbError> {
        let family = table.family_in(&self.inner)?;
        if let Some(mut end) = self.inner.last_key(table.name())? {
            // The range excludes its end; a zero byte makes the end the next possible key.
            end.push(0);
            self.writes.delete_range_cf(family, Vec::new(), end);
        }
        Ok(())
    }

    /// Returns the number of bytes that the changes take.
    pub fn size(&self) -> usize {
        self.writes.size_in_bytes()
    }

    /// Writes the changes and syncs them. Returns the [`crate::Database::sequence`] of the last of them.
    ///
    /// After an error, the next opening finds all of the changes or none of them. See
    /// [`crate::Database::broken`]: after most errors no further commit succeeds.
    pub fn commit(self) -> Result<u64, DbError> {
        self.write_logged(true)
    }

    /// Writes the changes and does not sync them: they survive the end of the process, and a power cut once
    /// [`crate::Database::sync`] has returned. Returns the [`crate::Database::sequence`] of the last of them.
    ///
    /// # Errors
    ///
    /// Returns [`DbError::SyncedOnly`] unless the database was opened with [`crate::DatabaseOptions::syncs_later`]; otherwise
    /// it fails as [`ChangeBatch::commit`] does.
    pub fn write(self) -> Result<u64, DbError> {
        if !self.inner.syncs_later {
            return Err(DbError::SyncedOnly {
                path: self.inner.path().to_owned(),
            });
        }
        self.write_logged(false)
    }

    fn write_logged(self, sync: bool) -> Result<u64, DbError> {
        if !self.writes.is_empty() {
            #[cfg(feature = "faults")]
            if crate::fault::is_failing(self.inner.path()) {
                return Err(self.inner.failed_write(DbError::Io {
                    path: self.inner.path().to_owned(),
                    what: "IO error: While fdatasync: Input/output error (injected)".to_owned(),
                }));
            }
            let mut options = WriteOptions::default();
            options.set_sync(sync);
            self.inner
                .db
                .write_opt(self.writes, &options)
                .map_err(|error| self.inner.failed_write(self.inner.engine_error(&error)))?;
        }
        Ok(self.inner.db.latest_sequence_number())
    }

    /// Writes the changes without a log: they are durable only once the tables are flushed.
    pub(crate) fn write_unlogged(self) -> Result<(), DbError> {
        self.inner
            .db
            .write_without_wal(self.writes)
            .map_err(|error| self.inner.failed_write(self.inner.engine_error(&error)))
    }
}

impl std::fmt::Debug for ChangeBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Batch({} changes)", self.writes.len())
    }
}
