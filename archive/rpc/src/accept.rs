//! Incoming connections: from TCP to a peer with a valid certificate, which is watched for as long as the connection is
//! open.
//!
//! Handshakes run side by side, each with a limit of time, so that a client that connects and sends nothing keeps no
//! other waiting. When too many are under way the oldest is dropped: a genuine one takes milliseconds, so the oldest is
//! the likeliest never to end.
//!
//! A peer whose certificate ends or is revoked while it is connected is cut off, with all its calls.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;

use crate::guard::Peer;
use crate::identity::Identity;
use crate::limits::RpcLimits;
use crate::refusal::RefusalKind;
use crate::tls::{Credentials, LoadedCredentials};

/// The way of a connection from TCP to a peer that is known.
pub(crate) struct Acceptor {
    pub(crate) credentials: Credentials,
    pub(crate) limits: RpcLimits,
    /// The token that ends every connection.
    pub(crate) cut: CancellationToken,
}

impl Acceptor {
    /// Accepts connections until their receiver is dropped. Then the listener is closed.
    pub(crate) async fn accept(self, listener: TcpListener, ready: mpsc::Sender<Connection>) {
        let Self {
            credentials,
            limits,
            cut,
        } = self;
        let room = Arc::new(Semaphore::new(limits.connections));
        let mut handshakes = JoinSet::new();
        let mut under_way = VecDeque::new();
        let mut live: Vec<WatchedConnection> = Vec::new();
        let mut exchanged = credentials.subscribe();
        let mut recheck = interval(limits.recheck.max(Duration::from_millis(1)));
        recheck.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = ready.closed() => return,
                accepted = listener.accept() => match accepted {
                    Ok((stream, address)) => {
                        make_place(&mut under_way, limits.handshakes);
                        let loaded = credentials.current_credentials();
                        let refusals = credentials.refusals().clone();
                        let shaking = handshake(stream, address, loaded, limits.handshake, cut.child_token());
                        let task = async move {
                            let shaken = shaking.await;
                            if shaken.is_err() {
                                refusals.report_refusal(RefusalKind::Connection);
                            }
                            shaken.ok().flatten()
                        };
                        under_way.push_back(handshakes.spawn(task));
                    }
                    Err(error) => pause_after(&error).await,
                },
                Some(ended) = handshakes.join_next() => {
                    let Ok(Some(shaken)) = ended else { continue };
                    let current = credentials.current_credentials();
                    if live.len() >= limits.connections {
                        live.retain(|peer| !peer.cut.is_cancelled());
                    }
                    // The credentials may have been exchanged during the handshake.
                    if Arc::ptr_eq(&shaken.loaded, &current) || shaken.live.is_good(&current) {
                        match Connection::new(&shaken.live, shaken.stream, &room) {
                            Ok(connection) => {
                                live.push(shaken.live);
                                if ready.send(connection).await.is_err() {
                                    return;
                                }
                            }
                            Err(TryAcquireError::NoPermits | TryAcquireError::Closed) => {
                                tracing::warn!(address = %shaken.live.address, "turned away: too many connections");
                                credentials.refusals().report_refusal(RefusalKind::Connection);
                            }
                        }
                    }
                }
                _ = recheck.tick() => cut_off(&mut live, &credentials.current_credentials()),
                Ok(()) = exchanged.changed() => cut_off(&mut live, &credentials.current_credentials()),
            }
        }
    }
}

/// An open connection whose peer has a valid certificate.
pub(crate) struct Connection {
    stream: TlsStream<TcpStream>,
    peer: Peer,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    _closed: DropGuard,
    _permit: OwnedSemaphorePermit,
}

/// An open connection that is watched. The token is cancelled when the connection is closed, too.
struct WatchedConnection {
    address: SocketAddr,
    chain: Vec<CertificateDer<'static>>,
    cut: CancellationToken,
}

struct Handshake {
    stream: TlsStream<TcpStream>,
    live: WatchedConnection,
    loaded: Arc<LoadedCredentials>,
}

/// The error of a connection without a handshake, or without a valid certificate.
struct HandshakeError;

/// Returns `None` if the client closed the connection during the handshake.
async fn handshake(
    stream: TcpStream,
    address: SocketAddr,
    loaded: Arc<LoadedCredentials>,
    limit: Duration,
    cut: CancellationToken,
) -> Result<Option<Handshake>, HandshakeError> {
    let shaking = async {
        stream.set_nodelay(true)?;
        TlsAcceptor::from(loaded.server_config())
            .accept(stream)
            .await
    };
    match timeout(limit, shaking).await {
        Ok(Ok(stream)) => {
            let chain = stream
                .get_ref()
                .1
                .peer_certificates()
                .unwrap_or_default()
                .to_vec();
            Ok(Some(Handshake {
                stream,
                live: WatchedConnection {
                    address,
                    chain,
                    cut,
                },
                loaded,
            }))
        }
        Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
            tracing::debug!(%address, "closed during the handshake");
            Ok(None)
        }
        Ok(Err(error)) => {
            tracing::info!(%address, %error, "turned away");
            Err(HandshakeError)
        }
        Err(_elapsed) => {
            tracing::info!(%address, "turned away: no handshake within {limit:?}");
            Err(HandshakeError)
        }
    }
}

fn make_place(under_way: &mut VecDeque<AbortHandle>, limit: usize) {
    if under_way.len() >= limit {
        under_way.retain(|handshake| !handshake.is_finished());
    }
    if under_way.len() >= limit
        && let Some(oldest) = under_way.pop_front()
    {
        oldest.abort();
    }
}

/// Pauses after errors that are not the client's (no more file descriptors), which would come back at once. After an
/// error of the client the next connection is accepted immediately.
async fn pause_after(error: &io::Error) {
    let clients = [
        io::ErrorKind::ConnectionAborted,
        io::ErrorKind::ConnectionReset,
        io::ErrorKind::Interrupted,
    ];
    if !clients.contains(&error.kind()) {
        tracing::warn!(%error, "cannot accept connections; raise the limit of open files");
        sleep(Duration::from_millis(100)).await;
    }
}

fn cut_off(live: &mut Vec<WatchedConnection>, current: &LoadedCredentials) {
    live.retain(|peer| !peer.cut.is_cancelled() && peer.is_good(current));
}

impl WatchedConnection {
    /// Returns whether the certificate is still good; cuts the connection if not.
    fn is_good(&self, current: &LoadedCredentials) -> bool {
        let outcome = current.check_chain_again(&self.chain);
        if let Err(error) = &outcome {
            tracing::info!(address = %self.address, %error, "cut off");
            self.cut.cancel();
        }
        outcome.is_ok()
    }
}

impl Connection {
    fn new(
        live: &WatchedConnection,
        stream: TlsStream<TcpStream>,
        room: &Arc<Semaphore>,
    ) -> Result<Self, TryAcquireError> {
        let permit = Arc::clone(room).try_acquire_owned()?;
        let certificate = live.chain.first().map(AsRef::as_ref).unwrap_or_default();
        Ok(Self {
            stream,
            peer: Peer {
                address: live.address,
                identity: Identity::from_certificate(certificate).map(Arc::new),
            },
            cut: Box::pin(live.cut.clone().cancelled_owned()),
            _closed: live.cut.clone().drop_guard(),
            _permit: permit,
        })
    }

    fn still_allowed(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        match self.cut.as_mut().poll(cx) {
            Poll::Ready(()) => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "cut off")),
            Poll::Pending => Ok(()),
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.still_allowed(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.still_allowed(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.still_allowed(cx)?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.still_allowed(cx)?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.still_allowed(cx)?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
