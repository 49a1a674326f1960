//! Look-ups for the pages: captures of a URL that a visitor may see, and those around one of them.
//!
//! Owns that every capture goes through the one access decision before a page learns of it.

use archive_formats::cdx::Capture;
use archive_formats::cdx::query::{CaptureQuery, KeyMatch, MAX_FILTERS, Order, TimeSpan};
use archive_formats::date::Stamp;
use archive_formats::surt::UrlKey;
use index_client::{CaptureStream, IndexCallError};
use viewer_replay::access::AccessVerdict;
use viewer_replay::request::ReplayTarget;
use viewer_replay::resolve::is_second_choice;

use super::{PageHost, PageVisit};

/// The most captures that are looked at to find one that is worth showing, as on the replay host.
const MOST_NEAR: u64 = 40;

/// The captures of a question that a visitor may see, as they come.
pub(super) struct VisibleCaptures<'a> {
    stream: CaptureStream,
    visit: &'a PageVisit,
    /// The number of captures that were read, those that the visitor may not see included.
    pub(super) walked: u64,
    /// Whether there was one that exists, and may not be shown.
    pub(super) has_blocked: bool,
}

impl VisibleCaptures<'_> {
    pub(super) async fn next(&mut self) -> Result<Option<Capture>, IndexCallError> {
        while let Some(capture) = self.stream.next().await? {
            self.walked += 1;
            match self.visit.decide(&capture).verdict {
                AccessVerdict::Allow => return Ok(Some(capture)),
                AccessVerdict::Block => self.has_blocked = true,
                AccessVerdict::Exclude => {}
            }
        }
        Ok(None)
    }
}

/// The times of the captures around one.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimesBeside {
    pub(super) previous: Option<Stamp>,
    pub(super) next: Option<Stamp>,
}

/// The capture nearest to a time, as far as a visitor may know.
#[derive(Clone, Debug)]
pub(super) enum NearestCapture {
    Visible(Box<Capture>),
    Blocked,
    Nothing,
}

/// Returns the URL of a capture for links: its own, if that leads to the same key again.
pub(super) fn url_of<'a>(capture: &'a Capture, target: &'a ReplayTarget) -> &'a str {
    let own = capture.original.as_deref();
    let leads_here =
        |own: &&str| ReplayTarget::parse(own).is_ok_and(|parsed| parsed.key() == target.key());
    own.filter(leads_here).unwrap_or(target.url())
}

impl PageHost {
    /// Begins to read the captures that answer a query.
    pub(super) async fn find_captures<'a>(
        &self,
        visit: &'a PageVisit,
        mut query: CaptureQuery,
    ) -> Result<VisibleCaptures<'a>, IndexCallError> {
        if query.filters.len() < MAX_FILTERS {
            query.filters.extend(visit.collection.index_filter());
        }
        Ok(VisibleCaptures {
            stream: self.parts.index.query(&query).await?,
            visit,
            walked: 0,
            has_blocked: false,
        })
    }

    /// Returns the capture nearest to a time, or the latest one. Captures are chosen as the replay host chooses
    /// them: one that may not be shown is not passed over for another.
    pub(super) async fn find_nearest(
        &self,
        visit: &PageVisit,
        key: &UrlKey,
        time: Option<Stamp>,
    ) -> Result<NearestCapture, IndexCallError> {
        let mut query = CaptureQuery::new(KeyMatch::Exact(key.clone()));
        query.order = time.map_or(Order::Descending, Order::Closest);
        let mut captures = self.find_captures(visit, query).await?;
        let mut second_choice = None;
        while let Some(capture) = captures.next().await? {
            if captures.has_blocked {
                return Ok(NearestCapture::Blocked);
            }
            if !is_second_choice(&capture) {
                return Ok(NearestCapture::Visible(Box::new(capture)));
            }
            second_choice.get_or_insert(capture);
            if captures.walked >= MOST_NEAR {
                break;
            }
        }
        Ok(match second_choice {
            _ if captures.has_blocked => NearestCapture::Blocked,
            Some(capture) => NearestCapture::Visible(Box::new(capture)),
            None => NearestCapture::Nothing,
        })
    }

    /// Returns the times of the captures before and after one.
    pub(super) async fn times_beside(
        &self,
        visit: &PageVisit,
        capture: &Capture,
    ) -> Result<TimesBeside, IndexCallError> {
        let this = capture.timestamp;
        let previous = self.time_beside(visit, &capture.key, this, Order::Descending);
        let next = self.time_beside(visit, &capture.key, this, Order::Ascending);
        Ok(TimesBeside {
            previous: previous.await?,
            next: next.await?,
        })
    }

    /// Returns the time of the nearest other capture in one direction. A capture that would lead back here is passed
    /// over.
    async fn time_beside(
        &self,
        visit: &PageVisit,
        key: &str,
        this: Stamp,
        order: Order,
    ) -> Result<Option<Stamp>, IndexCallError> {
        let mut query = CaptureQuery::new(KeyMatch::Exact(UrlKey::from_index(key)));
        query.order = order;
        query.span = match order {
            Order::Descending => TimeSpan {
                from: None,
                to: Some(this),
            },
            Order::Ascending | Order::Closest(_) => TimeSpan {
                from: Some(this),
                to: None,
            },
        };
        let mut captures = self.find_captures(visit, query).await?;
        while let Some(capture) = captures.next().await? {
            if capture.timestamp.time() != this.time() && !is_second_choice(&capture) {
                return Ok(Some(capture.timestamp));
            }
        }
        Ok(None)
    }

    /// Returns the time of the last capture of a key.
    pub(super) async fn last_of(
        &self,
        visit: &PageVisit,
        key: &str,
    ) -> Result<Option<Stamp>, IndexCallError> {
        let mut query = CaptureQuery::new(KeyMatch::Exact(UrlKey::from_index(key)));
        query.order = Order::Descending;
        let mut captures = self.find_captures(visit, query).await?;
        Ok(captures.next().await?.map(|capture| capture.timestamp))
    }
}
