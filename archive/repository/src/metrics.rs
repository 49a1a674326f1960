//! The metrics of the repository: the safety of the files, open anomalies, and bytes moved by repairs.

use std::collections::BTreeMap;

use archive_daemon::metrics::MetricError;
use archive_daemon::{Counter, Gauge, Metrics};
use archive_model::{AnomalyClass, ReplicaId};

use archive_ledger::admin::AdminCounts;
use archive_ledger::standing::{DrainSource, StandingSnapshot};

/// The instruments of the repository; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Instruments {
    metrics: Metrics,
    below_required: Gauge,
    files: Gauge,
    anomalies: Vec<(AnomalyClass, Gauge)>,
    /// The number of groups that were replaced by good ones.
    pub(crate) repaired_groups: Counter,
}

impl Instruments {
    pub(crate) fn new(metrics: &Metrics) -> Result<Self, MetricError> {
        let anomalies = AnomalyClass::ALL.iter().map(|kind| {
            let help = "Anomalies that are open and not accepted";
            let gauge = metrics.gauge("repository_anomalies", help, &[("kind", kind.as_str())])?;
            Ok((*kind, gauge))
        });
        Ok(Self {
            below_required: metrics.gauge(
                "repository_files_below_required_replicas",
                "Files that are not in every required replica",
                &[],
            )?,
            files: metrics.gauge("repository_files", "Files in the archive", &[])?,
            anomalies: anomalies.collect::<Result<_, MetricError>>()?,
            repaired_groups: metrics.counter(
                "repository_repaired_groups_total",
                "Groups of 16 KiB that were replaced by good ones",
                &[],
            )?,
            metrics: metrics.clone(),
        })
    }

    /// Shows the counts of the admin data.
    pub(crate) fn show_counts(&self, counts: &AdminCounts, standing: &StandingSnapshot) {
        let below = standing.below_required(counts);
        set(&self.below_required, below);
        set(&self.files, counts.files);
    }

    /// Shows the number of open anomalies.
    pub(crate) fn show_anomalies(&self, kinds: &BTreeMap<AnomalyClass, u64>) {
        for (kind, gauge) in &self.anomalies {
            set(gauge, kinds.get(kind).copied().unwrap_or_default());
        }
    }

    /// Shows how long ago the oldest verification of a replica was, if it is known.
    pub(crate) fn show_oldest(&self, replica: &ReplicaId, seconds: Option<i64>) {
        let shown = self.metrics.show_gone(
            "repository_oldest_verification_age_seconds",
            "How long ago the copy that has waited longest was verified",
            &[("replica", replica.as_str())],
            seconds,
        );
        if let Err(error) = shown {
            tracing::warn!(%error, "cannot show a metric");
        }
    }

    /// Shows the number of scheduled checks of a kind that are overdue by more than their period.
    pub(crate) fn show_overdue(&self, kind: &str, count: usize) {
        let gauge = self.metrics.gauge(
            "repository_checks_overdue",
            "Scheduled checks that are due for longer than their period",
            &[("kind", kind)],
        );
        match gauge {
            Ok(gauge) => set(&gauge, count as u64),
            Err(error) => tracing::warn!(%error, "cannot show a metric"),
        }
    }

    /// Shows the number of files that still lie on a drained volume or node.
    pub(crate) fn show_drain(&self, source: &DrainSource, files: u64) {
        let volume = source.volume.as_ref().map_or("", |volume| volume.as_str());
        let gauge = self.metrics.gauge(
            "repository_drain_files",
            "Files that are still to leave a volume, or a whole node, that is drained",
            &[
                ("replica", source.replica.as_str()),
                ("node", source.node.as_str()),
                ("volume", volume),
            ],
        );
        match gauge {
            Ok(gauge) => set(&gauge, files),
            Err(error) => tracing::warn!(%error, "cannot show a metric"),
        }
    }

    /// Counts the bytes that a donor gave for a repair, proofs included.
    pub(crate) fn count_moved(&self, donor: &ReplicaId, bytes: u64) {
        let counter = self.metrics.counter(
            "repository_repair_bytes_total",
            "Bytes, proofs included, that a donor gave for repairs",
            &[("donor", donor.as_str())],
        );
        match counter {
            Ok(counter) => {
                counter.inc_by(bytes);
            }
            Err(error) => tracing::warn!(%error, "a metric cannot be counted"),
        }
    }
}

fn set(gauge: &Gauge, value: u64) {
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
}
