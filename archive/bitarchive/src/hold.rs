//! The files that are worked on: a file is verified, scrubbed or mended by one at a time, and by nobody while it is
//! received.
//!
//! People and the repository go before the scrub: it releases a file that somebody else wants, and reads it later.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use archive_model::FileName;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::NodeError;
use crate::work::Work;

/// The time that the scrub may take to release a file: it looks after each read of at most 1 MiB.
const PATIENCE: Duration = Duration::from_secs(20);

/// The files that are worked on.
#[derive(Clone, Debug, Default)]
pub(crate) struct BusyFiles {
    shared: Arc<BusyTable>,
}

#[derive(Debug, Default)]
struct BusyTable {
    held: Mutex<HashMap<FileName, BusyFile>>,
    freed: Condvar,
}

#[derive(Clone, Debug)]
struct BusyFile {
    work: Work,
    wanted: Arc<AtomicBool>,
}

/// The right to work on a file, until this is dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    shared: Arc<BusyTable>,
    name: FileName,
    wanted: Arc<AtomicBool>,
}

impl Hold {
    /// The file that is held.
    pub(crate) const fn name(&self) -> &FileName {
        &self.name
    }
}

impl BusyFiles {
    /// Takes a file. Waits for a scrub to release it; any other work on it is refused as busy.
    pub(crate) fn take(&self, name: &FileName, work: Work) -> Result<Hold, NodeError> {
        let mut held = self.wait_until_free(name)?;
        let wanted = Arc::new(AtomicBool::new(false));
        let entry = BusyFile {
            work,
            wanted: Arc::clone(&wanted),
        };
        held.insert(name.clone(), entry);
        Ok(Hold {
            shared: Arc::clone(&self.shared),
            name: name.clone(),
            wanted,
        })
    }

    /// Refuses if somebody works on the file now.
    pub(crate) fn refuse_busy(&self, name: &FileName) -> Result<(), NodeError> {
        self.wait_until_free(name).map(drop)
    }

    /// Returns whether somebody waits for the file.
    pub(crate) fn is_wanted(&self, name: &FileName) -> bool {
        let held = self.shared.lock();
        held.get(name)
            .is_some_and(|by| by.wanted.load(Ordering::Relaxed))
    }

    fn wait_until_free(
        &self,
        name: &FileName,
    ) -> Result<MutexGuard<'_, HashMap<FileName, BusyFile>>, NodeError> {
        let mut held = self.shared.lock();
        let is_scrubbed = |held: &mut HashMap<FileName, BusyFile>| match held.get(name) {
            Some(by) if by.work == Work::Scrub => {
                by.wanted.store(true, Ordering::Relaxed);
                true
            }
            _ => false,
        };
        self.shared
            .freed
            .wait_while_for(&mut held, is_scrubbed, PATIENCE);
        match held.get(name) {
            None => Ok(held),
            Some(by) => Err(NodeError::AtWork {
                name: name.clone(),
                work: by.work,
            }),
        }
    }
}

impl BusyTable {
    fn lock(&self) -> MutexGuard<'_, HashMap<FileName, BusyFile>> {
        self.held.lock()
    }
}

impl Hold {
    /// Returns whether somebody waits for the file.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.shared.lock().remove(&self.name);
        self.shared.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if two work on one file, or the scrub keeps others waiting.
    #[test]
    fn file_has_one_worker_and_scrub_yields() {
        let works = BusyFiles::default();
        let name = FileName::new("a").unwrap();
        for work in [Work::Verify, Work::Mend] {
            let hold = works.take(&name, work).unwrap();
            for second in [Work::Verify, Work::Scrub, Work::Mend] {
                let error = works.take(&name, second).unwrap_err();
                assert!(matches!(error, NodeError::AtWork { work: by, .. } if by == work));
            }
            works.take(&FileName::new("b").unwrap(), work).unwrap();
            drop(hold);
        }
        let scrub = works.take(&name, Work::Scrub).unwrap();
        let other = works.clone();
        let wanted = name.clone();
        let thread = std::thread::spawn(move || other.take(&wanted, Work::Mend).map(drop));
        while !scrub.is_wanted() {
            std::thread::yield_now();
        }
        drop(scrub);
        thread.join().unwrap().unwrap();
        works.refuse_busy(&name).unwrap();
    }
}
