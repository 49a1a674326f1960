//! The fate of the stores that depositors begin.

use std::collections::BTreeMap;

use archive_daemon::metrics::MetricError;
use archive_daemon::{Counter, Metrics};
use archive_model::{ArchiveError, StoreFailure};

/// The reasons why a store was refused or given up, as its metric is labelled.
const REASONS: [&str; 10] = [
    "busy",
    "cut",
    "digest",
    "exists",
    "invalid",
    "other",
    "replicas",
    "size",
    "space",
    "timed-out",
];

/// The instruments for stores; cheap to clone.
#[derive(Clone, Debug)]
pub struct Stores {
    /// Stores that were asked for.
    pub begun: Counter,
    /// Stores that were acknowledged.
    pub acknowledged: Counter,
    /// Bytes that came from depositors.
    pub bytes: Counter,
    /// Bytes that did not have to be sent again after a cut.
    pub resumed: Counter,
    refused: BTreeMap<&'static str, Counter>,
}

impl Stores {
    /// Registers the instruments.
    ///
    /// # Errors
    /// [`MetricError`] where a name is taken.
    pub fn new(metrics: &Metrics) -> Result<Self, MetricError> {
        let counter = |name, help| metrics.counter(name, help, &[]);
        let refused = REASONS.iter().map(|reason| {
            let help = "Stores that were refused, or not acknowledged, and why";
            let labels = [("reason", *reason)];
            let counter = metrics.counter("repository_stores_refused_total", help, &labels)?;
            Ok((*reason, counter))
        });
        Ok(Self {
            begun: counter(
                "repository_stores_begun_total",
                "Stores that were asked for",
            )?,
            acknowledged: counter(
                "repository_stores_acknowledged_total",
                "Stores that were acknowledged: in every required replica",
            )?,
            bytes: counter(
                "repository_received_bytes_total",
                "Bytes that came from depositors",
            )?,
            resumed: counter(
                "repository_resumed_bytes_total",
                "Bytes that depositors did not have to send again after a cut",
            )?,
            refused: refused.collect::<Result<_, MetricError>>()?,
        })
    }

    /// Counts a store that was not acknowledged.
    pub fn count_refusal(&self, error: &ArchiveError) {
        if let Some(counter) = self.refused.get(reason(error)) {
            counter.inc();
        }
    }

    /// Counts a request that was not understood.
    pub fn refuse_invalid(&self) {
        self.count_refusal(&ArchiveError::Invalid(String::new()));
    }
}

fn reason(error: &ArchiveError) -> &'static str {
    match error {
        ArchiveError::Invalid(_) | ArchiveError::Name { .. } => "invalid",
        ArchiveError::Exists { .. } => "exists",
        ArchiveError::Busy(_) => "busy",
        ArchiveError::Mismatch { what: "size", .. } => "size",
        ArchiveError::Mismatch { .. } => "digest",
        ArchiveError::NotEnoughReplicas { failures, .. } => {
            let is_full = |(_, failure): &(_, StoreFailure)| *failure == StoreFailure::NoSpace;
            if failures.iter().any(is_full) {
                "space"
            } else {
                "replicas"
            }
        }
        ArchiveError::NoSpace(_) => "space",
        ArchiveError::Unavailable(_) => "cut",
        ArchiveError::TimedOut(_) => "timed-out",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a refused store counts under a wrong reason, or a reason has no series before its first store, so that
    /// its first increase is lost.
    #[test]
    fn every_reason_has_its_series_from_the_start() {
        let metrics = Metrics::new();
        let stores = Stores::new(&metrics).unwrap();
        let name = archive_model::FileName::new("a").unwrap();
        let mismatch = |what| ArchiveError::Mismatch {
            name: name.clone(),
            what,
            announced: String::new(),
            received: String::new(),
        };
        let not_enough = |failure| ArchiveError::NotEnoughReplicas {
            name: name.clone(),
            failures: vec![("one".parse().unwrap(), failure)],
            again: None,
        };
        for (error, expected) in [
            (mismatch("size"), "size"),
            (mismatch("md5"), "digest"),
            (not_enough(StoreFailure::NoSpace), "space"),
            (not_enough(StoreFailure::Conflict), "replicas"),
            (ArchiveError::Busy(name.clone()), "busy"),
            (ArchiveError::Storage(String::new()), "other"),
        ] {
            stores.count_refusal(&error);
            let line = format!("repository_stores_refused_total{{reason=\"{expected}\"}} 1\n");
            assert!(metrics.render_page().unwrap().contains(&line), "{error:?}");
        }
        for reason in REASONS {
            assert!(
                metrics
                    .render_page()
                    .unwrap()
                    .contains(&format!("\"{reason}\""))
            );
        }
    }
}
