//! The memory that a node has of its volumes: `<node data>/volumes.json`, replaced as a whole.
//!
//! # Errors
//!
//! A memory that cannot be read is refused with [`VolumesError::Memory`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use archive_durable::{read_state, replace_file};
use archive_model::{Mode, VolumeId};
use serde::{Deserialize, Serialize};

use super::error::VolumesError;

/// The name of the file in the data directory of the node.
pub(super) const MEMORY_NAME: &str = "volumes.json";

const FORMAT: &str = "holdfast-volumes/1";

/// The memory of one volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VolumeMemory {
    pub(super) path: PathBuf,
    pub(super) generation: u64,
    pub(super) mode: Mode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) poisoned: Option<String>,
    pub(super) retired: bool,
    /// Whether `bitarchive.volumes` has named the path of the volume since it was there last.
    pub(super) listed: bool,
}

/// The memory of all volumes, and the mode of the node.
pub(super) struct RememberedVolumes {
    pub(super) mode: Mode,
    pub(super) volumes: BTreeMap<VolumeId, VolumeMemory>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MemoryDocument {
    format: String,
    /// The mode of the whole node.
    mode: Mode,
    volumes: BTreeMap<VolumeId, VolumeMemory>,
}

impl VolumeMemory {
    pub(super) fn new(path: &Path, generation: u64) -> Self {
        Self {
            path: path.to_owned(),
            generation,
            mode: Mode::default(),
            poisoned: None,
            retired: false,
            listed: false,
        }
    }
}

impl VolumeMemory {
    /// Returns whether it takes new files although it was removed from the list of volumes.
    pub(super) fn is_unlisted(&self, paths: &[PathBuf]) -> bool {
        let takes_files = !self.retired && self.mode == Mode::ReadWrite;
        takes_files && self.listed && !paths.contains(&self.path)
    }
}

/// Returns the volumes that the node of this data directory still fills, though `bitarchive.volumes` no longer names
/// them.
pub fn unlisted_volumes(
    data: &Path,
    paths: &[PathBuf],
) -> Result<Vec<(VolumeId, PathBuf)>, VolumesError> {
    let remembered = read_remembered_volumes(&data.join(MEMORY_NAME))?
        .volumes
        .into_iter();
    let unlisted = remembered.filter(|(_, memory)| memory.is_unlisted(paths));
    Ok(unlisted.map(|(id, memory)| (id, memory.path)).collect())
}

pub(super) fn read_remembered_volumes(path: &Path) -> Result<RememberedVolumes, VolumesError> {
    let damaged = |what: String| VolumesError::Memory {
        path: path.to_owned(),
        what,
    };
    let Some(text) = read_state(path)? else {
        return Ok(RememberedVolumes {
            mode: Mode::default(),
            volumes: BTreeMap::new(),
        });
    };
    let remembered: MemoryDocument =
        serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    if remembered.format != FORMAT {
        return Err(damaged(format!(
            "it has the format {}; this build reads {FORMAT}",
            remembered.format
        )));
    }
    Ok(RememberedVolumes {
        mode: remembered.mode,
        volumes: remembered.volumes,
    })
}

pub(super) fn write_remembered_volumes(
    path: &Path,
    mode: Mode,
    volumes: &BTreeMap<VolumeId, VolumeMemory>,
) -> Result<(), VolumesError> {
    let remembered = MemoryDocument {
        format: FORMAT.to_owned(),
        mode,
        volumes: volumes.clone(),
    };
    let text = serde_json::to_vec_pretty(&remembered).map_err(|error| VolumesError::Memory {
        path: path.to_owned(),
        what: error.to_string(),
    })?;
    Ok(replace_file(path, &text)?)
}
