//! The description of a database in a table of its own: the name and version of the database, and whether a load was
//! cut off.

use serde::{Deserialize, Serialize};

use crate::database::Database;
use crate::engine::Engine;
use crate::error::DbError;
use crate::options::DatabaseOptions;
use crate::value::TableValue;

/// The name of the table that every database has. Users' tables cannot have such a name, because their names are words.
pub(crate) const META: &str = "holdfast-meta";
/// The key of the one row that every complete database has.
const FORMAT: &str = "format";
/// The key of the row that exists while a bulk load runs.
const LOADING: &str = "loading";

/// A row of the meta table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Meta {
    /// The name and the version of the database.
    Format { name: String, version: u32 },
    /// A bulk load has begun and has not ended.
    Loading,
}

impl TableValue for Meta {}

/// Refuses an existing database of another name or version, or one that is not complete.
pub(crate) fn refuse_other_formats(
    inner: &Engine,
    options: &DatabaseOptions,
) -> Result<(), DbError> {
    let refuse = |found: String| DbError::Format {
        path: inner.path().to_path_buf(),
        found,
        readable: format!("{} version {}", options.name, options.version),
    };
    let format = if inner.has_table(META) {
        inner.get(META, &FORMAT.to_owned())?
    } else {
        None
    };
    let Some(Meta::Format { name, version }) = format else {
        // The caller had a database here, which had its description from its first commit on.
        if options.at_least > 0 {
            return Err(DbError::Damaged {
                path: inner.path().to_path_buf(),
                what: "it no longer says what it is".to_owned(),
            });
        }
        return Err(refuse("a database that does not say what it is".to_owned()));
    };
    if name != options.name || version != options.version {
        return Err(refuse(format!("{name} version {version}")));
    }
    refuse_unfinished_load(inner)
}

/// Refuses a database whose bulk load began and did not end: it may lack any of its rows.
pub(crate) fn refuse_unfinished_load(inner: &Engine) -> Result<(), DbError> {
    match inner.get::<String, Meta>(META, &LOADING.to_owned())? {
        None => Ok(()),
        Some(_) => Err(DbError::Damaged {
            path: inner.path().to_path_buf(),
            what: "a bulk load was not finished".to_owned(),
        }),
    }
}

/// Writes the description of a new database: the last act of creating one.
pub(crate) fn write_versions(
    database: &Database,
    options: &DatabaseOptions,
) -> Result<(), DbError> {
    let mut batch = database.batch();
    batch.put(
        &database.table(META)?,
        &FORMAT.to_owned(),
        &Meta::Format {
            name: options.name.to_owned(),
            version: options.version,
        },
    )?;
    batch.commit()?;
    Ok(())
}

/// Records that a load begins, or that it ended.
pub(crate) fn set_loading(database: &Database, loading: bool) -> Result<u64, DbError> {
    let meta = database.table(META)?;
    let mut batch = database.batch();
    if loading {
        batch.put(&meta, &LOADING.to_owned(), &Meta::Loading)?;
    } else {
        batch.delete(&meta, &LOADING.to_owned())?;
    }
    batch.commit()
}
