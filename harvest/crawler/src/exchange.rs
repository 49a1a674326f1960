//! One request and its response on a connection, as the bytes of the wire.
//!
//! Owns when an exchange has taken too long, and when a connection can be used again. Does not know why something is
//! fetched.

pub mod bandwidth;
mod http2;
mod incoming;
pub mod old_tls;
pub mod proxy;
pub mod receive;
pub mod request;
pub mod tls;
mod wire;

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use archive_daemon::clock::Clock;
use jiff::Timestamp;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::{AlertDescription, PeerIncompatible};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;

use self::bandwidth::Bandwidth;
use self::http2::FrameConnection;
use self::incoming::{ExchangeTimer, IncomingResponse};
use self::old_tls::OldTlsClient;
use self::proxy::{ProxyFailure, ProxyWay, open_tunnel};
use self::receive::{HttpResponse, ReceiveLimits, ResponseReceiver, Truncation};
use self::request::HttpRequest;
use self::tls::{ProtocolOffer, TlsClient, TlsSession};
use self::wire::WireStream;

/// The bytes that are read at a time.
const READ: usize = 64 << 10;

/// The limits of an exchange: its times, and the size of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeLimits {
    /// The longest wait for a connection and for its TLS handshake, each.
    pub connect: Duration,
    /// The longest wait for the next byte, in either direction.
    pub stall: Duration,
    /// The longest time from the first byte out to the last byte in.
    pub total: Duration,
    /// The limits of the size of the response.
    pub receive: ReceiveLimits,
}

impl Default for ExchangeLimits {
    /// Returns 20 seconds for a connection and for a byte, 20 minutes for all, as in Heritrix.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(20),
            stall: Duration::from_secs(20),
            total: Duration::from_mins(20),
            receive: ReceiveLimits::default(),
        }
    }
}

/// What an exchange is made with.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeMeans<'a> {
    /// The limits of the exchange.
    pub limits: &'a ExchangeLimits,
    /// The directory for a large response.
    pub directory: &'a Path,
    /// Where the bytes of the response are counted as they come.
    pub received: &'a AtomicU64,
    /// The most bytes that a body may have for want of room on the disk; it changes while they come.
    pub room: &'a AtomicU64,
    /// The bandwidth that all connections share.
    pub bandwidth: &'a Bandwidth,
}

/// The ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionEnds<'a> {
    /// The host.
    pub host: SocketAddr,
    /// The address of this machine that the host sees; `None`: any.
    pub own: Option<IpAddr>,
    /// The proxy that is connected to in place of the host.
    pub proxy: Option<ProxyWay<'a>>,
}

impl From<SocketAddr> for ConnectionEnds<'_> {
    fn from(host: SocketAddr) -> Self {
        Self {
            host,
            own: None,
            proxy: None,
        }
    }
}

impl ConnectionEnds<'_> {
    /// Connects to the host, or to its proxy.
    async fn connect(self) -> io::Result<TcpStream> {
        let Some(ProxyWay { proxy, .. }) = self.proxy else {
            return connect_to(self.host, self.own).await;
        };
        let mut refusal = io::Error::other("its name has no address");
        for address in tokio::net::lookup_host((proxy.host(), proxy.port())).await? {
            match connect_to(address, self.own).await {
                Ok(stream) => return Ok(stream),
                Err(error) => refusal = error,
            }
        }
        Err(refusal)
    }

    fn connect_error(self, source: io::Error) -> ExchangeError {
        match self.proxy {
            Some(way) => ProxyFailure::of_error(way.proxy, &source).into(),
            None => ExchangeError::Connect {
                address: self.host,
                source,
            },
        }
    }
}

async fn connect_to(host: SocketAddr, own: Option<IpAddr>) -> io::Result<TcpStream> {
    let Some(own) = own else {
        return TcpStream::connect(host).await;
    };
    let socket = if host.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    socket.bind(SocketAddr::new(own, 0))?;
    socket.connect(host).await
}

/// The reason why there is no response at all.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// No connection could be made.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// The address of the host.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The proxy has not led to the host.
    #[error(transparent)]
    Proxy(#[from] ProxyFailure),
    /// The connection was made, but no TLS session on it.
    #[error("cannot agree on TLS with {address}: {source}")]
    Tls {
        /// The address of the host.
        address: SocketAddr,
        /// The error of the handshake.
        source: io::Error,
    },
    /// HTTP/2 cannot be spoken on the connection.
    #[error("cannot speak HTTP/2 with {address}: {source}")]
    Http2 {
        /// The address of the host.
        address: SocketAddr,
        /// The error of the protocol.
        source: h2::Error,
    },
    /// A URI or a header field that HTTP/2 has no form for.
    #[error(
        "cannot ask for {0} by HTTP/2: it, or a header field, is too long or has letters that HTTP/2 does not allow"
    )]
    NotHttp2(String),
    /// The host ended the connection before the first byte of a response.
    #[error("the connection to {address} ended without a response")]
    NoResponse {
        /// The address of the host.
        address: SocketAddr,
    },
    /// The host took too long for the first byte of its response.
    #[error("{address} has not answered within {limit:?}")]
    Timeout {
        /// The address of the host.
        address: SocketAddr,
        /// The time that was waited.
        limit: Duration,
    },
    /// The response cannot be kept: the disk of this machine is full, or fails.
    #[error("cannot keep a response: {0}; see to the disk of this machine")]
    Storage(io::Error),
}

impl ExchangeError {
    /// Returns the error of the TLS library, if it is one.
    fn tls(&self) -> Option<&rustls::Error> {
        let Self::Tls { source, .. } = self else {
            return None;
        };
        source.get_ref()?.downcast_ref()
    }

    /// Returns whether the host has refused the protocol that was offered on TLS (RFC 7301 §3.2).
    pub fn refuses_protocol(&self) -> bool {
        let refusal = rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol);
        self.tls() == Some(&refusal)
    }

    /// Returns whether the host speaks only versions of TLS that are too old.
    pub fn has_old_tls(&self) -> bool {
        use rustls::Error as E;
        let old = [
            E::AlertReceived(AlertDescription::ProtocolVersion),
            E::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13),
            E::PeerIncompatible(PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig),
        ];
        self.tls().is_some_and(|error| old.contains(error))
    }

    /// Returns whether another try would end as this one: the host speaks no TLS, or none that this crawler knows.
    pub fn is_lasting(&self) -> bool {
        use rustls::Error as E;
        match self.tls() {
            Some(E::AlertReceived(alert)) => !matches!(
                alert,
                AlertDescription::InternalError
                    | AlertDescription::UserCanceled
                    | AlertDescription::CloseNotify
            ),
            Some(
                E::PeerIncompatible(_)
                | E::PeerMisbehaved(_)
                | E::InvalidMessage(_)
                | E::InvalidCertificate(_)
                | E::NoCertificatesPresented,
            ) => true,
            _ => matches!(self, Self::NotHttp2(_)),
        }
    }
}

/// The protocol of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpProtocol {
    /// HTTP/1, and what is older: what is recorded are the bytes of the wire.
    Http1,
    /// HTTP/2: heads are recorded in the text of HTTP/1.1.
    Http2,
}

/// The way in which messages go over a connection.
enum MessageTransport {
    Text(Box<dyn WireStream>, Vec<u8>),
    Frames(Box<FrameConnection>),
}

/// A connection to one host.
pub struct HostConnection {
    messages: MessageTransport,
    address: SocketAddr,
    tls: Option<TlsSession>,
}

impl std::fmt::Debug for HostConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostConnection")
            .field("address", &self.address)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

/// A finished exchange.
#[derive(Debug)]
pub struct Exchange {
    /// The time at which the request began to go out.
    pub began: Timestamp,
    /// The time to the last byte that came in.
    pub duration: Duration,
    /// The address that was connected to.
    pub address: SocketAddr,
    /// The protocol by which the exchange went.
    pub protocol: HttpProtocol,
    /// The response as it came in.
    pub response: HttpResponse,
}

impl Exchange {
    /// Returns whether the host has answered with a frame of HTTP/2 that nobody asked for.
    ///
    /// # Errors
    ///
    /// If the temporary file cannot be read.
    pub fn is_http2_unasked(&mut self) -> io::Result<bool> {
        if self.response.head.is_some() || self.protocol == HttpProtocol::Http2 {
            return Ok(false);
        }
        let mut begin = Vec::new();
        let block = &mut self.response.block;
        let length = http2::FRAME_HEAD as u64;
        block.by_ref().take(length).read_to_end(&mut begin)?;
        block.seek(SeekFrom::Start(0))?;
        Ok(http2::is_settings_frame(&begin))
    }
}

impl HostConnection {
    /// Connects to a host. `tls`: the client, the name of the host, and the protocols that it is offered, for `https`.
    ///
    /// # Errors
    ///
    /// [`ExchangeError::Connect`], also where the host takes too long, [`ExchangeError::Tls`] and
    /// [`ExchangeError::Http2`].
    pub async fn open_connection(
        ends: impl Into<ConnectionEnds<'_>>,
        tls: Option<(&TlsClient, ServerName<'static>, ProtocolOffer)>,
        limits: &ExchangeLimits,
        clock: &Clock,
    ) -> Result<Self, ExchangeError> {
        let ends = ends.into();
        let address = ends.host;
        let late = |_| late_error(address, limits);
        let stream = open_stream(ends, limits, clock).await?;
        let Some((client, name, offer)) = tls else {
            return Ok(Self {
                messages: MessageTransport::Text(Box::new(stream), vec![0; READ]),
                address,
                tls: None,
            });
        };
        let attempt = client.begin_attempt(offer);
        let handshake = TlsConnector::from(attempt.client_config()).connect(name.clone(), stream);
        let stream = clock
            .run_with_timeout(limits.connect, Box::pin(handshake))
            .await;
        let stream = stream.map_err(late)?;
        let stream = stream.map_err(|source| ExchangeError::Tls { address, source })?;
        let session = attempt.tls_session(stream.get_ref().1, &name, unix_time(clock));
        let wire: Box<dyn WireStream> = Box::new(stream);
        let messages = if session.protocol.as_deref() == Some(tls::HTTP2) {
            let frames = Box::pin(FrameConnection::begin_frames(wire, limits.receive.head));
            let frames = clock.run_with_timeout(limits.connect, frames).await;
            let frames = frames.map_err(late)?;
            let frames = frames.map_err(|source| ExchangeError::Http2 { address, source })?;
            MessageTransport::Frames(Box::new(frames))
        } else {
            MessageTransport::Text(wire, vec![0; READ])
        };
        Ok(Self {
            messages,
            address,
            tls: Some(session),
        })
    }

    /// Connects to a host that speaks TLS of old, by HTTP/1.1. `judge`: what measures its certificate.
    ///
    /// # Errors
    ///
    /// [`ExchangeError::Connect`], also where the host takes too long, and [`ExchangeError::Tls`].
    pub async fn open_old_tls(
        ends: ConnectionEnds<'_>,
        (client, judge): (&OldTlsClient, &TlsClient),
        name: ServerName<'static>,
        limits: &ExchangeLimits,
        clock: &Clock,
    ) -> Result<Self, ExchangeError> {
        let address = ends.host;
        let stream = open_stream(ends, limits, clock).await?;
        let handshake = client.connect(stream, &name, judge, unix_time(clock));
        let handshake = clock.run_with_timeout(limits.connect, Box::pin(handshake));
        let session = handshake
            .await
            .map_err(|_late| late_error(address, limits))?;
        let (stream, session) = session.map_err(|source| ExchangeError::Tls { address, source })?;
        Ok(Self {
            messages: MessageTransport::Text(Box::new(stream), vec![0; READ]),
            address,
            tls: Some(session),
        })
    }

    /// Returns the terms of the TLS session; `None` without TLS.
    pub fn tls(&self) -> Option<&TlsSession> {
        self.tls.as_ref()
    }

    /// Returns the protocol that is spoken.
    pub const fn protocol(&self) -> HttpProtocol {
        match self.messages {
            MessageTransport::Text(..) => HttpProtocol::Http1,
            MessageTransport::Frames(_) => HttpProtocol::Http2,
        }
    }

    /// Returns whether a connection that has waited can carry another request: the host has neither closed it nor sent
    /// anything since. Bytes that it sends unasked, such as a late 408, would be taken for the next response.
    pub async fn is_quiet(&mut self) -> bool {
        match &mut self.messages {
            MessageTransport::Text(wire, _) => wire::is_quiet(wire.as_mut()).await,
            MessageTransport::Frames(frames) => frames.is_open().await,
        }
    }

    /// Sends a request and takes its response. A large response goes to a temporary file. Returns
    /// whether the connection may be used again, the response says.
    ///
    /// # Errors
    ///
    /// [`ExchangeError::NoResponse`] and [`ExchangeError::Timeout`] if not a byte has come: on a connection that was
    /// used before, it is likely that the host had closed it meanwhile. [`ExchangeError::NotHttp2`].
    /// [`ExchangeError::Storage`]. A response of which some bytes have come is no error, but says why it is cut.
    pub async fn exchange_request(
        &mut self,
        request: &HttpRequest,
        means: ExchangeMeans<'_>,
        clock: &Clock,
    ) -> Result<Exchange, ExchangeError> {
        let ExchangeMeans {
            limits,
            directory,
            received,
            room,
            bandwidth,
        } = means;
        let address = self.address;
        let began = clock.now();
        let start = clock.instant();
        let timer = ExchangeTimer {
            limits,
            clock,
            start,
            received,
            room,
            bandwidth,
        };
        let receiver = ResponseReceiver::new(
            request.is_head(),
            limits.receive.clone(),
            directory.to_owned(),
        );
        let incoming = match &mut self.messages {
            MessageTransport::Text(wire, buffer) => {
                exchange_text(wire.as_mut(), buffer, request, receiver, &timer).await?
            }
            MessageTransport::Frames(frames) => {
                Box::pin(frames.exchange_request(request, receiver, &timer)).await?
            }
        };
        let receiver = incoming.receiver;
        let cut = incoming.cut;
        if receiver.is_empty() {
            return Err(if cut == Some(Truncation::Time) {
                ExchangeError::Timeout {
                    address,
                    limit: limits.stall.min(limits.total),
                }
            } else {
                ExchangeError::NoResponse { address }
            });
        }
        let protocol = self.protocol();
        let mut response = receiver
            .finish_response(cut)
            .map_err(ExchangeError::Storage)?;
        response.is_reusable = incoming.has_ended
            && match protocol {
                HttpProtocol::Http1 => response.is_reusable,
                HttpProtocol::Http2 => response.truncation.is_none(),
            };
        Ok(Exchange {
            began,
            duration: incoming.last.saturating_duration_since(start),
            address,
            protocol,
            response,
        })
    }
}

/// Returns the error of a host that takes too long: one behind a wall that drops packets may be there again later, as one
/// that refuses.
fn late_error(address: SocketAddr, limits: &ExchangeLimits) -> ExchangeError {
    ExchangeError::Connect {
        address,
        source: late(limits),
    }
}

fn late(limits: &ExchangeLimits) -> io::Error {
    let words = format!("no answer within {:?}", limits.connect);
    io::Error::new(io::ErrorKind::TimedOut, words)
}

async fn open_stream(
    ends: ConnectionEnds<'_>,
    limits: &ExchangeLimits,
    clock: &Clock,
) -> Result<TcpStream, ExchangeError> {
    let address = ends.host;
    let stream = clock.run_with_timeout(limits.connect, Box::pin(ends.connect()));
    let stream = stream
        .await
        .map_err(|_late| ends.connect_error(late(limits)))?;
    let mut stream = stream.map_err(|source| ends.connect_error(source))?;
    if let Some(ProxyWay {
        proxy,
        tunnel_to: Some(host_port),
    }) = ends.proxy
    {
        let tunnel = open_tunnel(&mut stream, proxy, host_port);
        let tunnel = clock.run_with_timeout(limits.connect, Box::pin(tunnel));
        // The proxy waits for the host.
        tunnel
            .await
            .map_err(|_late| late_error(address, limits))??;
    }
    // Without it a request in two writes waits for the answer to the first one.
    let stream = stream.set_nodelay(true).map(|()| stream);
    stream.map_err(|source| ExchangeError::Connect { address, source })
}

fn unix_time(clock: &Clock) -> UnixTime {
    let seconds = u64::try_from(clock.now().as_second()).unwrap_or(0);
    UnixTime::since_unix_epoch(Duration::from_secs(seconds))
}

/// Sends a request as text, and takes its response.
async fn exchange_text(
    wire: &mut dyn WireStream,
    buffer: &mut [u8],
    request: &HttpRequest,
    receiver: ResponseReceiver,
    timer: &ExchangeTimer<'_>,
) -> Result<IncomingResponse, ExchangeError> {
    let mut incoming = IncomingResponse::new(receiver, timer);
    if !send(wire, request, timer).await {
        return Ok(incoming.end_by_timeout());
    }
    while !incoming.is_done() {
        match timer.limit_time(wire.read(buffer)).await {
            Some(Ok(0)) => break,
            // A reset, or TLS that ends without its farewell, is not the end of a body without a length (RFC 9112 §8).
            Some(Err(_)) => return Ok(incoming.end_by_disconnect()),
            Some(Ok(count)) => {
                incoming.take_bytes(buffer.get(..count).unwrap_or_default(), timer)?;
                timer.bandwidth.pace(count as u64, timer.clock).await;
            }
            None => return Ok(incoming.end_by_timeout()),
        }
    }
    Ok(incoming)
}

/// Sends the request; returns whether the host has taken it in time. One that closes early may still have answered.
async fn send(wire: &mut dyn WireStream, request: &HttpRequest, timer: &ExchangeTimer<'_>) -> bool {
    let mut rest = request.bytes();
    while !rest.is_empty() {
        match timer.limit_time(wire.write(rest)).await {
            Some(Ok(0) | Err(_)) => return true,
            Some(Ok(count)) => rest = rest.get(count..).unwrap_or_default(),
            None => return false,
        }
    }
    timer.limit_time(wire.flush()).await.is_some()
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "hosts of tests are nobody's tasks"
)]
mod tests;
