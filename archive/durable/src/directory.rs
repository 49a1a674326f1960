//! Directories: made durable, listed without following links, names moved within them.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;

use crate::call;
use crate::error::DiskError;

/// Makes a directory and makes it durable in its parent. One that is there already is fine.
pub fn make(path: &Path) -> Result<(), DiskError> {
    make_unsynced(path)?;
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .map_or(Ok(()), sync)
}

/// Makes a directory that was not there, durably; refuses if the name is taken.
pub fn make_new(path: &Path) -> Result<(), DiskError> {
    call::make_directory(path)?;
    path.parent().map_or(Ok(()), sync)
}

/// Makes a directory; the caller makes it durable with [`sync`] on its parent. One that is there already is fine.
pub fn make_unsynced(path: &Path) -> Result<(), DiskError> {
    match call::make_directory(path) {
        Err(error) if error.is_taken() => Ok(()),
        other => other,
    }
}

/// Makes the names in a directory durable.
pub fn sync(path: &Path) -> Result<(), DiskError> {
    call::sync_directory(path)
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name; may be no UTF-8.
    pub name: OsString,
    /// What bears the name.
    pub kind: EntryKind,
}

/// What bears a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file of this many bytes, last changed at this many seconds since 1970, with this many names.
    File {
        /// Its length in bytes.
        size: u64,
        /// Last change, in seconds since 1970.
        changed: i64,
        /// How many hard links it has.
        links: u64,
    },
    /// A directory.
    Directory,
    /// A symbolic link, device, pipe or socket: never opened.
    Other,
}

/// Every name in a directory, in no order. An entry that cannot be looked at is an error, never left out.
pub fn list(path: &Path) -> Result<Vec<Entry>, DiskError> {
    let listed = look(path)?.into_iter();
    listed
        .map(|(name, kind)| kind.map(|kind| Entry { name, kind }))
        .collect()
}

/// A name, and what bears it, or why that cannot be said.
pub type LookedUpName = (OsString, Result<EntryKind, DiskError>);

/// The same, with what each name bears, or why that cannot be said: one bad inode hides none of the others.
pub fn look(path: &Path) -> Result<Vec<LookedUpName>, DiskError> {
    let mut found = Vec::new();
    for name in names(path)? {
        if let Some(kind) = kind(&path.join(&name)).transpose() {
            found.push((name, kind));
        }
    }
    Ok(found)
}

/// Every name in a directory, in no order, without a look at what bears it.
pub fn names(path: &Path) -> Result<Vec<OsString>, DiskError> {
    let failed = |error| DiskError::new("getdents", path, error);
    let listed = std::fs::read_dir(path).map_err(failed)?;
    listed
        .map(|entry| entry.map(|entry| entry.file_name()).map_err(failed))
        .collect()
}

/// What bears a name; `None`: nothing does. A link is not followed.
pub fn kind(path: &Path) -> Result<Option<EntryKind>, DiskError> {
    use std::os::unix::fs::MetadataExt;
    let found = match call::look(path) {
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
pub fn open(path: &Path) -> Result<File, DiskError> {
    call::open(path)
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

/// Takes a name away; one that is gone already is fine. Not made durable: a crash may bring it back.
pub fn remove_name(path: &Path) -> Result<(), DiskError> {
    match call::unlink(path) {
        Err(error) if error.is_absent() => Ok(()),
        other => other,
    }
}

/// Takes an empty directory away, durably; one that is gone already is fine, one that holds anything is refused.
pub fn remove_empty(path: &Path) -> Result<(), DiskError> {
    match call::remove_directory(path) {
        Err(error) if error.is_absent() => {}
        other => other?,
    }
    path.parent().map_or(Ok(()), sync)
}
