//! The settings of one replica.

use archive_model::{ReplicaId, ReplicaKind};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// A section `[[replica]]` of the settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct ReplicaSettings {
    /// The id of the replica.
    pub id: ReplicaId,
    /// Bytes, or names and checksums only.
    pub kind: ReplicaKind,
    /// Whether a store is acknowledged only when this replica has the file.
    #[serde(default = "required")]
    pub required: bool,
    /// The address of the replica's monitor, `host:port`; a checksum replica is its own monitor.
    pub monitor: String,
    /// The place where the replica stands. Nothing is decided by it, but `status` warns if all required copies stand in
    /// one place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// The medium on which the replica is kept: a note for people, by which nothing is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<String>,
}

const fn required() -> bool {
    true
}
