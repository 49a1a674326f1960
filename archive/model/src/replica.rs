//! The places of copies: replicas, their nodes, the volumes of a node; and the id of one upload.
//!
//! All ids are plain text, chosen by people (replicas, nodes) or made once and permanent (volumes, uploads).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::closed_set::closed_set;

/// The reason why a string is not an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no {kind} id: 1–64 characters of a–z, 0–9 and inner `-` are")]
pub struct InvalidId {
    kind: &'static str,
    text: String,
}

/// Returns whether a text has only lower-case letters, digits and inner hyphens: safe in a path, a certificate's URI, a
/// metric label and a shell.
fn is_id(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'))
        && !text.starts_with('-')
        && !text.ends_with('-')
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Accepts 1–64 characters of `a–z`, `0–9` and inner `-`.
            ///
            /// # Errors
            ///
            /// [`InvalidId`] if the text is not an id.
            pub fn new(text: &str) -> Result<Self, InvalidId> {
                if is_id(text) {
                    Ok(Self(text.into()))
                } else {
                    Err(InvalidId { kind: $kind, text: text.chars().take(80).collect() })
                }
            }

            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                Self::new(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0.as_ref().to_owned()
            }
        }
    };
}

id!(
    /// The id of a replica: a complete copy of the archive in one place.
    ReplicaId,
    "replica"
);
id!(
    /// The id of a node: a machine of a replica.
    NodeId,
    "node"
);
id!(
    /// The id of a volume: a disk (file system) of a node, named permanently when it was initialised.
    VolumeId,
    "volume"
);
id!(
    /// The id of an upload: an attempt to store a file, from its first byte to its admission.
    UploadId,
    "upload"
);

/// The key of a node of the archive. A node id alone does not name it: two replicas may each have a `node-1`.
///
/// ```
/// use archive_model::{NodeId, NodeKey, ReplicaId};
///
/// let key = NodeKey {
///     replica: ReplicaId::new("two")?,
///     node: NodeId::new("two-1")?,
/// };
/// assert_eq!(key.to_string(), "node two-1 of replica two");
/// # Ok::<(), archive_model::InvalidId>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeKey {
    /// The replica of the node.
    pub replica: ReplicaId,
    /// The id of the node in that replica.
    pub node: NodeId,
}

impl fmt::Display for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { replica, node } = self;
        write!(f, "node {node} of replica {replica}")
    }
}

/// The key of a volume of the archive. A volume id alone does not name it: two nodes may each have a `disk-1`.
///
/// ```
/// use archive_model::{NodeId, ReplicaId, VolumeId, VolumeKey};
///
/// let key = VolumeKey {
///     replica: ReplicaId::new("two")?,
///     node: NodeId::new("two-1")?,
///     volume: VolumeId::new("disk-1")?,
/// };
/// assert_eq!(key.to_string(), "volume disk-1 of node two-1 of replica two");
/// assert!(VolumeId::new("Disk 1").is_err());
/// # Ok::<(), archive_model::InvalidId>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct VolumeKey {
    /// The replica of the node.
    pub replica: ReplicaId,
    /// The node that has the volume.
    pub node: NodeId,
    /// The id of the volume on that node.
    pub volume: VolumeId,
}

impl fmt::Display for VolumeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            replica,
            node,
            volume,
        } = self;
        write!(f, "volume {volume} of node {node} of replica {replica}")
    }
}

closed_set! {
    /// The kind of copy that a replica keeps.
    ReplicaKind {
        /// A replica that keeps the bytes, on one or many nodes.
        Bitarchive = "bitarchive",
        /// A replica that keeps names and checksums only, computed from the transferred bytes.
        Checksum = "checksum",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if an id is accepted that is not safe in a path, in a host name or on a command line.
    #[test]
    fn ids_are_safe_everywhere() {
        for good in ["one", "kb-3", "0", &"x".repeat(64)] {
            assert!(ReplicaId::new(good).is_ok(), "{good:?}");
        }
        for bad in [
            "",
            "-a",
            "a-",
            "One",
            "a b",
            "a/b",
            "ä",
            "a\n",
            &"x".repeat(65),
        ] {
            assert!(ReplicaId::new(bad).is_err(), "{bad:?}");
        }
    }

    /// Fails if the error of an invalid id lacks the kind of id that was expected, or the text that was given.
    #[test]
    fn the_error_says_what_was_asked_for() {
        let error = NodeId::new("Kb 3").unwrap_err().to_string();
        assert!(
            error.contains("node id") && error.contains("Kb 3"),
            "{error}"
        );
    }
}
