//! A copy of a file in a replica: its place, its condition, and the reason why it does not count. The JSON is that of
//! `holdfast list --replica --json`.
//!
//! Not promised: that a copy is still in its condition, which is as old as the last look of its node.

use std::fmt;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::anomaly::AnomalyClass;
use crate::checksum::Root;
use crate::closed_set::closed_set;
use crate::file_name::FileName;
use crate::groups::Groups;
use crate::replica::{NodeId, ReplicaId, VolumeId, VolumeKey};

/// A file on a volume of a node, as far as the node has looked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileCopy {
    /// The name of the file.
    pub name: FileName,
    /// The size of the file in bytes: as admitted, or as it lies on disk where the node has no admission.
    pub size: u64,
    /// The root of the file as admitted. Of an unexpected file, the root of its bytes when they were last read; absent
    /// if they never were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<Root>,
    /// The place of the copy, in a replica that the context names.
    #[serde(flatten)]
    pub place: CopyPlace,
    /// The condition of the copy.
    #[serde(flatten)]
    pub condition: CopyCondition,
    /// When the copy was stored at this place.
    pub stored: Timestamp,
    /// When the copy was last read whole and found good. Absent: not since the catalog of its node was built.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<Timestamp>,
}

/// The condition of a copy, as far as its node has looked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "condition", rename_all = "kebab-case")]
pub enum CopyCondition {
    /// The copy is on disk; its bytes were good when they were last read.
    Present,
    /// The node knows the copy, and its file is absent from the disk.
    Missing,
    /// The copy is on disk, and is not what was admitted. Where both sets are empty, nobody has located the damage.
    Damaged {
        /// Groups that are not what was admitted.
        #[serde(skip_serializing_if = "Groups::is_empty")]
        corrupt: Groups,
        /// Groups that cannot be read.
        #[serde(skip_serializing_if = "Groups::is_empty")]
        unreadable: Groups,
    },
    /// The file is on disk without a readable sidecar.
    Unexpected,
}

/// A volume of a node, in a replica that the context names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct CopyPlace {
    /// The node that has the copy.
    pub node: NodeId,
    /// The volume of that node; a checksum replica has only one, its `table`.
    pub volume: VolumeId,
}

impl CopyPlace {
    /// The volume by its whole name, for where no context names the replica.
    pub fn in_replica(&self, replica: &ReplicaId) -> VolumeKey {
        VolumeKey {
            replica: replica.clone(),
            node: self.node.clone(),
            volume: self.volume.clone(),
        }
    }

    /// The copy at this place, for a call that names it.
    pub const fn copy_selector<'a>(&'a self, replica: &'a ReplicaId) -> CopySelector<'a> {
        CopySelector {
            replica,
            node: &self.node,
            volume: Some(&self.volume),
        }
    }
}

/// The copy of a file that a call is about, in an archive.
#[derive(Clone, Copy, Debug)]
pub struct CopySelector<'a> {
    /// The replica that has the copy.
    pub replica: &'a ReplicaId,
    /// The node that has the copy.
    pub node: &'a NodeId,
    /// The volume that has the copy. Absent: the only copy of the file on the node.
    pub volume: Option<&'a VolumeId>,
}

impl fmt::Display for CopyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "volume {} of node {}", self.volume, self.node)
    }
}

impl CopyCondition {
    /// Returns the condition in one word, as in listings and in JSON.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Missing => "missing",
            Self::Damaged { .. } => "damaged",
            Self::Unexpected => "unexpected",
        }
    }
}

impl FileCopy {
    /// Returns whether the copy is on disk and nothing is known to be wrong with it.
    pub fn is_present(&self) -> bool {
        self.condition == CopyCondition::Present
    }

    /// Returns whether the node knows the copy, and its file is absent.
    pub fn is_missing(&self) -> bool {
        self.condition == CopyCondition::Missing
    }

    /// Returns whether the file is on disk without a readable sidecar.
    pub fn is_unexpected(&self) -> bool {
        self.condition == CopyCondition::Unexpected
    }

    /// Returns whether any bytes of the copy can be asked for.
    pub const fn is_readable(&self) -> bool {
        matches!(
            self.condition,
            CopyCondition::Present | CopyCondition::Damaged { .. }
        )
    }

    /// Returns the groups of the copy that are known to be bad; none where the damage was not located.
    pub fn located_damage(&self) -> Groups {
        match &self.condition {
            CopyCondition::Damaged {
                corrupt,
                unreadable,
            } => corrupt.union(unreadable),
            CopyCondition::Present | CopyCondition::Missing | CopyCondition::Unexpected => {
                Groups::none()
            }
        }
    }

    /// Returns the groups of a file of `size` bytes that may be bad. Damage that was not located may be anywhere.
    pub fn damaged_groups(&self, size: u64) -> Groups {
        let (corrupt, unreadable) = self.damage_by_kind(size);
        corrupt.union(&unreadable)
    }

    /// Returns the groups that are corrupt, and those that cannot be read, in a file of `size` bytes. Damage that was
    /// not located may be anywhere: all groups are then corrupt.
    pub fn damage_by_kind(&self, size: u64) -> (Groups, Groups) {
        match &self.condition {
            CopyCondition::Damaged {
                corrupt,
                unreadable,
            } if corrupt.is_empty() && unreadable.is_empty() => (Groups::all(size), Groups::none()),
            CopyCondition::Damaged {
                corrupt,
                unreadable,
            } => (corrupt.clone(), unreadable.clone()),
            CopyCondition::Present | CopyCondition::Missing | CopyCondition::Unexpected => {
                (Groups::none(), Groups::none())
            }
        }
    }
}

closed_set! {
    /// Whether a completed copy counts, by what is filed of it and what is out of service.
    CopyStanding {
        /// The copy is in service, no anomaly of it is filed, and its node answers for its volume now.
        Good = "good",
        /// Nothing is known against the copy, and its node or volume is silent now.
        Unverified = "unverified",
        /// The copy is damaged, missing, or out of service.
        Bad = "bad",
        /// The copy does not count, and people have accepted that.
        Accepted = "accepted",
    }
}

/// The reason why a completed copy does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyDoubt {
    /// An anomaly of this kind is filed of the copy.
    Filed(AnomalyClass),
    /// The volume, node or replica of the copy is out of service.
    Retired,
}

impl CopyDoubt {
    /// Returns the reason in one word, as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Filed(class) => class.as_str(),
            Self::Retired => "retired",
        }
    }
}

impl Serialize for CopyDoubt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(condition: CopyCondition) -> FileCopy {
        FileCopy {
            name: "a".parse().unwrap(),
            size: 40_000,
            root: None,
            place: CopyPlace {
                node: "n".parse().unwrap(),
                volume: "v".parse().unwrap(),
            },
            condition,
            stored: Timestamp::UNIX_EPOCH,
            verified: None,
        }
    }

    /// Fails if a script that reads a copy in JSON finds another field, order or word.
    #[test]
    fn json_has_documented_fields() {
        let corrupt = Groups::from_iter([1]);
        let damaged = CopyCondition::Damaged {
            corrupt,
            unreadable: Groups::none(),
        };
        for (condition, json) in [
            (CopyCondition::Present, r#""condition":"present""#),
            (CopyCondition::Missing, r#""condition":"missing""#),
            (damaged, r#""condition":"damaged","corrupt":[[1,2]]"#),
            (CopyCondition::Unexpected, r#""condition":"unexpected""#),
        ] {
            let word = condition.as_str();
            assert!(json.contains(word));
            assert_eq!(
                serde_json::to_string(&copy(condition)).unwrap(),
                format!(
                    r#"{{"name":"a","size":40000,"node":"n","volume":"v",{json},"stored":"1970-01-01T00:00:00Z"}}"#
                )
            );
        }
    }

    /// Fails if damage that nobody has located is taken for no damage.
    #[test]
    fn damage_that_is_not_located_is_everywhere() {
        let damaged = copy(CopyCondition::Damaged {
            corrupt: Groups::none(),
            unreadable: Groups::none(),
        });
        assert_eq!(
            damaged.damage_by_kind(40_000),
            (Groups::all(40_000), Groups::none())
        );
        assert!(damaged.located_damage().is_empty());
        let present = copy(CopyCondition::Present);
        assert_eq!(
            present.damage_by_kind(40_000),
            (Groups::none(), Groups::none())
        );
    }
}
