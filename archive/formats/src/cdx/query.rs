//! A query of an index of captures: which captures, in which order, and how thinned out.
//!
//! Owns the terms of such a query, shared by the index that answers it and the servers that are asked for it:
//! [`CaptureQuery`], and the pure adapters that filter ([`CaptureQuery::accepts_capture`]) and thin out ([`ThinnedCaptures`])
//! any sequence of captures. Does not know how an index is laid out, and knows no dialect of a CDX server.
//!
//! An index orders captures by key (bytewise), then time, then by its own order of files, then offset. A capture that
//! is stored with milliseconds belongs to its second: a bound of 14 digits includes the whole second.

mod cursor;
mod field;
mod filter;
mod key_match;
mod span;
mod thin;

#[cfg(test)]
mod tests;

pub use cursor::{Cursor, CursorSource, InvalidCursor};
pub use field::CaptureField;
pub use filter::{Anchoring, Filter, FilterTest, InvalidExpression, MAX_PATTERN, Pattern};
pub use key_match::{KeyMatch, KeyRange, MatchKind, NoHost, UnknownMatchKind};
pub use span::TimeSpan;
pub use thin::{Collapse, CollapsedRun, Keep, ThinnedCaptures, Thinner};

use std::cmp::Ordering;

use thiserror::Error;

use super::Capture;
use crate::date::Stamp;

/// The field of a capture in an answer that names the set it was imported with; absent if the capture is in a file of
/// the archive.
pub const SET_FIELD: &str = "set";

/// The field of a capture in an answer that names the line which tells of it, where that line does not say where a
/// record of its own is: the number of the line in its set, or a file of the archive, a colon, and the number of the
/// line in that.
pub const LINE_FIELD: &str = "source-line";

/// The most filters of one query.
pub const MAX_FILTERS: usize = 32;

/// The most fields by which one query collapses.
pub const MAX_COLLAPSES: usize = 8;

/// The largest number of captures that [`Limit::Last`] may ask for: they are held in memory.
pub const MAX_LAST: u64 = 10_000;

/// A query of an index of captures.
///
/// The parts apply in this order: keys, span, cursor, filters, order, collapse, limit.
#[derive(Clone, Debug, PartialEq)]
pub struct CaptureQuery {
    /// The keys that are asked for.
    pub keys: KeyMatch,
    /// The span of time that is asked for.
    pub span: TimeSpan,
    /// The filters, each of which a capture has to pass.
    pub filters: Vec<Filter>,
    /// The order of the answer.
    pub order: Order,
    /// The fields in which neighbours have to agree to become one capture. Empty: nothing is collapsed.
    pub collapse: Vec<Collapse>,
    /// The choice of the capture that stands for a collapsed run.
    pub keep: Keep,
    /// The largest number of captures, counted after collapsing.
    pub limit: Option<Limit>,
    /// The place behind which the answer begins, in its order.
    pub cursor: Option<Cursor>,
}

/// The order of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The order of the index: by key, then by time, oldest first.
    #[default]
    Ascending,
    /// The reverse of the order of the index.
    Descending,
    /// By distance in time from a moment; of two that are equally far away the earlier one comes first. Only for one
    /// exact key.
    Closest(Stamp),
}

/// A number of captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The first captures of the answer.
    First(u64),
    /// The last captures of the answer, still in its order. At most [`MAX_LAST`].
    Last(u64),
}

/// The reason why a query cannot be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidQuery {
    /// The order [`Order::Closest`] needs one key.
    #[error("captures can be ordered by closeness only for an exact URL")]
    ClosestOfMany,
    /// The query has more filters than [`MAX_FILTERS`].
    #[error("{0} filters; at most {MAX_FILTERS} are allowed")]
    Filters(usize),
    /// The query collapses by more fields than [`MAX_COLLAPSES`].
    #[error("{0} fields to collapse by; at most {MAX_COLLAPSES} are allowed")]
    Collapses(usize),
    /// The query has a [`Limit::Last`] above [`MAX_LAST`].
    #[error("the last {0} captures were asked for; at most {MAX_LAST} are allowed")]
    Last(u64),
    /// A cursor is a place in the order of the index, which closeness does not follow.
    #[error("an answer that is ordered by closeness cannot be resumed")]
    ClosestCursor,
}

impl CaptureQuery {
    /// Makes the query of all captures of these keys, in the order of the index.
    pub fn new(keys: KeyMatch) -> Self {
        Self {
            keys,
            span: TimeSpan::default(),
            filters: Vec::new(),
            order: Order::Ascending,
            collapse: Vec::new(),
            keep: Keep::First,
            limit: None,
            cursor: None,
        }
    }

    /// Checks the rules that the types of the parts do not enforce.
    ///
    /// # Errors
    ///
    /// Fails if the order needs an exact key, or if a limit of this module is exceeded.
    pub fn validate_query(&self) -> Result<(), InvalidQuery> {
        if self.filters.len() > MAX_FILTERS {
            return Err(InvalidQuery::Filters(self.filters.len()));
        }
        if self.collapse.len() > MAX_COLLAPSES {
            return Err(InvalidQuery::Collapses(self.collapse.len()));
        }
        if let Some(Limit::Last(count)) = self.limit
            && count > MAX_LAST
        {
            return Err(InvalidQuery::Last(count));
        }
        if let Order::Closest(_) = self.order {
            if !matches!(self.keys, KeyMatch::Exact(_)) {
                return Err(InvalidQuery::ClosestOfMany);
            }
            if self.cursor.is_some() {
                return Err(InvalidQuery::ClosestCursor);
            }
        }
        Ok(())
    }

    /// Returns whether key, time and fields of a capture belong to the answer. The cursor is left to the index.
    pub fn accepts_capture(&self, capture: &Capture) -> bool {
        self.keys.matches(&capture.key)
            && self.span.contains(capture.timestamp)
            && self.filters.iter().all(|filter| filter.accepts(capture))
    }

    /// Returns a thinner that collapses and limits captures one by one, which are accepted already and come in their
    /// order.
    pub fn make_thinner(&self) -> Thinner {
        Thinner::new(self.collapse.clone(), self.keep, self.limit)
    }

    /// Collapses and limits captures that are accepted already, and in their order.
    ///
    /// # Errors
    ///
    /// The iterator passes on each error of `captures`.
    pub fn thin_captures<I, E>(&self, captures: I) -> ThinnedCaptures<I::IntoIter>
    where
        I: IntoIterator<Item = Result<Capture, E>>,
    {
        ThinnedCaptures::new(captures.into_iter(), self.make_thinner())
    }
}

impl Order {
    /// Compares two captures by key and time; captures of one key and second are equal here.
    pub fn compare_captures(self, one: &Capture, other: &Capture) -> Ordering {
        let ascending = || (&one.key, one.timestamp).cmp(&(&other.key, other.timestamp));
        match self {
            Self::Ascending => ascending(),
            Self::Descending => ascending().reverse(),
            Self::Closest(at) => time_distance(at, one.timestamp)
                .cmp(&time_distance(at, other.timestamp))
                .then_with(ascending),
        }
    }
}

/// Returns how far apart two timestamps are, in milliseconds.
pub fn time_distance(one: Stamp, other: Stamp) -> u64 {
    let one = one.time();
    let other = other.time();
    one.as_millisecond().abs_diff(other.as_millisecond())
}
