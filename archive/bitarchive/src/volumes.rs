//! The volumes of one node: which are online, why the others are offline, and which one takes the next file.
//!
//! The volumes of the node and their last paths are kept in `<node data>/volumes.json`, so that every start can
//! distinguish a wrong, swapped, empty or older disk from the right one, and an absent volume stays known. A volume
//! that failed a write is *poisoned* there until people clear it.
//!
//! # Errors
//!
//! Orders fail with a [`VolumesError`], which says what people have to do; questions to disks fail with a
//! [`DiskError`].

mod disks;
mod error;
mod generation;
mod memory;
mod problems;
mod verbs;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use archive_durable::{
    DiskError, DiskSeverity, ExpectedVolume, Space, VolumeIdentity, VolumeProblem, directory,
};
use archive_model::{Mode, NodeId, ReplicaId, VolumeId};
use parking_lot::{Mutex, RwLock, RwLockWriteGuard};

use self::disks::DiskThreads;
pub use self::error::VolumesError;
pub use self::memory::unlisted_volumes;
use self::memory::{
    MEMORY_NAME, RememberedVolumes, VolumeMemory, read_remembered_volumes, write_remembered_volumes,
};
use crate::layout::Layout;

/// A volume as the node sees it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The path at which the volume is, or should be, mounted.
    pub path: PathBuf,
    /// The id of the volume; unknown until a volume was seen at this path.
    pub id: Option<VolumeId>,
    /// The reason why the volume is offline; `None` if it is online.
    pub problem: Option<VolumeProblem>,
    /// The mode, which says whether the volume takes new files.
    pub mode: Mode,
}

impl Volume {
    /// Returns the layout of the volume, if it is online.
    pub fn layout(&self) -> Option<Layout> {
        self.problem.is_none().then(|| Layout::new(&self.path))
    }

    /// Returns whether the volume is there, and only waits to be reconciled with the catalog.
    fn is_waiting(&self) -> bool {
        matches!(
            self.problem,
            Some(VolumeProblem::Unchecked | VolumeProblem::Unready(_))
        )
    }
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
    /// The threads that ask disks, which may hang.
    disks: DiskThreads,
    /// Locked while the disks are looked at, which may take long.
    looking: Mutex<()>,
    /// Locked while a disk is labelled: two orders at once would not see each other.
    labelling: Mutex<()>,
}

#[derive(Debug)]
struct State {
    mode: Mode,
    remembered: BTreeMap<VolumeId, VolumeMemory>,
    volumes: Vec<Volume>,
    /// The volumes that are online, and were reconciled with the catalog since they came.
    accepted: BTreeSet<VolumeId>,
    /// The volumes that have changed since their generation was raised.
    changed: BTreeSet<VolumeId>,
    /// The number of things in the directories of files that are not archive files, when the volume was reconciled.
    foreign: BTreeMap<VolumeId, u64>,
}

impl Volumes {
    /// Looks at every path. A path without the right volume is offline with the reason, never an error. No room stays
    /// free on them ([`Volumes::with_reserve`]).
    pub fn open(
        node: &NodeId,
        replica: &ReplicaId,
        data: &Path,
        paths: &[PathBuf],
    ) -> Result<Self, VolumesError> {
        directory::make_directory(data)?;
        let memory_path = data.join(MEMORY_NAME);
        let RememberedVolumes { mode, volumes } = read_remembered_volumes(&memory_path)?;
        let volumes = Self {
            node: node.clone(),
            replica: replica.clone(),
            memory_path,
            paths: paths.to_vec(),
            reserve: 0,
            state: RwLock::new(State {
                mode,
                remembered: volumes,
                volumes: Vec::new(),
                accepted: BTreeSet::new(),
                changed: BTreeSet::new(),
                foreign: BTreeMap::new(),
            }),
            disks: DiskThreads::default(),
            looking: Mutex::default(),
            labelling: Mutex::default(),
        };
        volumes.refresh_layouts()?;
        Ok(volumes)
    }

    /// Sets the number of bytes that stay free on each volume.
    #[must_use]
    pub fn with_reserve(mut self, reserve: u64) -> Self {
        self.reserve = reserve;
        self
    }

    /// Returns the room on the file system at `path`; a disk that hangs is not waited for.
    pub fn measure_space(&self, path: &Path) -> Result<Space, DiskError> {
        self.disks.measure_space(path)
    }

    /// Looks at every path again. Returns the volumes that have come back: they stay offline until the caller has
    /// reconciled them with the catalog ([`Volumes::accept_volume`]). Nobody but the caller waits for the disks.
    pub fn refresh_layouts(&self) -> Result<Vec<(VolumeId, Layout)>, VolumesError> {
        let _alone = self.looking.lock();
        let (before, shown) = {
            let state = self.state.read();
            (state.remembered.clone(), state.volumes.clone())
        };
        let mut seen = before.clone();
        let strays = self.take_in_unclaimed(&mut seen);
        for memory in seen.values_mut() {
            memory.listed |= self.paths.contains(&memory.path);
        }
        let looked: Vec<(VolumeId, Volume)> = seen
            .iter_mut()
            .map(|(id, memory)| {
                let last = shown.iter().find(|volume| volume.id.as_ref() == Some(id));
                (id.clone(), self.look(id, memory, last))
            })
            .collect();

        let mut state = self.change_state();
        let mut remembered = state.remembered.clone();
        let mut volumes = Vec::new();
        for (id, volume) in looked {
            if remembered.get(&id) == before.get(&id) {
                if let Some(memory) = seen.remove(&id) {
                    remembered.insert(id, memory);
                }
                volumes.push(volume);
            } else {
                // An order of people, or a failure, that came meanwhile overrides what was seen.
                let now = state.volumes.iter();
                volumes.extend(now.filter(|now| now.id.as_ref() == Some(&id)).cloned());
            }
        }
        let is_taken = |path: &Path| {
            let mut all = remembered.values();
            all.any(|memory| !memory.retired && memory.path == path)
        };
        volumes.extend(strays.into_iter().filter(|stray| !is_taken(&stray.path)));
        if remembered != state.remembered {
            write_remembered_volumes(&self.memory_path, state.mode, &remembered)?;
        }
        let present = online(&volumes);
        state.accepted.retain(|id| present.contains(id));
        let mut waiting = Vec::new();
        for volume in volumes.iter_mut().filter(|volume| volume.problem.is_none()) {
            if let Some(id) = volume.id.clone().filter(|id| !state.accepted.contains(id)) {
                let before = state.volumes.iter().find(|old| old.id == volume.id);
                volume.problem = Some(match before.and_then(|old| old.problem.clone()) {
                    Some(unready @ VolumeProblem::Unready(_)) => unready,
                    _ => VolumeProblem::Unchecked,
                });
                waiting.push((id, Layout::new(&volume.path)));
            }
        }
        state.remembered = remembered;
        state.volumes = volumes;
        Ok(waiting)
    }

    /// Takes a volume online that was reconciled with the catalog, unless something has happened to it meanwhile.
    pub fn accept_volume(&self, id: &VolumeId) {
        let mut state = self.change_state();
        let State {
            volumes, accepted, ..
        } = &mut *state;
        for volume in volumes
            .iter_mut()
            .filter(|volume| volume.id.as_ref() == Some(id))
        {
            if volume.is_waiting() {
                volume.problem = None;
                accepted.insert(id.clone());
            }
        }
    }

    fn change_state(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write()
    }

    /// Looks at the paths at which no volume was seen yet. A new volume of this node is remembered; anything else is
    /// shown. The last path of a retired volume is not expected to have one.
    fn take_in_unclaimed(&self, remembered: &mut BTreeMap<VolumeId, VolumeMemory>) -> Vec<Volume> {
        let mut strays = Vec::new();
        for path in &self.paths {
            if remembered
                .values()
                .any(|memory| !memory.retired && memory.path == *path)
            {
                continue;
            }
            let expected = ExpectedVolume {
                node: self.node.clone(),
                replica: self.replica.clone(),
                seen: None,
            };
            let was_retired = remembered.values().any(|memory| memory.path == *path);
            let problem = match self.disks.recognise_volume(path, expected) {
                Ok(found) => match remembered.get(&found.volume) {
                    None => {
                        remembered.insert(found.volume, VolumeMemory::new(path, found.generation));
                        continue;
                    }
                    Some(memory) if memory.retired && memory.path == *path => continue,
                    Some(memory) if memory.retired => VolumeProblem::Retired,
                    Some(memory) => VolumeProblem::Disk(format!(
                        "volume {} belongs at {}; mount it there, or `holdfast volume adopt` it here",
                        found.volume,
                        memory.path.display()
                    )),
                },
                Err(_) if was_retired => continue,
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

    fn look(&self, id: &VolumeId, memory: &mut VolumeMemory, last: Option<&Volume>) -> Volume {
        let seen = Some((id.clone(), memory.generation));
        let expected = ExpectedVolume {
            node: self.node.clone(),
            replica: self.replica.clone(),
            seen,
        };
        let found = match (&memory.poisoned, memory.retired) {
            (_, true) => Err(VolumeProblem::Retired),
            (Some(why), false) => Err(VolumeProblem::Poisoned(why.clone())),
            (None, false) => self.disks.recognise_volume(&memory.path, expected),
        };
        if let Ok(identity) = &found {
            memory.generation = identity.generation;
        }
        Volume {
            path: memory.path.clone(),
            id: Some(id.clone()),
            problem: as_seen(found, last.filter(|last| last.path == memory.path)),
            mode: memory.mode,
        }
    }

    /// Returns all volumes, online or not: those that are known by their ids, then the paths without a known volume.
    pub fn list_volumes(&self) -> Vec<Volume> {
        self.state.read().volumes.clone()
    }

    /// Returns the volume with this id, if the node knows it.
    pub fn find_volume(&self, id: &VolumeId) -> Option<Volume> {
        self.list_volumes()
            .into_iter()
            .find(|volume| volume.id.as_ref() == Some(id))
    }

    /// Returns the online volumes with their layouts.
    pub fn online_layouts(&self) -> Vec<(VolumeId, Layout)> {
        self.list_volumes()
            .into_iter()
            .filter_map(|volume| Some((volume.id.clone()?, volume.layout()?)))
            .collect()
    }

    /// Returns the online volumes that take new files.
    pub fn writable_layouts(&self) -> Vec<(VolumeId, Layout)> {
        self.list_volumes()
            .into_iter()
            .filter(|volume| volume.mode == Mode::ReadWrite)
            .filter_map(|volume| Some((volume.id.clone()?, volume.layout()?)))
            .collect()
    }

    /// Returns the mode of the node as a whole.
    pub fn mode(&self) -> Mode {
        self.state.read().mode
    }

    /// Returns the volume with the most room, if it has room for a file of `size` bytes above the reserve and what is
    /// promised of it.
    pub fn choose_volume(
        &self,
        size: u64,
        promised: &BTreeMap<VolumeId, u64>,
    ) -> Result<Option<(VolumeId, Layout)>, DiskError> {
        let mut best: Option<(u64, VolumeId, Layout)> = None;
        for (id, layout) in self.writable_layouts() {
            let usable = match self.measure_space(layout.root()) {
                Ok(space) => {
                    let promised = promised.get(&id).copied().unwrap_or_default();
                    space.usable_bytes(self.reserve).saturating_sub(promised)
                }
                Err(error) => {
                    self.blame_volume(&id, &error)?;
                    continue;
                }
            };
            if usable >= size && best.as_ref().is_none_or(|(most, ..)| usable > *most) {
                best = Some((usable, id, layout));
            }
        }
        Ok(best.map(|(_, id, layout)| (id, layout)))
    }

    /// Returns the room on the volume of `layout` above the reserve, in bytes.
    pub fn room_on(&self, layout: &Layout) -> Result<u64, DiskError> {
        Ok(self
            .measure_space(layout.root())?
            .usable_bytes(self.reserve))
    }

    /// Takes a volume offline if the error says that its disk fails. A restart does not forget that.
    pub fn blame_volume(&self, id: &VolumeId, error: &DiskError) -> Result<(), DiskError> {
        match error.severity() {
            DiskSeverity::Disk => self.poison_volume(id, error),
            DiskSeverity::NoSpace | DiskSeverity::Request => Ok(()),
        }
    }

    /// Takes a volume offline until people clear it, at once, even if that cannot be written down.
    pub fn poison_volume(&self, id: &VolumeId, error: &DiskError) -> Result<(), DiskError> {
        tracing::error!(volume = %id, %error, "volume taken offline: a system call failed");
        let mut state = self.change_state();
        let State {
            mode,
            remembered,
            volumes,
            accepted,
            ..
        } = &mut *state;
        let Some(memory) = remembered.get_mut(id).filter(|memory| !memory.retired) else {
            return Ok(());
        };
        let why = error.to_string();
        memory.poisoned = Some(why.clone());
        accepted.remove(id);
        for volume in volumes
            .iter_mut()
            .filter(|volume| volume.id.as_ref() == Some(id))
        {
            volume.problem = Some(VolumeProblem::Poisoned(why.clone()));
        }
        match write_remembered_volumes(&self.memory_path, *mode, remembered) {
            Err(VolumesError::Disk(error)) => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Returns the problem of a volume. If the node could not look, the volume stays as it was.
fn as_seen(
    found: Result<VolumeIdentity, VolumeProblem>,
    last: Option<&Volume>,
) -> Option<VolumeProblem> {
    match (found.err(), last) {
        (Some(VolumeProblem::Unseen(why)), Some(last)) => {
            tracing::warn!(
                volume = last.id.as_ref().map(tracing::field::display),
                why,
                "the node could not look at the volume; it stays as it was"
            );
            last.problem.clone()
        }
        (problem, _) => problem,
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
