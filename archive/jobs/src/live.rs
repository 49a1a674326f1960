//! What is known of jobs only while they run: how far each node is, and the word that ends them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archive_model::{JobId, NodeId};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::rpc::run::NodeProgress;

/// The most nodes that are shown of one job.
const MOST_NODES: usize = 1000;

/// Jobs that run; clones are the same ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunningJobs(Arc<Mutex<BTreeMap<JobId, RunningJob>>>);

#[derive(Debug, Default)]
struct RunningJob {
    cancel: CancellationToken,
    nodes: BTreeMap<NodeId, (NodeProgress, Timestamp)>,
}

impl RunningJobs {
    fn all(&self) -> MutexGuard<'_, BTreeMap<JobId, RunningJob>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job is taken up; gives the token by which it is told to end.
    pub(crate) fn enter(&self, id: &JobId) -> CancellationToken {
        let mut all = self.all();
        let running = all.entry(id.clone()).or_default();
        running.cancel.clone()
    }

    /// It runs no more.
    pub(crate) fn leave(&self, id: &JobId) {
        self.all().remove(id);
    }

    /// Tells a job to look at its row: it has ended. One that does not run needs no telling.
    pub(crate) fn cancel(&self, id: &JobId) {
        if let Some(running) = self.all().get(id) {
            running.cancel.cancel();
        }
    }

    /// A run of it begins.
    pub(crate) fn begin(&self, id: &JobId) {
        if let Some(running) = self.all().get_mut(id) {
            running.nodes.clear();
        }
    }

    /// How far a node is.
    pub(crate) fn progress(&self, id: &JobId, progress: NodeProgress, now: Timestamp) {
        if let Some(running) = self.all().get_mut(id) {
            let nodes = &mut running.nodes;
            if nodes.len() < MOST_NODES || nodes.contains_key(&progress.node) {
                nodes.insert(progress.node.clone(), (progress, now));
            }
        }
    }

    /// How far each node is, by its name.
    pub(crate) fn nodes(&self, id: &JobId) -> Vec<(NodeProgress, Timestamp)> {
        let all = self.all();
        let running = all.get(id);
        running.map_or_else(Vec::new, |running| {
            running.nodes.values().cloned().collect()
        })
    }
}
