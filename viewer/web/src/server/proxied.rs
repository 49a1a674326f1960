//! The archive behind the proxy: the same look-ups, decisions and records as on the replay listener, answered as the
//! archived servers did.
//!
//! Owns how a view of the proxy (a collection, harvest jobs, a date) becomes a visit. Access is decided by the address
//! of the client alone: fields of its request may come from an archived page.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use archive_client::{ListItem, Selection};
use archive_formats::cdx::Capture;
use archive_formats::cdx::query::{
    Anchoring, CaptureField, CaptureQuery, Filter, FilterTest, KeyMatch, Order, Pattern,
};
use archive_formats::date::Stamp;
use axum::body::Body;
use axum::http::header::RANGE;
use axum::http::{HeaderValue, Method, Request, Response, StatusCode};
use viewer_proxy::{CaptureAnswer, CaptureRequest, NoAnswer, ProxiedArchive, StoredRequest};
use viewer_replay::access::PeerFacts;
use viewer_replay::memento::proxied_memento;
use viewer_replay::request::Addresses;
use viewer_replay::response::{ReplyHead, ReplyMethod};

use super::look_up::NearbyCaptures;
use super::raw::{add_faults, plain_response, stored_body};
use super::request_guard::{GuardedBody, RequestGuard};
use super::shown::{CaptureContent, no_capture_of};
use super::{NO_ROOM, Server, Visit, index_failed, record_failed};
use crate::answer::Notice;
use crate::collections::{ReplayCollection, job_of, outside_decision};
use crate::records::RecordError;

/// The most harvest jobs that the index filters by; of more, each capture is looked at here.
const FILTERED_JOBS: usize = 100;

impl ProxiedArchive for Server {
    async fn capture(&self, request: CaptureRequest<'_>) -> CaptureAnswer {
        let instruments = &self.parts.instruments;
        let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else {
            instruments.turned_away.inc();
            let words = "The server answers as many requests as it may; try again in a moment.";
            let notice = Notice::unavailable_notice(words).again_after(NO_ROOM);
            return CaptureAnswer::Answered(notice.to_response(request.headers));
        };
        let guard = RequestGuard::begin_request(instruments.under_way.clone(), permit);
        let begun = self.parts.clock.instant();
        let limit = self.settings.answer_time.duration();
        let answered = self
            .parts
            .clock
            .run_with_timeout(limit, self.find_capture(&request))
            .await;
        let response = match answered {
            Ok(Ok(response)) => response,
            Ok(Err(notice)) if notice.status() == StatusCode::NOT_FOUND => {
                instruments.count_answer(404);
                return CaptureAnswer::Missing(notice.words());
            }
            Ok(Err(notice)) => notice.to_response(request.headers),
            Err(_elapsed) => {
                let words = "The archive or its index did not answer in time; try again.";
                Notice::unavailable_notice(words).to_response(request.headers)
            }
        };
        instruments.count_answer(response.status().as_u16());
        let taken = self.parts.clock.elapsed_since(begun);
        instruments.first_byte.observe(taken.as_secs_f64());
        CaptureAnswer::Answered(response.map(|body| Body::new(GuardedBody::new(body, guard))))
    }

    async fn serve_stored(&self, request: StoredRequest<'_>) -> Response<Body> {
        let collection = match self.find_collection(request.collection) {
            Ok(collection) => collection,
            Err(notice) => return notice.to_response(request.headers),
        };
        // The routes of the replay listener, and their decision.
        let path = format!("/{}{}", collection.name(), request.path_and_query);
        let method = match request.method {
            ReplyMethod::Get => Method::GET,
            ReplyMethod::Head => Method::HEAD,
        };
        let asked = Request::builder().method(method).uri(path);
        let Ok(mut asked) = asked.body(Body::empty()) else {
            let notice = Notice::bad_request("The command has characters that no address has.");
            return notice.to_response(request.headers);
        };
        for name in [RANGE, axum::http::header::ACCEPT] {
            for value in request.headers.get_all(&name) {
                asked.headers_mut().append(&name, value.clone());
            }
        }
        self.answer_request(SocketAddr::from((request.client, 0)), asked)
            .await
    }

    async fn jobs_with_data(
        &self,
        collection: Option<&str>,
        jobs: &BTreeSet<u64>,
    ) -> Result<BTreeSet<u64>, NoAnswer> {
        let notice = |notice: Notice| match notice.status() {
            StatusCode::CONFLICT => NoAnswer::Collection(notice.words().concat()),
            _ => NoAnswer::Unavailable(notice.words().concat()),
        };
        let collection = self.find_collection(collection).map_err(notice)?;
        let limit = self.settings.answer_time.duration();
        let listed = self
            .parts
            .clock
            .run_with_timeout(limit, self.jobs_with_files(collection, jobs));
        match listed.await {
            Ok(found) => found.map_err(notice),
            Err(_elapsed) => Err(NoAnswer::Unavailable(
                "The archive did not list its files in time; try again, with fewer jobs."
                    .to_owned(),
            )),
        }
    }

    fn collections(&self) -> Vec<String> {
        let names = self.parts.collections.names();
        names.map(str::to_owned).collect()
    }

    fn sole_collection(&self) -> Option<String> {
        let unnamed = self.parts.collections.sole_collection();
        unnamed.map(|collection| collection.name().to_owned())
    }
}

impl Server {
    /// Answers with a capture as the archived server answered.
    async fn find_capture(&self, request: &CaptureRequest<'_>) -> Result<Response<Body>, Notice> {
        let visit = self.proxy_visit(request)?;
        let time = request.time.unwrap_or_else(|| Stamp::from_time(visit.now));
        let near = match request.jobs {
            None => self.near_target(&visit, request.target, time).await,
            Some(jobs) => self.near_of_jobs(&visit, request, time, jobs).await,
        };
        let near = near.map_err(|error| index_failed(&error))?;
        if near.captures.is_empty() {
            return Err(no_capture_of(request.target));
        }
        let shown = self.show_capture(&visit, &near).await?;
        Ok(self.as_archived(&visit, shown, request))
    }

    fn as_archived(
        &self,
        visit: &Visit,
        shown: CaptureContent,
        request: &CaptureRequest<'_>,
    ) -> Response<Body> {
        let CaptureContent {
            capture,
            message,
            payload,
        } = shown;
        let media = message
            .media()
            .or(payload.message.media())
            .map(<[u8]>::to_vec);
        let mut reply = ReplyHead::as_archived(message.head(), media.as_deref());
        add_faults(&mut reply, &payload.body);
        let url = request.target.url();
        for (name, value) in proxied_memento(url, capture.capture.timestamp) {
            reply.add_field(name, value);
        }
        // The same address has other captures at other dates.
        reply.add_field("Cache-Control", "no-store");
        let ranges = request.headers.get_all(RANGE).iter();
        let ranges: Vec<&[u8]> = ranges.map(HeaderValue::as_bytes).collect();
        let length = payload.body.length();
        let (reply, extent) = reply.with_extent(request.method, &ranges, length);
        let watch = self.watch_payload(visit, &capture.capture);
        plain_response(&reply, stored_body(payload.body, extent, watch))
    }

    fn find_collection(&self, collection: Option<&str>) -> Result<&Arc<ReplayCollection>, Notice> {
        let found = match collection {
            Some(name) => self.parts.collections.find_collection(name),
            None => self.parts.collections.sole_collection(),
        };
        found.ok_or_else(|| {
            let words = "No collection was chosen, or one that is not there any more; choose one at http://viewerproxy.invalid/.";
            Notice::new(StatusCode::CONFLICT, "No collection", words)
        })
    }

    fn proxy_visit(&self, request: &CaptureRequest<'_>) -> Result<Visit, Notice> {
        let collection = self.find_collection(request.collection)?;
        Ok(Visit {
            addresses: Addresses::new("", collection.name()),
            collection: Arc::clone(collection),
            visitor: self.parts.visitors.identify_visitor(&facts(request.client)),
            now: self.parts.clock.now(),
            method: request.method,
        })
    }

    /// Returns the captures nearest to a time, in files of some harvest jobs.
    async fn near_of_jobs(
        &self,
        visit: &Visit,
        request: &CaptureRequest<'_>,
        time: Stamp,
        jobs: &BTreeSet<u64>,
    ) -> Result<NearbyCaptures, index_client::IndexCallError> {
        let mut query = CaptureQuery::new(KeyMatch::Exact(request.target.key().clone()));
        query.order = Order::Closest(time);
        query.filters.extend(job_filter(jobs));
        let query = Self::in_collection(visit, query);
        let is_of_jobs = |capture: &Capture| {
            let job = capture.file.as_deref().and_then(job_of);
            job.is_some_and(|job| jobs.contains(&job))
        };
        let decide = |capture: &Capture| {
            if is_of_jobs(capture) {
                visit.decide(capture)
            } else {
                outside_decision()
            }
        };
        self.collect_captures(&query, decide).await
    }

    /// Returns the jobs of which the archive has files that are in a collection.
    async fn jobs_with_files(
        &self,
        collection: &ReplayCollection,
        jobs: &BTreeSet<u64>,
    ) -> Result<BTreeSet<u64>, Notice> {
        let failed = |error| record_failed(&RecordError::Archive(error));
        let selection = Selection {
            matching: Some(format!("{}.*", of_jobs(jobs))),
            ..Selection::default()
        };
        let archive = self.parts.records.archive();
        let mut listing = archive.list(&selection).await.map_err(failed)?;
        let mut found = BTreeSet::new();
        while let Some(listed) = listing.next().await.map_err(failed)? {
            match listed {
                ListItem::Entry(entry) => {
                    let name = entry.name.as_str();
                    let job = job_of(name).filter(|job| jobs.contains(job));
                    found.extend(job.filter(|_| collection.has_file(name)));
                    if found.len() == jobs.len() {
                        break;
                    }
                }
                ListItem::End(end) if end.gaps.is_empty() => {}
                ListItem::End(_) => {
                    let words = "A part of the archive does not answer, so that files of these jobs may be missing; try again.";
                    return Err(Notice::unavailable_notice(words));
                }
            }
        }
        Ok(found)
    }
}

/// Returns the facts that decide about a client of the proxy.
const fn facts<'a>(client: IpAddr) -> PeerFacts<'a> {
    PeerFacts {
        address: Some(client),
        acl_user: &[],
        forwarded_for: &[],
    }
}

/// Returns an expression for the beginning of the names of the files of jobs.
fn of_jobs(jobs: &BTreeSet<u64>) -> String {
    let numbers: Vec<String> = jobs.iter().map(u64::to_string).collect();
    format!("0*({})-", numbers.join("|"))
}

/// Returns a filter that the index can apply already; it lets through all captures of the jobs.
fn job_filter(jobs: &BTreeSet<u64>) -> Option<Filter> {
    if jobs.len() > FILTERED_JOBS {
        return None;
    }
    let files = Pattern::new(&format!("{}.*", of_jobs(jobs)), Anchoring::Whole).ok()?;
    Some(Filter {
        field: CaptureField::File,
        negate: false,
        test: FilterTest::Matches(files),
    })
}
