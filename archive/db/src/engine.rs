//! An open RocksDB: its tables by their names, and the first write after which no other can succeed. All handles share
//! it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rocksdb::{ColumnFamily, ColumnFamilyDescriptor, DB, ReadOptions};

use crate::error::DbError;
use crate::tuning::Tuning;

/// The purpose for which a database is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access<'a> {
    /// Create the database with these tables, and write to it.
    Create(&'a [&'a str]),
    /// Read and write the database.
    Write,
    /// Only read the database: nothing on disk is changed.
    Read,
}

/// The state that all handles share.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) db: DB,
    path: PathBuf,
    identity: String,
    /// Whether batches may be written without a sync.
    pub(crate) syncs_later: bool,
    /// Whether the database lies on a disk, and not in memory.
    pub(crate) is_on_disk: bool,
    /// The names of all tables, also of those that this build does not name.
    tables: Vec<String>,
    /// The first failed write after which no other can succeed.
    broken: OnceLock<DbError>,
    tuning: Tuning,
    rocksdb: Setup,
    /// The number of files that were made for the database.
    files: AtomicU64,
}

/// The options that the database was opened with.
struct Setup(rocksdb::Options);

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Setup")
    }
}

impl Engine {
    /// Opens an existing database with its tables, or creates one with the tables in `access`.
    pub(crate) fn open(
        path: &Path,
        tuning: &Tuning,
        rocksdb: &rocksdb::Options,
        access: Access<'_>,
    ) -> Result<Self, DbError> {
        let failed = |error: rocksdb::Error| DbError::from_rocksdb(path, &error);
        let tables: Vec<String> = match access {
            Access::Create(tables) => tables.iter().copied().map(str::to_owned).collect(),
            Access::Write | Access::Read => DB::list_cf(rocksdb, path).map_err(failed)?,
        };
        let descriptors = tables
            .iter()
            .map(|name| ColumnFamilyDescriptor::new(name, tuning.to_table(name, rocksdb)));
        let db = match access {
            Access::Create(_) | Access::Write => {
                DB::open_cf_descriptors(rocksdb, path, descriptors)
            }
            // The logs of the database are read into memory.
            Access::Read => DB::open_cf_descriptors_read_only(rocksdb, path, descriptors, false),
        };
        let db = db.map_err(failed)?;
        let identity = db.get_db_identity().map_err(failed)?;
        Ok(Self {
            db,
            identity: String::from_utf8_lossy(&identity).into_owned(),
            path: path.to_path_buf(),
            syncs_later: false,
            is_on_disk: true,
            tables,
            broken: OnceLock::new(),
            tuning: tuning.clone(),
            rocksdb: Setup(rocksdb.clone()),
            files: AtomicU64::new(0),
        })
    }

    pub(crate) fn create_missing(&mut self, tables: &[&str]) -> Result<(), DbError> {
        for table in tables {
            if !self.has_table(table) {
                self.db
                    .create_cf(table, &self.family_options(table))
                    .map_err(|error| self.engine_error(&error))?;
                self.tables.push((*table).to_owned());
            }
        }
        Ok(())
    }

    /// Returns the options that a table was opened with.
    pub(crate) fn family_options(&self, table: &str) -> rocksdb::Options {
        self.tuning.to_table(table, &self.rocksdb.0)
    }

    /// Returns a number that no file made for the database had before.
    pub(crate) fn next_file_number(&self) -> u64 {
        self.files.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns whether this build or another one made a table of this name.
    pub(crate) fn has_table(&self, table: &str) -> bool {
        self.tables.iter().any(|name| name == table)
    }

    pub(crate) fn family(&self, table: &str) -> Result<&ColumnFamily, DbError> {
        self.db.cf_handle(table).ok_or_else(|| DbError::NoTable {
            path: self.path.clone(),
            table: table.to_owned(),
        })
    }

    /// Flushes rows that are only in memory and in logs into tables on disk, synced.
    pub(crate) fn flush(&self) -> Result<(), DbError> {
        for table in &self.tables {
            self.db
                .flush_cf(self.family(table)?)
                .map_err(|error| self.failed_write(self.engine_error(&error)))?;
        }
        Ok(())
    }

    /// Reads a whole table past the cache and counts its rows.
    pub(crate) fn count(&self, table: &str) -> Result<u64, DbError> {
        let mut rows = self
            .db
            .raw_iterator_cf_opt(self.family(table)?, scan_options());
        let mut count: u64 = 0;
        rows.seek_to_first();
        while rows.valid() {
            count = count.saturating_add(1);
            rows.next();
        }
        // `valid` turns false at damage as it does at the end.
        rows.status().map_err(|error| self.engine_error(&error))?;
        Ok(count)
    }

    pub(crate) fn engine_error(&self, error: &rocksdb::Error) -> DbError {
        DbError::from_rocksdb(&self.path, error)
    }

    /// Remembers a failed write after which no other can succeed.
    pub(crate) fn failed_write(&self, error: DbError) -> DbError {
        if error.breaks_writing() {
            self.broken.get_or_init(|| error.clone());
        }
        error
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns all tables, also those that this build does not name.
    pub(crate) fn tables(&self) -> &[String] {
        &self.tables
    }

    /// Returns the identity of the database.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns the first failed write after which no other can succeed.
    pub(crate) fn broken(&self) -> Option<DbError> {
        self.broken.get().cloned()
    }
}

/// Returns the options for reading whole tables: checked, read ahead, and without evicting everything else from the
/// cache.
pub(crate) fn scan_options() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_verify_checksums(true);
    options.fill_cache(false);
    options.set_readahead_size(1 << 20);
    options
}
