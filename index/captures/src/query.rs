//! Answers to queries. The terms of a query are those of [`archive_formats::cdx::query`].

mod matches;
mod walk;

use archive_db::DbError;
use archive_formats::cdx::query::InvalidQuery;
use thiserror::Error;

pub use matches::Matches;
pub(crate) use matches::{MatchingRows, SourceTest};

/// The reason why a query is not answered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QueryError {
    /// The query breaks a rule.
    #[error(transparent)]
    Invalid(#[from] InvalidQuery),
    /// The database failed, or is damaged.
    #[error("cannot read the index of captures: {0}")]
    Database(#[from] DbError),
}

impl QueryError {
    /// Returns whether the query itself breaks a rule, so that it is of no use to repeat it.
    pub const fn is_invalid(&self) -> bool {
        matches!(self, Self::Invalid(_))
    }
}
