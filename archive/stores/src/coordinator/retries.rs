//! When the archive tries again what failed, for those who ask; cheap to clone.
//!
//! Not promised: a file that gave up its place in memory for others, which is tried again in its turn.

use std::collections::BTreeMap;
use std::sync::Arc;

use archive_model::{FileName, ReplicaId};
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};

/// The time of the next try for each replica.
pub type Times = BTreeMap<ReplicaId, Timestamp>;

/// The files that wait, while they are in memory.
#[derive(Clone, Debug, Default)]
pub struct Retries(Arc<Mutex<BTreeMap<FileName, Times>>>);

impl Retries {
    /// Sets the times for which a file waits now.
    pub(super) fn set_times(&self, name: &FileName, times: Times) {
        if times.is_empty() {
            return self.forget_times(name);
        }
        self.files().insert(name.clone(), times);
    }

    pub(super) fn forget_times(&self, name: &FileName) {
        self.files().remove(name);
    }

    /// Returns the time at which each replica of a file is tried again.
    pub fn retry_times(&self, name: &FileName) -> Times {
        self.files().get(name).cloned().unwrap_or_default()
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<FileName, Times>> {
        self.0.lock()
    }
}
