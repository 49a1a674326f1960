//! An answer, written while its captures come in.

use std::io::{self, Write};

use archive_formats::cdx::Capture;
use archive_formats::cdx::query::{CollapsedRun, Cursor, Limit, Order, Thinner};
use thiserror::Error;

use super::duplicates::{Duplicates, MAX_DIGESTS};
use super::redirects::is_self_redirect;
use super::rows::{AnswerContext, RowWriter};
use super::{CdxRequest, Extra, PagePlace};

/// The reason why an answer cannot be finished.
#[derive(Debug, Error)]
pub enum AnswerError {
    /// The output failed.
    #[error("cannot write the answer: {0}")]
    Output(#[from] io::Error),
    /// Duplicates of more digests were asked for than are remembered.
    #[error(
        "the answer has more than {MAX_DIGESTS} digests, too many for `showDupeCount` or `resolveRevisits`; narrow it down, or set a limit and resume"
    )]
    TooManyDigests,
}

/// The reason why an answer that is made of an iterator broke off.
#[derive(Debug, Error)]
pub enum BrokenAnswer<E> {
    /// The captures ended with an error.
    #[error("the captures of the answer broke off: {0}")]
    Captures(E),
    /// The answer could not be written.
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

/// An answer that was finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerSummary {
    /// The number of rows of the answer.
    pub rows: u64,
    /// The number of captures that were taken for the answer.
    pub captures: u64,
}

/// A writer of answers. Dropped before [`AnswerWriter::finish_answer`], it leaves an answer that is not whole.
#[derive(Debug)]
pub struct AnswerWriter<W> {
    output: W,
    rows: RowWriter,
    thinner: Thinner,
    duplicates: Duplicates,
    omits_self_redirects: bool,
    shows_resume_key: bool,
    skip: u64,
    captures: u64,
    /// Rows that came from the end.
    reversed: Option<Vec<CollapsedRun>>,
    page: PageEnd,
    is_page_over: bool,
}

/// The end of the page that is written.
#[derive(Debug, Default)]
struct PageEnd {
    order: Order,
    until: Option<Cursor>,
    captures: Option<u64>,
}

impl<W: Write> AnswerWriter<W> {
    /// Begins an answer to a request for all captures.
    pub fn new(request: &CdxRequest, context: &AnswerContext, output: W) -> Self {
        let has = |extra| request.extras.contains(extra);
        let backwards = request.reads_backwards();
        let limit = match request.query.limit {
            Some(Limit::Last(rows)) if backwards => Some(Limit::First(rows)),
            Some(Limit::First(rows)) => Some(Limit::First(rows.saturating_add(request.skip))),
            other => other,
        };
        let mut thinner = Thinner::new(request.query.collapse.clone(), request.query.keep, limit);
        if has(Extra::ResumeKey) {
            thinner = thinner.whole_runs();
        }
        if request.counts_skipped() {
            thinner = thinner
                .whole_runs()
                .with_filters(request.query.filters.clone());
        }
        Self {
            output,
            rows: RowWriter::new(request, context),
            thinner,
            duplicates: Duplicates::new(has(Extra::DupeCount), has(Extra::ResolveRevisits)),
            omits_self_redirects: has(Extra::OmitSelfRedirects),
            shows_resume_key: has(Extra::ResumeKey),
            skip: request.skip,
            captures: 0,
            reversed: backwards.then(Vec::new),
            page: PageEnd::default(),
            is_page_over: false,
        }
    }

    /// Ends the answer with the page that lies there. Without effect where the page ends with the answer.
    #[must_use]
    pub fn within_page(mut self, request: &CdxRequest, place: &PagePlace) -> Self {
        if let PagePlace::Known {
            until, captures, ..
        } = place
        {
            self.page = PageEnd {
                order: request.query.order,
                until: until.clone(),
                captures: *captures,
            };
        }
        self
    }

    /// Adds the next capture that the client may see, in the order of [`CdxRequest::index_query`].
    ///
    /// # Errors
    ///
    /// When the output fails, or duplicates of too many digests were asked for. The answer is broken then.
    pub fn push_capture(&mut self, mut capture: Capture) -> Result<(), AnswerError> {
        if self.is_complete() || self.page_ends_before(&capture) {
            return Ok(());
        }
        self.captures += 1;
        self.page_ends_with(&capture);
        if self.omits_self_redirects && is_self_redirect(&capture) {
            return Ok(());
        }
        if !self.duplicates.note_capture(&mut capture) {
            return Err(AnswerError::TooManyDigests);
        }
        match self.thinner.push(capture) {
            Some(run) => self.row(run),
            None => Ok(()),
        }
    }

    /// Returns whether further captures change nothing.
    pub fn is_complete(&self) -> bool {
        self.is_page_over || self.thinner.is_complete() || self.rows.is_complete()
    }

    /// Returns the output, so that the caller can take from it what has been written.
    pub fn output_mut(&mut self) -> &mut W {
        &mut self.output
    }

    /// Returns the number of rows that were written so far.
    pub fn rows(&self) -> u64 {
        self.rows.count()
    }

    /// Ends the answer: all captures have come, or [`AnswerWriter::is_complete`] said that no more are needed.
    ///
    /// # Errors
    ///
    /// When the output fails.
    pub fn finish_answer(mut self) -> Result<(AnswerSummary, W), AnswerError> {
        for run in self.thinner.finish() {
            self.row(run)?;
        }
        for run in self.reversed.take().unwrap_or_default().into_iter().rev() {
            self.rows.write_run(&run, &mut self.output)?;
        }
        let resume = self
            .thinner
            .resume_cursor()
            .filter(|_| self.shows_resume_key);
        self.rows.end_rows(resume, &mut self.output)?;
        self.output.flush()?;
        let summary = AnswerSummary {
            rows: self.rows.count(),
            captures: self.captures,
        };
        Ok((summary, self.output))
    }

    fn row(&mut self, run: CollapsedRun) -> Result<(), AnswerError> {
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(());
        }
        match &mut self.reversed {
            Some(rows) => rows.push(run),
            None => self.rows.write_run(&run, &mut self.output)?,
        }
        Ok(())
    }

    /// Returns whether the page has ended before a capture: the one that it should end with is no longer in the index.
    fn page_ends_before(&mut self, capture: &Capture) -> bool {
        let Some(until) = &self.page.until else {
            return false;
        };
        let place = (capture.key.as_str(), capture.timestamp);
        let order = place.cmp(&(until.key.as_str(), until.timestamp));
        self.is_page_over = match self.page.order {
            Order::Ascending => order.is_gt(),
            Order::Descending => order.is_lt(),
            Order::Closest(_) => false,
        };
        self.is_page_over
    }

    fn page_ends_with(&mut self, capture: &Capture) {
        let is_last = self.page.captures.is_some_and(|n| self.captures >= n)
            || self.page.until.as_ref().is_some_and(|until| {
                capture.offset.unwrap_or_default() == until.offset
                    && capture.timestamp == until.timestamp
                    && *until == Cursor::from_capture(capture)
            });
        self.is_page_over |= is_last;
    }
}

/// Writes the answer to a request of which all captures are at hand.
///
/// # Errors
///
/// When the captures end with an error, or the output fails. The answer is broken then, and has no end.
pub fn write_answer<W: Write, E>(
    request: &CdxRequest,
    context: &AnswerContext,
    captures: impl IntoIterator<Item = Result<Capture, E>>,
    output: W,
) -> Result<(AnswerSummary, W), BrokenAnswer<E>> {
    let mut writer = AnswerWriter::new(request, context, output);
    let mut captures = captures.into_iter();
    while !writer.is_complete() {
        match captures.next() {
            Some(Ok(capture)) => writer.push_capture(capture)?,
            Some(Err(error)) => return Err(BrokenAnswer::Captures(error)),
            None => break,
        }
    }
    Ok(writer.finish_answer()?)
}
