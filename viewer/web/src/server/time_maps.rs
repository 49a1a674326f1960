//! `TimeMaps`: all captures of a URL, paged where there are many.
//!
//! Owns what a `TimeMap` lists: captures that the visitor may see. Blocked captures are not in it.

use std::io;

use archive_formats::cdx::Capture;
use archive_formats::cdx::query::{CaptureQuery, KeyMatch, Order};
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Response};
use index_client::{CaptureStream, IndexCallError};
use std::num::NonZeroU32;
use viewer_replay::access::AccessVerdict;
use viewer_replay::memento::{TimeMap, TimeMapPage, TimeMapScope, TimeMapWriter, split_pages};
use viewer_replay::request::{ReplayTarget, TimeMapFormat};

use super::shown::no_capture;
use super::{Server, Visit, index_failed};
use crate::answer::Notice;

/// The number of captures on one page of a `TimeMap`.
pub(super) const PAGE: u64 = 5_000;

/// The most captures of one URL that a TimeMap has.
const MOST: usize = 2_000_000;

/// The visible captures of a URL, as they come.
struct VisibleStream<'a> {
    stream: CaptureStream,
    visit: &'a Visit,
    has_blocked: bool,
}

impl VisibleStream<'_> {
    async fn next(&mut self) -> Result<Option<Capture>, IndexCallError> {
        while let Some(capture) = self.stream.next().await? {
            match self.visit.decide(&capture).verdict {
                AccessVerdict::Allow => return Ok(Some(capture)),
                AccessVerdict::Block => self.has_blocked = true,
                AccessVerdict::Exclude => {}
            }
        }
        Ok(None)
    }
}

impl Server {
    /// Answers with the captures of a URL, with a page of them, or with the list of pages.
    pub(super) async fn time_map(
        &self,
        visit: &Visit,
        format: TimeMapFormat,
        page: Option<NonZeroU32>,
        target: &ReplayTarget,
    ) -> Result<Response<Body>, Notice> {
        let failed = |error: IndexCallError| index_failed(&error);
        let mut visible = self.visible(visit, target).await.map_err(failed)?;
        let skip = page.map_or(0, |page| u64::from(page.get() - 1).saturating_mul(PAGE));
        let mut times = Vec::new();
        let mut captures = Vec::new();
        // The captures of the page are kept; of the others, the times.
        while let Some(capture) = visible.next().await.map_err(failed)? {
            let place = times.len() as u64;
            times.push(capture.timestamp);
            if place >= skip && place < skip.saturating_add(PAGE) {
                captures.push(capture);
            }
            if times.len() == MOST {
                let words = format!(
                    "The archive has more than {MOST} captures of this address; ask /<collection>/cdx with `from` and `to`."
                );
                return Err(Notice::bad_request(words));
            }
        }
        let (Some(first), Some(last)) = (times.first().copied(), times.last().copied()) else {
            return Err(if visible.has_blocked {
                Notice::blocked_notice()
            } else {
                no_capture()
            });
        };
        let all = split_pages(times, PAGE);
        let own = match page {
            Some(page) => {
                let own = all.iter().find(|own| own.number == page.get());
                let nothing = || {
                    let words = format!("This TimeMap has {} pages, counted from 1.", all.len());
                    Notice::not_found(words)
                };
                Some(*own.ok_or_else(nothing)?)
            }
            None => None,
        };
        let scope = TimeMapScope {
            first,
            last,
            page: own,
        };
        let name = visit.collection.name();
        let writer = TimeMapWriter::new(TimeMap {
            addresses: &visit.addresses,
            collection: name,
            url: target.url(),
            format,
            scope,
        });
        let content_type = writer.content_type();
        let is_list = format == TimeMapFormat::Link && page.is_none() && all.len() > 1;
        let body = if is_list {
            Body::from(list(writer, &all))
        } else if page.is_none() && all.len() > 1 {
            self.long(visit, target, format, scope)
                .await
                .map_err(failed)?
        } else {
            Body::from(write(writer, &captures))
        };
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        Ok(response)
    }

    async fn visible<'a>(
        &self,
        visit: &'a Visit,
        target: &ReplayTarget,
    ) -> Result<VisibleStream<'a>, IndexCallError> {
        let mut query = CaptureQuery::new(KeyMatch::Exact(target.key().clone()));
        query.order = Order::Ascending;
        let query = Self::in_collection(visit, query);
        Ok(VisibleStream {
            stream: self.parts.index.query(&query).await?,
            visit,
            has_blocked: false,
        })
    }

    /// Answers with all captures in a form that has no pages, as lines that are sent while they come.
    async fn long(
        &self,
        visit: &Visit,
        target: &ReplayTarget,
        format: TimeMapFormat,
        scope: TimeMapScope,
    ) -> Result<Body, IndexCallError> {
        let stream = self.visible(visit, target).await?.stream;
        let visit = visit.clone();
        let target = target.clone();
        let state = Some((stream, visit, target));
        let lines = futures_util::stream::unfold(state, move |state| async move {
            let (stream, visit, target) = state?;
            let mut visible = VisibleStream {
                stream,
                visit: &visit,
                has_blocked: false,
            };
            let mut captures = Vec::new();
            let ended = loop {
                match visible.next().await {
                    Ok(Some(capture)) if captures.len() < 500 => captures.push(capture),
                    Ok(Some(capture)) => {
                        captures.push(capture);
                        break false;
                    }
                    Ok(None) => break true,
                    Err(error) => return Some((Err(io::Error::other(error)), None)),
                }
            };
            let stream = visible.stream;
            let name = visit.collection.name();
            let writer = TimeMapWriter::new(TimeMap {
                addresses: &visit.addresses,
                collection: name,
                url: target.url(),
                format,
                scope,
            });
            let text = write(writer, &captures);
            let state = (!ended).then_some((stream, visit, target));
            Some((Ok(text), state))
        });
        Ok(Body::from_stream(lines))
    }
}

fn write(mut writer: TimeMapWriter<'_>, captures: &[Capture]) -> String {
    let mut text = String::new();
    writer.begin_map(&mut text);
    for capture in captures {
        writer.write_capture(capture, &mut text);
    }
    writer.end_map(&mut text);
    text
}

fn list(mut writer: TimeMapWriter<'_>, all: &[TimeMapPage]) -> String {
    let mut text = String::new();
    writer.begin_map(&mut text);
    for page in all {
        writer.write_page(page, &mut text);
    }
    writer.end_map(&mut text);
    text
}
