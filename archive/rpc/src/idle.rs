//! A limit on the silence of a stream.
//!
//! The limit of a byte stream is an idle limit: a large file may take hours, a silent sender may not. The time counts
//! only while a message is awaited, so that a slow reader never blames the sender.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};
use tokio_stream::Stream;
use tonic::Status;

use crate::kind::CallErrorKind;

/// A stream that ends with `DEADLINE_EXCEEDED` when no message comes within the limit.
pub struct IdleTimeout<S> {
    /// The stream, dropped when it stalls, which resets it for the sender too.
    stream: Option<S>,
    limit: Duration,
    alarm: Pin<Box<Sleep>>,
    waiting: bool,
}

impl<S> IdleTimeout<S> {
    /// Wraps `stream` so that its silence is limited. Must be called within a runtime.
    pub fn new(stream: S, limit: Duration) -> Self {
        Self {
            stream: Some(stream),
            limit,
            alarm: Box::pin(sleep(limit)),
            waiting: false,
        }
    }
}

impl<S, T> Stream for IdleTimeout<S>
where
    S: Stream<Item = Result<T, Status>> + Unpin,
{
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(message) = Pin::new(stream).poll_next(cx) {
            self.waiting = false;
            if message.is_none() {
                self.stream = None;
            }
            return Poll::Ready(message);
        }
        if !self.waiting {
            self.waiting = true;
            let end = Instant::now() + self.limit;
            self.alarm.as_mut().reset(end);
        }
        match self.alarm.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                self.stream = None;
                let reason = format!("stalled: no message within {:?}", self.limit);
                Poll::Ready(Some(Err(CallErrorKind::TimedOut.to_status(reason))))
            }
        }
    }
}

impl<S> fmt::Debug for IdleTimeout<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdleTimeout")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;
    use tokio_stream::StreamExt;
    use tokio_stream::wrappers::ReceiverStream;

    use super::*;

    /// Fails if a silent stream is waited for without end, or its sender does not learn that it was given up.
    #[tokio::test]
    async fn a_silent_stream_stalls_once_and_is_dropped() {
        let (sender, receiver) = mpsc::channel(4);
        let mut stream = IdleTimeout::new(ReceiverStream::new(receiver), Duration::from_millis(20));
        sender.send(Ok(1)).await.unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), 1);
        let status = stream.next().await.unwrap().unwrap_err();
        assert_eq!(
            (status.code(), CallErrorKind::from_status(&status)),
            (tonic::Code::DeadlineExceeded, CallErrorKind::TimedOut)
        );
        assert!(status.message().contains("stalled"), "{status}");
        assert!(sender.is_closed(), "the sender learns of it");
        assert!(stream.next().await.is_none());
    }

    /// Fails if the time in which the reader did not ask counts as silence of the stream.
    #[tokio::test]
    async fn a_slow_reader_is_no_stall() {
        let (sender, receiver) = mpsc::channel(4);
        let limit = Duration::from_millis(20);
        let mut stream = IdleTimeout::new(ReceiverStream::new(receiver), limit);
        for i in 0..3 {
            sender.send(Ok(i)).await.unwrap();
        }
        drop(sender);
        for i in 0..3 {
            sleep(limit * 2).await;
            assert_eq!(stream.next().await.unwrap().unwrap(), i);
        }
        sleep(limit * 2).await;
        assert!(stream.next().await.is_none());
    }

    /// Fails if an error within a stream changes its kind, or the messages behind it are lost.
    #[tokio::test]
    async fn errors_of_the_stream_pass() {
        let items = [Ok(1), Err(CallErrorKind::Damaged.to_status("x")), Ok(2)];
        let mut stream = IdleTimeout::new(tokio_stream::iter(items), Duration::from_mins(1));
        assert_eq!(stream.next().await.unwrap().unwrap(), 1);
        assert_eq!(
            CallErrorKind::from_status(&stream.next().await.unwrap().unwrap_err()),
            CallErrorKind::Damaged
        );
        assert_eq!(stream.next().await.unwrap().unwrap(), 2);
        assert!(stream.next().await.is_none());
    }
}
