//! The figures of the anomalies that are known without reading the tables: how many there are, of what, and in how many
//! files.

use std::collections::BTreeMap;

use archive_model::{AnomalyClass, ReplicaId};
use jiff::{SignedDuration, Timestamp};

use super::super::{Filed, needs_repair};

/// The period over which the brake counts what was repaired.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// The figures that are known without reading the tables.
#[derive(Debug, Default)]
pub(super) struct Running {
    pub(super) next_id: u64,
    /// Open, and not accepted, by kind.
    pub(super) kinds: BTreeMap<AnomalyClass, u64>,
    /// Files of a replica that need repair, and that people do not live with.
    pub(super) waiting: BTreeMap<ReplicaId, u64>,
    /// Files of a replica that needed repair until then, by the minute.
    pub(super) ended: BTreeMap<(i64, ReplicaId), u64>,
}

impl Running {
    /// Returns the number of files of a replica that wait for repair, or did until within the last day.
    pub(super) fn found_today(&mut self, replica: &ReplicaId, now: Timestamp) -> u64 {
        let since = minute(now.checked_sub(DAY).unwrap_or(Timestamp::MIN));
        self.ended.retain(|(minute, _), _| *minute >= since);
        let waiting = self.waiting.get(replica).copied().unwrap_or_default();
        let ended = self.ended.iter().filter(|((_, of), _)| of == replica);
        ended.map(|(_, count)| count).sum::<u64>() + waiting
    }

    pub(super) fn add(&mut self, filed: &Filed) {
        if filed.accepted.is_none() {
            *self.kinds.entry(filed.kind.class()).or_default() += 1;
        }
    }

    pub(super) fn subtract(&mut self, filed: &Filed) {
        if filed.accepted.is_none()
            && let Some(count) = self.kinds.get_mut(&filed.kind.class())
        {
            *count = count.saturating_sub(1);
        }
    }

    /// Counts a change of what is filed of one copy.
    pub(super) fn count(&mut self, replica: &ReplicaId, before: &[Filed], after: &[Filed]) {
        let waiting = self.waiting.entry(replica.clone()).or_default();
        match (before.iter().any(waits), after.iter().any(waits)) {
            (false, true) => *waiting += 1,
            (true, false) => *waiting = waiting.saturating_sub(1),
            (false, false) | (true, true) => {}
        }
    }

    /// One was closed. Of several that were filed of a copy the first counts.
    pub(super) fn ended(
        &mut self,
        replica: &ReplicaId,
        filed: &Filed,
        at: Timestamp,
        now: Timestamp,
    ) {
        let is_recent = now.duration_since(at) <= DAY;
        if filed.is_first && is_recent {
            *self.ended.entry((minute(at), replica.clone())).or_default() += 1;
        }
    }
}

/// Whether it keeps its file waiting for a repair.
pub(super) const fn waits(filed: &Filed) -> bool {
    needs_repair(&filed.kind) && filed.accepted.is_none()
}

fn minute(time: Timestamp) -> i64 {
    time.as_second().div_euclid(60)
}
