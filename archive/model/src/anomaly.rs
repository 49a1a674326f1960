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
        /// On disk and not in the admin data.
        Unexpected = "unexpected",
        /// The same root on two nodes of one replica.
        Duplicate = "duplicate",
        /// Another root under this name.
        Conflicting = "conflicting",
        /// All reachable copies agree on a root that is not the admitted one.
        Disputed = "disputed",
        /// Some bytes are good in no replica.
        Lost = "lost",
        /// Nobody could look.
        Unverified = "unverified",
        /// On its way.
        Transient = "transient",
        /// Not there, and its store was never complete.
        Incomplete = "incomplete",
    }
}

closed_set! {
    /// The state of an anomaly that was filed.
    AnomalyState {
        /// It is so, as far as is known.
        Open = "open",
        /// Two persons have said that it must be lived with.
        Accepted = "accepted",
        /// It is not so any more.
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
        /// A read that met it.
        Read = "read",
    }
}

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

/// An anomaly as it is filed. The JSON is what `holdfast anomalies --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FiledAnomaly {
    /// Names it, also after it is closed.
    pub id: String,
    /// The file.
    pub file: FileName,
    /// The replica.
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
    /// The node, where one is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// The volume, where one is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeId>,
    /// When it was first seen.
    pub since: Timestamp,
    /// The state of the anomaly.
    pub state: AnomalyState,
    /// The act that found it.
    pub found_by: Finder,
    /// When it was closed or accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// The reason why it was closed or accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_why: Option<String>,
    /// The reason why it is not repaired yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
}

impl AnomalyKind {
    /// The kind without its details.
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
    /// Whether no person asked for the look that found it.
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
