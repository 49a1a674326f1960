//! Channels: from an address to the intended server, over mutual TLS.
//!
//! A connection counts as made when the server has spoken HTTP/2. In TLS 1.3 a server judges the client's certificate
//! after the client is done; without waiting for the server's first word, a refusal would surface as a broken first
//! call.
//!
//! A channel connects again by itself, with the credentials of that moment. A server whose certificate has ended, or was
//! revoked, is left: it is judged again as soon as the credentials are exchanged, and at intervals. Not promised:
//! retries of calls.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::pki_types::{IpAddr, Ipv4Addr, ServerName};
use rustls::{AlertDescription, CertificateError};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::codegen::http::Uri;
use tonic::transport::{Channel, Endpoint};

use crate::kind::CallErrorKind;
use crate::limits::RpcLimits;
use crate::role::shorten_text;
use crate::tls::{Credentials, LoadedCredentials};
use crate::verify::{ExpectedIdentity, client_config};

/// The reason why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The text is not an address.
    #[error("{0:?} is not an address; write host:port or https://host:port")]
    Address(String),
    /// No server listens at the address, or there is no such host.
    #[error("{address} cannot be reached: {reason}")]
    Unreachable {
        /// The address that was called.
        address: String,
        /// The reason of the operating system.
        reason: String,
    },
    /// The server did not answer in time.
    #[error("{address} did not answer within {limit:?}")]
    TimedOut {
        /// The address that was called.
        address: String,
        /// The limit that passed.
        limit: Duration,
    },
    /// The server's certificate is invalid, or not that of the intended server.
    #[error("{address} is not {expected}: {reason}")]
    WrongServer {
        /// The address that was called.
        address: String,
        /// The server that was expected.
        expected: ExpectedIdentity,
        /// The problem of the certificate.
        reason: String,
    },
    /// The server does not accept the client's certificate.
    #[error("{address} refuses this certificate: {reason}; issue one with `holdfast pki issue`")]
    Refused {
        /// The address that was called.
        address: String,
        /// The TLS alert of the server.
        reason: String,
    },
    /// The peer does not speak as our servers do, or stopped.
    #[error("{address} broke off: {reason}")]
    Broken {
        /// The address that was called.
        address: String,
        /// The event that ended the connection.
        reason: String,
    },
}

impl ConnectError {
    /// Returns the kind of error, which says what the caller does next.
    pub fn kind(&self) -> CallErrorKind {
        match self {
            Self::Address(_) => CallErrorKind::Invalid,
            Self::WrongServer { .. } | Self::Refused { .. } => CallErrorKind::Refused,
            Self::TimedOut { .. } => CallErrorKind::TimedOut,
            Self::Unreachable { .. } | Self::Broken { .. } => CallErrorKind::Unavailable,
        }
    }

    /// Returns the connection error among the causes of an error, as of a call on a channel without a connection.
    pub fn within<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut causes = std::iter::successors(Some(error), |error| Error::source(*error));
        causes.find_map(|cause| cause.downcast_ref())
    }
}

/// Connects to `address` (`host:port` or `https://host:port`), and fails if the connection fails.
///
/// # Errors
///
/// [`ConnectError`] says what is wrong with the address, the network or the server.
pub async fn connect_channel(
    address: &str,
    credentials: &Credentials,
    expected: &ExpectedIdentity,
    limits: &RpcLimits,
) -> Result<Channel, ConnectError> {
    let dialler = Arc::new(Dialler::new(address, credentials, expected, limits)?);
    let endpoint = dialler.endpoint()?;
    let connected = endpoint
        .connect_with_connector(tower::service_fn(move |_: Uri| Arc::clone(&dialler).dial()))
        .await;
    connected.map_err(|error| match ConnectError::within(&error) {
        Some(error) => error.clone(),
        None => ConnectError::Broken {
            address: address.to_owned(),
            reason: innermost(&error),
        },
    })
}

/// Makes a channel that connects at its first call, so that a part may start before its peer.
///
/// # Errors
///
/// [`ConnectError::Address`] if the address cannot be one; all other errors come with the first call.
pub fn connect_lazy(
    address: &str,
    credentials: &Credentials,
    expected: &ExpectedIdentity,
    limits: &RpcLimits,
) -> Result<Channel, ConnectError> {
    let dialler = Arc::new(Dialler::new(address, credentials, expected, limits)?);
    let endpoint = dialler.endpoint()?;
    Ok(endpoint
        .connect_with_connector_lazy(tower::service_fn(move |_: Uri| Arc::clone(&dialler).dial())))
}

struct Dialler {
    /// The address of the server, `host:port`.
    address: String,
    credentials: Credentials,
    expected: ExpectedIdentity,
    limits: RpcLimits,
}

/// A connection to a server whose certificate is judged again before each of its bytes is believed.
struct WatchedStream {
    /// The buffer only holds the server's first word; larger reads pass it by.
    stream: BufReader<TlsStream<TcpStream>>,
    address: String,
    credentials: Credentials,
    /// The credentials by which the server was judged last, and when.
    judged: (Arc<LoadedCredentials>, Instant),
    /// The longest time between two judgements.
    recheck: Duration,
}

impl WatchedStream {
    /// Judges the server's certificate again if that may have changed.
    fn judge_server(&mut self) -> io::Result<()> {
        let current = self.credentials.current_credentials();
        let (before, at) = &self.judged;
        if Arc::ptr_eq(before, &current) && at.elapsed() < self.recheck {
            return Ok(());
        }
        let session = self.stream.get_ref().get_ref().1;
        let chain = session.peer_certificates().unwrap_or_default();
        if let Err(error) = current.check_chain_again(chain) {
            tracing::warn!(address = %self.address, %error, "left: the certificate of the server is not good any more");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, error));
        }
        self.judged = (current, Instant::now());
        Ok(())
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.judge_server()?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.judge_server()?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.judge_server()?;
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

type Stream = TokioIo<WatchedStream>;

impl Dialler {
    fn new(
        address: &str,
        credentials: &Credentials,
        expected: &ExpectedIdentity,
        limits: &RpcLimits,
    ) -> Result<Self, ConnectError> {
        let host_port = address.strip_prefix("https://").unwrap_or(address);
        let host_port = host_port.strip_suffix('/').unwrap_or(host_port);
        let (host, port) = host_port.rsplit_once(':').unwrap_or_default();
        let bracketed = host.starts_with('[') && host.ends_with(']');
        let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
        let port = if digits {
            port.parse::<u16>().unwrap_or(0)
        } else {
            0
        };
        if host.is_empty()
            || port == 0
            || host.contains(['/', '@', '?', '#'])
            || (host.contains(':') && !bracketed)
        {
            return Err(ConnectError::Address(shorten_text(address)));
        }
        Ok(Self {
            address: host_port.to_owned(),
            credentials: credentials.clone(),
            expected: expected.clone(),
            limits: *limits,
        })
    }

    fn endpoint(&self) -> Result<Endpoint, ConnectError> {
        let bad = |_| ConnectError::Address(self.address.clone());
        // The scheme `https` here would make tonic look for its own TLS; the server sees the origin.
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).map_err(bad)?;
        let origin = Uri::try_from(format!("https://{}", self.address));
        let origin = origin.map_err(|_invalid| ConnectError::Address(self.address.clone()))?;
        Ok(endpoint
            .origin(origin)
            .initial_stream_window_size(self.limits.stream_window)
            .initial_connection_window_size(self.limits.connection_window)
            // Late frames of dropped streams are no attack by a part whose certificate was seen.
            .http2_max_concurrent_reset_streams(self.limits.given_up)
            .http2_max_local_error_reset_streams(None)
            .http2_keep_alive_interval(self.limits.keep_alive)
            .keep_alive_timeout(self.limits.keep_alive_timeout)
            .keep_alive_while_idle(true))
    }

    async fn dial(self: Arc<Self>) -> Result<Stream, ConnectError> {
        let limit = self.limits.handshake;
        match timeout(limit, self.dial_without_limit()).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => Err(ConnectError::TimedOut {
                address: self.address.clone(),
                limit,
            }),
        }
    }

    async fn dial_without_limit(&self) -> Result<Stream, ConnectError> {
        let unreachable = |error: io::Error| ConnectError::Unreachable {
            address: self.address.clone(),
            reason: error.to_string(),
        };
        let tcp = TcpStream::connect(&self.address)
            .await
            .map_err(unreachable)?;
        tcp.set_nodelay(true).map_err(unreachable)?;
        let loaded = self.credentials.current_credentials();
        let config = client_config(Arc::clone(&loaded), &self.expected)
            .map_err(|error| self.broken(&error))?;
        // The name is neither sent nor checked: the certificate's role and name decide.
        let nobody = ServerName::IpAddress(IpAddr::V4(Ipv4Addr::from([0, 0, 0, 0])));
        let tls = TlsConnector::from(config)
            .connect(nobody, tcp)
            .await
            .map_err(|error| self.explain(&error))?;
        let mut stream = BufReader::with_capacity(64, tls);
        match stream.fill_buf().await {
            Ok([]) => Err(self.broken(&"the connection was closed")),
            Ok(_first_word) => Ok(TokioIo::new(WatchedStream {
                stream,
                address: self.address.clone(),
                credentials: self.credentials.clone(),
                judged: (loaded, Instant::now()),
                recheck: self.limits.recheck,
            })),
            Err(error) => Err(self.explain(&error)),
        }
    }

    /// Explains an error of the handshake: which end refused the other, and why.
    fn explain(&self, error: &io::Error) -> ConnectError {
        let address = self.address.clone();
        match error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<rustls::Error>())
        {
            Some(rustls::Error::InvalidCertificate(fault)) => {
                let reason = if let CertificateError::Other(wrong) = fault {
                    wrong.to_string()
                } else {
                    fault.to_string()
                };
                ConnectError::WrongServer {
                    address,
                    expected: self.expected.clone(),
                    reason,
                }
            }
            Some(rustls::Error::AlertReceived(alert)) if REFUSALS.contains(alert) => {
                ConnectError::Refused {
                    address,
                    reason: format!("{alert:?}"),
                }
            }
            _ => self.broken(error),
        }
    }

    fn broken(&self, reason: &dyn ToString) -> ConnectError {
        ConnectError::Broken {
            address: self.address.clone(),
            reason: reason.to_string(),
        }
    }
}

/// The alerts by which a server refuses our certificate.
const REFUSALS: [AlertDescription; 10] = [
    AlertDescription::NoCertificate,
    AlertDescription::BadCertificate,
    AlertDescription::UnsupportedCertificate,
    AlertDescription::CertificateRevoked,
    AlertDescription::CertificateExpired,
    AlertDescription::CertificateUnknown,
    AlertDescription::UnknownCA,
    AlertDescription::AccessDenied,
    AlertDescription::DecryptError,
    AlertDescription::CertificateRequired,
];

fn innermost(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
