//! The reasons why a job ends before its last file.

use archive_batch::Stop;
use archive_bitarchive::NodeError;

/// The reason why a job ends before its last file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EarlyEnd {
    /// The job was stopped.
    #[error("{0}")]
    Stopped(Stop),
    /// The node failed.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The machine has no open files or memory left at the moment.
    #[error("{0}")]
    Exhausted(String),
    /// A bug of this crate.
    #[error("a bug: {0}")]
    Bug(String),
}
