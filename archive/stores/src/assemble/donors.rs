//! Those who may give bytes: in which order they are asked, and what came of asking them.
//!
//! First those of whom nobody knows that they do not answer, among them those from whom least is being read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use archive_model::ReplicaId;

use super::Donor;

/// For how long a replica that kept a reader waiting is asked after others.
const SLOW_FOR: Duration = Duration::from_secs(30);

/// A donor, and how it has done so far.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is seen by itself and none follows from another"
)]
pub(super) struct Candidate {
    pub(super) donor: Donor,
    /// Whether its monitor was asked where the file is.
    pub(super) is_located: bool,
    /// The outcome of asking it for the bytes that are wanted now, and up to where they were.
    pub(super) refusal: Option<(Refusal, u64)>,
    /// It kept us waiting: it is not asked again.
    pub(super) has_stalled: bool,
    /// Another one was asked because it took long. It is asked again when nobody else is left, and is then waited for.
    pub(super) is_slow: bool,
    /// It showed damage.
    pub(super) is_damaged: bool,
}

/// The reason why a replica did not give bytes.
#[derive(Debug)]
pub(super) enum Refusal {
    /// They are damaged there, or there is no copy.
    Bad(String),
    /// Nobody knows how they are there: it did not answer.
    Silent(String),
    /// Nobody knows how they are there: what it sent proves nothing.
    Lies(String),
}

impl Candidate {
    pub(super) const fn new(donor: Donor) -> Self {
        Self {
            donor,
            is_located: false,
            refusal: None,
            has_stalled: false,
            is_slow: false,
            is_damaged: false,
        }
    }

    /// Whether it may be asked for the bytes that are wanted now.
    pub(super) const fn is_askable(&self) -> bool {
        self.refusal.is_none() && !self.has_stalled
    }
}

/// The reads under way from each replica, and which replicas kept a reader waiting lately; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct DonorLoad(Arc<Mutex<BTreeMap<ReplicaId, ReplicaLoad>>>);

#[derive(Debug, Default)]
struct ReplicaLoad {
    under_way: usize,
    slow_at: Option<Instant>,
}

/// One read from a replica; it counts until it is dropped.
#[derive(Debug)]
pub(super) struct CountedRead {
    load: DonorLoad,
    replica: ReplicaId,
}

impl DonorLoad {
    /// The donors in the order in which they are asked; those that are alike stay as they are.
    pub(super) fn order(
        &self,
        mut donors: Vec<Donor>,
        is_silent: impl Fn(&Donor) -> bool,
        now: Instant,
    ) -> Vec<Donor> {
        let replicas = self.lock();
        donors.sort_by_cached_key(|donor| {
            let load = replicas.get(&donor.replica);
            let is_slow = load
                .and_then(|load| load.slow_at)
                .is_some_and(|slow_at| now.saturating_duration_since(slow_at) < SLOW_FOR);
            let under_way = load.map_or(0, |load| load.under_way);
            (is_silent(donor), is_slow, under_way)
        });
        donors
    }

    /// Counts one more read.
    pub(super) fn begin(&self, replica: &ReplicaId) -> CountedRead {
        self.lock().entry(replica.clone()).or_default().under_way += 1;
        CountedRead {
            load: self.clone(),
            replica: replica.clone(),
        }
    }

    /// Remembers that the replica kept a reader waiting.
    pub(super) fn note_slow(&self, replica: &ReplicaId, now: Instant) {
        self.lock().entry(replica.clone()).or_default().slow_at = Some(now);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ReplicaId, ReplicaLoad>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CountedRead {
    fn drop(&mut self) {
        if let Some(load) = self.load.lock().get_mut(&self.replica) {
            load.under_way = load.under_way.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use archive_model::Groups;

    use super::*;

    fn id(text: &str) -> ReplicaId {
        text.parse().unwrap()
    }

    fn order(load: &DonorLoad, silent: &str, now: Instant) -> Vec<String> {
        let donor = |replica: &str| Donor {
            replica: id(replica),
            node: None,
            bad: Groups::none(),
        };
        let donors = ["one", "three", "two"].map(donor).to_vec();
        let ordered = load.order(donors, |donor| donor.replica.as_str() == silent, now);
        let names = ordered.iter().map(|donor| donor.replica.to_string());
        names.collect()
    }

    /// Fails if every reader asks the first replica, or reads that have ended still count.
    #[test]
    fn least_busy_replica_is_asked_first() {
        let (load, now) = (DonorLoad::default(), Instant::now());
        assert_eq!(order(&load, "", now), ["one", "three", "two"]);
        let first = load.begin(&id("one"));
        let _second = load.begin(&id("three"));
        assert_eq!(order(&load, "", now), ["two", "one", "three"]);
        drop(first);
        assert_eq!(order(&load, "", now), ["one", "two", "three"]);
    }

    /// Fails if a replica that does not answer is asked before one that is only busy.
    #[test]
    fn silent_and_slow_replicas_are_asked_last() {
        let (load, now) = (DonorLoad::default(), Instant::now());
        let _busy = load.begin(&id("two"));
        load.note_slow(&id("one"), now);
        assert_eq!(order(&load, "three", now), ["two", "one", "three"]);
        let later = now + SLOW_FOR;
        assert_eq!(order(&load, "three", later), ["one", "two", "three"]);
    }
}
