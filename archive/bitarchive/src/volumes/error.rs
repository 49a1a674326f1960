//! The errors of volumes.

use std::path::PathBuf;

use archive_durable::{DiskError, VolumeProblem};
use archive_model::VolumeId;

/// The reason why the node cannot work with its volumes, or refuses an order.
#[derive(Debug, thiserror::Error)]
pub enum VolumesError {
    /// The memory of the node is damaged: it can no longer distinguish a wrong disk from the right one.
    #[error("{}: {what}; restore it, or delete it to accept the disks as they are mounted now", .path.display())]
    Memory {
        /// The file.
        path: PathBuf,
        /// The problem.
        what: String,
    },
    /// A path that no volume can be at.
    #[error("{}: {why}", .path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// The problem.
        why: &'static str,
    },
    /// The path holds something else than an empty directory.
    #[error("{}: not an empty directory; a volume is initialised on an empty disk", .0.display())]
    NotEmpty(PathBuf),
    /// The disk is a volume already.
    #[error("{}: this is volume {volume} already; empty the disk first, or adopt it with `holdfast volume adopt`", .path.display())]
    Labelled {
        /// The path.
        path: PathBuf,
        /// The volume that the disk is.
        volume: VolumeId,
    },
    /// A disk that cannot be adopted.
    #[error("{}: {problem}", .path.display())]
    Unusable {
        /// The path.
        path: PathBuf,
        /// The problem.
        problem: VolumeProblem,
    },
    /// The path lies within another volume or the node's data, or the other way round.
    #[error("{} and {} lie one within the other; give each volume a disk of its own", .path.display(), .other.display())]
    Nested {
        /// The path.
        path: PathBuf,
        /// The other path of the two, one of which lies in the other.
        other: PathBuf,
    },
    /// The disk is not the volume that the caller named.
    #[error("this is volume {found}, not {expected}; nothing was done")]
    OtherVolume {
        /// The volume that the disk is.
        found: VolumeId,
        /// The volume that the caller named.
        expected: VolumeId,
    },
    /// The id is taken.
    #[error("this node has, or had, a volume {0}; give the new one another id")]
    Known(VolumeId),
    /// A second disk with the label of one that is in use.
    #[error("volume {volume} is in use at {}; unmount that disk first", .path.display())]
    InUse {
        /// The volume.
        volume: VolumeId,
        /// The path at which the volume in use is mounted.
        path: PathBuf,
    },
    /// The node has no volume with that id.
    #[error("this node has no volume {0}")]
    Unknown(VolumeId),
    /// The volume is retired permanently.
    #[error("volume {0}: {problem}", problem = VolumeProblem::Retired)]
    Retired(VolumeId),
    /// A system call failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}
