//! Why something is not repaired yet, for people.

use archive_db::DbError;
use archive_decisions::repair::policy::{Automatic, Decision, Hold};
use archive_decisions::repair::{Idle, Question};
use archive_ledger::anomalies::AnomalyRow;
use archive_model::{AnomalyKind, ReplicaId};

use super::Volumes;
use crate::preserver::Preserver;

impl Preserver {
    /// Why one anomaly is not repaired yet; empty: it is being repaired, or nothing is to be done.
    pub(crate) fn held(&self, row: &AnomalyRow, volumes: &Volumes) -> Result<String, DbError> {
        if row.closed.is_some() || row.filed.accepted.is_some() {
            return Ok(String::new());
        }
        let why = match self.decide(row, volumes, self.calls.clock.now())? {
            Decision::RepairNow => String::new(),
            Decision::ConfirmAt(at) => format!("it is looked at once more at {at}, to confirm it"),
            Decision::Hold(hold) => hold.to_string(),
            Decision::AskOfficer => ask(row),
        };
        Ok(match (&row.filed.note, why.is_empty()) {
            (None, _) => why,
            (Some(note), true) => format!("last attempt: {note}"),
            (Some(note), false) => format!("{why}; last attempt: {note}"),
        })
    }

    /// Why nothing is repaired automatically now; none: it is.
    pub(crate) fn held_at_all(&self) -> Option<String> {
        if self.policy.automatic == Automatic::Off {
            return Some("automatic repair is off (`repair.automatic`)".to_owned());
        }
        let held = self.brakes().into_iter();
        let held = held.map(|(replica, hold)| format!("replica {replica}: {hold}"));
        let held = held.collect::<Vec<_>>().join("; ");
        (!held.is_empty()).then_some(held)
    }
}

impl Preserver {
    /// The replicas of which too many files need repair at once, so that nothing is repaired by itself.
    pub(crate) fn brakes(&self) -> Vec<(ReplicaId, Hold)> {
        let held = self.specs.iter().filter_map(|spec| {
            let found = self.anomalies.found_today(&spec.id);
            let brake = self.policy.brake(self.files_of(&spec.id));
            (found > brake).then(|| (spec.id.clone(), Hold::Brake { found, brake }))
        });
        held.collect()
    }
}

/// What people are to do.
fn ask(row: &AnomalyRow) -> String {
    match row.filed.kind {
        AnomalyKind::Missing | AnomalyKind::Corrupt(_) | AnomalyKind::Unreadable(_) => {
            format!("it waits for an officer: `holdfast repair {}`", row.file)
        }
        AnomalyKind::Lost(_) => {
            "it is good in no replica; find another copy, or accept it".to_owned()
        }
        AnomalyKind::Unexpected => Question::Unexpected.to_string(),
        AnomalyKind::Conflicting(_) => Question::Conflicting.to_string(),
        AnomalyKind::Disputed(_) => Question::Disputed.to_string(),
        AnomalyKind::Unverified { .. } => Idle::Unverified.to_string(),
        AnomalyKind::Incomplete => Idle::Incomplete.to_string(),
        AnomalyKind::Duplicate(_) => format!(
            "it harms nobody: `holdfast repair {}` puts the copies aside that are not recorded",
            row.file
        ),
        AnomalyKind::Transient => String::new(),
    }
}
