//! The instruments of a viewer. No URL and no collection is in a label: visitors choose them.

use archive_daemon::metrics::MetricError;
use archive_daemon::{Counter, Gauge, Histogram, Metrics};

/// The limits of the time to the first byte, in seconds.
const BUCKETS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.0, 10.0, 60.0];

/// The instruments of a viewer.
#[derive(Clone, Debug)]
pub(crate) struct Instruments {
    classes: [Counter; 4],
    /// Requests under way, their answers included.
    pub(crate) under_way: Gauge,
    /// Requests that were refused because too many were under way.
    pub(crate) turned_away: Counter,
    /// The time until the first byte of each answer.
    pub(crate) first_byte: Histogram,
    /// Answers that broke off in the middle.
    pub(crate) broken: Counter,
    /// Payloads whose digest was right.
    pub(crate) digests_right: Counter,
    /// Payloads whose digest was wrong.
    pub(crate) digests_wrong: Counter,
    /// Connections that are open.
    pub(crate) connections: Gauge,
}

impl Instruments {
    pub(crate) fn new(metrics: &Metrics) -> Result<Self, MetricError> {
        let requests = |class| {
            let name = "viewer_requests_total";
            metrics.counter(
                name,
                "Requests, by the class of their status",
                &[("class", class)],
            )
        };
        let digests = |outcome| {
            let name = "viewer_payload_digests_total";
            metrics.counter(
                name,
                "Payloads that were held against their digest",
                &[("outcome", outcome)],
            )
        };
        Ok(Self {
            classes: [
                requests("2xx")?,
                requests("3xx")?,
                requests("4xx")?,
                requests("5xx")?,
            ],
            under_way: metrics.gauge(
                "viewer_requests_under_way",
                "Requests that are being answered",
                &[],
            )?,
            turned_away: metrics.counter(
                "viewer_requests_turned_away_total",
                "Requests that were refused because too many were under way",
                &[],
            )?,
            first_byte: metrics.histogram(
                "viewer_first_byte_seconds",
                "How long answers took to begin",
                &[],
                &BUCKETS,
            )?,
            broken: metrics.counter(
                "viewer_answers_broken_total",
                "Answers that broke off, and whose connection was cut",
                &[],
            )?,
            digests_right: digests("right")?,
            digests_wrong: digests("wrong")?,
            connections: metrics.gauge("viewer_connections", "Connections that are open", &[])?,
        })
    }

    /// Counts an answer.
    pub(crate) fn count_answer(&self, status: u16) {
        let class = usize::from(status / 100).saturating_sub(2).min(3);
        if let Some(counter) = self.classes.get(class) {
            counter.inc();
        }
    }
}
