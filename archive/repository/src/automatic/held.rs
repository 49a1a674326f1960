//! The reasons why something is not repaired yet, for people.

use archive_db::DbError;
use archive_decisions::repair::policy::{Automatic, Hold, RepairDecision};
use archive_decisions::repair::{NoRepairReason, OfficerQuestion};
use archive_ledger::anomalies::AnomalyRow;
use archive_model::{AnomalyKind, ReplicaId};

use super::Volumes;
use crate::preserver::Preserver;

impl Preserver {
    /// Returns why one anomaly is not repaired yet; empty if it is being repaired, or needs no repair.
    pub(crate) fn held_reason(
        &self,
        row: &AnomalyRow,
        volumes: &Volumes,
    ) -> Result<String, DbError> {
        if row.closed.is_some() || row.filed.accepted.is_some() {
            return Ok(String::new());
        }
        let why = match self.decide_repair(row, volumes, self.archive.calls.clock.now())? {
            RepairDecision::RepairNow => String::new(),
            RepairDecision::ConfirmAt(at) => format!("a second look at {at} must confirm it"),
            RepairDecision::Hold(hold) => hold.to_string(),
            RepairDecision::AskOfficer => ask(row),
        };
        Ok(match (&row.filed.note, why.is_empty()) {
            (None, _) => why,
            (Some(note), true) => format!("last attempt: {note}"),
            (Some(note), false) => format!("{why}; last attempt: {note}"),
        })
    }

    /// Returns why automatic repairs are stopped now, or `None` if they are not.
    pub(crate) fn held_at_all(&self) -> Option<String> {
        if self.policy.automatic == Automatic::Off {
            return Some("automatic repair is off (`repair.automatic`)".to_owned());
        }
        let held = self.list_brakes().into_iter();
        let held = held.map(|(replica, hold)| format!("replica {replica}: {hold}"));
        let held = held.collect::<Vec<_>>().join("; ");
        (!held.is_empty()).then_some(held)
    }
}

impl Preserver {
    /// Returns the replicas of which too many files need repair at once, so that automatic repairs are stopped.
    pub(crate) fn list_brakes(&self) -> Vec<(ReplicaId, Hold)> {
        let held = self.archive.specs.iter().filter_map(|spec| {
            let found = self.archive.anomalies.found_today(&spec.id);
            let brake = self.policy.brake_limit(self.files_of(&spec.id));
            (found > brake).then(|| (spec.id.clone(), Hold::Brake { found, brake }))
        });
        held.collect()
    }
}

/// Returns what people have to do.
fn ask(row: &AnomalyRow) -> String {
    match row.filed.kind {
        AnomalyKind::Missing | AnomalyKind::Corrupt(_) | AnomalyKind::Unreadable(_) => {
            format!("it waits for an officer: `holdfast repair {}`", row.file)
        }
        AnomalyKind::Lost(_) => {
            "no replica has these bytes intact; find another copy, or accept the loss".to_owned()
        }
        AnomalyKind::Unexpected => OfficerQuestion::Unexpected.to_string(),
        AnomalyKind::Conflicting(_) => OfficerQuestion::Conflicting.to_string(),
        AnomalyKind::Disputed(_) => OfficerQuestion::Disputed.to_string(),
        AnomalyKind::Unverified { .. } => NoRepairReason::Unverified.to_string(),
        AnomalyKind::Incomplete => NoRepairReason::Incomplete.to_string(),
        AnomalyKind::Duplicate(_) => format!(
            "it does no harm; `holdfast repair {}` moves the copies that are not recorded into the attic",
            row.file
        ),
        AnomalyKind::Transient => String::new(),
    }
}
