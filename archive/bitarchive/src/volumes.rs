//! The volumes of one node: which are online, why the others are not, and which takes the next file.
//!
//! Which volumes the node has, and where each was last, is kept in `<node data>/volumes.json`, so that a wrong, swapped,
//! empty or older disk is told from the right one at any start, and a volume that is gone stays known. A volume that
//! failed a write is *poisoned* there until people clear it.

mod memory;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use archive_durable::volume::{self, LABEL_NAME};
use archive_durable::{DiskError, Expected, Identity, Severity, Space, VolumeProblem, directory};
use archive_model::{NodeId, ReplicaId, VolumeId};
use serde::{Deserialize, Serialize};

use self::memory::{Memory, remember, write};
use crate::layout::Layout;

/// Whether a volume takes new files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// It takes new files.
    #[default]
    ReadWrite,
    /// It serves what it has and takes nothing.
    ReadOnly,
    /// As read-only; what it has is being copied to other volumes.
    Draining,
}

/// One volume as the node sees it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Where it is, or should be, mounted.
    pub path: PathBuf,
    /// Which volume it is; unknown until one was seen at this path.
    pub id: Option<VolumeId>,
    /// Why it is offline; `None`: it is online.
    pub problem: Option<VolumeProblem>,
    /// Whether it takes new files.
    pub mode: Mode,
}

impl Volume {
    /// Its layout, if it is online.
    pub fn layout(&self) -> Option<Layout> {
        self.problem.is_none().then(|| Layout::new(&self.path))
    }
}

/// Why the node cannot work with its volumes.
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
    /// A path that holds something else.
    #[error("{}: not an empty directory; a volume is initialised on an empty disk", .0.display())]
    NotEmpty(PathBuf),
    /// No volume of that id.
    #[error("this node has no volume {0}")]
    Unknown(VolumeId),
    /// A system call failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// The volumes of a node.
#[derive(Debug)]
pub struct Volumes {
    node: NodeId,
    replica: ReplicaId,
    memory_path: PathBuf,
    paths: Vec<PathBuf>,
    reserve: u64,
    state: RwLock<State>,
}

#[derive(Debug)]
struct State {
    remembered: BTreeMap<VolumeId, Memory>,
    volumes: Vec<Volume>,
    /// Online, and held against the catalog since they came.
    accepted: BTreeSet<VolumeId>,
}

impl Volumes {
    /// Looks at every path. A path that is not the right volume is offline with its reason, never an error.
    pub fn open(
        node: &NodeId,
        replica: &ReplicaId,
        data: &Path,
        paths: &[PathBuf],
        reserve: u64,
    ) -> Result<Self, VolumesError> {
        directory::make(data)?;
        let memory_path = data.join("volumes.json");
        let remembered = remember(&memory_path)?;
        let volumes = Self {
            node: node.clone(),
            replica: replica.clone(),
            memory_path,
            paths: paths.to_vec(),
            reserve,
            state: RwLock::new(State {
                remembered,
                volumes: Vec::new(),
                accepted: BTreeSet::new(),
            }),
        };
        volumes.refresh()?;
        Ok(volumes)
    }

    /// Looks at every path again. A volume that is there again stays offline until the caller has held it against the
    /// catalog ([`Volumes::accept`]); the result names these.
    pub fn refresh(&self) -> Result<Vec<(VolumeId, Layout)>, VolumesError> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let mut remembered = state.remembered.clone();
        let strays = self.take_in_unclaimed(&mut remembered);
        let mut volumes: Vec<Volume> = remembered
            .iter_mut()
            .map(|(id, memory)| self.look(id, memory))
            .collect();
        volumes.extend(strays);
        if remembered != state.remembered {
            write(&self.memory_path, &remembered)?;
        }
        let present = online(&volumes);
        state.accepted.retain(|id| present.contains(id));
        let mut waiting = Vec::new();
        for volume in volumes.iter_mut().filter(|volume| volume.problem.is_none()) {
            if let Some(id) = volume.id.clone().filter(|id| !state.accepted.contains(id)) {
                waiting.push((id, Layout::new(&volume.path)));
                volume.problem = Some(VolumeProblem::Unchecked);
            }
        }
        state.remembered = remembered;
        state.volumes = volumes;
        Ok(waiting)
    }

    /// Takes a volume online that was held against the catalog, if nothing has happened to it meanwhile.
    pub fn accept(&self, id: &VolumeId) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let State {
            volumes, accepted, ..
        } = &mut *state;
        for volume in volumes
            .iter_mut()
            .filter(|volume| volume.id.as_ref() == Some(id))
        {
            if volume.problem == Some(VolumeProblem::Unchecked) {
                volume.problem = None;
                accepted.insert(id.clone());
            }
        }
    }

    /// Paths that no volume was seen at yet: a volume of this node that is new to it is taken in; anything else is shown.
    fn take_in_unclaimed(&self, remembered: &mut BTreeMap<VolumeId, Memory>) -> Vec<Volume> {
        let mut strays = Vec::new();
        for path in &self.paths {
            if remembered
                .values()
                .any(|memory| !memory.retired && memory.path == *path)
            {
                continue;
            }
            let expected = Expected {
                node: self.node.clone(),
                replica: self.replica.clone(),
                seen: None,
            };
            let problem = match volume::recognise(path, &expected) {
                Ok(found) => match remembered.get(&found.volume) {
                    None => {
                        remembered.insert(found.volume, Memory::new(path, found.generation));
                        continue;
                    }
                    Some(memory) => VolumeProblem::Disk(format!(
                        "volume {} belongs at {}; mount it there, or `holdfast volume adopt` it here",
                        found.volume,
                        memory.path.display()
                    )),
                },
                Err(problem) => problem,
            };
            strays.push(Volume {
                path: path.clone(),
                id: None,
                problem: Some(problem),
                mode: Mode::default(),
            });
        }
        strays
    }

    fn look(&self, id: &VolumeId, memory: &mut Memory) -> Volume {
        let seen = Some((id.clone(), memory.generation));
        let expected = Expected {
            node: self.node.clone(),
            replica: self.replica.clone(),
            seen,
        };
        let found = match (&memory.poisoned, memory.retired) {
            (_, true) => Err(VolumeProblem::Retired),
            (Some(why), false) => Err(VolumeProblem::Poisoned(why.clone())),
            (None, false) => volume::recognise(&memory.path, &expected),
        };
        if let Ok(identity) = &found {
            memory.generation = identity.generation;
        }
        Volume {
            path: memory.path.clone(),
            id: Some(id.clone()),
            problem: found.err(),
            mode: memory.mode,
        }
    }

    /// All volumes, online or not: those that are known by their ids, then the paths that hold none of them.
    pub fn all(&self) -> Vec<Volume> {
        self.state
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .volumes
            .clone()
    }

    /// One volume.
    pub fn find(&self, id: &VolumeId) -> Option<Volume> {
        self.all()
            .into_iter()
            .find(|volume| volume.id.as_ref() == Some(id))
    }

    /// The online volumes with their layouts.
    pub fn online(&self) -> Vec<(VolumeId, Layout)> {
        self.all()
            .into_iter()
            .filter_map(|volume| Some((volume.id.clone()?, volume.layout()?)))
            .collect()
    }

    /// The volume with the most room for a file of `size` bytes above the reserve; `None`: no volume has it.
    pub fn choose(&self, size: u64) -> Result<Option<(VolumeId, Layout)>, DiskError> {
        let mut best: Option<(u64, VolumeId, Layout)> = None;
        for volume in self
            .all()
            .into_iter()
            .filter(|volume| volume.mode == Mode::ReadWrite)
        {
            let (Some(id), Some(layout)) = (volume.id.clone(), volume.layout()) else {
                continue;
            };
            let usable = match Space::of(layout.root()) {
                Ok(space) => space.usable(self.reserve),
                Err(error) => {
                    self.blame(&id, &error)?;
                    continue;
                }
            };
            if usable >= size && best.as_ref().is_none_or(|(most, ..)| usable > *most) {
                best = Some((usable, id, layout));
            }
        }
        Ok(best.map(|(_, id, layout)| (id, layout)))
    }

    /// The room on the volume of `layout` above the reserve, in bytes.
    pub fn room_on(&self, layout: &Layout) -> Result<u64, DiskError> {
        Ok(Space::of(layout.root())?.usable(self.reserve))
    }

    /// Takes a volume offline if the error says that its disk fails. Durable: a restart does not forget.
    pub fn blame(&self, id: &VolumeId, error: &DiskError) -> Result<(), DiskError> {
        match error.severity() {
            Severity::Disk => self.poison(id, error),
            Severity::NoSpace | Severity::Request => Ok(()),
        }
    }

    /// Takes a volume offline until people clear it.
    pub fn poison(&self, id: &VolumeId, error: &DiskError) -> Result<(), DiskError> {
        tracing::error!(volume = %id, %error, "volume taken offline: a system call failed");
        let why = error.to_string();
        self.change(id, |memory, volume| {
            memory.poisoned = Some(why.clone());
            volume.problem = Some(VolumeProblem::Poisoned(why));
        })
        .or_else(|error| match error {
            VolumesError::Disk(error) => Err(error),
            VolumesError::Unknown(_) | VolumesError::Memory { .. } | VolumesError::NotEmpty(_) => {
                Ok(())
            }
        })
    }

    /// Takes the poison from a volume that people have looked at. It comes online at the next look.
    pub fn clear(&self, id: &VolumeId) -> Result<(), VolumesError> {
        self.change(id, |memory, _| memory.poisoned = None)
    }

    /// Sets whether a volume takes new files.
    pub fn set_mode(&self, id: &VolumeId, mode: Mode) -> Result<(), VolumesError> {
        self.change(id, |memory, volume| {
            memory.mode = mode;
            volume.mode = mode;
        })
    }

    fn change(
        &self,
        id: &VolumeId,
        change: impl FnOnce(&mut Memory, &mut Volume),
    ) -> Result<(), VolumesError> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let State {
            remembered,
            volumes,
            ..
        } = &mut *state;
        let volume = volumes
            .iter_mut()
            .find(|volume| volume.id.as_ref() == Some(id))
            .ok_or_else(|| VolumesError::Unknown(id.clone()))?;
        let memory = remembered
            .get_mut(id)
            .ok_or_else(|| VolumesError::Unknown(id.clone()))?;
        change(memory, volume);
        write(&self.memory_path, remembered)
    }

    /// Labels an empty directory as a new volume of this node and takes it into use. One that was cut off in the middle
    /// of this goes on.
    pub fn init(&self, path: &Path, id: &VolumeId) -> Result<(), VolumesError> {
        let layout = Layout::new(path);
        if !layout.is_bare()? {
            return Err(VolumesError::NotEmpty(path.to_owned()));
        }
        layout.make()?;
        volume::label(path, &self.identity(id, 1))?;
        self.take_in(path, id, 1)?;
        self.accept(id);
        Ok(())
    }

    /// Takes over a volume that another node, or an earlier life of this one, has labelled.
    pub fn adopt(&self, path: &Path) -> Result<VolumeId, VolumesError> {
        let found = volume::identify(path).map_err(|problem| VolumesError::Memory {
            path: path.join(LABEL_NAME),
            what: problem.to_string(),
        })?;
        let generation = found.generation.saturating_add(1);
        Layout::new(path).make()?;
        volume::relabel(path, &self.identity(&found.volume, generation))?;
        self.take_in(path, &found.volume, generation)?;
        Ok(found.volume)
    }

    fn identity(&self, id: &VolumeId, generation: u64) -> Identity {
        Identity {
            volume: id.clone(),
            node: self.node.clone(),
            replica: self.replica.clone(),
            generation,
        }
    }

    fn take_in(&self, path: &Path, id: &VolumeId, generation: u64) -> Result<(), VolumesError> {
        {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            state
                .remembered
                .insert(id.clone(), Memory::new(path, generation));
            write(&self.memory_path, &state.remembered)?;
        }
        self.refresh().map(|_| ())
    }
}

fn online(volumes: &[Volume]) -> Vec<VolumeId> {
    volumes
        .iter()
        .filter(|volume| volume.problem.is_none())
        .filter_map(|volume| volume.id.clone())
        .collect()
}

#[cfg(test)]
mod tests;
