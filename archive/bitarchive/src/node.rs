//! One node: its files, the uploads that it receives, and the order of its acts.
//!
//! Every function here blocks; the door (`rpc`) calls it from threads that may. Time is an argument.
//!
//! # Errors
//!
//! Every public function fails with a [`NodeError`], whose variants say what the caller does next.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive_model::{NodeId, ReplicaId};
use archive_proof::TrustFile;
use jiff::Timestamp;

use crate::attic::AtticMoves;
use crate::brake::Brake;
use crate::catalog::Catalog;
use crate::claims::FileLocks;
use crate::error::NodeError;
use crate::reconcile::ReconcileReport;
use crate::settings::AtticSettings;
use crate::volumes::Volumes;

mod attic;
mod disks;
mod files;
mod upkeep;

pub(crate) use attic::EvidenceWorker;
pub use disks::NodeDisks;
pub use files::{Mend, MendReport, NodeFiles, OpenFile, Progress, Upload};
pub(crate) use files::{StrangerWorker, admission_in};
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
    /// The files.
    pub files: Arc<NodeFiles>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) trust: Arc<TrustFile>,
    moves: Arc<AtticMoves>,
    upkeep: Upkeep,
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
        let files = Arc::new(NodeFiles::new(
            id.clone(),
            Arc::clone(&trust),
            Arc::clone(&catalog),
            locks,
            Arc::clone(&moves),
            Arc::clone(&disks),
        ));
        let node = Self {
            upkeep: Upkeep::new(&data, attic),
            id,
            replica,
            data,
            disks,
            files,
            catalog,
            trust,
            moves,
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

    pub(crate) const fn attic_settings(&self) -> &AtticSettings {
        &self.upkeep.attic
    }

    pub(crate) const fn brake(&self) -> &Brake {
        &self.upkeep.brake
    }

    pub(crate) const fn brake_of_moved(&self) -> &Brake {
        &self.upkeep.moved
    }
}

/// Returns the number from which the stamps of findings count: a new one at each start.
fn stamp(now: Timestamp) -> u64 {
    u64::try_from(now.as_microsecond()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
