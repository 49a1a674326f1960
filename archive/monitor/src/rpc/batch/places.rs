//! How many jobs run over the replica at once, of each lane for itself.
//!
//! Whoever finds no place is told so at once and comes again: nobody waits here.

use std::sync::Arc;

use archive_model::JobLane;
use archive_rpc::Kind;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

/// The places of the jobs that run, of each lane for itself; clones are the same ones.
#[derive(Clone, Debug)]
pub(in crate::rpc) struct Places {
    research: Arc<Semaphore>,
    index: Arc<Semaphore>,
}

impl Places {
    /// So many for jobs of people.
    pub(in crate::rpc) fn new(most: usize) -> Self {
        Self {
            research: Arc::new(Semaphore::new(most)),
            index: Arc::new(Semaphore::new(JobLane::MOST_OF_INDEX)),
        }
    }

    /// Takes a place, until it is dropped.
    pub(super) fn take(&self, lane: JobLane) -> Result<OwnedSemaphorePermit, Status> {
        let (places, which) = match lane {
            JobLane::Research => (
                &self.research,
                "too many batch jobs run over this replica (`batch_monitor.jobs` of its monitor)",
            ),
            JobLane::Index => (
                &self.index,
                "too many batch jobs of the index run over this replica",
            ),
        };
        Arc::clone(places)
            .try_acquire_owned()
            .map_err(|_none_left| Kind::Busy.status(format!("{which}; ask again later")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a job of one lane takes a place of the other, or more of one run than have places.
    #[test]
    fn lanes_take_no_place_of_each_other() {
        let places = Places::new(3);
        let mut held = Vec::new();
        for (lane, most) in [
            (JobLane::Research, 3),
            (JobLane::Index, JobLane::MOST_OF_INDEX),
        ] {
            for _ in 0..most {
                held.push(places.take(lane).unwrap());
            }
            let refused = places.take(lane).unwrap_err();
            assert_eq!(Kind::of(&refused), Kind::Busy, "{lane:?}");
        }
        held.clear();
        assert!(
            JobLane::ALL
                .map(|lane| places.take(lane))
                .iter()
                .all(Result::is_ok)
        );
    }
}
