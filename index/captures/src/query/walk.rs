//! The rows of a query, in its order.

use std::ops::{Bound, Range};

use archive_db::{DbError, Rows, Table};
use archive_formats::cdx::query::{CaptureQuery, Cursor, KeyMatch, Order};
use archive_formats::date::Stamp;

use crate::moment::Moment;
use crate::place::Place;
use crate::rows::PackedCapture;

type Row = (Place, PackedCapture);
type CaptureTable = Table<Place, PackedCapture>;

/// The direction in which rows are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forwards,
    Backwards,
}

/// Rows in the order of a query.
#[derive(Debug)]
pub(crate) enum CaptureWalk<'a> {
    /// Rows in one direction.
    Straight {
        rows: Rows<'a, Place, PackedCapture>,
        direction: Direction,
    },
    /// Rows outwards from a time.
    Closest(Box<Closest<'a>>),
}

/// Two iterations that lead away from a time.
#[derive(Debug)]
pub(crate) struct Closest<'a> {
    /// Milliseconds of the time.
    at: i64,
    later: Side<'a>,
    earlier: Side<'a>,
}

#[derive(Debug)]
struct Side<'a> {
    rows: Rows<'a, Place, PackedCapture>,
    /// The next row and its distance.
    next: Option<(Row, u64)>,
}

impl<'a> CaptureWalk<'a> {
    /// Returns the rows of a query; only those behind a place, if there is one.
    pub(crate) fn new(
        captures: &'a CaptureTable,
        query: &CaptureQuery,
        behind: Option<Place>,
    ) -> Result<Self, DbError> {
        let Range { start, end } = bounds(query);
        match query.order {
            Order::Ascending => {
                let start = match behind {
                    Some(behind) if behind >= start => Bound::Excluded(behind),
                    _ => Bound::Included(start),
                };
                Ok(Self::Straight {
                    rows: captures.range((start, Bound::Excluded(end)))?,
                    direction: Direction::Forwards,
                })
            }
            Order::Descending => {
                let end = behind.map_or(end.clone(), |behind| behind.min(end));
                Ok(Self::Straight {
                    rows: captures.range_backwards(start..end)?,
                    direction: Direction::Backwards,
                })
            }
            Order::Closest(at) => {
                let at = Moment::from_stamp(at);
                let middle = Place::before_time(&start.key, at);
                let middle = middle.min(end.clone()).max(start.clone());
                let side = |rows| Side { rows, next: None };
                Ok(Self::Closest(Box::new(Closest {
                    at: at.millis().unwrap_or(0),
                    later: side(captures.range(middle.clone()..end)?),
                    earlier: side(captures.range_backwards(start..middle)?),
                })))
            }
        }
    }

    /// Returns the next row.
    pub(crate) fn next(&mut self) -> Option<Result<Row, DbError>> {
        match self {
            Self::Straight { rows, .. } => rows.next(),
            Self::Closest(closest) => closest.next(),
        }
    }

    /// Passes over the rest of a key whose times are left out from here on.
    pub(crate) fn skip_times(&mut self, place: &Place, from: Moment, to: Moment) {
        let Self::Straight { rows, direction } = self else {
            return;
        };
        let target = match direction {
            Direction::Forwards if place.time < from => from,
            Direction::Forwards => Moment::LAST,
            Direction::Backwards if place.time > to => to.next(),
            Direction::Backwards => Moment::FIRST,
        };
        rows.skip_to(&Place::before_time(&place.key, target));
    }
}

impl Closest<'_> {
    fn next(&mut self) -> Option<Result<Row, DbError>> {
        let distances = self.later.peek(self.at).and_then(|later| {
            let earlier = self.earlier.peek(self.at)?;
            Ok((later, earlier))
        });
        let side = match distances {
            Err(error) => return Some(Err(error)),
            Ok((None, None)) => return None,
            // Of two that are equally near, the earlier one.
            Ok((Some(later), Some(earlier))) if later < earlier => &mut self.later,
            Ok((Some(_), None)) => &mut self.later,
            Ok((_, Some(_))) => &mut self.earlier,
        };
        side.next.take().map(|(row, _)| Ok(row))
    }
}

impl Side<'_> {
    /// Returns the distance of the next row.
    fn peek(&mut self, at: i64) -> Result<Option<u64>, DbError> {
        if self.next.is_none()
            && let Some(row) = self.rows.next().transpose()?
        {
            let millis = row.0.time.millis().unwrap_or(i64::MAX);
            self.next = Some((row, millis.abs_diff(at)));
        }
        Ok(self.next.as_ref().map(|(_, distance)| *distance))
    }
}

/// Returns the places that a query asks for. Of several keys they are those of all times.
fn bounds(query: &CaptureQuery) -> Range<Place> {
    match &query.keys {
        KeyMatch::Exact(key) => {
            let from = query.span.from.map_or(Moment::FIRST, Moment::start_of);
            let to = query.span.to.map_or(Moment::LAST, Moment::end_of);
            Place::before_time(key.as_str(), from)..Place::before_time(key.as_str(), to.next())
        }
        KeyMatch::Within(range) => {
            // The greatest character sorts behind all keys.
            let end = range.end.as_deref().unwrap_or("\u{10ffff}");
            Place::before_time(&range.start, Moment::FIRST)..Place::before_time(end, Moment::FIRST)
        }
    }
}

/// Returns the places of the key and second of a cursor.
pub(crate) fn second_of(cursor: &Cursor) -> Range<Place> {
    let second = Stamp::from_time(cursor.timestamp.time());
    let place = |time| Place::before_time(&cursor.key, time);
    place(Moment::start_of(second))..place(Moment::end_of(second).next())
}
