//! What a reader is given: proven bytes, or a hole where nobody gives them.

use std::ops::Range;

use archive_model::ReplicaId;
use bytes::Bytes;

/// What comes next.
#[derive(Debug)]
pub(crate) enum Part {
    /// Bytes, held against the root.
    Proven(Proven),
    /// Bytes that nobody gives.
    Hole(Hole),
}

/// Bytes that were held against the root.
#[derive(Debug)]
pub(crate) struct Proven {
    pub(crate) offset: u64,
    pub(crate) length: u64,
    /// With their proof.
    pub(crate) encoded: Bytes,
    /// Without it; empty unless they were asked for.
    pub(crate) bytes: Bytes,
}

/// A group that nobody gives.
#[derive(Debug)]
pub(crate) struct Hole {
    /// First byte and one past the last.
    pub(crate) range: Range<u64>,
    /// Who could not be asked, or did not answer as one does: it may be good there. Empty: it is lost.
    pub(crate) unknown: Vec<ReplicaId>,
    /// Whether nobody of these answered at all.
    pub(crate) is_silence: bool,
    /// What each replica said.
    pub(crate) said: String,
}
