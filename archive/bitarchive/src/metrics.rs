//! The metrics of a node.

use std::sync::Arc;
use std::time::Duration;

use archive_daemon::metrics::MetricError;
use archive_daemon::{Clock, Counter, Gauge, Metrics, Worker, WorkerStep, WorkerStepError};
use archive_durable::{Space, VolumeProblem};
use archive_model::{NodeId, VolumeId};
use tokio::task::spawn_blocking;

use crate::node::Node;
use crate::volumes::Volume;

/// The time between two updates of the gauges.
const PAUSE: Duration = Duration::from_secs(5);

/// The instruments of one node; every one bears the label `node`.
#[derive(Clone, Debug)]
pub(crate) struct Instruments {
    /// Counts the files that the scrub has read.
    pub(crate) scrub_files: Counter,
    /// Counts the bytes that the scrub has read.
    pub(crate) scrub_bytes: Counter,
    /// Counts the bytes of file data and proof that were sent.
    pub(crate) read_bytes: Counter,
    /// Counts the groups that were replaced by mends.
    pub(crate) mended_groups: Counter,
    metrics: Metrics,
    damaged: Gauge,
    missing: Gauge,
    unexpected: Gauge,
}

impl Instruments {
    pub(crate) fn new(metrics: &Metrics, node: &NodeId) -> Result<Self, MetricError> {
        let metrics = metrics.with_label("node", node.as_str());
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
            damaged: findings("damaged")?,
            missing: findings("missing")?,
            unexpected: findings("unexpected")?,
            metrics,
        })
    }

    fn show_oldest(&self, seconds: Option<i64>) -> Result<(), MetricError> {
        self.metrics.show_gone(
            "bitarchive_oldest_verification_age_seconds",
            "How long ago the copy that has waited longest was verified",
            &[],
            seconds,
        )
    }

    fn show_volume(&self, seen: &VolumeGauges) -> Result<(), MetricError> {
        let labels = [("volume", seen.id.as_str())];
        let show = |name, help, value| self.metrics.show_gone(name, help, &labels, value);
        show(
            "bitarchive_volume_online",
            "Whether the volume is there and may be used",
            Some(i64::from(seen.is_online)),
        )?;
        show(
            "bitarchive_volume_poisoned",
            "Whether a write to the volume failed and nobody has cleared it",
            Some(i64::from(seen.is_poisoned)),
        )?;
        let bytes = |space: fn(&Space) -> u64| {
            let bytes = seen.space.as_ref().map(space);
            bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX))
        };
        show(
            "bitarchive_volume_free_bytes",
            "Free space on the volume, the reserve included",
            bytes(|space| space.free),
        )?;
        show(
            "bitarchive_volume_size_bytes",
            "Size of the volume",
            bytes(|space| space.total),
        )
    }
}

/// A volume as its gauges show it.
struct VolumeGauges {
    id: VolumeId,
    is_online: bool,
    is_poisoned: bool,
    /// The room on the volume; `None` if the volume is absent.
    space: Option<Space>,
}

impl VolumeGauges {
    fn new(node: &Node, volume: &Volume) -> Option<Self> {
        let problem = volume.problem.as_ref();
        let is_poisoned = matches!(problem, Some(VolumeProblem::Poisoned(_)));
        let space = (problem.is_none() || is_poisoned)
            .then(|| node.disks.volumes.measure_space(&volume.path));
        Some(Self {
            id: volume.id.clone()?,
            is_online: problem.is_none(),
            is_poisoned,
            space: space.and_then(Result::ok),
        })
    }
}

/// The worker that sets the gauges.
pub(crate) struct MetricsWorker {
    pub(crate) node: Arc<Node>,
    pub(crate) clock: Clock,
    pub(crate) instruments: Instruments,
}

impl Worker for MetricsWorker {
    const NAME: &'static str = "metrics";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        let counts = self.node.files.count_findings();
        let now = self.clock.now().as_second();
        let oldest = self.node.files.scrub_age.oldest_verification();
        let age = oldest.map(|oldest| now.saturating_sub(oldest.as_second()));
        let shown = [
            (&self.instruments.damaged, counts.damaged),
            (&self.instruments.missing, counts.missing),
            (&self.instruments.unexpected, counts.unexpected),
        ];
        for (gauge, count) in shown {
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        self.instruments.show_oldest(age)?;
        let node = Arc::clone(&self.node);
        let seen = move || {
            node.disks
                .volumes
                .list_volumes()
                .iter()
                .filter_map(|volume| VolumeGauges::new(&node, volume))
                .collect::<Vec<_>>()
        };
        for seen in spawn_blocking(seen).await? {
            self.instruments.show_volume(&seen)?;
        }
        Ok(WorkerStep::Idle(PAUSE))
    }
}
