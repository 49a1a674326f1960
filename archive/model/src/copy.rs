//! A copy of a file in a replica: the place where it lies.

use std::fmt;

use serde::Serialize;

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
