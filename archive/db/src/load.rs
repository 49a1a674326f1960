//! Bulk loads: many rows at once, without a log, and marked as unfinished until all of them are on disk.
//!
//! # Errors
//!
//! A load begins only if no other was cut off in this database ([`DbError::Damaged`]). Its steps fail if the disk does
//! ([`DbError::Io`]), or if a value could not be read back ([`DbError::Unwritable`]).

use crate::batch::ChangeBatch;
use crate::database::Database;
use crate::error::DbError;
use crate::key::Key;
use crate::table::Table;
use crate::value::TableValue;
use crate::version;

/// The number of bytes of rows at which they are handed to RocksDB.
const CHUNK: usize = 1 << 20;

/// A bulk load into a new or cleared database: a rebuild.
///
/// A database whose load was dropped or cut off before [`Load::finish`] is damaged: it cannot be opened again, and
/// no second load of it begins. Destroy it and begin the rebuild again.
///
/// ```
/// use archive_db::{MemoryPlace, DatabaseOptions};
///
/// let database = MemoryPlace::new()?.open(&DatabaseOptions::new("example", 1, &["sizes"]))?;
/// let sizes = database.table::<u64, u64>("sizes")?;
/// let mut load = database.load()?;
/// for number in 0..1000 {
///     load.put(&sizes, &number, &(number * 10))?;
/// }
/// load.finish()?;
/// assert_eq!(sizes.count()?, 1000);
/// # Ok::<(), archive_db::DbError>(())
/// ```
#[derive(Debug)]
#[must_use = "a load that is not finished leaves a damaged database"]
pub struct Load {
    database: Database,
    chunk: ChangeBatch,
}

impl Database {
    /// Begins a bulk load: fast, and durable only when it is finished.
    pub fn load(&self) -> Result<Load, DbError> {
        Load::begin(self)
    }
}

impl Load {
    fn begin(database: &Database) -> Result<Self, DbError> {
        version::refuse_unfinished_load(&database.inner)?;
        version::set_loading(database, true)?;
        Ok(Self {
            database: database.clone(),
            chunk: database.batch(),
        })
    }

    /// Sets the row of `key`. Keys come in any order; ascending is fastest.
    pub fn put<K: Key, V: TableValue>(
        &mut self,
        table: &Table<K, V>,
        key: &K,
        value: &V,
    ) -> Result<(), DbError> {
        self.chunk.put(table, key, value)?;
        if self.chunk.size() < CHUNK {
            return Ok(());
        }
        std::mem::replace(&mut self.chunk, self.database.batch()).write_unlogged()
    }

    /// Makes the rows so far readable. They are no more durable than before.
    pub fn settle(&mut self) -> Result<(), DbError> {
        std::mem::replace(&mut self.chunk, self.database.batch()).write_unlogged()
    }

    /// Flushes everything to disk and removes the mark. Returns the [`Database::sequence`] of the last change.
    pub fn finish(self) -> Result<u64, DbError> {
        self.chunk.write_unlogged()?;
        self.database.inner.flush()?;
        version::set_loading(&self.database, false)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Database, DatabaseOptions, DbError, MemoryPlace};

    fn load(database: &Database, rows: u64) -> crate::Load {
        let table = database.table::<u64, String>("rows").unwrap();
        let mut load = database.load().unwrap();
        for number in 0..rows {
            load.put(&table, &number, &"x".repeat(100)).unwrap();
        }
        load
    }

    /// Fails if a finished load lacks rows after the database was closed, or passes for damage.
    #[test]
    fn a_finished_load_is_all_there() {
        let memory = MemoryPlace::new().unwrap();
        let options = DatabaseOptions::new("test", 1, &["rows"]);
        let database = memory.open(&options).unwrap();
        let sequence = load(&database, 50_000).finish().unwrap();
        drop(database);
        let database = memory.open(&options.at_least(sequence)).unwrap();
        let table = database.table::<u64, String>("rows").unwrap();
        assert_eq!(table.count(), Ok(50_000));
        assert_eq!(
            database.verify(),
            Ok(50_001),
            "the rows and the one that says what the database is"
        );
    }

    /// Fails if rows that were settled wait for the end of the load.
    #[test]
    fn settled_rows_are_readable_before_the_end() {
        let memory = MemoryPlace::new().unwrap();
        let database = memory
            .open(&DatabaseOptions::new("test", 1, &["rows"]))
            .unwrap();
        let mut load = load(&database, 7);
        let table = database.table::<u64, String>("rows").unwrap();
        assert_eq!(table.count(), Ok(0));
        load.settle().unwrap();
        assert_eq!(table.count(), Ok(7));
        load.finish().unwrap();
    }

    /// Fails if a second load begins where one was given up, and so hides that rows of the first are missing.
    #[test]
    fn second_load_never_hides_an_unfinished_one() {
        let memory = MemoryPlace::new().unwrap();
        let options = DatabaseOptions::new("test", 1, &["rows"]);
        let database = memory.open(&options).unwrap();
        drop(load(&database, 50_000));
        assert!(
            matches!(database.load(), Err(DbError::Damaged { .. })),
            "a second one would hide the first"
        );
        drop(database);
        assert!(
            memory.open(&options).unwrap_err().is_damage(),
            "the refused load leaves the mark of the first"
        );
    }
}
