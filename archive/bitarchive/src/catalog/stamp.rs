//! The point that the catalog has reached, kept beside it. An older copy that somebody puts back ends before that
//! point, or is from before a rebuild.
//!
//! ```text
//! <data>/catalog.stamp      1204 8d1f6a4c-…
//! ```
//!
//! It is an [`archive_db::Reach`]; older releases wrote the number alone. Not promised: to notice a copy that is
//! younger than the last stamp.

use std::path::{Path, PathBuf};

use archive_db::{DbError, Reach};
use archive_durable::{DiskError, read_state, replace};

/// Returns the path of the stamp of a catalog.
fn path(catalog: &Path) -> PathBuf {
    catalog.with_extension("stamp")
}

/// Reads the point that the catalog has reached at least. A file that is not a stamp asks for more than any catalog
/// has.
pub(super) fn read(catalog: &Path) -> Result<Reach, DbError> {
    let path = path(catalog);
    let text = read_state(&path).map_err(|error| DbError::Io {
        path: catalog.to_owned(),
        what: error.to_string(),
    })?;
    let Some(text) = text else {
        return Ok(Reach::default());
    };
    let text = String::from_utf8_lossy(&text);
    Ok(text.parse().unwrap_or_else(|error| {
        tracing::warn!(path = %path.display(), %text, %error, "the stamp of the catalog cannot be read");
        Reach {
            sequence: u64::MAX,
            identity: None,
        }
    }))
}

/// Writes the stamp, durably.
pub(super) fn write(catalog: &Path, reach: &Reach) -> Result<(), DiskError> {
    replace(&path(catalog), format!("{reach}\n").as_bytes())
}
