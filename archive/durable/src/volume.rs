//! The label of a volume, and every way in which the disk at a path is not the expected volume.
//!
//! A label is written once by [`label_volume`], again by [`relabel_volume`] when people move a disk, and its generation goes up by
//! [`raise_generation`] as the volume changes: an older copy of the disk bears a lower one. A path without the expected label is
//! never written to: an empty mount point must not look like mass loss.
//!
//! # Errors
//!
//! Writing a label fails with a [`DiskError`] if a system call does; reading one fails with the [`VolumeProblem`].

use std::path::Path;

use archive_model::{NodeId, ReplicaId, VolumeId};
use serde::{Deserialize, Serialize};

use crate::error::DiskError;
use crate::replace::{read_state, replace_by_way_of, replace_file};

/// The file that bears the label.
pub const LABEL_NAME: &str = "holdfast-volume.json";

const FORMAT: &str = "holdfast-volume/1";

/// The identity of a volume, by its label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeIdentity {
    /// The id of the volume, permanently.
    pub volume: VolumeId,
    /// The node that the volume belongs to.
    pub node: NodeId,
    /// The replica of that node.
    pub replica: ReplicaId,
    /// The generation, raised when the volume is taken into use or moved, and after it has changed: an older copy of
    /// the disk bears a lower one.
    pub generation: u64,
}

#[derive(Serialize, Deserialize)]
struct Label {
    format: String,
    #[serde(flatten)]
    identity: VolumeIdentity,
}

/// The volume that a node expects at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedVolume {
    /// The id of the node.
    pub node: NodeId,
    /// The replica of the node.
    pub replica: ReplicaId,
    /// The volume that the node saw here before and its generation then; `None` for a path that is new to the node.
    pub seen: Option<(VolumeId, u64)>,
}

/// The reason why the disk at a path is not the expected volume.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VolumeProblem {
    /// The path is absent, or not a directory.
    #[error("the directory is absent; mount the disk")]
    Absent,
    /// The disk has no label: an empty mount point, or a disk of something else.
    #[error(
        "there is no {LABEL_NAME}; mount the right disk, or label a new one with `holdfast volume init`"
    )]
    Unlabelled,
    /// The label cannot be read.
    #[error("{LABEL_NAME} is damaged ({0}); restore it from another record of this volume")]
    DamagedLabel(String),
    /// The label has a later format.
    #[error("{LABEL_NAME} has the format {0}; this build reads {FORMAT}")]
    UnknownFormat(String),
    /// The disk is a volume of another node or replica.
    #[error(
        "this is volume {volume} of node {node} in replica {replica}; move it here with `holdfast volume adopt`"
    )]
    Foreign {
        /// The volume that was found.
        volume: VolumeId,
        /// The node that the volume belongs to.
        node: NodeId,
        /// The replica of that node.
        replica: ReplicaId,
    },
    /// The disk is another volume of this node: two disks were swapped.
    #[error("volume {found} is mounted where {expected} belongs; mount each disk where it was")]
    Swapped {
        /// The volume that was found.
        found: VolumeId,
        /// The volume that the node saw before.
        expected: VolumeId,
    },
    /// The disk is an older copy of the volume.
    #[error(
        "this is an older copy of the disk: generation {found} of the volume, and generation {seen} was seen here; mount \
         the newer disk, or, where that is lost, take this one over with `holdfast volume adopt`"
    )]
    OlderGeneration {
        /// The generation that was found.
        found: u64,
        /// The generation that the node saw before.
        seen: u64,
    },
    /// The disk does not answer.
    #[error("{0}")]
    Disk(String),
    /// A write to the disk failed, so that nothing on it can be trusted until people have looked at it.
    #[error("a write failed ({0}); look at the disk, then `holdfast volume clear`")]
    Poisoned(String),
    /// The volume has come back, and its files were not reconciled with the catalog yet.
    #[error("it is being reconciled with the catalog")]
    Unchecked,
    /// The volume is online, and its files cannot be reconciled with the catalog.
    #[error(
        "it cannot be reconciled with the catalog ({0}); look at the disk. The node tries again every few seconds"
    )]
    Unready(String),
    /// The node could not look: it had no open files or no memory left.
    #[error("the node could not look at it ({0})")]
    Unseen(String),
    /// People took the volume out of service for good.
    #[error(
        "it is retired and its files count as missing; to use the disk again, empty it and label it under a new id"
    )]
    Retired,
}

/// Labels a new volume. A path that has a label already is refused.
pub fn label_volume(path: &Path, identity: &VolumeIdentity) -> Result<(), DiskError> {
    let label = path.join(LABEL_NAME);
    if read_state(&label)?.is_some() {
        let error = std::io::Error::new(
            std::io::ErrorKind::AlreadyExists,
            "the volume is labelled already",
        );
        return Err(DiskError::new("label", &label, error));
    }
    relabel_volume(path, identity)
}

/// Writes the label of a volume that people move to another node or path.
pub fn relabel_volume(path: &Path, identity: &VolumeIdentity) -> Result<(), DiskError> {
    replace_file(&path.join(LABEL_NAME), &text(path, identity)?)
}

/// Writes the label of a volume in use with a higher generation. `within` is a directory of the volume: without it,
/// because the disk was unmounted in this moment, nothing is written.
pub fn raise_generation(
    path: &Path,
    within: &Path,
    identity: &VolumeIdentity,
) -> Result<(), DiskError> {
    replace_by_way_of(within, &path.join(LABEL_NAME), &text(path, identity)?)
}

fn text(path: &Path, identity: &VolumeIdentity) -> Result<Vec<u8>, DiskError> {
    let label = Label {
        format: FORMAT.to_owned(),
        identity: identity.clone(),
    };
    let mut text = serde_json::to_vec_pretty(&label)
        .map_err(|error| DiskError::new("label", path, std::io::Error::other(error)))?;
    text.push(b'\n');
    Ok(text)
}

/// Reads the label at `path`.
pub fn identify_volume(path: &Path) -> Result<VolumeIdentity, VolumeProblem> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(VolumeProblem::Absent);
        }
        Err(error) => return Err(unread(&DiskError::new("stat", path, error))),
        Ok(metadata) if !metadata.is_dir() => return Err(VolumeProblem::Absent),
        Ok(_) => {}
    }
    let text = read_state(&path.join(LABEL_NAME))
        .map_err(|error| unread(&error))?
        .ok_or(VolumeProblem::Unlabelled)?;
    let damaged = |error: serde_json::Error| VolumeProblem::DamagedLabel(error.to_string());
    let value: serde_json::Value = serde_json::from_slice(&text).map_err(damaged)?;
    match value.get("format").and_then(serde_json::Value::as_str) {
        Some(FORMAT) => {}
        Some(other) if other.starts_with("holdfast-volume/") => {
            return Err(VolumeProblem::UnknownFormat(other.to_owned()));
        }
        _ => return Err(VolumeProblem::DamagedLabel("no format".to_owned())),
    }
    serde_json::from_value::<Label>(value)
        .map(|label| label.identity)
        .map_err(damaged)
}

fn unread(error: &DiskError) -> VolumeProblem {
    if error.is_exhausted() {
        VolumeProblem::Unseen(error.to_string())
    } else {
        VolumeProblem::Disk(error.to_string())
    }
}

/// Reads the label at `path` and compares it with the volume that the node expects there.
pub fn recognise_volume(
    path: &Path,
    expected: &ExpectedVolume,
) -> Result<VolumeIdentity, VolumeProblem> {
    let found = identify_volume(path)?;
    if found.node != expected.node || found.replica != expected.replica {
        return Err(VolumeProblem::Foreign {
            volume: found.volume,
            node: found.node,
            replica: found.replica,
        });
    }
    match &expected.seen {
        Some((volume, _)) if *volume != found.volume => Err(VolumeProblem::Swapped {
            found: found.volume,
            expected: volume.clone(),
        }),
        Some((_, seen)) if found.generation < *seen => Err(VolumeProblem::OlderGeneration {
            found: found.generation,
            seen: *seen,
        }),
        _ => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(volume: &str, generation: u64) -> VolumeIdentity {
        VolumeIdentity {
            volume: VolumeId::new(volume).unwrap(),
            node: NodeId::new("n1").unwrap(),
            replica: ReplicaId::new("one").unwrap(),
            generation,
        }
    }

    fn expected(seen: Option<(&str, u64)>) -> ExpectedVolume {
        ExpectedVolume {
            node: NodeId::new("n1").unwrap(),
            replica: ReplicaId::new("one").unwrap(),
            seen: seen.map(|(volume, generation)| (VolumeId::new(volume).unwrap(), generation)),
        }
    }

    /// Fails if a label is written over another one, or not read back.
    #[test]
    fn labelled_disk_is_recognised_and_labelled_once() {
        let disk = tempfile::tempdir().unwrap();
        label_volume(disk.path(), &identity("v1", 1)).unwrap();
        assert_eq!(
            recognise_volume(disk.path(), &expected(None)),
            Ok(identity("v1", 1))
        );
        assert_eq!(
            recognise_volume(disk.path(), &expected(Some(("v1", 1)))),
            Ok(identity("v1", 1))
        );
        assert!(
            label_volume(disk.path(), &identity("v2", 1))
                .unwrap_err()
                .is_taken()
        );
    }

    /// Fails if the label is written beside itself: on an empty mount point it would make the volume look emptied.
    #[test]
    fn generation_is_not_raised_on_empty_mount_point() {
        let disk = tempfile::tempdir().unwrap();
        let path = disk.path();
        let within = disk.path().join("incoming");
        let error = raise_generation(path, &within, &identity("v1", 2)).unwrap_err();
        assert!(error.is_absent(), "{error}");
        assert_eq!(identify_volume(path), Err(VolumeProblem::Unlabelled));
        crate::directory::make_directory(&within).unwrap();
        raise_generation(path, &within, &identity("v1", 2)).unwrap();
        assert_eq!(identify_volume(path), Ok(identity("v1", 2)));
        assert_eq!(crate::directory::list_directory(&within).unwrap(), []);
    }

    /// Fails if an older, foreign or swapped disk, or one with a damaged label, is taken for the expected one.
    #[test]
    fn every_other_disk_is_distinguished() {
        use VolumeProblem as P;
        let disk = tempfile::tempdir().unwrap();
        let path = disk.path();
        assert_eq!(
            recognise_volume(&path.join("none"), &expected(None)),
            Err(P::Absent)
        );
        assert_eq!(recognise_volume(path, &expected(None)), Err(P::Unlabelled));
        label_volume(path, &identity("v1", 2)).unwrap();
        assert_eq!(
            recognise_volume(&path.join(LABEL_NAME), &expected(None)),
            Err(P::Absent)
        );
        assert!(matches!(
            recognise_volume(path, &expected(Some(("v0", 1)))),
            Err(P::Swapped { .. })
        ));
        assert_eq!(
            recognise_volume(path, &expected(Some(("v1", 3)))),
            Err(P::OlderGeneration { found: 2, seen: 3 })
        );
        let other = ExpectedVolume {
            node: NodeId::new("n2").unwrap(),
            ..expected(None)
        };
        assert!(matches!(
            recognise_volume(path, &other),
            Err(P::Foreign { .. })
        ));
        for (text, is_format) in [
            ("", false),
            ("{", false),
            ("{}", false),
            (r#"{"format":"holdfast-volume/9"}"#, true),
        ] {
            replace_file(&path.join(LABEL_NAME), text.as_bytes()).unwrap();
            let problem = recognise_volume(path, &expected(None)).unwrap_err();
            assert_eq!(
                matches!(problem, P::UnknownFormat(_)),
                is_format,
                "{text} {problem}"
            );
            assert_eq!(
                matches!(problem, P::DamagedLabel(_)),
                !is_format,
                "{text} {problem}"
            );
        }
    }
}
