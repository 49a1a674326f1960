//! Values for the tests of this crate and of the verbs.

#![expect(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "helpers of tests"
)]

use archive_model::{AnomalyClass, AnomalyState, FileName, FiledAnomaly, Finder, Groups};

/// Returns an anomaly of one file of 160,000 bytes in replica `two`, without groups, place or end.
#[must_use]
pub fn filed_anomaly(kind: AnomalyClass, state: AnomalyState) -> FiledAnomaly {
    FiledAnomaly {
        id: "17".into(),
        file: FileName::new("a.warc.gz").unwrap(),
        replica: "two".parse().unwrap(),
        kind,
        what: String::new(),
        groups: Groups::none(),
        lost: vec![],
        size: 160_000,
        node: None,
        volume: None,
        since: "2026-01-02T03:04:05.6Z".parse().unwrap(),
        state,
        found_by: Finder::Scrub,
        ended: None,
        ended_why: None,
        held: None,
    }
}
