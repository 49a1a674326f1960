//! Why a node did not do what it was asked, by what the asker does next.

use std::path::PathBuf;

use archive_db::DbError;
use archive_durable::{DiskError, SidecarError, VolumeProblem};
use archive_model::{FileName, Mode, Root, UploadId, VolumeId};
use jiff::Timestamp;

use crate::checksum::RecordError;
use crate::volumes::VolumesError;
use crate::work::Work;

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
    /// Somebody works on the file: ask again later.
    #[error("{name} is being {work}; ask again when that is done")]
    AtWork {
        /// The name.
        name: FileName,
        /// What is done with it.
        work: Work,
    },
    /// The file is on several volumes of this node.
    #[error("{0} is on several volumes of this node; name one")]
    Several(FileName),
    /// A copy cannot be mended so; the copy was not touched.
    #[error("{name}: not mended: {why}")]
    NotMended {
        /// The name.
        name: FileName,
        /// Why, and what to do.
        why: String,
    },
    /// What is brought for a mend is not what was announced; the copy was not touched.
    #[error("{name}: not mended: at byte {offset}: {why}")]
    Segment {
        /// The name.
        name: FileName,
        /// Where in the file.
        offset: u64,
        /// What is wrong there.
        why: String,
    },
    /// The caller stopped it.
    #[error("{0}: stopped before the end")]
    Stopped(FileName),
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
    /// The node, or the volume, takes nothing: use another, or let people set it to read-write.
    #[error("{what} is {mode} and takes no new files")]
    TakesNothing {
        /// `node …` or `volume …`.
        what: String,
        /// Its mode.
        mode: Mode,
    },
    /// The copy is not the one that the caller named. What it is, is not said.
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
        /// What was asked for.
        id: String,
    },
    /// What was asked cannot be done with this item.
    #[error("item {id} of the attic of volume {volume}: {why}")]
    Attic {
        /// The volume.
        volume: VolumeId,
        /// The item.
        id: String,
        /// Why not.
        why: String,
    },
    /// The item must not be destroyed yet.
    #[error("item {id} of the attic of volume {volume} is kept until {until} (`attic.min_age`)")]
    TooYoung {
        /// The volume.
        volume: VolumeId,
        /// The item.
        id: String,
        /// When it is old enough.
        until: Timestamp,
    },
    /// The brake.
    #[error(
        "this node lets go no more than {most} files an hour (`{setting}` in its settings), whoever asks; the next at {again}"
    )]
    TooManyRemovals {
        /// Which setting says so.
        setting: &'static str,
        /// How many are let go within an hour.
        most: u64,
        /// When the next may be.
        again: Timestamp,
    },
    /// What was removed within the hour is not known any more: nothing is removed.
    #[error("{}: {what}; look who damaged it, then delete it", .path.display())]
    Removals {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// It cannot be taken in: it has its admission already, and another was given.
    #[error("{name} on volume {volume} is not unexpected: it has an admission of its own")]
    Admitted {
        /// The name.
        name: FileName,
        /// The volume.
        volume: VolumeId,
    },
    /// A bug.
    #[error("a bug: {0}")]
    Bug(String),
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
