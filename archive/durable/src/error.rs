//! The error of a system call: the call, its path, and the meaning for the disk.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// A failed system call, with its path.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {}: {source}", .path.display())]
pub struct DiskError {
    /// The system call, as in `strace`.
    pub operation: &'static str,
    /// The path that it was called on.
    pub path: PathBuf,
    /// The error of the kernel.
    pub source: io::Error,
}

/// The meaning of a failed call for the disk it was made on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskSeverity {
    /// The disk is full: it accepts no more for now, and is otherwise well.
    NoSpace,
    /// The disk fails, or a layer beneath it: nothing more may be written to it until a human has looked.
    Disk,
    /// The request cannot be done (the name is taken, the file is missing or cannot be read, a limit was reached).
    Request,
}

/// The calls that look at one file. If they fail, that file is damaged, and not the disk: every disk has bad sectors.
const READING: [&str; 10] = [
    "open", "read", "fstat", "lstat", "statx", "stat", "statvfs", "fadvise", "realpath", "dup",
];

impl DiskError {
    /// Makes the error of `operation` on `path`.
    pub fn new(operation: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self {
            operation,
            path: path.to_owned(),
            source: source.into(),
        }
    }

    /// Returns whether the name was taken already.
    pub fn is_taken(&self) -> bool {
        self.source.kind() == io::ErrorKind::AlreadyExists
    }

    /// Returns whether the name was absent.
    pub fn is_absent(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }

    /// Returns whether the file system is mounted for reading only.
    pub fn is_read_only(&self) -> bool {
        self.source.kind() == io::ErrorKind::ReadOnlyFilesystem
    }

    /// Returns whether the process or the machine had run out of open files or memory, which says nothing about the
    /// disk or the file, and may be over in a moment.
    pub fn is_exhausted(&self) -> bool {
        let errno = self.source.raw_os_error().map(Errno::from_raw_os_error);
        matches!(
            errno,
            Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN)
        ) || self.source.kind() == io::ErrorKind::OutOfMemory
    }

    /// Returns the meaning of the error. A failed sync always means the disk: the kernel may have dropped the dirty
    /// pages already, so that the next sync would lie (A. Rebello et al., "Can Applications Recover from fsync
    /// Failures?", USENIX ATC 2020). A failed read never does; a directory that cannot be listed does, because its
    /// content is unknown.
    pub fn severity(&self) -> DiskSeverity {
        let errno = self.source.raw_os_error().map(Errno::from_raw_os_error);
        match errno {
            Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => DiskSeverity::NoSpace,
            _ if self.operation.starts_with("fsync") => DiskSeverity::Disk,
            _ if READING.contains(&self.operation) => DiskSeverity::Request,
            Some(
                Errno::IO | Errno::ROFS | Errno::NODEV | Errno::NXIO | Errno::UCLEAN | Errno::STALE,
            ) => DiskSeverity::Disk,
            _ => DiskSeverity::Request,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a full disk, a taken name or an unreadable file takes the disk offline, or a failed write or sync does
    /// not.
    #[test]
    fn failed_sync_blames_disk_but_full_disk_not() {
        let severity =
            |operation, errno: Errno| DiskError::new(operation, Path::new("/x"), errno).severity();
        assert_eq!(severity("write", Errno::NOSPC), DiskSeverity::NoSpace);
        assert_eq!(severity("fsync", Errno::NOSPC), DiskSeverity::NoSpace);
        assert_eq!(severity("fsync", Errno::INVAL), DiskSeverity::Disk);
        assert_eq!(severity("write", Errno::IO), DiskSeverity::Disk);
        assert_eq!(severity("linkat", Errno::ROFS), DiskSeverity::Disk);
        assert_eq!(severity("linkat", Errno::EXIST), DiskSeverity::Request);
        assert_eq!(
            severity("open for writing", Errno::ROFS),
            DiskSeverity::Disk
        );
        assert_eq!(severity("getdents", Errno::IO), DiskSeverity::Disk);
        for operation in READING {
            for errno in [Errno::IO, Errno::UCLEAN, Errno::NXIO, Errno::STALE] {
                assert_eq!(
                    severity(operation, errno),
                    DiskSeverity::Request,
                    "{operation}"
                );
            }
        }
    }

    /// Fails if too many open files or a lack of memory pass for a fault of the disk, or a fault of the disk for such a
    /// lack.
    #[test]
    fn lack_of_the_process_is_no_disk_fault() {
        let is_exhausted =
            |errno: Errno| DiskError::new("open", Path::new("/x"), errno).is_exhausted();
        assert!(is_exhausted(Errno::MFILE) && is_exhausted(Errno::NOMEM));
        assert!(!is_exhausted(Errno::IO) && !is_exhausted(Errno::ACCESS));
    }
}
