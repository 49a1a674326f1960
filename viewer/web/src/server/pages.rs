//! The pages of look-ups, and the few pages that say what is served.

use std::collections::VecDeque;

use archive_formats::cdx::query::Order;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, LOCATION};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};
use parking_lot::Mutex;
use viewer_replay::access::Group;
use viewer_replay::cdx_server::{CdxRequest, DEFAULT_PAGE_SIZES, PageMarks};

use super::{Server, Visit, index_failed};
use crate::answer::Notice;

/// The most questions whose pages are remembered.
const REMEMBERED: usize = 16;

/// The pages of the questions that were asked last. A question is that of one collection and one kind of visitor.
#[derive(Debug, Default)]
pub(super) struct PageCache {
    marks: Mutex<VecDeque<(String, PageMarks)>>,
}

impl PageCache {
    /// Takes the marks of a question out of the cache; another request for it meanwhile begins without them.
    fn take(&self, question: &str) -> Option<PageMarks> {
        let mut marks = self.marks.lock();
        let at = marks.iter().position(|(known, _)| known == question)?;
        marks.remove(at).map(|(_, marks)| marks)
    }

    fn keep(&self, question: String, known: PageMarks) {
        let mut marks = self.marks.lock();
        marks.push_back((question, known));
        while marks.len() > REMEMBERED {
            marks.pop_front();
        }
    }
}

impl Server {
    /// Walks over the captures of a question until a number of them is known, or a limit is reached.
    pub(super) async fn walk_pages(
        &self,
        visit: &Visit,
        request: &CdxRequest,
        captures: u64,
    ) -> Result<PageMarks, Notice> {
        let groups: Vec<&str> = visit.visitor.groups().map(Group::as_str).collect();
        let collection = visit.collection.name();
        let question = format!("{collection} {groups:?} {}", request.page_key());
        let mut query = request.index_query();
        query.order = request.query.order;
        // A walk outwards from a time begins anew each time.
        let goes_on = !matches!(query.order, Order::Closest(_));
        let known = self.page_cache.take(&question).filter(|_| goes_on);
        let mut marks = known.unwrap_or_else(|| PageMarks::new(&DEFAULT_PAGE_SIZES));
        // An end that was reached may have moved: what follows the archive grows.
        marks.reopen_marks();
        if marks.walked_captures() >= captures || marks.is_full() {
            self.page_cache.keep(question, marks.clone());
            return Ok(marks);
        }
        if goes_on {
            query.cursor = marks.walked_to().cloned().or(query.cursor);
        }
        let query = Self::in_collection(visit, query);
        let limit = self.settings.counted_captures.get();
        let mut stream = self
            .parts
            .index
            .query(&query)
            .await
            .map_err(|error| index_failed(&error))?;
        let mut walked = 0;
        while marks.walked_captures() < captures && walked < limit && !marks.is_full() {
            let next = stream.next().await.map_err(|error| index_failed(&error))?;
            let Some(capture) = next else {
                marks.finish_marks();
                break;
            };
            walked += 1;
            if visit.decide(&capture).is_allowed() {
                marks.push_capture(&capture);
            } else {
                marks.pass_over(&capture);
            }
        }
        self.page_cache.keep(question, marks.clone());
        Ok(marks)
    }

    /// Returns the collections, in words.
    pub(super) fn home_page(&self, headers: &HeaderMap) -> Response<Body> {
        let names: Vec<&str> = self.parts.collections.names().collect();
        let words = format!("Collections: {}.", names.join(", "));
        Notice::new(
            StatusCode::OK,
            "The replay server of a Holdfast archive",
            words,
        )
        .and_words(SERVED)
        .to_response(headers)
    }
}

/// Returns a collection, in words.
pub(super) fn collection_page(visit: &Visit, headers: &HeaderMap) -> Response<Body> {
    let title = format!("Collection {}", visit.collection.name());
    Notice::new(StatusCode::OK, &title, SERVED).to_response(headers)
}

/// The addresses that are served, in words.
const SERVED: &str = "Captures are at /<collection>/<time>id_/<url> as they were captured, and at \
                      /<collection>/<time>ir_/<url> with redirects that stay in the archive. Look-ups: /<collection>/cdx?url=…, \
                      /<collection>/timemap/link/<url>, and /<collection>/<url> with Accept-Datetime. Pages without scripts: \
                      /<collection>/<time>/<url>.";

impl Server {
    /// Redirects a visitor to the host of the pages, under the same path.
    pub(super) fn at_page_host(
        &self,
        status: StatusCode,
        path: &str,
    ) -> Result<Response<Body>, Notice> {
        let words =
            "This server serves captures and their indexes; pages for people are on another host.";
        let location = self.parts.page_host.as_ref();
        let location = location.map(|host| HeaderValue::from_str(&format!("{host}{path}")));
        let Some(Ok(location)) = location else {
            let title = "Not served here";
            return Err(Notice::new(StatusCode::NOT_IMPLEMENTED, title, words).and_words(SERVED));
        };
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(LOCATION, location);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        Ok(response)
    }
}
