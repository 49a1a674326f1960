//! Problems of volumes that are there: warnings, which keep no volume from working, and names that cannot be read. A
//! volume whose names cannot be read serves nothing, and the node tries it again at each look at the disks.

use archive_durable::{DiskError, VolumeProblem};
use archive_model::VolumeId;

use super::Volumes;

impl Volumes {
    /// Notes the number of things in the directories of files of a volume that are not archive files.
    pub fn note_foreign(&self, id: &VolumeId, count: u64) {
        self.change_state().foreign.insert(id.clone(), count);
    }

    /// Returns the warnings about a volume, each with what to do.
    pub fn volume_warnings(&self, id: &VolumeId) -> Vec<String> {
        let state = self.change_state();
        let mut warnings = Vec::new();
        let memory = state.remembered.get(id);
        if memory.is_some_and(|memory| memory.is_unlisted(&self.paths)) {
            warnings.push(
                "it takes new files though `bitarchive.volumes` no longer names it: drain it or make it read-only, or \
                 name it there again"
                    .to_owned(),
            );
        }
        if let Some(count) = state.foreign.get(id).filter(|count| **count > 0) {
            warnings.push(format!(
                "at the last start {count} things lay under `files/` that are no archive files, or have no place there; \
                 the log of the node names them: look at them, and take them away"
            ));
        }
        warnings
    }

    /// Notes why a volume could not be reconciled with the catalog. The volume stays offline, and is tried again.
    pub fn cannot_accept(&self, id: &VolumeId, error: &DiskError) {
        let mut state = self.change_state();
        let mut volumes = state.volumes.iter_mut();
        if let Some(volume) = volumes.find(|volume| volume.id.as_ref() == Some(id))
            && volume.is_waiting()
        {
            volume.problem = Some(VolumeProblem::Unready(error.to_string()));
        }
    }

    /// Takes a volume offline whose names cannot be read. The volume is reconciled with the catalog before it serves
    /// again.
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
