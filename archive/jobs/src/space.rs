//! The limit on what all batch jobs together keep on disk: the one that an operator has set, and never the room that
//! the admin data need beside them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archive_durable::{DiskError, directory};
use archive_model::JobId;
use parking_lot::{Mutex, MutexGuard};

use super::folder::JobFolder;

/// The bytes that are left free: a full disk stops the whole repository.
const RESERVE: u64 = 256 << 20;

/// The number of bytes after which the disk is asked again.
const ASK: u64 = 4 << 20;

/// The limit, and the bytes that are used of it; clones share it.
///
/// Removed files count until the next measurement: the limit is never passed, and sometimes reached a little early.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    batch: PathBuf,
    most: Option<u64>,
    used: Arc<Mutex<UsedSpace>>,
    reserve: u64,
    /// The bytes that were taken since the disk was asked.
    unasked: Arc<AtomicU64>,
}

/// The used space, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct UsedSpace {
    /// The files of the jobs.
    files: u64,
    /// The data being sorted: in files without a name, which cannot be measured.
    scratch: u64,
}

/// The space in which one job sorts on disk; dropping it returns the space.
#[derive(Debug)]
pub(crate) struct Scratch {
    space: Space,
    held: Mutex<u64>,
}

/// The reason why there is no room.
#[derive(Debug, thiserror::Error)]
pub enum SpaceError {
    /// The limit of the settings is reached.
    #[error(
        "no room for batch jobs: all together may keep {0} bytes, which are used; an operator can raise batch.space, or \
         lower batch.keep"
    )]
    Bound(u64),
    /// The disk is nearly full.
    #[error(
        "no room for batch jobs: the disk of the repository has {0} bytes left, and {RESERVE} of them stay free"
    )]
    Disk(u64),
    /// The disk cannot be asked.
    #[error(transparent)]
    Unknown(#[from] DiskError),
}

impl Space {
    /// Creates the limit, and measures the files of the jobs if there is one.
    pub(crate) fn new(batch: &Path, most: Option<u64>) -> Result<Self, DiskError> {
        let space = Self {
            batch: batch.to_owned(),
            most,
            used: Arc::default(),
            reserve: RESERVE,
            unasked: Arc::new(AtomicU64::new(ASK)),
        };
        space.measure_space()?;
        Ok(space)
    }

    fn used(&self) -> MutexGuard<'_, UsedSpace> {
        self.used.lock()
    }

    /// Measures the files of the jobs again.
    pub(crate) fn measure_space(&self) -> Result<(), DiskError> {
        if self.most.is_none() {
            return Ok(());
        }
        let mut files = 0_u64;
        for id in directory::list_names(&self.batch)?
            .iter()
            .filter_map(job_of_folder)
        {
            files = files.saturating_add(JobFolder::new(&self.batch, &id).count_bytes()?);
        }
        self.used().files = files;
        Ok(())
    }

    /// Takes room for bytes of a file, or fails if there is no such room.
    pub(crate) fn take_bytes(&self, bytes: u64) -> Result<(), SpaceError> {
        self.take_for(bytes, |used| &mut used.files)
    }

    /// Creates an empty space for sorting.
    pub(crate) fn new_scratch(&self) -> Scratch {
        Scratch {
            space: self.clone(),
            held: Mutex::default(),
        }
    }

    fn take_for(
        &self,
        bytes: u64,
        whose: impl Fn(&mut UsedSpace) -> &mut u64,
    ) -> Result<(), SpaceError> {
        let unasked = self.unasked.fetch_add(bytes, Ordering::Relaxed);
        if unasked.saturating_add(bytes) >= ASK {
            let free = archive_durable::Space::measure_space(&self.batch)?.free;
            if free.saturating_sub(bytes) < self.reserve {
                // The next call asks again.
                self.unasked.store(ASK, Ordering::Relaxed);
                return Err(SpaceError::Disk(free));
            }
            self.unasked.store(0, Ordering::Relaxed);
        }
        let mut used = self.used();
        let all = used.files.saturating_add(used.scratch);
        if let Some(most) = self.most
            && all.saturating_add(bytes) > most
        {
            return Err(SpaceError::Bound(most));
        }
        let own = whose(&mut used);
        *own = own.saturating_add(bytes);
        Ok(())
    }
}

impl Scratch {
    /// Changes its size to this number of bytes, or fails if there is no room.
    pub(crate) fn hold_bytes(&self, bytes: u64) -> Result<(), SpaceError> {
        let mut held = self.held.lock();
        if bytes > *held {
            let more = bytes.saturating_sub(*held);
            self.space.take_for(more, |used| &mut used.scratch)?;
        } else {
            let mut used = self.space.used();
            used.scratch = used.scratch.saturating_sub(held.saturating_sub(bytes));
        }
        *held = bytes;
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A smaller size always fits.
        let _less = self.hold_bytes(0);
    }
}

/// Returns the job to which a directory belongs.
pub(super) fn job_of_folder(name: &OsString) -> Option<JobId> {
    name.to_str().and_then(|name| JobId::new(name).ok())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make files")]
mod tests {
    use super::*;

    /// Fails if jobs together write more than the limit, or removed files count after a measurement.
    #[test]
    fn room_is_the_rest_of_the_limit() {
        let directory = tempfile::tempdir().unwrap();
        let id = JobId::new("j").unwrap();
        let folder = JobFolder::new(directory.path(), &id);
        folder.make_folder().unwrap();
        std::fs::write(directory.path().join("j/output"), [0; 60]).unwrap();
        let space = Space::new(directory.path(), Some(100)).unwrap();
        space.take_bytes(40).unwrap();
        assert!(matches!(space.take_bytes(1), Err(SpaceError::Bound(100))));
        folder.remove_folder().unwrap();
        assert!(space.take_bytes(1).is_err());
        space.measure_space().unwrap();
        space.take_bytes(100).unwrap();
        let endless = Space::new(directory.path(), None).unwrap();
        endless.take_bytes(1 << 20).unwrap();
    }

    /// Fails if data being sorted do not count, are lost in a measurement, or count after the sort.
    #[test]
    fn scratch_counts_until_it_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let space = Space::new(directory.path(), Some(100)).unwrap();
        let one = space.new_scratch();
        let other = space.new_scratch();
        one.hold_bytes(60).unwrap();
        other.hold_bytes(30).unwrap();
        assert!(matches!(one.hold_bytes(71), Err(SpaceError::Bound(100))));
        // The bytes of `one` are not seen by a measurement, and still count.
        space.measure_space().unwrap();
        assert!(space.take_bytes(11).is_err());
        one.hold_bytes(20).unwrap();
        assert!(other.hold_bytes(81).is_err());
        other.hold_bytes(80).unwrap();
        drop(other);
        space.take_bytes(80).unwrap();
        assert!(space.take_bytes(1).is_err());
        drop(one);
        space.take_bytes(20).unwrap();
        let endless = Space::new(directory.path(), None).unwrap();
        endless.new_scratch().hold_bytes(1 << 20).unwrap();
    }

    /// Fails if jobs take the room that the admin data need, or a full disk is not asked again.
    #[test]
    fn disk_keeps_its_reserve() {
        let directory = tempfile::tempdir().unwrap();
        let mut space = Space::new(directory.path(), None).unwrap();
        space.reserve = u64::MAX;
        for _ in 0..2 {
            assert!(matches!(space.take_bytes(1), Err(SpaceError::Disk(_))));
        }
        space.reserve = 0;
        space.take_bytes(1).unwrap();
        // The disk is not asked for a while.
        space.reserve = u64::MAX;
        space.take_bytes(ASK - 1).unwrap();
        assert!(matches!(space.take_bytes(1), Err(SpaceError::Disk(_))));
    }
}
