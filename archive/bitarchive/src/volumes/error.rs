//! Why a node cannot work with its volumes.

use std::path::PathBuf;

use archive_durable::{DiskError, VolumeProblem};
use archive_model::VolumeId;

/// Why the node cannot work with its volumes, or does not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum VolumesError {
    /// What the node remembers is damaged: nothing tells a wrong disk from a right one any more.
    #[error("{}: {what}; restore it, or delete it to accept the disks as they are mounted now", .path.display())]
    Memory {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A path that no volume can be at.
    #[error("{}: {why}", .path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A path that holds something else.
    #[error("{}: not an empty directory; a volume is initialised on an empty disk", .0.display())]
    NotEmpty(PathBuf),
    /// A disk that is a volume already.
    #[error("{}: this is volume {volume} already; empty the disk first, or take it over with `holdfast volume adopt`", .path.display())]
    Labelled {
        /// The path.
        path: PathBuf,
        /// The volume it is.
        volume: VolumeId,
    },
    /// Nothing that can be taken over.
    #[error("{}: {problem}", .path.display())]
    Unusable {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        problem: VolumeProblem,
    },
    /// The path lies within another volume or the node's data, or the other way round.
    #[error("{} and {} lie one within the other; give each volume a disk of its own", .path.display(), .other.display())]
    Nested {
        /// The path.
        path: PathBuf,
        /// What it lies in, or what lies in it.
        other: PathBuf,
    },
    /// The disk is not the volume that the caller named.
    #[error("this is volume {found}, not {expected}; nothing was done")]
    OtherVolume {
        /// What is there.
        found: VolumeId,
        /// What the caller said.
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
        /// Where it is.
        path: PathBuf,
    },
    /// No volume of that id.
    #[error("this node has no volume {0}")]
    Unknown(VolumeId),
    /// Out of service for good.
    #[error("volume {0}: {problem}", problem = VolumeProblem::Retired)]
    Retired(VolumeId),
    /// A system call failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}
