//! What a node counts.

use std::sync::Arc;
use std::time::Duration;

use archive_daemon::metrics::MetricError;
use archive_daemon::{Clock, Counter, Gauge, Metrics, Step, Worker, WorkerError};
use archive_model::NodeId;

use crate::node::Node;

/// How often the gauges are set.
const PAUSE: Duration = Duration::from_secs(5);

/// The instruments of one node; every one bears the label `node`.
#[derive(Clone, Debug)]
pub(crate) struct Instruments {
    /// Files that the scrub has read.
    pub(crate) scrub_files: Counter,
    /// Bytes that the scrub has read.
    pub(crate) scrub_bytes: Counter,
    /// File data and proof that left.
    pub(crate) read_bytes: Counter,
    /// Groups that were replaced by mends.
    pub(crate) mended_groups: Counter,
    oldest: Gauge,
    damaged: Gauge,
    missing: Gauge,
    unexpected: Gauge,
}

impl Instruments {
    pub(crate) fn new(metrics: &Metrics, node: &NodeId) -> Result<Self, MetricError> {
        let metrics = metrics.labelled("node", node.as_str());
        let findings = |kind| {
            metrics.gauge(
                "bitarchive_findings",
                "Copies that are not as they should be, by kind",
                &[("kind", kind)],
            )
        };
        Ok(Self {
            scrub_files: metrics.counter(
                "bitarchive_scrub_files_total",
                "Files that the scrub has read",
                &[],
            )?,
            scrub_bytes: metrics.counter(
                "bitarchive_scrub_bytes_total",
                "Bytes that the scrub has read",
                &[],
            )?,
            read_bytes: metrics.counter(
                "bitarchive_read_bytes_total",
                "File data and proof that were sent to readers",
                &[],
            )?,
            mended_groups: metrics.counter(
                "bitarchive_mended_groups_total",
                "Groups of 16 KiB that were replaced by mends",
                &[],
            )?,
            oldest: metrics.gauge(
                "bitarchive_oldest_verification_age_seconds",
                "How long ago the copy that has waited longest was verified; -1 while that is not known",
                &[],
            )?,
            damaged: findings("damaged")?,
            missing: findings("missing")?,
            unexpected: findings("unexpected")?,
        })
    }
}

/// Sets the gauges.
pub(crate) struct Show {
    pub(crate) node: Arc<Node>,
    pub(crate) clock: Clock,
    pub(crate) instruments: Instruments,
}

impl Worker for Show {
    const NAME: &'static str = "metrics";

    async fn step(&mut self) -> Result<Step, WorkerError> {
        let tally = self.node.tally();
        let age = self.node.oldest_verification().map_or(-1, |oldest| {
            self.clock
                .now()
                .as_second()
                .saturating_sub(oldest.as_second())
        });
        let shown = [
            (&self.instruments.damaged, tally.damaged),
            (&self.instruments.missing, tally.missing),
            (&self.instruments.unexpected, tally.unexpected),
        ];
        for (gauge, count) in shown {
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        self.instruments.oldest.set(age);
        std::future::ready(Ok(Step::Idle(PAUSE))).await
    }
}
