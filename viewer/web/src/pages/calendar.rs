//! The captures of one URL: years, the months of one year, and the times of a day or month.
//!
//! Owns how much of that one page shows. All captures are counted, as they come; kept are the counts of days, and the
//! captures of one page of the list. Beyond a limit the page says where it stopped, and leads on from there.

mod days;
mod timeline;
mod view;

use archive_formats::cdx::Capture;
use archive_formats::cdx::query::{CaptureQuery, KeyMatch, TimeSpan};
use archive_formats::date::{Fill, Stamp};
use axum::body::Body;
use axum::http::{Response, StatusCode};
use jiff::civil::Date;
use viewer_replay::request::{ReplayTarget, RequestedSpan, TargetMatch};

use self::days::CaptureDays;
use self::view::{CalendarView, ListPage};
use super::problem::{PageProblem, nothing_visible};
use super::texts::stamp_date;
use super::{PageHost, PageVisit, page_answer};

/// The most captures that are counted for one page.
const MOST: u64 = 1_000_000;

/// The number of captures on one page of the list.
const LISTED: u64 = 200;

/// The captures of a URL, counted by days.
struct CaptureCounts {
    days: CaptureDays,
    first: Capture,
    last: Capture,
    /// The captures of the page of the list.
    listed: Vec<Capture>,
    /// The number of captures in the whole list.
    in_list: u64,
    /// The place where counting stopped before the end.
    stopped: Option<Stamp>,
}

/// The days that a page is about.
#[derive(Clone, Copy)]
struct CalendarScope {
    first: Date,
    last: Date,
    /// The time of the list; `None` if it is too much for a list.
    listed: Option<(Stamp, Stamp)>,
}

impl CalendarScope {
    fn new(span: &RequestedSpan) -> Self {
        let Some((first, last)) = span.bounds() else {
            return Self {
                first: Date::MIN,
                last: Date::MAX,
                listed: None,
            };
        };
        let from = stamp_date(first);
        let to = stamp_date(last);
        let is_month = (from.year(), from.month()) == (to.year(), to.month());
        Self {
            first: from,
            last: to,
            listed: is_month.then_some((first, last)),
        }
    }

    fn lists(&self, stamp: Stamp) -> bool {
        let span = |(from, to)| TimeSpan {
            from: Some(from),
            to: Some(to),
        };
        self.listed
            .is_some_and(|bounds| span(bounds).contains(stamp))
    }

    fn is_one_day(&self) -> bool {
        self.first == self.last
    }
}

impl PageHost {
    /// Returns the calendar of a URL.
    pub(super) async fn calendar_page(
        &self,
        visit: &PageVisit,
        span: &RequestedSpan,
        target: &ReplayTarget,
    ) -> Result<Response<Body>, PageProblem> {
        let from = match visit.parameters.get("from") {
            Some(digits) => Some(
                Stamp::from_query(digits, Fill::First)
                    .map_err(|_error| PageProblem::Time(digits.chars().take(40).collect()))?,
            ),
            None => None,
        };
        let page = match visit.parameters.get("page") {
            Some(number) => number
                .parse()
                .map_err(|_error| PageProblem::NoSuchListPage)?,
            None => 1,
        };
        let scope = CalendarScope::new(span);
        let counted = self.count(visit, target, from, &scope, page).await?;
        let pages = counted.in_list.div_ceil(LISTED).max(1);
        if page == 0 || page > pages {
            return Err(PageProblem::NoSuchListPage);
        }
        let view = CalendarView {
            visit,
            words: &visit.words,
            span,
            url: target.url(),
            from,
        };
        let address = view.view_address(span.digits());
        let address = if page > 1 {
            address.with_parameter("page", page.to_string())
        } else {
            address
        };
        let layout = self.layout(&visit.words, visit.chosen, &address);
        let page = ListPage {
            scope: &scope,
            number: page,
            pages,
        };
        let shown = view.render_page(layout, target, &counted, page);
        Ok(page_answer(StatusCode::OK, &visit.words, &shown))
    }

    async fn count(
        &self,
        visit: &PageVisit,
        target: &ReplayTarget,
        from: Option<Stamp>,
        scope: &CalendarScope,
        page: u64,
    ) -> Result<CaptureCounts, PageProblem> {
        let mut query = CaptureQuery::new(KeyMatch::Exact(target.key().clone()));
        query.span = TimeSpan { from, to: None };
        let mut captures = self.find_captures(visit, query).await?;
        let mut days = CaptureDays::default();
        let mut ends: Option<(Capture, Capture)> = None;
        let mut listed = Vec::new();
        let mut in_list = 0;
        let skipped = page.saturating_sub(1).saturating_mul(LISTED);
        let mut stopped = None;
        while let Some(capture) = captures.next().await? {
            if captures.walked > MOST {
                stopped = Some(capture.timestamp);
                break;
            }
            days.add_capture(capture.timestamp);
            if scope.lists(capture.timestamp) {
                if in_list >= skipped && in_list < skipped.saturating_add(LISTED) {
                    listed.push(capture.clone());
                }
                in_list += 1;
            }
            match &mut ends {
                Some((_, last)) => *last = capture,
                None => ends = Some((capture.clone(), capture)),
            }
        }
        let Some((first, last)) = ends else {
            if stopped.is_some() {
                return Err(PageProblem::TooMuch);
            }
            let name = visit.collection.name();
            let url = target.url();
            let has_blocked = captures.has_blocked;
            return Err(nothing_visible(has_blocked, name, url, TargetMatch::Exact));
        };
        Ok(CaptureCounts {
            days,
            first,
            last,
            listed,
            in_list,
            stopped,
        })
    }
}
