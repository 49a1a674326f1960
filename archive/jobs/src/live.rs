//! State of running jobs: the progress of each node, and the token that ends a job.

use std::collections::BTreeMap;
use std::sync::Arc;

use archive_model::{JobId, JobNode, NodeId};
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

/// The most nodes that are shown of one job.
const MOST_NODES: usize = 1000;

/// The jobs that run; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunningJobs(Arc<Mutex<BTreeMap<JobId, RunningJob>>>);

#[derive(Debug, Default)]
struct RunningJob {
    cancel: CancellationToken,
    nodes: BTreeMap<NodeId, JobNode>,
}

impl RunningJobs {
    fn all(&self) -> MutexGuard<'_, BTreeMap<JobId, RunningJob>> {
        self.0.lock()
    }

    /// Adds a job; returns the token that makes it end.
    pub(crate) fn enter_job(&self, id: &JobId) -> CancellationToken {
        let mut all = self.all();
        let running = all.entry(id.clone()).or_default();
        running.cancel.clone()
    }

    /// Removes a job that has stopped.
    pub(crate) fn leave_job(&self, id: &JobId) {
        self.all().remove(id);
    }

    /// Tells a running job that its row has ended.
    pub(crate) fn cancel_job(&self, id: &JobId) {
        if let Some(running) = self.all().get(id) {
            running.cancel.cancel();
        }
    }

    /// Begins a new run of a job.
    pub(crate) fn begin_job(&self, id: &JobId) {
        if let Some(running) = self.all().get_mut(id) {
            running.nodes.clear();
        }
    }

    /// Notes the progress that a node reports now.
    pub(crate) fn note_progress(&self, id: &JobId, progress: JobNode, now: Timestamp) {
        if let Some(running) = self.all().get_mut(id) {
            let nodes = &mut running.nodes;
            if nodes.len() < MOST_NODES || nodes.contains_key(&progress.node) {
                let seen = Some(now);
                nodes.insert(progress.node.clone(), JobNode { seen, ..progress });
            }
        }
    }

    /// Returns the progress of each node, by its name.
    pub(crate) fn node_progress(&self, id: &JobId) -> Vec<JobNode> {
        let all = self.all();
        let running = all.get(id);
        running.map_or_else(Vec::new, |running| {
            running.nodes.values().cloned().collect()
        })
    }
}
