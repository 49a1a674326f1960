//! The reasons why a batch of files is not read to its end.

use archive_client::ClientError;
use archive_db::DbError;

/// The reason why a batch was not read to its end. Its files wait again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BatchError {
    /// The archive does not answer, or refuses.
    #[error("cannot read the files to be indexed: {0}")]
    Archive(#[from] ClientError),
    /// The database fails: the part ends.
    #[error(transparent)]
    Database(#[from] DbError),
    /// A job cannot be described (its name needs random bytes), or the thread that writes captures has failed.
    #[error("cannot start a job: {0}")]
    System(String),
}
