//! The rows of a query, in its order.

use std::collections::VecDeque;
use std::ops::Bound;

use archive_db::{DbError, Rows, Table};

use super::cursor::Cursor;
use super::target::KeyRange;
use super::{Order, Query, QueryError};
use crate::moment::Moment;
use crate::place::Place;
use crate::rows::PackedCapture;

type Row = (Place, PackedCapture);
type Captures = Table<Place, PackedCapture>;

/// Which way rows are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forwards,
    Backwards,
}

/// Rows in the order of a query.
#[derive(Debug)]
pub(crate) enum Walk<'a> {
    /// Ranges one after the other, in one direction.
    Straight {
        ranges: VecDeque<Rows<'a, Place, PackedCapture>>,
        direction: Direction,
    },
    /// Outwards from a time.
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
    /// The last row that was given.
    last: Option<Place>,
}

impl<'a> Walk<'a> {
    /// The rows of a query, from its cursor on.
    pub(crate) fn new(captures: &'a Captures, query: &Query) -> Result<Self, QueryError> {
        match query.order {
            Order::Ascending => Self::straight(captures, query, Direction::Forwards),
            Order::Descending => Self::straight(captures, query, Direction::Backwards),
            Order::Closest(at) => Self::closest(captures, query, Moment::of(at)),
        }
    }

    /// The rows of a query in one direction.
    pub(crate) fn straight(
        captures: &'a Captures,
        query: &Query,
        direction: Direction,
    ) -> Result<Self, QueryError> {
        let after = query.after.as_ref();
        let after = after.map(|cursor| read_cursor(cursor, query, direction));
        let after = after.transpose()?;
        let mut ranges = VecDeque::new();
        for range in query.target.ranges() {
            let (mut start, mut end) = bounds(range, query);
            if let Some(after) = after {
                match direction {
                    Direction::Forwards if *after >= start => start = after.clone(),
                    Direction::Backwards if *after < end => end = after.clone(),
                    Direction::Forwards | Direction::Backwards => {}
                }
            }
            let start_bound = if Some(&start) == after {
                Bound::Excluded(start)
            } else {
                Bound::Included(start)
            };
            let range = (start_bound, Bound::Excluded(end));
            match direction {
                Direction::Forwards => ranges.push_back(captures.range(range)?),
                Direction::Backwards => ranges.push_front(captures.range_backwards(range)?),
            }
        }
        Ok(Self::Straight { ranges, direction })
    }

    fn closest(captures: &'a Captures, query: &Query, at: Moment) -> Result<Self, QueryError> {
        let key = query.target.one_key().ok_or(QueryError::ClosestOfMany)?;
        let (start, end) = bounds(&KeyRange::One(key.to_owned()), query);
        let middle = Place::before(key, at).clamp(start.clone(), end.clone().max(start.clone()));
        let [mut later, mut earlier] = [None, None];
        if let Some(cursor) = &query.after {
            let [forwards, backwards] = cursor.places.clone();
            let places = [&forwards, &backwards];
            if places.into_iter().flatten().any(|place| place.key != key) {
                return Err(QueryError::ForeignCursor);
            }
            (later, earlier) = (forwards, backwards);
        }
        let from = match &later {
            Some(place) => Bound::Excluded(place.clone()),
            None => Bound::Included(middle.clone()),
        };
        let to = earlier.clone().unwrap_or(middle);
        let side = |rows, last| Side {
            rows,
            next: None,
            last,
        };
        Ok(Self::Closest(Box::new(Closest {
            at: at.millis().unwrap_or(0),
            later: side(captures.range((from, Bound::Excluded(end)))?, later),
            earlier: side(captures.range_backwards(start..to)?, earlier),
        })))
    }

    /// The next row.
    pub(crate) fn next(&mut self) -> Option<Result<Row, DbError>> {
        match self {
            Self::Straight { ranges, .. } => loop {
                let row = ranges.front_mut()?.next();
                if row.is_some() {
                    return row;
                }
                ranges.pop_front();
            },
            Self::Closest(closest) => closest.next(),
        }
    }

    /// Passes over the rows before a place, without reading them; not in a walk outwards.
    pub(crate) fn skip_to(&mut self, place: &Place) {
        if let Self::Straight { ranges, .. } = self {
            for rows in ranges {
                rows.skip_to(place);
            }
        }
    }

    /// Passes over the rest of a key whose times are left out from here on.
    pub(crate) fn skip_times(&mut self, place: &Place, from: Moment, to: Moment) {
        let Self::Straight { ranges, direction } = self else {
            return;
        };
        let target = match direction {
            Direction::Forwards if place.time < from => from,
            Direction::Forwards => Moment::LAST,
            Direction::Backwards if place.time > to => to.next(),
            Direction::Backwards => Moment::FIRST,
        };
        if let Some(rows) = ranges.front_mut() {
            rows.skip_to(&Place::before(&place.key, target));
        }
    }

    /// The places behind which the walk goes on, once this row was given.
    pub(crate) fn places_after(&self, place: &Place) -> [Option<Place>; 2] {
        match self {
            Self::Straight {
                direction: Direction::Forwards,
                ..
            } => [Some(place.clone()), None],
            Self::Straight {
                direction: Direction::Backwards,
                ..
            } => [None, Some(place.clone())],
            Self::Closest(closest) => [closest.later.last.clone(), closest.earlier.last.clone()],
        }
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
        let (row, _) = side.next.take()?;
        side.last = Some(row.0.clone());
        Some(Ok(row))
    }
}

impl Side<'_> {
    /// The distance of the next row.
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

/// The places of a range that a query asks for: from the first one up to, but without, the second one.
fn bounds(range: &KeyRange, query: &Query) -> (Place, Place) {
    let place = |key: &str, time| Place::before(key, time);
    match range {
        KeyRange::One(key) => {
            let from = query.from.map_or(Moment::FIRST, Moment::of);
            let to = query.to.map_or(Moment::LAST, Moment::end_of);
            (place(key, from), place(key, to.next()))
        }
        KeyRange::Many(start, end) => {
            // The greatest character sorts behind all keys.
            let end = end.as_deref().unwrap_or("\u{10ffff}");
            (place(start, Moment::FIRST), place(end, Moment::FIRST))
        }
    }
}

/// The place of a cursor, if it is one of this query.
fn read_cursor<'c>(
    cursor: &'c Cursor,
    query: &Query,
    direction: Direction,
) -> Result<&'c Place, QueryError> {
    let place = match (direction, &cursor.places) {
        (Direction::Forwards, [Some(place), None])
        | (Direction::Backwards, [None, Some(place)]) => place,
        _ => return Err(QueryError::ForeignCursor),
    };
    let mut ranges = query.target.ranges().iter();
    if ranges.any(|range| range.has(&place.key)) {
        Ok(place)
    } else {
        Err(QueryError::ForeignCursor)
    }
}
