//! Directories: made durable, listed without following links, names moved within them.
//!
//! # Errors
//!
//! Every function fails with a [`DiskError`] if a system call does.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;

use crate::call;
use crate::error::DiskError;

/// Makes a directory, durably in its parent. An existing directory is accepted.
pub fn make_directory(path: &Path) -> Result<(), DiskError> {
    make_unsynced(path)?;
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .map_or(Ok(()), sync_directory)
}

/// Makes a new directory, durably; refuses if the name is taken.
pub fn make_new(path: &Path) -> Result<(), DiskError> {
    call::make_directory(path)?;
    path.parent().map_or(Ok(()), sync_directory)
}

/// Makes a directory; the caller makes it durable with [`sync_directory`] on its parent. An existing directory is accepted.
pub fn make_unsynced(path: &Path) -> Result<(), DiskError> {
    match call::make_directory(path) {
        Err(error) if error.is_taken() => Ok(()),
        other => other,
    }
}

/// Makes the names in a directory durable.
pub fn sync_directory(path: &Path) -> Result<(), DiskError> {
    call::sync_directory(path)
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// The name, which may not be UTF-8.
    pub name: OsString,
    /// The kind of the file with this name.
    pub kind: EntryKind,
}

/// The kind of a file with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File {
        /// The length of the file in bytes.
        size: u64,
        /// The time of the last change of the file, in seconds since 1970.
        changed: i64,
        /// The number of hard links of the file.
        links: u64,
    },
    /// A directory.
    Directory,
    /// A symbolic link, device, pipe or socket: never opened.
    Other,
}

/// Lists every name in a directory, in no order. An entry that cannot be looked at is an error, never left out.
pub fn list_directory(path: &Path) -> Result<Vec<DirectoryEntry>, DiskError> {
    let listed = look_up_names(path)?.into_iter();
    listed
        .map(|(name, kind)| kind.map(|kind| DirectoryEntry { name, kind }))
        .collect()
}

/// A name with the kind of its file, or with the error of looking at it.
pub type LookedUpName = (OsString, Result<EntryKind, DiskError>);

/// Lists every name in a directory with the kind of its file, or with the error of looking at it: one bad inode hides
/// no other.
pub fn look_up_names(path: &Path) -> Result<Vec<LookedUpName>, DiskError> {
    let mut found = Vec::new();
    for name in list_names(path)? {
        if let Some(kind) = entry_kind(&path.join(&name)).transpose() {
            found.push((name, kind));
        }
    }
    Ok(found)
}

/// Lists every name in a directory, in no order, without looking at the files.
pub fn list_names(path: &Path) -> Result<Vec<OsString>, DiskError> {
    let failed = |error| DiskError::new("getdents", path, error);
    let listed = std::fs::read_dir(path).map_err(failed)?;
    listed
        .map(|entry| entry.map(|entry| entry.file_name()).map_err(failed))
        .collect()
}

/// Returns the kind of the file with a name, or `None` if the name is free. A link is not followed.
pub fn entry_kind(path: &Path) -> Result<Option<EntryKind>, DiskError> {
    use std::os::unix::fs::MetadataExt;
    let found = match call::look_up(path) {
        Err(error) if error.is_absent() => return Ok(None),
        other => other?,
    };
    Ok(Some(if found.is_file() {
        EntryKind::File {
            size: found.len(),
            changed: found.mtime(),
            links: found.nlink(),
        }
    } else if found.is_dir() {
        EntryKind::Directory
    } else {
        EntryKind::Other
    }))
}

/// Opens a regular file for reading; a symbolic link is refused.
pub fn open_directory(path: &Path) -> Result<File, DiskError> {
    call::open_for_reading(path)
}

/// Moves a name to another, which must be free. Both directories are made durable, once where they are the same.
pub fn move_new(from: &Path, to: &Path) -> Result<(), DiskError> {
    call::move_new(from, to)?;
    to.parent().map_or(Ok(()), call::sync_directory)?;
    if from.parent() == to.parent() {
        return Ok(());
    }
    from.parent().map_or(Ok(()), call::sync_directory)
}

/// Removes a name; an absent one is accepted. The removal is not durable: a crash may bring the name back.
pub fn remove_name(path: &Path) -> Result<(), DiskError> {
    match call::unlink_file(path) {
        Err(error) if error.is_absent() => Ok(()),
        other => other,
    }
}

/// Removes an empty directory, durably; an absent one is accepted, and one that holds anything is refused.
pub fn remove_empty(path: &Path) -> Result<(), DiskError> {
    match call::remove_directory(path) {
        Err(error) if error.is_absent() => {}
        other => other?,
    }
    path.parent().map_or(Ok(()), sync_directory)
}
