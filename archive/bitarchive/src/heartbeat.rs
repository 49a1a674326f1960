//! The workers of a node that send its heartbeats and look at its disks.

use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Clock, Period, Worker, WorkerStep, WorkerStepError};
use archive_model::NodeId;
use jiff::SignedDuration;
use tokio::task::spawn_blocking;

use crate::error::NodeError;
use crate::node::Node;
use crate::rpc::Notifier;

/// The worker that reports to the monitor that the node lives, with its address and its room.
pub(crate) struct HeartbeatWorker {
    pub(crate) node: NodeId,
    pub(crate) notifier: Arc<Notifier>,
    /// Whether the last heartbeat arrived, so that a silent monitor is logged once.
    pub(crate) heard: bool,
}

impl Worker for HeartbeatWorker {
    const NAME: &'static str = "heartbeat";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        match self.notifier.notify_monitor().await {
            Ok(pause) => {
                if !self.heard {
                    tracing::info!(node = %self.node, "the monitor hears this node");
                }
                self.heard = true;
                Ok(WorkerStep::Idle(pause))
            }
            Err(status) => Ok(self.unheard(&status.to_string())),
        }
    }
}

impl HeartbeatWorker {
    /// Logs once that the monitor does not answer, and tries again: that is not a fault of the node.
    fn unheard(&mut self, why: &str) -> WorkerStep {
        if self.heard {
            tracing::warn!(node = %self.node, why, "the monitor does not hear this node");
        }
        self.heard = false;
        WorkerStep::Idle(Duration::from_secs(1))
    }
}

/// The worker that looks whether the right disks are there, and removes the remains of old uploads.
pub(crate) struct DiskWorker {
    pub(crate) node: Arc<Node>,
    pub(crate) clock: Clock,
    pub(crate) every: Period,
    pub(crate) keep_uploads: Period,
}

impl Worker for DiskWorker {
    const NAME: &'static str = "volumes";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        let node = Arc::clone(&self.node);
        let now = self.clock.now();
        let keep = SignedDuration::try_from(self.keep_uploads.duration())?;
        let before = now.checked_sub(keep)?.as_second();
        spawn_blocking(move || {
            node.disks.refresh_volumes(now)?;
            node.disks
                .volumes
                .raise_changed()
                .map_err(NodeError::from)?;
            node.catalog.stamp_reach();
            node.files.reap_uploads(before)
        })
        .await??;
        Ok(WorkerStep::Idle(self.every.duration()))
    }
}
