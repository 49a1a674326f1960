//! The nodes of a job's replica: whether each is waited for or left out.
//!
//! A node that was alive during this job and went silent is waited for, and so is a node that its monitor has not heard
//! of since it started: both may come back. A node that is alive and ends each run is left out, as long as others can
//! be read: their files do not wait for it without limit. Only the node that ended a run is blamed for it, and one new
//! file resets all counters: a healthy node is never left out because of another one.

use std::collections::{BTreeMap, BTreeSet};

use archive_model::{NodeId, NodeState};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::JobSurroundings;

/// The number of runs without a new file that a node must have ended before it is left out.
pub(super) const MOST_BREAKS: u32 = 5;

/// The states of the nodes of a replica: each is in one of the sets. Nodes out of service are in no set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSets {
    /// The nodes that answer.
    pub alive: BTreeSet<NodeId>,
    /// The nodes that do not answer any more.
    pub silent: BTreeSet<NodeId>,
    /// The nodes that the monitor has not heard of since it started.
    pub unheard: BTreeSet<NodeId>,
}

impl FromIterator<NodeState> for NodeSets {
    fn from_iter<T: IntoIterator<Item = NodeState>>(nodes: T) -> Self {
        let mut look = Self::default();
        for state in nodes {
            let side = match (state.alive, state.seen) {
                (true, _) => &mut look.alive,
                (false, None) => &mut look.unheard,
                (false, Some(_)) => &mut look.silent,
            };
            side.insert(state.node);
        }
        look
    }
}

/// The history of the nodes during a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Nodes {
    /// The time since when a node is waited for, without anything else being read.
    missed: Option<Timestamp>,
    /// Nodes that were alive when the run began.
    present: BTreeSet<NodeId>,
    /// Nodes that were not alive when the run began.
    absent: BTreeSet<NodeId>,
    /// Nodes that were not heard of, and were waited for in vain: not a second time, until they are alive.
    waived: BTreeSet<NodeId>,
    /// Nodes that ended runs since the last file.
    breaks: BTreeMap<NodeId, BreakCount>,
    /// Nodes that are not asked any more.
    left_out: BTreeSet<NodeId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct BreakCount {
    since: Timestamp,
    count: u32,
}

/// The cause of a failed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    /// The job: the node cannot be left out, because it is the only one, or is not present.
    Job,
    /// The node, which may recover.
    Node,
    /// The node, which is left out after this many failures.
    LeftOut(u32),
}

impl Nodes {
    pub(super) fn present_nodes(&self) -> impl Iterator<Item = &NodeId> {
        self.present.iter()
    }

    pub(super) fn left_out(&self) -> impl Iterator<Item = &NodeId> {
        self.left_out.iter()
    }

    /// Returns the nodes to wait for. If there are no such nodes, a run may begin with those that are alive.
    pub(super) fn look_at_nodes(
        &mut self,
        mut look: NodeSets,
        context: JobSurroundings<'_>,
    ) -> Vec<String> {
        for side in [&mut look.alive, &mut look.silent, &mut look.unheard] {
            side.retain(|node| !self.left_out.contains(node));
        }
        self.waived.retain(|node| !look.alive.contains(node));
        let gone = look.silent.iter().chain(&look.unheard);
        let gone = gone.filter(|node| {
            let is_new = look.unheard.contains(*node) && !self.waived.contains(*node);
            is_new || self.present.contains(*node)
        });
        let gone: BTreeSet<NodeId> = gone.cloned().collect();
        if !gone.is_empty() {
            let since = *self.missed.get_or_insert(context.now);
            if !is_over(since, context) {
                return gone.iter().map(NodeId::to_string).collect();
            }
            let unheard = gone.intersection(&look.unheard);
            self.waived.extend(unheard.cloned());
        }
        self.missed = None;
        self.present = look.alive;
        self.absent = look.silent;
        self.absent.append(&mut look.unheard);
        Vec::new()
    }

    /// Counts a run that failed because of this node.
    pub(super) fn node_broke(&mut self, node: &NodeId, context: JobSurroundings<'_>) -> Blame {
        let is_alone = !self.present.iter().any(|other| other != node);
        if is_alone || !self.present.contains(node) {
            return Blame::Job;
        }
        let breaks = self.breaks.entry(node.clone()).or_insert(BreakCount {
            since: context.now,
            count: 0,
        });
        breaks.count = breaks.count.saturating_add(1);
        let count = breaks.count;
        if count < MOST_BREAKS || !is_over(breaks.since, context) {
            return Blame::Node;
        }
        self.breaks.remove(node);
        self.present.remove(node);
        self.left_out.insert(node.clone());
        Blame::LeftOut(count)
    }

    /// Resets all waiting times and counters: there was a new file, or the state of the nodes is unknown.
    pub(super) fn forgive_nodes(&mut self) {
        self.missed = None;
        self.breaks.clear();
    }

    /// Closes the run; returns the nodes that it began without.
    pub(super) fn settle_nodes(&mut self) -> BTreeSet<NodeId> {
        std::mem::take(&mut self.absent)
    }
}

/// Returns whether the patience has passed since that time.
fn is_over(since: Timestamp, context: JobSurroundings<'_>) -> bool {
    let patience = SignedDuration::try_from(context.patience);
    patience.is_ok_and(|most| context.now.duration_since(since) >= most)
}
