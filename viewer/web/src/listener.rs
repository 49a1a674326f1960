//! The listeners of the part: connections in, requests to the server, and an end that is graceful and has an end.
//!
//! Owns the choice between TLS and plain HTTP, and how long a handshake may take. A client that speaks plain HTTP where
//! TLS is spoken gets that as its answer, whatever its request. The connections themselves are accepted and limited in
//! [`viewer_proxy::connections`].

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use archive_daemon::Gauge;
use archive_rpc::PatientWriter;
use archive_rpc::browser::BrowserAcceptor;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use viewer_proxy::connections::{BrowserConnection, BrowserListener, ConnectionLimits, HANDSHAKE};

use crate::answer::Notice;
use crate::pages::PageHost;
use crate::server::Server;

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
        Self::answer_request(self, peer, request)
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
        Self::answer_request(self, peer, request)
    }

    fn connections(&self) -> &Gauge {
        Self::connections(self)
    }
}

/// The port of a site.
pub(crate) struct SiteListener {
    pub(crate) listener: TcpListener,
    pub(crate) tls: Option<Arc<BrowserAcceptor>>,
    pub(crate) limits: ConnectionLimits,
}

impl SiteListener {
    /// Serves until `stop`; then no connection is accepted, answers under way are completed, and after the drain are
    /// cut.
    pub(crate) async fn serve_site<S: Site>(
        self,
        server: Arc<S>,
        stop: CancellationToken,
    ) -> Result<(), Infallible> {
        let Self {
            listener,
            tls,
            limits,
        } = self;
        let listener = BrowserListener {
            listener,
            limits,
            open: server.connections().clone(),
            stop,
        };
        let serving = listener.run_listener(|stream, connection| {
            let connection = SiteConnection {
                connection,
                tls: tls.clone(),
                server: Arc::clone(&server),
            };
            async move { connection.talk(stream).await }
        });
        serving.await
    }
}

/// A connection to a site.
struct SiteConnection<S> {
    connection: BrowserConnection,
    tls: Option<Arc<BrowserAcceptor>>,
    server: Arc<S>,
}

impl<S: Site> SiteConnection<S> {
    async fn talk(&self, stream: TcpStream) {
        match &self.tls {
            None => self.exchange(stream, false).await,
            Some(_) if self.is_plain(&stream).await => self.exchange(stream, true).await,
            Some(tls) => match tls.accept_browser(stream).await {
                Ok(stream) => self.exchange(stream, false).await,
                Err(error) => tracing::debug!(peer = %self.connection.peer, %error, "no handshake"),
            },
        }
    }

    /// Returns whether a client begins with something else than a TLS handshake. A client that sends nothing is left to
    /// the handshake.
    async fn is_plain(&self, stream: &TcpStream) -> bool {
        let mut first = [HANDSHAKE];
        let peeked = timeout(self.connection.limits.head_time, stream.peek(&mut first)).await;
        matches!(peeked, Ok(Ok(1))) && first != [HANDSHAKE]
    }

    /// Answers the requests of a connection; with `is_misled`, only with the words that TLS is spoken here.
    async fn exchange<T>(&self, stream: T, is_misled: bool)
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let peer = self.connection.peer;
        let stream = PatientWriter::new(stream, self.connection.limits.unread);
        let answer = |request: Request<hyper::body::Incoming>| {
            let server = Arc::clone(&self.server);
            async move {
                if is_misled {
                    tls_only().to_response(request.headers())
                } else {
                    server.answer(peer, request.map(Body::new)).await
                }
            }
        };
        self.connection.run_exchange(stream, answer).await;
    }
}

/// Returns the answer to plain HTTP where TLS is spoken.
fn tls_only() -> Notice {
    Notice::new(
        StatusCode::BAD_REQUEST,
        "This address needs TLS",
        "Plain HTTP was sent to a port where only TLS is spoken. Ask again with https:// in front of the address.",
    )
    .with_fields([("connection", "close".to_owned())])
}
