//! What a node remembers of its volumes: `<node data>/volumes.json`, replaced as a whole.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use archive_durable::{read_state, replace};
use archive_model::VolumeId;
use serde::{Deserialize, Serialize};

use super::{Mode, VolumesError};

const FORMAT: &str = "holdfast-volumes/1";

/// What is remembered of one volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Memory {
    pub(super) path: PathBuf,
    pub(super) generation: u64,
    pub(super) mode: Mode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) poisoned: Option<String>,
    #[serde(default)]
    pub(super) retired: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Remembered {
    format: String,
    volumes: BTreeMap<VolumeId, Memory>,
}

impl Memory {
    pub(super) fn new(path: &Path, generation: u64) -> Self {
        Self {
            path: path.to_owned(),
            generation,
            mode: Mode::default(),
            poisoned: None,
            retired: false,
        }
    }
}

pub(super) fn remember(path: &Path) -> Result<BTreeMap<VolumeId, Memory>, VolumesError> {
    let damaged = |what: String| VolumesError::Memory {
        path: path.to_owned(),
        what,
    };
    let Some(text) = read_state(path)? else {
        return Ok(BTreeMap::new());
    };
    let remembered: Remembered =
        serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    if remembered.format != FORMAT {
        return Err(damaged(format!(
            "it has the format {}; this build reads {FORMAT}",
            remembered.format
        )));
    }
    Ok(remembered.volumes)
}

pub(super) fn write(path: &Path, volumes: &BTreeMap<VolumeId, Memory>) -> Result<(), VolumesError> {
    let remembered = Remembered {
        format: FORMAT.to_owned(),
        volumes: volumes.clone(),
    };
    let text = serde_json::to_vec_pretty(&remembered).map_err(|error| VolumesError::Memory {
        path: path.to_owned(),
        what: error.to_string(),
    })?;
    Ok(replace(path, &text)?)
}
