//! The walk that compares the names on the disks with the catalog while the node runs: it finds files that were deleted
//! from a disk, or put onto it, behind the node's back.
//!
//! The walk compares names only: directories are read, and no files. Only where the disk and the catalog differ is a
//! file looked at, alone and under its claim, so that files which are stored, moved or removed meanwhile are not
//! judged. The row of a file that cannot be looked at stays as it is.

use std::ffi::OsStr;
use std::ops::ControlFlow;

use archive_durable::directory::{self, EntryKind};
use archive_model::{FileName, VolumeId};
use jiff::Timestamp;

use super::Node;
use crate::catalog::{Condition, Entry};
use crate::claims::verb;
use crate::error::NodeError;
use crate::layout::{FileDirectory, Layout};
use crate::reconcile::{self, fingerprint};

/// The number of rows that are compared before the caller hears of it.
const ROWS: usize = 10_000;

/// A callback that hears how many names and rows were just looked at, and may stop the work.
pub(crate) type WalkProgress<'a> = &'a mut dyn FnMut(u64) -> ControlFlow<()>;

impl Node {
    /// Compares the names on every online volume with the catalog. Returns `None` if `progress` stopped it. A volume
    /// whose directories cannot be read is offline from then on.
    pub(crate) fn walk(
        &self,
        now: Timestamp,
        progress: WalkProgress<'_>,
    ) -> Result<Option<()>, NodeError> {
        for (id, layout) in self.volume_set().online() {
            match self.walk_volume(&id, &layout, now, progress) {
                Ok(Some(())) => {}
                Ok(None) => return Ok(None),
                Err(NodeError::Disk(error)) if !error.is_exhausted() => {
                    // A disk that went away is not a disk that fails: its label decides.
                    if self.still_there(&id, &layout).is_ok() {
                        tracing::warn!(volume = %id, %error, "its directories cannot be read");
                        self.volume_set().cannot_look(&id, &error);
                        drop(self.blame(&id, error));
                    }
                    self.refresh(now)?;
                }
                Err(other) => return Err(other),
            }
        }
        Ok(Some(()))
    }

    fn walk_volume(
        &self,
        id: &VolumeId,
        layout: &Layout,
        now: Timestamp,
        progress: WalkProgress<'_>,
    ) -> Result<Option<()>, NodeError> {
        // Eight bytes for each name, because the names would not fit into memory.
        let mut on_disk = Vec::new();
        for dir in FileDirectory::all() {
            let before = on_disk.len();
            for called in directory::names(&layout.files(dir))? {
                if let Some(name) = dir.file(&called) {
                    on_disk.push(fingerprint(&name));
                } else if let Some(name) = dir.stray(&called)
                    && self.move_home(id, layout, dir, &called, &name)?
                {
                    on_disk.push(fingerprint(&name));
                }
            }
            if progress((on_disk.len() - before) as u64).is_break() {
                return Ok(None);
            }
        }
        on_disk.sort_unstable();
        let is_on_disk = |name: &FileName| on_disk.binary_search(&fingerprint(name)).is_ok();
        let mut known = Vec::with_capacity(on_disk.len());
        let mut doubtful = Vec::new();
        for (count, entry) in self.catalog().list(None)?.enumerate() {
            if count % ROWS == ROWS - 1 && progress(ROWS as u64).is_break() {
                return Ok(None);
            }
            let entry = entry?;
            if entry.volume != *id || super::answered::is_missing(&entry) {
                continue;
            }
            known.push(fingerprint(&entry.name));
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
                let mut names = names(layout, dir)?;
                names.retain(|name| known.binary_search(&fingerprint(name)).is_err());
                doubtful.append(&mut names);
            }
        }
        for name in doubtful {
            self.look_up_on(id, layout, &name, now)?;
            if progress(1).is_break() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }

    /// Moves a file that lies in the wrong directory to its place, unless somebody works on the file of that name.
    fn move_home(
        &self,
        id: &VolumeId,
        layout: &Layout,
        dir: FileDirectory,
        called: &OsStr,
        name: &FileName,
    ) -> Result<bool, NodeError> {
        let Ok(_claim) = self.claim(name, &verb("look", name)?) else {
            return Ok(false);
        };
        self.still_there(id, layout)?;
        match reconcile::move_one_home(id, layout, dir, called, name) {
            Ok(is_home) => Ok(is_home),
            Err(error) => {
                let error = self.blame(id, error);
                tracing::warn!(volume = %id, file = %name, %error, "it lies in the wrong directory, and cannot be moved");
                Ok(false)
            }
        }
    }

    /// Returns the copies of a file on this node, as the disks confirm them.
    pub(crate) fn find_on_disk(
        &self,
        name: &FileName,
        now: Timestamp,
    ) -> Result<Vec<Entry>, NodeError> {
        for (id, layout) in self.volume_set().online() {
            self.look_up_on(&id, &layout, name, now)?;
        }
        self.find(name)
    }

    /// Corrects the row of one file on one volume if it is wrong about whether the file is there.
    fn look_up_on(
        &self,
        id: &VolumeId,
        layout: &Layout,
        name: &FileName,
        now: Timestamp,
    ) -> Result<(), NodeError> {
        if self.bears_out(id, layout, name)? {
            return Ok(());
        }
        // The upload, move or mend that has the file updates its row.
        let Ok(_claim) = self.claim(name, &verb("look", name)?) else {
            return Ok(());
        };
        if self.bears_out(id, layout, name)? || self.still_there(id, layout).is_err() {
            return Ok(());
        }
        let known = self.catalog().row(name, id)?;
        if let Some(row) = known.filter(|row| !matches!(row.condition, Condition::Missing { .. })) {
            tracing::warn!(file = %name, volume = %id, "it is no longer on the disk");
            let mut missing = Entry {
                name: name.clone(),
                volume: id.clone(),
                row,
            };
            missing.row.condition = Condition::Missing { since: now };
            self.catalog().put(&[missing])?;
        } else {
            self.look_at(id, layout, name, now)?;
        }
        Ok(())
    }

    /// Returns whether the disk confirms the catalog. A name that cannot be looked at counts as confirmed.
    fn bears_out(
        &self,
        id: &VolumeId,
        layout: &Layout,
        name: &FileName,
    ) -> Result<bool, NodeError> {
        let is_there = match directory::kind(&layout.target(name).file) {
            Ok(found) => matches!(found, Some(EntryKind::File { .. })),
            Err(error) => {
                tracing::warn!(file = %name, volume = %id, %error, "cannot be looked at");
                return Ok(true);
            }
        };
        let row = self.catalog().row(name, id)?;
        let is_known = row.is_some_and(|row| !matches!(row.condition, Condition::Missing { .. }));
        Ok(is_there == is_known)
    }
}

/// Lists the names of archive files in one directory.
fn names(layout: &Layout, dir: FileDirectory) -> Result<Vec<FileName>, NodeError> {
    let names = directory::names(&layout.files(dir))?;
    Ok(names.iter().filter_map(|name| dir.file(name)).collect())
}
