//! Raw answers: the payload of a capture as it was captured, with its head told of.
//!
//! Owns the stream to the client, and what is counted and said of the digest of the payload.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use archive_daemon::Counter;
use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_SECURITY_POLICY, RANGE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use futures_util::Stream;
use viewer_replay::memento::Field;
use viewer_replay::request::{Addresses, Modifier};
use viewer_replay::response::{Extent, Method, Redirects, Reply, ReplyOptions};

use super::shown::Shown;
use super::{Server, Visit};
use crate::answer::put;
use crate::records::{BodySlice, PayloadVerdict, RecordBody, RecordError};

/// The field that says that a payload does not have the digest of its record.
const MISMATCH: (&str, &str) = ("X-Archive-Payload-Digest", "mismatch");

/// The policy for archived bytes that it opens as a page of its own: nothing leaves the frame.
const OPENED_ALONE: &str =
    "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; media-src data:";

/// How a client asks for raw bytes.
#[derive(Debug)]
pub(super) struct RawRequest<'a> {
    modifier: Option<Modifier>,
    addresses: &'a Addresses,
    headers: &'a HeaderMap,
    method: Method,
}

impl<'a> RawRequest<'a> {
    pub(super) const fn new(
        visit: &'a Visit,
        modifier: Option<Modifier>,
        headers: &'a HeaderMap,
    ) -> Self {
        Self {
            modifier,
            addresses: &visit.addresses,
            headers,
            method: visit.method,
        }
    }

    /// Whether it comes from a service worker, which follows redirects on its own.
    fn is_of_worker(&self) -> bool {
        self.headers.contains_key("x-serviceworker")
    }

    /// Whether a browser would show the bytes as a page.
    fn is_navigation(&self) -> bool {
        let mode = self.headers.get("sec-fetch-mode");
        mode.is_some_and(|mode| mode.as_bytes().eq_ignore_ascii_case(b"navigate"))
    }

    fn redirects(&self) -> Redirects<'a> {
        if self.is_of_worker() {
            return Redirects::ToWorker;
        }
        match self.modifier {
            Some(Modifier::Identity) => Redirects::Told,
            modifier => Redirects::InArchive {
                addresses: self.addresses,
                modifier,
            },
        }
    }
}

impl Server {
    /// Answers with the bytes of a capture.
    pub(super) fn raw(
        &self,
        shown: Shown,
        asked: &RawRequest<'_>,
        url: &str,
        fields: Vec<Field>,
    ) -> Response<Body> {
        let Shown {
            capture,
            message,
            payload,
        } = shown;
        let media = message
            .media()
            .or(payload.message.media())
            .map(<[u8]>::to_vec);
        let options = ReplyOptions {
            url,
            time: capture.capture.timestamp,
            media: media.as_deref(),
            redirects: asked.redirects(),
            is_decoded: false,
        };
        let mut reply = Reply::new(message.head(), &options);
        add_faults(&mut reply, &payload.body);
        for (name, value) in fields {
            reply.add(name, value);
        }
        let ranges: Vec<&[u8]> = asked
            .headers
            .get_all(RANGE)
            .iter()
            .map(HeaderValue::as_bytes)
            .collect();
        let (reply, extent) = reply.with_extent(asked.method, &ranges, payload.body.length());
        let body = self.body(payload.body, extent, url);
        let mut response = response(&reply, body);
        if asked.is_navigation() && !asked.is_of_worker() {
            let policy = HeaderValue::from_static(OPENED_ALONE);
            response
                .headers_mut()
                .insert(CONTENT_SECURITY_POLICY, policy);
        }
        response
    }

    /// The bytes of a body that are sent, counted at their end.
    pub(super) fn body(&self, body: RecordBody, extent: Extent, url: &str) -> Body {
        if extent.take == Some(0) {
            return Body::empty();
        }
        let is_whole = extent.is_whole(body.length());
        let slice = if is_whole {
            body.all()
        } else {
            let end = extent
                .take
                .map_or(u64::MAX, |take| extent.skip.saturating_add(take));
            body.slice(extent.skip..end)
        };
        Body::from_stream(CountedSlice {
            slice,
            url: url.to_owned(),
            right: self.parts.instruments.digests_right.clone(),
            wrong: self.parts.instruments.digests_wrong.clone(),
            broken: self.parts.instruments.broken.clone(),
        })
    }
}

/// Says what is known to be wrong with a body.
pub(super) fn add_faults(reply: &mut Reply, body: &RecordBody) {
    let RecordBody::Whole(whole) = body else {
        return;
    };
    if whole.verdict == PayloadVerdict::Differs {
        reply.add(MISMATCH.0, MISMATCH.1);
    }
    if let Some(fault) = &whole.fault {
        reply.add("X-Archive-Damage", fault);
    }
}

/// A response of the replay host with the head that was decided.
pub(super) fn response(reply: &Reply, body: Body) -> Response<Body> {
    let mut response = plain_response(reply, body);
    let headers = response.headers_mut();
    put(headers, "Cross-Origin-Resource-Policy", "same-origin");
    response
}

/// A response with the head that was decided, and nothing else.
pub(super) fn plain_response(reply: &Reply, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
    let headers = response.headers_mut();
    for (name, value) in &reply.fields {
        // Archived fields may repeat a name.
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    response
}

/// A body whose end is counted.
struct CountedSlice {
    slice: BodySlice,
    url: String,
    right: Counter,
    wrong: Counter,
    broken: Counter,
}

impl Stream for CountedSlice {
    type Item = Result<Bytes, RecordError>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, RecordError>>> {
        let next = ready!(self.slice.poll_bytes(cx));
        match &next {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                self.broken.inc();
                tracing::warn!(url = self.url, %error, "an answer broke off");
            }
            None => match self.slice.verdict.take() {
                Some(PayloadVerdict::Matches) => {
                    self.right.inc();
                }
                Some(PayloadVerdict::Differs) => {
                    self.wrong.inc();
                    tracing::warn!(
                        url = self.url,
                        "the payload does not have the digest of its record"
                    );
                }
                Some(PayloadVerdict::Unchecked) | None => {}
            },
        }
        Poll::Ready(next)
    }
}
