//! The nodes of a job's replica: who is waited for, and who is left out.
//!
//! A node that was alive during this job and went silent is waited for, and so is one that its monitor has not heard of
//! since it started: both may come yet. One that is alive and ends each run is left out, as long as others are there to
//! be read: what they have does not wait for it for ever. Only the node that ended a run is blamed for it, and a file
//! more is an amnesty: a node that is well is never left out for another one.

use std::collections::{BTreeMap, BTreeSet};

use archive_model::{NodeId, NodeState};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::Context;

/// So often at least has a node ended a run, without a file between, before it is left out.
pub(super) const MOST_BREAKS: u32 = 5;

/// How the nodes of a replica are; each is in one of the sets. Those out of service are in none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeLiveness {
    /// Those that answer.
    pub alive: BTreeSet<NodeId>,
    /// Those that do not answer any more.
    pub silent: BTreeSet<NodeId>,
    /// Those that the monitor has not heard of since it started.
    pub unheard: BTreeSet<NodeId>,
}

impl FromIterator<NodeState> for NodeLiveness {
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

/// What is remembered of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Nodes {
    /// Since when one is waited for, and nothing else comes.
    missed: Option<Timestamp>,
    /// Those that were alive when the run began.
    present: BTreeSet<NodeId>,
    /// Those that were not.
    absent: BTreeSet<NodeId>,
    /// Those that were not heard of, and were waited for in vain: not a second time, until they are alive.
    waived: BTreeSet<NodeId>,
    /// Those that ended runs since the last file.
    breaks: BTreeMap<NodeId, BreakCount>,
    /// Those that are not asked any more.
    left_out: BTreeSet<NodeId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct BreakCount {
    since: Timestamp,
    count: u32,
}

/// Whose doing it is that a run broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    /// Nobody can be left out for it: the node is the only one that is there, or is not there.
    Job,
    /// The node's; it may be well again.
    Node,
    /// The node's, for the last time after so many.
    LeftOut(u32),
}

impl Nodes {
    pub(super) fn present(&self) -> impl Iterator<Item = &NodeId> {
        self.present.iter()
    }

    pub(super) fn left_out(&self) -> impl Iterator<Item = &NodeId> {
        self.left_out.iter()
    }

    /// Whom to wait for; nobody: a run may begin with who is alive.
    pub(super) fn look(&mut self, mut look: NodeLiveness, context: Context<'_>) -> Vec<String> {
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

    /// A run broke off because of this node.
    pub(super) fn broke(&mut self, node: &NodeId, context: Context<'_>) -> Blame {
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

    /// There was a file, or nobody knows what the nodes do: all patience begins anew.
    pub(super) fn forgive(&mut self) {
        self.missed = None;
        self.breaks.clear();
    }

    /// The run is over; gives those that it began without.
    pub(super) fn settle(&mut self) -> BTreeSet<NodeId> {
        std::mem::take(&mut self.absent)
    }
}

/// Whether patience has passed since then.
fn is_over(since: Timestamp, context: Context<'_>) -> bool {
    let patience = SignedDuration::try_from(context.patience);
    patience.is_ok_and(|most| context.now.duration_since(since) >= most)
}
