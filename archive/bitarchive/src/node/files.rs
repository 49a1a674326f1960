//! The files of a node: taken in, found, read, verified, mended and adopted.
//!
//! The catalog says which copies there are, and the disks where they lie. Each way in or through has a file of its own:
//! `upload` (the write path), `verify` (one copy), `mend` (a damaged one), `adopt` (files that nobody uploaded, or whose
//! sidecar is absent).
//!
//! # Errors
//!
//! Every public function fails with a [`NodeError`], whose variants say what the caller does next.

mod adopt;
mod mend;
mod upload;
mod verify;

use std::collections::BTreeMap;
use std::sync::Arc;

use archive_durable::{UncachedFile, VolumeProblem};
use archive_model::{FileName, Mode, NodeId, Root, UploadId, VolumeId};
use archive_proof::{CopyBytes, ReadAt, TrustFile};
use jiff::Timestamp;
use parking_lot::Mutex;

use super::disks::NodeDisks;
use crate::attic::AtticMoves;
use crate::catalog::{Catalog, CatalogEntry, Condition, FindingCounts};
use crate::claims::FileLocks;
use crate::error::NodeError;
use crate::layout::Layout;
use crate::scrub_age::ScrubAge;
use crate::volumes::Volumes;

pub(crate) use adopt::{StrangerWorker, admission_in};
pub use mend::{Mend, MendReport};
pub use upload::NodeUpload;
pub use verify::VerifyProgress;

/// The files of a node. Shared by all who take in, read or repair them.
#[derive(Debug)]
pub struct NodeFiles {
    node: NodeId,
    trust: Arc<TrustFile>,
    catalog: Arc<Catalog>,
    moves: Arc<AtticMoves>,
    disks: Arc<NodeDisks>,
    /// Who works on which file.
    pub(crate) locks: Arc<FileLocks>,
    /// What the scrub and others tell each other.
    pub(crate) scrub_age: ScrubAge,
    /// The bytes of uploads that have a volume, and no reservation on its disk yet: two would choose the same room.
    promised: Mutex<BTreeMap<VolumeId, u64>>,
}

impl NodeFiles {
    /// Makes the files of `node`, which lie on `disks`.
    pub(super) fn new(
        node: NodeId,
        trust: Arc<TrustFile>,
        catalog: Arc<Catalog>,
        locks: Arc<FileLocks>,
        moves: Arc<AtticMoves>,
        disks: Arc<NodeDisks>,
    ) -> Self {
        Self {
            node,
            trust,
            catalog,
            moves,
            disks,
            locks,
            scrub_age: ScrubAge::default(),
            promised: Mutex::default(),
        }
    }

    /// Returns the copies of a file on this node, the best one first. Several copies are for people to look at, unless
    /// a volume is being drained.
    pub fn find_copies(&self, name: &FileName) -> Result<Vec<CatalogEntry>, NodeError> {
        let mut entries = self.catalog.find_entries(name)?;
        sort_by_use(&self.disks.volumes, &mut entries);
        Ok(entries)
    }

    /// Lists the entries after the name `after`, sorted by name, those of offline volumes included.
    pub fn list_entries(
        &self,
        after: Option<&FileName>,
    ) -> Result<impl Iterator<Item = Result<CatalogEntry, NodeError>> + '_, NodeError> {
        Ok(self.catalog.list_entries(after)?.map(|entry| Ok(entry?)))
    }

    /// Lists the findings after the name `after`, sorted by name.
    pub fn list_findings(
        &self,
        after: Option<&FileName>,
    ) -> Result<impl Iterator<Item = Result<CatalogEntry, NodeError>> + '_, NodeError> {
        Ok(self.catalog.list_findings(after)?.map(|entry| Ok(entry?)))
    }

    /// Returns the number of findings, and the stamp of their last change.
    pub fn count_findings(&self) -> FindingCounts {
        self.catalog.finding_counts()
    }

    /// Opens the bytes of a file for reading past the page cache, with its outboard if it has one.
    pub fn open_file(&self, name: &FileName) -> Result<OpenFile, NodeError> {
        let entries = self.find_copies(name)?;
        let mut problem = NodeError::NotFound(name.clone());
        for entry in entries.into_iter().filter(|entry| entry.row.is_readable()) {
            match self
                .disks
                .find_layout(&entry.volume)
                .and_then(|layout| open_copy(&layout, entry))
            {
                Ok(reading) => return Ok(reading),
                Err(why) => problem = why,
            }
        }
        Err(problem)
    }

    /// Returns the copies of a file on this node, as the disks confirm them.
    pub(crate) fn find_copies_on_disk(
        &self,
        name: &FileName,
        now: Timestamp,
    ) -> Result<Vec<CatalogEntry>, NodeError> {
        self.disks.look_up_file(name, now)?;
        self.find_copies(name)
    }

    /// Returns the upload that receives a file of this name now.
    pub fn find_upload(&self, name: &FileName) -> Option<UploadId> {
        self.locks.find_upload(name)
    }

    /// Notes that damage was met in a copy: the scrub reads its neighbours next.
    pub fn suspect_neighbours(&self, entry: &CatalogEntry, now: Timestamp) {
        self.scrub_age.suspect_entry(entry, now);
    }

    /// Refuses a name that this node has. A copy on a draining volume may get a second one, which is how a drain moves
    /// files: `second` says what is known of that copy.
    pub(crate) fn refuse_taken(
        &self,
        name: &FileName,
        second: Option<SecondCopy>,
    ) -> Result<(), NodeError> {
        for entry in self.catalog.find_entries(name)? {
            if !leaves_free(&self.disks.volumes, &entry, second) {
                return Err(NodeError::Taken {
                    name: entry.name,
                    volume: entry.volume,
                    root: entry.row.root,
                });
            }
        }
        Ok(())
    }
}

/// The content of which a second copy may be made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SecondCopy {
    /// The root is not known yet.
    Any,
    /// The copy has this root.
    Of(Root),
}

/// Returns whether a copy leaves its name free for another one.
fn leaves_free(volumes: &Volumes, entry: &CatalogEntry, second: Option<SecondCopy>) -> bool {
    let Some(volume) = volumes.find_volume(&entry.volume) else {
        return false;
    };
    if volume.problem == Some(VolumeProblem::Retired) {
        return true;
    }
    let is_draining = volume.mode == Mode::Draining;
    match (&entry.row.condition, second) {
        (Condition::Missing { .. }, _) => volume.problem.is_none() || is_draining,
        (Condition::Present | Condition::Damaged { .. }, Some(SecondCopy::Any)) => is_draining,
        (Condition::Present | Condition::Damaged { .. }, Some(SecondCopy::Of(root))) => {
            is_draining && entry.row.root == Some(root)
        }
        (Condition::Present | Condition::Damaged { .. }, None)
        | (Condition::Unexpected { .. }, _) => false,
    }
}

/// Sorts the better copies first: those that are whole, and on a volume that stays.
fn sort_by_use(volumes: &Volumes, entries: &mut [CatalogEntry]) {
    entries.sort_by_key(|entry| {
        let stays = volumes
            .find_volume(&entry.volume)
            .is_some_and(|volume| volume.problem.is_none() && volume.mode != Mode::Draining);
        let rank = match entry.row.condition {
            Condition::Present => 0,
            Condition::Damaged { .. } => 1,
            Condition::Unexpected { .. } => 2,
            Condition::Missing { .. } => 3,
        };
        (rank, !stays)
    });
}

/// A file of this node, open.
#[derive(Debug)]
pub struct OpenFile {
    /// The file with the bytes of the copy.
    pub data: UncachedFile,
    /// The outboard of the copy, if it can be opened.
    pub outboard: Option<UncachedFile>,
    /// The entry of the copy in the catalog.
    pub entry: CatalogEntry,
}

impl OpenFile {
    /// The file and its outboard, as a proof is made of them.
    pub fn copy(&self) -> CopyBytes<'_> {
        CopyBytes {
            data: &self.data,
            outboard: self
                .outboard
                .as_ref()
                .map(|outboard| outboard as &dyn ReadAt),
        }
    }
}

fn open_copy(layout: &Layout, entry: CatalogEntry) -> Result<OpenFile, NodeError> {
    let target = layout.target_paths(&entry.name);
    let outboard = match UncachedFile::open(&target.outboard) {
        Err(error) if error.is_absent() => None,
        other => Some(other?),
    };
    Ok(OpenFile {
        data: UncachedFile::open(&target.file)?,
        outboard,
        entry,
    })
}
