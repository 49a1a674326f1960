//! The answers of one node that is asked for the admissions beside its files.

use std::collections::VecDeque;

use archive_ledger::restore::combine::Sighting;
use archive_model::{FileName, NodeId, ReplicaId};
use archive_replicas::Admissions;

/// The answers of one node, and how far they were read.
pub(super) struct NodeAnswers {
    pub(super) replica: ReplicaId,
    pub(super) node: NodeId,
    pub(super) stream: Admissions,
    pub(super) waiting: VecDeque<(FileName, Sighting)>,
    pub(super) last: Option<FileName>,
    pub(super) count: u64,
    pub(super) is_done: bool,
}

impl NodeAnswers {
    pub(super) fn new(replica: ReplicaId, node: NodeId, stream: Admissions) -> Self {
        Self {
            replica,
            node,
            stream,
            waiting: VecDeque::new(),
            last: None,
            count: 0,
            is_done: false,
        }
    }

    /// Returns the node, as a report names it.
    pub(super) fn about(&self) -> String {
        format!("node {} of replica {}", self.node, self.replica)
    }
}
