//! The metrics of a checksum replica.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use archive_daemon::metrics::MetricError;
use archive_daemon::{Counter, Metrics, Worker, WorkerStep, WorkerStepError};
use tokio::task::spawn_blocking;

use super::replica::ChecksumReplica;

/// The time between two updates of the metrics.
const PAUSE: Duration = Duration::from_secs(5);

/// The worker that updates the metrics of a checksum replica; every instrument bears the label `node`.
pub(super) struct MetricsWorker {
    replica: Arc<ChecksumReplica>,
    metrics: Metrics,
    files: Counter,
    bytes: Counter,
}

impl MetricsWorker {
    pub(super) fn new(
        replica: Arc<ChecksumReplica>,
        metrics: &Metrics,
    ) -> Result<Self, MetricError> {
        let metrics = metrics.with_label("node", replica.node().as_str());
        Ok(Self {
            files: metrics.counter(
                "checksum_replica_recorded_files_total",
                "Files that were recorded",
                &[],
            )?,
            bytes: metrics.counter(
                "checksum_replica_hashed_bytes_total",
                "Bytes that came and were hashed",
                &[],
            )?,
            replica,
            metrics,
        })
    }
}

impl Worker for MetricsWorker {
    const NAME: &'static str = "metrics";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        let counters = &self.replica.counters;
        self.files.inc_by(counters.files.swap(0, Ordering::Relaxed));
        self.bytes.inc_by(counters.bytes.swap(0, Ordering::Relaxed));
        let replica = Arc::clone(&self.replica);
        let space = spawn_blocking(move || replica.space()).await?;
        let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let free = space.as_ref().ok().map(|(space, _)| bytes(space.free));
        let usable = space.as_ref().ok().map(|(_, usable)| bytes(*usable));
        self.metrics.show_gone(
            "checksum_replica_free_bytes",
            "Free space on the disk of its record",
            &[],
            free,
        )?;
        self.metrics.show_gone(
            "checksum_replica_usable_bytes",
            "Free space on that disk, without the reserve",
            &[],
            usable,
        )?;
        Ok(WorkerStep::Idle(PAUSE))
    }
}
