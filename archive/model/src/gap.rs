//! A part of the archive that an answer lacks, and why. An answer without gaps is complete. The JSON is that of `gaps`
//! in the output of commands.

use std::fmt;

use serde::Serialize;

use crate::replica::{NodeId, ReplicaId, VolumeId};

/// A part of the archive that an answer lacks.
///
/// ```
/// use archive_model::{Gap, NodeId, ReplicaId};
///
/// let two = ReplicaId::new("two")?;
/// let node = NodeId::new("two-1")?;
/// let gap = Gap::of_node(two, node, "it does not answer".to_owned());
/// assert_eq!(gap.to_string(), "node two-1: it does not answer");
/// assert_eq!(gap.volume_id(), None);
/// # Ok::<(), archive_model::InvalidId>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Gap {
    /// The replica that the gap is in.
    pub replica: ReplicaId,
    /// The node that did not answer; absent: the whole replica.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// The volume, where only a volume did not answer; absent: the whole node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeName>,
    /// The reason for people.
    pub reason: String,
}

/// A node that does not answer, or a volume of it, in a replica that the context names: nothing is concluded about its
/// files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SilentPart {
    /// The node.
    pub node: NodeId,
    /// The volume; `None` if the whole node is silent.
    pub volume: Option<VolumeId>,
}

/// A volume as its node names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum VolumeName {
    /// The id of the volume.
    Id(VolumeId),
    /// The path of a disk that bears no id, such as one that nobody has labelled yet.
    Path(String),
}

impl Gap {
    /// Makes the gap of a whole replica.
    pub const fn of_replica(replica: ReplicaId, reason: String) -> Self {
        Self {
            replica,
            node: None,
            volume: None,
            reason,
        }
    }

    /// Makes the gap of a node of a replica.
    pub const fn of_node(replica: ReplicaId, node: NodeId, reason: String) -> Self {
        Self {
            replica,
            node: Some(node),
            volume: None,
            reason,
        }
    }

    /// Makes the gap of a volume of a node.
    pub const fn of_volume(
        replica: ReplicaId,
        node: NodeId,
        volume: VolumeName,
        reason: String,
    ) -> Self {
        Self {
            replica,
            node: Some(node),
            volume: Some(volume),
            reason,
        }
    }

    /// Returns the id of the volume. Absent: the gap is the whole node, or a disk that bears no id.
    pub fn volume_id(&self) -> Option<&VolumeId> {
        self.volume.as_ref().and_then(VolumeName::id)
    }

    /// Returns the node or volume that did not answer. Absent: the gap names no node. For a disk that bears no id, the
    /// whole node is silent.
    pub fn silent_part(&self) -> Option<SilentPart> {
        self.node.clone().map(|node| SilentPart {
            node,
            volume: self.volume_id().cloned(),
        })
    }
}

impl VolumeName {
    /// Reads an id; every other text is taken as a path.
    pub fn new(text: &str) -> Self {
        VolumeId::new(text).map_or_else(|_no_id| Self::Path(text.to_owned()), Self::Id)
    }

    /// Returns the id of the volume, if it bears one.
    pub const fn id(&self) -> Option<&VolumeId> {
        match self {
            Self::Id(id) => Some(id),
            Self::Path(_) => None,
        }
    }
}

impl fmt::Display for VolumeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Path(path) => f.pad(path),
        }
    }
}

/// Shows the gap without its replica, which the context names.
impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.node, &self.volume) {
            (None, _) => f.write_str(&self.reason),
            (Some(node), None) => write!(f, "node {node}: {}", self.reason),
            (Some(node), Some(volume)) => {
                write!(f, "node {node}, volume {volume}: {}", self.reason)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a disk that bears no id cannot be named, or a script finds another field.
    #[test]
    fn gap_names_labelled_volume_or_path() {
        let gap = |volume: Option<&str>| Gap {
            volume: volume.map(VolumeName::new),
            ..Gap::of_node(
                "one".parse().unwrap(),
                "n".parse().unwrap(),
                "off".to_owned(),
            )
        };
        let json = |gap: &Gap| serde_json::to_string(gap).unwrap();
        let disk = gap(Some("/disks/1"));
        assert_eq!(disk.volume_id(), None);
        assert_eq!(disk.silent_part(), gap(None).silent_part());
        assert_eq!(disk.to_string(), "node n, volume /disks/1: off");
        assert_eq!(
            json(&disk),
            r#"{"replica":"one","node":"n","volume":"/disks/1","reason":"off"}"#
        );
        let volume = gap(Some("v"));
        assert_eq!(volume.volume_id().map(VolumeId::as_str), Some("v"));
        assert_eq!(gap(None).to_string(), "node n: off");
        let all = Gap::of_replica("one".parse().unwrap(), "off".to_owned());
        assert_eq!(all.to_string(), "off");
        assert_eq!(all.silent_part(), None);
        assert_eq!(json(&all), r#"{"replica":"one","reason":"off"}"#);
    }
}
