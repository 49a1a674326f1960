//! Background jobs: who has gone silent, and certificates that were exchanged on disk.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Clock, Worker, WorkerStep, WorkerStepError};
use archive_model::NodeId;
use parking_lot::Mutex;

use crate::metrics::Instruments;
use crate::nodes::{NodeLife, Nodes};

/// Says which nodes went silent, and keeps the metrics true while nothing happens.
pub(crate) struct Watch {
    pub(crate) nodes: Arc<Mutex<Nodes>>,
    pub(crate) before: BTreeMap<NodeId, NodeLife>,
    pub(crate) instruments: Instruments,
    pub(crate) clock: Clock,
    pub(crate) pause: Duration,
}

impl Worker for Watch {
    const NAME: &'static str = "watch";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        self.look();
        std::future::ready(Ok(WorkerStep::Idle(self.pause))).await
    }
}

impl Watch {
    fn look(&mut self) {
        let nodes = self.nodes.lock();
        let all = nodes.list_nodes(self.clock.instant());
        self.instruments.show_nodes(&all);
        let mut now = BTreeMap::new();
        for liveness in all {
            let node = liveness.node;
            if liveness.life == NodeLife::Silent && self.before.get(node) != Some(&NodeLife::Silent)
            {
                let since = liveness.last.map(|(time, _)| time.to_string());
                tracing::warn!(%node, since, "a node is silent; its files cannot be checked until it is back");
            }
            now.insert(node.clone(), liveness.life);
        }
        self.before = now;
    }
}
