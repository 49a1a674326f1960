//! Requests under way: counted, and holding their place, until their answer has ended or was dropped.
//!
//! Owns nothing else; how many there may be is the server's affair.

use std::pin::Pin;
use std::task::{Context, Poll};

use archive_daemon::Gauge;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

/// A guard that counts a request as in flight until its answer has ended or was dropped.
#[derive(Debug)]
pub(super) struct RequestGuard {
    gauge: Gauge,
    _permit: OwnedSemaphorePermit,
}

impl RequestGuard {
    /// Counts a request from now on.
    pub(super) fn begin_request(gauge: Gauge, permit: OwnedSemaphorePermit) -> Self {
        gauge.inc();
        Self {
            gauge,
            _permit: permit,
        }
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.gauge.dec();
    }
}

/// A body that keeps its request counted.
pub(super) struct GuardedBody {
    body: Body,
    _guard: RequestGuard,
}

impl GuardedBody {
    pub(super) const fn new(body: Body, guard: RequestGuard) -> Self {
        Self {
            body,
            _guard: guard,
        }
    }
}

impl HttpBody for GuardedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
