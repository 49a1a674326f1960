//! The donors of a reading: the order in which they are asked, and the outcome of asking them.
//!
//! Donors that are not known to be silent come first; among them those that kept no reader waiting lately, and then
//! those with the fewest reads under way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_model::ReplicaId;
use parking_lot::{Mutex, MutexGuard};

use super::Donor;

/// The time for which a replica that kept a reader waiting is asked after others.
const SLOW_FOR: Duration = Duration::from_secs(30);

/// A donor, and how it has done so far.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is seen by itself and none follows from another"
)]
pub(super) struct Candidate {
    pub(super) donor: Donor,
    /// Whether the monitor of the replica has said on which node the file is.
    pub(super) is_located: bool,
    /// The reason why the replica did not give the bytes that are wanted now, and the offset up to which it was asked
    /// for them; `None` if it may be asked.
    pub(super) refusal: Option<(Refusal, u64)>,
    /// Whether the replica did not answer in time: it is not asked again.
    pub(super) has_stalled: bool,
    /// Whether another replica was asked because this one took long: this one is asked again when no other is left, and
    /// is then waited for.
    pub(super) is_slow: bool,
    /// Whether the replica reported that its copy is damaged.
    pub(super) is_damaged: bool,
}

/// The reason why a replica did not give bytes.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The bytes are damaged in the replica, or it has no copy.
    Bad(String),
    /// The replica gave no answer about the bytes: they may be good there.
    Silent(String),
    /// The replica sent something that proves nothing: the bytes may be good there.
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

    /// Whether the replica may be asked for the bytes that are wanted now.
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

/// A read from a replica, counted in its load until this is dropped.
#[derive(Debug)]
pub(super) struct CountedRead {
    load: DonorLoad,
    replica: ReplicaId,
}

impl DonorLoad {
    /// Sorts the donors into the order in which they are asked; donors that are alike keep their order.
    pub(super) fn order_donors(
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

    /// Counts a read from the replica until the returned value is dropped.
    pub(super) fn begin_read(&self, replica: &ReplicaId) -> CountedRead {
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
        self.0.lock()
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
        let ordered = load.order_donors(donors, |donor| donor.replica.as_str() == silent, now);
        let names = ordered.iter().map(|donor| donor.replica.to_string());
        names.collect()
    }

    /// Fails if every reader asks the first replica, or reads that have ended still count.
    #[test]
    fn least_busy_replica_is_asked_first() {
        let load = DonorLoad::default();
        let now = Instant::now();
        assert_eq!(order(&load, "", now), ["one", "three", "two"]);
        let first = load.begin_read(&id("one"));
        let _second = load.begin_read(&id("three"));
        assert_eq!(order(&load, "", now), ["two", "one", "three"]);
        drop(first);
        assert_eq!(order(&load, "", now), ["one", "two", "three"]);
    }

    /// Fails if a replica that does not answer is asked before one that is only busy.
    #[test]
    fn silent_and_slow_replicas_are_asked_last() {
        let load = DonorLoad::default();
        let now = Instant::now();
        let _busy = load.begin_read(&id("two"));
        load.note_slow(&id("one"), now);
        assert_eq!(order(&load, "three", now), ["two", "one", "three"]);
        let later = now + SLOW_FOR;
        assert_eq!(order(&load, "three", later), ["one", "two", "three"]);
    }
}
