//! Metrics: counters, gauges and histograms, and the page that Prometheus reads.
//!
//! Instruments are made once, by name and labels, and are cheap to clone; asking again for the same name and labels
//! gives the same instrument. There is no global registry. The page is `OpenMetrics` text, which every Prometheus
//! since 2.5 asks for. Owner of: the page. Not promised: that labels stay few; never put a file name in one.

mod gone;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
pub use gone::Refusals;
use parking_lot::{Mutex, MutexGuard};
pub use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
pub use prometheus_client::metrics::gauge::Gauge;
pub use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The media type of the page of metrics.
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The time that a reader of the page may keep the stop waiting.
const PATIENCE: Duration = Duration::from_secs(1);

type Labels = Vec<(String, String)>;

/// The metrics of one process, cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    shared: Arc<Mutex<SharedMetrics>>,
    labels: Labels,
}

#[derive(Debug, Default)]
struct SharedMetrics {
    registry: Registry,
    families: BTreeMap<String, AnyFamily>,
}

#[derive(Clone, Debug)]
enum AnyFamily {
    Counter(Family<Labels, Counter>),
    Gauge(Family<Labels, Gauge>),
    Histogram(Family<Labels, Histogram, Buckets>),
}

#[derive(Clone, Debug)]
struct Buckets(Vec<f64>);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// The reason why an instrument cannot be made: a bug in the part that asked for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetricError {
    /// A metric or label name has a character that Prometheus does not allow.
    #[error("`{0}` is not a valid name for a metric or a label")]
    Name(String),
    /// A label is given twice.
    #[error("metric `{metric}` has the label `{label}` twice")]
    Label {
        /// The name of the metric.
        metric: String,
        /// The name of the label.
        label: String,
    },
    /// The name belongs to an instrument of another kind.
    #[error("metric `{0}` already exists as another kind")]
    Taken(String),
    /// The limits of the buckets do not rise, or are not finite.
    #[error("metric `{0}` needs finite, rising bucket limits")]
    Buckets(String),
}

impl Metrics {
    /// Makes an empty set of metrics.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the same metrics; those made through the result bear this label in addition.
    #[must_use]
    pub fn with_label(&self, label: &str, value: &str) -> Self {
        let mut labels = self.labels.clone();
        labels.push((label.to_owned(), value.to_owned()));
        Self {
            shared: Arc::clone(&self.shared),
            labels,
        }
    }

    /// Returns a counter, which only grows. On the page its name ends in `_total`, whether or not `name` does.
    ///
    /// # Errors
    ///
    /// [`MetricError`] if a name is not allowed, or belongs to another kind of instrument.
    pub fn counter(
        &self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
    ) -> Result<Counter, MetricError> {
        let name = name.strip_suffix("_total").unwrap_or(name);
        let labels = self.check(name, labels)?;
        match self
            .shared()
            .family(name, help, AnyFamily::Counter(Family::default()))
        {
            AnyFamily::Counter(family) => Ok(family.get_or_create_owned(&labels)),
            AnyFamily::Gauge(_) | AnyFamily::Histogram(_) => {
                Err(MetricError::Taken(name.to_owned()))
            }
        }
    }

    /// Returns a gauge, which goes up and down.
    ///
    /// # Errors
    ///
    /// [`MetricError`] if a name is not allowed, or belongs to another kind of instrument.
    pub fn gauge(
        &self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
    ) -> Result<Gauge, MetricError> {
        let labels = self.check(name, labels)?;
        match self
            .shared()
            .family(name, help, AnyFamily::Gauge(Family::default()))
        {
            AnyFamily::Gauge(family) => Ok(family.get_or_create_owned(&labels)),
            AnyFamily::Counter(_) | AnyFamily::Histogram(_) => {
                Err(MetricError::Taken(name.to_owned()))
            }
        }
    }

    /// Returns a count of values below each of the rising limits `buckets`; the first caller's limits stand.
    ///
    /// # Errors
    ///
    /// [`MetricError`] if a name is not allowed, or belongs to another kind of instrument, or the limits do not rise.
    pub fn histogram(
        &self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
        buckets: &[f64],
    ) -> Result<Histogram, MetricError> {
        let labels = self.check(name, labels)?;
        if !buckets.iter().all(|limit| limit.is_finite()) || !buckets.is_sorted_by(|a, b| a < b) {
            return Err(MetricError::Buckets(name.to_owned()));
        }
        let made = Family::new_with_constructor(Buckets(buckets.to_vec()));
        match self.shared().family(name, help, AnyFamily::Histogram(made)) {
            AnyFamily::Histogram(family) => Ok(family.get_or_create_owned(&labels)),
            AnyFamily::Counter(_) | AnyFamily::Gauge(_) => Err(MetricError::Taken(name.to_owned())),
        }
    }

    /// Returns the page of all metrics.
    ///
    /// # Errors
    ///
    /// [`fmt::Error`] if a value cannot be written.
    pub fn render_page(&self) -> Result<String, fmt::Error> {
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &self.shared().registry)?;
        Ok(page)
    }

    fn check(&self, name: &str, labels: &[(&str, &str)]) -> Result<Labels, MetricError> {
        let mut all = self.labels.clone();
        all.extend(
            labels
                .iter()
                .map(|(label, value)| ((*label).to_owned(), (*value).to_owned())),
        );
        let mut seen = BTreeSet::from(["le"]);
        for word in std::iter::once(name).chain(all.iter().map(|(label, _)| label.as_str())) {
            let starts_well = word.starts_with(|c: char| c.is_ascii_alphabetic());
            if !starts_well || word.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
                return Err(MetricError::Name(word.to_owned()));
            }
        }
        for (label, _) in &all {
            if !seen.insert(label) {
                return Err(MetricError::Label {
                    metric: name.to_owned(),
                    label: label.clone(),
                });
            }
        }
        Ok(all)
    }

    fn shared(&self) -> MutexGuard<'_, SharedMetrics> {
        self.shared.lock()
    }
}

impl SharedMetrics {
    /// Returns the family of that name; registers `made` if there is no such family.
    fn family(&mut self, name: &str, help: &str, made: AnyFamily) -> AnyFamily {
        if let Some(family) = self.families.get(name) {
            return family.clone();
        }
        self.families.insert(name.to_owned(), made.clone());
        match &made {
            AnyFamily::Counter(family) => self.register(name, help, family.clone()),
            AnyFamily::Gauge(family) => self.register(name, help, family.clone()),
            AnyFamily::Histogram(family) => self.register(name, help, family.clone()),
        }
        made
    }

    fn register(&mut self, name: &str, help: &str, metric: impl Metric) {
        // The library adds the full stop, and does not escape.
        let help = help
            .trim_end_matches('.')
            .replace('\\', "\\\\")
            .replace('\n', "\\n")
            .replace('"', "\\\"");
        self.registry.register(name, help, metric);
    }
}

/// Answers `GET /metrics` on `listener` until `stop`. Not safe on an open network: bind it to loopback or behind a
/// firewall.
///
/// # Errors
///
/// The error of the system if connections can no longer be accepted.
pub async fn serve_metrics(
    listener: TcpListener,
    metrics: Metrics,
    stop: CancellationToken,
) -> io::Result<()> {
    let page = get(|| async move {
        match metrics.render_page() {
            Ok(page) => ([(CONTENT_TYPE, MEDIA_TYPE)], page).into_response(),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        }
    });
    let server = axum::serve(listener, Router::new().route("/metrics", page));
    let given_up = async {
        stop.cancelled().await;
        tokio::time::sleep(PATIENCE).await;
    };
    tokio::select! {
        outcome = server.with_graceful_shutdown(stop.clone().cancelled_owned()) => outcome,
        () = given_up => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    async fn served(
        metrics: &Metrics,
    ) -> (
        SocketAddr,
        CancellationToken,
        impl Future<Output = io::Result<()>>,
    ) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stop = CancellationToken::new();
        (
            listener.local_addr().unwrap(),
            stop.clone(),
            serve_metrics(listener, metrics.clone(), stop),
        )
    }

    async fn request(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// Fails if a scrape loses a count or adds up series of different labels, or a quote or newline in a label breaks
    /// its line.
    #[tokio::test]
    async fn a_scrape_reads_what_was_counted() {
        let metrics = Metrics::new();
        let node = metrics.with_label("node", "one");
        let stored = node
            .counter("node_files_total", "Files stored.", &[])
            .unwrap();
        stored.inc_by(3);
        node.counter("node_files_total", "", &[]).unwrap().inc();
        metrics
            .with_label("node", "two")
            .counter("node_files", "Files stored.", &[])
            .unwrap()
            .inc();
        let anomalies = metrics
            .gauge(
                "anomalies",
                "Say \"hi\"\\\nthere",
                &[("kind", "a\"b\\c\nd")],
            )
            .unwrap();
        anomalies.set(-7);
        let seconds = metrics
            .histogram("step_seconds", "Time.", &[], &[0.5, 1.0])
            .unwrap();
        for value in [0.25, 0.75, 8.0] {
            seconds.observe(value);
        }

        let (address, stop, server) = served(&metrics).await;
        let client = async {
            let answers = (
                request(address, "/metrics").await,
                request(address, "/").await,
            );
            stop.cancel();
            answers
        };
        let (outcome, (page, other)) = tokio::join!(server, client);
        outcome.unwrap();
        let (head, body) = page.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        assert!(head.contains(MEDIA_TYPE), "{head}");
        assert!(other.starts_with("HTTP/1.1 404"), "{other}");
        let mut lines: Vec<&str> = body.lines().collect();
        assert_eq!(lines.pop(), Some("# EOF"));
        lines.sort_unstable();
        assert_eq!(
            lines,
            [
                "# HELP anomalies Say \\\"hi\\\"\\\\\\nthere.",
                "# HELP node_files Files stored.",
                "# HELP step_seconds Time.",
                "# TYPE anomalies gauge",
                "# TYPE node_files counter",
                "# TYPE step_seconds histogram",
                "anomalies{kind=\"a\\\"b\\\\c\\nd\"} -7",
                "node_files_total{node=\"one\"} 4",
                "node_files_total{node=\"two\"} 1",
                "step_seconds_bucket{le=\"+Inf\"} 3",
                "step_seconds_bucket{le=\"0.5\"} 1",
                "step_seconds_bucket{le=\"1.0\"} 2",
                "step_seconds_count{} 3",
                "step_seconds_sum{} 9.0",
            ]
        );
    }

    /// Fails if a reader of metrics that never ends its request holds up the stop.
    #[tokio::test]
    async fn silent_metrics_reader_does_not_delay_stop() {
        let metrics = Metrics::new();
        let (address, stop, server) = served(&metrics).await;
        let client = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /metrics HT").await.unwrap();
            // The answer shows that the server has taken the connection before it.
            request(address, "/metrics").await;
            stop.cancel();
            stream
        };
        let both = async { tokio::join!(server, client).0 };
        tokio::time::timeout(PATIENCE * 20, both)
            .await
            .expect("an end")
            .unwrap();
    }

    /// Fails if a metric that Prometheus cannot read is registered: an invalid name, a label twice, a name of two
    /// kinds, buckets out of order.
    #[test]
    fn metric_that_prometheus_cannot_read_is_refused() {
        let metrics = Metrics::new();
        assert_eq!(
            metrics.gauge("a b", "", &[]).unwrap_err(),
            MetricError::Name("a b".to_owned())
        );
        assert_eq!(
            metrics.gauge("", "", &[]).unwrap_err(),
            MetricError::Name(String::new())
        );
        assert_eq!(
            metrics.gauge("a", "", &[("1", "")]).unwrap_err(),
            MetricError::Name("1".to_owned())
        );
        let twice = MetricError::Label {
            metric: "a".to_owned(),
            label: "x".to_owned(),
        };
        assert_eq!(
            metrics
                .with_label("x", "1")
                .gauge("a", "", &[("x", "2")])
                .unwrap_err(),
            twice
        );
        let le = MetricError::Label {
            metric: "a".to_owned(),
            label: "le".to_owned(),
        };
        assert_eq!(metrics.gauge("a", "", &[("le", "2")]).unwrap_err(), le);
        metrics.gauge("a", "", &[]).unwrap();
        assert_eq!(
            metrics.counter("a_total", "", &[]).unwrap_err(),
            MetricError::Taken("a".to_owned())
        );
        for bad in [
            [1.0, 1.0],
            [2.0, 1.0],
            [1.0, f64::NAN],
            [1.0, f64::INFINITY],
        ] {
            let error = metrics.histogram("h", "", &[], &bad).unwrap_err();
            assert_eq!(error, MetricError::Buckets("h".to_owned()));
        }
    }
}
