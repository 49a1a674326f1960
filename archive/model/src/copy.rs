//! A copy of a file in a replica: the place where it lies, how it is there, and why it does not count. The JSON is what
//! `holdfast list --replica --json` prints.
//!
//! Not promised: that a copy is still so. Its condition is as old as the last look of its node.

use std::fmt;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::anomaly::AnomalyClass;
use crate::checksum::Root;
use crate::closed_set::closed_set;
use crate::file_name::FileName;
use crate::groups::Groups;
use crate::replica::{NodeId, VolumeId};

/// A file on a volume of a node, as far as the node has looked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileCopy {
    /// The file.
    pub name: FileName,
    /// Its size in bytes: as admitted, or as it lies there where the node has no admission.
    pub size: u64,
    /// Its root as admitted. Of an unexpected file, that of its bytes when they were last read; absent if they never were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<Root>,
    /// Where it is, in a replica that the context names.
    #[serde(flatten)]
    pub place: CopyPlace,
    /// Its condition.
    #[serde(flatten)]
    pub condition: CopyCondition,
    /// When it was stored there.
    pub stored: Timestamp,
    /// When it was last read whole and found good. Absent: not since the catalog of its node was built.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<Timestamp>,
}

/// The condition of a copy, as far as its node has looked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "condition", rename_all = "kebab-case")]
pub enum CopyCondition {
    /// It is there; its bytes were good when they were last read.
    Present,
    /// Its node knows it, and it is not there.
    Missing,
    /// It is there, and is not what was admitted. Where both sets are empty, nobody has located the damage.
    Damaged {
        /// Groups that are not what was admitted.
        #[serde(skip_serializing_if = "Groups::is_empty")]
        corrupt: Groups,
        /// Groups that cannot be read.
        #[serde(skip_serializing_if = "Groups::is_empty")]
        unreadable: Groups,
    },
    /// It is there without a readable sidecar.
    Unexpected,
}

/// A volume of a node, in a replica that the context names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct CopyPlace {
    /// The node.
    pub node: NodeId,
    /// The volume of that node; a checksum replica has one, its `table`.
    pub volume: VolumeId,
}

impl fmt::Display for CopyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "volume {} of node {}", self.volume, self.node)
    }
}

impl CopyCondition {
    /// The condition in one word, as in listings and in JSON.
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
    /// Whether it is there and nothing is known to be wrong with it.
    pub fn is_present(&self) -> bool {
        self.condition == CopyCondition::Present
    }

    /// Whether its node knows it, and its file is gone.
    pub fn is_missing(&self) -> bool {
        self.condition == CopyCondition::Missing
    }

    /// Whether it is there without a readable sidecar.
    pub fn is_unexpected(&self) -> bool {
        self.condition == CopyCondition::Unexpected
    }

    /// Whether any of its bytes can be asked for.
    pub const fn is_readable(&self) -> bool {
        matches!(
            self.condition,
            CopyCondition::Present | CopyCondition::Damaged { .. }
        )
    }

    /// The groups that are known to be bad; none where the damage was not located.
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

    /// The groups of a file of `size` bytes that may be bad. Damage that was not located may be anywhere.
    pub fn damaged_groups(&self, size: u64) -> Groups {
        let (corrupt, unreadable) = self.damage(size);
        corrupt.union(&unreadable)
    }

    /// The groups that are corrupt, and those that cannot be read, in a file of `size` bytes. Damage that was not located
    /// may be anywhere.
    pub fn damage(&self, size: u64) -> (Groups, Groups) {
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
        /// It is in service, and nothing is filed of it.
        Good = "good",
        /// It is damaged, missing, or out of service.
        Bad = "bad",
        /// It does not count, and people have decided to live with that.
        Accepted = "accepted",
    }
}

/// The reason why a completed copy does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyDoubt {
    /// An anomaly of this kind is filed of it.
    Filed(AnomalyClass),
    /// Its volume, node or replica is out of service.
    Retired,
}

impl CopyDoubt {
    /// The reason in one word, as in JSON.
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
        let mut corrupt = Groups::none();
        corrupt.insert_one(1);
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
            damaged.damage(40_000),
            (Groups::all(40_000), Groups::none())
        );
        assert!(damaged.located_damage().is_empty());
        let present = copy(CopyCondition::Present);
        assert_eq!(present.damage(40_000), (Groups::none(), Groups::none()));
    }
}
