//! The disks of a node: which volumes are there, and what that means for the rows of their files.
//!
//! A volume that comes online is reconciled with the catalog before anybody may use it, once the moves and mends that a
//! crash has cut are ended. A retired volume is out of service for good, so its rows say *missing*: that is what makes
//! its files missing for the archive. Nothing else does: a disk that is dead or away has not lost its files yet.
//!
//! # Errors
//!
//! Every public function fails with a [`NodeError`], whose variants say what the caller does next.

mod missing;
mod walk;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archive_durable::DiskError;
use archive_model::{FileName, Mode, NodeId, Root, VolumeId};
use archive_proof::TrustFile;
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::attic::AtticMoves;
use crate::catalog::Catalog;
use crate::claims::FileLocks;
use crate::error::NodeError;
use crate::layout::{FileDirectory, Layout};
use crate::manifest;
use crate::reconcile::{ReconcileReport, Reconciler};
use crate::volumes::{Volumes, VolumesError};

/// The disks of a node. Shared by all who need to know where its files are.
#[derive(Debug)]
pub struct NodeDisks {
    /// The volumes, online or not.
    pub volumes: Volumes,
    node: NodeId,
    trust: Arc<TrustFile>,
    catalog: Arc<Catalog>,
    locks: Arc<FileLocks>,
    moves: Arc<AtticMoves>,
    /// Locked while volumes are reconciled with the catalog.
    refreshing: Mutex<()>,
    /// Locked while a manifest is changed.
    lists: Mutex<()>,
    /// The number of times that a volume was reconciled with the catalog, or an unexpected file was met: there may be
    /// files to hash.
    looked: AtomicU64,
}

impl NodeDisks {
    /// Makes the disks of `node`, whose volumes are not reconciled with the catalog yet.
    pub(super) fn new(
        volumes: Volumes,
        node: NodeId,
        trust: Arc<TrustFile>,
        catalog: Arc<Catalog>,
        locks: Arc<FileLocks>,
        moves: Arc<AtticMoves>,
    ) -> Self {
        Self {
            volumes,
            node,
            trust,
            catalog,
            locks,
            moves,
            refreshing: Mutex::default(),
            lists: Mutex::default(),
            looked: AtomicU64::new(0),
        }
    }

    /// Returns the paths of a volume that is online.
    pub fn find_layout(&self, id: &VolumeId) -> Result<Layout, NodeError> {
        let volume = self
            .volumes
            .find_volume(id)
            .ok_or_else(|| VolumesError::Unknown(id.clone()))?;
        match volume.problem {
            None => Ok(Layout::new(&volume.path)),
            Some(problem) => Err(NodeError::Offline {
                volume: id.clone(),
                problem,
            }),
        }
    }

    /// Checks that a volume is online, and that the disk which is there now is still that volume.
    pub fn confirm_volume(&self, id: &VolumeId, layout: &Layout) -> Result<(), NodeError> {
        self.find_layout(id)?;
        let found = self.volumes.confirm_generation(id, layout);
        found.map_err(|problem| NodeError::Offline {
            volume: id.clone(),
            problem,
        })
    }

    /// Returns the paths of a volume that is online, for an act that changes what it has of a file. A directory that
    /// somebody has removed is made again; what else was in it is missing, as the next walk finds.
    pub(crate) fn open_place(&self, id: &VolumeId, name: &FileName) -> Result<Layout, NodeError> {
        let layout = self.find_layout(id)?;
        self.ready_place(id, &layout, name)?;
        Ok(layout)
    }

    /// Makes the directories again that a file needs, if somebody has removed them.
    pub(crate) fn ready_place(
        &self,
        id: &VolumeId,
        layout: &Layout,
        name: &FileName,
    ) -> Result<(), NodeError> {
        if layout.has_place(name)? {
            return Ok(());
        }
        self.restore_directories(id, layout)
    }

    /// Makes the directories of an online volume again that somebody has removed.
    fn restore_directories(&self, id: &VolumeId, layout: &Layout) -> Result<(), NodeError> {
        // Without its label this may be an empty mount point.
        self.confirm_volume(id, layout)?;
        make_again(id, layout).map_err(|error| self.blame_disk(id, error))
    }

    pub(crate) fn is_online(&self, id: &VolumeId) -> bool {
        self.volumes
            .find_volume(id)
            .is_some_and(|volume| volume.problem.is_none())
    }

    /// Returns whether a volume, or the whole node, is drained.
    pub(crate) fn is_drained(&self, id: &VolumeId) -> bool {
        let volume = self.volumes.find_volume(id);
        self.volumes.mode() == Mode::Draining
            || volume.is_some_and(|one| one.mode == Mode::Draining)
    }

    /// Refuses while the node takes no new files.
    pub(crate) fn refuse_unless_open(&self) -> Result<(), NodeError> {
        match self.volumes.mode() {
            Mode::ReadWrite => Ok(()),
            mode @ (Mode::ReadOnly | Mode::Draining | Mode::Retired) => {
                Err(NodeError::TakesNothing {
                    what: format!("node {}", self.node),
                    mode,
                })
            }
        }
    }

    /// Refuses while a volume takes no new files.
    pub(crate) fn refuse_unless_writable(&self, volume: &VolumeId) -> Result<(), NodeError> {
        match self.volumes.find_volume(volume).map(|volume| volume.mode) {
            Some(mode @ (Mode::ReadOnly | Mode::Draining | Mode::Retired)) => {
                Err(NodeError::TakesNothing {
                    what: format!("volume {volume}"),
                    mode,
                })
            }
            Some(Mode::ReadWrite) | None => Ok(()),
        }
    }

    /// Takes the volume offline if the error says that its disk fails, and returns the error.
    pub(crate) fn blame_disk(&self, volume: &VolumeId, error: DiskError) -> NodeError {
        let worse = self.volumes.blame_volume(volume, &error).err();
        NodeError::Disk(worse.unwrap_or(error))
    }

    /// Labels an empty directory as a new volume and takes it into use.
    pub fn init_volume(
        &self,
        path: &Path,
        id: &VolumeId,
        now: Timestamp,
    ) -> Result<ReconcileReport, NodeError> {
        absolute(path)?;
        self.volumes.init_volume(path, id)?;
        tracing::warn!(volume = %id, path = %path.display(), "a new volume was labelled");
        self.refresh_volumes(now)
    }

    /// Adopts a disk that another node has labelled, and reconciles it with the catalog. With `id`, only that volume.
    pub fn adopt_volume(
        &self,
        path: &Path,
        id: Option<&VolumeId>,
        now: Timestamp,
    ) -> Result<ReconcileReport, NodeError> {
        absolute(path)?;
        let id = self.volumes.adopt_as(path, id)?;
        tracing::warn!(volume = %id, path = %path.display(), "a volume was taken over");
        self.refresh_volumes(now)
    }

    /// Clears a poisoned volume that people have looked at; it is reconciled with the catalog before it serves.
    pub fn clear_volume(
        &self,
        volume: &VolumeId,
        now: Timestamp,
    ) -> Result<ReconcileReport, NodeError> {
        self.volumes.clear_volume(volume)?;
        self.refresh_volumes(now)
    }

    /// Sets whether a volume takes new files.
    pub fn set_volume_mode(&self, id: &VolumeId, mode: Mode) -> Result<(), NodeError> {
        self.volumes.set_mode(id, mode)?;
        tracing::warn!(volume = %id, %mode, "the mode of a volume was set");
        Ok(())
    }

    /// Sets whether the node as a whole takes new files.
    pub fn set_node_mode(&self, mode: Mode) -> Result<(), NodeError> {
        self.volumes.set_node_mode(mode)?;
        tracing::warn!(node = %self.node, %mode, "the mode of the node was set");
        Ok(())
    }

    /// Retires a volume permanently, whether its disk is there or not. Returns the number of files that are missing by
    /// that.
    pub fn retire_volume(&self, id: &VolumeId, now: Timestamp) -> Result<u64, NodeError> {
        self.volumes.retire_volume(id)?;
        let missing = self.note_retired(now)?;
        tracing::warn!(volume = %id, missing, "a volume was retired");
        Ok(missing)
    }

    /// Takes a retired volume back into service, and reconciles it with the catalog: its files are present again.
    pub fn reinstate_volume(
        &self,
        id: &VolumeId,
        now: Timestamp,
    ) -> Result<ReconcileReport, NodeError> {
        self.volumes.reinstate_volume(id)?;
        tracing::warn!(volume = %id, "a retired volume is in service again");
        self.refresh_volumes(now)
    }

    /// Looks at the disks again. A volume that has come back is reconciled with the catalog before anybody may use it.
    pub fn refresh_volumes(&self, now: Timestamp) -> Result<ReconcileReport, NodeError> {
        let _alone = self.refreshing.lock();
        let mut found = ReconcileReport::default();
        let mut is_any_new = false;
        for (id, layout) in self.volumes.refresh_layouts()? {
            if let Some(one) = self.reconcile_volume(&id, &layout, now)? {
                self.volumes.note_foreign(&id, one.foreign);
                for warning in self.volumes.volume_warnings(&id) {
                    tracing::warn!(volume = %id, warning);
                }
                found.add(one);
                self.volumes.accept_volume(&id);
                self.note_looked();
                is_any_new = true;
            }
        }
        if is_any_new {
            self.forget_all_answered(now)?;
        }
        self.moves.settle_again(&self.catalog, &self.volumes);
        Ok(found)
    }

    /// Reconciles a volume with the catalog. Returns `None` if that cannot be done now; the volume then stays offline.
    fn reconcile_volume(
        &self,
        id: &VolumeId,
        layout: &Layout,
        now: Timestamp,
    ) -> Result<Option<ReconcileReport>, NodeError> {
        let reconciler = self.reconciler(id, layout, now);
        let made = make_again(id, layout).map_err(NodeError::Disk);
        let found = made
            .and_then(|()| self.moves.settle_volume(&self.catalog, id, layout))
            .and_then(|()| reconciler.finish_cut_mends())
            .and_then(|()| reconciler.reconcile_volume())
            .and_then(|found| match self.volumes.raise_generation(id, layout) {
                Err(VolumesError::Disk(error)) => Err(NodeError::Disk(error)),
                raised => Ok(raised.map(|()| found)?),
            });
        match found {
            Ok(found) => Ok(Some(found)),
            Err(NodeError::Disk(error)) => {
                tracing::warn!(volume = %id, %error, "the volume cannot be reconciled with the catalog");
                self.volumes.blame_volume(id, &error)?;
                self.volumes.cannot_accept(id, &error);
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }

    /// Reconciles one file with the catalog, as a start would, and returns its root. A disk that fails meanwhile is
    /// taken offline: after a failed sync of a name, a second one would pass and prove nothing.
    pub(crate) fn reconcile_file(
        &self,
        id: &VolumeId,
        layout: &Layout,
        name: &FileName,
        now: Timestamp,
    ) -> Result<Option<Root>, NodeError> {
        self.note_looked();
        let looked = self.reconciler(id, layout, now).reconcile_file(name);
        looked.map_err(|error| match error {
            NodeError::Disk(error) => self.blame_disk(id, error),
            other => other,
        })
    }

    /// The means by which a volume, or one file of it, is reconciled with the catalog.
    pub(crate) fn reconciler<'a>(
        &'a self,
        volume: &'a VolumeId,
        layout: &'a Layout,
        now: Timestamp,
    ) -> Reconciler<'a> {
        Reconciler {
            volumes: &self.volumes,
            catalog: &self.catalog,
            trust: &self.trust,
            volume,
            layout,
            now,
        }
    }

    /// Notes that there may be files without a sidecar to hash.
    fn note_looked(&self) {
        self.looked.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns a number that changes whenever there may be files without a sidecar to hash.
    pub(crate) fn count_looks(&self) -> u64 {
        self.looked.load(Ordering::Acquire)
    }

    /// Adds a file to the manifest of its directory. The list is derived: the next start corrects a failure here.
    pub(crate) fn add_to_manifest(
        &self,
        volume: &VolumeId,
        layout: &Layout,
        name: &FileName,
        root: Root,
    ) {
        self.change_manifest(volume, name, || {
            manifest::add_line(&layout.manifest(FileDirectory::for_name(name)), name, root)
        });
    }

    /// Removes a file from the manifest of its directory.
    pub(crate) fn remove_from_manifest(&self, volume: &VolumeId, layout: &Layout, name: &FileName) {
        self.change_manifest(volume, name, || {
            manifest::remove_line(&layout.manifest(FileDirectory::for_name(name)), name)
        });
    }

    fn change_manifest(
        &self,
        volume: &VolumeId,
        name: &FileName,
        change: impl FnOnce() -> Result<(), DiskError>,
    ) {
        let _alone = self.lists.lock();
        if let Err(error) = change() {
            // The disk may be to blame.
            let error = self.blame_disk(volume, error);
            tracing::warn!(file = %name, %error, "the manifest is not right until the next start");
        }
    }
}

/// Makes the directories of a volume again that somebody has removed.
fn make_again(id: &VolumeId, layout: &Layout) -> Result<(), DiskError> {
    for made in layout.make_directories()? {
        tracing::warn!(volume = %id, directory = %made.display(), "it was not there, and was made again; what was in it is missing");
    }
    Ok(())
}

/// Refuses a path that depends on the directory in which the node was started.
fn absolute(path: &Path) -> Result<(), NodeError> {
    if path.is_absolute() {
        return Ok(());
    }
    Err(VolumesError::Path {
        path: path.to_owned(),
        why: "not an absolute path",
    }
    .into())
}
