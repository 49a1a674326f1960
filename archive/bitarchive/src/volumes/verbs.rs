//! The orders of people about disks: label, adopt, clear, stop filling, retire.
//!
//! Each order is remembered durably before it takes effect. The node sees to its files (`node/disks.rs`): a volume is
//! reconciled with the catalog, and the rows of a retired one say *missing*.
//!
//! # Errors
//!
//! Every order fails with a [`VolumesError`], which says what people have to do.

use std::path::Path;

use archive_durable::volume;
use archive_durable::{DiskError, VolumeIdentity, VolumeProblem};
use archive_model::{Mode, VolumeId};

use super::Volumes;
use super::error::VolumesError;
use super::memory::{VolumeMemory, write_remembered_volumes};
use crate::layout::Layout;

impl Volumes {
    /// Labels an empty directory as a new volume of this node and takes it into use. An order that was cut off is
    /// continued. The path is remembered: a later start finds the volume even if no setting names it.
    pub fn init_volume(&self, path: &Path, id: &VolumeId) -> Result<(), VolumesError> {
        let _alone = self.labelling.lock();
        if self.change_state().remembered.contains_key(id) {
            return Err(VolumesError::Known(id.clone()));
        }
        self.refuse_nested(path, None)?;
        let identity = self.identity(id, 1);
        match volume::identify_volume(path) {
            Err(VolumeProblem::Unlabelled) => {}
            // Labelled by an order that was cut off before it was remembered; files may have come since.
            Ok(found) if found == identity => return self.take_in(path, id, 1),
            Ok(found) => {
                return Err(VolumesError::Labelled {
                    path: path.to_owned(),
                    volume: found.volume,
                });
            }
            Err(problem) => {
                return Err(VolumesError::Unusable {
                    path: path.to_owned(),
                    problem,
                });
            }
        }
        let layout = Layout::new(path);
        if !layout.is_bare()? {
            return Err(VolumesError::NotEmpty(path.to_owned()));
        }
        layout.make_directories()?;
        volume::label_volume(path, &identity)?;
        self.take_in(path, id, 1)?;
        self.accept_volume(id);
        Ok(())
    }

    /// Adopts a volume that another node, or an earlier installation of this one, has labelled. The mode of the volume
    /// is kept. It comes online once it was reconciled with the catalog.
    pub fn adopt_volume(&self, path: &Path) -> Result<VolumeId, VolumesError> {
        self.adopt_as(path, None)
    }

    /// Adopts a volume as [`Volumes::adopt_volume`] does, if the disk is the volume `expected`.
    pub fn adopt_as(
        &self,
        path: &Path,
        expected: Option<&VolumeId>,
    ) -> Result<VolumeId, VolumesError> {
        let _alone = self.labelling.lock();
        let found = volume::identify_volume(path).map_err(|problem| VolumesError::Unusable {
            path: path.to_owned(),
            problem,
        })?;
        let id = found.volume;
        if let Some(expected) = expected.filter(|expected| **expected != id) {
            return Err(VolumesError::OtherVolume {
                found: id,
                expected: expected.clone(),
            });
        }
        let elsewhere = self
            .find_volume(&id)
            .filter(|known| known.path != path && (known.problem.is_none() || known.is_waiting()));
        if let Some(known) = elsewhere {
            return Err(VolumesError::InUse {
                volume: id,
                path: known.path,
            });
        }
        self.refuse_nested(path, Some(&id))?;
        // Above every generation of this volume that is known, so that no other copy of the disk passes for it.
        let seen = match self.change_state().remembered.get(&id) {
            Some(memory) if memory.retired => return Err(VolumesError::Retired(id)),
            Some(memory) => memory.generation,
            None => 0,
        };
        let generation = found.generation.max(seen).saturating_add(1);
        Layout::new(path).make_directories()?;
        volume::relabel_volume(path, &self.identity(&id, generation))?;
        self.take_in(path, &id, generation)?;
        Ok(id)
    }

    /// Clears a poisoned volume that people have looked at. The volume comes online once it was reconciled with the
    /// catalog.
    pub fn clear_volume(&self, id: &VolumeId) -> Result<(), VolumesError> {
        self.change(id, |memory| memory.poisoned = None)
    }

    /// Sets whether a volume takes new files.
    pub fn set_mode(&self, id: &VolumeId, mode: Mode) -> Result<(), VolumesError> {
        self.change(id, |memory| memory.mode = mode)
    }

    /// Retires a volume permanently, whether its disk is there or not.
    pub fn retire_volume(&self, id: &VolumeId) -> Result<(), VolumesError> {
        match self.change(id, |memory| memory.retired = true) {
            // The caller asks for the second time.
            Err(VolumesError::Retired(_)) => Ok(()),
            other => other,
        }
    }

    /// Takes a retired volume back into service. The volume comes online once it was reconciled with the catalog.
    pub fn reinstate_volume(&self, id: &VolumeId) -> Result<(), VolumesError> {
        let mut state = self.change_state();
        let mut remembered = state.remembered.clone();
        let memory = remembered
            .get_mut(id)
            .ok_or_else(|| VolumesError::Unknown(id.clone()))?;
        memory.retired = false;
        write_remembered_volumes(&self.memory_path, state.mode, &remembered)?;
        state.remembered = remembered;
        Ok(())
    }

    /// Sets whether the node takes new files, on any volume.
    pub fn set_node_mode(&self, mode: Mode) -> Result<(), VolumesError> {
        let mut state = self.change_state();
        write_remembered_volumes(&self.memory_path, mode, &state.remembered)?;
        state.mode = mode;
        Ok(())
    }

    /// Returns the retired volumes.
    pub fn retired_volumes(&self) -> Vec<VolumeId> {
        self.list_volumes()
            .into_iter()
            .filter(|volume| volume.problem == Some(VolumeProblem::Retired))
            .filter_map(|volume| volume.id)
            .collect()
    }

    fn change(
        &self,
        id: &VolumeId,
        change: impl FnOnce(&mut VolumeMemory),
    ) -> Result<(), VolumesError> {
        let mut state = self.change_state();
        let mut remembered = state.remembered.clone();
        let memory = remembered
            .get_mut(id)
            .ok_or_else(|| VolumesError::Unknown(id.clone()))?;
        if memory.retired {
            return Err(VolumesError::Retired(id.clone()));
        }
        change(memory);
        let mode = memory.mode;
        let is_retired = memory.retired;
        write_remembered_volumes(&self.memory_path, state.mode, &remembered)?;
        state.remembered = remembered;
        let mut is_offline = is_retired;
        for volume in state
            .volumes
            .iter_mut()
            .filter(|volume| volume.id.as_ref() == Some(id))
        {
            volume.mode = mode;
            if is_retired {
                volume.problem = Some(VolumeProblem::Retired);
            }
            is_offline |= volume.problem.is_some();
        }
        if is_offline {
            state.accepted.remove(id);
        }
        Ok(())
    }

    /// Refuses a volume that lies in another one or in the node's data, or contains them: files of one would be in the
    /// other.
    fn refuse_nested(&self, path: &Path, own: Option<&VolumeId>) -> Result<(), VolumesError> {
        let canonical = |path: &Path| {
            path.canonicalize()
                .map_err(|error| DiskError::new("realpath", path, error))
        };
        let place = match canonical(path) {
            Err(error) if error.is_absent() => {
                return Err(VolumesError::Unusable {
                    path: path.to_owned(),
                    problem: VolumeProblem::Absent,
                });
            }
            other => other?,
        };
        let volumes = self.list_volumes().into_iter().filter(|volume| {
            volume.problem != Some(VolumeProblem::Retired)
                && volume.id.is_some()
                && volume.id.as_ref() != own
        });
        // At the path of another volume the label decides; at the path of the data nothing can.
        let others = volumes.map(|volume| (volume.path, true));
        let data = self
            .memory_path
            .parent()
            .map(|data| (data.to_owned(), false));
        for (other, may_be_same) in others.chain(data) {
            // A disk that is away cannot be nested in anything.
            let Ok(there) = canonical(&other) else {
                continue;
            };
            let is_same = place == there;
            if (is_same && !may_be_same)
                || (!is_same && (place.starts_with(&there) || there.starts_with(&place)))
            {
                return Err(VolumesError::Nested {
                    path: path.to_owned(),
                    other,
                });
            }
        }
        Ok(())
    }

    fn identity(&self, id: &VolumeId, generation: u64) -> VolumeIdentity {
        VolumeIdentity {
            volume: id.clone(),
            node: self.node.clone(),
            replica: self.replica.clone(),
            generation,
        }
    }

    /// Remembers the volume at its path. The volume stays offline until it was reconciled with the catalog.
    fn take_in(&self, path: &Path, id: &VolumeId, generation: u64) -> Result<(), VolumesError> {
        {
            let mut state = self.change_state();
            let mut remembered = state.remembered.clone();
            let memory = remembered
                .entry(id.clone())
                .or_insert_with(|| VolumeMemory::new(path, generation));
            if memory.path != path {
                path.clone_into(&mut memory.path);
                memory.listed = false;
            }
            memory.generation = generation;
            write_remembered_volumes(&self.memory_path, state.mode, &remembered)?;
            state.remembered = remembered;
            state.accepted.remove(id);
        }
        self.refresh_layouts().map(|_| ())
    }
}
