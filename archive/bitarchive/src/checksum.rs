//! A checksum replica: the name, size and root of every file, computed from the bytes that were sent to it. It keeps no
//! bytes: it is a cheap third voice for the day when the admin data itself is in doubt.
//!
//! Owns the order of one upload: hash every byte, hold what came against the signed admission, write the row, synced,
//! then answer. What it has written is a [record], not a cache: nothing on its disk could tell it again.
//!
//! Invariants:
//! - a root in the table is that of a signed admission, and was computed here, from all bytes; but for a name that people
//!   have let mean other content (`adopt`): of that, the admission is all that there is;
//! - a row that goes, removed or because of that, leaves a line in `removed.jsonl`, with its admission; so many are removed
//!   within an hour, also over a restart;
//! - it answers for a file only after its row is synced.
//!
//! Not promised: that the bytes can still be read anywhere. Everything here blocks; time is an argument.

mod adopt;
mod metrics;
mod put_aside;
mod receiving;
pub mod record;
mod serve;
mod settings;
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make and damage files")]
pub(crate) mod tests;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use archive_durable::{DiskError, Space};
use archive_model::{FileName, InvalidId, NodeId, ReplicaId, UploadId, VolumeId};
use archive_proof::{Shelf, TrustFile};

#[doc(hidden)]
pub use put_aside::append;
pub use put_aside::{PutAsideError, Removed, removed_lines};
pub use receiving::Receiving;
pub use record::{Record, RecordError, Recorded};
pub use serve::serve;
pub use settings::{ChecksumReplicaSettings, Settings};

use crate::attic::Brake;
use crate::catalog::{Condition, Entry, Row};
use crate::error::NodeError;
use crate::node::Claim;
use receiving::{Left, MOST_LEFT};

/// What answers say where a file is: there is one place, and it is no disk.
pub const VOLUME: &str = "table";

/// What a checksum replica is told when it starts.
#[derive(Clone, Debug)]
pub struct Options {
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

/// A checksum replica. Shared by all who serve it.
#[derive(Debug)]
pub struct ChecksumReplica {
    options: Options,
    volume: VolumeId,
    record: Record,
    receiving: Arc<Mutex<HashMap<FileName, UploadId>>>,
    brake: Brake,
    /// What streams left that were cut.
    left: Mutex<Shelf<Left>>,
    counted: metrics::Counted,
}

impl ChecksumReplica {
    /// Opens the record. One that is gone, damaged or another replica's is refused: see [`Record::open`].
    pub fn open(options: Options) -> Result<Self, RecordError> {
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
            left: Mutex::new(Shelf::new(MOST_LEFT)),
            counted: metrics::Counted::default(),
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

    /// Begins to receive a file; or goes on at the last of `points` that an earlier stream of the upload has reached
    /// while this process lives.
    pub fn begin(
        &self,
        upload: &UploadId,
        name: &FileName,
        size: u64,
        points: &[u64],
    ) -> Result<Receiving<'_>, NodeError> {
        let claim = Claim::take(&self.receiving, name, upload)?;
        if let Some(found) = self.find(name)? {
            return Err(self.taken(found));
        }
        if self.space()?.1 == 0 {
            return Err(NodeError::NoSpace(size));
        }
        Ok(Receiving::begin(self, claim, upload.clone(), points))
    }

    /// The upload that receives a file of this name now.
    pub fn receiving(&self, name: &FileName) -> Option<UploadId> {
        self.receiving
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .cloned()
    }

    fn entry(&self, name: FileName, recorded: &Recorded) -> Entry {
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

    fn taken(&self, found: Entry) -> NodeError {
        NodeError::Taken {
            name: found.name,
            volume: self.volume.clone(),
            root: found.row.root,
        }
    }
}

impl ChecksumReplica {
    /// Hashing into a sink does not fail; if it ever does, it says so.
    fn hash_error(&self, error: std::io::Error) -> NodeError {
        NodeError::Disk(DiskError::new("hash", &self.options.data, error))
    }
}
