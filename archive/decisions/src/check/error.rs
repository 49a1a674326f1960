//! The reasons why an input of a check is not believed.

use archive_model::FileName;

/// More volumes than this under one name, in one replica, are in no honest listing.
pub(super) const MOST_COPIES: usize = 256;

/// The reason why an input of a check is not believed from some point on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// The input ended with an error.
    #[error("{0}")]
    Source(String),
    /// The input ended without its end mark.
    #[error("it was cut: the end mark did not come")]
    Unended,
    /// The input went on after its end mark.
    #[error("it went on after its end mark")]
    AfterEnd,
    /// A name did not come in ascending order.
    #[error("it is out of order: {0} came too late, or twice")]
    OutOfOrder(FileName),
    /// A name has more copies than any replica has volumes.
    #[error("it lists more than {MOST_COPIES} copies of {0}")]
    TooManyCopies(FileName),
    /// The input names more silent volumes than any replica has.
    #[error("it names more silent volumes than a replica can have")]
    TooManySilent,
}
