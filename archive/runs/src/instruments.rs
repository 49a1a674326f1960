//! The instruments of batch jobs.

use archive_daemon::metrics::MetricError;
use archive_daemon::{Counter, Gauge, Metrics};

/// The instruments of all batch jobs of a node.
#[derive(Clone, Debug)]
pub(crate) struct JobInstruments {
    /// Counts the files that went through a job without a failure.
    pub(crate) whole: Counter,
    /// Counts the files of which something is not in the output.
    pub(crate) failed: Counter,
    /// Counts the bytes of files that were read.
    pub(crate) bytes: Counter,
    /// The number of running jobs.
    pub(crate) jobs: Gauge,
    /// The number of files that are being computed, or wait with their output.
    pub(crate) files: Gauge,
}

impl JobInstruments {
    /// Registers them with metrics that bear the label of the node.
    pub(crate) fn new(metrics: &Metrics) -> Result<Self, MetricError> {
        let files = |outcome| {
            metrics.counter(
                "bitarchive_batch_files_total",
                "Files that went through a batch job",
                &[("outcome", outcome)],
            )
        };
        Ok(Self {
            whole: files("whole")?,
            failed: files("failed")?,
            bytes: metrics.counter(
                "bitarchive_batch_bytes_total",
                "Bytes of files that batch jobs have read",
                &[],
            )?,
            jobs: metrics.gauge("bitarchive_batch_jobs_running", "Batch jobs that run", &[])?,
            files: metrics.gauge(
                "bitarchive_batch_files_running",
                "Files that are in a batch job now",
                &[],
            )?,
        })
    }
}
