//! Anomalies: the things that can be wrong with one file in one replica, which checks file and repairs close.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Groups, NodeId, Root, VolumeId};

/// The kinds of anomaly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnomalyKind {
    /// Every volume answered and none has the file.
    Missing,
    /// These groups are not what was admitted.
    Corrupt(Groups),
    /// These groups cannot be read (the disk says EIO).
    Unreadable(Groups),
    /// On disk and not in the admin data.
    Unexpected,
    /// The same root on two nodes of one replica.
    Duplicate(Vec<NodeId>),
    /// Another root under this name in this replica.
    Conflicting(Root),
    /// All reachable copies agree on a root that is not the admitted one: nothing automatic.
    Disputed(Root),
    /// These byte ranges are good in no replica.
    Lost(Vec<(u64, u64)>),
    /// Nobody could look: the node, or one of its volumes, did not answer.
    Unverified {
        /// The silent node.
        node: NodeId,
        /// The volume that is offline, where only that is.
        volume: Option<VolumeId>,
    },
    /// On its way: stored, repaired or moved just now.
    Transient,
    /// Every volume answered and none has the file, whose store was never complete: no depositor was told that the
    /// archive has it.
    Incomplete,
}

impl AnomalyKind {
    /// The kind in one lower-case word, as in metrics and listings.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Corrupt(_) => "corrupt",
            Self::Unreadable(_) => "unreadable",
            Self::Unexpected => "unexpected",
            Self::Duplicate(_) => "duplicate",
            Self::Conflicting(_) => "conflicting",
            Self::Disputed(_) => "disputed",
            Self::Lost(_) => "lost",
            Self::Unverified { .. } => "unverified",
            Self::Transient => "transient",
            Self::Incomplete => "incomplete",
        }
    }
}

impl fmt::Display for AnomalyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self {
            Self::Corrupt(groups) | Self::Unreadable(groups) => write_groups(f, groups),
            Self::Duplicate(nodes) => nodes.iter().try_for_each(|node| write!(f, " {node}")),
            Self::Conflicting(root) | Self::Disputed(root) => write!(f, " {root}"),
            Self::Lost(ranges) => ranges
                .iter()
                .try_for_each(|(start, end)| write!(f, " bytes {start}-{}", end.saturating_sub(1))),
            Self::Unverified {
                node,
                volume: Some(volume),
            } => write!(f, " node {node} volume {volume}"),
            Self::Unverified { node, volume: None } => write!(f, " node {node}"),
            Self::Missing | Self::Unexpected | Self::Transient | Self::Incomplete => Ok(()),
        }
    }
}

fn write_groups(f: &mut fmt::Formatter<'_>, groups: &Groups) -> fmt::Result {
    f.write_str(" groups")?;
    let mut separator = ' ';
    for range in groups.ranges() {
        match range.end - range.start {
            1 => write!(f, "{separator}{}", range.start)?,
            _ => write!(f, "{separator}{}-{}", range.start, range.end - 1)?,
        }
        separator = ',';
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_which_groups() {
        let mut groups = Groups::none();
        groups.insert_one(3);
        groups.insert(7..10);
        assert_eq!(
            AnomalyKind::Corrupt(groups).to_string(),
            "corrupt groups 3,7-9"
        );
        assert_eq!(
            AnomalyKind::Lost(vec![(16384, 32768)]).to_string(),
            "lost bytes 16384-32767"
        );
        assert_eq!(
            AnomalyKind::Lost(vec![(0, 0)]).to_string(),
            "lost bytes 0-0",
            "nothing writes this; an export may have it"
        );
        assert_eq!(AnomalyKind::Missing.to_string(), "missing");
    }
}
