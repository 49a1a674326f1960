//! Errors of requests to the archive, sorted by what the caller does next.

use jiff::Timestamp;

use crate::{FileName, InvalidFileName, ReplicaId, Root, StoreFailure};

/// The reason why the archive refused or failed a request. Each variant has another next step for the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// The request breaks a rule: correct it and ask again.
    #[error("invalid request: {0}")]
    Invalid(String),
    /// The name breaks the rule of names: rename the file.
    #[error("{name:?} is no name for an archive file: {reason}")]
    Name {
        /// The name that was given.
        name: String,
        /// The part of the rule that the name breaks.
        reason: InvalidFileName,
    },
    /// The archive knows nothing of that name.
    #[error("{0} is not in the archive")]
    NotFound(String),
    /// The name is permanently bound to other bytes: store under another name.
    #[error("{name} is already archived with other content (root {archived})")]
    Exists {
        /// The name that is bound already.
        name: FileName,
        /// The root that the name is bound to.
        archived: Root,
    },
    /// The name is being stored by another upload: wait, then ask again.
    #[error("{0} is being stored by another upload; try again when that one has ended")]
    Busy(FileName),
    /// The bytes are not what was announced: read the source again.
    #[error("{name}: {what} announced as {announced}, received {received}")]
    Mismatch {
        /// The name of the file that was being stored.
        name: FileName,
        /// The property that differs: `size`, `blake3`, `sha256` or `md5`.
        what: &'static str,
        /// The value that the depositor announced.
        announced: String,
        /// The value of the bytes that arrived.
        received: String,
    },
    /// The file is stored, but not yet in every required replica: keep the source, ask again later.
    #[error("{name} is not yet in every required replica: {}{}", reasons(.failures), retried(.again.as_ref()))]
    NotEnoughReplicas {
        /// The name of the file.
        name: FileName,
        /// The replicas that failed, and why.
        failures: Vec<(ReplicaId, StoreFailure)>,
        /// When the archive tries again by itself; `None`: it waits for the bytes.
        again: Option<Timestamp>,
    },
    /// No replica holds these bytes intact: the rest can be salvaged.
    #[error("{name}: bytes {start}-{} are intact in no replica", .end - 1)]
    Damaged {
        /// The name of the damaged file.
        name: FileName,
        /// The offset of the first damaged byte.
        start: u64,
        /// The offset behind the last damaged byte.
        end: u64,
    },
    /// The certificate does not carry a role that may do this.
    #[error("refused: {0}")]
    Refused(String),
    /// The archive has no room: free some, then ask again.
    #[error("no space: {0}")]
    NoSpace(String),
    /// A part of the archive could not be reached or is not ready: try again.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// A time limit passed: try again.
    #[error("timed out while {0}")]
    TimedOut(String),
    /// A disk failed or lies: an operator must look.
    #[error("storage failure: {0}")]
    Storage(String),
}

fn retried(again: Option<&Timestamp>) -> String {
    again.map_or_else(String::new, |again| {
        format!("; the archive has the bytes and tries again at {again}")
    })
}

fn reasons(failures: &[(ReplicaId, StoreFailure)]) -> String {
    failures
        .iter()
        .map(|(replica, reason)| format!("{replica}: {reason}"))
        .collect::<Vec<_>>()
        .join("; ")
}
