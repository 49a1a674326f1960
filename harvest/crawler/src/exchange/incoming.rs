//! A response on its way, and the time that it has.
//!
//! Owns when a wait is too long, and what is noted while bytes come, by whatever protocol.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use archive_daemon::clock::Clock;

use super::bandwidth::Bandwidth;
use super::receive::{ResponseReceiver, Truncation};
use super::{ExchangeError, ExchangeLimits};

/// The time that an exchange has.
pub(super) struct ExchangeTimer<'a> {
    pub(super) limits: &'a ExchangeLimits,
    pub(super) clock: &'a Clock,
    pub(super) start: Instant,
    /// Where the bytes of the response are counted as they come.
    pub(super) received: &'a AtomicU64,
    /// The most bytes that a body may have for want of room on the disk.
    pub(super) room: &'a AtomicU64,
    /// The bandwidth that all connections share.
    pub(super) bandwidth: &'a Bandwidth,
}

impl ExchangeTimer<'_> {
    /// Waits for the next bytes, or for room for them. `None`: too long.
    pub(super) async fn limit_time<F: Future>(&self, part: F) -> Option<F::Output> {
        let passed = self.clock.elapsed_since(self.start);
        let wait = self.limits.total.saturating_sub(passed);
        let wait = wait.min(self.limits.stall);
        self.clock.run_with_timeout(wait, part).await.ok()
    }
}

/// A response that is being received.
pub(super) struct IncomingResponse {
    pub(super) receiver: ResponseReceiver,
    /// The moment at which the last bytes came.
    pub(super) last: Instant,
    /// The reason why the rest of the response was not waited for, or cannot come.
    pub(super) cut: Option<Truncation>,
    /// Whether the response said its end, other than by the end of the connection.
    pub(super) has_ended: bool,
}

impl IncomingResponse {
    pub(super) fn new(receiver: ResponseReceiver, timer: &ExchangeTimer<'_>) -> Self {
        Self {
            receiver,
            last: timer.start,
            cut: None,
            has_ended: false,
        }
    }

    pub(super) fn take_head(
        &mut self,
        text: &[u8],
        timer: &ExchangeTimer<'_>,
    ) -> Result<(), ExchangeError> {
        self.last = timer.clock.instant();
        let taken = self.receiver.take_head(text);
        taken.map_err(ExchangeError::Storage)
    }

    pub(super) fn take_bytes(
        &mut self,
        bytes: &[u8],
        timer: &ExchangeTimer<'_>,
    ) -> Result<(), ExchangeError> {
        self.last = timer.clock.instant();
        timer
            .received
            .fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let taken = self
            .receiver
            .take_bytes(bytes)
            .map_err(ExchangeError::Storage)?;
        self.receiver.end_above(timer.room.load(Ordering::Relaxed));
        // Bytes that nobody asked for: the next response would begin with them.
        self.has_ended = self.receiver.is_done() && taken == bytes.len();
        Ok(())
    }

    pub(super) fn is_done(&self) -> bool {
        self.receiver.is_done()
    }

    pub(super) fn end_by_timeout(mut self) -> Self {
        self.cut = Some(Truncation::Time);
        self
    }

    pub(super) fn end_by_disconnect(mut self) -> Self {
        self.cut = Some(Truncation::Disconnect);
        self
    }

    pub(super) fn end_complete(mut self) -> Self {
        self.has_ended = true;
        self
    }
}
