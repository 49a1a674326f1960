//! Payloads that do not have the digest of their record: counted, said in the log, and listed.
//!
//! Owns the list. It holds the last ones that were seen since the start, each record once, and is as bounded as memory
//! has to be; the lasting word about a record is its digest, which anybody can check again.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use archive_daemon::Counter;
use archive_formats::cdx::Capture;
use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Response};
use futures_util::Stream;
use jiff::Timestamp;
use parking_lot::Mutex;

use super::{Server, Visit};
use crate::records::{AnswerBody, PayloadVerdict, RecordError};

/// The most captures that are listed.
const MOST: usize = 1_000;

/// The captures whose payload had another digest, the last one at the end. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Mismatches {
    seen: Arc<Mutex<VecDeque<Mismatch>>>,
}

/// A capture whose payload had another digest.
#[derive(Clone, Debug)]
struct Mismatch {
    capture: Capture,
    since: Timestamp,
}

impl Mismatches {
    fn note(&self, capture: &Capture, now: Timestamp) {
        let mut seen = self.seen.lock();
        let is_known = |own: &Mismatch| {
            own.capture.file == capture.file && own.capture.offset == capture.offset
        };
        if seen.iter().any(is_known) {
            return;
        }
        seen.push_back(Mismatch {
            capture: capture.clone(),
            since: now,
        });
        while seen.len() > MOST {
            seen.pop_front();
        }
    }

    fn all(&self) -> Vec<Mismatch> {
        let seen = self.seen.lock();
        seen.iter().cloned().collect()
    }
}

impl Server {
    /// Returns the mismatches among the captures of a collection that the visitor may see, a line of JSON each.
    pub(super) fn mismatch_list(&self, visit: &Visit) -> Response<Body> {
        let mut lines = String::new();
        for Mismatch { capture, since } in self.mismatches.all() {
            if !visit.decide(&capture).is_allowed() {
                continue;
            }
            let line = serde_json::json!({
                "url": capture.original,
                "timestamp": capture.timestamp.to_string(),
                "digest": capture.digest,
                "filename": capture.file,
                "offset": capture.offset,
                "since": since.to_string(),
            });
            lines.push_str(&line.to_string());
            lines.push('\n');
        }
        let mut response = Response::new(Body::from(lines));
        let media = HeaderValue::from_static("text/x-ndjson");
        response.headers_mut().insert(CONTENT_TYPE, media);
        response
    }

    /// Returns the watch over the payload of a capture on its way to the client.
    pub(super) fn watch_payload(&self, visit: &Visit, capture: &Capture) -> PayloadWatch {
        let instruments = &self.parts.instruments;
        PayloadWatch {
            capture: capture.clone(),
            now: visit.now,
            mismatches: self.mismatches.clone(),
            right: instruments.digests_right.clone(),
            wrong: instruments.digests_wrong.clone(),
            broken: instruments.broken.clone(),
        }
    }
}

/// The watch over one payload.
pub(super) struct PayloadWatch {
    capture: Capture,
    now: Timestamp,
    mismatches: Mismatches,
    right: Counter,
    wrong: Counter,
    broken: Counter,
}

impl PayloadWatch {
    /// Returns a body that is watched to its end.
    pub(super) const fn watch_body(self, body: AnswerBody) -> WatchedBody {
        WatchedBody { body, watch: self }
    }

    fn url(&self) -> &str {
        self.capture.original.as_deref().unwrap_or_default()
    }

    fn finish(&self, verdict: Option<PayloadVerdict>) {
        match verdict {
            Some(PayloadVerdict::Matches) => {
                self.right.inc();
            }
            Some(PayloadVerdict::Differs) => {
                self.wrong.inc();
                self.mismatches.note(&self.capture, self.now);
                tracing::warn!(
                    url = self.url(),
                    file = self.capture.file.as_deref(),
                    offset = self.capture.offset,
                    "the payload does not have the digest of its record"
                );
            }
            Some(PayloadVerdict::Unchecked) | None => {}
        }
    }
}

/// A body whose end is judged.
pub(super) struct WatchedBody {
    body: AnswerBody,
    watch: PayloadWatch,
}

impl Stream for WatchedBody {
    type Item = Result<Bytes, RecordError>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, RecordError>>> {
        let Self { body, watch } = &mut *self;
        let next = ready!(Pin::new(&mut *body).poll_next(cx));
        match &next {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                watch.broken.inc();
                tracing::warn!(url = watch.url(), %error, "an answer broke off");
            }
            None => watch.finish(body.verdict.take()),
        }
        Poll::Ready(next)
    }
}
