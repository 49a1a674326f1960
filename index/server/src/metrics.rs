//! The instruments of an index.

use archive_daemon::metrics::MetricError;
use archive_daemon::{Counter, Gauge, Metrics};
use index_captures::IndexCounts;

/// The instruments of one index.
#[derive(Clone, Debug)]
pub(crate) struct Instruments {
    /// Files that wait or are being read. The number that says how far the index is behind the archive.
    files_behind: Gauge,
    files_parked: Gauge,
    captures: Gauge,
    /// Batch jobs that ended.
    pub(crate) jobs: Counter,
    /// Files whose captures were put into the index.
    pub(crate) files_indexed: Counter,
    /// Attempts to read a file that failed.
    pub(crate) files_failed: Counter,
    /// Captures that were put into the index.
    pub(crate) captures_indexed: Counter,
    /// Records, or parts of files, that are in no index because they are broken.
    pub(crate) defects: Counter,
    /// Files that were read again and are as in the index.
    pub(crate) compared_equal: Counter,
    /// Files that were read again and differ from the index.
    pub(crate) compared_different: Counter,
    /// Queries that were answered to their end.
    pub(crate) queries: Counter,
}

impl Instruments {
    pub(crate) fn new(metrics: &Metrics) -> Result<Self, MetricError> {
        let plain = |name, help| metrics.counter(name, help, &[]);
        let files = |outcome| {
            let help = "Attempts to index a file";
            metrics.counter("index_files_total", help, &[("outcome", outcome)])
        };
        let compared = |outcome| {
            let help = "Files that were read again and compared with the index";
            metrics.counter("index_comparisons_total", help, &[("outcome", outcome)])
        };
        let gauge = |name, help| metrics.gauge(name, help, &[]);
        Ok(Self {
            files_behind: gauge("index_files_behind", "Files that wait to be indexed")?,
            files_parked: gauge(
                "index_files_parked",
                "Files that failed too often and wait for an operator",
            )?,
            captures: gauge("index_captures", "Captures, those of sets included")?,
            jobs: plain("index_jobs_total", "Batch jobs that ended")?,
            files_indexed: files("indexed")?,
            files_failed: files("failed")?,
            captures_indexed: plain(
                "index_captures_indexed_total",
                "Captures that were put into the index",
            )?,
            defects: plain(
                "index_defects_total",
                "Records that are in no index because they are broken",
            )?,
            compared_equal: compared("equal")?,
            compared_different: compared("different")?,
            queries: plain(
                "index_queries_total",
                "Queries that were answered to their end",
            )?,
        })
    }

    /// Sets the gauges of files and captures.
    pub(crate) fn show_counts(&self, counts: &IndexCounts) {
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.files_behind.set(number(counts.pending));
        self.files_parked.set(number(counts.parked));
        let captures = counts.captures.saturating_add(counts.set_captures);
        self.captures.set(number(captures));
    }
}
