//! The replica itself: its record, what it is receiving, and how it answers what is recorded.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use archive_durable::{DiskError, Space};
use archive_model::{FileName, InvalidId, NodeId, ReplicaId, UploadId, VolumeId};
use archive_proof::{Points, Prefix, Shelf, TrustFile};

use super::record::{Record, RecordError, RecordedFile};
use crate::brake::Brake;
use crate::catalog::{Condition, Entry, Row};
use crate::claims::Claims;
use crate::error::NodeError;

/// What answers say where a file is: there is one place, and it is no disk.
pub const VOLUME: &str = "table";

/// What a stream left: a group and a half for each point.
pub(super) type KeptPoints = Points<Prefix>;

/// How many points are kept of all streams that were cut: some 30 MB.
const MOST_KEPT: usize = 2048;

/// What a checksum replica is told when it starts.
#[derive(Clone, Debug)]
pub struct ChecksumReplicaOptions {
    /// Who it is, as a node.
    pub node: NodeId,
    /// The replica that it is.
    pub replica: ReplicaId,
    /// Where its record lies.
    pub data: PathBuf,
    /// What stays free on that disk, in bytes.
    pub reserve: u64,
    /// How many rows may be removed within an hour.
    pub removals_per_hour: u64,
    /// The keys whose admissions it believes.
    pub trust: TrustFile,
}

/// The files and bytes since the metrics were last updated.
#[derive(Debug, Default)]
pub(super) struct ChecksumCounters {
    pub(super) files: AtomicU64,
    pub(super) bytes: AtomicU64,
}

impl ChecksumCounters {
    pub(super) fn recorded(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn hashed(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// A checksum replica. Shared by all who serve it.
#[derive(Debug)]
pub struct ChecksumReplica {
    pub(super) options: ChecksumReplicaOptions,
    volume: VolumeId,
    pub(super) record: Record,
    pub(super) receiving: Claims,
    pub(super) brake: Brake,
    /// What streams left that were cut.
    pub(super) left: Mutex<Shelf<KeptPoints>>,
    pub(super) counters: ChecksumCounters,
}

impl ChecksumReplica {
    /// Opens the record. One that is gone, damaged or another replica's is refused: see [`Record::open`].
    pub fn open(options: ChecksumReplicaOptions) -> Result<Self, RecordError> {
        let record = Record::open(&options.data, &options.node, &options.replica)?;
        let volume = VolumeId::new(VOLUME).map_err(|error: InvalidId| RecordError::Label {
            path: options.data.clone(),
            why: error.to_string(),
        })?;
        Ok(Self {
            brake: Brake::new(&options.data, options.removals_per_hour),
            options,
            volume,
            record,
            receiving: Arc::default(),
            left: Mutex::new(Shelf::new(MOST_KEPT)),
            counters: ChecksumCounters::default(),
        })
    }

    /// Who it is, as a node.
    pub const fn node(&self) -> &NodeId {
        &self.options.node
    }

    /// The replica that it is.
    pub const fn replica(&self) -> &ReplicaId {
        &self.options.replica
    }

    /// Where its record lies.
    pub const fn data(&self) -> &PathBuf {
        &self.options.data
    }

    /// The record itself.
    pub const fn record(&self) -> &Record {
        &self.record
    }

    /// The room on its disk, and what of it may be used.
    pub fn space(&self) -> Result<(Space, u64), DiskError> {
        let space = Space::of(&self.options.data)?;
        Ok((space, space.usable(self.options.reserve)))
    }

    /// What is recorded of a file.
    pub fn find(&self, name: &FileName) -> Result<Option<Entry>, RecordError> {
        let found = self.record.file(name)?;
        Ok(found.map(|recorded| self.entry(name.clone(), &recorded)))
    }

    /// Every file after the name `after`, sorted by name. Damage ends it with an error.
    pub fn list(
        &self,
        after: Option<&FileName>,
    ) -> Result<impl Iterator<Item = Result<Entry, RecordError>> + '_, RecordError> {
        let rows = self.record.files(after)?;
        Ok(rows.map(|row| row.map(|(name, recorded)| self.entry(name, &recorded))))
    }

    /// The upload that receives a file of this name now.
    pub fn receiving(&self, name: &FileName) -> Option<UploadId> {
        self.receiving
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .cloned()
    }

    pub(super) fn entry(&self, name: FileName, recorded: &RecordedFile) -> Entry {
        Entry {
            name,
            volume: self.volume.clone(),
            row: Row {
                size: recorded.size,
                root: Some(recorded.root),
                stored: recorded.stored,
                // All bytes were hashed then, and were never here again.
                verified: Some(recorded.stored),
                condition: Condition::Present,
            },
        }
    }

    pub(super) fn taken(&self, found: Entry) -> NodeError {
        NodeError::Taken {
            name: found.name,
            volume: self.volume.clone(),
            root: found.row.root,
        }
    }

    /// Hashing into a sink does not fail; if it ever does, it says so.
    pub(super) fn hash_error(&self, error: std::io::Error) -> NodeError {
        NodeError::Disk(DiskError::new("hash", &self.options.data, error))
    }
}
