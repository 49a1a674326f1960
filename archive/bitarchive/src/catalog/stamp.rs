//! The point that the catalog has reached, kept beside it. An older copy that somebody puts back ends before that
//! point, or is from before a rebuild.
//!
//! ```text
//! <data>/catalog.stamp      1204 8d1f6a4c-…
//! ```
//!
//! It is an [`archive_db::Reach`]. Not promised: to notice a copy that is younger than the last stamp.

use std::path::{Path, PathBuf};

use archive_db::{DbError, InvalidReach, Reach};
use archive_durable::{DiskError, read_state, replace_file};

/// Returns the path of the stamp of a catalog.
fn path(catalog: &Path) -> PathBuf {
    catalog.with_extension("stamp")
}

/// Reads the point that the catalog has reached at least; `None` if there is no stamp.
///
/// # Errors
///
/// [`DbError::Damaged`] if the file is not a stamp: nothing tells then whether the catalog is all there.
pub(super) fn read_stamp(catalog: &Path) -> Result<Option<Reach>, DbError> {
    let path = path(catalog);
    let text = read_state(&path).map_err(|error| DbError::Io {
        path: catalog.to_owned(),
        what: error.to_string(),
    })?;
    let Some(text) = text else {
        return Ok(None);
    };
    let reach: Result<Reach, InvalidReach> = String::from_utf8_lossy(&text).parse();
    reach.map(Some).map_err(|error| DbError::Damaged {
        path: catalog.to_owned(),
        what: format!("{} is no stamp: {error}", path.display()),
    })
}

/// Writes the stamp, durably.
pub(super) fn write_stamp(catalog: &Path, reach: &Reach) -> Result<(), DiskError> {
    replace_file(&path(catalog), format!("{reach}\n").as_bytes())
}
