//! A file that is wanted, who may give it, and the parts that a reader is given: proven bytes, or a refused group.

use std::ops::Range;

use archive_model::{FileName, Groups, NodeId, ReplicaId, Root};
use bytes::Bytes;

/// A file to be read, as it was admitted.
#[derive(Clone, Debug)]
pub struct WantedFile {
    /// The name under which the file was admitted.
    pub name: FileName,
    /// The root against which the bytes of the file are proven.
    pub root: Root,
    /// The size of the file in bytes.
    pub size: u64,
}

/// A replica that may give bytes.
#[derive(Clone, Debug)]
pub struct Donor {
    /// The replica.
    pub replica: ReplicaId,
    /// The node that has the file, as far as is known; otherwise the monitor of the replica is asked.
    pub node: Option<NodeId>,
    /// Groups of the file that are known to be bad in this replica: it is asked for them last.
    pub bad: Groups,
}

/// A part of the file that is being read.
#[derive(Debug)]
pub enum AssembledPart {
    /// Bytes that were verified against the root.
    Proven(Proven),
    /// Bytes that no replica gives.
    Refused(RefusedGroup),
}

/// Bytes of a file that were verified against its root.
#[derive(Debug)]
pub struct Proven {
    /// The offset of the first of these bytes in the file.
    pub offset: u64,
    /// The number of these bytes.
    pub length: u64,
    /// The bytes with their proof, as the node sent them.
    pub encoded: Bytes,
    /// The bytes without their proof; empty unless the reader asked for them.
    pub bytes: Bytes,
}

/// A group of a file that no replica gives.
#[derive(Debug)]
pub struct RefusedGroup {
    /// The first byte of it in the file, and one past the last.
    pub range: Range<u64>,
    /// The replicas that could not be asked, or did not answer properly: the bytes may be good there. If empty, the
    /// bytes are lost.
    pub unknown: Vec<ReplicaId>,
    /// Whether none of the replicas in `unknown` answered at all.
    pub is_silence: bool,
    /// The answers of the replicas, for people.
    pub said: String,
}
