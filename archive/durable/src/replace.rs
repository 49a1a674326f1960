//! Small state files that are replaced as a whole: after a crash they are old or new, never absent.
//!
//! Only this module, and `exchange` for an outboard, rename a file over a name, never one of an archived file.
//!
//! # Errors
//!
//! Every function fails with a [`DiskError`] if a system call does; a read also if the file is too long.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use archive_model::check_secret;

use crate::call;
use crate::error::DiskError;

/// The longest state file that is read, in bytes: more is damage, not state.
const MAX_STATE: u64 = 64 * 1024 * 1024;

/// Puts `bytes` under `path`, durably. Two simultaneous writers of one path are a mistake of the caller: the second
/// fails.
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    replace_with(path, bytes, 0o644)
}

/// Puts `bytes` under `path` as [`replace_file()`] does, readable by its owner only, for a private key. [`read_secret`]
/// reads it.
pub fn replace_secret(path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    replace_with(path, bytes, 0o600)
}

/// Puts bytes under `path` that are first written in another directory of the same file system. If the disk was
/// unmounted meanwhile, that directory is gone with it, and nothing is written below the mount point.
pub(crate) fn replace_by_way_of(
    directory: &Path,
    path: &Path,
    bytes: &[u8],
) -> Result<(), DiskError> {
    let new = unfinished_path(&directory.join(path.file_name().unwrap_or_default()));
    replace_from(&new, path, bytes, 0o644)
}

fn replace_with(path: &Path, bytes: &[u8], mode: u32) -> Result<(), DiskError> {
    replace_from(&unfinished_path(path), path, bytes, mode)
}

fn replace_from(new: &Path, path: &Path, bytes: &[u8], mode: u32) -> Result<(), DiskError> {
    let file = write_unfinished(new, bytes, mode)?;
    call::sync_file(&file, new)?;
    call::move_over(new, path)?;
    path.parent().map_or(Ok(()), call::sync_directory)
}

/// Writes a file under its unfinished name, in place of one that a crash left. It is not synced.
fn write_unfinished(new: &Path, bytes: &[u8], mode: u32) -> Result<File, DiskError> {
    match call::unlink_file(new) {
        Err(error) if !error.is_absent() => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = call::create_with(new, mode)?;
    call::write_all(&mut file, new, bytes)?;
    Ok(file)
}

/// A small file that is replaced together with others of its directory, by [`replace_all`].
#[derive(Clone, Copy, Debug)]
pub struct SmallFile<'a> {
    /// The name of the file in the directory.
    pub name: &'a str,
    /// The content of the file.
    pub bytes: &'a [u8],
    /// Whether only the owner of the file may read it.
    pub is_secret: bool,
}

impl<'a> SmallFile<'a> {
    /// Describes a file that everybody on the machine may read.
    pub const fn new(name: &'a str, bytes: &'a [u8]) -> Self {
        Self {
            name,
            bytes,
            is_secret: false,
        }
    }
}

/// Replaces several files of a directory, durably. After a crash each of them is old or new, some may be old and others
/// new.
///
/// The directory is synced once for all of them, where [`replace_file()`] syncs it for each file.
pub fn replace_all(directory: &Path, files: &[SmallFile<'_>]) -> Result<(), DiskError> {
    let mut written = Vec::with_capacity(files.len());
    for file in files {
        let path = directory.join(file.name);
        let new = unfinished_path(&path);
        let mode = if file.is_secret { 0o600 } else { 0o644 };
        written.push((write_unfinished(&new, file.bytes, mode)?, new, path));
    }
    for (file, new, _) in &written {
        call::sync_file(file, new)?;
    }
    for (_, new, path) in &written {
        call::move_over(new, path)?;
    }
    call::sync_directory(directory)
}

/// Reads a state file. Returns `None` if the file is absent.
pub fn read_state(path: &Path) -> Result<Option<Vec<u8>>, DiskError> {
    read_small(path, MAX_STATE)
}

/// Reads a state file with a secret. Returns `None` if the file is absent. A file that others on this machine can use
/// is refused, as [`check_secret`] says.
pub fn read_secret(path: &Path) -> Result<Option<Vec<u8>>, DiskError> {
    read_checked(path, MAX_STATE, |file| {
        let mode = call::file_status(file, path)?.permissions().mode();
        check_secret(path, mode)
            .map_err(|exposed| DiskError::new("open", path, io::Error::other(exposed)))
    })
}

/// Reads a file of at most `most` bytes. Returns `None` if the file is absent. A longer file is refused.
pub fn read_small(path: &Path, most: u64) -> Result<Option<Vec<u8>>, DiskError> {
    read_checked(path, most, |_file| Ok(()))
}

/// Reads a small file if `check` lets it pass.
fn read_checked(
    path: &Path,
    most: u64,
    check: impl FnOnce(&File) -> Result<(), DiskError>,
) -> Result<Option<Vec<u8>>, DiskError> {
    let file = match call::open_for_reading(path) {
        Err(error) if error.is_absent() => return Ok(None),
        other => other?,
    };
    check(&file)?;
    let bytes = call::read_up_to(file, path, most.saturating_add(1))?;
    if bytes.len() as u64 > most {
        let error = io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than the {most} bytes that are read"),
        );
        return Err(DiskError::new("read", path, error));
    }
    Ok(Some(bytes))
}

/// Returns the path where [`replace_file()`] writes before it replaces, and which a crash may leave. Its name begins with a
/// dot, as that of no archive file can.
pub fn unfinished_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    path.with_file_name(name)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make and damage files")]
mod tests {
    use super::*;

    /// Fails if the torn file that a crash left is read, stays behind, or hinders the next replacement.
    #[test]
    fn last_write_wins_despite_a_torn_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        assert_eq!(read_state(&path).unwrap(), None);
        replace_file(&path, b"one").unwrap();
        std::fs::write(unfinished_path(&path), b"torn").unwrap();
        replace_file(&path, b"two").unwrap();
        assert_eq!(read_state(&path).unwrap().unwrap(), b"two");
        assert!(!unfinished_path(&path).try_exists().unwrap());
    }

    /// Fails if a secret is read that others on the machine can read, or refused because a group can.
    #[test]
    fn secret_that_others_can_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        assert_eq!(read_secret(&path).unwrap(), None);
        replace_secret(&path, b"secret").unwrap();
        for (mode, is_read) in [(0o600, true), (0o640, true), (0o644, false)] {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let read = read_secret(&path).map_err(|error| error.to_string());
            assert_eq!(read.is_ok(), is_read, "{mode:o}: {read:?}");
            assert!(is_read || read.unwrap_err().contains("chmod 600"));
        }
    }

    /// Fails if a file of several keeps its old content, is readable by others though it is secret, or leaves its
    /// unfinished name.
    #[test]
    fn several_files_are_replaced_together() {
        let directory = tempfile::tempdir().unwrap();
        let open = directory.path().join("open");
        let secret = directory.path().join("key");
        std::fs::write(&open, b"old").unwrap();
        std::fs::write(unfinished_path(&secret), b"torn").unwrap();
        let mut key = SmallFile::new("key", b"secret");
        key.is_secret = true;
        replace_all(directory.path(), &[SmallFile::new("open", b"new"), key]).unwrap();
        assert_eq!(std::fs::read(&open).unwrap(), b"new");
        assert_eq!(std::fs::read(&secret).unwrap(), b"secret");
        let mode = std::fs::metadata(&secret).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    /// Fails if a state file is read through a symbolic link, or from what is not a file.
    #[test]
    fn state_is_never_read_through_a_link() {
        let directory = tempfile::tempdir().unwrap();
        assert!(read_state(directory.path()).is_err());
        std::os::unix::fs::symlink("/etc/hostname", directory.path().join("link")).unwrap();
        assert!(read_state(&directory.path().join("link")).is_err());
    }
}
