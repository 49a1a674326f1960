//! The verbs of disks and of the whole node, and their consequences for the files.
//!
//! A retired volume is out of service for good, so its rows say *missing*: that is what makes its files missing for the
//! archive. Nothing else does: a disk that is dead or away has not lost its files yet.
//!
//! # Errors
//!
//! Every public function fails with a [`NodeError`], whose variants say what the caller does next.

use std::path::Path;
use std::sync::atomic::Ordering;

use archive_durable::VolumeProblem;
use archive_model::{FileName, Mode, Root, VolumeId};
use jiff::Timestamp;

use super::Node;
use super::answered::is_missing;
use crate::catalog::{Condition, Entry, Row};
use crate::error::NodeError;
use crate::reconcile::ReconcileReport;
use crate::volumes::VolumesError;

/// The number of rows that are written at a time.
const BATCH: usize = 1000;

impl Node {
    /// Labels an empty directory as a new volume and takes it into use.
    pub fn init_volume(
        &self,
        path: &Path,
        id: &VolumeId,
        now: Timestamp,
    ) -> Result<ReconcileReport, NodeError> {
        absolute(path)?;
        self.volume_set().init(path, id)?;
        tracing::warn!(volume = %id, path = %path.display(), "a new volume was labelled");
        self.refresh(now)
    }

    /// Adopts a disk that another node has labelled, and reconciles it with the catalog. With `id`, only that volume.
    pub fn adopt_volume(
        &self,
        path: &Path,
        id: Option<&VolumeId>,
        now: Timestamp,
    ) -> Result<ReconcileReport, NodeError> {
        absolute(path)?;
        let id = self.volume_set().adopt_as(path, id)?;
        tracing::warn!(volume = %id, path = %path.display(), "a volume was taken over");
        self.refresh(now)
    }

    /// Sets whether a volume takes new files.
    pub fn set_volume_mode(&self, id: &VolumeId, mode: Mode) -> Result<(), NodeError> {
        self.volume_set().set_mode(id, mode)?;
        tracing::warn!(volume = %id, %mode, "the mode of a volume was set");
        Ok(())
    }

    /// Retires a volume permanently, whether its disk is there or not. Returns the number of files that are missing by
    /// that.
    pub fn retire_volume(&self, id: &VolumeId, now: Timestamp) -> Result<u64, NodeError> {
        self.volume_set().retire(id)?;
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
        self.volume_set().reinstate(id)?;
        tracing::warn!(volume = %id, "a retired volume is in service again");
        self.refresh(now)
    }

    /// Returns the mode of the node as a whole.
    pub fn mode(&self) -> Mode {
        self.volume_set().mode()
    }

    /// Sets whether the node as a whole takes new files.
    pub fn set_mode(&self, mode: Mode) -> Result<(), NodeError> {
        self.volume_set().set_node_mode(mode)?;
        tracing::warn!(node = %self.id(), %mode, "the mode of the node was set");
        Ok(())
    }

    /// Returns whether a volume, or the whole node, is drained.
    pub(crate) fn is_drained(&self, id: &VolumeId) -> bool {
        let volume = self.volume_set().find(id);
        self.mode() == Mode::Draining || volume.is_some_and(|one| one.mode == Mode::Draining)
    }

    /// Makes the rows of retired volumes say *missing*. A start does this too: the catalog is a cache, and may be
    /// older.
    pub(super) fn note_retired(&self, now: Timestamp) -> Result<u64, NodeError> {
        let retired = self.volume_set().retired();
        if retired.is_empty() {
            return Ok(0);
        }
        let mut missing = 0;
        let mut batch = Vec::new();
        for entry in self.catalog.list(None)? {
            let entry = entry?;
            if !retired.contains(&entry.volume) || is_missing(&entry) {
                continue;
            }
            missing += 1;
            batch.push(as_missing(entry, now));
            if batch.len() == BATCH {
                self.catalog.put(&batch)?;
                batch.clear();
            }
        }
        self.catalog.put(&batch)?;
        self.forget_all_answered(now)?;
        Ok(missing)
    }

    /// Ends the store of a file whose row was written: removes rows of other volumes that say it is missing, and makes
    /// its own row say so if its volume was retired in that moment.
    pub(crate) fn after_store(&self, stored: &Entry, now: Timestamp) -> Result<(), NodeError> {
        self.volume_set().note_change(&stored.volume);
        let retired = self.volume_set().retired();
        if retired.contains(&stored.volume) {
            self.catalog.put(&[as_missing(stored.clone(), now)])?;
            return Err(NodeError::Offline {
                volume: stored.volume.clone(),
                problem: VolumeProblem::Retired,
            });
        }
        self.forget_answered(&stored.name, now)
    }

    /// Refuses while the node takes no new files.
    pub(crate) fn refuse_unless_open(&self) -> Result<(), NodeError> {
        match self.mode() {
            Mode::ReadWrite => Ok(()),
            mode @ (Mode::ReadOnly | Mode::Draining | Mode::Retired) => {
                Err(NodeError::TakesNothing {
                    what: format!("node {}", self.id()),
                    mode,
                })
            }
        }
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
        let Some(volume) = self.volume_set().find(&entry.volume) else {
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
    pub(super) fn sort_by_use(&self, entries: &mut [Entry]) {
        let volumes = self.volume_set();
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

    /// Notes that there may be files without a sidecar to hash.
    pub(crate) fn note_looked(&self) {
        self.looked().fetch_add(1, Ordering::AcqRel);
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

fn as_missing(entry: Entry, now: Timestamp) -> Entry {
    let condition = Condition::Missing { since: now };
    Entry {
        row: Row {
            condition,
            ..entry.row
        },
        ..entry
    }
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
