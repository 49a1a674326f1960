//! Why a node did not do what it was asked, by what the asker does next.

use archive_db::DbError;
use archive_durable::{DiskError, SidecarError, VolumeProblem};
use archive_model::{FileName, Root, UploadId, VolumeId};

use crate::checksum::RecordError;
use crate::volumes::VolumesError;

/// Why a node did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The node has no file of this name.
    #[error("this node has no file {0}")]
    NotFound(FileName),
    /// The name is taken on this node: compare the root, then choose another name or be content.
    #[error("{name} is already on this node, on volume {volume}")]
    Taken {
        /// The name.
        name: FileName,
        /// Where it is.
        volume: VolumeId,
        /// What it is; unknown for a file without a sidecar that was not hashed yet.
        root: Option<Root>,
    },
    /// Another upload of this name is under way: wait for it to end.
    #[error("{name} is being received by upload {upload}")]
    Busy {
        /// The name.
        name: FileName,
        /// The upload that has it.
        upload: UploadId,
    },
    /// The bytes are not those of the admission: send them again.
    #[error("{name}: {what} admitted as {admitted}, received {received}")]
    Mismatch {
        /// The name.
        name: FileName,
        /// `name`, `upload`, `size` or `root`.
        what: &'static str,
        /// What the admission says.
        admitted: String,
        /// What was received.
        received: String,
    },
    /// The admission cannot be believed.
    #[error("{name}: the admission is refused: {why}")]
    Admission {
        /// The name.
        name: FileName,
        /// Why.
        why: String,
    },
    /// What was read back from the disk is not what was received: the disk, or memory, cannot be trusted.
    #[error("{name}: read back from volume {volume}, it is not what was received")]
    ReadBack {
        /// The name.
        name: FileName,
        /// The volume.
        volume: VolumeId,
    },
    /// No volume has room for it.
    #[error("no volume has room for {0} bytes")]
    NoSpace(u64),
    /// The volume cannot be used now.
    #[error("volume {volume} is offline: {problem}")]
    Offline {
        /// The volume.
        volume: VolumeId,
        /// Why.
        problem: VolumeProblem,
    },
    /// The file's sidecar cannot be written or read.
    #[error("{name}: {error}")]
    Sidecar {
        /// The name.
        name: FileName,
        /// What is wrong with it.
        error: SidecarError,
    },
    /// A system call failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] DbError),
    /// The record of a checksum replica failed.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The volumes failed.
    #[error(transparent)]
    Volumes(#[from] VolumesError),
}
