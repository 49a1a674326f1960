//! Connections from browsers, as all listeners of the viewer take them: accepted, limited, and drained at the stop.
//!
//! Owns the limits of a connection: how many there are, how long the head of a request may take, and how large a head
//! may be. HTTP/1.1 only. Knows neither TLS nor tunnels, and does not answer: a listener does.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::Gauge;
use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The first byte of a TLS handshake.
pub const HANDSHAKE: u8 = 0x16;

/// The most fields of the head of a request.
const MOST_FIELDS: usize = 100;

/// The room in the head of a request beside the longest target, in bytes.
const FIELDS_ROOM: usize = 48 * 1024;

/// The pause after an error of the system that would come back at once.
const PAUSE: Duration = Duration::from_millis(100);

/// The limits that a listener holds its clients to.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// The most connections that are open at once.
    pub connections: usize,
    /// The longest target of a request, in bytes.
    pub longest_target: usize,
    /// The longest time that a client may take to send the head of a request.
    pub head_time: Duration,
    /// The longest time that a client may leave an answer unread.
    pub unread: Duration,
    /// The longest time that answers under way may take after the stop.
    pub drain: Duration,
}

/// A listener for browsers.
#[derive(Debug)]
pub struct BrowserListener {
    /// The bound socket.
    pub listener: TcpListener,
    /// The limits of each connection.
    pub limits: ConnectionLimits,
    /// The number of connections that are open.
    pub open: Gauge,
    /// The stop of the listener.
    pub stop: CancellationToken,
}

/// A connection of a browser.
#[derive(Clone, Debug)]
pub struct BrowserConnection {
    /// The address of the client.
    pub peer: SocketAddr,
    /// The limits that the connection is held to.
    pub limits: ConnectionLimits,
    /// The stop of the listener.
    pub stop: CancellationToken,
}

impl BrowserListener {
    /// Serves until the stop; then no connection is accepted, answers under way are completed, and after the drain are
    /// cut.
    ///
    /// # Errors
    ///
    /// Never: the result is that of every task.
    pub async fn run_listener<F>(
        self,
        serve: impl Fn(TcpStream, BrowserConnection) -> F,
    ) -> Result<(), Infallible>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let room = Arc::new(Semaphore::new(self.limits.connections));
        let mut tasks = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = self.stop.cancelled() => break,
                Some(_ended) = tasks.join_next() => continue,
                accepted = accept(&self.listener, &room) => accepted,
            };
            match accepted {
                Ok((stream, peer, permit)) => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%peer, %error, "closed at once");
                        continue;
                    }
                    let connection = BrowserConnection {
                        peer,
                        limits: self.limits,
                        stop: self.stop.clone(),
                    };
                    let open = self.open.clone();
                    let serving = serve(stream, connection);
                    tasks.spawn(async move {
                        open.inc();
                        serving.await;
                        open.dec();
                        drop(permit);
                    });
                }
                Err(error) if is_of_client(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections; raise the limit of open files");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        drop(self.listener);
        let drained = async { while tasks.join_next().await.is_some() {} };
        if timeout(self.limits.drain, drained).await.is_err() {
            tracing::warn!(after = ?self.limits.drain, "answers still under way were cut");
        }
        Ok(())
    }
}

/// Returns the next connection, once there is room for it.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(room)
        .acquire_owned()
        .await
        .map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, permit))
}

fn is_of_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

impl BrowserConnection {
    /// Answers the requests of a stream, to its end or to an upgrade; after the stop, only the one under way.
    pub async fn run_exchange<S, F>(
        &self,
        stream: S,
        answer: impl Fn(Request<Incoming>) -> F + Send,
    ) where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        F: Future<Output = Response<Body>> + Send,
    {
        let service = service_fn(move |request| {
            let answering = answer(request);
            async move { Ok::<_, Infallible>(answering.await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.head_time)
            .max_headers(MOST_FIELDS)
            .max_buf_size(self.limits.longest_target.saturating_add(FIELDS_ROOM))
            .half_close(false)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.as_mut().await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(peer = %self.peer, %error, "the connection broke off");
        }
    }
}
