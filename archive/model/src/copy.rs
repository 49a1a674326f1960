//! A copy of a file in a replica: the place where it lies, and why it does not count.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::anomaly::AnomalyClass;
use crate::closed_set::closed_set;
use crate::replica::{NodeId, VolumeId};

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
