//! The verification of one copy: it is read whole, past the page cache, and its condition goes into the catalog.
//!
//! The data is judged by the root as admitted and by nothing else. A rotten or absent outboard costs time, and is
//! computed again once the data is good; a rotten sidecar makes a good file *unexpected*, for the repository to adopt
//! again. An absent name, or one that bears something else (a directory, a link: never followed), is missing; a file
//! that cannot be opened is unreadable as a whole; a file that is longer than admitted is damaged in its last group.
//!
//! Not promised: anything about a volume that went away meanwhile. Its rows stay as they are.
//!
//! # Errors
//!
//! Every public function fails with a [`NodeError`], whose variants say what the caller does next.

use std::ops::ControlFlow;

use archive_durable::{DiskError, UncachedFile, exchange};
use archive_model::{FileContent, FileName, Groups, Root, VolumeId, groups};
use archive_proof::{CopyBytes, OutboardState, ReadAt, walk_tree};
use jiff::Timestamp;

use super::NodeFiles;
use crate::catalog::{CatalogEntry, Condition, Row};
use crate::claims::Hold;
use crate::error::NodeError;
use crate::layout::{Layout, MendPaths, is_file};
use crate::reconcile;
use crate::work::Work;

/// A callback that receives how many bytes were just read (at most 1 MiB). The callback may wait, to throttle, and may
/// stop the work.
pub type VerifyProgress<'a> = &'a mut dyn FnMut(u64) -> ControlFlow<()>;

/// The number of bytes of a file without a root that are hashed at a time.
const BLOCK: usize = 1024 * 1024;

impl NodeFiles {
    /// Reads a copy and judges it. `volume` may be left out if the node has only one copy.
    pub fn verify_copy(
        &self,
        name: &FileName,
        volume: Option<&VolumeId>,
        now: Timestamp,
        progress: VerifyProgress<'_>,
    ) -> Result<CatalogEntry, NodeError> {
        let entry = self.pick_copy(name, volume, now)?;
        let hold = self.locks.hold_file(&entry.name, Work::Verify)?;
        self.verify_held(&hold, &entry.volume, now, progress)
    }

    /// Finds the copy that is meant: one in the catalog, or one on a disk that was not seen yet.
    pub(super) fn pick_copy(
        &self,
        name: &FileName,
        volume: Option<&VolumeId>,
        now: Timestamp,
    ) -> Result<CatalogEntry, NodeError> {
        let find = || -> Result<Vec<CatalogEntry>, NodeError> {
            let mut found = self.catalog.find_entries(name)?;
            found.retain(|entry| volume.is_none_or(|volume| entry.volume == *volume));
            Ok(found)
        };
        let mut found = find()?;
        // While it is received, its row is the upload's to write.
        if found.is_empty() && self.locks.find_upload(name).is_none() {
            for (id, layout) in self.disks.volumes.online_layouts() {
                if volume.is_none_or(|volume| id == *volume) {
                    self.disks.reconcile_file(&id, &layout, name, now)?;
                }
            }
            found = find()?;
        }
        match <[CatalogEntry; 1]>::try_from(found) {
            Ok([entry]) => Ok(entry),
            Err(none) if none.is_empty() => Err(NodeError::NotFound(name.clone())),
            Err(_several) => Err(NodeError::Several(name.clone())),
        }
    }

    /// Returns the root of a copy just after it was verified: of an intact one as admitted, of a damaged one by reading
    /// it once more. Returns `None` if the copy is absent, or some of it cannot be read.
    pub fn read_root_now(
        &self,
        entry: &CatalogEntry,
        progress: VerifyProgress<'_>,
    ) -> Result<Option<Root>, NodeError> {
        match &entry.row.condition {
            Condition::Present | Condition::Unexpected { .. } => Ok(entry.row.root),
            Condition::Damaged { unreadable, .. } if unreadable.is_empty() => {
                let target = self
                    .disks
                    .find_layout(&entry.volume)?
                    .target_paths(&entry.name);
                let data = UncachedFile::open(&target.file)?;
                Ok(hash(&entry.name, &data, progress)?.map(|(_, root)| root))
            }
            Condition::Missing { .. } | Condition::Damaged { .. } => Ok(None),
        }
    }

    /// Verifies one copy, which the catalog has, of a file that the caller holds.
    pub(crate) fn verify_held(
        &self,
        hold: &Hold,
        volume: &VolumeId,
        now: Timestamp,
        progress: VerifyProgress<'_>,
    ) -> Result<CatalogEntry, NodeError> {
        let name = hold.name();
        let layout = self.disks.find_layout(volume)?;
        let row = self
            .catalog
            .row(name, volume)?
            .ok_or_else(|| NodeError::NotFound(name.clone()))?;
        let before = row.condition.clone();
        let mut yielding = |bytes| {
            if hold.is_wanted() {
                return ControlFlow::Break(());
            }
            progress(bytes)
        };
        let judge = CopyCheck {
            files: self,
            layout: &layout,
            name,
            volume,
            now,
        };
        let row = judge.row(row, &mut yielding)?;
        // A disk that went away proves nothing about its files.
        self.disks.confirm_volume(volume, &layout)?;
        let entry = CatalogEntry {
            name: name.clone(),
            volume: volume.clone(),
            row,
        };
        if entry.row.condition != before {
            tracing::info!(file = %name, %volume, %before, now = %entry.row.condition, "verified: the condition of a copy has changed");
        }
        self.catalog.put_entries(std::slice::from_ref(&entry))?;
        if matches!(entry.row.condition, Condition::Damaged { .. }) {
            self.scrub_age.suspect_entry(&entry, now);
        }
        Ok(entry)
    }
}

/// Returns the size and root of the bytes as they are now, or `None` if some of them cannot be read.
fn hash(
    name: &FileName,
    data: &UncachedFile,
    progress: VerifyProgress<'_>,
) -> Result<Option<(u64, Root)>, NodeError> {
    let mut hasher = blake3::Hasher::new();
    let mut block = vec![0; BLOCK];
    let mut offset = 0;
    loop {
        let Ok(read) = data.read_at(offset, &mut block) else {
            return Ok(None);
        };
        let Some(bytes) = block.get(..read).filter(|bytes| !bytes.is_empty()) else {
            let root = Root::from_bytes(*hasher.finalize().as_bytes());
            return Ok(Some((offset, root)));
        };
        hasher.update(bytes);
        offset += read as u64;
        if progress(read as u64).is_break() {
            return Err(NodeError::Stopped(name.clone()));
        }
    }
}

/// The parts that a verification compares.
struct CopyCheck<'a> {
    files: &'a NodeFiles,
    layout: &'a Layout,
    name: &'a FileName,
    volume: &'a VolumeId,
    now: Timestamp,
}

impl CopyCheck<'_> {
    /// Makes the new row.
    fn row(&self, mut row: Row, progress: VerifyProgress<'_>) -> Result<Row, NodeError> {
        let target = self.layout.target_paths(self.name);
        let sidecar = reconcile::read_sidecar(&target.sidecar, self.name, &self.files.trust)?;
        if let Ok((size, root, stored)) = sidecar {
            // The admission decides; the row is only what was known so far.
            row = Row {
                size,
                root: Some(root),
                stored,
                ..row
            };
        }
        let is_there = match is_file(&target.file) {
            Err(error) if !error.is_exhausted() => return Ok(self.unreadable(&row, &error)),
            other => other?,
        };
        if !is_there {
            let since = match row.condition {
                Condition::Missing { since } => since,
                Condition::Present | Condition::Damaged { .. } | Condition::Unexpected { .. } => {
                    self.now
                }
            };
            row.condition = Condition::Missing { since };
            return Ok(row);
        }
        let data = match UncachedFile::open(&target.file) {
            Err(error) if !error.is_exhausted() => return Ok(self.unreadable(&row, &error)),
            other => other?,
        };
        let Some(root) = row.root else {
            return self.hash(row, &data, progress);
        };
        let outboard = UncachedFile::open(&target.outboard);
        let length = data.size()?;
        let content = FileContent {
            root,
            size: row.size,
        };
        let copy = CopyBytes {
            data: &data,
            outboard: outboard
                .as_ref()
                .ok()
                .map(|outboard| outboard as &dyn ReadAt),
        };
        let mut found = walk_tree(copy, content, progress);
        if outboard.is_err_and(|error| !error.is_absent()) {
            found.outboard = OutboardState::Damaged;
        }
        if found.stopped {
            return Err(NodeError::Stopped(self.name.clone()));
        }
        if length > row.size {
            let last = groups::group_count(row.size) - 1;
            if !found.unreadable.contains_group(last) {
                found.damaged.insert_one(last);
            }
        }
        if !found.is_intact() {
            if let Some(error) = &found.read_error {
                tracing::warn!(file = %self.name, volume = %self.volume, error, groups = found.unreadable.len(), "cannot be read");
            }
            row.condition = self.damaged(&row, found.damaged, found.unreadable);
            return Ok(row);
        }
        if found.outboard != OutboardState::Good {
            self.rebuild(&data, content);
        }
        row.verified = Some(self.now);
        row.condition = match sidecar {
            Ok(_) => Condition::Present,
            Err(why) => Condition::Unexpected { why },
        };
        Ok(row)
    }

    /// Makes the row of a file that cannot be opened, or not even looked at.
    fn unreadable(&self, row: &Row, error: &DiskError) -> Row {
        tracing::warn!(file = %self.name, volume = %self.volume, %error, "cannot be read at all");
        Row {
            condition: self.damaged(row, Groups::none(), Groups::all(row.size)),
            ..row.clone()
        }
    }

    fn damaged(&self, row: &Row, corrupt: Groups, unreadable: Groups) -> Condition {
        let since = match row.condition {
            Condition::Damaged { since, .. } => since,
            Condition::Present | Condition::Missing { .. } | Condition::Unexpected { .. } => {
                self.now
            }
        };
        Condition::Damaged {
            since,
            corrupt,
            unreadable,
        }
    }

    /// Makes the row of a file that nobody admitted, with the root of its bytes, for the repository to recognise.
    fn hash(
        &self,
        mut row: Row,
        data: &UncachedFile,
        progress: VerifyProgress<'_>,
    ) -> Result<Row, NodeError> {
        // A file that cannot be read gets no root, and keeps its condition.
        if let Some((size, root)) = hash(self.name, data, progress)? {
            row.size = size;
            row.root = Some(root);
            row.verified = Some(self.now);
        }
        Ok(row)
    }

    /// Computes a rotten or absent outboard again. If the disk has no room for it, or fails, that is no fault of the
    /// data.
    fn rebuild(&self, data: &UncachedFile, content: FileContent) {
        let beside = MendPaths::new(self.layout, self.name).outboard;
        let target = self.layout.target_paths(self.name).outboard;
        match exchange::rebuild_outboard(data, content, &beside, &target) {
            Ok(true) => {
                tracing::info!(file = %self.name, volume = %self.volume, "its outboard was computed again");
            }
            Ok(false) => {
                tracing::warn!(file = %self.name, volume = %self.volume, "its outboard was not computed: the data changes while it is read");
            }
            Err(error) => {
                let error = self.files.disks.blame_disk(self.volume, error);
                tracing::warn!(file = %self.name, volume = %self.volume, %error, "its outboard was not computed again");
            }
        }
    }
}
