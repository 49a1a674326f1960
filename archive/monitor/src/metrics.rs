//! The metrics of a monitor.

use archive_daemon::metrics::MetricError;
use archive_daemon::{Counter, Gauge, Metrics};
use archive_model::ReplicaId;

use crate::nodes::{NodeLife, NodeLiveness};

/// The instruments of one monitor; every one bears the label `replica`.
#[derive(Clone, Debug)]
pub(crate) struct Instruments {
    nodes: [(NodeLife, Gauge); 5],
    /// Signs of life that were believed.
    pub(crate) heartbeats: Counter,
    /// Signs of life that were not: not their own, or not understood.
    pub(crate) heartbeats_refused: Counter,
    /// Files that were given a node.
    pub(crate) placed: Counter,
    /// Files that no node could take.
    pub(crate) not_placed: Counter,
    /// Searches that every node and volume answered.
    pub(crate) locates_complete: Counter,
    /// Searches that some did not.
    pub(crate) locates_partial: Counter,
    /// Listings to the end, without gaps.
    pub(crate) listings_complete: Counter,
    /// Listings to the end, with gaps.
    pub(crate) listings_partial: Counter,
    /// Entries in all listings.
    pub(crate) listing_entries: Counter,
}

impl Instruments {
    pub(crate) fn new(metrics: &Metrics, replica: &ReplicaId) -> Result<Self, MetricError> {
        let metrics = metrics.with_label("replica", replica.as_str());
        let nodes = |life: NodeLife| {
            let gauge = metrics.gauge(
                "monitor_nodes",
                "Nodes that are known, by state",
                &[("state", life.word())],
            )?;
            Ok::<_, MetricError>((life, gauge))
        };
        let counter = |name, help, outcome| metrics.counter(name, help, &[("outcome", outcome)]);
        let heartbeats = ("monitor_heartbeats_total", "Signs of life of nodes");
        let placements = (
            "monitor_placements_total",
            "Files for which a node was looked for",
        );
        let locates = ("monitor_locates_total", "Searches for one file");
        let listings = (
            "monitor_listings_total",
            "Listings of the replica that came to their end",
        );
        Ok(Self {
            nodes: [
                nodes(NodeLife::Alive)?,
                nodes(NodeLife::Silent)?,
                nodes(NodeLife::Contested)?,
                nodes(NodeLife::Unheard)?,
                nodes(NodeLife::Retired)?,
            ],
            heartbeats: counter(heartbeats.0, heartbeats.1, "taken")?,
            heartbeats_refused: counter(heartbeats.0, heartbeats.1, "refused")?,
            placed: counter(placements.0, placements.1, "placed")?,
            not_placed: counter(placements.0, placements.1, "none")?,
            locates_complete: counter(locates.0, locates.1, "complete")?,
            locates_partial: counter(locates.0, locates.1, "partial")?,
            listings_complete: counter(listings.0, listings.1, "complete")?,
            listings_partial: counter(listings.0, listings.1, "partial")?,
            listing_entries: metrics.counter(
                "monitor_listing_entries_total",
                "Entries in listings",
                &[],
            )?,
        })
    }

    /// Shows how many nodes are in which state.
    pub(crate) fn show_nodes(&self, nodes: &[NodeLiveness<'_>]) {
        for (life, gauge) in &self.nodes {
            let count = nodes
                .iter()
                .filter(|liveness| liveness.life == *life)
                .count();
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}
