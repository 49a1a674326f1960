//! How far the catalog has come, kept beside it: an older copy that somebody puts back ends before that.
//!
//! Not promised: to notice a copy that is younger than the last stamp.

use std::path::{Path, PathBuf};

use archive_db::DbError;
use archive_durable::{DiskError, read_state, replace};

/// Where the stamp of a catalog lies.
fn path(catalog: &Path) -> PathBuf {
    catalog.with_extension("stamp")
}

/// What the catalog has reached at least; of a stamp that is none, more than any catalog has.
pub(super) fn read(catalog: &Path) -> Result<u64, DbError> {
    let path = path(catalog);
    let text = read_state(&path).map_err(|error| DbError::Io {
        path: catalog.to_owned(),
        what: error.to_string(),
    })?;
    let Some(text) = text else { return Ok(0) };
    let text = String::from_utf8_lossy(&text);
    Ok(text.trim().parse().unwrap_or_else(|_none| {
        tracing::warn!(path = %path.display(), %text, "the stamp of the catalog is no number");
        u64::MAX
    }))
}

/// Writes it, durably.
pub(super) fn write(catalog: &Path, sequence: u64) -> Result<(), DiskError> {
    replace(&path(catalog), format!("{sequence}\n").as_bytes())
}
