//! Turns, which bound what is done with one replica at once: a replica that comes back is not asked for everything in
//! one moment, and one that is silent keeps no other waiting.

use std::collections::HashMap;
use std::sync::Arc;

use archive_model::ReplicaId;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// A number of turns for each replica; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    most: usize,
    replicas: Arc<Mutex<HashMap<ReplicaId, Arc<Semaphore>>>>,
}

impl Slots {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            replicas: Arc::default(),
        }
    }

    /// Returns the turns of one replica.
    pub(super) fn for_replica(&self, replica: &ReplicaId) -> Arc<Semaphore> {
        let mut replicas = self.replicas.lock();
        let turns = replicas.entry(replica.clone());
        Arc::clone(turns.or_insert_with(|| Arc::new(Semaphore::new(self.most))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a slow replica takes the turns of another, or more copies than allowed go to one replica at once.
    #[test]
    fn each_replica_has_its_own_bounded_turns() {
        let slots = Slots::new(2);
        let [one, two] = ["one", "two"].map(|id| slots.for_replica(&ReplicaId::new(id).unwrap()));
        let first = Arc::clone(&one).try_acquire_owned().unwrap();
        let _second = Arc::clone(&one).try_acquire_owned().unwrap();
        let again = slots.for_replica(&ReplicaId::new("one").unwrap());
        assert!(Arc::clone(&again).try_acquire_owned().is_err());
        assert!(two.try_acquire_owned().is_ok());
        drop(first);
        assert!(again.try_acquire_owned().is_ok());
    }
}
