//! The server: one request in, one answer out.
//!
//! Owns the order in which a request is judged: room, length, host, method, path, collection, visitor, then its route.
//! All answers leave through [`Server::answer_request`], which counts them, gives each a limit of time to begin, and sees to it
//! that no answer sets a cookie, and that answers to visitors with groups stay in no shared cache.

mod cdx;
mod delivered;
mod document;
mod facts;
mod failures;
mod files;
mod loader;
mod look_up;
mod mementos;
mod mismatches;
mod pages;
mod proxied;
mod raw;
mod request_guard;
mod shown;
mod time_maps;

use std::net::SocketAddr;
use std::sync::Arc;

use archive_daemon::{Clock, Gauge};
use archive_formats::cdx::Capture;
use axum::body::Body;
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, HOST, SET_COOKIE};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, Request as HttpRequest, Response, StatusCode};
use index_client::CaptureSearch;
use jiff::Timestamp;
use tokio::sync::Semaphore;
use viewer_replay::access::{AccessDecision, Visitor, VisitorSettings};
use viewer_replay::cdx_server::Dialect;
use viewer_replay::request::{Addresses, InvalidRequest, LookupDialect, ReplayRequest};
use viewer_replay::response::ReplyMethod;

use crate::answer::Notice;
use crate::collections::{Collections, ReplayCollection};
use crate::metrics::Instruments;
use crate::records::Records;
use crate::settings::{ReplaySettings, host_name};
use crate::visitors;
use delivered::SniffMarker;
use failures::{gone_notice, index_failed, record_failed};
pub(crate) use loader::WorkerScript;
pub use loader::WorkerScriptError;
use mementos::MementoRequest;
use mismatches::Mismatches;
use pages::PageCache;
use request_guard::{GuardedBody, RequestGuard};

/// The wait before a client may ask again when there is no room, in seconds.
const NO_ROOM: u32 = 1;

/// The state of the replay host: the parts behind it, its settings, and what it remembers between requests.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) parts: ServerParts,
    pub(crate) settings: ReplaySettings,
    /// The address that the replay host listens on, for links of clients that name no host.
    pub(crate) address: SocketAddr,
    pub(crate) room: Arc<Semaphore>,
    page_cache: PageCache,
    mismatches: Mismatches,
}

/// The parts that a server is put together from.
#[derive(Clone)]
pub(crate) struct ServerParts {
    pub(crate) index: Arc<dyn CaptureSearch>,
    pub(crate) records: Records,
    pub(crate) collections: Collections,
    pub(crate) visitors: VisitorSettings,
    pub(crate) instruments: Instruments,
    pub(crate) clock: Clock,
    /// The origin of the page host, which frames archived pages; `None` where there are no pages.
    pub(crate) page_host: Option<String>,
    /// The service worker of this host.
    pub(crate) worker: WorkerScript,
}

/// A visit: who asks, in which collection, at which moment, and under which address.
#[derive(Clone, Debug)]
struct Visit {
    collection: Arc<ReplayCollection>,
    visitor: Visitor,
    now: Timestamp,
    addresses: Addresses,
    method: ReplyMethod,
}

impl Visit {
    fn decide(&self, capture: &Capture) -> AccessDecision {
        self.collection
            .decide_access(&self.visitor, capture, self.now)
    }

    fn decide_anywhere(&self, capture: &Capture) -> AccessDecision {
        self.collection
            .decide_anywhere(&self.visitor, capture, self.now)
    }
}

impl Server {
    pub(crate) fn new(parts: ServerParts, settings: ReplaySettings, address: SocketAddr) -> Self {
        Self {
            room: Arc::new(Semaphore::new(settings.requests.get())),
            page_cache: PageCache::default(),
            mismatches: Mismatches::default(),
            parts,
            settings,
            address,
        }
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
        let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else {
            instruments.turned_away.inc();
            let words = "The server answers as many requests as it may; try again in a moment.";
            let notice = Notice::unavailable_notice(words).again_after(NO_ROOM);
            return notice.to_response(request.headers());
        };
        let guard = RequestGuard::begin_request(instruments.under_way.clone(), permit);
        let (head, body) = request.into_parts();
        let begun = self.parts.clock.instant();
        let limit = self.settings.answer_time.duration();
        let answered = self
            .parts
            .clock
            .run_with_timeout(limit, self.route(peer, &head, body));
        let response = match answered.await {
            Ok(Ok(response)) => response,
            Ok(Err(notice)) => notice.to_response(&head.headers),
            Err(_elapsed) => {
                let words = "The archive or its index did not answer in time; try again.";
                Notice::unavailable_notice(words).to_response(&head.headers)
            }
        };
        let (mut parts, body) = response.into_parts();
        // Archived headers come back under other names, and nothing here sets one: this is the last wall.
        parts.headers.remove(SET_COOKIE);
        if !visitors::visitor_of(&self.parts.visitors, peer, &head.headers).is_anonymous() {
            // What the visitor's group may see is neither for pages of the live web nor for others behind the same
            // cache.
            parts.headers.remove(ACCESS_CONTROL_ALLOW_ORIGIN);
            let private = HeaderValue::from_static("private");
            parts.headers.entry(CACHE_CONTROL).or_insert(private);
        }
        if parts.extensions.get::<SniffMarker>().is_none() {
            let nosniff = HeaderValue::from_static("nosniff");
            parts.headers.insert("x-content-type-options", nosniff);
        }
        instruments.count_answer(parts.status.as_u16());
        let taken = self.parts.clock.elapsed_since(begun);
        instruments.first_byte.observe(taken.as_secs_f64());
        Response::from_parts(parts, Body::new(GuardedBody::new(body, guard)))
    }

    /// Returns whether a client has come by the host of the pages: whatever a browser keeps for that is theirs.
    fn is_on_page_host(&self, headers: &HeaderMap) -> bool {
        let pages = self.parts.page_host.as_ref();
        let pages = pages.and_then(|origin| origin.split_once("://"));
        let named = headers.get(HOST).and_then(|host| host.to_str().ok());
        match (named, pages) {
            (Some(named), Some((_, pages))) => host_name(named) == host_name(pages),
            _ => false,
        }
    }

    async fn route(
        &self,
        peer: SocketAddr,
        head: &axum::http::request::Parts,
        body: Body,
    ) -> Result<Response<Body>, Notice> {
        let target = head
            .uri
            .path_and_query()
            .map_or("", |target| target.as_str());
        self.check_length(target)?;
        let headers = &head.headers;
        if self.is_on_page_host(headers) {
            return self.at_page_host(StatusCode::PERMANENT_REDIRECT, target);
        }
        let is_of_worker = facts::fetch_facts(headers).is_of_worker();
        let is_read = [Method::GET, Method::HEAD].contains(&head.method);
        if !is_read && head.method != Method::POST && !is_of_worker {
            return Err(not_allowed("GET, HEAD"));
        }
        if let Some(worker) = self.worker_script(target, headers).filter(|_| is_read) {
            return worker;
        }
        let mut request = ReplayRequest::parse(target).map_err(|error| invalid(&error))?;
        let body = if is_read {
            body
        } else {
            prepare_body(&mut request, head, body, is_of_worker).await?
        };
        self.dispatch(peer, head, target, request, body).await
    }

    fn check_length(&self, target: &str) -> Result<(), Notice> {
        let longest = usize::try_from(self.settings.longest_url.bytes()).unwrap_or(usize::MAX);
        if target.len() > longest {
            let words = format!("The address has more than {longest} characters.");
            return Err(Notice::new(StatusCode::URI_TOO_LONG, "Too long", words));
        }
        Ok(())
    }

    /// Gives a request to the route that answers it.
    async fn dispatch(
        &self,
        peer: SocketAddr,
        head: &axum::http::request::Parts,
        target: &str,
        request: ReplayRequest,
        body: Body,
    ) -> Result<Response<Body>, Notice> {
        let headers = &head.headers;
        let visit = |collection: &str| self.visit(peer, head, collection);
        match request {
            ReplayRequest::Home => Ok(self.home_page(headers)),
            ReplayRequest::Collection { collection } => {
                Ok(pages::collection_page(&visit(&collection)?, headers))
            }
            ReplayRequest::Lookup {
                collection,
                dialect,
                query,
            } => {
                let name = self.named_or_sole(collection.as_deref())?;
                let form = self.read_form(head, body).await?;
                let visit = visit(name)?;
                let dialect = cdx_dialect(dialect);
                self.look_up(&visit, dialect, &query, form.as_deref()).await
            }
            ReplayRequest::TimeMap {
                collection,
                format,
                page,
                target,
            } => {
                self.time_map(&visit(&collection)?, format, page, &target)
                    .await
            }
            ReplayRequest::TimeGate {
                collection,
                modifier,
                target,
            } => {
                let visit = visit(&collection)?;
                let request = MementoRequest::new(modifier, &target, headers);
                Box::pin(self.time_gate(&visit, request)).await
            }
            ReplayRequest::Memento {
                collection,
                time,
                modifier,
                target,
            } => {
                let visit = visit(&collection)?;
                let request = MementoRequest::new(modifier, &target, headers);
                Box::pin(self.answer_memento(&visit, &time, request)).await
            }
            ReplayRequest::Mismatches { collection } => {
                Ok(self.mismatch_list(&visit(&collection)?))
            }
            ReplayRequest::Calendar { collection, .. } | ReplayRequest::Page { collection, .. } => {
                visit(&collection)?;
                self.at_page_host(StatusCode::FOUND, target)
            }
            ReplayRequest::File { collection, file } => {
                self.whole_file(&visit(&collection)?, &file, headers).await
            }
            ReplayRequest::Record {
                collection,
                file,
                offset,
            } => {
                self.stored_record(&visit(&collection)?, &file, offset)
                    .await
            }
            ReplayRequest::Metadata { collection, job } => {
                self.job_metadata(&visit(&collection)?, &job).await
            }
        }
    }

    /// Returns the named collection, or the only one where none is named.
    fn named_or_sole<'a>(&'a self, name: Option<&'a str>) -> Result<&'a str, Notice> {
        if let Some(name) = name {
            return Ok(name);
        }
        let unnamed = self.parts.collections.sole_collection();
        unnamed.map(|collection| collection.name()).ok_or_else(|| {
            let words = "There are several collections; ask /<collection>/cdx for one of them.";
            Notice::not_found(words)
        })
    }

    fn visit(
        &self,
        peer: SocketAddr,
        head: &axum::http::request::Parts,
        name: &str,
    ) -> Result<Visit, Notice> {
        let headers = &head.headers;
        let Some(collection) = self.parts.collections.find_collection(name) else {
            let known: Vec<&str> = self.parts.collections.names().collect();
            let words = format!(
                "There is no collection `{name}`; there are: {}.",
                known.join(", ")
            );
            return Err(Notice::new(
                StatusCode::NOT_FOUND,
                "No such collection",
                words,
            ));
        };
        let visitor = visitors::visitor_of(&self.parts.visitors, peer, headers);
        Ok(Visit {
            addresses: Addresses::new(&self.origin(headers), collection.name()),
            collection: Arc::clone(collection),
            visitor,
            now: self.parts.clock.now(),
            method: if head.method == Method::HEAD {
                ReplyMethod::Head
            } else {
                ReplyMethod::Get
            },
        })
    }

    /// Returns the origin under which the client has reached the server.
    fn origin(&self, headers: &HeaderMap) -> String {
        if let Some(url) = &self.settings.url {
            return url.clone();
        }
        let scheme = match self.settings.certificate {
            Some(_) => "https",
            None => "http",
        };
        let named = headers
            .get(HOST)
            .and_then(|host| Authority::try_from(host.as_bytes()).ok());
        // A name and a port, and nothing that a link could be bent with.
        let is_plain = |host: &Authority| {
            let mut bytes = host.as_str().bytes();
            bytes.all(|b| {
                b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':' | b'[' | b']')
            })
        };
        match named.filter(is_plain) {
            Some(host) => format!("{scheme}://{host}"),
            None => format!("{scheme}://{}", self.address),
        }
    }
}

/// Returns the body for the route of a request that is neither GET nor HEAD. The body of a request for an archived page
/// is read here: with the method it is part of the key of the capture.
async fn prepare_body(
    request: &mut ReplayRequest,
    head: &axum::http::request::Parts,
    body: Body,
    is_of_worker: bool,
) -> Result<Body, Notice> {
    // Pages of the archive send forms and more, whose captures have keys of their own.
    if let ReplayRequest::Memento { target, .. } | ReplayRequest::TimeGate { target, .. } = request
        && is_of_worker
    {
        *target = delivered::posted_target(target.clone(), head, body).await?;
        return Ok(Body::empty());
    }
    let is_query = head.method == Method::POST && matches!(request, ReplayRequest::Lookup { .. });
    if is_query {
        Ok(body)
    } else {
        Err(not_allowed("GET, HEAD"))
    }
}

const fn cdx_dialect(dialect: LookupDialect) -> Dialect {
    match dialect {
        LookupDialect::Pywb => Dialect::Pywb,
        LookupDialect::InternetArchive => Dialect::Wayback,
        LookupDialect::Outback => Dialect::OutbackCdx,
    }
}

fn not_allowed(methods: &str) -> Notice {
    let words = format!(
        "Only {methods} can be used here; queries of /<collection>/cdx may also come by POST."
    );
    let notice = Notice::new(StatusCode::METHOD_NOT_ALLOWED, "Not allowed", words);
    notice.with_fields([("allow", methods.to_owned())])
}

fn invalid(error: &InvalidRequest) -> Notice {
    let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::BAD_REQUEST);
    match status {
        StatusCode::NOT_FOUND => Notice::not_found(error.to_string()),
        StatusCode::URI_TOO_LONG => Notice::new(status, "Too long", error.to_string()),
        _ => Notice::bad_request(error.to_string()),
    }
}

impl std::fmt::Debug for ServerParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts")
            .field("collections", &self.collections)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
