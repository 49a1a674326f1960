//! A file that is wanted, who may give it, and the parts that a reader is given: proven bytes, or a hole.

use std::ops::Range;

use archive_model::{FileName, Groups, NodeId, ReplicaId, Root};
use bytes::Bytes;

/// The file, as admitted.
#[derive(Clone, Debug)]
pub struct WantedFile {
    /// Its name.
    pub name: FileName,
    /// The root that its bytes are proven against.
    pub root: Root,
    /// Its size in bytes.
    pub size: u64,
}

/// A replica that may give bytes.
#[derive(Clone, Debug)]
pub struct Donor {
    /// The replica.
    pub replica: ReplicaId,
    /// Where it has the file, as far as is known; else its monitor is asked.
    pub node: Option<NodeId>,
    /// Groups that are known to be bad there: asked for last.
    pub bad: Groups,
}

/// The next part.
#[derive(Debug)]
pub enum Part {
    /// Bytes, held against the root.
    Proven(Proven),
    /// Bytes that nobody gives.
    Hole(Hole),
}

/// Bytes that were held against the root.
#[derive(Debug)]
pub struct Proven {
    /// The first of them in the file.
    pub offset: u64,
    /// The number of these bytes.
    pub length: u64,
    /// With their proof.
    pub encoded: Bytes,
    /// Without it; empty unless they were asked for.
    pub bytes: Bytes,
}

/// A group that nobody gives.
#[derive(Debug)]
pub struct Hole {
    /// First byte and one past the last.
    pub range: Range<u64>,
    /// The replicas that could not be asked, or did not answer properly: the bytes may be good there. If empty, they are
    /// lost.
    pub unknown: Vec<ReplicaId>,
    /// Whether nobody of these answered at all.
    pub is_silence: bool,
    /// The answer of each replica.
    pub said: String,
}
