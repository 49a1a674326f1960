//! The rows that remember incidents over a restart: one row for each key.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Incident;

/// The row of an incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncidentRow {
    /// The time since which the problem exists, or existed.
    pub since: Timestamp,
    /// The number of times that the problem was reported.
    pub count: u64,
    /// The text that was reported last.
    pub text: String,
    /// When a channel last took a message about the incident; `None`: never.
    pub told: Option<Timestamp>,
    /// The time at which the incident ended; `None`: it lasts.
    pub over: Option<Timestamp>,
}

impl From<&Incident> for IncidentRow {
    fn from(incident: &Incident) -> Self {
        Self {
            since: incident.since,
            count: incident.count,
            text: incident.text.clone(),
            told: incident.taken,
            over: incident.over,
        }
    }
}

impl From<IncidentRow> for Incident {
    fn from(kept: IncidentRow) -> Self {
        Self {
            since: kept.since,
            count: kept.count,
            text: kept.text,
            told: kept.told,
            taken: kept.told,
            over: kept.over,
        }
    }
}
