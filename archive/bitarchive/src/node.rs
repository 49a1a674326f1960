//! One node: its files, the uploads that it receives, and the order of its acts.
//!
//! Every function here blocks; the door (`rpc`) calls it from threads that may. Time is an argument.
//!
//! # Errors
//!
//! Every public function fails with a [`NodeError`], whose variants say what the caller does next.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive_durable::{UncachedFile, VolumeProblem, directory};
use archive_model::{FileName, Mode, NodeId, ReplicaId, Root, UploadId};
use archive_proof::{CopyBytes, ReadAt, TrustFile};
use jiff::Timestamp;

use crate::attic::AtticMoves;
use crate::brake::Brake;
use crate::catalog::{Catalog, Condition, Entry, FindingCounts};
use crate::claims::{Claim, FileLocks, Hold};
use crate::error::NodeError;
use crate::layout::{Layout, is_mend_name};
use crate::reconcile::ReconcileReport;
use crate::scrub_age::ScrubAge;
use crate::settings::AtticSettings;
use crate::volumes::Volumes;
use crate::work::Work;

mod attic;
mod disks;
mod receive;
mod upkeep;

pub(crate) use attic::EvidenceWorker;
pub use disks::NodeDisks;
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
    id: NodeId,
    replica: ReplicaId,
    data: PathBuf,
    /// The disks.
    pub disks: Arc<NodeDisks>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) trust: Arc<TrustFile>,
    locks: Arc<FileLocks>,
    moves: Arc<AtticMoves>,
    upkeep: Upkeep,
    scrub_age: ScrubAge,
}

impl Node {
    /// Opens the volumes and the catalog and reconciles them. Returns the node, and a report.
    pub fn open(
        options: NodeOptions,
        now: Timestamp,
    ) -> Result<(Self, ReconcileReport), NodeError> {
        let NodeOptions {
            node: id,
            replica,
            data,
            volumes,
            reserve,
            trust,
            attic,
        } = options;
        let volumes = Volumes::open(&id, &replica, &data, &volumes)?.with_reserve(reserve);
        let opened = Catalog::open(&data.join("catalog"), stamp(now))?;
        if let Some(why) = &opened.rebuild {
            tracing::warn!(why, "the catalog is built again from the volumes");
        }
        let catalog = Arc::new(opened.catalog);
        let trust = Arc::new(trust);
        let locks = Arc::new(FileLocks::default());
        let moves = Arc::new(AtticMoves::default());
        let disks = Arc::new(NodeDisks::new(
            volumes,
            id.clone(),
            Arc::clone(&trust),
            Arc::clone(&catalog),
            Arc::clone(&locks),
            Arc::clone(&moves),
        ));
        let found = disks.refresh_volumes(now)?;
        disks.note_retired(now)?;
        let node = Self {
            upkeep: Upkeep::new(&data, attic),
            id,
            replica,
            data,
            disks,
            catalog,
            trust,
            locks,
            moves,
            scrub_age: ScrubAge::default(),
        };
        Ok((node, found))
    }

    /// Returns the id of the node.
    pub const fn id(&self) -> &NodeId {
        &self.id
    }

    /// Returns the replica it belongs to.
    pub const fn replica(&self) -> &ReplicaId {
        &self.replica
    }

    /// Returns the directory of its catalog.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Removes the bytes of uploads that nobody has touched since `before` (seconds since 1970). Returns their number.
    pub fn reap(&self, before: i64) -> Result<u64, NodeError> {
        let mut reaped = 0;
        let receiving = self.locks.list_uploads();
        for (_, layout) in self.disks.volumes.online() {
            for (last, kind) in directory::look(&layout.incoming())? {
                let is_old = matches!(kind, Ok(directory::EntryKind::File { changed, .. }) if changed < before);
                let name = last.to_string_lossy();
                let upload = name.split('.').next().unwrap_or_default();
                let is_old = is_old && !is_mend_name(&name);
                if is_old && !receiving.iter().any(|active| active.as_str() == upload) {
                    directory::remove_name(&layout.incoming().join(&last))?;
                    reaped += 1;
                }
            }
        }
        Ok(reaped)
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
                .disks
                .find_layout(&entry.volume)
                .and_then(|layout| open(&layout, entry))
            {
                Ok(reading) => return Ok(reading),
                Err(why) => problem = why,
            }
        }
        Err(problem)
    }

    /// Returns the copies of a file on this node, as the disks confirm them.
    pub(crate) fn find_on_disk(
        &self,
        name: &FileName,
        now: Timestamp,
    ) -> Result<Vec<Entry>, NodeError> {
        self.disks.look_up_file(name, now)?;
        self.find(name)
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

    pub(crate) fn moves(&self) -> &AtticMoves {
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

    /// Refuses a name that this node has. A copy on a draining volume may get a second one, which is how a drain moves
    /// files: `second` says what is known of that copy.
    pub(crate) fn refuse_taken(
        &self,
        name: &FileName,
        second: Option<SecondCopy>,
    ) -> Result<(), NodeError> {
        for entry in self.catalog.find(name)? {
            if !self.leaves_free(&entry, second) {
                return Err(NodeError::Taken {
                    name: entry.name,
                    volume: entry.volume,
                    root: entry.row.root,
                });
            }
        }
        Ok(())
    }

    fn leaves_free(&self, entry: &Entry, second: Option<SecondCopy>) -> bool {
        let Some(volume) = self.disks.volumes.find(&entry.volume) else {
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
    fn sort_by_use(&self, entries: &mut [Entry]) {
        let volumes = &self.disks.volumes;
        entries.sort_by_key(|entry| {
            let stays = volumes
                .find(&entry.volume)
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
}

/// The content of which a second copy may be made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SecondCopy {
    /// The root is not known yet.
    Any,
    /// The copy has this root.
    Of(Root),
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

/// Returns the number from which the stamps of findings count: a new one at each start.
fn stamp(now: Timestamp) -> u64 {
    u64::try_from(now.as_microsecond()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
