//! The refusal of a database before anything is done with it: of one that is absent, is another one, or lacks commits
//! that its user knows of.

use std::fs;
use std::io;
use std::path::Path;

use crate::engine::Engine;
use crate::error::DbError;
use crate::options::DatabaseOptions;

/// Returns whether a database is in this directory.
///
/// RocksDB creates a new database over the files of the old one if `CURRENT` is absent; so the other files are checked
/// first.
pub(super) fn is_there(path: &Path) -> Result<bool, DbError> {
    let io = |error: io::Error| DbError::from_io(path, &error);
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(io(error)),
    };
    let mut rows = None;
    for entry in entries {
        let name = entry.map_err(io)?.file_name();
        if name == "CURRENT" {
            return Ok(true);
        }
        if Path::new(&name)
            .extension()
            .is_some_and(|kind| kind == "sst" || kind == "blob" || kind == "log")
        {
            rows = Some(name);
        }
    }
    match rows {
        None => Ok(false),
        Some(name) => Err(DbError::Damaged {
            path: path.to_path_buf(),
            what: format!("{} is there and CURRENT is not", name.display()),
        }),
    }
}

/// Makes the error about a database that lacks commits that its user knows of.
pub(super) fn behind_stamp(path: &Path, options: &DatabaseOptions, found: u64) -> DbError {
    DbError::Behind {
        path: path.to_path_buf(),
        stamp: options.at_least,
        found,
    }
}

/// Refuses a database that is not the one of its user, or lacks commits that its user knows of.
pub(super) fn refuse_others(engine: &Engine, options: &DatabaseOptions) -> Result<(), DbError> {
    let wanted = options.identity.as_ref();
    if let Some(wanted) = wanted.filter(|wanted| *wanted != engine.identity()) {
        return Err(DbError::Other {
            path: engine.path().to_path_buf(),
            wanted: wanted.clone(),
            found: engine.identity().to_owned(),
        });
    }
    let sequence = engine.db.latest_sequence_number();
    if sequence < options.at_least {
        return Err(behind_stamp(engine.path(), options, sequence));
    }
    Ok(())
}
