//! The port of the proxy: connections in, requests to the server, and tunnels that end here.
//!
//! Owns the tunnels, and how long the first byte of one may take. A tunnel leads to this very process: its first byte
//! says whether TLS or plain HTTP is spoken in it, whatever its port. Connections are accepted and limited in
//! `connections`.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use archive_rpc::PatientWriter;
use archive_rpc::browser::BrowserAcceptor;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::archive::ProxiedArchive;
use crate::connections::{BrowserConnection, BrowserListener, HANDSHAKE};
use crate::prefixed::PrefixedStream;
use crate::requested::{RequestChannel, Scheme, Tunnel};
use crate::server::ProxyServer;

/// Serves the proxy until the stop of its listener.
pub(crate) async fn serve_listener<A: ProxiedArchive>(
    listener: BrowserListener,
    tls: Arc<BrowserAcceptor>,
    server: Arc<ProxyServer<A>>,
) -> Result<(), Infallible> {
    let serving = listener.run_listener(|stream, connection| {
        let connection = ProxyConnection {
            connection,
            tls: Arc::clone(&tls),
            server: Arc::clone(&server),
        };
        async move { connection.talk(stream).await }
    });
    serving.await
}

/// A connection to the proxy.
struct ProxyConnection<A> {
    connection: BrowserConnection,
    tls: Arc<BrowserAcceptor>,
    server: Arc<ProxyServer<A>>,
}

/// A tunnel that was agreed on.
struct AgreedTunnel {
    upgrade: OnUpgrade,
    tunnel: Tunnel,
}

impl<A: ProxiedArchive> ProxyConnection<A> {
    async fn talk(&self, stream: TcpStream) {
        let stream = PatientWriter::new(stream, self.connection.limits.unread);
        if let Some(agreed) = self.exchange(stream, RequestChannel::Open).await
            && let Err(error) = self.tunnel(agreed).await
        {
            tracing::debug!(peer = %self.connection.peer, %error, "the tunnel broke off");
        }
    }

    /// Serves the requests of a stream, to its end or to the tunnel that follows.
    async fn exchange<S>(&self, stream: S, channel: RequestChannel) -> Option<AgreedTunnel>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let peer = self.connection.peer;
        let agreed = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&agreed);
        let channel = Arc::new(channel);
        let answer = |mut request: Request<Incoming>| {
            let server = Arc::clone(&self.server);
            let slot = Arc::clone(&slot);
            let channel = Arc::clone(&channel);
            async move {
                let upgrade = hyper::upgrade::on(&mut request);
                let request = request.map(Body::new);
                let answered = server.answer_request(peer, &channel, request).await;
                if let Some((to, key)) = answered.tunnel {
                    let tunnel = Tunnel {
                        // The first byte says which it is.
                        scheme: Scheme::Https,
                        to,
                        user: key.user,
                    };
                    let mut slot = slot.lock();
                    *slot = Some(AgreedTunnel { upgrade, tunnel });
                }
                answered.response
            }
        };
        self.connection.run_exchange(stream, answer).await;
        agreed.lock().take()
    }

    /// Answers in a tunnel in place of the host at its end.
    async fn tunnel(&self, agreed: AgreedTunnel) -> Result<(), TunnelError> {
        let AgreedTunnel { upgrade, tunnel } = agreed;
        let limit = self.connection.limits.head_time;
        let opening = async {
            let mut stream = TokioIo::new(upgrade.await?);
            let first = stream.read_u8().await?;
            Ok::<_, TunnelError>(PrefixedStream::new(first, stream))
        };
        let stream = tokio::select! {
            sent = timeout(limit, opening) => sent.map_err(|_elapsed| TunnelError::Silent(limit))??,
            () = self.connection.stop.cancelled() => return Ok(()),
        };
        if stream.first() == Some(HANDSHAKE) {
            let name = tunnel.to.certificate_name().to_owned();
            let stream = tokio::select! {
                accepted = self.tls.accept_for(stream, &name) => accepted.map_err(TunnelError::Tls)?,
                () = self.connection.stop.cancelled() => return Ok(()),
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
