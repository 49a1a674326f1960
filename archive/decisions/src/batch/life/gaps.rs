//! The gaps of a job: nodes and volumes whose files were not read, each with its reason.

use archive_model::limits::MOST_GAPS;
use archive_model::{NodeId, VolumeId};
use serde::{Deserialize, Serialize};

use super::{JobLife, shorten_words};

/// A place whose files a job has not read. Unlike [`archive_model::Gap`], it names no replica, as that of the job
/// stands in the row beside it; and its fields are texts, as rows of jobs keep them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobGap {
    /// The node; empty for the whole replica.
    pub node: String,
    /// The volume, or its path; empty for the whole node.
    pub volume: String,
    /// The reason.
    pub reason: String,
}

impl JobGap {
    /// Creates the gap of a whole replica.
    pub(super) fn replica_gap(reason: String) -> Self {
        Self {
            node: String::new(),
            volume: String::new(),
            reason,
        }
    }

    /// Creates the gap of a whole node.
    pub fn node_gap(node: &NodeId, reason: String) -> Self {
        Self {
            node: node.to_string(),
            volume: String::new(),
            reason,
        }
    }

    /// Creates the gap of one volume of a node.
    pub fn volume_gap(node: &NodeId, volume: &VolumeId, reason: String) -> Self {
        Self {
            node: node.to_string(),
            volume: volume.to_string(),
            reason,
        }
    }
}

impl JobLife {
    /// Adds the reason why a node is left out, also if it is a gap already.
    pub(super) fn add_words(&mut self, node: &NodeId, said: String) {
        let is_it = |gap: &&mut JobGap| gap.node == node.as_str() && gap.volume.is_empty();
        if let Some(known) = self.gaps.iter_mut().find(is_it) {
            known.reason = format!("{}; later {said}", shorten_words(&known.reason));
            return;
        }
        self.add_gap(JobGap::node_gap(node, said));
    }

    /// Adds a gap, unless the place has one already. The last gap that is kept says that there are more.
    pub(super) fn add_gap(&mut self, gap: JobGap) {
        let known = self
            .gaps
            .iter()
            .any(|known| (&known.node, &known.volume) == (&gap.node, &gap.volume));
        if known || self.gaps.len() >= MOST_GAPS {
            return;
        }
        let is_last = self.gaps.len() + 1 == MOST_GAPS;
        self.gaps.push(if is_last {
            JobGap::replica_gap(format!(
                "{MOST_GAPS} or more nodes and volumes were not read; the list of errors names every file"
            ))
        } else {
            gap
        });
    }
}
