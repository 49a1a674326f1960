//! Connections from browsers: TLS without client certificates, where the host that is asked for chooses the
//! certificate.
//!
//! [`BrowserAcceptor`] takes an open stream (of a listener, or of a proxy's `CONNECT`) and returns an encrypted one.
//! Certificates come from files, and are exchanged without a restart; or from a maker that can make one for any host
//! ([`MakeCertificate`]). TLS 1.2 and 1.3, one crypto provider (ring), HTTP/1.1 and, where it is offered, HTTP/2.
//!
//! Not promised: who the client is. No client is asked for a certificate, and no role follows from this door. The
//! caller bounds the number of open connections; the number of simultaneous handshakes is bounded here.
//!
//! ```no_run
//! use archive_rpc::browser::{BrowserAcceptor, BrowserOptions, SiteFiles, UnknownHosts};
//!
//! # async fn accept(now: std::time::SystemTime) -> Result<(), Box<dyn std::error::Error>> {
//! let site = SiteFiles {
//!     certificate: "site.pem".into(),
//!     key: "site-key.pem".into(),
//! };
//! let acceptor = BrowserAcceptor::for_sites(vec![site], UnknownHosts::Refused, BrowserOptions::default(), now)?;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8443").await?;
//! let (stream, _address) = listener.accept().await?;
//! let encrypted = acceptor.accept_browser(stream).await?;
//! # drop(encrypted);
//! # Ok(())
//! # }
//! ```

mod made;
mod sites;

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use rustls::server::{Acceptor, ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use self::made::MadeCertificates;
use self::sites::SiteCertificates;

const HTTP_1: &[u8] = b"http/1.1";
const HTTP_2: &[u8] = b"h2";

/// The certificate of a site and its private key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteFiles {
    /// The certificate and those that lead to its authority. It is shown for the hosts that it names.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
}

/// The answer to a client that names a host without a certificate, or no host at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownHosts {
    /// The client is refused.
    Refused,
    /// The client is shown the certificate of the first site, for addresses, which browsers do not name.
    First,
}

/// The certificate of a host and its private key, as PEM.
#[derive(Clone)]
pub struct HostPem {
    /// The certificate and those that lead to its authority.
    pub certificate: String,
    /// The private key of the certificate.
    pub key: String,
}

/// A source of certificates for hosts that are not known in advance.
pub trait MakeCertificate: Send + Sync {
    /// Makes a certificate for a host: a name in lower case, or an address. May block. Called again for the same host
    /// after hours; so the certificate must be good for a day at least.
    ///
    /// # Errors
    ///
    /// The reason why that host gets no certificate. The client is refused then.
    fn make(&self, host: &str) -> Result<HostPem, Box<dyn Error + Send + Sync>>;
}

/// The options of an acceptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrowserOptions {
    /// The longest time from the open stream to the end of the handshake.
    pub handshake: Duration,
    /// The most handshakes at once; others wait, within their time.
    pub handshakes: usize,
    /// Whether HTTP/2 is offered beside HTTP/1.1.
    pub http2: bool,
}

impl Default for BrowserOptions {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            handshakes: 256,
            http2: false,
        }
    }
}

/// The reason why certificates of sites are not loaded. The earlier ones stay in use.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// No certificate was named.
    #[error("no certificate is named; name one for each host that browsers ask for")]
    Nothing,
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file is not the PEM that it should be.
    #[error("{}: {reason}", path.display())]
    Pem {
        /// The path of the file.
        path: PathBuf,
        /// The fault of the file.
        reason: String,
    },
    /// Key and certificate do not belong together, or are of a kind that is not supported.
    #[error("{}: certificate and private key: {reason}", path.display())]
    Key {
        /// The path of the certificate.
        path: PathBuf,
        /// The fault of the key.
        reason: rustls::Error,
    },
    /// A certificate names no host.
    #[error(
        "{}: the certificate names no host; browsers want the host as a subject alternative name", path.display()
    )]
    NoHost {
        /// The path of the certificate.
        path: PathBuf,
    },
    /// A certificate is not valid now.
    #[error("{}: the certificate is good from {from} to {to} only; renew it", path.display())]
    Term {
        /// The path of the certificate.
        path: PathBuf,
        /// The time from which the certificate is valid.
        from: String,
        /// The time until which the certificate is valid.
        to: String,
    },
    /// Two certificates name one host.
    #[error("{} and {} are both for {host}; keep one of them", path.display(), other.display())]
    Twice {
        /// The host that both name.
        host: String,
        /// The path of one certificate.
        path: PathBuf,
        /// The path of the other certificate.
        other: PathBuf,
    },
    /// The TLS library cannot be set up: a bug.
    #[error("tls: {0}")]
    Tls(#[from] rustls::Error),
}

/// The reason why a stream was not accepted. The stream is closed.
#[derive(Debug, thiserror::Error)]
pub enum BrowserError {
    /// The client did not end the handshake in time.
    #[error("no handshake within {0:?}")]
    TimedOut(Duration),
    /// The client names no host, and there is no certificate for such clients.
    #[error("the client names no host")]
    NoHost,
    /// The host that the client names has no certificate.
    #[error("there is no certificate for {0}")]
    UnknownHost(String),
    /// No certificate could be made for the host that the client names.
    #[error("no certificate for {host}: {reason}")]
    NotMade {
        /// The host that the client names.
        host: String,
        /// The error of the maker.
        reason: Box<dyn Error + Send + Sync>,
    },
    /// The client broke off, speaks no TLS, or does not accept the certificate.
    #[error(transparent)]
    Broken(#[from] io::Error),
}

/// An acceptor of connections from browsers.
pub struct BrowserAcceptor {
    certificates: Certificates,
    config: ServerConfig,
    limit: Duration,
    handshakes: Semaphore,
}

/// A source of certificates.
enum Certificates {
    Sites(SiteCertificates),
    Made(MadeCertificates),
}

impl BrowserAcceptor {
    /// Makes an acceptor that shows the certificates in these files; `now` decides whether they are valid.
    ///
    /// # Errors
    ///
    /// [`SiteError`] names the file, the fault, and the remedy.
    pub fn for_sites(
        files: Vec<SiteFiles>,
        unknown: UnknownHosts,
        options: BrowserOptions,
        now: SystemTime,
    ) -> Result<Self, SiteError> {
        let sites = SiteCertificates::open(files, unknown, now)?;
        Self::new(Certificates::Sites(sites), options)
    }

    /// Makes an acceptor that shows certificates made for any host that a client names.
    ///
    /// # Errors
    ///
    /// [`SiteError::Tls`] only.
    pub fn making_certificates(
        maker: Arc<dyn MakeCertificate>,
        options: BrowserOptions,
    ) -> Result<Self, SiteError> {
        let made = MadeCertificates::new(maker);
        Self::new(Certificates::Made(made), options)
    }

    fn new(certificates: Certificates, options: BrowserOptions) -> Result<Self, SiteError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(ChosenCertificate(None)));
        config.alpn_protocols = vec![HTTP_1.to_vec()];
        if options.http2 {
            config.alpn_protocols.insert(0, HTTP_2.to_vec());
        }
        Ok(Self {
            certificates,
            config,
            limit: options.handshake,
            handshakes: Semaphore::new(options.handshakes),
        })
    }

    /// Reads the files again, or drops the made certificates. After an error nothing changes. Open connections stay.
    ///
    /// # Errors
    ///
    /// [`SiteError`] names the file and the fault.
    pub fn reload_certificates(&self, now: SystemTime) -> Result<(), SiteError> {
        match &self.certificates {
            Certificates::Sites(sites) => sites.reload_certificates(now),
            Certificates::Made(made) => {
                made.forget_certificates();
                Ok(())
            }
        }
    }

    /// Makes the TLS handshake over an open stream.
    ///
    /// # Errors
    ///
    /// The reason why the client has no encrypted stream now.
    pub async fn accept_browser<S>(&self, stream: S) -> Result<BrowserStream<S>, BrowserError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.accept_within(stream, None).await
    }

    /// Makes the TLS handshake with a client that has named its host before, as in a proxy's `CONNECT`. That host
    /// counts if the client names none in the handshake, as with an address.
    ///
    /// # Errors
    ///
    /// As those of [`BrowserAcceptor::accept_browser`].
    pub async fn accept_for<S>(
        &self,
        stream: S,
        host: &str,
    ) -> Result<BrowserStream<S>, BrowserError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.accept_within(stream, Some(host)).await
    }

    async fn accept_within<S>(
        &self,
        stream: S,
        meant: Option<&str>,
    ) -> Result<BrowserStream<S>, BrowserError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let shaken = timeout(self.limit, self.shake(stream, meant)).await;
        shaken.unwrap_or(Err(BrowserError::TimedOut(self.limit)))
    }

    async fn shake<S>(
        &self,
        stream: S,
        meant: Option<&str>,
    ) -> Result<BrowserStream<S>, BrowserError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let place = self.handshakes.acquire().await;
        let _place = place.map_err(io::Error::other)?;
        let begun = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        let named = begun.client_hello().server_name().map(str::to_owned);
        let host = named.or_else(|| meant.map(str::to_owned));
        let host = host.map(|host| host.to_ascii_lowercase());
        let (certificate, refusal) = match self.certificates.choose(host).await {
            Ok(certificate) => (Some(certificate), None),
            Err(error) => (None, Some(error)),
        };
        let mut config = self.config.clone();
        config.cert_resolver = Arc::new(ChosenCertificate(certificate));
        // Without a certificate the handshake fails, and the client gets an alert.
        let ended = begun.into_stream(Arc::new(config)).await;
        match (refusal, ended) {
            (Some(refusal), _) => Err(refusal),
            (None, Ok(stream)) => Ok(BrowserStream(stream)),
            (None, Err(error)) => Err(error.into()),
        }
    }
}

impl Certificates {
    async fn choose(&self, host: Option<String>) -> Result<Arc<CertifiedKey>, BrowserError> {
        match self {
            Self::Sites(sites) => sites.choose_certificate(host),
            Self::Made(made) => {
                made.choose_certificate(host.ok_or(BrowserError::NoHost)?)
                    .await
            }
        }
    }
}

/// The certificate of one handshake; `None` refuses the client.
#[derive(Debug)]
struct ChosenCertificate(Option<Arc<CertifiedKey>>);

impl ResolvesServerCert for ChosenCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.clone()
    }
}

/// An encrypted stream from a browser.
pub struct BrowserStream<S>(TlsStream<S>);

impl<S> BrowserStream<S> {
    /// Returns the host that the client named in the handshake.
    pub fn host(&self) -> Option<&str> {
        self.0.get_ref().1.server_name()
    }

    /// Returns whether HTTP/2 was agreed on; else the connection speaks HTTP/1.1.
    pub fn is_http2(&self) -> bool {
        self.0.get_ref().1.alpn_protocol() == Some(HTTP_2)
    }

    /// Returns the stream below, for its addresses.
    pub fn get_ref(&self) -> &S {
        self.0.get_ref().0
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for BrowserStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for BrowserStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
}

impl<S> fmt::Debug for BrowserStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrowserStream")
            .field("host", &self.host())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for BrowserAcceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrowserAcceptor")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for HostPem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostPem")
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}
