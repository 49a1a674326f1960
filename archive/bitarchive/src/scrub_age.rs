//! The facts that the scrub and the rest of the node share: the age of the oldest verification, and where to look
//! next.

use archive_model::VolumeId;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};

use crate::catalog::CatalogEntry;

/// The most places to look at next that are remembered; further damage is found by the ordinary round.
const MOST_SUSPECTS: usize = 64;

/// A place where damage was found: files that were stored there at about the same time are read next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Suspect {
    /// The volume.
    pub(crate) volume: VolumeId,
    /// The time at which the damaged file was stored.
    pub(crate) stored: Timestamp,
    /// The time at which the damage was found.
    pub(crate) found: Timestamp,
}

/// The age of the checks of a node and the places to read next, shared by all who serve a node.
#[derive(Debug, Default)]
pub(crate) struct ScrubAge {
    inner: Mutex<ScrubAgeState>,
}

#[derive(Debug, Default)]
struct ScrubAgeState {
    oldest: Option<Timestamp>,
    verify_by: Option<Timestamp>,
    suspects: Vec<Suspect>,
}

impl ScrubAge {
    fn lock(&self) -> MutexGuard<'_, ScrubAgeState> {
        self.inner.lock()
    }

    pub(crate) fn set_oldest(&self, oldest: Option<Timestamp>) {
        self.lock().oldest = oldest;
    }

    pub(crate) fn set_verify_by(&self, verify_by: Option<Timestamp>) {
        self.lock().verify_by = verify_by;
    }

    /// Takes the places to look at next.
    pub(crate) fn take_suspects(&self) -> Vec<Suspect> {
        std::mem::take(&mut self.lock().suspects)
    }

    pub(crate) fn has_suspects(&self) -> bool {
        !self.lock().suspects.is_empty()
    }

    /// Returns the time at which the copy that has waited longest was last verified, as far as the scrub has counted;
    /// `None` if some copy was not verified since the catalog was built, or there are no copies.
    pub(crate) fn oldest_verification(&self) -> Option<Timestamp> {
        self.lock().oldest
    }

    /// Returns the time by which the scrub has to read the most urgent of the copies that are due; `None` if no copy is
    /// due.
    pub(crate) fn verify_by(&self) -> Option<Timestamp> {
        self.lock().verify_by
    }

    /// Notes that damage was found in a copy: its neighbours are read next.
    pub(crate) fn suspect_entry(&self, entry: &CatalogEntry, now: Timestamp) {
        let mut inner = self.lock();
        if inner.suspects.len() < MOST_SUSPECTS {
            inner.suspects.push(Suspect {
                volume: entry.volume.clone(),
                stored: entry.row.stored,
                found: now,
            });
        }
    }
}
