//! The walk that compares the names on the disks with the catalog while the node runs: it finds files that were deleted
//! from a disk, or put onto it, behind the node's back.
//!
//! The walk compares names only: directories are read, and no files. Only where the disk and the catalog differ is a
//! file looked at, alone and under its claim, so that files which are stored, moved or removed meanwhile are not
//! judged. The row of a file that cannot be looked at stays as it is.

use std::ffi::OsStr;
use std::ops::ControlFlow;

use archive_durable::VolumeProblem;
use archive_durable::directory::{self, EntryKind};
use archive_model::{FileName, VolumeId};
use jiff::Timestamp;

use super::NodeDisks;
use super::missing::{as_missing, is_missing};
use crate::catalog::{CatalogEntry, Condition};
use crate::claims::claim_for_verb;
use crate::error::NodeError;
use crate::layout::{FileDirectory, Layout};
use crate::reconcile::{self, name_fingerprint};

/// The number of rows that are compared before the caller hears of it.
const ROWS: usize = 10_000;

/// A callback that hears how many names and rows were just looked at, and may stop the work.
pub(crate) type WalkProgress<'a> = &'a mut dyn FnMut(u64) -> ControlFlow<()>;

impl NodeDisks {
    /// Compares the names on every online volume with the catalog. Returns `None` if `progress` stopped it. A volume
    /// whose directories cannot be read is offline from then on.
    pub(crate) fn walk_volumes(
        &self,
        now: Timestamp,
        progress: WalkProgress<'_>,
    ) -> Result<Option<()>, NodeError> {
        for (id, layout) in self.volumes.online_layouts() {
            let walk = VolumeWalk {
                disks: self,
                id: &id,
                layout: &layout,
                now,
            };
            match walk.compare_names(progress) {
                Ok(Some(())) => {}
                Ok(None) => return Ok(None),
                // It went away.
                Err(NodeError::Offline { problem, .. })
                    if !matches!(problem, VolumeProblem::Unseen(_)) =>
                {
                    self.refresh_volumes(now)?;
                }
                Err(NodeError::Disk(error)) if !error.is_exhausted() => {
                    // A disk that went away is not a disk that fails: its label decides.
                    if self.confirm_volume(&id, &layout).is_ok() {
                        tracing::warn!(volume = %id, %error, "its directories cannot be read");
                        self.volumes.cannot_look(&id, &error);
                        drop(self.blame_disk(&id, error));
                    }
                    self.refresh_volumes(now)?;
                }
                Err(other) => return Err(other),
            }
        }
        Ok(Some(()))
    }

    /// Corrects the rows of a file that are wrong about whether it is on a disk.
    pub(crate) fn look_up_file(&self, name: &FileName, now: Timestamp) -> Result<(), NodeError> {
        for (id, layout) in self.volumes.online_layouts() {
            let walk = VolumeWalk {
                disks: self,
                id: &id,
                layout: &layout,
                now,
            };
            walk.look_up(name)?;
        }
        Ok(())
    }
}

/// The walk over one volume.
struct VolumeWalk<'a> {
    disks: &'a NodeDisks,
    id: &'a VolumeId,
    layout: &'a Layout,
    now: Timestamp,
}

impl VolumeWalk<'_> {
    /// Compares all names. Returns `None` if `progress` stopped it.
    fn compare_names(&self, progress: WalkProgress<'_>) -> Result<Option<()>, NodeError> {
        self.disks.restore_directories(self.id, self.layout)?;
        // Eight bytes for each name, because the names would not fit into memory.
        let mut on_disk = Vec::new();
        for dir in FileDirectory::all() {
            let before = on_disk.len();
            for called in directory::list_names(&self.layout.files(dir))? {
                if let Some(name) = dir.file_name(&called) {
                    on_disk.push(name_fingerprint(&name));
                } else if let Some(name) = dir.stray_file_name(&called)
                    && self.move_home(dir, &called, &name)?
                {
                    on_disk.push(name_fingerprint(&name));
                }
            }
            if progress((on_disk.len() - before) as u64).is_break() {
                return Ok(None);
            }
        }
        on_disk.sort_unstable();
        let is_on_disk = |name: &FileName| on_disk.binary_search(&name_fingerprint(name)).is_ok();
        let mut known = Vec::with_capacity(on_disk.len());
        let mut doubtful = Vec::new();
        for (count, entry) in self.disks.catalog.list_entries(None)?.enumerate() {
            if count % ROWS == ROWS - 1 && progress(ROWS as u64).is_break() {
                return Ok(None);
            }
            let entry = entry?;
            if entry.volume != *self.id || is_missing(&entry) {
                continue;
            }
            known.push(name_fingerprint(&entry.name));
            if !is_on_disk(&entry.name) {
                doubtful.push(entry.name);
            }
        }
        known.sort_unstable();
        if on_disk
            .iter()
            .any(|name| known.binary_search(name).is_err())
        {
            for dir in FileDirectory::all() {
                let mut names = names(self.layout, dir)?;
                names.retain(|name| known.binary_search(&name_fingerprint(name)).is_err());
                doubtful.append(&mut names);
            }
        }
        for name in doubtful {
            self.look_up(&name)?;
            if progress(1).is_break() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }

    /// Moves a file that lies in the wrong directory to its place, unless somebody works on the file of that name.
    fn move_home(
        &self,
        dir: FileDirectory,
        called: &OsStr,
        name: &FileName,
    ) -> Result<bool, NodeError> {
        let Ok(_claim) = self
            .disks
            .locks
            .claim_name(name, &claim_for_verb("look", name)?)
        else {
            return Ok(false);
        };
        self.disks.confirm_volume(self.id, self.layout)?;
        match reconcile::move_one_home(self.id, self.layout, dir, called, name) {
            Ok(is_home) => Ok(is_home),
            Err(error) => {
                let error = self.disks.blame_disk(self.id, error);
                tracing::warn!(volume = %self.id, file = %name, %error, "it lies in the wrong directory, and cannot be moved");
                Ok(false)
            }
        }
    }

    /// Corrects the row of one file if it is wrong about whether the file is there.
    fn look_up(&self, name: &FileName) -> Result<(), NodeError> {
        let Self {
            disks,
            id,
            layout,
            now,
        } = *self;
        if self.bears_out(name)? {
            return Ok(());
        }
        // The upload, move or mend that has the file updates its row.
        let Ok(_claim) = disks.locks.claim_name(name, &claim_for_verb("look", name)?) else {
            return Ok(());
        };
        if self.bears_out(name)? || disks.confirm_volume(id, layout).is_err() {
            return Ok(());
        }
        let known = disks.catalog.row(name, id)?;
        if let Some(row) = known.filter(|row| !matches!(row.condition, Condition::Missing { .. })) {
            tracing::warn!(file = %name, volume = %id, "it is no longer on the disk");
            let entry = CatalogEntry {
                name: name.clone(),
                volume: id.clone(),
                row,
            };
            disks.catalog.put_entries(&[as_missing(entry, now)])?;
        } else {
            disks.reconcile_file(id, layout, name, now)?;
        }
        Ok(())
    }

    /// Returns whether the disk confirms the catalog. A name that cannot be looked at counts as confirmed.
    fn bears_out(&self, name: &FileName) -> Result<bool, NodeError> {
        let is_there = match directory::entry_kind(&self.layout.target_paths(name).file) {
            Ok(found) => matches!(found, Some(EntryKind::File { .. })),
            Err(error) => {
                tracing::warn!(file = %name, volume = %self.id, %error, "cannot be looked at");
                return Ok(true);
            }
        };
        let row = self.disks.catalog.row(name, self.id)?;
        let is_known = row.is_some_and(|row| !matches!(row.condition, Condition::Missing { .. }));
        Ok(is_there == is_known)
    }
}

/// Lists the names of archive files in one directory.
fn names(layout: &Layout, dir: FileDirectory) -> Result<Vec<FileName>, NodeError> {
    let names = directory::list_names(&layout.files(dir))?;
    Ok(names
        .iter()
        .filter_map(|name| dir.file_name(name))
        .collect())
}
