//! The opening of a database: before it can be used, it is refused, or a torn write is cut away.

mod refusal;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rocksdb::{DB, Env};

use self::refusal::{behind_stamp, is_there, refuse_others};
use crate::database::Database;
use crate::engine::{Access, Engine};
use crate::error::DbError;
use crate::options::DatabaseOptions;
use crate::torn::TornTail;
use crate::{ingestion, version};

impl Database {
    /// Opens the database in the directory `path`. Creates it if it is absent and the options do not demand an existing
    /// one.
    ///
    /// Files of a database without the file that names the others are damage, never a reason to begin anew.
    ///
    /// # Errors
    ///
    /// Returns [`DbError::Damaged`], [`DbError::Behind`] or [`DbError::Other`] if it is not the database that the
    /// options describe, [`DbError::Format`] if it has another name or a version that this build does not read,
    /// [`DbError::Busy`] if another handle has it open, and [`DbError::Io`] if the system fails.
    pub fn open(path: &Path, options: &DatabaseOptions) -> Result<Self, DbError> {
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
        // No other handle has it open, and only one of several simultaneous callers continues.
        let lock =
            fs::File::open(path.join("LOCK")).map_err(|error| DbError::from_io(path, &error))?;
        lock.try_lock().or(Err(DbError::Busy {
            path: path.to_path_buf(),
        }))?;
        match open() {
            Err(damaged @ DbError::Damaged { .. }) => {
                let torn = TornTail::find_torn_tail(path, options.at_least)?.ok_or(damaged)?;
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

    /// Opens the database in the directory `path` for reading. Nothing on disk is changed, and each write fails. Its
    /// rows are those of the moment at which it is opened.
    ///
    /// # Errors
    ///
    /// Fails as [`Database::open`] does, and also if the database is absent.
    pub fn open_to_read(path: &Path, options: &DatabaseOptions) -> Result<Self, DbError> {
        if !is_there(path)? {
            return Err(behind_stamp(path, options, 0));
        }
        let mut rocksdb = options.tuning.to_rocksdb(None);
        // By default each table has 16 threads to open its files, of which most have one.
        rocksdb.set_max_file_opening_threads(1);
        let inner = Engine::open(path, &options.tuning, &rocksdb, Access::Read)?;
        refuse_others(&inner, options)?;
        version::refuse_other_formats(&inner, options)?;
        Ok(Self {
            inner: Arc::new(inner),
            is_new: false,
            torn: None,
        })
    }

    /// Opens a database on disk (without `env`) or in memory; the caller has found out whether it `is_absent`.
    pub(crate) fn open_in(
        path: &Path,
        options: &DatabaseOptions,
        env: Option<&Env>,
        is_absent: bool,
    ) -> Result<Self, DbError> {
        if is_absent && options.at_least > 0 {
            return Err(behind_stamp(path, options, 0));
        }
        let mut rocksdb = options.tuning.to_rocksdb(env);
        // Each table that is made in an open database costs a sync of its own.
        rocksdb.create_missing_column_families(is_absent);
        // The table with the version comes last: a creation that was cut off before is continued.
        let tables: Vec<&str> = ["default"]
            .into_iter()
            .chain(options.tables.iter().copied())
            .chain([version::META])
            .collect();
        let access = if is_absent {
            Access::Create(&tables)
        } else {
            Access::Write
        };
        let mut inner = Engine::open(path, &options.tuning, &rocksdb, access)?;
        inner.syncs_later = options.tuning.syncs_later;
        inner.is_on_disk = env.is_none();
        if inner.is_on_disk {
            let deleted = ingestion::delete_left(path);
            deleted.map_err(|error| DbError::from_io(path, &error))?;
        }
        refuse_others(&inner, options)?;
        // If nothing was ever written, at most a creation was cut off: it is continued.
        let is_new = inner.db.latest_sequence_number() == 0;
        if !is_new {
            version::refuse_other_formats(&inner, options)?;
        }
        // Nothing is written before the version is known to be ours.
        inner.create_missing(&options.tables)?;
        inner.create_missing(&[version::META])?;
        let database = Self {
            inner: Arc::new(inner),
            is_new,
            torn: None,
        };
        if is_new {
            version::write_versions(&database, options)?;
        }
        Ok(database)
    }

    /// Deletes the database in the directory `path`, for a cache that is rebuilt.
    ///
    /// # Errors
    ///
    /// Returns [`DbError::Busy`] if another handle has it open, and [`DbError::Io`] if a file cannot be deleted.
    pub fn destroy(path: &Path) -> Result<(), DbError> {
        DB::destroy(&rocksdb::Options::default(), path)
            .map_err(|error| DbError::from_rocksdb(path, &error))
    }
}

#[cfg(test)]
mod tests;
