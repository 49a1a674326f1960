//! The lock on the directory of a job: one process works on it at a time.
//!
//! The lock is on the directory itself, and ends with the process that has it, however that ends.

use std::fs::{File, TryLockError};
use std::path::PathBuf;

use archive_durable::DiskError;

use crate::directory::JobDirectory;

/// The reason why a job cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// A second process works on the job.
    #[error(
        "another process works on the job in {}; wait for its end, or end it by Ctrl-C or a file `terminate` in its directory `action`",
        .0.display()
    )]
    Busy(PathBuf),
    /// The disk fails.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// A lock that is held.
#[derive(Debug)]
pub struct JobLock {
    _directory: File,
}

impl JobLock {
    /// Locks the directory of a job.
    ///
    /// # Errors
    ///
    /// [`LockError::Busy`] if somebody else has the lock.
    pub fn acquire(job: &JobDirectory) -> Result<Self, LockError> {
        let path = job.root();
        let file = File::open(path).map_err(|error| DiskError::new("open", path, error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _directory: file }),
            Err(TryLockError::WouldBlock) => Err(LockError::Busy(path.to_owned())),
            Err(TryLockError::Error(error)) => Err(DiskError::new("flock", path, error).into()),
        }
    }
}
