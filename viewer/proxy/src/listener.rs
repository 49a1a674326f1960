//! The port of the proxy: connections in, requests to the server, tunnels that end here, and an end that is graceful and has
//! an end.
//!
//! Owns the limits of a connection: how many there are, how long a head, a handshake and the first byte of a tunnel may take,
//! how large a head may be, and how long a client may leave an answer unread. HTTP/1.1 only. A tunnel leads to this very
//! process: its first byte says whether TLS or plain HTTP is spoken in it, whatever its port.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use archive_rpc::PatientWriter;
use archive_rpc::browser::BrowserAcceptor;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::archive::ProxiedArchive;
use crate::prefixed::PrefixedStream;
use crate::requested::{RequestChannel, Scheme, Tunnel};
use crate::server::ProxyServer;

/// The most fields of the head of a request.
const MOST_FIELDS: usize = 100;

/// The room in the head of a request beside the longest URL, in bytes.
const FIELDS_ROOM: usize = 48 * 1024;

/// The pause after an error of the system that would come back at once.
const PAUSE: Duration = Duration::from_millis(100);

/// The first byte of a TLS handshake.
const HANDSHAKE: u8 = 0x16;

/// The limits that a listener holds its clients to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    pub(crate) connections: usize,
    pub(crate) longest_url: usize,
    pub(crate) head_time: Duration,
    pub(crate) unread: Duration,
    pub(crate) drain: Duration,
}

/// The listener, and all that its connections share.
pub(crate) struct ProxyListener<A> {
    pub(crate) server: Arc<ProxyServer<A>>,
    pub(crate) tls: Arc<BrowserAcceptor>,
    pub(crate) limits: ConnectionLimits,
    pub(crate) stop: CancellationToken,
}

impl<A: ProxiedArchive> ProxyListener<A> {
    /// Serves until the stop; then no connection is accepted, answers under way go on to their end, and after the drain are cut.
    pub(crate) async fn serve(self, listener: TcpListener) -> io::Result<()> {
        let room = Arc::new(Semaphore::new(self.limits.connections));
        let shared = Arc::new(self);
        let mut open = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = shared.stop.cancelled() => break,
                Some(_ended) = open.join_next() => continue,
                accepted = accept(&listener, &room) => accepted,
            };
            match accepted {
                Ok((stream, peer, permit)) => {
                    let connection = Connection {
                        peer,
                        shared: Arc::clone(&shared),
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
        if timeout(shared.limits.drain, drained).await.is_err() {
            tracing::warn!(after = ?shared.limits.drain, "answers still under way were cut");
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

/// One connection.
struct Connection<A> {
    peer: SocketAddr,
    shared: Arc<ProxyListener<A>>,
    _permit: OwnedSemaphorePermit,
}

/// A tunnel that was agreed on.
struct AgreedTunnel {
    upgrade: OnUpgrade,
    tunnel: Tunnel,
}

impl<A: ProxiedArchive> Connection<A> {
    async fn serve(self, stream: TcpStream) {
        let gauge = self.shared.server.connections();
        gauge.inc();
        self.talk(stream).await;
        gauge.dec();
    }

    async fn talk(&self, stream: TcpStream) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(peer = %self.peer, %error, "closed at once");
            return;
        }
        let stream = PatientWriter::new(stream, self.shared.limits.unread);
        if let Some(agreed) = self.exchange(stream, RequestChannel::Open).await
            && let Err(error) = self.tunnel(agreed).await
        {
            tracing::debug!(peer = %self.peer, %error, "the tunnel broke off");
        }
    }

    /// Serves the requests of a stream, to its end or to the tunnel that follows.
    async fn exchange<S>(&self, stream: S, channel: RequestChannel) -> Option<AgreedTunnel>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (server, peer) = (Arc::clone(&self.shared.server), self.peer);
        let agreed = Arc::new(Mutex::new(None));
        let (slot, channel) = (Arc::clone(&agreed), Arc::new(channel));
        let service = service_fn(move |mut request: Request<Incoming>| {
            let (server, slot) = (Arc::clone(&server), Arc::clone(&slot));
            let channel = Arc::clone(&channel);
            async move {
                let upgrade = hyper::upgrade::on(&mut request);
                let request = request.map(Body::new);
                let answered = server.answer(peer, &channel, request).await;
                if let Some((to, key)) = answered.tunnel {
                    let tunnel = Tunnel {
                        // The first byte says which it is.
                        scheme: Scheme::Https,
                        to,
                        user: key.user,
                    };
                    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
                    *slot = Some(AgreedTunnel { upgrade, tunnel });
                }
                Ok::<_, Infallible>(answered.response)
            }
        });
        let limits = &self.shared.limits;
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head_time)
            .max_headers(MOST_FIELDS)
            .max_buf_size(limits.longest_url.saturating_add(FIELDS_ROOM))
            .half_close(false)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.shared.stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.as_mut().await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(peer = %self.peer, %error, "the connection broke off");
        }
        agreed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Plays the host at the end of a tunnel.
    async fn tunnel(&self, agreed: AgreedTunnel) -> Result<(), TunnelError> {
        let AgreedTunnel { upgrade, tunnel } = agreed;
        let limit = self.shared.limits.head_time;
        let opening = async {
            let mut stream = TokioIo::new(upgrade.await?);
            let first = stream.read_u8().await?;
            Ok::<_, TunnelError>(PrefixedStream::new(first, stream))
        };
        let stream = tokio::select! {
            sent = timeout(limit, opening) => sent.map_err(|_elapsed| TunnelError::Silent(limit))??,
            () = self.shared.stop.cancelled() => return Ok(()),
        };
        if stream.first() == Some(HANDSHAKE) {
            let name = tunnel.to.certificate_name().to_owned();
            let stream = tokio::select! {
                accepted = self.shared.tls.accept_for(stream, &name) => accepted.map_err(TunnelError::Tls)?,
                () = self.shared.stop.cancelled() => return Ok(()),
            };
            self.exchange(stream, RequestChannel::Tunnel(tunnel)).await;
        } else {
            let scheme = Scheme::Http;
            let channel = RequestChannel::Tunnel(Tunnel { scheme, ..tunnel });
            self.exchange(stream, channel).await;
        }
        Ok(())
    }
}

/// The reason why a tunnel ended before anything was asked in it.
#[derive(Debug, thiserror::Error)]
enum TunnelError {
    #[error("{0}")]
    Http(#[from] hyper::Error),
    #[error("{0}")]
    Stream(#[from] io::Error),
    #[error("nothing came for {0:?}")]
    Silent(Duration),
    #[error("{0}")]
    Tls(archive_rpc::BrowserError),
}
