//! The checksum replica itself: its table, its uploads, and its answers.
//!
//! # Errors
//!
//! Every function fails with a [`ChecksumTableError`] if the table cannot be read, or with a [`DiskError`] if the disk
//! does not answer.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archive_durable::{DiskError, Space};
use archive_model::{FileName, InvalidId, NodeId, ReplicaId, UploadId, VolumeId};
use archive_proof::{Points, Prefix, ResumeStates, TrustFile};
use parking_lot::Mutex;

use super::table::{ChecksumTable, ChecksumTableError, RecordedFile};
use crate::brake::Brake;
use crate::catalog::{CatalogEntry, Row};
use crate::claims::Claims;
use crate::error::NodeError;

/// The name that answers give as the volume of a file: the table, which is not a disk.
pub const VOLUME: &str = "table";

/// The states that a stream left: a group and a half for each point.
pub(super) type KeptPoints = Points<Prefix>;

/// The most points that are kept of all streams that were cut: some 30 MB.
const MOST_KEPT: usize = 2048;

/// The options of a checksum replica.
#[derive(Clone, Debug)]
pub struct ChecksumReplicaOptions {
    /// The id of the replica as a node.
    pub node: NodeId,
    /// The id of the replica.
    pub replica: ReplicaId,
    /// The directory of the table.
    pub data: PathBuf,
    /// The number of bytes that stay free on the disk of the table.
    pub reserve: u64,
    /// The number of rows that may be removed within an hour.
    pub removals_per_hour: u64,
    /// The keys whose admissions the replica believes.
    pub trust: TrustFile,
}

/// The files and bytes since the metrics were last updated.
#[derive(Debug, Default)]
pub(super) struct ChecksumCounters {
    pub(super) files: AtomicU64,
    pub(super) bytes: AtomicU64,
}

impl ChecksumCounters {
    pub(super) fn count_recorded(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_hashed(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// A checksum replica. Shared by all who serve it.
#[derive(Debug)]
pub struct ChecksumReplica {
    pub(super) options: ChecksumReplicaOptions,
    volume: VolumeId,
    pub(super) table: ChecksumTable,
    pub(super) receiving: Claims,
    pub(super) brake: Brake,
    /// The states of streams that were cut.
    pub(super) left: Mutex<ResumeStates<KeptPoints>>,
    pub(super) counters: ChecksumCounters,
}

impl ChecksumReplica {
    /// Opens the table. A table that is absent, damaged or of another replica is refused: see [`ChecksumTable::open`].
    pub fn open(options: ChecksumReplicaOptions) -> Result<Self, ChecksumTableError> {
        let table = ChecksumTable::open(&options.data, &options.node, &options.replica)?;
        let volume =
            VolumeId::new(VOLUME).map_err(|error: InvalidId| ChecksumTableError::Label {
                path: options.data.clone(),
                why: error.to_string(),
            })?;
        Ok(Self {
            brake: Brake::new(&options.data, options.removals_per_hour),
            options,
            volume,
            table,
            receiving: Arc::default(),
            left: Mutex::new(ResumeStates::new(MOST_KEPT)),
            counters: ChecksumCounters::default(),
        })
    }

    /// Returns its id as a node.
    pub const fn node(&self) -> &NodeId {
        &self.options.node
    }

    /// Returns the id of the replica.
    pub const fn replica(&self) -> &ReplicaId {
        &self.options.replica
    }

    /// Returns the id of its only volume.
    pub const fn volume(&self) -> &VolumeId {
        &self.volume
    }

    /// Returns the directory of its table.
    pub const fn data(&self) -> &PathBuf {
        &self.options.data
    }

    /// Returns the table.
    pub const fn table(&self) -> &ChecksumTable {
        &self.table
    }

    /// Returns the room on its disk, and the bytes of it that may be used.
    pub fn space(&self) -> Result<(Space, u64), DiskError> {
        let space = Space::measure_space(&self.options.data)?;
        Ok((space, space.usable_bytes(self.options.reserve)))
    }

    /// Returns the entry of a file.
    pub fn find_entry(&self, name: &FileName) -> Result<Option<CatalogEntry>, ChecksumTableError> {
        let found = self.table.file(name)?;
        Ok(found.map(|recorded| self.entry(name.clone(), &recorded)))
    }

    /// Lists every file after the name `after`, sorted by name. Damage ends the listing with an error.
    pub fn list_entries(
        &self,
        after: Option<&FileName>,
    ) -> Result<
        impl Iterator<Item = Result<CatalogEntry, ChecksumTableError>> + '_,
        ChecksumTableError,
    > {
        let rows = self.table.files(after)?;
        Ok(rows.map(|row| row.map(|(name, recorded)| self.entry(name, &recorded))))
    }

    /// Returns the upload that receives a file of this name now.
    pub fn receiving_upload(&self, name: &FileName) -> Option<UploadId> {
        self.receiving.lock().get(name).cloned()
    }

    pub(super) fn entry(&self, name: FileName, recorded: &RecordedFile) -> CatalogEntry {
        CatalogEntry {
            name,
            volume: self.volume.clone(),
            // The bytes were here for the last time when they were hashed.
            row: Row::intact_row(
                recorded.size,
                recorded.root,
                recorded.stored,
                recorded.stored,
            ),
        }
    }

    pub(super) fn name_taken(&self, found: CatalogEntry) -> NodeError {
        NodeError::Taken {
            name: found.name,
            volume: self.volume.clone(),
            root: found.row.root,
        }
    }

    /// Makes the error of hashing into a sink, which is not expected to fail.
    pub(super) fn hash_error(&self, error: std::io::Error) -> NodeError {
        NodeError::Disk(DiskError::new("hash", &self.options.data, error))
    }
}
