//! The captures that answer a query, one after the other.

use std::collections::HashMap;
use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;
use std::vec;

use archive_db::DbError;
use archive_formats::cdx::Capture;
use archive_formats::cdx::query::{
    CaptureQuery, Cursor, Filter, LINE_FIELD, Limit, Order, SET_FIELD, ThinnedCaptures,
};

use super::QueryError;
use super::walk::{CaptureWalk, second_of};
use crate::CaptureIndex;
use crate::moment::Moment;
use crate::names::CaptureSource;
use crate::packed::unpack_capture;
use crate::place::{Place, Position};
use crate::rows::PackedCapture;
use crate::shared::{SharedState, View};

/// After this many rows of one key at times that are not asked for, the rest of them is skipped.
const PATIENCE: u32 = 16;

/// The most files of which it is remembered whether their captures are asked for.
const TESTED: usize = 1 << 14;

/// Decides whether the captures of a source are given; called once for each file that is met.
pub(crate) type SourceTest = Box<dyn Fn(&CaptureSource) -> bool + Send + Sync>;

/// The captures that answer a query, as they were when it was asked.
///
/// The answer is complete only if no item was an error: a caller must not skip errors (`flatten`, `filter_map`). Damage
/// is the last item. Memory does not grow with the number of captures.
#[must_use = "captures are read as they are asked for"]
#[derive(Debug)]
pub struct Matches<'a>(Answer<'a>);

#[derive(Debug)]
enum Answer<'a> {
    /// The captures, which are read as they are asked for.
    Read(Box<ThinnedCaptures<MatchingRows<'a>>>),
    /// The last captures, which were read from the end.
    Last(vec::IntoIter<Capture>),
}

/// The rows that the conditions of a query hold for.
pub(crate) struct MatchingRows<'a> {
    shared: &'a SharedState,
    view: Arc<View>,
    walk: CaptureWalk<'a>,
    from: Moment,
    to: Moment,
    filters: Vec<Filter>,
    sources: Option<SourceTest>,
    names_sources: bool,
    tested: HashMap<u32, bool>,
    misses: u32,
    is_done: bool,
}

impl CaptureIndex {
    /// Answers a query. Each capture names the set that it was imported with, in the field [`SET_FIELD`], and the line
    /// that names it, in the field [`LINE_FIELD`], if that line does not say where a record of its own is; else it is
    /// as it was given to the index. Filters may ask for these fields, and they distinguish the cursors of captures
    /// that are alike.
    ///
    /// # Errors
    ///
    /// [`QueryError`] if the query breaks a rule, or the database fails.
    pub fn query_captures(&self, query: &CaptureQuery) -> Result<Matches<'_>, QueryError> {
        query.validate_query()?;
        let Some(opposite) = from_the_end(query) else {
            let thinned = query.thin_captures(self.read_query(query, None)?.naming_sources());
            return Ok(Matches(Answer::Read(Box::new(thinned))));
        };
        let last = opposite.thin_captures(self.read_query(&opposite, None)?.naming_sources());
        let last: Result<Vec<Capture>, DbError> =
            last.map(|run| run.map(|run| run.capture)).collect();
        let mut last = last?;
        last.reverse();
        Ok(Matches(Answer::Last(last.into_iter())))
    }

    /// Returns the captures of a query before they are thinned out, as they were given to the index; of some sources
    /// only, if there is a test.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the database fails.
    pub(crate) fn read_query(
        &self,
        query: &CaptureQuery,
        sources: Option<SourceTest>,
    ) -> Result<MatchingRows<'_>, DbError> {
        let shared = &*self.shared;
        shared.with_view(|view| {
            let after = match &query.cursor {
                Some(cursor) => Some(shared.place_behind(view, cursor, query.order)?),
                None => None,
            };
            Ok(MatchingRows {
                shared,
                view: Arc::clone(view),
                walk: CaptureWalk::new(&shared.tables.captures, query, after)?,
                from: query.span.from.map_or(Moment::FIRST, Moment::start_of),
                to: query.span.to.map_or(Moment::LAST, Moment::end_of),
                filters: query.filters.clone(),
                sources,
                names_sources: false,
                tested: HashMap::new(),
                misses: 0,
                is_done: false,
            })
        })
    }
}

/// Returns the query for the last captures in the opposite order, where these are the first ones of that.
fn from_the_end(query: &CaptureQuery) -> Option<CaptureQuery> {
    let Some(Limit::Last(count)) = query.limit else {
        return None;
    };
    let order = match query.order {
        Order::Ascending => Order::Descending,
        Order::Descending => Order::Ascending,
        Order::Closest(_) => return None,
    };
    let is_plain = query.collapse.is_empty() && query.cursor.is_none();
    is_plain.then(|| CaptureQuery {
        order,
        limit: Some(Limit::First(count)),
        ..query.clone()
    })
}

impl Iterator for Matches<'_> {
    type Item = Result<Capture, DbError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Answer::Read(thinned) => Some(thinned.next()?.map(|run| run.capture)),
            Answer::Last(captures) => captures.next().map(Ok),
        }
    }
}

impl FusedIterator for Matches<'_> {}

impl Iterator for MatchingRows<'_> {
    type Item = Result<Capture, DbError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let found = self.find().transpose();
        self.is_done = !matches!(found, Some(Ok(_)));
        found
    }
}

impl MatchingRows<'_> {
    /// Makes each capture name its source.
    fn naming_sources(mut self) -> Self {
        self.names_sources = true;
        self
    }

    /// Returns the next row that all conditions hold for.
    fn find(&mut self) -> Result<Option<Capture>, DbError> {
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
            if !self.view.shown.has_number(place.file) || !self.is_wanted(place.file)? {
                continue;
            }
            let Some((mut capture, source)) = self.shared.shown_capture(&place, &packed)? else {
                continue;
            };
            if self.names_sources {
                name_source(&mut capture, place.position, &source);
            }
            if self.filters.iter().all(|filter| filter.accepts(&capture)) {
                return Ok(Some(capture));
            }
        }
        Ok(None)
    }

    /// Returns whether captures of a file are asked for, and may be shown.
    fn is_wanted(&mut self, file: u32) -> Result<bool, DbError> {
        if let Some(is_wanted) = self.tested.get(&file) {
            return Ok(*is_wanted);
        }
        let source = self.shared.capture_source(file)?;
        let is_asked_for = self.sources.as_ref().is_none_or(|test| test(&source));
        let is_wanted = is_asked_for && !self.shared.is_withdrawn_import(&source)?;
        if self.tested.len() >= TESTED {
            self.tested.clear();
        }
        self.tested.insert(file, is_wanted);
        Ok(is_wanted)
    }
}

impl fmt::Debug for MatchingRows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading")
            .field("walk", &self.walk)
            .field("filters", &self.filters)
            .finish_non_exhaustive()
    }
}

/// Writes into a capture its set, if it was imported, and its line, if that says no place. Two captures of one key and
/// time are then never alike: neither in these fields nor in file and offset.
fn name_source(capture: &mut Capture, position: Position, source: &CaptureSource) {
    let is_free = |name: &str| name != SET_FIELD && name != LINE_FIELD;
    capture.extra.retain(|(name, _)| is_free(name));
    if let Some(set) = source.set.as_deref() {
        capture.extra.push((SET_FIELD.to_owned(), set.to_owned()));
    }
    if let Position::Line(line) = position {
        let line = match source.file.as_deref().filter(|_| source.set.is_none()) {
            Some(file) => format!("{file}:{line}"),
            None => line.to_string(),
        };
        capture.extra.push((LINE_FIELD.to_owned(), line));
    }
}

/// Shows a capture that is only named in a log, and has no record of its own, where the record lies that has its
/// content. Returns whether it is such a capture.
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

impl SharedState {
    /// Returns whether a file is in the archive, and not withdrawn: a record in it can be shown.
    fn has_file(&self, file: Option<&str>) -> Result<bool, DbError> {
        let Some(file) = file else {
            return Ok(false);
        };
        let row = self.tables.files.get(&file.to_owned())?;
        Ok(row.is_some_and(|row| !row.is_withdrawn))
    }

    /// Returns whether a source is a set, and the archive has withdrawn the file that the set names. A file that the
    /// archive never had is not withdrawn.
    fn is_withdrawn_import(&self, source: &CaptureSource) -> Result<bool, DbError> {
        let file = source.file.as_deref().filter(|_| source.set.is_some());
        let Some(file) = file else {
            return Ok(false);
        };
        let row = self.tables.files.get(&file.to_owned())?;
        Ok(row.is_some_and(|row| row.is_withdrawn))
    }

    /// Returns the capture of a row, and its source.
    pub(crate) fn unpack_row(
        &self,
        place: &Place,
        packed: &PackedCapture,
    ) -> Result<(Capture, Arc<CaptureSource>), DbError> {
        let source = self.capture_source(place.file)?;
        let capture = unpack_capture(place, packed, source.file.as_deref());
        let capture = capture.map_err(|why| {
            let key = place.to_bytes().escape_ascii().to_string();
            self.unreadable_row(self.tables.captures.name(), key, why)
        })?;
        Ok((capture, source))
    }

    /// Returns the capture of a row as answers show it, and its source. A capture that a file only names is shown if
    /// the file with its record is.
    fn shown_capture(
        &self,
        place: &Place,
        packed: &PackedCapture,
    ) -> Result<Option<(Capture, Arc<CaptureSource>)>, DbError> {
        let (mut capture, source) = self.unpack_row(place, packed)?;
        let is_told_of = source.set.is_none() && show_original(&mut capture);
        if is_told_of && !self.has_file(capture.file.as_deref())? {
            return Ok(None);
        }
        Ok(Some((capture, source)))
    }

    /// Returns the place behind which an answer continues: that of the row which is shown as the capture of a cursor,
    /// or, if there is no such row any more, the one before the second of the cursor, so that no capture is left out.
    fn place_behind(&self, view: &View, cursor: &Cursor, order: Order) -> Result<Place, DbError> {
        let second = second_of(cursor);
        for row in self.tables.captures.range(second.clone())? {
            let (place, packed) = row?;
            if !view.shown.has_number(place.file) {
                continue;
            }
            let Some((mut capture, source)) = self.shown_capture(&place, &packed)? else {
                continue;
            };
            name_source(&mut capture, place.position, &source);
            if Cursor::from_capture(&capture) == *cursor {
                return Ok(place);
            }
        }
        Ok(match order {
            Order::Descending => second.end,
            Order::Ascending | Order::Closest(_) => second.start,
        })
    }
}
