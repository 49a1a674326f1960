//! Gaps of an answer. An answer without gaps is complete; nothing is ever silently shorter.

use std::fmt;

use archive_model::{NodeId, VolumeName};

/// The longest reason, in characters: some come from nodes, and an answer has to fit into a message.
const LONGEST: usize = 300;

/// A node or volume that could not be asked, and why: the answer may lack its files. Unlike [`archive_model::Gap`], it
/// names no replica, for a monitor has one, and it says whether the node is only at work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaGap {
    /// The silent node; `None` if the repository has not named the nodes yet.
    pub node: Option<NodeId>,
    /// The volume; `None` if the whole node is silent.
    pub volume: Option<VolumeName>,
    /// The reason, for people.
    pub reason: String,
    /// Whether the node answers, and receives or moves the file just now.
    pub is_at_work: bool,
}

impl ReplicaGap {
    /// Returns the gap of a whole node.
    pub fn node_gap(node: &NodeId, reason: &impl fmt::Display) -> Self {
        Self {
            node: Some(node.clone()),
            volume: None,
            reason: shortened(reason),
            is_at_work: false,
        }
    }

    /// Returns the gap of one volume of a node.
    pub fn volume_gap(node: &NodeId, volume: VolumeName, reason: &impl fmt::Display) -> Self {
        Self {
            node: Some(node.clone()),
            volume: Some(volume),
            reason: shortened(reason),
            is_at_work: false,
        }
    }

    /// Returns the gap for nodes of which nothing is known.
    pub fn unknown_nodes() -> Self {
        Self {
            node: None,
            volume: None,
            reason: "the monitor was not told since its start which nodes the replica has; \
                     ask for its state with the known nodes"
                .to_owned(),
            is_at_work: false,
        }
    }
}

impl fmt::Display for ReplicaGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.node, &self.volume) {
            (Some(node), Some(volume)) => {
                write!(f, "node {node}, volume {volume}: {}", self.reason)
            }
            (Some(node), None) => write!(f, "node {node}: {}", self.reason),
            (None, _) => f.write_str(&self.reason),
        }
    }
}

fn shortened(reason: &impl fmt::Display) -> String {
    reason.to_string().chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a node can make an answer too large with an endless reason, or a gap is printed without its volume.
    #[test]
    fn a_reason_from_a_liar_does_not_grow() {
        let node = NodeId::new("a").unwrap();
        let gap = ReplicaGap::node_gap(&node, &"ä".repeat(100_000));
        assert_eq!(gap.reason.chars().count(), LONGEST);
        let gap = ReplicaGap::volume_gap(&node, VolumeName::new("v1"), &"not mounted");
        assert_eq!(gap.to_string(), "node a, volume v1: not mounted");
        assert!(
            ReplicaGap::unknown_nodes()
                .to_string()
                .contains("was not told")
        );
    }
}
