//! One node: the owner of its disks, its files and its attic, which share the catalog and the locks.
//!
//! Who may need whom: the attic is above the files, and the files are above the disks. Every function here blocks; the
//! door (`rpc`) calls it from threads that may. Time is an argument.
//!
//! # Errors
//!
//! Every public function fails with a [`NodeError`], whose variants say what the caller does next.

use std::path::PathBuf;
use std::sync::Arc;

use archive_model::{NodeId, ReplicaId};
use archive_proof::TrustFile;
use jiff::Timestamp;

use crate::attic::AtticMoves;
use crate::catalog::Catalog;
use crate::claims::FileLocks;
use crate::error::NodeError;
use crate::reconcile::ReconcileReport;
use crate::settings::AtticSettings;
use crate::volumes::Volumes;

mod attic;
mod disks;
mod files;

pub(crate) use attic::EvidenceWorker;
pub use attic::NodeAttic;
pub use disks::NodeDisks;
pub use files::{Mend, MendReport, NodeFiles, NodeUpload, OpenFile, VerifyProgress};
pub(crate) use files::{StrangerWorker, admission_in};

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

/// A node: the owner of its disks, files and attic. Shared by all who serve it.
#[derive(Debug)]
pub struct Node {
    /// The id of the node.
    pub id: NodeId,
    /// The replica that the node belongs to.
    pub replica: ReplicaId,
    /// The directory of the catalog and of the memory of volumes.
    pub data: PathBuf,
    /// Which volumes are there, and whether the catalog agrees with them.
    pub disks: Arc<NodeDisks>,
    /// The copies: taken in, read, verified, mended.
    pub files: Arc<NodeFiles>,
    /// What was put aside.
    pub attic: Arc<NodeAttic>,
    /// What is known of the files. It is written by those three.
    pub(crate) catalog: Arc<Catalog>,
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
        let attic = Arc::new(NodeAttic::new(
            id.clone(),
            &data,
            attic,
            trust,
            Arc::clone(&catalog),
            moves,
            Arc::clone(&disks),
            Arc::clone(&files),
        ));
        let node = Self {
            id,
            replica,
            data,
            disks,
            files,
            attic,
            catalog,
        };
        Ok((node, found))
    }
}

/// Returns the number from which the stamps of findings count: a new one at each start.
fn stamp(now: Timestamp) -> u64 {
    u64::try_from(now.as_microsecond()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
