//! State of a crawl that contradicts its files: it is refused before anything is cut or written.
//!
//! Owns which contradictions no end of a process can leave behind. What a power cut leaves is no damage: the recorder
//! takes it back.

use std::fs;
use std::io;
use std::path::Path;

use archive_db::DbError;
use archive_durable::DiskError;

use super::RecorderError;
use crate::archive_files::OPEN;
use crate::frontier::{ExistingFrontier, RecordedPlace};

impl RecorderError {
    /// Returns whether what a crawl has kept is damaged: it cannot be resumed, and nothing was changed.
    pub const fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Frontier(error) => matches!(
                error,
                DbError::Damaged { .. }
                    | DbError::Behind { .. }
                    | DbError::Other { .. }
                    | DbError::Format { .. }
                    | DbError::Unreadable { .. }
            ),
            Self::ArchiveFile(_) | Self::Disk(_) | Self::Rejections(_) => false,
        }
    }
}

/// Refuses a frontier whose crawl log or archive file is shorter than what was made durable, and a crawl whose frontier
/// is missing.
pub(super) fn check_place(
    found: &ExistingFrontier,
    state: &Path,
    log: &Path,
    archive_files: &Path,
) -> Result<(), RecorderError> {
    let log_length = length(log)?;
    let Some(place) = &found.durable else {
        return match log_length {
            Some(length) if length > 0 => Err(damage_error(
                state,
                "the frontier of the crawl is gone, and its crawl log is not",
            )),
            _ => Ok(()),
        };
    };
    is_long_enough(log, log_length, place.log_length)?;
    check_archive_file(place, archive_files)
}

fn check_archive_file(place: &RecordedPlace, directory: &Path) -> Result<(), RecorderError> {
    if place.file.is_empty() {
        return Ok(());
    }
    let open = directory.join(format!("{}{OPEN}", place.file));
    let open_length = length(&open)?;
    if open_length.is_some() {
        return is_long_enough(&open, open_length, place.file_length);
    }
    // The process ended when it had just been closed.
    let closed = directory.join(&place.file);
    match length(&closed)? {
        Some(length) if length > place.file_length => Err(damage_error(
            &closed,
            &format!(
                "has {length} bytes, and the frontier knows of {} only: it is older than the archive file",
                place.file_length
            ),
        )),
        None => is_long_enough(&open, None, place.file_length),
        closed_length => is_long_enough(&closed, closed_length, place.file_length),
    }
}

fn is_long_enough(path: &Path, length: Option<u64>, recorded: u64) -> Result<(), RecorderError> {
    match length {
        Some(length) if length >= recorded => Ok(()),
        Some(length) => Err(damage_error(
            path,
            &format!("has {length} bytes, and {recorded} were made durable"),
        )),
        None if recorded == 0 => Ok(()),
        None => Err(damage_error(
            path,
            &format!("is gone, and {recorded} bytes of it were made durable"),
        )),
    }
}

/// Returns the length of a file; `None` if there is no file.
fn length(path: &Path) -> Result<Option<u64>, DiskError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(DiskError::new("lstat", path, error)),
    }
}

fn damage_error(path: &Path, what: &str) -> RecorderError {
    RecorderError::Damaged {
        path: path.to_owned(),
        what: what.to_owned(),
    }
}
