//! How much all batch jobs together may keep on disk.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archive_durable::{DiskError, directory};
use archive_model::JobId;

use super::folder::Folder;

/// The bound, and what is used of it; clones are the same one.
///
/// What is removed counts until it is measured again: the bound is never passed, and sometimes reached a little early.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    batch: PathBuf,
    most: Option<u64>,
    used: Arc<AtomicU64>,
}

/// There is no room.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "all batch jobs together may keep {0} bytes, and that much is there; an operator can raise batch.space, or lower \
     batch.keep"
)]
pub(crate) struct Full(u64);

impl Space {
    /// Measures what is there, where there is a bound.
    pub(crate) fn new(batch: &Path, most: Option<u64>) -> Result<Self, DiskError> {
        let space = Self {
            batch: batch.to_owned(),
            most,
            used: Arc::default(),
        };
        space.measure()?;
        Ok(space)
    }

    /// Measures again.
    pub(crate) fn measure(&self) -> Result<(), DiskError> {
        if self.most.is_none() {
            return Ok(());
        }
        let mut used = 0_u64;
        for id in directory::names(&self.batch)?.iter().filter_map(job) {
            used = used.saturating_add(Folder::of(&self.batch, &id).bytes()?);
        }
        self.used.store(used, Ordering::Relaxed);
        Ok(())
    }

    /// Takes room, or says that there is none.
    pub(crate) fn take(&self, bytes: u64) -> Result<(), Full> {
        let Some(most) = self.most else {
            return Ok(());
        };
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > most {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(Full(most));
        }
        Ok(())
    }
}

/// The job that a directory is of.
pub(super) fn job(name: &OsString) -> Option<JobId> {
    name.to_str().and_then(|name| JobId::new(name).ok())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make files")]
mod tests {
    use super::*;

    #[test]
    fn room_is_what_is_left_of_the_bound() {
        let directory = tempfile::tempdir().unwrap();
        let id = JobId::new("j").unwrap();
        let folder = Folder::of(directory.path(), &id);
        folder.make().unwrap();
        std::fs::write(directory.path().join("j/output"), [0; 60]).unwrap();
        let space = Space::new(directory.path(), Some(100)).unwrap();
        assert_eq!(space.take(40), Ok(()));
        assert_eq!(space.take(1), Err(Full(100)));
        folder.remove().unwrap();
        assert_eq!(space.take(1), Err(Full(100)));
        space.measure().unwrap();
        assert_eq!(space.take(100), Ok(()));
        let endless = Space::new(directory.path(), None).unwrap();
        assert_eq!(endless.take(u64::MAX), Ok(()));
    }
}
