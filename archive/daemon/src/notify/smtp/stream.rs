//! The bytes of a mail server, read a line at a time and never beyond a bound.
//!
//! A reader that is given one line cannot keep the next one: bytes that come in the clear behind the answer to
//! `STARTTLS` are read by the TLS handshake, which refuses them, and not as an answer from behind the encryption.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use lettre::transport::smtp::client::AsyncTokioStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The most bytes that a server may send in one conversation, certificates included.
pub(super) const MOST: usize = 256 << 10;

/// The number of bytes that are read at once.
const PIECE: usize = 4096;

/// A connection, read line by line.
#[derive(Debug)]
pub(super) struct Lines {
    inner: TcpStream,
    /// The bytes that were read, and not handed on yet.
    ahead: Vec<u8>,
    left: usize,
}

impl Lines {
    pub(super) const fn new(inner: TcpStream) -> Self {
        Self {
            inner,
            ahead: Vec::new(),
            left: MOST,
        }
    }
}

impl AsyncRead for Lines {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.ahead.is_empty() {
            let mut piece = [0; PIECE];
            let mut piece = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut this.inner).poll_read(context, &mut piece))?;
            let read = piece.filled();
            this.left = this.left.checked_sub(read.len()).ok_or_else(|| {
                io::Error::other(format!("the server said more than {MOST} bytes"))
            })?;
            this.ahead.extend_from_slice(read);
        }
        let end = this.ahead.iter().position(|byte| *byte == b'\n');
        let line = end.map_or(this.ahead.len(), |end| end.saturating_add(1));
        let rest = this.ahead.split_off(line.min(out.remaining()));
        out.put_slice(&this.ahead);
        this.ahead = rest;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Lines {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(context)
    }
}

impl AsyncTokioStream for Lines {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.inner.peer_addr()
    }
}

/// A connection that is encrypted from its first byte on.
#[derive(Debug)]
pub(super) struct EncryptedStream<S> {
    pub(super) inner: S,
    pub(super) peer: SocketAddr,
}

impl<S: AsyncRead + Unpin> AsyncRead for EncryptedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_read(context, out)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for EncryptedStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(context)
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin + std::fmt::Debug> AsyncTokioStream
    for EncryptedStream<S>
{
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}
