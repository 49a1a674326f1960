//! Databases in RocksDB's in-memory environment, for tests and simulation: the same code without a disk.
//!
//! # Errors
//!
//! A place in memory is not made if the system has none left; a database in it is refused as one on disk is.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rocksdb::Env;

use crate::database::Database;
use crate::error::DbError;
use crate::options::DatabaseOptions;

/// The directory, in an environment of its own.
const PATH: &str = "/memory";

/// A place in memory for one database. Its rows stay while the place lives, so that it can be opened again.
///
/// ```
/// use archive_db::{MemoryPlace, DatabaseOptions};
///
/// let memory = MemoryPlace::new()?;
/// let options = DatabaseOptions::new("example", 1, &["numbers"]);
/// let database = memory.open(&options)?;
/// let numbers = database.table::<u64, u64>("numbers")?;
/// let mut batch = database.batch();
/// batch.put(&numbers, &1, &2)?;
/// batch.commit()?;
/// drop((database, numbers));
///
/// let numbers = memory.open(&options)?.table::<u64, u64>("numbers")?;
/// assert_eq!(numbers.get(&1)?, Some(2));
/// # Ok::<(), archive_db::DbError>(())
/// ```
pub struct MemoryPlace {
    env: Env,
    is_used: AtomicBool,
}

impl MemoryPlace {
    /// Makes an empty place.
    pub fn new() -> Result<Self, DbError> {
        let env = Env::mem_env().map_err(|error| DbError::from_rocksdb(Path::new(PATH), &error))?;
        Ok(Self {
            env,
            is_used: AtomicBool::new(false),
        })
    }

    /// Opens the database in this place, or creates it, as [`Database::open`] does on disk.
    pub fn open(&self, options: &DatabaseOptions) -> Result<Database, DbError> {
        let is_new = !self.is_used.load(Ordering::Acquire);
        let database = Database::open_in(Path::new(PATH), options, Some(&self.env), is_new)?;
        self.is_used.store(true, Ordering::Release);
        Ok(database)
    }
}

impl std::fmt::Debug for MemoryPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Memory")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if users that sync later cannot be tested without a disk.
    #[test]
    fn sync_in_memory_does_nothing() {
        let memory = MemoryPlace::new().unwrap();
        let options = DatabaseOptions::new("test", 1, &["numbers"]).syncs_later();
        let database = memory.open(&options).unwrap();
        let numbers = database.table::<u64, u64>("numbers").unwrap();
        let mut batch = database.batch();
        batch.put(&numbers, &1, &2).unwrap();
        batch.write().unwrap();
        assert_eq!(database.sync(), Ok(()));
        drop((database, numbers));
        let database = memory.open(&options).unwrap();
        assert_eq!(database.verify(), Ok(2));
    }

    /// Fails if a place in memory forgets a commit when its database is closed.
    #[test]
    fn reopened_place_has_what_was_committed() {
        let memory = MemoryPlace::new().unwrap();
        let options = DatabaseOptions::new("test", 1, &["numbers"]);
        let database = memory.open(&options).unwrap();
        assert!(matches!(memory.open(&options), Err(DbError::Busy { .. })));
        let numbers = database.table::<u64, u64>("numbers").unwrap();
        let mut batch = database.batch();
        batch.put(&numbers, &1, &2).unwrap();
        let sequence = batch.commit().unwrap();
        drop((database, numbers));

        let database = memory.open(&options.clone().at_least(sequence)).unwrap();
        assert_eq!(
            database.table::<u64, u64>("numbers").unwrap().get(&1),
            Ok(Some(2))
        );
        drop(database);
        assert!(matches!(
            memory.open(&options.at_least(sequence + 1)),
            Err(DbError::Behind { .. })
        ));
        assert!(matches!(
            memory.open(&DatabaseOptions::new("other", 1, &[])),
            Err(DbError::Format { .. })
        ));
    }
}
