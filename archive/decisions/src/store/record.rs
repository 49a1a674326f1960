//! The record that the admin data keeps of one file: enough to resume after a crash at any point.

use std::collections::{BTreeMap, BTreeSet};

use archive_model::{
    CopyPlace, FileName, NodeId, ReplicaId, ReplicaKind, ReplicaState, UploadId, VolumeId,
    VolumeKey,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Claim, Content};

/// A replica as the settings describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaSpec {
    /// The id of the replica.
    pub id: ReplicaId,
    /// Bytes, or names and checksums only.
    pub kind: ReplicaKind,
    /// Whether a store is acknowledged only when this replica has the file.
    pub required: bool,
}

/// A file, as the admin data know it. The record is written before it is acted on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// The name.
    pub name: FileName,
    /// The firmness with which the name is taken.
    pub phase: NamePhase,
    /// The upload that took the name; `None` while the name is free.
    pub upload: Option<RecordedUpload>,
    /// The admitted content, once all bytes have passed and equal the claim.
    pub content: Option<Content>,
    /// Every replica that shall have the file.
    pub replicas: BTreeMap<ReplicaId, ReplicaRecord>,
}

/// The degrees to which a name is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamePhase {
    /// The name is not taken: the row need not exist.
    Free,
    /// A depositor has begun; no replica has committed.
    Intent {
        /// The time at which the intent is given up, unless an upload runs or a replica may still commit.
        expires: Timestamp,
    },
    /// Every required replica has had the file once: the name means this content permanently, and the replicas that
    /// lack it now get it again.
    Bound,
    /// Every replica has the file, except those from which people have withdrawn it. Nothing is left to do.
    Complete,
    /// A replica has committed, so the name is bound and the other replicas get the content too; but the store was
    /// never complete: it was acknowledged to no depositor.
    Incomplete,
}

impl NamePhase {
    /// Whether a replica has committed under the name, which then means this content permanently.
    pub const fn is_bound(self) -> bool {
        match self {
            Self::Bound | Self::Complete | Self::Incomplete => true,
            Self::Free | Self::Intent { .. } => false,
        }
    }
}

/// The upload that took the name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedUpload {
    /// The name of the upload in `incoming/` on the nodes; kept when the depositor resumes.
    pub id: UploadId,
    /// The claim of the depositor that began the upload, with the digests that it added when it came back. What arrives
    /// is compared with this claim, also where another depositor of the same content sends it.
    pub claim: Claim,
}

/// The record of a file in one replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaRecord {
    /// Bytes, or names and checksums only.
    pub kind: ReplicaKind,
    /// Whether the answer to a depositor waits for this replica.
    pub required: bool,
    /// The progress; a failure keeps its reason until something better is known.
    pub state: ReplicaState,
    /// The time since when the state holds; of a completed copy, the completion that the receipt names.
    pub since: Timestamp,
    /// The node that takes or has the copy. Kept for retries as long as that node may have committed.
    pub node: Option<NodeId>,
    /// The volume of that node, once completed.
    pub volume: Option<VolumeId>,
    /// Whether the replica may hold the file: it was given the admission or held the file, and not every volume has
    /// said since that it does not hold it.
    pub sealed: bool,
}

impl FileRecord {
    /// Creates the record of a name that nobody has taken.
    ///
    /// # Errors
    ///
    /// [`UnusableReplicas`]: with no required bitarchive "acknowledged" would not mean that the bytes are anywhere.
    pub fn free_name(name: FileName, replicas: &[ReplicaSpec]) -> Result<Self, UnusableReplicas> {
        if !replicas
            .iter()
            .any(|spec| spec.required && spec.kind == ReplicaKind::Bitarchive)
        {
            return Err(UnusableReplicas::NoneRequired);
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = replicas.iter().find(|spec| !seen.insert(&spec.id)) {
            return Err(UnusableReplicas::Twice(twice.id.clone()));
        }
        let replicas = replicas
            .iter()
            .map(|spec| {
                (
                    spec.id.clone(),
                    ReplicaRecord::started_record(spec.kind, spec.required, Timestamp::UNIX_EPOCH),
                )
            })
            .collect();
        Ok(Self {
            name,
            phase: NamePhase::Free,
            upload: None,
            content: None,
            replicas,
        })
    }

    /// Whether every required replica has the bytes, verified: the only state in which a store is acknowledged. A
    /// replica whose copy people have withdrawn is not waited for.
    pub fn is_acknowledged(&self) -> bool {
        self.content.is_some()
            && self.donors().next().is_some()
            && self
                .replicas
                .values()
                .all(|replica| !replica.required || !replica.state.is_open())
    }

    /// Whether people have taken the file out of every replica: its name stays taken, and the archive copies
    /// nothing again by itself.
    pub fn is_withdrawn(&self) -> bool {
        self.replicas
            .values()
            .all(|replica| replica.state.is_withdrawn())
    }

    /// Whether nothing is left to wait for.
    pub const fn is_final(&self) -> bool {
        matches!(self.phase, NamePhase::Free | NamePhase::Complete)
    }

    /// Returns the replicas that can give the bytes to others.
    pub fn donors(&self) -> impl Iterator<Item = &ReplicaId> {
        self.replicas
            .iter()
            .filter(|(_, replica)| {
                replica.kind == ReplicaKind::Bitarchive && replica.state.is_completed()
            })
            .map(|(id, _)| id)
    }

    /// Returns the replicas that do not have the file yet, and shall.
    pub fn open_replicas(&self) -> impl Iterator<Item = (&ReplicaId, &ReplicaRecord)> {
        self.replicas
            .iter()
            .filter(|(_, replica)| replica.state.is_open())
    }
}

impl ReplicaRecord {
    /// Creates the record of a replica that knows nothing of the file yet.
    pub const fn started_record(kind: ReplicaKind, required: bool, since: Timestamp) -> Self {
        Self {
            kind,
            required,
            state: ReplicaState::UploadStarted,
            since,
            node: None,
            volume: None,
            sealed: false,
        }
    }

    /// Returns the key of the volume that has the copy, given the replica of this record; `None` if the volume is not
    /// known.
    pub fn volume_key(&self, replica: &ReplicaId) -> Option<VolumeKey> {
        self.copy_place().map(|place| place.in_replica(replica))
    }

    /// Returns the place of the copy; `None` if its node or its volume is not known.
    pub fn copy_place(&self) -> Option<CopyPlace> {
        Some(CopyPlace {
            node: self.node.clone()?,
            volume: self.volume.clone()?,
        })
    }
}

/// The reason why files cannot be stored into a set of replicas.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableReplicas {
    /// No required replica keeps bytes.
    #[error(
        "no required replica keeps bytes; set `required = true` for at least one replica of kind bitarchive"
    )]
    NoneRequired,
    /// Two replicas have the same id.
    #[error("replica {0} is configured twice; give every replica its own id")]
    Twice(ReplicaId),
}
