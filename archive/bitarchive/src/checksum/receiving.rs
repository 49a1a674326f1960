//! A file that is being hashed, and the states from which a stream that was cut can be resumed.
//!
//! A checksum replica has no bytes to look at again: it resumes from the states that it kept of its own computation, in
//! memory, bounded, and only while it lives.
//!
//! # Errors
//!
//! Every public function fails with a [`NodeError`], whose variants say what the caller does next.

use std::io::Sink;
use std::mem;
use std::sync::Arc;

use archive_model::{FileName, Root, UploadId};
use archive_proof::points::split_groups;
use archive_proof::{Envelope, Points, TreeBuilder};
use jiff::Timestamp;

use super::replica::{ChecksumReplica, KeptPoints};
use super::table::RecordedFile;
use crate::admitted;
use crate::catalog::CatalogEntry;
use crate::claims::Claim;
use crate::error::NodeError;

/// A file that is being hashed, in the memory of a hundred groups. Dropping this keeps the states from which a later
/// stream can be resumed.
#[derive(Debug)]
pub struct ReceivingFile {
    replica: Arc<ChecksumReplica>,
    claim: Claim,
    id: UploadId,
    tree: TreeBuilder<Sink>,
    points: KeptPoints,
}

impl ChecksumReplica {
    /// Begins to receive a file, or resumes at the last of `points` that an earlier stream of the upload has reached
    /// while this process lives.
    pub fn begin_receiving(
        self: &Arc<Self>,
        upload: &UploadId,
        name: &FileName,
        size: u64,
        points: &[u64],
    ) -> Result<ReceivingFile, NodeError> {
        let claim = Claim::take_name(&self.receiving, name, upload)?;
        if let Some(found) = self.find_entry(name)? {
            return Err(self.name_taken(found));
        }
        if self.space()?.1 == 0 {
            return Err(NodeError::NoSpace(size));
        }
        Ok(ReceivingFile::begin(
            Arc::clone(self),
            claim,
            upload.clone(),
            points,
        ))
    }
}

impl ReceivingFile {
    fn begin(replica: Arc<ChecksumReplica>, claim: Claim, id: UploadId, points: &[u64]) -> Self {
        let left = replica.left.lock().take_states(&id);
        let mut receiving = Self {
            replica,
            claim,
            id,
            tree: TreeBuilder::new(std::io::sink()),
            points: left.unwrap_or_default(),
        };
        let kept = receiving.points.iter().map(|(size, _)| size);
        let shared = kept.filter(|size| points.contains(size));
        let last = shared.last().unwrap_or(0);
        receiving.go_back(last);
        receiving
    }

    fn go_back(&mut self, length: u64) {
        self.tree = if let Some(prefix) = self.points.back_to(length) {
            TreeBuilder::after_prefix(prefix.clone())
        } else {
            self.points = Points::default();
            TreeBuilder::new(std::io::sink())
        };
    }

    /// Forgets the bytes beyond `length`, or all bytes if no state is kept there.
    #[must_use]
    pub fn back_to(mut self, length: u64) -> Self {
        self.go_back(length);
        self
    }

    /// Returns the name under which the file will be recorded.
    pub const fn name(&self) -> &FileName {
        &self.claim.name
    }

    /// Returns the number of bytes received.
    pub const fn received(&self) -> u64 {
        self.tree.size()
    }

    /// Returns the root of the bytes received.
    pub fn root_so_far(&self) -> Root {
        self.tree.root_so_far()
    }

    /// Hashes the next bytes.
    pub fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), NodeError> {
        self.replica.counters.count_hashed(bytes.len());
        while !bytes.is_empty() {
            let (piece, rest) = split_groups(self.tree.size(), bytes);
            let hashed = self.tree.update(piece);
            hashed.map_err(|error| self.replica.hash_error(error))?;
            self.points
                .keep_state(self.tree.size(), || self.tree.prefix_state());
            bytes = rest;
        }
        Ok(())
    }

    /// Compares the bytes with the admission and writes the row, which is synced on return.
    pub fn commit_file(
        mut self,
        admission: &Envelope,
        now: Timestamp,
    ) -> Result<CatalogEntry, NodeError> {
        // Right or wrong, nothing is resumed from here.
        self.points = Points::default();
        let tree = mem::replace(&mut self.tree, TreeBuilder::new(std::io::sink()));
        let replica = Arc::clone(&self.replica);
        let name = &self.claim.name;
        let admitted = admitted::verify_admission(admission, &replica.options.trust, name)?;
        let tree = tree.finish().map_err(|error| replica.hash_error(error))?;
        admitted::compare_content(&admitted, name, &self.id, tree.content())?;
        let recorded = RecordedFile {
            size: tree.size,
            root: tree.root,
            stored: now,
        };
        let kept = replica.table.add_file(name, recorded, admission.as_str())?;
        replica.counters.count_recorded();
        let entry = replica.entry(name.clone(), &kept);
        if kept.root == tree.root {
            Ok(entry)
        } else {
            Err(replica.name_taken(entry))
        }
    }
}

impl Drop for ReceivingFile {
    fn drop(&mut self) {
        let points = mem::take(&mut self.points);
        if !points.is_empty() {
            let mut left = self.replica.left.lock();
            left.put_states(self.id.clone(), points.len(), points);
        }
    }
}
