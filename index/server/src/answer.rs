//! A query of the wire, answered from the database: keys, span and order by the index, the rest by the shared adapters.

use std::collections::VecDeque;

use archive_formats::cdx::Capture;
use archive_formats::cdx::query::{CaptureQuery, Cursor, KeyMatch, Order};
use archive_formats::date::Stamp;
use index_captures::{Captures, DbError, Match, Query, QueryError, Target};
use proto_index::sets::SET_FIELD;

/// Calls `give` with each capture that answers the query, in order, until it says that nobody wants more. Says how many
/// were given.
///
/// # Errors
///
/// Fails when the query makes no sense, or the database fails: what was given is then not the whole answer.
pub(crate) fn answer(
    captures: &Captures,
    query: &CaptureQuery,
    mut give: impl FnMut(Capture) -> bool,
) -> Result<u64, QueryError> {
    let found = captures.query(&index_query(query))?;
    let found = found.map(|found| found.map(with_set));
    let behind = Resumed::new(found, query);
    let accepted = behind.filter(|found| {
        found
            .as_ref()
            .map_or(true, |capture| query.accepts(capture))
    });
    let mut count = 0_u64;
    for run in query.thin(accepted) {
        if !give(run?.capture) {
            break;
        }
        count = count.saturating_add(1);
    }
    Ok(count)
}

/// A capture as it is answered: one that was imported names its set, and no other one does.
fn with_set(found: Match) -> Capture {
    let mut capture = found.capture;
    capture.extra.retain(|(name, _)| name != SET_FIELD);
    if let Some(set) = &found.source.set {
        capture.extra.push((SET_FIELD.to_owned(), set.to_string()));
    }
    capture
}

/// The part of a query that the index answers by itself.
fn index_query(query: &CaptureQuery) -> Query {
    let cursor = query.cursor.as_ref();
    let target = match (&query.keys, query.order, cursor) {
        (KeyMatch::Exact(key), ..) => Target::key(key),
        // Nothing before the key of the cursor is read.
        (KeyMatch::Within(range), Order::Ascending, Some(cursor)) => {
            let start = range.start.clone().max(cursor.key.clone());
            Target::keys(start, range.end.clone())
        }
        // And nothing behind it: a key ends before a blank.
        (KeyMatch::Within(range), Order::Descending, Some(cursor)) => {
            let end = format!("{} ", cursor.key);
            let end = range.end.clone().map_or(end.clone(), |own| own.min(end));
            Target::keys(range.start.clone(), Some(end))
        }
        (KeyMatch::Within(range), ..) => Target::keys(range.start.clone(), range.end.clone()),
    };
    let mut index = Query::new(target);
    (index.from, index.to) = (query.span.from, query.span.to);
    if let (KeyMatch::Exact(key), Some(cursor)) = (&query.keys, cursor)
        && cursor.key == key.as_str()
    {
        // Nothing before the second of the cursor is read.
        match query.order {
            Order::Ascending => index.from = Some(later(index.from, second(cursor.timestamp))),
            Order::Descending => index.to = Some(earlier(index.to, second(cursor.timestamp))),
            Order::Closest(_) => {}
        }
    }
    index.order = match query.order {
        Order::Ascending => index_captures::Order::Ascending,
        Order::Descending => index_captures::Order::Descending,
        Order::Closest(at) => index_captures::Order::Closest(at),
    };
    index
}

/// The second of a timestamp: it stands for all of it.
fn second(stamp: Stamp) -> Stamp {
    Stamp::from_time(stamp.time())
}

fn later(one: Option<Stamp>, other: Stamp) -> Stamp {
    match one {
        Some(one) if one.time() > other.time() => one,
        Some(_) | None => other,
    }
}

fn earlier(one: Option<Stamp>, other: Stamp) -> Stamp {
    match one {
        Some(one) if one.time() < other.time() => one,
        Some(_) | None => other,
    }
}

/// Leaves out what lies before a cursor, and the capture of the cursor itself.
///
/// Captures of the key and second of the cursor are held until its own place is met, or is known not to be there: then all
/// of them come, so that none is lost.
struct Resumed<I> {
    captures: I,
    cursor: Option<Cursor>,
    order: Order,
    held: VecDeque<Capture>,
}

/// The most captures of one key and second that are held. Where there are more, they come again.
const MOST_HELD: usize = 10_000;

impl<I> Resumed<I> {
    fn new(captures: I, query: &CaptureQuery) -> Self {
        Self {
            captures,
            cursor: query.cursor.clone(),
            order: query.order,
            held: VecDeque::new(),
        }
    }

    /// Takes a capture while the place of the cursor was not met.
    fn take(&mut self, capture: Capture) {
        let Some(cursor) = &self.cursor else {
            self.held.push_back(capture);
            return;
        };
        let own = (&capture.key, capture.timestamp.time().as_second());
        let place = (&cursor.key, cursor.timestamp.time().as_second());
        let is_before = match self.order {
            Order::Ascending | Order::Closest(_) => own < place,
            Order::Descending => own > place,
        };
        if is_before {
            return;
        }
        let is_place = own == place;
        if is_place && Cursor::of(&capture) == *cursor {
            self.held.clear();
            self.cursor = None;
            return;
        }
        self.held.push_back(capture);
        if !is_place || self.held.len() > MOST_HELD {
            self.cursor = None;
        }
    }
}

impl<I> Iterator for Resumed<I>
where
    I: Iterator<Item = Result<Capture, DbError>>,
{
    type Item = Result<Capture, DbError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.cursor.is_none()
                && let Some(capture) = self.held.pop_front()
            {
                return Some(Ok(capture));
            }
            match self.captures.next() {
                Some(Ok(capture)) if self.cursor.is_none() => return Some(Ok(capture)),
                Some(Ok(capture)) => self.take(capture),
                Some(Err(error)) => return Some(Err(error)),
                None => {
                    self.cursor = None;
                    return self.held.pop_front().map(Ok);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
