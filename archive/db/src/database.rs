//! One database: a directory of RocksDB with named tables.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rocksdb::{ColumnFamily, ColumnFamilyDescriptor, DB, Env, ReadOptions};

use crate::key::Key;
use crate::value::Value;
use crate::{
    Batch, BrokenDatabase, DbError, Ingestion, Load, Options, Reach, Table, TornTail, ingestion,
    version,
};
use refusal::{behind, is_there};

mod refusal;

/// An open database. Clones share it; it is closed, and may be opened again, when the last of them and of its
/// tables is gone.
#[derive(Clone, Debug)]
pub struct Database {
    pub(crate) inner: Arc<Inner>,
    found: Option<u32>,
    torn: Option<TornTail>,
}

/// The purpose for which a database is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// To be made, and written.
    Create,
    /// To be read and written.
    Write,
    /// To be read: nothing on disk is changed.
    Read,
}

/// What the handles share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) db: DB,
    path: PathBuf,
    identity: String,
    syncs_later: bool,
    is_on_disk: bool,
    /// All of them, those that this build does not name included.
    tables: Vec<String>,
    /// The first write that failed so that no other can succeed.
    broken: OnceLock<DbError>,
    settings: Settings,
    /// How many files were on their way into it.
    files: AtomicU64,
}

/// How it was opened.
struct Settings {
    options: Options,
    rocksdb: rocksdb::Options,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.options.fmt(f)
    }
}

impl Database {
    /// Opens the database in the directory `path`; makes it if there is none and none was said to have been.
    ///
    /// Files of a database without the file that names the others are damage, never a reason to begin anew.
    pub fn open(path: &Path, options: &Options) -> Result<Self, DbError> {
        if !is_there(path)? {
            return Self::open_in(path, options, None, true);
        }
        let Some(cut) = options.cut else {
            return Self::open_in(path, options, None, false);
        };
        let open = || Self::open_in(path, options, None, false);
        match open() {
            Err(DbError::Damaged { .. }) => {}
            other => return other,
        }
        // Nobody else has it open, and of those who come here at once one goes on.
        let lock =
            fs::File::open(path.join("LOCK")).map_err(|error| DbError::from_io(path, &error))?;
        lock.try_lock().or(Err(DbError::Busy {
            path: path.to_path_buf(),
        }))?;
        match open() {
            Err(damaged @ DbError::Damaged { .. }) => {
                let torn = TornTail::find(path, options.at_least)?.ok_or(damaged)?;
                cut(&torn.log, torn.kept).map_err(|what| DbError::Io {
                    path: path.to_path_buf(),
                    what,
                })?;
                Ok(Self {
                    torn: Some(torn),
                    ..open()?
                })
            }
            other => other,
        }
    }

    /// Opens the database in the directory `path` for reading. Nothing on disk is changed, and each write fails. It has the rows
    /// of the moment at which it is opened.
    ///
    /// # Errors
    ///
    /// As [`Database::open`]; a database that is absent, or of an older version, is refused, too.
    pub fn open_to_read(path: &Path, options: &Options) -> Result<Self, DbError> {
        if !is_there(path)? {
            return Err(behind(path, options, 0));
        }
        // A migration would write.
        let mut options = options.clone();
        options.migrations.clear();
        let mut rocksdb = options.to_rocksdb(None);
        // Else each table has 16 threads to open its files, of which most have one.
        rocksdb.set_max_file_opening_threads(1);
        let inner = Inner::open(path, &options, &rocksdb, Access::Read)?;
        inner.refuse_others(&options)?;
        let found = version::read(&inner, &options)?;
        Ok(Self {
            inner: Arc::new(inner),
            found: Some(found),
            torn: None,
        })
    }

    /// The same on disk (`env` is none) or elsewhere; `is_new` as the caller found out.
    pub(crate) fn open_in(
        path: &Path,
        options: &Options,
        env: Option<&Env>,
        is_new: bool,
    ) -> Result<Self, DbError> {
        if is_new && options.at_least > 0 {
            return Err(behind(path, options, 0));
        }
        let mut rocksdb = options.to_rocksdb(env);
        // Each table that is made in a database that is open costs a sync of its own.
        rocksdb.create_missing_column_families(is_new);
        let access = if is_new {
            Access::Create
        } else {
            Access::Write
        };
        let mut inner = Inner::open(path, options, &rocksdb, access)?;
        inner.syncs_later = options.syncs_later;
        inner.is_on_disk = env.is_none();
        if inner.is_on_disk {
            let deleted = ingestion::delete_left(path);
            deleted.map_err(|error| DbError::from_io(path, &error))?;
        }
        inner.refuse_others(options)?;
        // Where nothing was ever written, a creation was cut off at most: it goes on.
        let found = if inner.db.latest_sequence_number() == 0 {
            None
        } else {
            Some(version::read(&inner, options)?)
        };
        // Nothing is written before the version is known to be ours.
        inner.create_missing(&options.tables, options, &rocksdb)?;
        inner.create_missing(&[version::META], options, &rocksdb)?;
        let database = Self {
            inner: Arc::new(inner),
            found,
            torn: None,
        };
        match found {
            None => version::write(&database, options)?,
            Some(found) => version::migrate(&database, options, found)?,
        }
        Ok(database)
    }

    /// Removes the database in the directory `path` for ever: for caches, before they are rebuilt.
    pub fn destroy(path: &Path) -> Result<(), DbError> {
        DB::destroy(&rocksdb::Options::default(), path)
            .map_err(|error| DbError::from_rocksdb(path, &error))
    }

    /// The table `name`, which is one of [`Options::new`]'s.
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

    /// Begins a bulk load: many rows, fast, durable only when it is finished.
    pub fn load(&self) -> Result<Load, DbError> {
        Load::begin(self)
    }

    /// Begins to write many rows of a table in use, fast.
    pub fn ingestion<K: Key, V: Value>(&self, table: &Table<K, V>) -> Ingestion<K, V> {
        Ingestion::new(self, table)
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
        &self.inner.identity
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

    /// The write that was cut away when it was opened, where [`Options::torn_tail`] allowed that.
    pub const fn torn(&self) -> Option<&TornTail> {
        self.torn.as_ref()
    }

    /// Reads every table to its end, past the cache, with every checksum; gives the number of rows.
    ///
    /// It tells that what is stored can be read, not that rows decode: a scan of each table does that.
    pub fn verify(&self) -> Result<u64, DbError> {
        let mut rows: u64 = 0;
        for name in &self.inner.tables {
            rows = rows.saturating_add(self.inner.count(name)?);
        }
        Ok(rows)
    }

    /// Why nothing can be written any more, if a write failed so. A caller that answers for its writes has to end then,
    /// or to open the database again: each further commit fails.
    pub fn broken(&self) -> Option<BrokenDatabase> {
        self.inner.broken.get().cloned().map(BrokenDatabase)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }
}

impl Inner {
    /// Opens it with the tables that it has; a new one, with the tables that it is to have.
    fn open(
        path: &Path,
        options: &Options,
        rocksdb: &rocksdb::Options,
        access: Access,
    ) -> Result<Self, DbError> {
        let failed = |error: rocksdb::Error| DbError::from_rocksdb(path, &error);
        let tables: Vec<String> = match access {
            Access::Create => {
                // The table that tells the version comes last: a creation that was cut off before it is gone on with.
                let names = ["default"]
                    .into_iter()
                    .chain(options.tables.iter().copied());
                names.chain([version::META]).map(str::to_owned).collect()
            }
            Access::Write | Access::Read => DB::list_cf(rocksdb, path).map_err(failed)?,
        };
        let descriptors = tables
            .iter()
            .map(|name| ColumnFamilyDescriptor::new(name, options.to_table(name, rocksdb)));
        let db = match access {
            Access::Create | Access::Write => DB::open_cf_descriptors(rocksdb, path, descriptors),
            // Its logs are read into memory.
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
            settings: Settings {
                options: options.clone(),
                rocksdb: rocksdb.clone(),
            },
            files: AtomicU64::new(0),
        })
    }

    fn create_missing(
        &mut self,
        tables: &[&str],
        options: &Options,
        rocksdb: &rocksdb::Options,
    ) -> Result<(), DbError> {
        for table in tables {
            if !self.has_table(table) {
                self.db
                    .create_cf(table, &options.to_table(table, rocksdb))
                    .map_err(|error| self.failed(&error))?;
                self.tables.push((*table).to_owned());
            }
        }
        Ok(())
    }

    /// The options that a table was opened with.
    pub(crate) fn family_options(&self, table: &str) -> rocksdb::Options {
        self.settings
            .options
            .to_table(table, &self.settings.rocksdb)
    }

    /// The name of a file on its way into the database, which no other one has.
    pub(crate) fn next_file(&self) -> PathBuf {
        ingestion::file_name(&self.path, self.files.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether batches may be written without a sync.
    pub(crate) const fn syncs_later(&self) -> bool {
        self.syncs_later
    }

    /// Whether this build or another one made a table of this name.
    pub(crate) fn has_table(&self, table: &str) -> bool {
        self.tables.iter().any(|name| name == table)
    }

    pub(crate) fn family(&self, table: &str) -> Result<&ColumnFamily, DbError> {
        self.db.cf_handle(table).ok_or_else(|| DbError::NoTable {
            path: self.path.clone(),
            table: table.to_owned(),
        })
    }

    /// Puts what is only in memory and in logs into tables on disk, synced.
    pub(crate) fn flush(&self) -> Result<(), DbError> {
        for table in &self.tables {
            self.db
                .flush_cf(self.family(table)?)
                .map_err(|error| self.failed_write(self.failed(&error)))?;
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
        rows.status().map_err(|error| self.failed(&error))?;
        Ok(count)
    }

    pub(crate) fn failed(&self, error: &rocksdb::Error) -> DbError {
        DbError::from_rocksdb(&self.path, error)
    }

    /// Remembers a write that failed so that no other can succeed.
    pub(crate) fn failed_write(&self, error: DbError) -> DbError {
        if error.breaks_writing() {
            self.broken.get_or_init(|| error.clone());
        }
        error
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// How whole tables are read: checked, read ahead, and without pushing everything else out of the cache.
pub(crate) fn scan_options() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_verify_checksums(true);
    options.fill_cache(false);
    options.set_readahead_size(1 << 20);
    options
}

#[cfg(test)]
mod tests;
