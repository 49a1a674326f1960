//! The captures that answer a query, one after the other.

use std::collections::HashMap;
use std::iter::FusedIterator;
use std::sync::Arc;

use archive_db::DbError;
use archive_formats::cdx::Capture;

use super::collapse::{Keep, Step};
use super::cursor::Cursor;
use super::walk::{Direction, Walk};
use super::{Filter, Limit, Order, Query, QueryError, SourceTest};
use crate::Captures;
use crate::moment::Moment;
use crate::names::Source;
use crate::packed::unpack;
use crate::place::Place;
use crate::rows::PackedCapture;
use crate::shared::{Shared, View};

/// After this many rows of one key at times that are not asked for, the rest of them is skipped.
const PATIENCE: u32 = 16;

/// How many answers of a [`SourceTest`] are kept.
const TESTED: usize = 1 << 14;

/// A capture that answers a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The capture.
    pub capture: Capture,
    /// The file that it stands in, and the set that it came with.
    pub source: Arc<Source>,
    place: Place,
}

/// The captures that answer a query, as they were when it was asked.
///
/// The answer is complete only if no item was an error: nobody may skip errors (`flatten`, `filter_map`). Damage is the last
/// item. Memory does not grow with the number of captures.
#[must_use = "captures are read as they are asked for"]
#[derive(Debug)]
pub struct Matches<'a> {
    reading: Reading<'a>,
    steps: Vec<Step>,
    /// How many captures are still given.
    room: Option<u64>,
    /// The last capture that was given, and the places behind it.
    cursor: Option<Cursor>,
    is_done: bool,
}

/// The rows of a query that its conditions hold for.
struct Reading<'a> {
    shared: &'a Shared,
    view: Arc<View>,
    walk: Walk<'a>,
    from: Moment,
    to: Moment,
    filters: Vec<Filter>,
    sources: Option<SourceTest>,
    tested: HashMap<u32, bool>,
    misses: u32,
}

impl Captures {
    /// Answers a query.
    ///
    /// # Errors
    ///
    /// [`QueryError`] if the query makes no sense, or the database fails.
    pub fn query(&self, query: &Query) -> Result<Matches<'_>, QueryError> {
        check(query)?;
        match query.limit {
            Some(Limit::Last(count)) => self.last(query, count),
            Some(Limit::First(count)) => self.first(query, Some(count)),
            None => self.first(query, None),
        }
    }

    fn first(&self, query: &Query, room: Option<u64>) -> Result<Matches<'_>, QueryError> {
        let captures = &self.shared.tables.captures;
        self.shared.with_view(|view| {
            let walk = Walk::new(captures, query)?;
            Ok(self.matches(query, view, walk, room))
        })
    }

    /// The last captures of a query, in its order.
    fn last(&self, query: &Query, count: u64) -> Result<Matches<'_>, QueryError> {
        let captures = &self.shared.tables.captures;
        let opposite = match query.order {
            _ if !query.collapse.is_empty() => None,
            Order::Ascending => Some(Direction::Backwards),
            Order::Descending => Some(Direction::Forwards),
            Order::Closest(_) => None,
        };
        // Both walks see the same rows.
        let (mut ahead, mut matches) = self.shared.with_view(|view| {
            let ahead = match opposite {
                Some(direction) => Walk::straight(captures, query, direction)?,
                None => Walk::new(captures, query)?,
            };
            let walk = Walk::new(captures, query)?;
            let ahead = self.matches(query, view, ahead, None);
            Ok::<_, QueryError>((ahead, self.matches(query, view, walk, Some(count))))
        })?;
        if opposite.is_some() {
            // From the end back to the first capture that is given.
            ahead.room = Some(count);
            let mut first = None;
            for found in ahead {
                first = Some(found?.place);
            }
            if let Some(place) = first {
                matches.reading.walk.skip_to(&place);
            }
        } else {
            let mut all: u64 = 0;
            for found in ahead.by_ref() {
                found?;
                all += 1;
            }
            matches.room = None;
            for _ in count..all {
                matches.next().transpose()?;
            }
        }
        Ok(matches)
    }

    fn matches<'a>(
        &'a self,
        query: &Query,
        view: &Arc<View>,
        walk: Walk<'a>,
        room: Option<u64>,
    ) -> Matches<'a> {
        let values = query.after.as_ref().map(|cursor| cursor.values.clone());
        let mut values = values.unwrap_or_default().into_iter();
        let steps = query.collapse.iter();
        Matches {
            reading: Reading {
                shared: &self.shared,
                view: Arc::clone(view),
                walk,
                from: query.from.map_or(Moment::FIRST, Moment::of),
                to: query.to.map_or(Moment::LAST, Moment::end_of),
                filters: query.filters.clone(),
                sources: query.sources.clone(),
                tested: HashMap::new(),
                misses: 0,
            },
            steps: steps
                .map(|collapse| Step::new(collapse.clone(), values.next()))
                .collect(),
            room,
            cursor: None,
            is_done: false,
        }
    }
}

/// Refuses what makes no sense.
fn check(query: &Query) -> Result<(), QueryError> {
    let is_closest = matches!(query.order, Order::Closest(_));
    if is_closest && query.target.one_key().is_none() {
        return Err(QueryError::ClosestOfMany);
    }
    let keeps_last = query.collapse.iter().any(|c| c.keep == Keep::Last);
    if keeps_last && (is_closest || query.collapse.len() > 1) {
        return Err(QueryError::KeepLast);
    }
    let Some(cursor) = &query.after else {
        return Ok(());
    };
    if matches!(query.limit, Some(Limit::Last(_))) {
        return Err(QueryError::LastAfterCursor);
    }
    let values = if keeps_last { 0 } else { query.collapse.len() };
    if cursor.values.len() == values {
        Ok(())
    } else {
        Err(QueryError::ForeignCursor)
    }
}

impl Matches<'_> {
    /// The place behind the last capture that was given; none before the first one.
    pub const fn cursor(&self) -> Option<&Cursor> {
        self.cursor.as_ref()
    }

    /// The place to go on from, if the limit was reached and there is at least one capture behind it. Nothing more is
    /// given afterwards.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the database fails.
    pub fn resume(&mut self) -> Result<Option<Cursor>, DbError> {
        let cursor = self.cursor.clone();
        self.room = None;
        let further = self.next().transpose()?;
        self.is_done = true;
        Ok(cursor.filter(|_| further.is_some()))
    }

    fn find(&mut self) -> Result<Option<Match>, DbError> {
        while let Some(found) = self.reading.next()? {
            if let Some(found) = through(&mut self.steps, found) {
                return Ok(Some(found));
            }
        }
        for at in 0..self.steps.len() {
            let held = self.steps.get_mut(at).and_then(Step::finish);
            let later = self.steps.get_mut(at + 1..).unwrap_or_default();
            if let Some(found) = held.and_then(|held| through(later, held)) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// Takes a capture through steps of collapsing.
fn through(steps: &mut [Step], found: Match) -> Option<Match> {
    steps
        .iter_mut()
        .try_fold(found, |found, step| step.push(found))
}

impl Iterator for Matches<'_> {
    type Item = Result<Match, DbError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done || self.room == Some(0) {
            return None;
        }
        match self.find() {
            Ok(Some(found)) => {
                self.room = self.room.map(|room| room.saturating_sub(1));
                let values = self.steps.iter().filter_map(Step::first_value);
                self.cursor = Some(Cursor {
                    places: self.reading.walk.places_after(&found.place),
                    values: values.map(str::to_owned).collect(),
                });
                Some(Ok(found))
            }
            Ok(None) => {
                self.is_done = true;
                None
            }
            Err(error) => {
                self.is_done = true;
                Some(Err(error))
            }
        }
    }
}

impl FusedIterator for Matches<'_> {}

impl Reading<'_> {
    /// The next row that all conditions hold for.
    fn next(&mut self) -> Result<Option<Match>, DbError> {
        while let Some((place, packed)) = self.walk.next().transpose()? {
            if place.time < self.from || place.time > self.to {
                self.misses += 1;
                if self.misses > PATIENCE {
                    self.misses = 0;
                    self.walk.skip_times(&place, self.from, self.to);
                }
                continue;
            }
            self.misses = 0;
            if self.view.shown.has(place.file)
                && self.is_wanted(place.file)?
                && let Some(found) = self.read(place, &packed)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn read(&self, place: Place, packed: &PackedCapture) -> Result<Option<Match>, DbError> {
        let (mut capture, source) = self.shared.unpack(&place, packed)?;
        let is_told_of = source.set.is_none() && show_original(&mut capture);
        if is_told_of && !self.shared.has_file(capture.file.as_deref())? {
            return Ok(None);
        }
        let holds = self.filters.iter().all(|filter| filter.holds(&capture));
        Ok(holds.then_some(Match {
            capture,
            source,
            place,
        }))
    }

    /// Whether captures of a file are asked for.
    fn is_wanted(&mut self, file: u32) -> Result<bool, DbError> {
        let Some(test) = &self.sources else {
            return Ok(true);
        };
        if let Some(is_wanted) = self.tested.get(&file) {
            return Ok(*is_wanted);
        }
        let is_wanted = test(&*self.shared.source(file)?);
        if self.tested.len() >= TESTED {
            self.tested.clear();
        }
        self.tested.insert(file, is_wanted);
        Ok(is_wanted)
    }
}

/// A capture that a file only tells of has no record of its own: it is shown where the record lies that has its content.
/// Says whether it is such a capture.
fn show_original(capture: &mut Capture) -> bool {
    if capture.offset.is_some() {
        return false;
    }
    let original = capture
        .original_record
        .take_if(|original| original.file.is_some());
    let Some(original) = original else {
        return false;
    };
    capture.length = original.length;
    capture.offset = original.offset;
    capture.file = original.file;
    true
}

impl std::fmt::Debug for Reading<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reading")
            .field("walk", &self.walk)
            .field("filters", &self.filters)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Whether a file is in the archive, and not withdrawn: a record in it can be shown.
    fn has_file(&self, file: Option<&str>) -> Result<bool, DbError> {
        let Some(file) = file else {
            return Ok(false);
        };
        let row = self.tables.files.get(&file.to_owned())?;
        Ok(row.is_some_and(|row| !row.is_withdrawn))
    }

    /// The capture of a row, and its source.
    pub(crate) fn unpack(
        &self,
        place: &Place,
        packed: &PackedCapture,
    ) -> Result<(Capture, Arc<Source>), DbError> {
        let source = self.source(place.file)?;
        let capture = unpack(place, packed, source.file.as_deref());
        let capture = capture.map_err(|why| {
            let key = place.to_bytes().escape_ascii().to_string();
            self.unreadable(self.tables.captures.name(), key, why)
        })?;
        Ok((capture, source))
    }
}
