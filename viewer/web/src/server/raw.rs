//! Raw answers: the payload of a capture as it was captured, with its head under other names.
//!
//! Owns their head, ranges, and what is said of the digest of the payload.

use axum::body::Body;
use axum::http::header::RANGE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use viewer_replay::request::{Addresses, Modifier};
use viewer_replay::response::{Extent, Redirects, ReplyHead, ReplyMethod, ReplyOptions};

use super::facts::fetch_facts;
use super::mismatches::PayloadWatch;
use super::shown::{CaptureContent, OutgoingCapture};
use super::{Server, Visit};
use crate::answer::put_header;
use crate::records::{PayloadVerdict, RecordBody};

/// The field that says that a payload does not have the digest of its record.
const MISMATCH: (&str, &str) = ("X-Archive-Payload-Digest", "mismatch");

/// The request for raw bytes.
#[derive(Debug)]
pub(super) struct RawRequest<'a> {
    modifier: Option<Modifier>,
    addresses: &'a Addresses,
    headers: &'a HeaderMap,
    method: ReplyMethod,
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

    /// Returns whether the request comes from a service worker, which follows redirects on its own.
    fn is_of_worker(&self) -> bool {
        self.headers.contains_key("x-serviceworker") || fetch_facts(self.headers).is_of_worker()
    }

    fn redirects(&self) -> Redirects<'a> {
        if self.is_of_worker() {
            return Redirects::ToWorker;
        }
        match self.modifier {
            Some(Modifier::Identity) => Redirects::Reported,
            modifier => Redirects::InArchive {
                addresses: self.addresses,
                modifier,
            },
        }
    }
}

impl Server {
    /// Answers with the bytes of a capture.
    pub(super) fn answer_raw(
        &self,
        visit: &Visit,
        asked: &RawRequest<'_>,
        answer: OutgoingCapture,
    ) -> Response<Body> {
        let OutgoingCapture {
            content,
            url,
            fields,
        } = answer;
        let CaptureContent {
            capture,
            message,
            payload,
        } = content;
        let media = message
            .media()
            .or(payload.message.media())
            .map(<[u8]>::to_vec);
        let options = ReplyOptions {
            url: &url,
            time: capture.capture.timestamp,
            media: media.as_deref(),
            redirects: asked.redirects(),
            is_decoded: false,
        };
        let mut reply = ReplyHead::new(message.head(), &options);
        add_faults(&mut reply, &payload.body);
        for (name, value) in fields {
            reply.add_field(name, value);
        }
        let ranges: Vec<&[u8]> = asked
            .headers
            .get_all(RANGE)
            .iter()
            .map(HeaderValue::as_bytes)
            .collect();
        let (reply, extent) = reply.with_extent(asked.method, &ranges, payload.body.length());
        let watch = self.watch_payload(visit, &capture.capture);
        stored_response(&reply, stored_body(payload.body, extent, watch))
    }
}

/// Returns the bytes of a body that are sent, watched to their end.
pub(super) fn stored_body(body: RecordBody, extent: Extent, watch: PayloadWatch) -> Body {
    if extent.take == Some(0) {
        return Body::empty();
    }
    let is_whole = extent.is_whole(body.length());
    let answer = if is_whole {
        body.stream_all()
    } else {
        let end = extent
            .take
            .map_or(u64::MAX, |take| extent.skip.saturating_add(take));
        body.stream_range(extent.skip..end)
    };
    Body::from_stream(watch.watch_body(answer))
}

/// Names the known faults of a body in the head.
pub(super) fn add_faults(reply: &mut ReplyHead, body: &RecordBody) {
    let Some(whole) = body.whole() else {
        return;
    };
    if whole.verdict == PayloadVerdict::Differs {
        reply.add_field(MISMATCH.0, MISMATCH.1);
    }
    if let Some(fault) = &whole.fault {
        reply.add_field("X-Archive-Damage", fault);
    }
}

/// Returns a response of the replay host with the head that was decided.
pub(super) fn stored_response(reply: &ReplyHead, body: Body) -> Response<Body> {
    let mut response = plain_response(reply, body);
    let headers = response.headers_mut();
    put_header(headers, "Cross-Origin-Resource-Policy", "same-origin");
    response
}

/// Returns a response with the head that was decided, and nothing else.
pub(super) fn plain_response(reply: &ReplyHead, body: Body) -> Response<Body> {
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
