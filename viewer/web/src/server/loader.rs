//! The loader and the service worker: how a browser comes to show archived pages.
//!
//! Owns the few files of the replay host itself. `/static/worker.js` is our worker, or the one that the operator has
//! set; every other request for the script of a service worker is refused, so that no archived one ever takes over.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use archive_formats::digest::{Algorithm, digest_bytes};
use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use viewer_replay::delivery::DeliveryForm;
use viewer_replay::html::escape_html;
use viewer_replay::policy;
use viewer_replay::request::{Addresses, Modifier, ReplayTarget, RequestedTime, header_safe};

use super::delivered::{secure_headers, set_header};
use super::facts::fetch_facts;
use super::mementos::MementoRequest;
use super::{Server, Visit};
use crate::answer::Notice;

/// The path of the worker.
const WORKER: &str = "/static/worker.js";

/// Our worker.
const OWN_WORKER: &str = include_str!("../../worker/worker.js");

/// The script of the loader of our worker.
const LOADER: &str = include_str!("../../worker/loader.js");

/// The script of the loader of a worker that the operator has set, which has to be one that understands wabac's
/// messages.
const OTHER_LOADER: &str = include_str!("../../worker/loader_other.js");

/// The largest worker that an operator may set, in bytes.
const LARGEST_WORKER: u64 = 16 << 20;

/// The service worker of the replay host.
#[derive(Clone, Debug)]
pub(crate) struct WorkerScript {
    bytes: Bytes,
    is_own: bool,
    loader_hash: String,
}

/// The reason why the worker of the operator cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorkerScriptError {
    /// The file of the worker cannot be read.
    #[error("replay.service_worker: cannot read {}: {source}", .path.display())]
    Read {
        /// The path of the worker's file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The file of the worker is empty, or larger than a script that a browser would load.
    #[error("replay.service_worker: {} is empty, or has more than {LARGEST_WORKER} bytes", .0.display())]
    Size(PathBuf),
}

impl WorkerScript {
    /// Returns our worker, or the one in a file.
    pub(crate) fn open_script(file: Option<&Path>) -> Result<Self, WorkerScriptError> {
        let Some(path) = file else {
            return Ok(Self::new(Bytes::from_static(OWN_WORKER.as_bytes()), true));
        };
        let mut bytes = Vec::new();
        let read =
            File::open(path).and_then(|file| file.take(LARGEST_WORKER + 1).read_to_end(&mut bytes));
        let path = || path.to_owned();
        read.map_err(|source| WorkerScriptError::Read {
            path: path(),
            source,
        })?;
        if bytes.is_empty() || bytes.len() as u64 > LARGEST_WORKER {
            return Err(WorkerScriptError::Size(path()));
        }
        Ok(Self::new(bytes.into(), false))
    }

    fn new(bytes: Bytes, is_own: bool) -> Self {
        let loader = if is_own { LOADER } else { OTHER_LOADER };
        let hash = digest_bytes(Algorithm::Sha256, loader.as_bytes());
        Self {
            bytes,
            is_own,
            loader_hash: STANDARD.encode(hash.as_bytes()),
        }
    }

    /// Returns whether the worker is ours.
    pub(super) const fn is_own(&self) -> bool {
        self.is_own
    }

    fn loader(&self) -> &'static str {
        if self.is_own { LOADER } else { OTHER_LOADER }
    }
}

impl Server {
    /// Answers requests for the service worker; `None` for all others.
    pub(super) fn worker_script(
        &self,
        target: &str,
        headers: &HeaderMap,
    ) -> Option<Result<Response<Body>, Notice>> {
        let path = target.split('?').next().unwrap_or_default();
        if path == WORKER {
            return Some(Ok(self.own_worker()));
        }
        fetch_facts(headers)
            .is_service_worker()
            .then(|| Err(archived_worker()))
    }

    fn own_worker(&self) -> Response<Body> {
        let worker = &self.parts.worker;
        let mut response = Response::new(Body::from(worker.bytes.clone()));
        let headers = response.headers_mut();
        set_header(headers, CONTENT_TYPE, "text/javascript; charset=utf-8");
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert("service-worker-allowed", HeaderValue::from_static("/"));
        headers.insert(
            "cross-origin-resource-policy",
            HeaderValue::from_static("same-origin"),
        );
        let policy = if worker.is_own {
            policy::SERVICE_WORKER
        } else {
            // The worker of the operator may load parts of itself, and has to ask its own host as ours does.
            "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self'"
        };
        set_header(headers, CONTENT_SECURITY_POLICY, policy);
        response
    }

    /// Answers requests for pages that are not given to everybody; `None` if the capture itself is to be given.
    pub(super) fn instead_of_page(
        &self,
        visit: &Visit,
        delivery: DeliveryForm,
        time: Option<&RequestedTime>,
        request: MementoRequest<'_>,
    ) -> Option<Result<Response<Body>, Notice>> {
        let MementoRequest {
            modifier, target, ..
        } = request;
        match delivery {
            DeliveryForm::Loader => Some(Ok(self.loader(visit, time, modifier, target))),
            DeliveryForm::FramePage => Some(self.frame_page(visit, time, target)),
            DeliveryForm::ServiceWorker => Some(Err(archived_worker())),
            _ => None,
        }
    }

    /// Returns the address of the page that frames a capture, at the page host.
    fn frame_address(
        &self,
        visit: &Visit,
        time: Option<&RequestedTime>,
        target: &ReplayTarget,
    ) -> Option<String> {
        let host = self.parts.page_host.as_ref()?;
        let collection = visit.collection.name();
        let time = time.map_or(String::new(), |time| format!("{}/", time.digits()));
        let url = header_safe(target.url());
        Some(format!("{host}/replay/{collection}/{time}{url}"))
    }

    /// Redirects a visitor to the page host.
    fn frame_page(
        &self,
        visit: &Visit,
        time: Option<&RequestedTime>,
        target: &ReplayTarget,
    ) -> Result<Response<Body>, Notice> {
        let Some(address) = self.frame_address(visit, time, target) else {
            let addresses = Addresses::new("", visit.collection.name());
            let plain = match time {
                Some(time) => format!("/{}/{}/…", visit.collection.name(), time.digits()),
                None => addresses.time_gate("…"),
            };
            let words = "This address is for the frame of a page on another host, which keeps archived pages apart from \
                         everything else.";
            return Err(Notice::new(StatusCode::OK, "Shown in a frame only", words)
                .and_words(format!("Without scripts the page is at {plain}"))
                .and_words(
                    "The people who run this server name the other host in the setting web.url.",
                ));
        };
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::FOUND;
        let headers = response.headers_mut();
        match HeaderValue::from_str(&address) {
            Ok(address) => drop(headers.insert(LOCATION, address)),
            Err(_unwritable) => return Err(Notice::bad_request("The URL cannot be written.")),
        }
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(
            "vary",
            HeaderValue::from_static("sec-fetch-dest, x-replay-worker"),
        );
        Ok(response)
    }

    /// Returns the page that registers the worker and loads itself again.
    fn loader(
        &self,
        visit: &Visit,
        time: Option<&RequestedTime>,
        modifier: Option<Modifier>,
        target: &ReplayTarget,
    ) -> Response<Body> {
        let collection = visit.collection.name();
        let digits = time.map_or("", RequestedTime::digits);
        let modifier = modifier.map_or("", Modifier::name);
        let url = header_safe(target.url());
        let own = escape_html(&format!("/{collection}/{digits}{modifier}/{url}"));
        let plain = match time {
            Some(_) => escape_html(&format!("/{collection}/{digits}/{url}")),
            None => escape_html(&format!("/{collection}/{url}")),
        };
        let page = self.frame_address(visit, time, target);
        let page = escape_html(&page.unwrap_or_default());
        let worker = &self.parts.worker;
        let script = worker.loader();
        let html = format!(
            "<!doctype html>\n<html lang=\"en\" data-own=\"{own}\" data-page=\"{page}\" data-collection=\"{collection}\">\n\
             <meta charset=\"utf-8\">\n<title>Archived page</title>\n<style>body{{font:1rem/1.5 sans-serif;margin:2rem;\
             color-scheme:light dark}}p{{overflow-wrap:anywhere}}</style>\n\
             <p id=\"wait\" role=\"status\">The archived page is loading.</p>\n\
             <p id=\"alone\" hidden>Archived pages are shown within a frame of another host. \
             <a href=\"{plain}\">Show this one without scripts</a></p>\n\
             <p id=\"failed\" hidden>Your browser does not let the archive's service worker run here, so that the page cannot be \
             shown with its scripts. <a href=\"{plain}\">Show it without scripts</a></p>\n\
             <noscript><p>Scripts are off. <a href=\"{plain}\">Show the page without scripts</a></p></noscript>\n\
             <script>{script}</script>\n</html>\n"
        );
        let mut response = Response::new(Body::from(html));
        let headers = response.headers_mut();
        set_header(headers, CONTENT_TYPE, "text/html; charset=utf-8");
        let policy = self.host_facts().loader_script(&worker.loader_hash);
        set_header(headers, CONTENT_SECURITY_POLICY, &policy);
        secure_headers(headers);
        response
    }
}

/// Returns archived service workers are not run.
fn archived_worker() -> Notice {
    let words = "Archived service workers are not run: the archive's own one takes their place.";
    Notice::new(StatusCode::FORBIDDEN, "Not run", words)
}
