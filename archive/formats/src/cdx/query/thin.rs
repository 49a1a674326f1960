//! Thins out captures: neighbours that are alike become one, and a limit ends the answer.
//!
//! [`Thinner`] takes captures one by one, for those who receive them in batches; [`ThinnedCaptures`] does the same over
//! an iterator. Memory is constant except for [`Limit::Last`], which holds as many as it asks for. An error of the
//! iterator comes through and ends it, so that it is never taken for the end of the captures.

use std::borrow::Cow;
use std::collections::{VecDeque, vec_deque};

use super::{CaptureField, Cursor, Filter, Limit};
use crate::cdx::Capture;
use crate::date::Stamp;

/// A field, or the beginning of one, in which neighbours have to agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collapse {
    /// The field that is compared. A capture that lacks it has the value `-`.
    pub field: CaptureField,
    /// The number of characters of the value that are compared; `None`: all.
    pub characters: Option<usize>,
}

/// The choice of the capture that stands for a run of neighbours that are alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Keep {
    /// The first capture of the run.
    #[default]
    First,
    /// The last capture of the run.
    Last,
}

/// A capture, and the number of others that it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollapsedRun {
    /// The capture that stands for the run.
    pub capture: Capture,
    /// The number of captures of the run that were left out. Counted only by [`Thinner::whole_runs`].
    pub skipped: u64,
    /// The time of the last capture of the run that was left out.
    pub last_skipped: Option<Stamp>,
}

/// Collapses and limits captures that come in the order of the answer.
#[derive(Debug)]
pub struct Thinner {
    filters: Vec<Filter>,
    collapse: Vec<Collapse>,
    keep: Keep,
    limit: Option<Limit>,
    whole_runs: bool,
    /// The run that continues, where its capture is returned at its end.
    open: Option<OpenRun>,
    /// The values of the run that continues, where its capture was returned at its beginning.
    values: Option<Vec<String>>,
    /// The last runs, for [`Limit::Last`].
    last: VecDeque<CollapsedRun>,
    count: u64,
    resume: Option<Cursor>,
}

/// A run of which the end is not known yet.
#[derive(Debug)]
struct OpenRun {
    values: Vec<String>,
    first: Capture,
    last: Option<Capture>,
    skipped: u64,
    last_skipped: Option<Stamp>,
    /// The place of the last capture behind the run that a filter left out.
    behind: Option<Cursor>,
}

impl Collapse {
    /// Returns the part of a capture in which neighbours have to agree.
    pub fn value<'a>(&self, capture: &'a Capture) -> Cow<'a, str> {
        let value = self.field.value(capture).unwrap_or(Cow::Borrowed("-"));
        let value = match (&self.field, value) {
            (CaptureField::Digest, Cow::Borrowed(digest)) => {
                Cow::Borrowed(digest.strip_prefix("sha1:").unwrap_or(digest))
            }
            (_, value) => value,
        };
        let end = self
            .characters
            .and_then(|count| value.char_indices().nth(count))
            .map_or(value.len(), |(at, _)| at);
        match value {
            Cow::Borrowed(text) => Cow::Borrowed(text.get(..end).unwrap_or(text)),
            Cow::Owned(mut text) => {
                text.truncate(end);
                Cow::Owned(text)
            }
        }
    }
}

impl Thinner {
    /// Makes a thinner for one answer.
    pub fn new(collapse: Vec<Collapse>, keep: Keep, limit: Option<Limit>) -> Self {
        Self {
            filters: Vec::new(),
            whole_runs: keep == Keep::Last && !collapse.is_empty(),
            collapse,
            keep,
            limit,
            open: None,
            values: None,
            last: VecDeque::new(),
            count: 0,
            resume: None,
        }
    }

    /// Reads each run to its end before its capture is returned: counts the captures that it stands for, and knows
    /// where to resume.
    #[must_use]
    pub fn whole_runs(mut self) -> Self {
        self.whole_runs = true;
        self
    }

    /// Leaves out captures that do not pass these filters. With [`Thinner::whole_runs`] each counts as skipped in the
    /// run that it comes in.
    #[must_use]
    pub fn with_filters(mut self, filters: Vec<Filter>) -> Self {
        self.filters = filters;
        self
    }

    /// Returns whether the limit is reached: further captures change nothing.
    pub fn is_complete(&self) -> bool {
        matches!(self.limit, Some(Limit::First(limit)) if self.count >= limit)
    }

    /// Returns the place at which a further answer begins, once [`Limit::First`] has ended this one though more
    /// captures follow. Known only with [`Thinner::whole_runs`].
    pub fn resume_cursor(&self) -> Option<&Cursor> {
        self.resume.as_ref()
    }

    /// Takes the next capture; returns a run whose capture is known now.
    pub fn push(&mut self, capture: Capture) -> Option<CollapsedRun> {
        if self.is_complete() {
            return None;
        }
        if !self.filters.iter().all(|filter| filter.accepts(&capture)) {
            if let Some(open) = &mut self.open {
                open.skipped += 1;
                open.last_skipped = Some(capture.timestamp);
                open.behind = Some(Cursor::from_capture(&capture));
            }
            return None;
        }
        let run = if self.whole_runs {
            self.extend_or_close(capture)
        } else {
            self.begin_or_skip(capture)
        }?;
        self.give_out(run)
    }

    /// Ends the answer, and returns the runs that were held back.
    pub fn finish(&mut self) -> vec_deque::IntoIter<CollapsedRun> {
        if let Some(open) = self.open.take()
            && !self.is_complete()
        {
            let (run, _) = open.close(self.keep, false);
            if let Some(run) = self.give_out(run) {
                self.last.push_back(run);
            }
        }
        std::mem::take(&mut self.last).into_iter()
    }

    fn give_out(&mut self, run: CollapsedRun) -> Option<CollapsedRun> {
        let Some(Limit::Last(limit)) = self.limit else {
            self.count += 1;
            return Some(run);
        };
        self.last.push_back(run);
        if self.last.len() as u64 > limit {
            self.last.pop_front();
        }
        None
    }

    /// Takes a capture that begins a run, which is returned at once, or belongs to the run before.
    fn begin_or_skip(&mut self, capture: Capture) -> Option<CollapsedRun> {
        if let Some(values) = &self.values
            && self.is_alike(values, &capture)
        {
            return None;
        }
        if !self.collapse.is_empty() {
            self.values = Some(self.values_of(&capture));
        }
        Some(CollapsedRun {
            capture,
            skipped: 0,
            last_skipped: None,
        })
    }

    /// Takes a capture that belongs to the run that continues, or ends it and begins the next.
    fn extend_or_close(&mut self, capture: Capture) -> Option<CollapsedRun> {
        let Some(mut open) = self.open.take() else {
            self.open = Some(OpenRun::new(self.values_of(&capture), capture));
            return None;
        };
        if self.is_alike(&open.values, &capture) {
            open.add(capture, self.keep);
            self.open = Some(open);
            return None;
        }
        let is_last = matches!(self.limit, Some(Limit::First(limit)) if self.count + 1 >= limit);
        let (run, place) = open.close(self.keep, is_last);
        self.resume = place;
        self.open = Some(OpenRun::new(self.values_of(&capture), capture));
        Some(run)
    }

    fn is_alike(&self, values: &[String], capture: &Capture) -> bool {
        let mut pairs = self.collapse.iter().zip(values);
        !self.collapse.is_empty()
            && pairs.all(|(collapse, value)| collapse.value(capture) == value.as_str())
    }

    fn values_of(&self, capture: &Capture) -> Vec<String> {
        let values = self.collapse.iter();
        values.map(|c| c.value(capture).into_owned()).collect()
    }
}

impl OpenRun {
    fn new(values: Vec<String>, first: Capture) -> Self {
        Self {
            values,
            first,
            last: None,
            skipped: 0,
            last_skipped: None,
            behind: None,
        }
    }

    fn add(&mut self, capture: Capture, keep: Keep) {
        self.skipped += 1;
        self.behind = None;
        self.last_skipped = Some(match keep {
            Keep::First => capture.timestamp,
            Keep::Last => self.last.as_ref().unwrap_or(&self.first).timestamp,
        });
        self.last = Some(capture);
    }

    /// Ends the run, and returns the place of its last capture if it is asked for.
    fn close(self, keep: Keep, with_place: bool) -> (CollapsedRun, Option<Cursor>) {
        let place = with_place.then(|| match self.behind {
            Some(place) => place,
            None => Cursor::from_capture(self.last.as_ref().unwrap_or(&self.first)),
        });
        let capture = match (keep, self.last) {
            (Keep::Last, Some(last)) => last,
            (Keep::First, _) | (Keep::Last, None) => self.first,
        };
        let run = CollapsedRun {
            capture,
            skipped: self.skipped,
            last_skipped: self.last_skipped,
        };
        (run, place)
    }
}

/// Collapsed and limited captures of an iterator.
#[derive(Debug)]
pub struct ThinnedCaptures<I> {
    captures: I,
    thinner: Thinner,
    rest: Option<vec_deque::IntoIter<CollapsedRun>>,
}

impl<I> ThinnedCaptures<I> {
    /// Thins out captures that are in the order of the answer.
    pub fn new(captures: I, thinner: Thinner) -> Self {
        Self {
            captures,
            thinner,
            rest: None,
        }
    }

    /// Returns what [`Thinner::resume_cursor`] returns.
    pub fn resume_cursor(&self) -> Option<&Cursor> {
        self.thinner.resume_cursor()
    }
}

impl<I, E> Iterator for ThinnedCaptures<I>
where
    I: Iterator<Item = Result<Capture, E>>,
{
    type Item = Result<CollapsedRun, E>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.rest.is_none() && !self.thinner.is_complete() {
            match self.captures.next() {
                Some(Ok(capture)) => {
                    if let Some(run) = self.thinner.push(capture) {
                        return Some(Ok(run));
                    }
                }
                Some(Err(error)) => {
                    self.rest = Some(VecDeque::new().into_iter());
                    return Some(Err(error));
                }
                None => self.rest = Some(self.thinner.finish()),
            }
        }
        self.rest.as_mut().and_then(Iterator::next).map(Ok)
    }
}
