//! How much all batch jobs together may keep on disk: as an operator has set it, and never the room that the admin data
//! need beside them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archive_durable::{DiskError, directory};
use archive_model::JobId;

use super::folder::Folder;

/// So much is left free, in bytes: a disk that is full stops the whole repository.
const RESERVE: u64 = 256 << 20;

/// After so many bytes the disk is asked again.
const ASK: u64 = 4 << 20;

/// The bound, and what is used of it; clones are the same one.
///
/// What is removed of the files counts until it is measured again: the bound is never passed, and sometimes reached a little early.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    batch: PathBuf,
    most: Option<u64>,
    used: Arc<Mutex<Used>>,
    reserve: u64,
    /// Bytes since the disk was asked.
    unasked: Arc<AtomicU64>,
}

/// What is used, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    /// By the files of the jobs.
    files: u64,
    /// By what is being sorted: nameless, so that nobody can measure it.
    scratch: u64,
}

/// What one job sorts on disk; dropped, it is given back.
#[derive(Debug)]
pub(crate) struct Scratch {
    space: Space,
    held: Mutex<u64>,
}

/// There is no room.
#[derive(Debug, thiserror::Error)]
pub enum Full {
    /// By the settings.
    #[error(
        "all batch jobs together may keep {0} bytes, and that much is there; an operator can raise batch.space, or \
         lower batch.keep"
    )]
    Bound(u64),
    /// On the disk.
    #[error(
        "the disk of the repository is nearly full: {0} bytes are left, and batch jobs leave {RESERVE} free"
    )]
    Disk(u64),
    /// Nobody knows.
    #[error(transparent)]
    Unknown(#[from] DiskError),
}

impl Space {
    /// Measures what is there, where there is a bound.
    pub(crate) fn new(batch: &Path, most: Option<u64>) -> Result<Self, DiskError> {
        let space = Self {
            batch: batch.to_owned(),
            most,
            used: Arc::default(),
            reserve: RESERVE,
            unasked: Arc::new(AtomicU64::new(ASK)),
        };
        space.measure()?;
        Ok(space)
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Measures again.
    pub(crate) fn measure(&self) -> Result<(), DiskError> {
        if self.most.is_none() {
            return Ok(());
        }
        let mut files = 0_u64;
        for id in directory::names(&self.batch)?.iter().filter_map(job) {
            files = files.saturating_add(Folder::of(&self.batch, &id).bytes()?);
        }
        self.used().files = files;
        Ok(())
    }

    /// Takes room for a file, or says that there is none.
    pub(crate) fn take(&self, bytes: u64) -> Result<(), Full> {
        self.take_for(bytes, |used| &mut used.files)
    }

    /// Room for sorting: none yet.
    pub(crate) fn scratch(&self) -> Scratch {
        Scratch {
            space: self.clone(),
            held: Mutex::default(),
        }
    }

    fn take_for(&self, bytes: u64, whose: impl Fn(&mut Used) -> &mut u64) -> Result<(), Full> {
        let unasked = self.unasked.fetch_add(bytes, Ordering::Relaxed);
        if unasked.saturating_add(bytes) >= ASK {
            let free = archive_durable::Space::measure(&self.batch)?.free;
            if free.saturating_sub(bytes) < self.reserve {
                // Asked again by the next one.
                self.unasked.store(ASK, Ordering::Relaxed);
                return Err(Full::Disk(free));
            }
            self.unasked.store(0, Ordering::Relaxed);
        }
        let mut used = self.used();
        let all = used.files.saturating_add(used.scratch);
        match self.most {
            Some(most) if all.saturating_add(bytes) > most => return Err(Full::Bound(most)),
            Some(_) | None => {}
        }
        let own = whose(&mut used);
        *own = own.saturating_add(bytes);
        Ok(())
    }
}

impl Scratch {
    /// Makes it so many bytes in all, or says that there is no room.
    pub(crate) fn hold(&self, bytes: u64) -> Result<(), Full> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
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
        // Less always finds room.
        let _less = self.hold(0);
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
        space.take(40).unwrap();
        assert!(matches!(space.take(1), Err(Full::Bound(100))));
        folder.remove().unwrap();
        assert!(space.take(1).is_err());
        space.measure().unwrap();
        space.take(100).unwrap();
        let endless = Space::new(directory.path(), None).unwrap();
        endless.take(1 << 20).unwrap();
    }

    #[test]
    fn what_is_sorted_counts_until_it_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let space = Space::new(directory.path(), Some(100)).unwrap();
        let (one, other) = (space.scratch(), space.scratch());
        one.hold(60).unwrap();
        other.hold(30).unwrap();
        assert!(matches!(one.hold(71), Err(Full::Bound(100))));
        // It cannot be measured, and is not forgotten for that.
        space.measure().unwrap();
        assert!(space.take(11).is_err());
        one.hold(20).unwrap();
        assert!(other.hold(81).is_err());
        other.hold(80).unwrap();
        drop(other);
        space.take(80).unwrap();
        assert!(space.take(1).is_err());
        drop(one);
        space.take(20).unwrap();
        let endless = Space::new(directory.path(), None).unwrap();
        endless.scratch().hold(1 << 20).unwrap();
    }

    #[test]
    fn a_disk_is_never_filled_to_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let mut space = Space::new(directory.path(), None).unwrap();
        space.reserve = u64::MAX;
        for _ in 0..2 {
            assert!(matches!(space.take(1), Err(Full::Disk(_))));
        }
        space.reserve = 0;
        space.take(1).unwrap();
        // For a while it is not asked.
        space.reserve = u64::MAX;
        space.take(ASK - 1).unwrap();
        assert!(matches!(space.take(1), Err(Full::Disk(_))));
    }
}
