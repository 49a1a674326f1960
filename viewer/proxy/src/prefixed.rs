//! A stream whose first byte was looked at.
//!
//! Owns nothing of what the byte means: it is read again, before everything that follows it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream, and a byte of it that is read once more.
#[derive(Debug)]
pub(crate) struct PrefixedStream<S> {
    first: Option<u8>,
    stream: S,
}

impl<S> PrefixedStream<S> {
    /// Returns the stream of which `first` was read.
    pub(crate) const fn new(first: u8, stream: S) -> Self {
        Self {
            first: Some(first),
            stream,
        }
    }

    /// Returns the byte, while it was not read again.
    pub(crate) const fn first(&self) -> Option<u8> {
        self.first
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PrefixedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buf.remaining() > 0
            && let Some(first) = self.first.take()
        {
            buf.put_slice(&[first]);
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PrefixedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    /// Fails if the byte is lost, comes twice, or is taken by a read without room.
    #[tokio::test]
    async fn first_byte_is_read_again_once() {
        let mut stream = PrefixedStream::new(b'G', b"ET".as_slice());
        assert_eq!(stream.read(&mut []).await.unwrap(), 0);
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "GET");
    }
}
