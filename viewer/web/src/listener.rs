//! The listener: connections in, requests to the server, and an end that is graceful and has an end.
//!
//! Owns the limits of a connection: how many there are, how long a handshake and the head of a request may take, how large a
//! head may be, and how long a client may leave what was written unread. HTTP/1.1 only. Who speaks plain HTTP where TLS is
//! spoken is told so, whatever the request.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::Gauge;
use archive_rpc::PatientWriter;
use archive_rpc::browser::BrowserAcceptor;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
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

use crate::answer::Notice;
use crate::pages::PageHost;
use crate::server::Server;

/// The most fields of the head of a request.
const MOST_FIELDS: usize = 100;

/// The room in the head of a request beside the longest target, in bytes.
const FIELDS_ROOM: usize = 48 * 1024;

/// The pause after an error of the system that would come back at once.
const PAUSE: Duration = Duration::from_millis(100);

/// The first byte of a TLS handshake.
const HANDSHAKE: u8 = 0x16;

/// The side of a listener that answers.
pub(crate) trait Site: Send + Sync + 'static {
    /// Answers a request.
    fn answer(
        &self,
        peer: SocketAddr,
        request: Request<Body>,
    ) -> impl Future<Output = Response<Body>> + Send;

    /// Returns the gauge of open connections.
    fn connections(&self) -> &Gauge;
}

impl Site for Server {
    fn answer(
        &self,
        peer: SocketAddr,
        request: Request<Body>,
    ) -> impl Future<Output = Response<Body>> + Send {
        Self::answer(self, peer, request)
    }

    fn connections(&self) -> &Gauge {
        Self::connections(self)
    }
}

impl Site for PageHost {
    fn answer(
        &self,
        peer: SocketAddr,
        request: Request<Body>,
    ) -> impl Future<Output = Response<Body>> + Send {
        Self::answer(self, peer, request)
    }

    fn connections(&self) -> &Gauge {
        Self::connections(self)
    }
}

/// The limits that a listener holds its clients to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    pub(crate) connections: usize,
    pub(crate) longest_target: usize,
    pub(crate) head_time: Duration,
    pub(crate) unread: Duration,
    pub(crate) drain: Duration,
}

/// Serves until `stop`; then no connection is accepted, answers under way go on to their end, and after the drain are cut.
pub(crate) async fn serve<S: Site>(
    listener: TcpListener,
    tls: Option<Arc<BrowserAcceptor>>,
    server: Arc<S>,
    limits: ConnectionLimits,
    stop: CancellationToken,
) -> io::Result<()> {
    let room = Arc::new(Semaphore::new(limits.connections));
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            Some(_ended) = open.join_next() => continue,
            accepted = accept(&listener, &room) => accepted,
        };
        match accepted {
            Ok((stream, peer, permit)) => {
                let connection = Connection {
                    peer,
                    tls: tls.clone(),
                    server: Arc::clone(&server),
                    limits,
                    stop: stop.clone(),
                    _permit: permit,
                };
                open.spawn(connection.serve(stream));
            }
            Err(error) if is_of_client(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections; raise the limit of open files");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    let drained = async { while open.join_next().await.is_some() {} };
    if timeout(limits.drain, drained).await.is_err() {
        tracing::warn!(after = ?limits.drain, "answers still under way were cut");
    }
    Ok(())
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

/// One connection.
struct Connection<T> {
    peer: SocketAddr,
    tls: Option<Arc<BrowserAcceptor>>,
    server: Arc<T>,
    limits: ConnectionLimits,
    stop: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl<T: Site> Connection<T> {
    async fn serve(self, stream: TcpStream) {
        let gauge = self.server.connections();
        gauge.inc();
        self.talk(stream).await;
        gauge.dec();
    }

    async fn talk(&self, stream: TcpStream) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(peer = %self.peer, %error, "closed at once");
            return;
        }
        match &self.tls {
            None => self.exchange(stream, false).await,
            Some(_) if self.is_plain(&stream).await => self.exchange(stream, true).await,
            Some(tls) => match tls.accept(stream).await {
                Ok(stream) => self.exchange(stream, false).await,
                Err(error) => tracing::debug!(peer = %self.peer, %error, "no handshake"),
            },
        }
    }

    /// Returns whether a client begins with something else than a TLS handshake. One that says nothing is left to the
    /// handshake.
    async fn is_plain(&self, stream: &TcpStream) -> bool {
        let mut first = [HANDSHAKE];
        let peeked = timeout(self.limits.head_time, stream.peek(&mut first)).await;
        matches!(peeked, Ok(Ok(1))) && first != [HANDSHAKE]
    }

    /// Answers the requests of a connection; with `is_misled`, only with the words that TLS is spoken here.
    async fn exchange<S>(&self, stream: S, is_misled: bool)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (server, peer) = (Arc::clone(&self.server), self.peer);
        let service = service_fn(move |request: Request<Incoming>| {
            let server = Arc::clone(&server);
            async move {
                let response: Response<Body> = if is_misled {
                    tls_only().response(request.headers())
                } else {
                    server.answer(peer, request.map(Body::new)).await
                };
                Ok::<_, Infallible>(response)
            }
        });
        let stream = TokioIo::new(PatientWriter::new(stream, self.limits.unread));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.head_time)
            .max_headers(MOST_FIELDS)
            .max_buf_size(self.limits.longest_target.saturating_add(FIELDS_ROOM))
            .half_close(false)
            .serve_connection(stream, service);
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

/// Returns the answer to plain HTTP where TLS is spoken.
fn tls_only() -> Notice {
    Notice::new(
        StatusCode::BAD_REQUEST,
        "This address wants TLS",
        "Plain HTTP was sent to a port where only TLS is spoken. Ask again with https:// in front of the address.",
    )
    .with_fields([("connection", "close".to_owned())])
}
