//! The parts that a reader is given: proven bytes, or a hole where nobody gives them.

use std::ops::Range;

use archive_model::ReplicaId;
use bytes::Bytes;

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
    /// How many they are.
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
