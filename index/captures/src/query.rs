//! Questions to the index.

mod collapse;
mod cursor;
mod filter;
mod matches;
mod target;
mod walk;

use std::sync::Arc;

use archive_db::DbError;
use archive_formats::date::{Fill, InvalidDate, Stamp};
use thiserror::Error;

pub use collapse::{Collapse, Keep};
pub use cursor::{Cursor, InvalidCursor};
pub use filter::{Field, Filter, InvalidFilter};
pub use matches::{Match, Matches};
pub use target::Target;

/// In which order captures are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By key and time.
    #[default]
    Ascending,
    /// The last one first.
    Descending,
    /// From the capture that is nearest to a time outwards, of two that are equally near the earlier one first. For one URL
    /// only.
    Closest(Stamp),
}

/// How many captures are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The first ones.
    First(u64),
    /// The last ones, in the same order.
    Last(u64),
}

impl Limit {
    /// The limit as the field writes it: a negative number asks for the last captures.
    pub const fn from_number(number: i64) -> Self {
        if number < 0 {
            Self::Last(number.unsigned_abs())
        } else {
            Self::First(number.unsigned_abs())
        }
    }
}

/// Says of a source whether its captures are given; asked once for each file that a query meets.
pub type SourceTest = Arc<dyn Fn(&crate::Source) -> bool + Send + Sync>;

/// A question to the index.
#[derive(Clone)]
pub struct Query {
    /// The URLs that are asked for.
    pub target: Target,
    /// The earliest time.
    pub from: Option<Stamp>,
    /// The latest time; a time with 14 digits includes the whole second.
    pub to: Option<Stamp>,
    /// The order of the captures.
    pub order: Order,
    /// Conditions, all of which hold for each capture.
    pub filters: Vec<Filter>,
    /// Which neighbours count as one, one step after the other.
    pub collapse: Vec<Collapse>,
    /// How many captures.
    pub limit: Option<Limit>,
    /// Goes on behind the capture that gave the cursor.
    pub after: Option<Cursor>,
    /// Which files and sets; none: all.
    pub sources: Option<SourceTest>,
}

impl Query {
    /// Asks for all captures of a target, in ascending order.
    pub const fn new(target: Target) -> Self {
        Self {
            target,
            from: None,
            to: None,
            order: Order::Ascending,
            filters: Vec::new(),
            collapse: Vec::new(),
            limit: None,
            after: None,
            sources: None,
        }
    }

    /// Sets the earliest and the latest time, of 1 to 14 digits or 17; what is missing is filled up, to the beginning of
    /// what the first one names and to the end of what the other one names.
    ///
    /// # Errors
    ///
    /// [`QueryError::Date`] if one of them does not exist.
    pub fn between(mut self, from: Option<&str>, to: Option<&str>) -> Result<Self, QueryError> {
        let read = |text: &str, fill| {
            Stamp::from_query(text, fill).map_err(|why| QueryError::Date {
                text: text.to_owned(),
                why,
            })
        };
        self.from = from.map(|text| read(text, Fill::First)).transpose()?;
        self.to = to.map(|text| read(text, Fill::Last)).transpose()?;
        Ok(self)
    }

    /// Asks for the captures nearest to a time of 1 to 14 digits or 17, which is filled up to its beginning.
    ///
    /// # Errors
    ///
    /// [`QueryError::Date`] if the time does not exist.
    pub fn closest(mut self, time: &str) -> Result<Self, QueryError> {
        let stamp = Stamp::from_query(time, Fill::First).map_err(|why| QueryError::Date {
            text: time.to_owned(),
            why,
        })?;
        self.order = Order::Closest(stamp);
        Ok(self)
    }
}

impl std::fmt::Debug for Query {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Query")
            .field("target", &self.target)
            .field("from", &self.from)
            .field("to", &self.to)
            .field("order", &self.order)
            .field("filters", &self.filters)
            .field("collapse", &self.collapse)
            .field("limit", &self.limit)
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}

/// Why a question is not answered, or no further.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QueryError {
    /// A time that does not exist.
    #[error("{text:?} is no time: {why}; give 1 to 14 digits, as in 2016 or 20161231235959")]
    Date {
        /// The text.
        text: String,
        /// The reason.
        why: InvalidDate,
    },
    /// A host or a domain was asked for by something that has none.
    #[error("{0:?} has no host; ask for it by `exact` or `prefix`")]
    NoHost(String),
    /// Captures of several URLs cannot be walked outwards from a time.
    #[error("captures closest to a time can be asked for one URL only; ask for an exact match")]
    ClosestOfMany,
    /// The last capture of a group can only be kept where captures are in the order of time, and by one step.
    #[error(
        "the last capture of a group can be kept in ascending or descending order only, by one collapse"
    )]
    KeepLast,
    /// The cursor belongs to a query of another target or order.
    #[error(
        "the resume key belongs to another query; repeat the query that gave it with nothing changed but the key"
    )]
    ForeignCursor,
    /// The last captures were asked for, and to go on behind a cursor.
    #[error("a negative limit cannot be combined with a resume key")]
    LastAfterCursor,
    /// The database failed, or is damaged.
    #[error("cannot read the index of captures: {0}")]
    Database(#[from] DbError),
}

impl QueryError {
    /// Whether the question itself is wrong, and would be wrong tomorrow.
    pub const fn is_invalid(&self) -> bool {
        !matches!(self, Self::Database(_))
    }
}
