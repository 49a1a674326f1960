//! The figures of the anomalies that are known without reading the tables: their number by kind, and the number of
//! their files.

use std::collections::BTreeMap;

use archive_model::{AnomalyClass, ReplicaId};
use jiff::{SignedDuration, Timestamp};

use super::super::{AnomalyRecord, needs_repair};

/// The period over which the brake counts repaired files.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// The figures that are known without reading the tables.
#[derive(Debug, Default)]
pub(super) struct AnomalyFigures {
    pub(super) next_id: u64,
    /// The number of anomalies by kind that are open and not accepted.
    pub(super) kinds: BTreeMap<AnomalyClass, u64>,
    /// The number of files of each replica that need repair, and that people do not live with.
    pub(super) waiting: BTreeMap<ReplicaId, u64>,
    /// The number of files of each replica that needed repair until then, by the minute.
    pub(super) ended: BTreeMap<(i64, ReplicaId), u64>,
}

impl AnomalyFigures {
    /// Returns the number of files of a replica that wait for repair, or did so within the last day.
    pub(super) fn found_today(&mut self, replica: &ReplicaId, now: Timestamp) -> u64 {
        let since = minute(now.checked_sub(DAY).unwrap_or(Timestamp::MIN));
        self.ended.retain(|(minute, _), _| *minute >= since);
        let waiting = self.waiting.get(replica).copied().unwrap_or_default();
        let ended = self.ended.iter().filter(|((_, of), _)| of == replica);
        ended.map(|(_, count)| count).sum::<u64>() + waiting
    }

    pub(super) fn add(&mut self, filed: &AnomalyRecord) {
        if filed.accepted.is_none() {
            *self.kinds.entry(filed.kind.class()).or_default() += 1;
        }
    }

    pub(super) fn subtract(&mut self, filed: &AnomalyRecord) {
        if filed.accepted.is_none()
            && let Some(count) = self.kinds.get_mut(&filed.kind.class())
        {
            *count = count.saturating_sub(1);
        }
    }

    /// Counts a change of the anomalies that are filed of a file in one replica.
    pub(super) fn count_open(
        &mut self,
        replica: &ReplicaId,
        before: &[AnomalyRecord],
        after: &[AnomalyRecord],
    ) {
        let waiting = self.waiting.entry(replica.clone()).or_default();
        match (
            before.iter().any(waits_for_person),
            after.iter().any(waits_for_person),
        ) {
            (false, true) => *waiting += 1,
            (true, false) => *waiting = waiting.saturating_sub(1),
            (false, false) | (true, true) => {}
        }
    }

    /// Counts an anomaly that was closed. Of several anomalies of one copy only the first counts.
    pub(super) fn count_ended(
        &mut self,
        replica: &ReplicaId,
        filed: &AnomalyRecord,
        at: Timestamp,
        now: Timestamp,
    ) {
        let is_recent = now.duration_since(at) <= DAY;
        if filed.is_first && is_recent {
            *self.ended.entry((minute(at), replica.clone())).or_default() += 1;
        }
    }
}

/// Whether the anomaly keeps its file waiting for a repair.
pub(super) const fn waits_for_person(filed: &AnomalyRecord) -> bool {
    needs_repair(&filed.kind) && filed.accepted.is_none()
}

fn minute(time: Timestamp) -> i64 {
    time.as_second().div_euclid(60)
}
