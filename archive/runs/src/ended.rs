//! Why a job ends early.

use archive_batch::Stop;
use archive_bitarchive::NodeError;

/// Why a job ends before its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    /// It was told to.
    #[error("{0}")]
    Stopped(Stop),
    /// The node cannot go on.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The machine has no more files or memory to give, now.
    #[error("{0}")]
    Exhausted(String),
    /// A bug.
    #[error("a bug: {0}")]
    Bug(String),
}
