//! TLS towards browsers and other clients of the web: a certificate for host names, and no certificate of the client.
//!
//! Everything else in this crate is mutual TLS between parts; this is the other kind of door, and it lets anyone in. Owns
//! the server's half of the handshake: TLS 1.2 and 1.3, HTTP/1.1. Not promised: limits of time; the caller has them.
//!
//! # Errors
//!
//! As [`CredentialsError`] says; a certificate and a key that do not belong together are refused, and on a reload the ones
//! before stay.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::pem::{first, sections};
use crate::tls::{CredentialsError, read, unreadable};

/// The only protocol that is spoken behind the handshake.
const ALPN: &[u8] = b"http/1.1";

/// A certificate for host names, read from files. Clones share one state.
#[derive(Clone)]
pub struct BrowserTls {
    certificate: PathBuf,
    key: PathBuf,
    current: Arc<RwLock<Arc<ServerConfig>>>,
}

impl BrowserTls {
    /// Reads the chain of certificates and the private key, both PEM.
    pub fn from_files(certificate: PathBuf, key: PathBuf) -> Result<Self, CredentialsError> {
        let config = load(&certificate, &key)?;
        Ok(Self {
            certificate,
            key,
            current: Arc::new(RwLock::new(Arc::new(config))),
        })
    }

    /// Reads the files again. With an error nothing changes. New connections have what was read, open ones go on.
    pub fn reload(&self) -> Result<(), CredentialsError> {
        let config = Arc::new(load(&self.certificate, &self.key)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    /// Shakes hands with a client that has connected.
    ///
    /// # Errors
    ///
    /// Fails when the client breaks off or does not speak TLS.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let config = Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner));
        TlsAcceptor::from(config).accept(stream).await
    }
}

fn load(
    certificate: &std::path::Path,
    key: &std::path::Path,
) -> Result<ServerConfig, CredentialsError> {
    let chain: Vec<CertificateDer<'static>> =
        sections(&read(certificate)?).map_err(unreadable("the certificate for browsers"))?;
    let key: PrivateKeyDer<'static> =
        first(&read(key)?).map_err(unreadable("the private key for browsers"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(CredentialsError::Key)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(CredentialsError::Key)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(config)
}

impl fmt::Debug for BrowserTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrowserTls")
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, RootCertStore};
    use testing::in_time;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsConnector;

    use super::*;
    use crate::pki::{Authority, Validity};

    const LATER: Duration = Duration::from_hours(24);

    fn validity() -> Validity {
        // The handshake asks the clock of the system, so that the certificate has to be good for a long time.
        Validity {
            not_before: SystemTime::UNIX_EPOCH + LATER,
            not_after: SystemTime::UNIX_EPOCH + LATER * 365 * 130,
        }
    }

    /// Writes a certificate for `localhost`, and returns its authority.
    fn issue(directory: &Path, certificate: &str, key: &str) -> String {
        let authority = Authority::create("example.org", validity()).unwrap();
        let grant = "viewer/local".parse().unwrap();
        let issued = authority
            .issue(&[grant], &["localhost"], validity())
            .unwrap();
        for (name, text) in [(certificate, &issued.certificate), (key, &issued.key)] {
            let mut file = std::fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .open(directory.join(name))
                .unwrap();
            std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        }
        authority.certificate().to_owned()
    }

    /// Says hello over TLS as a client that has no certificate and knows one authority.
    async fn hello(tls: &BrowserTls, authority: &str) -> io::Result<Vec<u8>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let stream = TcpStream::connect(listener.local_addr()?).await?;
        let mut roots = RootCertStore::empty();
        roots.add(first(authority).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let server = async {
            let (stream, _) = listener.accept().await?;
            let mut stream = tls.accept(stream).await?;
            stream.write_all(b"hello").await?;
            stream.shutdown().await
        };
        let client = async {
            let name = ServerName::try_from("localhost").unwrap();
            let mut stream = TlsConnector::from(Arc::new(config))
                .connect(name, stream)
                .await?;
            let mut said = Vec::new();
            stream.read_to_end(&mut said).await?;
            Ok(said)
        };
        let (served, said) = in_time(async { tokio::join!(server, client) }).await;
        said.and_then(|said: Vec<u8>| served.map(|()| said))
    }

    /// Fails if a client without a certificate is turned away, or a reload does not reach new connections.
    #[tokio::test]
    async fn client_without_certificate_is_served_and_reload_counts() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let before = issue(directory.path(), "c.pem", "k.pem");
        let tls = BrowserTls::from_files(path("c.pem"), path("k.pem")).unwrap();
        assert_eq!(hello(&tls, &before).await.unwrap(), b"hello");
        let after = issue(directory.path(), "c.pem", "k.pem");
        assert!(
            hello(&tls, &after).await.is_err(),
            "nothing was read again yet"
        );
        tls.reload().unwrap();
        assert_eq!(hello(&tls, &after).await.unwrap(), b"hello");
    }

    /// Fails if files that cannot be used take the place of good ones.
    #[tokio::test]
    async fn key_of_another_certificate_is_refused_and_old_one_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let authority = issue(directory.path(), "c.pem", "k.pem");
        let tls = BrowserTls::from_files(path("c.pem"), path("k.pem")).unwrap();
        issue(directory.path(), "other.pem", "k.pem");
        assert!(matches!(tls.reload(), Err(CredentialsError::Key(_))));
        assert_eq!(hello(&tls, &authority).await.unwrap(), b"hello");
        let absent = BrowserTls::from_files(path("none.pem"), path("k.pem"));
        assert!(matches!(absent, Err(CredentialsError::Read { .. })));
    }
}
