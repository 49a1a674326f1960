//! Values that are shown only while they are known, and the counts of calls and connections that a server refused.

use super::{AnyFamily, Counter, MetricError, Metrics};

/// The counts of calls and connections that a server refused. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Refusals {
    /// The number of calls that no rule allows, or of unknown callers.
    pub calls: Counter,
    /// The number of connections without a handshake, or without a valid certificate.
    pub connections: Counter,
}

impl Metrics {
    /// Shows a value, or removes it from the page while it is not known.
    ///
    /// # Errors
    ///
    /// [`MetricError`] if a name is not allowed, or belongs to another kind of instrument.
    pub fn show_gone(
        &self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
        value: Option<i64>,
    ) -> Result<(), MetricError> {
        let gauge = self.gauge(name, help, labels)?;
        if let Some(value) = value {
            gauge.set(value);
            return Ok(());
        }
        let labels = self.check(name, labels)?;
        if let Some(AnyFamily::Gauge(family)) = self.shared().families.get(name) {
            family.remove(&labels);
        }
        Ok(())
    }

    /// Returns the instruments for the calls and connections that a server refuses.
    ///
    /// # Errors
    ///
    /// [`MetricError`] if the names belong to other kinds of instruments.
    pub fn count_refusals(&self, server: &str) -> Result<Refusals, MetricError> {
        let labels = [("server", server)];
        Ok(Refusals {
            calls: self.counter(
                "rpc_calls_refused_total",
                "Calls that were refused before any handler saw them",
                &labels,
            )?,
            connections: self.counter(
                "rpc_connections_refused_total",
                "Connections that were turned away: no handshake, or no good certificate",
                &labels,
            )?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a value that became unknown stays on the page of metrics, or takes the values of other labels with it.
    #[test]
    fn unknown_value_is_not_on_the_page() {
        let metrics = Metrics::new();
        let show = |node, value| {
            metrics
                .show_gone("age_seconds", "Age", &[("node", node)], value)
                .unwrap();
            metrics.render_page().unwrap()
        };
        assert!(!show("a", None).contains("age_seconds{"));
        assert!(show("a", Some(7)).contains("age_seconds{node=\"a\"} 7\n"));
        assert!(show("b", Some(-1)).contains("age_seconds{node=\"b\"} -1\n"));
        let page = show("a", None);
        assert!(
            !page.contains("node=\"a\"") && page.contains("node=\"b\""),
            "{page}"
        );
        assert!(show("a", Some(8)).contains("age_seconds{node=\"a\"} 8\n"));
        metrics.counter("other", "", &[]).unwrap();
        assert!(metrics.show_gone("other", "", &[], None).is_err());
    }
}
