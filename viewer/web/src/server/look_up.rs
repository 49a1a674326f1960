//! Looking captures up for a visitor: those near to a time, and the first and last ones.
//!
//! Owns how much is asked of the index. Captures that the visitor may not know of are left out here already.

use archive_formats::cdx::Capture;
use archive_formats::cdx::query::{CaptureQuery, KeyMatch, Limit, MAX_FILTERS, Order};
use archive_formats::date::Stamp;
use archive_formats::surt::UrlKey;
use index_client::IndexCallError;
use viewer_replay::access::{AccessDecision, AccessVerdict};
use viewer_replay::busters::BustedUrl;
use viewer_replay::memento::{Neighbours, nearest_capture};
use viewer_replay::request::ReplayTarget;

use super::{Server, Visit};

/// The most captures of one key that are considered for one request.
const MOST_NEAR: usize = 40;

/// The most captures that are looked through for one that is the same but for cache busters.
const MOST_BUSTED: u64 = 2_000;

/// Captures near to a time, the nearest first.
#[derive(Clone, Debug)]
pub(super) struct NearbyCaptures {
    pub(super) captures: Vec<Capture>,
    /// Whether there are no others.
    pub(super) is_all: bool,
}

/// Returns how far a capture is from a time, in seconds.
fn distance(capture: &Capture, time: Stamp) -> u64 {
    let seconds = |stamp: Stamp| stamp.time().as_second();
    seconds(capture.timestamp).abs_diff(seconds(time))
}

impl Server {
    /// Returns the query of a visit: what the collection can already say about files goes into it.
    pub(super) fn in_collection(visit: &Visit, mut query: CaptureQuery) -> CaptureQuery {
        if query.filters.len() < MAX_FILTERS {
            query.filters.extend(visit.collection.index_filter());
        }
        query
    }

    /// Returns the captures of a key that are nearest to a time, without those that the visitor may not know of.
    pub(super) async fn find_near(
        &self,
        visit: &Visit,
        key: &UrlKey,
        time: Stamp,
    ) -> Result<NearbyCaptures, IndexCallError> {
        let mut query = CaptureQuery::new(KeyMatch::Exact(key.clone()));
        query.order = Order::Closest(time);
        let query = Self::in_collection(visit, query);
        self.collect_captures(&query, |capture| visit.decide(capture))
            .await
    }

    /// Returns the captures of a URL that are nearest to a time. If there are none, those of URLs that are the same but
    /// for cache busters: a page asks with a new one each time.
    pub(super) async fn near_target(
        &self,
        visit: &Visit,
        target: &ReplayTarget,
        time: Stamp,
    ) -> Result<NearbyCaptures, IndexCallError> {
        let near = self.find_near(visit, target.key(), time).await?;
        let may_be_busted = target.is_of_get() && near.captures.is_empty();
        let busted = BustedUrl::read_url(target.url()).filter(|_| may_be_busted);
        let Some(busted) = busted else {
            return Ok(near);
        };
        let plain = self.find_near(visit, busted.key(), time).await?;
        if !plain.captures.is_empty() {
            return Ok(plain);
        }
        self.near_busted(visit, &busted, time).await
    }

    /// Returns the captures nearest to a time of one URL that is the same but for cache busters.
    async fn near_busted(
        &self,
        visit: &Visit,
        busted: &BustedUrl,
        time: Stamp,
    ) -> Result<NearbyCaptures, IndexCallError> {
        let mut query = CaptureQuery::new(busted.keys());
        query.limit = Some(Limit::First(MOST_BUSTED));
        let query = Self::in_collection(visit, query);
        let mut stream = self.parts.index.query(&query).await?;
        let mut captures = Vec::new();
        while let Some(capture) = stream.next().await? {
            let is_same = |url: &str| busted.is_same(url);
            let is_seen = visit.decide(&capture).verdict != AccessVerdict::Exclude;
            if is_seen && capture.original.as_deref().is_some_and(is_same) {
                captures.push(capture);
            }
        }
        captures.sort_by(|one, other| Order::Closest(time).compare_captures(one, other));
        let nearest = captures
            .iter()
            .min_by_key(|capture| distance(capture, time));
        let key = nearest.map(|capture| capture.key.clone());
        captures.retain(|capture| Some(&capture.key) == key.as_ref());
        captures.truncate(MOST_NEAR);
        Ok(NearbyCaptures {
            captures,
            is_all: false,
        })
    }

    /// Returns such captures in all files, for the originals of revisits.
    pub(super) async fn near_anywhere(
        &self,
        visit: &Visit,
        key: &UrlKey,
        time: Stamp,
    ) -> Result<NearbyCaptures, IndexCallError> {
        let mut query = CaptureQuery::new(KeyMatch::Exact(key.clone()));
        query.order = Order::Closest(time);
        self.collect_captures(&query, |capture| visit.decide_anywhere(capture))
            .await
    }

    /// Returns the captures of a query that a decision does not exclude.
    pub(super) async fn collect_captures(
        &self,
        query: &CaptureQuery,
        decide: impl Fn(&Capture) -> AccessDecision,
    ) -> Result<NearbyCaptures, IndexCallError> {
        let mut stream = self.parts.index.query(query).await?;
        let mut captures = Vec::new();
        while let Some(capture) = stream.next().await? {
            if decide(&capture).verdict == AccessVerdict::Exclude {
                continue;
            }
            if captures.len() == MOST_NEAR {
                return Ok(NearbyCaptures {
                    captures,
                    is_all: false,
                });
            }
            captures.push(capture);
        }
        Ok(NearbyCaptures {
            captures,
            is_all: true,
        })
    }

    /// Returns the neighbours of a capture among the others of its key: which one comes before and after it, which are
    /// the first and the last.
    pub(super) async fn find_neighbours(
        &self,
        visit: &Visit,
        shown: &Capture,
        near: &NearbyCaptures,
    ) -> Result<Neighbours, IndexCallError> {
        let mut times: Vec<Stamp> = near
            .captures
            .iter()
            .map(|capture| capture.timestamp)
            .collect();
        times.sort_unstable();
        let this = shown.timestamp;
        let found = nearest_capture(&times, Some(this)).map(|found| found.neighbours);
        let mut neighbours = found
            .filter(|found| found.this == this)
            .unwrap_or_else(|| Neighbours::alone(this));
        if !near.is_all {
            neighbours.first = self.end_walk(visit, &shown.key, Order::Ascending).await?;
            neighbours.last = self.end_walk(visit, &shown.key, Order::Descending).await?;
        }
        Ok(neighbours)
    }

    /// Returns the time of the first capture in an order that the visitor may know of.
    pub(super) async fn end_walk(
        &self,
        visit: &Visit,
        key: &str,
        order: Order,
    ) -> Result<Option<Stamp>, IndexCallError> {
        let mut query = CaptureQuery::new(KeyMatch::Exact(UrlKey::from_index(key)));
        query.order = order;
        let query = Self::in_collection(visit, query);
        let mut stream = self.parts.index.query(&query).await?;
        while let Some(capture) = stream.next().await? {
            if visit.decide(&capture).is_allowed() {
                return Ok(Some(capture.timestamp));
            }
        }
        Ok(None)
    }
}
