//! The system calls of this crate, one thin function each: each is named in errors, and is a point for `fault`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::error::DiskError;

type Result<T> = std::result::Result<T, DiskError>;

fn named<T>(
    operation: &'static str,
    path: &Path,
    call: impl FnOnce() -> io::Result<T>,
) -> Result<T> {
    fault_point(operation, path)
        .and_then(|()| call())
        .map_err(|error| DiskError::new(operation, path, error))
}

/// Explains a failed call on names. If the inode of one of them cannot be looked at, the call failed because of that:
/// one file is damaged, and nothing is known against the disk.
fn on_names<T>(names: &[&Path], called: Result<T>) -> Result<T> {
    called.map_err(|error| {
        let lost = |name: &&Path| look_up(name).err().filter(|why| !why.is_absent());
        names.iter().find_map(lost).unwrap_or(error)
    })
}

#[cfg(feature = "faults")]
fn fault_point(operation: &'static str, path: &Path) -> io::Result<()> {
    crate::fault::fault_point(operation, path).map(|_| ())
}

#[cfg(not(feature = "faults"))]
#[expect(
    clippy::unnecessary_wraps,
    reason = "fails only with the feature `faults`"
)]
fn fault_point(_operation: &'static str, _path: &Path) -> io::Result<()> {
    Ok(())
}

/// Creates a file; refuses if the name is taken.
pub(crate) fn create_file(path: &Path) -> Result<File> {
    create_with(path, 0o644)
}

/// Creates a file with the permissions `mode`; refuses if the name is taken.
pub(crate) fn create_with(path: &Path, mode: u32) -> Result<File> {
    named("create", path, || {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(mode)
            .custom_flags(flags(OFlags::NOFOLLOW))
            .open(path)
    })
}

/// Opens a file for appending, or creates it.
pub(crate) fn open_for_append(path: &Path) -> Result<File> {
    let called = named("open for writing", path, || {
        OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o644)
            .custom_flags(flags(OFlags::NOFOLLOW))
            .open(path)
    });
    on_names(&[path], called)
}

/// Opens an unfinished file to continue it.
pub(crate) fn open_for_change(path: &Path) -> Result<File> {
    let called = named("open for writing", path, || {
        OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags(OFlags::NOFOLLOW))
            .open(path)
    });
    on_names(&[path], called)
}

/// Opens a regular file for reading; never follows a symbolic link, never blocks on a device or pipe.
pub(crate) fn open_for_reading(path: &Path) -> Result<File> {
    named("open", path, || {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags(OFlags::NOFOLLOW | OFlags::NONBLOCK))
            .open(path)?;
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            ))
        }
    })
}

/// Returns the metadata of a name; a link is not followed. Not a point at which `fault` counts: there are too many
/// looks.
pub(crate) fn look_up(path: &Path) -> Result<std::fs::Metadata> {
    let failed = |error| DiskError::new("lstat", path, error);
    #[cfg(feature = "faults")]
    crate::fault::look_point(path).map_err(failed)?;
    path.symlink_metadata().map_err(failed)
}

/// Returns the length of an open file. Not a point at which `fault` counts, as [`look`] is not.
pub(crate) fn file_length(file: &File, path: &Path) -> Result<u64> {
    Ok(file_status(file, path)?.len())
}

/// Returns what the system says of an open file. Not a point at which `fault` counts, as [`look`] is not.
pub(crate) fn file_status(file: &File, path: &Path) -> Result<std::fs::Metadata> {
    let found = file.metadata();
    found.map_err(|error| DiskError::new("fstat", path, error))
}

/// Reads a small file from its beginning, at most `most` bytes of it.
pub(crate) fn read_up_to(file: File, path: &Path, most: u64) -> Result<Vec<u8>> {
    let failed = |error| DiskError::new("read", path, error);
    #[cfg(feature = "faults")]
    crate::fault::bad_point(path, 0..most).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

fn flags(flags: OFlags) -> i32 {
    i32::try_from(flags.bits()).expect("the flags of open(2) fit in an int")
}

/// Writes all of `bytes` at the file's position, however many calls that takes.
pub(crate) fn write_all(file: &mut File, path: &Path, bytes: &[u8]) -> Result<()> {
    write_with("write", path, bytes, |bytes| file.write_all(bytes))
}

/// Writes all of `bytes` at `offset`, however many calls that takes.
pub(crate) fn write_all_at(file: &File, path: &Path, offset: u64, bytes: &[u8]) -> Result<()> {
    write_with("pwrite", path, bytes, |bytes| {
        file.write_all_at(bytes, offset)
    })
}

fn write_with(
    operation: &'static str,
    path: &Path,
    bytes: &[u8],
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<()> {
    let failed = |error| DiskError::new(operation, path, error);
    #[cfg(feature = "faults")]
    {
        use crate::fault::CallVerdict;
        let half = &bytes[..bytes.len() / 2];
        match crate::fault::fault_point(operation, path).map_err(failed)? {
            CallVerdict::Go => {}
            CallVerdict::GoHalfThenDie => {
                write(half).map_err(failed)?;
                std::process::abort();
            }
            CallVerdict::GoHalfThenFail(errno) => {
                write(half).map_err(failed)?;
                return Err(failed(errno.into()));
            }
            CallVerdict::GoFlipped => {
                let mut flipped = bytes.to_vec();
                if let Some(byte) = flipped.get_mut(bytes.len() / 2) {
                    *byte ^= 1;
                }
                return write(&flipped).map_err(failed);
            }
        }
    }
    write(bytes).map_err(failed)
}

/// Reserves room for the file's first `size` bytes without changing its length. Returns `false` if the file system
/// cannot.
pub(crate) fn reserve_space(file: &File, path: &Path, size: u64) -> Result<bool> {
    if size == 0 {
        return Ok(true);
    }
    let result = named("fallocate", path, || {
        Ok(rustix::fs::fallocate(
            file,
            FallocateFlags::KEEP_SIZE,
            0,
            size,
        )?)
    });
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.source.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Cuts the file (and what was reserved past its end) to `size` bytes.
pub(crate) fn truncate_file(file: &File, path: &Path, size: u64) -> Result<()> {
    named("ftruncate", path, || file.set_len(size))
}

/// Makes the file's bytes and length durable.
pub(crate) fn sync_file(file: &File, path: &Path) -> Result<()> {
    named("fsync", path, || file.sync_all())
}

/// Makes the file's bytes durable, where its length has not changed.
pub(crate) fn sync_data(file: &File, path: &Path) -> Result<()> {
    named("fdatasync", path, || file.sync_data())
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> Result<()> {
    named("fsync directory", path, || {
        Ok(rustix::fs::fsync(open_directory(path)?)?)
    })
}

fn open_directory(path: &Path) -> io::Result<rustix::fd::OwnedFd> {
    Ok(rustix::fs::open(
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// Gives the file a second name; refuses if that is taken.
pub(crate) fn link_file(from: &Path, to: &Path) -> Result<()> {
    named("linkat", to, || {
        Ok(rustix::fs::linkat(CWD, from, CWD, to, AtFlags::empty())?)
    })
}

/// Moves a name; refuses if the new one is taken.
pub(crate) fn move_new(from: &Path, to: &Path) -> Result<()> {
    let called = named("renameat2", to, || {
        Ok(rustix::fs::renameat_with(
            CWD,
            from,
            CWD,
            to,
            RenameFlags::NOREPLACE,
        )?)
    });
    on_names(&[from, to], called)
}

/// Exchanges two names: each then names the other's file, and neither is ever absent.
pub(crate) fn exchange_files(one: &Path, other: &Path) -> Result<()> {
    let called = named("renameat2 exchange", other, || {
        Ok(rustix::fs::renameat_with(
            CWD,
            one,
            CWD,
            other,
            RenameFlags::EXCHANGE,
        )?)
    });
    on_names(&[one, other], called)
}

/// Moves a name over another one, which must name state or derived data, never an archived file.
pub(crate) fn move_over(from: &Path, to: &Path) -> Result<()> {
    let called = named("renameat", to, || {
        Ok(rustix::fs::renameat(CWD, from, CWD, to)?)
    });
    on_names(&[from, to], called)
}

/// Removes a name.
pub(crate) fn unlink_file(path: &Path) -> Result<()> {
    let called = named("unlinkat", path, || Ok(rustix::fs::unlink(path)?));
    on_names(&[path], called)
}

/// Makes the file read-only for everyone: an archived file is never written again.
pub(crate) fn seal_mode(file: &File, path: &Path) -> Result<()> {
    named("fchmod", path, || {
        Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(0o444))?)
    })
}

/// Makes the file writable again for its owner, after an upload was sealed and then cut.
pub(crate) fn unseal_mode(file: &File, path: &Path) -> Result<()> {
    named("fchmod", path, || {
        Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(0o644))?)
    })
}

/// Makes a directory.
pub(crate) fn make_directory(path: &Path) -> Result<()> {
    named("mkdirat", path, || {
        Ok(rustix::fs::mkdir(path, Mode::from_raw_mode(0o755))?)
    })
}

/// Removes an empty directory.
pub(crate) fn remove_directory(path: &Path) -> Result<()> {
    named("rmdir", path, || Ok(rustix::fs::rmdir(path)?))
}
