//! Whose job is next: a pure queue, fair by person.
//!
//! Within one replica, persons who wait take turns; the jobs of one person go in the order in which they came. What was
//! running when the repository stopped goes first. Owns nothing on disk: it is filled from the table at the start.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use archive_model::{JobId, ReplicaId};

/// Jobs that wait, and how many run.
#[derive(Debug)]
pub(crate) struct Queue {
    /// How many may run at once over one replica.
    most: usize,
    lanes: BTreeMap<ReplicaId, Lane>,
}

#[derive(Debug, Default)]
struct Lane {
    running: usize,
    /// Taken up again: before everybody else.
    first: VecDeque<JobId>,
    /// Persons who wait, the next one first.
    turns: VecDeque<String>,
    waiting: BTreeMap<String, VecDeque<JobId>>,
}

impl Queue {
    /// Nothing waits yet. At least one job of a replica may run.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            lanes: BTreeMap::new(),
        }
    }

    /// A job waits.
    pub(crate) fn push(&mut self, replica: &ReplicaId, who: &str, job: JobId) {
        let lane = self.lanes.entry(replica.clone()).or_default();
        if !lane.waiting.contains_key(who) {
            lane.turns.push_back(who.to_owned());
        }
        lane.waiting
            .entry(who.to_owned())
            .or_default()
            .push_back(job);
    }

    /// A job that ran already waits to go on.
    pub(crate) fn push_first(&mut self, replica: &ReplicaId, job: JobId) {
        let lane = self.lanes.entry(replica.clone()).or_default();
        lane.first.push_back(job);
    }

    /// Takes the next job that may run now; it counts as running until [`Queue::ended`].
    pub(crate) fn next(&mut self) -> Option<(ReplicaId, JobId)> {
        let most = self.most;
        let mut lanes = self.lanes.iter_mut();
        lanes.find_map(|(replica, lane)| {
            let job = (lane.running < most).then(|| lane.take())??;
            lane.running += 1;
            Some((replica.clone(), job))
        })
    }

    /// A job that [`Queue::next`] gave runs no more.
    pub(crate) fn ended(&mut self, replica: &ReplicaId) {
        if let Some(lane) = self.lanes.get_mut(replica) {
            lane.running = lane.running.saturating_sub(1);
        }
    }

    /// Takes a job out that waits; whether it did.
    pub(crate) fn remove(&mut self, replica: &ReplicaId, job: &JobId) -> bool {
        self.lanes
            .get_mut(replica)
            .is_some_and(|lane| lane.remove(job))
    }
}

impl Lane {
    fn take(&mut self) -> Option<JobId> {
        if let Some(job) = self.first.pop_front() {
            return Some(job);
        }
        let who = self.turns.pop_front()?;
        let own = self.waiting.get_mut(&who)?;
        let job = own.pop_front();
        if own.is_empty() {
            self.waiting.remove(&who);
        } else {
            self.turns.push_back(who);
        }
        job
    }

    fn remove(&mut self, job: &JobId) -> bool {
        if let Some(at) = self.first.iter().position(|first| first == job) {
            return self.first.remove(at).is_some();
        }
        let found = self
            .waiting
            .iter_mut()
            .find_map(|(who, own)| Some((who.clone(), own.iter().position(|one| one == job)?)));
        let Some((who, at)) = found else {
            return false;
        };
        if let Some(own) = self.waiting.get_mut(&who) {
            own.remove(at);
            if own.is_empty() {
                self.waiting.remove(&who);
                self.turns.retain(|waiting| *waiting != who);
            }
        }
        true
    }
}
