//! Anomalies: the things that can be wrong with one file in one replica, which checks file and repairs close.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::closed_set::closed_set;
use crate::{FileName, Groups, NodeId, ReplicaId, Root, VolumeId};

closed_set! {
    /// The kind of an anomaly without its details; [`AnomalyKind`] says what each means.
    AnomalyClass {
        /// Every volume answered and none has the file.
        Missing = "missing",
        /// Some groups are not what was admitted.
        Corrupt = "corrupt",
        /// Some groups cannot be read.
        Unreadable = "unreadable",
        /// The file is on disk and not in the admin data.
        Unexpected = "unexpected",
        /// The replica has the same root on two nodes.
        Duplicate = "duplicate",
        /// The replica has the file with another root than the admitted one.
        Conflicting = "conflicting",
        /// All reachable copies agree on a root that is not the admitted one.
        Disputed = "disputed",
        /// Some bytes are good in no replica.
        Lost = "lost",
        /// No node could look.
        Unverified = "unverified",
        /// The file is on its way.
        Transient = "transient",
        /// The file is not there, and its store was never complete.
        Incomplete = "incomplete",
    }
}

closed_set! {
    /// The state of an anomaly that was filed.
    AnomalyState {
        /// The anomaly persists, as far as the repository knows.
        Open = "open",
        /// Two persons have said that it must be lived with.
        Accepted = "accepted",
        /// The anomaly has ended.
        Closed = "closed",
    }
}

closed_set! {
    /// The finder of an anomaly.
    Finder {
        /// A node, reading its own disk.
        Scrub = "scrub",
        /// A check that was due.
        ScheduledCheck = "scheduled-check",
        /// A check that a person asked for.
        Check = "check",
        /// A read of the file that met the anomaly.
        Read = "read",
    }
}

/// The kinds of anomaly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnomalyKind {
    /// Every volume answered and none has the file.
    Missing,
    /// The groups that are not what was admitted.
    Corrupt(Groups),
    /// The groups that cannot be read (the disk says EIO).
    Unreadable(Groups),
    /// The file is on disk and not in the admin data.
    Unexpected,
    /// The nodes of one replica that have the same root.
    Duplicate(Vec<NodeId>),
    /// The other root that this replica has under the name.
    Conflicting(Root),
    /// The root on which all reachable copies agree, and which is not the admitted one: nothing is repaired
    /// automatically.
    Disputed(Root),
    /// The byte ranges that are good in no replica.
    Lost(Vec<(u64, u64)>),
    /// No node could look: the node, or one of its volumes, did not answer.
    Unverified {
        /// The silent node.
        node: NodeId,
        /// The volume that is offline; absent if the whole node is silent.
        volume: Option<VolumeId>,
    },
    /// The file is on its way: stored, repaired or moved just now.
    Transient,
    /// Every volume answered and none has the file, whose store was never complete: it was acknowledged to no
    /// depositor.
    Incomplete,
}

/// An anomaly as it is filed. The JSON is what `holdfast anomalies --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FiledAnomaly {
    /// The id of the anomaly, which stays valid after it is closed.
    pub id: String,
    /// The file that the anomaly is about.
    pub file: FileName,
    /// The replica that the anomaly is about.
    pub replica: ReplicaId,
    /// The kind of the anomaly, in one word.
    pub kind: AnomalyClass,
    /// The description of the anomaly, for people.
    pub what: String,
    /// The groups that are corrupt or unreadable.
    #[serde(skip_serializing_if = "Groups::is_empty")]
    pub groups: Groups,
    /// The byte ranges that are lost, half-open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<(u64, u64)>,
    /// The size of the file in bytes.
    pub size: u64,
    /// The node that the anomaly is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// The volume that the anomaly is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeId>,
    /// When the anomaly was first seen.
    pub since: Timestamp,
    /// The state of the anomaly.
    pub state: AnomalyState,
    /// The act that found the anomaly.
    pub found_by: Finder,
    /// When the anomaly was closed or accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// The reason why the anomaly was closed or accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_why: Option<String>,
    /// The reason why the anomaly is not repaired yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
}

impl AnomalyKind {
    /// Returns the kind without its details.
    pub const fn class(&self) -> AnomalyClass {
        match self {
            Self::Missing => AnomalyClass::Missing,
            Self::Corrupt(_) => AnomalyClass::Corrupt,
            Self::Unreadable(_) => AnomalyClass::Unreadable,
            Self::Unexpected => AnomalyClass::Unexpected,
            Self::Duplicate(_) => AnomalyClass::Duplicate,
            Self::Conflicting(_) => AnomalyClass::Conflicting,
            Self::Disputed(_) => AnomalyClass::Disputed,
            Self::Lost(_) => AnomalyClass::Lost,
            Self::Unverified { .. } => AnomalyClass::Unverified,
            Self::Transient => AnomalyClass::Transient,
            Self::Incomplete => AnomalyClass::Incomplete,
        }
    }
}

impl Finder {
    /// Returns whether the anomaly was found without a person asking: by a scrub or a scheduled check.
    pub const fn is_automatic(self) -> bool {
        matches!(self, Self::Scrub | Self::ScheduledCheck)
    }
}

impl fmt::Display for AnomalyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.class().as_str())?;
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

    /// Fails if JSON and listings use two words for one kind, or the metric lacks one.
    #[test]
    fn class_is_one_word_everywhere() {
        assert_eq!(AnomalyClass::ALL.len(), 11);
        for class in AnomalyClass::ALL {
            assert_eq!(serde_json::to_value(class).unwrap(), class.as_str());
        }
        let silent = AnomalyKind::Unverified {
            node: NodeId::new("n").unwrap(),
            volume: None,
        };
        for kind in [AnomalyKind::Lost(vec![]), AnomalyKind::Incomplete, silent] {
            assert!(kind.to_string().starts_with(kind.class().as_str()));
        }
    }

    /// Fails if people are shown a range whose end is excluded, or an empty range out of an export panics.
    #[test]
    fn people_read_which_groups() {
        let groups = Groups::from_iter([3, 7, 8, 9]);
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
