//! One node: its files, the uploads that it receives, and the order of its acts.
//!
//! Every function here blocks; the door (`rpc`) calls it from threads that may. Time is an argument.
//!
//! # Errors
//!
//! Every public function fails with a [`NodeError`], whose variants say what the caller does next.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use archive_durable::{DiskError, UncachedFile};
use archive_model::{FileName, NodeId, ReplicaId, Root, UploadId, VolumeId};
use archive_proof::{CopyBytes, ReadAt, TrustFile};
use jiff::Timestamp;

use crate::attic::AtticMoves;
use crate::brake::Brake;
use crate::catalog::{Catalog, Entry, FindingCounts};
use crate::claims::{Claim, FileLocks, Hold};
use crate::error::NodeError;
use crate::layout::Layout;
use crate::reconcile::Reconciler;
use crate::scrub_age::ScrubAge;
use crate::settings::AtticSettings;
use crate::volumes::{Volume, Volumes, VolumesError};
use crate::work::Work;

mod answered;
mod attic;
mod disks;
mod lists;
mod receive;
mod start;
mod upkeep;
mod walk;

pub(crate) use attic::EvidenceWorker;
pub(crate) use disks::SecondCopy;
use upkeep::Upkeep;

/// The options of a node.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// The id of the node.
    pub node: NodeId,
    /// The replica that the node belongs to.
    pub replica: ReplicaId,
    /// The directory of the catalog and of the memory of volumes; not on a volume.
    pub data: PathBuf,
    /// The paths at which the volumes of the node are mounted.
    pub volumes: Vec<PathBuf>,
    /// The bytes that stay free on each volume.
    pub reserve: u64,
    /// The keys whose admissions the node believes.
    pub trust: TrustFile,
    /// The limits on removals.
    pub attic: AtticSettings,
}

/// A node. Shared by all who serve it.
#[derive(Debug)]
pub struct Node {
    options: NodeOptions,
    volumes: Volumes,
    catalog: Catalog,
    locks: FileLocks,
    moves: AtticMoves,
    upkeep: Upkeep,
    scrub_age: ScrubAge,
}

impl Node {
    /// Returns the id of the node.
    pub const fn id(&self) -> &NodeId {
        &self.options.node
    }

    /// Returns the replica it belongs to.
    pub const fn replica(&self) -> &ReplicaId {
        &self.options.replica
    }

    /// Returns the directory of its catalog.
    pub fn data(&self) -> &Path {
        &self.options.data
    }

    /// Returns its volumes, online or not.
    pub fn volumes(&self) -> Vec<Volume> {
        self.volumes.all()
    }

    /// Returns the set of volumes, for the verbs of operators.
    pub const fn volume_set(&self) -> &Volumes {
        &self.volumes
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
            trust: &self.options.trust,
            volume,
            layout,
            now,
        }
    }

    /// Reconciles one file with the catalog, as a start would, and returns its root. A disk that fails meanwhile is
    /// taken offline: after a failed sync of a name, a second one would pass and prove nothing.
    pub(crate) fn look_at(
        &self,
        id: &VolumeId,
        layout: &Layout,
        name: &FileName,
        now: Timestamp,
    ) -> Result<Option<Root>, NodeError> {
        self.note_looked();
        let looked = self.reconciler(id, layout, now).file(name);
        looked.map_err(|error| {
            if let NodeError::Disk(error) = error {
                self.blame(id, error)
            } else {
                error
            }
        })
    }

    /// Returns the copies of a file on this node, the best one first. Several copies are for people to look at, unless
    /// a volume is being drained.
    pub fn find(&self, name: &FileName) -> Result<Vec<Entry>, NodeError> {
        let mut entries = self.catalog.find(name)?;
        self.sort_by_use(&mut entries);
        Ok(entries)
    }

    /// Lists the entries after the name `after`, sorted by name, those of offline volumes included.
    pub fn list(
        &self,
        after: Option<&FileName>,
    ) -> Result<impl Iterator<Item = Result<Entry, NodeError>> + '_, NodeError> {
        Ok(self.catalog.list(after)?.map(|entry| Ok(entry?)))
    }

    /// Lists the findings after the name `after`, sorted by name.
    pub fn list_findings(
        &self,
        after: Option<&FileName>,
    ) -> Result<impl Iterator<Item = Result<Entry, NodeError>> + '_, NodeError> {
        Ok(self.catalog.list_findings(after)?.map(|entry| Ok(entry?)))
    }

    /// Returns the number of findings, and the stamp of their last change.
    pub fn finding_counts(&self) -> FindingCounts {
        self.catalog.finding_counts()
    }

    /// Opens the bytes of a file for reading past the page cache, with its outboard if it has one.
    pub fn open_file(&self, name: &FileName) -> Result<OpenFile, NodeError> {
        let entries = self.find(name)?;
        let mut problem = NodeError::NotFound(name.clone());
        for entry in entries.into_iter().filter(|entry| entry.row.is_readable()) {
            match self
                .layout(&entry.volume)
                .and_then(|layout| open(&layout, entry))
            {
                Ok(reading) => return Ok(reading),
                Err(why) => problem = why,
            }
        }
        Err(problem)
    }

    /// Returns the upload that receives a file of this name now.
    pub fn receiving(&self, name: &FileName) -> Option<UploadId> {
        self.locks.find_upload(name)
    }

    /// Claims a name, to receive or to move it: nobody else does so, or works on the file, until the claim ends.
    pub(crate) fn claim(&self, name: &FileName, id: &UploadId) -> Result<Claim, NodeError> {
        self.locks.claim_name(name, id)
    }

    /// Holds a file to work on it: nobody else works on it or receives it until the hold ends.
    pub(crate) fn hold(&self, name: &FileName, work: Work) -> Result<Hold, NodeError> {
        self.locks.hold_file(name, work)
    }

    /// Returns whether somebody waits for a file that is worked on.
    pub(crate) fn is_wanted(&self, name: &FileName) -> bool {
        self.locks.is_wanted(name)
    }

    pub(crate) const fn attic_settings(&self) -> &AtticSettings {
        &self.upkeep.attic
    }

    pub(crate) const fn brake(&self) -> &Brake {
        &self.upkeep.brake
    }

    pub(crate) const fn brake_of_moved(&self) -> &Brake {
        &self.upkeep.moved
    }

    pub(crate) const fn looked(&self) -> &AtomicU64 {
        &self.upkeep.looked
    }

    pub(crate) const fn moves(&self) -> &AtticMoves {
        &self.moves
    }

    /// Returns the time at which the copy that has waited longest was last verified, as far as the scrub has counted;
    /// `None` if some copy was not verified since the catalog was built, or there are no copies.
    pub fn oldest_verification(&self) -> Option<Timestamp> {
        self.scrub_age.oldest()
    }

    /// Returns the time by which the scrub has to read the most urgent of the copies that are due; `None` if no copy is
    /// due. A time in the past says that the scrub does not keep its deadline.
    pub fn verify_by(&self) -> Option<Timestamp> {
        self.scrub_age.verify_by()
    }

    /// Notes that damage was met in a copy: the scrub reads its neighbours next.
    pub fn suspect(&self, entry: &Entry, now: Timestamp) {
        self.scrub_age.suspect(entry, now);
    }

    pub(crate) const fn scrub_age(&self) -> &ScrubAge {
        &self.scrub_age
    }

    pub(crate) const fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub(crate) const fn trust(&self) -> &TrustFile {
        &self.options.trust
    }

    /// Takes the volume offline if the error says that its disk fails, and returns the error.
    pub(crate) fn blame(&self, volume: &VolumeId, error: DiskError) -> NodeError {
        match self.volumes.blame(volume, &error) {
            Ok(()) => NodeError::Disk(error),
            Err(worse) => NodeError::Disk(worse),
        }
    }

    pub(crate) fn is_online(&self, volume: &VolumeId) -> bool {
        self.volumes
            .find(volume)
            .is_some_and(|volume| volume.problem.is_none())
    }

    /// Returns the paths of a volume that is online.
    pub fn layout(&self, id: &VolumeId) -> Result<Layout, NodeError> {
        let volume = self
            .volumes
            .find(id)
            .ok_or_else(|| VolumesError::Unknown(id.clone()))?;
        match volume.problem {
            None => Ok(Layout::new(&volume.path)),
            Some(problem) => Err(NodeError::Offline {
                volume: id.clone(),
                problem,
            }),
        }
    }
}

/// A file of this node, open.
#[derive(Debug)]
pub struct OpenFile {
    /// The file with the bytes of the copy.
    pub data: UncachedFile,
    /// The outboard of the copy, if it can be opened.
    pub outboard: Option<UncachedFile>,
    /// The entry of the copy in the catalog.
    pub entry: Entry,
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

fn open(layout: &Layout, entry: Entry) -> Result<OpenFile, NodeError> {
    let target = layout.target(&entry.name);
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

#[cfg(test)]
mod tests;
