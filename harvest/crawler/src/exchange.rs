//! One request and its response on a connection, as the bytes of the wire.
//!
//! Owns when an exchange has taken too long, and when a connection can be used again. Does not know why something is fetched.

pub mod receive;
pub mod request;
pub mod tls;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use archive_daemon::clock::Clock;
use jiff::Timestamp;
use rustls::pki_types::{ServerName, UnixTime};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use self::receive::{ReceiveLimits, Response, ResponseReceiver};
use self::request::Request;
use self::tls::{TlsClient, TlsSession};

/// How many bytes are read at a time.
const READ: usize = 64 << 10;

/// How long an exchange may take, and how much of a response is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeLimits {
    /// The longest wait for a connection and for its TLS handshake, each.
    pub connect: Duration,
    /// The longest wait for the next byte, in either direction.
    pub stall: Duration,
    /// The longest time from the first byte out to the last byte in.
    pub total: Duration,
    /// How much of the response is taken.
    pub receive: ReceiveLimits,
}

impl Default for ExchangeLimits {
    /// 20 seconds for a connection and for a byte, 20 minutes for all, as in Heritrix.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(20),
            stall: Duration::from_secs(20),
            total: Duration::from_mins(20),
            receive: ReceiveLimits::default(),
        }
    }
}

/// Why there is no response at all.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// No connection could be made.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The connection was made, but no TLS session on it.
    #[error("cannot agree on TLS with {address}: {source}")]
    Tls {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The host ended the connection before the first byte of a response.
    #[error("the connection to {address} ended without a response")]
    NoResponse {
        /// The address.
        address: SocketAddr,
    },
    /// The host took too long to connect, or for the first byte of its response.
    #[error("{address} has not answered within {limit:?}")]
    Timeout {
        /// The address.
        address: SocketAddr,
        /// How long was waited.
        limit: Duration,
    },
    /// The response cannot be kept: the disk of this machine is full, or fails.
    #[error("cannot keep a response: {0}; see to the disk of this machine")]
    Storage(io::Error),
}

/// Something that bytes go over in both directions.
trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// A connection to one host.
pub struct Connection {
    wire: Box<dyn Wire>,
    address: SocketAddr,
    tls: Option<TlsSession>,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("address", &self.address)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

/// A finished exchange.
#[derive(Debug)]
pub struct Exchange {
    /// When the request began to go out.
    pub began: Timestamp,
    /// The time to the last byte that came in.
    pub duration: Duration,
    /// The address that was connected to.
    pub address: SocketAddr,
    /// The response as it came in.
    pub response: Response,
}

impl Connection {
    /// Connects to a host. `tls`: the client and the name of the host, for `https`.
    ///
    /// # Errors
    ///
    /// [`ExchangeError::Connect`], [`ExchangeError::Tls`] and [`ExchangeError::Timeout`].
    pub async fn open(
        address: SocketAddr,
        tls: Option<(&TlsClient, ServerName<'static>)>,
        limits: &ExchangeLimits,
        clock: &Clock,
    ) -> Result<Self, ExchangeError> {
        let late = |_| ExchangeError::Timeout {
            address,
            limit: limits.connect,
        };
        let stream = clock.timeout(limits.connect, TcpStream::connect(address));
        let stream = stream.await.map_err(late)?;
        let stream = stream.map_err(|source| ExchangeError::Connect { address, source })?;
        // Without it a request in two writes waits for the answer to the first one.
        let stream = stream.set_nodelay(true).map(|()| stream);
        let stream = stream.map_err(|source| ExchangeError::Connect { address, source })?;
        let (wire, tls): (Box<dyn Wire>, _) = match tls {
            None => (Box::new(stream), None),
            Some((client, name)) => {
                let connector = TlsConnector::from(client.config());
                let handshake = connector.connect(name.clone(), stream);
                let stream = clock.timeout(limits.connect, handshake).await;
                let stream = stream.map_err(late)?;
                let stream = stream.map_err(|source| ExchangeError::Tls { address, source })?;
                let seconds = u64::try_from(clock.now().as_second()).unwrap_or(0);
                let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
                let session = client.session(stream.get_ref().1, &name, now);
                (Box::new(stream), Some(session))
            }
        };
        Ok(Self {
            wire,
            address,
            tls,
            buffer: vec![0; READ],
        })
    }

    /// The terms of the TLS session; `None` without TLS.
    pub fn tls(&self) -> Option<&TlsSession> {
        self.tls.as_ref()
    }

    /// Sends a request and takes its response. A large response goes to a temporary file in `directory`. Whether the
    /// connection may be used again, the response says.
    ///
    /// # Errors
    ///
    /// [`ExchangeError::NoResponse`] and [`ExchangeError::Timeout`] if not a byte has come: on a connection that was used
    /// before, it is likely that the host had closed it meanwhile. [`ExchangeError::Storage`]. A response of which some bytes
    /// have come is no error, but says why it is cut.
    pub async fn exchange(
        &mut self,
        request: &Request,
        limits: &ExchangeLimits,
        directory: &Path,
        clock: &Clock,
    ) -> Result<Exchange, ExchangeError> {
        let (began, start) = (clock.now(), clock.instant());
        let mut receiver =
            ResponseReceiver::new(request.is_head(), limits.receive, directory.to_owned());
        let mut timed_out = !self.send(request, limits, start, clock).await;
        let mut last = clock.instant();
        let mut behind = 0;
        while !timed_out && !receiver.is_done() {
            let wait = remaining(limits, start, clock);
            match clock.timeout(wait, self.wire.read(&mut self.buffer)).await {
                // A reset ends a response as the end of the connection does: what has come stays.
                Ok(Ok(0) | Err(_)) => break,
                Ok(Ok(count)) => {
                    let bytes = self.buffer.get(..count).unwrap_or_default();
                    let taken = receiver.take(bytes).map_err(ExchangeError::Storage)?;
                    behind = count.saturating_sub(taken);
                    last = clock.instant();
                }
                Err(_) => timed_out = true,
            }
        }
        let address = self.address;
        if receiver.is_empty() {
            return Err(if timed_out {
                ExchangeError::Timeout {
                    address,
                    limit: limits.stall.min(limits.total),
                }
            } else {
                ExchangeError::NoResponse { address }
            });
        }
        let mut response = receiver.finish(timed_out).map_err(ExchangeError::Storage)?;
        // Bytes that nobody asked for: the next response would begin with them.
        response.is_reusable &= behind == 0;
        Ok(Exchange {
            began,
            duration: last.saturating_duration_since(start),
            address,
            response,
        })
    }

    /// Sends the request; whether the host has taken it in time. One that closes early may still have answered.
    async fn send(
        &mut self,
        request: &Request,
        limits: &ExchangeLimits,
        start: Instant,
        clock: &Clock,
    ) -> bool {
        let mut rest = request.bytes();
        while !rest.is_empty() {
            let wait = remaining(limits, start, clock);
            match clock.timeout(wait, self.wire.write(rest)).await {
                Ok(Ok(0) | Err(_)) => return true,
                Ok(Ok(count)) => rest = rest.get(count..).unwrap_or_default(),
                Err(_) => return false,
            }
        }
        let wait = remaining(limits, start, clock);
        clock.timeout(wait, self.wire.flush()).await.is_ok()
    }
}

/// How long the next byte may take.
fn remaining(limits: &ExchangeLimits, start: Instant, clock: &Clock) -> Duration {
    let passed = clock.instant().saturating_duration_since(start);
    limits.total.saturating_sub(passed).min(limits.stall)
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "hosts of tests are nobody's tasks"
)]
mod tests;
