//! A limit on the slowness of a stream.
//!
//! A sender that sends a byte now and then is never silent, and holds what a stream costs for as long as it likes. The
//! time counts only while a message is awaited, so that a slow reader never blames the sender.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;
use tokio_stream::Stream;
use tonic::Status;

use crate::kind::CallErrorKind;

/// The time over which the rate of a sender is measured.
const WINDOW: Duration = Duration::from_mins(1);

/// A stream that ends with `DEADLINE_EXCEEDED` when fewer bytes come in a minute of waiting than it wants.
///
/// Silence is not its business: [`IdleTimeout`](crate::IdleTimeout) ends a stream on which nothing comes.
#[derive(Debug)]
pub struct LeastRate<S, F> {
    /// The stream, dropped when it is too slow, which resets it for the sender too.
    stream: Option<S>,
    /// Returns the bytes of a message.
    size: F,
    meter: RateMeter,
    /// The time since which a message is awaited.
    since: Option<Instant>,
}

impl<S, F> LeastRate<S, F> {
    /// Wraps `stream`, from which at least `per_second` bytes a second are to come.
    pub const fn new(stream: S, per_second: u64, size: F) -> Self {
        Self {
            stream: Some(stream),
            size,
            meter: RateMeter::new(per_second),
            since: None,
        }
    }
}

impl<S, T, F> Stream for LeastRate<S, F>
where
    S: Stream<Item = Result<T, Status>> + Unpin,
    F: Fn(&T) -> usize + Unpin,
{
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(None);
        };
        let Poll::Ready(message) = Pin::new(stream).poll_next(cx) else {
            self.since.get_or_insert_with(Instant::now);
            return Poll::Pending;
        };
        let waited = self.since.take().map(|since| since.elapsed());
        if let Some(Ok(message)) = &message {
            let size = (self.size)(message);
            if let Err(reason) = self.meter.count(size, waited.unwrap_or_default()) {
                self.stream = None;
                let slow = CallErrorKind::TimedOut.to_status(reason);
                return Poll::Ready(Some(Err(slow)));
            }
        }
        Poll::Ready(message)
    }
}

/// The bytes that came, and the time for which they were awaited.
#[derive(Debug)]
struct RateMeter {
    /// The bytes that are wanted in a minute.
    least: u64,
    bytes: u64,
    waited: Duration,
}

impl RateMeter {
    const fn new(per_second: u64) -> Self {
        Self {
            least: per_second.saturating_mul(WINDOW.as_secs()),
            bytes: 0,
            waited: Duration::ZERO,
        }
    }

    /// Counts a message. The error says that too few bytes have come.
    fn count(&mut self, size: usize, waited: Duration) -> Result<(), String> {
        self.bytes = self.bytes.saturating_add(size as u64);
        self.waited = self.waited.saturating_add(waited);
        if self.waited < WINDOW {
            return Ok(());
        }
        let (bytes, waited) = (self.bytes, self.waited.as_secs());
        self.bytes = 0;
        self.waited = Duration::ZERO;
        if bytes >= self.least {
            return Ok(());
        }
        Err(format!(
            "too slow: {bytes} bytes came in {waited} s, and at least {} are wanted in a minute; send fewer files at once, \
             or over a faster line",
            self.least
        ))
    }
}

#[cfg(test)]
mod tests {
    use tokio_stream::StreamExt;

    use super::*;

    /// Returns how many messages of `size` bytes pass, each after a wait of `waited`.
    fn pass(size: usize, waited: Duration) -> usize {
        let mut meter = RateMeter::new(10);
        (0..30)
            .take_while(|_| meter.count(size, waited).is_ok())
            .count()
    }

    /// Fails if a sender of a byte now and then may go on for ever, one that is fast enough may not, or a reader that
    /// takes its time makes the sender slow.
    #[test]
    fn sender_is_as_fast_as_it_must() {
        let ten = Duration::from_secs(10);
        assert_eq!(pass(100, ten), 30);
        assert_eq!(pass(99, ten), 5, "594 bytes a minute");
        assert_eq!(pass(1, ten), 5);
        assert_eq!(pass(599, 6 * ten), 0);
        assert_eq!(pass(600, 6 * ten), 30);
        assert_eq!(pass(1, Duration::ZERO), 30);
        let mut off = RateMeter::new(0);
        assert!((0..30).all(|_| off.count(0, 6 * ten).is_ok()));
    }

    /// Fails if a stream loses messages, or goes on behind the error of its slowness.
    #[tokio::test]
    async fn slow_stream_ends() {
        let items = || tokio_stream::iter([1_usize, 2, 3].map(Ok::<_, Status>));
        let mut whole = LeastRate::new(items(), 10, |size: &usize| *size);
        for size in 1..4 {
            assert_eq!(whole.next().await.unwrap().unwrap(), size);
        }
        assert!(whole.next().await.is_none());
        let mut slow = LeastRate::new(items(), 10, |size: &usize| *size);
        slow.meter.waited = WINDOW;
        let status = slow.next().await.unwrap().unwrap_err();
        assert!(status.message().contains("too slow"), "{status}");
        assert!(slow.next().await.is_none());
    }
}
