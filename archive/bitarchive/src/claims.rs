//! Who works on the files of a node: a name is received or moved by one at a time, a file is verified, scrubbed or mended
//! by one at a time, and by nobody while its name is received or moved.
//!
//! No two receive under one id either: it is the name of their bytes in `incoming/`. People and the repository go before
//! the scrub: it releases a file that somebody else wants, and reads it later.
//!
//! Locks are in memory only: after a crash, unfinished work is found on the disk at the next start.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use archive_model::{FileName, UploadId};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::NodeError;
use crate::work::Work;

/// The time that the scrub may take to release a file: it looks after each read of at most 1 MiB.
const PATIENCE: Duration = Duration::from_secs(20);

/// The locks on the files of a node.
#[derive(Debug, Default)]
pub(crate) struct FileLocks {
    pub(crate) receiving: Claims,
    works: BusyFiles,
}

impl FileLocks {
    /// Claims a name, to receive or to move it: nobody else does so, or works on the file, until the claim ends.
    pub(crate) fn claim_name(&self, name: &FileName, id: &UploadId) -> Result<Claim, NodeError> {
        let claim = Claim::take_name(&self.receiving, name, id)?;
        self.works.refuse_busy(name)?;
        Ok(claim)
    }

    /// Holds a file to work on it: nobody else works on it or receives it until the hold ends.
    pub(crate) fn hold_file(&self, name: &FileName, work: Work) -> Result<Hold, NodeError> {
        let hold = self.works.take(name, work)?;
        match self.find_upload(name) {
            None => Ok(hold),
            Some(upload) => Err(NodeError::Busy {
                name: name.clone(),
                upload,
            }),
        }
    }

    /// Returns the upload that receives a file of this name now, or the verb that moves it.
    pub(crate) fn find_upload(&self, name: &FileName) -> Option<UploadId> {
        self.receiving.lock().get(name).cloned()
    }

    /// Returns the uploads that receive files now.
    pub(crate) fn list_uploads(&self) -> Vec<UploadId> {
        self.receiving.lock().values().cloned().collect()
    }

    /// Returns whether somebody waits for a file that is worked on.
    pub(crate) fn is_wanted(&self, name: &FileName) -> bool {
        self.works.is_wanted(name)
    }
}

/// The names that are being received or moved, each with the upload that does it.
pub(crate) type Claims = Arc<Mutex<HashMap<FileName, UploadId>>>;

/// The right to receive or move one name, until this is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    names: Claims,
    pub(crate) name: FileName,
    /// The upload, or the verb in the place of one.
    pub(crate) upload: UploadId,
}

impl Claim {
    pub(crate) fn take_name(
        names: &Claims,
        name: &FileName,
        upload: &UploadId,
    ) -> Result<Self, NodeError> {
        let mut taken = names.lock();
        if let Some(other) = taken.get(name) {
            return Err(NodeError::Busy {
                name: name.clone(),
                upload: other.clone(),
            });
        }
        if let Some((other, _)) = taken.iter().find(|(_, held)| *held == upload) {
            return Err(NodeError::Busy {
                name: other.clone(),
                upload: upload.clone(),
            });
        }
        taken.insert(name.clone(), upload.clone());
        Ok(Self {
            names: Arc::clone(names),
            name: name.clone(),
            upload: upload.clone(),
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.names.lock().remove(&self.name);
    }
}

/// Makes the id under which a verb holds the file `name`, in the place of an upload. Each file has another id, because
/// the verb also writes under it in `incoming/`.
pub(crate) fn claim_for_verb(what: &str, name: &FileName) -> Result<UploadId, NodeError> {
    let hash = blake3::hash(name.as_str().as_bytes()).to_hex();
    UploadId::new(&format!("{what}-{hash:.32}")).map_err(|error| NodeError::Bug(error.to_string()))
}

/// The files that are worked on.
#[derive(Clone, Debug, Default)]
struct BusyFiles {
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

    /// Returns whether somebody waits for the file.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }
}

impl BusyFiles {
    /// Takes a file. Waits for a scrub to release it; any other work on it is refused as busy.
    fn take(&self, name: &FileName, work: Work) -> Result<Hold, NodeError> {
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
    fn refuse_busy(&self, name: &FileName) -> Result<(), NodeError> {
        self.wait_until_free(name).map(drop)
    }

    /// Returns whether somebody waits for the file.
    fn is_wanted(&self, name: &FileName) -> bool {
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

impl Drop for Hold {
    fn drop(&mut self) {
        self.shared.lock().remove(&self.name);
        self.shared.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if two uploads receive one file, or write under one id.
    #[test]
    fn no_name_or_id_is_held_twice() {
        let claims = Claims::default();
        let name = |text| FileName::new(text).unwrap();
        let id = |text| UploadId::new(text).unwrap();
        let held = Claim::take_name(&claims, &name("a"), &id("u1")).unwrap();
        let refused = Claim::take_name(&claims, &name("b"), &id("u1")).unwrap_err();
        assert!(
            matches!(&refused, NodeError::Busy { name, .. } if name.as_str() == "a"),
            "{refused}"
        );
        assert!(Claim::take_name(&claims, &name("a"), &id("u2")).is_err());
        drop(Claim::take_name(&claims, &name("b"), &id("u2")).unwrap());
        drop(held);
        Claim::take_name(&claims, &name("b"), &id("u1")).unwrap();
    }

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
