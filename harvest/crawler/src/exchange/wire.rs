//! The bytes between this machine and a host, in clear or within TLS.
//!
//! Owns what can be said of a connection that waits for its next request.

use std::io::ErrorKind;
use std::os::fd::AsFd as _;
use std::pin::Pin;
use std::task::Poll;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_openssl::SslStream;
use tokio_rustls::client::TlsStream;

/// A stream that bytes go over in both directions.
pub(super) trait WireStream: AsyncRead + AsyncWrite + Send + Unpin {
    /// Returns the socket below, if there is one.
    fn socket(&self) -> Option<&TcpStream>;
}

impl WireStream for TcpStream {
    fn socket(&self) -> Option<&TcpStream> {
        Some(self)
    }
}

impl WireStream for TlsStream<TcpStream> {
    fn socket(&self) -> Option<&TcpStream> {
        Some(self.get_ref().0)
    }
}

impl WireStream for SslStream<TcpStream> {
    fn socket(&self) -> Option<&TcpStream> {
        Some(self.get_ref())
    }
}

#[cfg(test)]
impl WireStream for tokio::io::DuplexStream {
    fn socket(&self) -> Option<&TcpStream> {
        None
    }
}

/// Returns whether nothing has come while a connection waited: no byte, and not its end.
///
/// The socket itself is asked, because the runtime may not have noticed yet what has come.
pub(super) async fn is_quiet(wire: &mut dyn WireStream) -> bool {
    let mut byte = [0];
    let mut buffer = ReadBuf::new(&mut byte);
    let is_pending = std::future::poll_fn(|context| {
        let read = Pin::new(&mut *wire).poll_read(context, &mut buffer);
        Poll::Ready(read.is_pending())
    });
    is_pending.await && wire.socket().is_none_or(has_nothing)
}

/// Returns whether a socket has neither bytes to be read nor an end.
fn has_nothing(socket: &TcpStream) -> bool {
    let Ok(twin) = socket.as_fd().try_clone_to_owned() else {
        return false;
    };
    let peeked = std::net::TcpStream::from(twin).peek(&mut [0]);
    peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}
