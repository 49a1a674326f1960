//! Thins out captures: neighbours that are alike become one, and a limit ends the answer.
//!
//! A pure adapter over any sequence of captures, in constant memory except for [`Limit::Last`], which holds as many as it
//! asks for. An error of the sequence comes through and ends it: what follows an error is never taken for an end.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::{CaptureField, Cursor, Filter, Limit};
use crate::cdx::Capture;
use crate::date::Stamp;

/// A field, or the beginning of one, in which neighbours have to agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collapse {
    /// The field. A capture that lacks it has the value `-`.
    pub field: CaptureField,
    /// How many characters of its value count; `None` for all.
    pub characters: Option<usize>,
}

/// Which capture stands for a run of neighbours that are alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Keep {
    /// The first one.
    #[default]
    First,
    /// The last one.
    Last,
}

/// A capture, and how many others it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollapsedRun {
    /// The capture that stands for the run.
    pub capture: Capture,
    /// How many captures were left out for it. Counted only by [`Thinned::whole_runs`].
    pub skipped: u64,
    /// The time of the last capture that was left out for it.
    pub last_skipped: Option<Stamp>,
}

/// Collapsed and limited captures.
#[derive(Debug)]
pub struct Thinned<I> {
    captures: I,
    filters: Vec<Filter>,
    collapse: Vec<Collapse>,
    keep: Keep,
    limit: Option<Limit>,
    whole_runs: bool,
    /// The run that goes on; in the mode that gives out a run at its beginning, only its values.
    open: Option<OpenRun>,
    /// Values of the run that goes on, where its capture was given out already.
    values: Option<Vec<String>>,
    /// The last ones, where these are asked for.
    last: Option<VecDeque<CollapsedRun>>,
    count: u64,
    resume: Option<Cursor>,
    ended: bool,
}

/// A run of which the end is not known yet.
#[derive(Debug)]
struct OpenRun {
    values: Vec<String>,
    first: Capture,
    last: Option<Capture>,
    skipped: u64,
    last_skipped: Option<Stamp>,
    /// The place of the last capture that a filter left out behind it.
    behind: Option<Cursor>,
}

impl Collapse {
    /// The part of a capture in which neighbours have to agree.
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

impl<I> Thinned<I> {
    /// Thins out captures that are in the order of the answer.
    pub fn new(captures: I, collapse: Vec<Collapse>, keep: Keep, limit: Option<Limit>) -> Self {
        Self {
            captures,
            filters: Vec::new(),
            whole_runs: keep == Keep::Last && !collapse.is_empty(),
            collapse,
            keep,
            limit,
            open: None,
            values: None,
            last: None,
            count: 0,
            resume: None,
            ended: false,
        }
    }

    /// Reads each run to its end before it gives out its capture: counts what it stands for, and knows where to resume.
    #[must_use]
    pub fn whole_runs(mut self) -> Self {
        self.whole_runs = true;
        self
    }

    /// Leaves out what does not pass these, and counts it as skipped behind the capture before it.
    #[must_use]
    pub fn filtering(mut self, filters: Vec<Filter>) -> Self {
        self.filters = filters;
        self
    }

    /// The place at which a further answer begins, once [`Limit::First`] has ended this one though more captures follow. Known
    /// only with [`Thinned::whole_runs`].
    pub fn resume(&self) -> Option<&Cursor> {
        self.resume.as_ref()
    }

    fn is_alike(&self, values: &[String], capture: &Capture) -> bool {
        !self.collapse.is_empty()
            && self
                .collapse
                .iter()
                .zip(values)
                .all(|(collapse, value)| collapse.value(capture) == value.as_str())
    }

    fn values(&self, capture: &Capture) -> Vec<String> {
        let values = self.collapse.iter();
        values.map(|c| c.value(capture).into_owned()).collect()
    }
}

impl<I, E> Thinned<I>
where
    I: Iterator<Item = Result<Capture, E>>,
{
    /// The next run of the sequence, without regard to the limit.
    fn next_run(&mut self) -> Option<Result<CollapsedRun, E>> {
        loop {
            let capture = match self.captures.next() {
                Some(Ok(capture)) => capture,
                Some(Err(error)) => {
                    self.ended = true;
                    self.open = None;
                    return Some(Err(error));
                }
                None => {
                    let (run, place) = self.open.take()?.close(self.keep, false);
                    debug_assert!(place.is_none(), "nothing follows the last run");
                    return Some(Ok(run));
                }
            };
            if !self.filters.iter().all(|filter| filter.accepts(&capture)) {
                if let Some(open) = &mut self.open {
                    open.skipped += 1;
                    open.last_skipped = Some(capture.timestamp);
                    open.behind = Some(Cursor::of(&capture));
                }
                continue;
            }
            if let Some(run) = self.take(capture) {
                return Some(Ok(run));
            }
        }
    }

    /// Takes a capture: it belongs to the run that goes on, or begins one.
    fn take(&mut self, capture: Capture) -> Option<CollapsedRun> {
        if !self.whole_runs {
            if let Some(values) = &self.values
                && self.is_alike(values, &capture)
            {
                return None;
            }
            self.values = Some(self.values(&capture));
            return Some(CollapsedRun {
                capture,
                skipped: 0,
                last_skipped: None,
            });
        }
        if let Some(mut open) = self.open.take() {
            if self.is_alike(&open.values, &capture) {
                open.add(capture, self.keep);
                self.open = Some(open);
                return None;
            }
            let ends_here =
                matches!(self.limit, Some(Limit::First(limit)) if self.count + 1 >= limit);
            let (run, place) = open.close(self.keep, ends_here);
            self.resume = place;
            self.open = Some(OpenRun::new(self.values(&capture), capture));
            return Some(run);
        }
        self.open = Some(OpenRun::new(self.values(&capture), capture));
        None
    }

    /// Reads all, and holds the last ones.
    fn read_last(&mut self, limit: u64) -> Result<VecDeque<CollapsedRun>, E> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut last = VecDeque::new();
        while let Some(run) = self.next_run() {
            let run = run?;
            if limit == 0 {
                continue;
            }
            if last.len() >= limit {
                last.pop_front();
            }
            last.push_back(run);
        }
        Ok(last)
    }
}

impl<I, E> Iterator for Thinned<I>
where
    I: Iterator<Item = Result<Capture, E>>,
{
    type Item = Result<CollapsedRun, E>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = match self.limit {
            Some(Limit::First(limit)) if self.count >= limit => None,
            Some(Limit::First(_)) | None => self.next_run(),
            Some(Limit::Last(limit)) => {
                if self.last.is_none() {
                    match self.read_last(limit) {
                        Ok(last) => self.last = Some(last),
                        Err(error) => return Some(Err(error)),
                    }
                }
                self.last.as_mut().and_then(VecDeque::pop_front).map(Ok)
            }
        };
        match &next {
            Some(Ok(_)) => self.count += 1,
            Some(Err(_)) | None => self.ended = true,
        }
        next
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

    /// The run, and the place of its last capture if it is asked for.
    fn close(self, keep: Keep, with_place: bool) -> (CollapsedRun, Option<Cursor>) {
        let place = with_place.then(|| {
            let last = self.last.as_ref().unwrap_or(&self.first);
            self.behind.unwrap_or_else(|| Cursor::of(last))
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
