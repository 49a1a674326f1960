//! The errors of a node, by what the caller does next.

use std::path::PathBuf;

use archive_db::DbError;
use archive_durable::{DiskError, SidecarError, VolumeProblem};
use archive_model::{FileName, Mode, Root, UploadId, VolumeId};
use jiff::Timestamp;

use crate::checksum::ChecksumTableError;
use crate::volumes::VolumesError;
use crate::work::Work;

/// The reason why a node did not do what it was asked.
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
        /// The volume that has the copy.
        volume: VolumeId,
        /// The root of the copy; unknown for a file without a sidecar that was not hashed yet.
        root: Option<Root>,
    },
    /// The name is being received by another upload: wait for that to end.
    #[error("{name} is being received by upload {upload}")]
    Busy {
        /// The name.
        name: FileName,
        /// The upload that receives the name.
        upload: UploadId,
    },
    /// Other work on the file is under way: ask again later.
    #[error("{name} is being {work}; ask again when that is done")]
    AtWork {
        /// The name.
        name: FileName,
        /// The work that is under way.
        work: Work,
    },
    /// The file is on several volumes of this node.
    #[error("{0} is on several volumes of this node; name one")]
    Several(FileName),
    /// A copy cannot be mended with these groups; it was not touched.
    #[error("{name}: not mended: {why}")]
    NotMended {
        /// The name.
        name: FileName,
        /// The reason, and what to do.
        why: String,
    },
    /// The segments of a mend are not those that were announced; the copy was not touched.
    #[error("{name}: not mended: at byte {offset}: {why}")]
    Segment {
        /// The name.
        name: FileName,
        /// The offset in the file.
        offset: u64,
        /// The problem at that offset.
        why: String,
    },
    /// The caller stopped the work.
    #[error("{0}: stopped before the end")]
    Stopped(FileName),
    /// The bytes are not those of the admission: send them again.
    #[error("{name}: {what} admitted as {admitted}, received {received}")]
    Mismatch {
        /// The name.
        name: FileName,
        /// The part that differs: `name`, `upload`, `size` or `root`.
        what: &'static str,
        /// The value in the admission.
        admitted: String,
        /// The value that was received.
        received: String,
    },
    /// The admission cannot be believed.
    #[error("{name}: the admission is refused: {why}")]
    Admission {
        /// The name.
        name: FileName,
        /// The reason.
        why: String,
    },
    /// The bytes that were read back from the disk are not those that were received: the disk, or memory, cannot be
    /// trusted.
    #[error("{name}: read back from volume {volume}, it is not what was received")]
    ReadBack {
        /// The name.
        name: FileName,
        /// The volume.
        volume: VolumeId,
    },
    /// No volume has room for the file.
    #[error("no volume has room for {0} bytes")]
    NoSpace(u64),
    /// The node, or the volume, takes no new files: use another one, or let people set it to read-write.
    #[error("{what} is {mode} and takes no new files")]
    TakesNothing {
        /// The node or the volume, as `node …` or `volume …`.
        what: String,
        /// The mode of the node or volume.
        mode: Mode,
    },
    /// The copy is not the one that the caller named. The checksum of the copy is not revealed.
    #[error(
        "{name} on volume {volume} does not have the checksum that was named; nothing was moved"
    )]
    OtherCopy {
        /// The name.
        name: FileName,
        /// The volume.
        volume: VolumeId,
    },
    /// The attic of the volume has no such item.
    #[error("the attic of volume {volume} has no item {id}")]
    NoItem {
        /// The volume.
        volume: VolumeId,
        /// The id that was asked for.
        id: String,
    },
    /// The request cannot be done with this item.
    #[error("item {id} of the attic of volume {volume}: {why}")]
    Attic {
        /// The volume.
        volume: VolumeId,
        /// The item.
        id: String,
        /// The reason.
        why: String,
    },
    /// The item must not be destroyed yet.
    #[error("item {id} of the attic of volume {volume} is kept until {until} (`attic.min_age`)")]
    TooYoung {
        /// The volume.
        volume: VolumeId,
        /// The item.
        id: String,
        /// The time at which the item is old enough.
        until: Timestamp,
    },
    /// The brake on removals refuses.
    #[error(
        "this node removes at most {most} files an hour for all callers together (`{setting}` in its settings); ask again at {again}"
    )]
    TooManyRemovals {
        /// The setting with the limit.
        setting: &'static str,
        /// The number of removals within an hour.
        most: u64,
        /// The time of the next removal that is allowed.
        again: Timestamp,
    },
    /// The count of removals is damaged: nothing is removed.
    #[error("{}: {what}; look who damaged it, then delete it", .path.display())]
    Removals {
        /// The file.
        path: PathBuf,
        /// The problem.
        what: String,
    },
    /// The file cannot be adopted: it has an admission already, and another one was given.
    #[error("{name} on volume {volume} is not unexpected: it has an admission of its own")]
    Admitted {
        /// The name.
        name: FileName,
        /// The volume.
        volume: VolumeId,
    },
    /// A bug of this crate.
    #[error("a bug: {0}")]
    Bug(String),
    /// The volume is offline.
    #[error("volume {volume} is offline: {problem}")]
    Offline {
        /// The volume.
        volume: VolumeId,
        /// The reason.
        problem: VolumeProblem,
    },
    /// The file's sidecar cannot be written or read.
    #[error("{name}: {error}")]
    Sidecar {
        /// The name.
        name: FileName,
        /// The problem.
        error: SidecarError,
    },
    /// A system call failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] DbError),
    /// The table of record of a checksum replica failed.
    #[error(transparent)]
    ChecksumTable(#[from] ChecksumTableError),
    /// The volumes failed.
    #[error(transparent)]
    Volumes(#[from] VolumesError),
}

impl NodeError {
    /// Returns the error about an item of the attic of a volume, with the reason.
    pub(crate) fn attic_problem(volume: &VolumeId, id: &str, why: String) -> Self {
        Self::Attic {
            volume: volume.clone(),
            id: id.to_owned(),
            why,
        }
    }
}
