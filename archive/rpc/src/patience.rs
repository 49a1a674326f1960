//! A stream whose writes have a limit of time, so that a client that does not read cannot keep a connection for long.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A stream that fails when a write waits longer than its limit.
#[derive(Debug)]
pub struct PatientWriter<S> {
    stream: S,
    patience: Duration,
    /// The timer that runs while a write waits.
    limit: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl<S> PatientWriter<S> {
    /// Returns the stream with a limit on its writes. To be made within a runtime.
    pub fn new(stream: S, patience: Duration) -> Self {
        Self {
            stream,
            patience,
            limit: Box::pin(tokio::time::sleep(patience)),
            is_waiting: false,
        }
    }

    /// Returns the outcome of a write, or an error if it has waited for too long.
    fn bounded<T>(
        &mut self,
        outcome: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.is_waiting = false;
            return outcome;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.limit.as_mut().reset(Instant::now() + self.patience);
        }
        match self.limit.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the client does not read",
            ))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PatientWriter<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PatientWriter<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.bounded(outcome, cx)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(cx);
        self.bounded(outcome, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.bounded(outcome, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.bounded(outcome, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Fails if a client that never reads keeps a writer for good, or one that reads slowly is cut off.
    #[tokio::test]
    async fn unread_write_ends_after_its_limit() {
        let (near, mut far) = tokio::io::duplex(8);
        let mut writer = PatientWriter::new(near, Duration::from_millis(50));
        writer.write_all(b"12345678").await.unwrap();
        let error = writer.write_all(b"9").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let mut read = [0; 8];
        far.read_exact(&mut read).await.unwrap();
        writer.write_all(b"9").await.unwrap();
    }
}
