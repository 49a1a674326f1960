//! Volumes that are there, and whose names cannot be read: they serve nothing, and are tried again and again.

use archive_durable::{DiskError, VolumeProblem};
use archive_model::VolumeId;

use super::Volumes;

impl Volumes {
    /// Says of a volume why it could not be held against the catalog. It waits on, and is tried again.
    pub fn cannot_accept(&self, id: &VolumeId, error: &DiskError) {
        let mut state = self.change_state();
        let mut volumes = state.volumes.iter_mut();
        if let Some(volume) = volumes.find(|volume| volume.id.as_ref() == Some(id))
            && volume.is_waiting()
        {
            volume.problem = Some(VolumeProblem::Unready(error.to_string()));
        }
    }

    /// Takes a volume offline whose names cannot be read. It is held against the catalog before it serves again.
    pub fn cannot_look(&self, id: &VolumeId, error: &DiskError) {
        let mut state = self.change_state();
        state.accepted.remove(id);
        let mut volumes = state.volumes.iter_mut();
        if let Some(volume) = volumes.find(|volume| volume.id.as_ref() == Some(id))
            && volume.problem.is_none()
        {
            volume.problem = Some(VolumeProblem::Unready(error.to_string()));
        }
    }
}
