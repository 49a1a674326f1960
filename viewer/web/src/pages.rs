//! The page host: pages for people, without a script.
//!
//! Owns a host of its own, on which no archived byte is ever shown: a request in, a page out. It reads the index and
//! never the archive; captures are shown by the replay host, in a frame that can reach nothing here.
//!
//! | Address | Page |
//! |---|---|
//! | `/`, `/<coll>/` | `search`: a URL, a collection; leads to the captures of the URL |
//! | `/<coll>/*/<url>`, `/<coll>/2020*/<url>` | `calendar`: years, months, days and times with captures |
//! | `/<coll>/*/<url>*`, `/<coll>/*/*.<host>` | `prefix`: URLs with captures, a page at a time |
//! | `/replay/<coll>/[<time>/]<url>` | `frame`: a capture, with a banner above it |
//! | `/static/…` | `assets`: the style sheet and the icon |
//!
//! Every capture goes through the one access decision (`lookup`) before a page learns of it. A list that is not whole
//! says so, and has a link to its next page. Everything that came from outside is escaped by the templates.
//!
//! # How to add a page
//!
//! 1. A file here with a struct that derives `Template`, and a method of [`PageHost`] that fills it; it returns a
//!    `Response` from [`page_answer`], or a [`PageProblem`], which becomes a page as well.
//! 2. Its template in `templates/`, which begins with `{% extends "base.html" %}`: `base.html` has the head, the
//!    search, the languages. It gets them from the field `layout`.
//! 3. Its texts in `texts/en.ftl` and `texts/da.ftl`, said by `words.text("key")`. A test finds keys that are missing
//!    in a language, and those that nothing uses.
//! 4. An address in `address` (`PagePath`), and an arm in [`PageHost::route`].
//! 5. Style in `static/pages.css`: colours are the properties at its top, once for light and once for dark.
//!
//! A language is one more file of texts, and one more variant of `Language`.
//!
//! Not promised: a language that is remembered, and anything for people with names. There is no cookie yet.

mod address;
mod assets;
mod calendar;
mod frame;
mod language;
mod layout;
mod lookup;
mod prefix;
mod problem;
mod search;
mod shown_url;
mod texts;

use std::net::SocketAddr;
use std::sync::Arc;

use archive_daemon::{Clock, Gauge};
use archive_formats::cdx::Capture;
use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, LOCATION,
    REFERRER_POLICY, VARY,
};
use axum::http::request::Parts as RequestHead;
use axum::http::uri::Authority;
use axum::http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request as HttpRequest, Response, StatusCode,
};
use index_client::CaptureSearch;
use jiff::Timestamp;
use tokio::sync::Semaphore;
use viewer_replay::access::{AccessDecision, Visitor, VisitorSettings};
use viewer_replay::request::{ReplayRequest, TargetMatch};

use crate::answer::put_header;
use crate::collections::{Collections, ReplayCollection};
use crate::metrics::Instruments;
use crate::settings::{WebSettings, host_name};
use crate::visitors;
use address::{PageAddress, PageParameters, PagePath};
use assets::Assets;
use language::Language;
use layout::Layout;
use problem::PageProblem;
pub use texts::TextsError;
use texts::{Texts, Words};

/// The policy of every page: browsers load what is here, and nothing else.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; \
                      base-uri 'none'";

/// Header fields of every answer.
const FIELDS: [(&str, &str); 5] = [
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    (
        "permissions-policy",
        "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    ),
];

/// The parts that a page host is put together from.
#[derive(Clone)]
pub(crate) struct PageParts {
    pub(crate) index: Arc<dyn CaptureSearch>,
    pub(crate) collections: Collections,
    pub(crate) visitors: VisitorSettings,
    pub(crate) instruments: Instruments,
    pub(crate) clock: Clock,
    /// The origin under which visitors reach the pages.
    pub(crate) origin: String,
    /// The origin under which visitors reach the replay host.
    pub(crate) replay: String,
}

/// The page host.
pub(crate) struct PageHost {
    parts: PageParts,
    settings: WebSettings,
    room: Arc<Semaphore>,
    texts: Arc<Texts>,
    assets: Arc<Assets>,
}

/// A visit: who asks, in which collection, at which moment, in which language.
#[derive(Clone, Debug)]
struct PageVisit {
    collection: Arc<ReplayCollection>,
    visitor: Visitor,
    now: Timestamp,
    parameters: PageParameters,
    words: Words,
    /// The language that the address names; links of the page name it as well.
    chosen: Option<Language>,
}

impl PageVisit {
    fn decide(&self, capture: &Capture) -> AccessDecision {
        self.collection
            .decide_access(&self.visitor, capture, self.now)
    }

    /// Returns the link to a page in the language of this one.
    fn link(&self, address: &PageAddress) -> String {
        address.link_to(self.chosen)
    }

    fn frame(&self, time: archive_formats::date::Stamp, url: &str) -> String {
        self.link(&PageAddress::new(PagePath::Frame {
            collection: self.collection.name().to_owned(),
            time: Some(time),
            url: url.to_owned(),
        }))
    }

    fn calendar(&self, span: &str, url: &str, matching: TargetMatch) -> PageAddress {
        PageAddress::new(PagePath::Calendar {
            collection: self.collection.name().to_owned(),
            span: span.to_owned(),
            url: url.to_owned(),
            matching,
        })
    }
}

impl PageHost {
    /// Makes a page host from its parts.
    ///
    /// # Errors
    ///
    /// Fails if the texts that were compiled in cannot be used: a bug.
    pub(crate) fn new(parts: PageParts, settings: WebSettings) -> Result<Self, TextsError> {
        Ok(Self {
            room: Arc::new(Semaphore::new(settings.requests.get())),
            texts: Arc::new(Texts::read_texts()?),
            assets: Arc::new(Assets::new()),
            parts,
            settings,
        })
    }

    /// Returns the gauge of open connections.
    pub(crate) fn connections(&self) -> &Gauge {
        &self.parts.instruments.connections
    }

    /// Answers a request.
    pub(crate) async fn answer_request(
        &self,
        peer: SocketAddr,
        request: HttpRequest<Body>,
    ) -> Response<Body> {
        let instruments = &self.parts.instruments;
        let begun = self.parts.clock.instant();
        let (head, _body) = request.into_parts();
        let target = head.uri.path_and_query();
        let target = target.map_or("/", |target| target.as_str());
        let (path, parameters) = PageParameters::split_target(target);
        let chosen = parameters.get("lang").and_then(Language::from_tag);
        let language = chosen.unwrap_or_else(|| Language::from_headers(&head.headers));
        let words = Words::new(Arc::clone(&self.texts), language);
        let asked = PageRequest {
            path: &path,
            target,
            parameters,
            words,
            chosen,
        };
        let answered = match self.room.try_acquire() {
            Ok(_permit) => {
                instruments.under_way.inc();
                let limit = self.settings.answer_time.duration();
                let route = self.route(peer, &head, &asked);
                let answered = self.parts.clock.run_with_timeout(limit, route).await;
                instruments.under_way.dec();
                answered.unwrap_or(Err(PageProblem::OutOfTime))
            }
            Err(_full) => {
                instruments.turned_away.inc();
                Err(PageProblem::Busy)
            }
        };
        let mut response = answered.unwrap_or_else(|problem| self.problem_page(&asked, &problem));
        let headers = response.headers_mut();
        for (name, value) in FIELDS {
            headers.insert(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        if !headers.contains_key(CONTENT_SECURITY_POLICY) {
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        }
        instruments.count_answer(response.status().as_u16());
        let taken = self.parts.clock.elapsed_since(begun);
        instruments.first_byte.observe(taken.as_secs_f64());
        response
    }

    async fn route(
        &self,
        peer: SocketAddr,
        head: &RequestHead,
        asked: &PageRequest<'_>,
    ) -> Result<Response<Body>, PageProblem> {
        let longest = self.settings.longest_url.bytes();
        if asked.target.len() as u64 > longest {
            return Err(PageProblem::UrlTooLong);
        }
        if ![Method::GET, Method::HEAD].contains(&head.method) {
            return Err(PageProblem::Method);
        }
        if self.is_on_replay_host(&head.headers) {
            let here = format!("{}{}", self.parts.origin, asked.target);
            return Ok(redirect(StatusCode::PERMANENT_REDIRECT, &here));
        }
        if asked.path.starts_with("/static/") {
            return self
                .assets
                .answer_asset(asked.path)
                .ok_or(PageProblem::NoSuchPage);
        }
        let visit = |collection: &str| self.visit(peer, &head.headers, asked, collection);
        match ReplayRequest::parse(asked.path)? {
            ReplayRequest::Home => self.answer_search(asked, None),
            ReplayRequest::Collection { collection } => {
                visit(&collection)?;
                self.answer_search(asked, Some(&collection))
            }
            ReplayRequest::Calendar {
                collection,
                span,
                target,
                matching: TargetMatch::Exact,
            } => {
                self.calendar_page(&visit(&collection)?, &span, &target)
                    .await
            }
            ReplayRequest::Calendar {
                collection,
                span,
                target,
                matching,
            } => {
                self.prefix_page(&visit(&collection)?, &span, &target, matching)
                    .await
            }
            ReplayRequest::Page {
                collection,
                time,
                target,
            } => {
                self.frame_page(&visit(&collection)?, time.as_ref(), &target)
                    .await
            }
            // People who know other archives type these.
            ReplayRequest::TimeGate {
                collection,
                modifier: None,
                ..
            }
            | ReplayRequest::Memento {
                collection,
                modifier: None,
                ..
            } => {
                visit(&collection)?;
                let framed = format!("/replay{}", asked.target);
                Ok(redirect(StatusCode::FOUND, &framed))
            }
            ReplayRequest::Lookup { .. }
            | ReplayRequest::TimeMap { .. }
            | ReplayRequest::TimeGate { .. }
            | ReplayRequest::Memento { .. }
            | ReplayRequest::File { .. }
            | ReplayRequest::Mismatches { .. }
            | ReplayRequest::Record { .. }
            | ReplayRequest::Metadata { .. } => Err(PageProblem::OnReplayHost),
        }
    }

    /// Returns whether a client has come by the host of the archived pages: whatever a browser keeps for it is theirs.
    fn is_on_replay_host(&self, headers: &HeaderMap) -> bool {
        let named = headers
            .get(HOST)
            .and_then(|host| Authority::try_from(host.as_bytes()).ok());
        let replay = self.parts.replay.split_once("://");
        match (named, replay) {
            (Some(named), Some((_, replay))) => host_name(named.as_str()) == host_name(replay),
            _ => false,
        }
    }

    fn visit(
        &self,
        peer: SocketAddr,
        headers: &HeaderMap,
        asked: &PageRequest<'_>,
        name: &str,
    ) -> Result<PageVisit, PageProblem> {
        let collection = self.parts.collections.find_collection(name);
        let collection =
            collection.ok_or_else(|| PageProblem::NoSuchCollection(name.to_owned()))?;
        Ok(PageVisit {
            collection: Arc::clone(collection),
            visitor: visitors::visitor_of(&self.parts.visitors, peer, headers),
            now: self.parts.clock.now(),
            parameters: asked.parameters.clone(),
            words: asked.words.clone(),
            chosen: asked.chosen,
        })
    }

    /// Returns the frame of a page: its texts, its search, and the links to itself in other languages.
    fn layout(&self, words: &Words, chosen: Option<Language>, here: &PageAddress) -> Layout {
        Layout::new(words, chosen, here, self)
    }
}

/// Returns a page as an answer.
fn page_answer(status: StatusCode, words: &Words, page: &impl askama::Template) -> Response<Body> {
    let html = match page.render() {
        Ok(html) => html,
        Err(error) => {
            // Templates write into memory; it is a bug of one of them.
            tracing::error!(%error, "cannot render a page");
            let mut response = Response::new(Body::from("500 Internal Server Error\n"));
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            return response;
        }
    };
    let mut response = Response::new(Body::from(html));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    headers.insert(
        CONTENT_LANGUAGE,
        HeaderValue::from_static(words.language().tag()),
    );
    // What is shown depends on the visitor, and on what was harvested a moment ago.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(VARY, HeaderValue::from_static("accept-language"));
    response
}

/// A request, taken apart.
#[derive(Debug)]
struct PageRequest<'a> {
    /// The path with the archived URL in it.
    path: &'a str,
    /// The path and the query, as they were sent.
    target: &'a str,
    parameters: PageParameters,
    words: Words,
    chosen: Option<Language>,
}

fn redirect(status: StatusCode, location: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    put_header(headers, LOCATION.as_str(), location);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(VARY, HeaderValue::from_static("accept-language"));
    response
}

impl std::fmt::Debug for PageHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageHost").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
