//! The generation in the label of a disk, by which an older copy of the disk is distinguished from the disk itself.
//!
//! The generation goes up each time a volume comes online, and within one look at the disks
//! ([`Volumes::raise_changed`]) after files came to it or left it. The label is written before `volumes.json`: a crash
//! between the two leaves a label that is newer than what is remembered, which is no fault; with the other order a
//! start would take the disk itself for an older copy.
//!
//! Not promised: to notice a copy that was made later than the last change but one look, because such a copy lacks next
//! to nothing; nor one that was put back together with the node's data directory.
//!
//! # Errors
//!
//! Every function fails when a disk does; [`Volumes::confirm_generation`] also when the disk is not that volume, or an older copy
//! of it.

use archive_durable::{DiskSeverity, ExpectedVolume, VolumeProblem, volume};
use archive_model::VolumeId;

use super::memory::write_remembered_volumes;
use super::{Volumes, VolumesError};
use crate::layout::Layout;

impl Volumes {
    /// Checks that the disk which is there now is this volume, and not an older copy of the disk.
    pub fn confirm_generation(&self, id: &VolumeId, layout: &Layout) -> Result<(), VolumeProblem> {
        let generation = self
            .change_state()
            .remembered
            .get(id)
            .map(|one| one.generation);
        let expected = ExpectedVolume {
            node: self.node.clone(),
            replica: self.replica.clone(),
            seen: Some((id.clone(), generation.unwrap_or_default())),
        };
        self.disks
            .recognise_volume(layout.root(), expected)
            .map(drop)
    }

    /// Notes that files came to a volume, or left it.
    pub fn note_change(&self, id: &VolumeId) {
        self.change_state().changed.insert(id.clone());
    }

    /// Raises the generation of every online volume that has changed since the last call. A disk that fails is taken
    /// offline.
    pub fn raise_changed(&self) -> Result<(), VolumesError> {
        let changed = std::mem::take(&mut self.change_state().changed);
        for (id, layout) in self.online_layouts() {
            if changed.contains(&id)
                && let Err(error) = self.raise_generation(&id, &layout)
            {
                self.note_change(&id);
                let VolumesError::Disk(error) = error else {
                    return Err(error);
                };
                self.blame_volume(&id, &error)?;
            }
        }
        Ok(())
    }

    /// Raises the generation of a volume that is there, durably. A disk that is full or mounted for reading only keeps
    /// the one it has.
    pub fn raise_generation(&self, id: &VolumeId, layout: &Layout) -> Result<(), VolumesError> {
        let _alone = self.labelling.lock();
        let seen = match self.change_state().remembered.get(id) {
            Some(memory) => memory.generation,
            None => return Ok(()),
        };
        let mut identity = match volume::identify_volume(layout.root()) {
            Ok(identity) if identity.volume == *id => identity,
            // The disk went away, or was exchanged; the next look says so.
            _ => return Ok(()),
        };
        identity.generation = identity.generation.max(seen).saturating_add(1);
        match volume::raise_generation(layout.root(), &layout.incoming(), &identity) {
            Err(error) if error.severity() == DiskSeverity::NoSpace || error.is_read_only() => {
                tracing::warn!(volume = %id, %error, "its generation was not raised; until it is, an older copy of this disk passes for it");
                return Ok(());
            }
            other => other?,
        }
        let mut state = self.change_state();
        let mut remembered = state.remembered.clone();
        if let Some(memory) = remembered.get_mut(id) {
            memory.generation = identity.generation;
            write_remembered_volumes(&self.memory_path, state.mode, &remembered)?;
            state.remembered = remembered;
        }
        Ok(())
    }
}
