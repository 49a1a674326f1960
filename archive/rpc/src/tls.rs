//! The own certificate and the trusted authorities, for both ends of a connection. Exchanged without a restart.
//!
//! TLS 1.3 only, one crypto provider (ring), HTTP/2 only. No session is resumed: a resumed session would not check the
//! peer's certificate again, and connections here live long.
//!
//! Only credentials that are complete and fit together are loaded: the key is that of the certificate, the certificate
//! is valid by the same authorities and the same list of revoked ones that peers are checked by. Not promised: that an
//! open connection notices an exchange at once. New ones do; open ones at their next call.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{RootCertStore, ServerConfig};
use tokio::sync::watch;

use crate::identity::{Identity, InvalidIdentity};
use crate::pem::{self, first_section, pem_sections};
use crate::refusal::{RefusalKind, Refusals};

/// The files of the own certificate and the trusted authorities, read at start and at each reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialFiles {
    /// The own certificate, PEM.
    pub certificate: PathBuf,
    /// The private key of that certificate, PEM. Refused if others on this machine can use the file.
    pub key: PathBuf,
    /// The environment's authority, PEM; two while one replaces the other.
    pub authorities: PathBuf,
    /// The authorities' lists of revoked certificates, PEM. Once there is one, every authority needs one.
    pub revoked: Option<PathBuf>,
}

/// The credentials as text.
#[derive(Clone)]
pub struct CredentialPem {
    /// The own certificate.
    pub certificate: String,
    /// The private key of that certificate.
    pub key: String,
    /// The environment's authority, or several.
    pub authorities: String,
    /// Lists of revoked certificates.
    pub revoked: Option<String>,
}

/// The reason why credentials are not loaded. The earlier ones stay in use.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The purpose of the file.
        file: CredentialFile,
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A text is not the PEM that it should be.
    #[error("{file}: {reason}")]
    Pem {
        /// The purpose of the text.
        file: CredentialFile,
        /// The problem of the text.
        reason: String,
    },
    /// The own certificate gives no identity.
    #[error(transparent)]
    Identity(#[from] InvalidIdentity),
    /// The own certificate would be refused by every peer.
    #[error("one's own certificate is not good: {0}; issue one with `holdfast pki issue`")]
    NotGood(rustls::Error),
    /// Key and certificate do not belong together, or are of a kind that is not supported.
    #[error("certificate and private key: {0}")]
    Key(rustls::Error),
    /// The authorities or lists of revoked certificates cannot be used.
    #[error("authorities and revoked certificates: {0}")]
    Trust(String),
}

impl CredentialsError {
    /// Returns the file to mend.
    pub const fn wrong_file(&self) -> CredentialFile {
        match self {
            Self::Read { file, .. } | Self::Pem { file, .. } => *file,
            Self::Identity(_) | Self::NotGood(_) => CredentialFile::Certificate,
            Self::Key(_) => CredentialFile::Key,
            Self::Trust(_) => CredentialFile::Authorities,
        }
    }
}

/// The purpose of one of the [`CredentialFiles`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialFile {
    /// The own certificate.
    Certificate,
    /// The private key of that certificate.
    Key,
    /// The authorities of the environment.
    Authorities,
    /// The lists of revoked certificates.
    Revoked,
}

impl fmt::Display for CredentialFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certificate => "one's own certificate",
            Self::Key => "the private key",
            Self::Authorities => "the authorities",
            Self::Revoked => "the revoked certificates",
        })
    }
}

/// The own identity and the trusted authorities. Clones share one state.
#[derive(Clone)]
pub struct Credentials {
    files: Option<CredentialFiles>,
    current: Arc<watch::Sender<Arc<LoadedCredentials>>>,
    refusals: Refusals,
}

/// The credentials that were loaded last. Never changed, only exchanged.
pub(crate) struct LoadedCredentials {
    pub(crate) identity: Arc<Identity>,
    own: Arc<SingleCertAndKey>,
    verifier: Arc<dyn ClientCertVerifier>,
    server: Arc<ServerConfig>,
}

impl Credentials {
    /// Reads the files. `now` decides whether the own certificate is still valid.
    ///
    /// # Errors
    ///
    /// [`CredentialsError`] if a file cannot be read, or the files do not fit together.
    pub fn from_files(files: CredentialFiles, now: SystemTime) -> Result<Self, CredentialsError> {
        let loaded = LoadedCredentials::new(&files.read()?, now)?;
        Ok(Self {
            files: Some(files),
            current: Arc::new(watch::Sender::new(Arc::new(loaded))),
            refusals: Refusals::default(),
        })
    }

    /// Reads the credentials from texts.
    ///
    /// # Errors
    ///
    /// [`CredentialsError`] if a text cannot be read, or the texts do not fit together.
    pub fn from_pem(pem: &CredentialPem, now: SystemTime) -> Result<Self, CredentialsError> {
        Ok(Self {
            files: None,
            current: Arc::new(watch::Sender::new(Arc::new(LoadedCredentials::new(
                pem, now,
            )?))),
            refusals: Refusals::default(),
        })
    }

    /// Reads the files again. After an error nothing changes. Does nothing for credentials without files.
    ///
    /// # Errors
    ///
    /// [`CredentialsError`] if a file cannot be read, or the files do not fit together.
    pub fn reload_files(&self, now: SystemTime) -> Result<(), CredentialsError> {
        match &self.files {
            Some(files) => self.replace_pem(&files.read()?, now),
            None => Ok(()),
        }
    }

    /// Replaces the credentials by other texts. After an error nothing changes.
    ///
    /// # Errors
    ///
    /// [`CredentialsError`] if a text cannot be read, or the texts do not fit together.
    pub fn replace_pem(
        &self,
        pem: &CredentialPem,
        now: SystemTime,
    ) -> Result<(), CredentialsError> {
        let loaded = LoadedCredentials::new(pem, now)?;
        drop(self.current.send_replace(Arc::new(loaded)));
        Ok(())
    }

    /// Returns the own identity.
    pub fn identity(&self) -> Arc<Identity> {
        Arc::clone(&self.current_credentials().identity)
    }

    /// Sets `hear` as the listener of every refusal by a server with these credentials; only the first call has an
    /// effect.
    pub fn on_refusal(&self, hear: impl Fn(RefusalKind) + Send + Sync + 'static) {
        self.refusals.set_listener(hear);
    }

    pub(crate) const fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Returns a receiver that changes when the credentials were exchanged.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Arc<LoadedCredentials>> {
        self.current.subscribe()
    }

    pub(crate) fn current_credentials(&self) -> Arc<LoadedCredentials> {
        Arc::clone(&self.current.borrow())
    }
}

impl CredentialFiles {
    fn read(&self) -> Result<CredentialPem, CredentialsError> {
        Ok(CredentialPem {
            certificate: read(CredentialFile::Certificate, &self.certificate)?,
            key: pem::read_secret(&self.key).map_err(unread(CredentialFile::Key, &self.key))?,
            authorities: read(CredentialFile::Authorities, &self.authorities)?,
            revoked: match &self.revoked {
                Some(path) => Some(read(CredentialFile::Revoked, path)?),
                None => None,
            },
        })
    }
}

impl LoadedCredentials {
    fn new(pem: &CredentialPem, now: SystemTime) -> Result<Self, CredentialsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain: Vec<CertificateDer<'static>> =
            pem_sections(&pem.certificate).map_err(unreadable(CredentialFile::Certificate))?;
        let key: PrivateKeyDer<'static> =
            first_section(&pem.key).map_err(unreadable(CredentialFile::Key))?;
        let own = CertifiedKey::from_der(chain, key, &provider).map_err(CredentialsError::Key)?;
        let verifier = verifier(pem, &provider)?;
        let identity =
            check(verifier.as_ref(), &own.cert, unix(now)).map_err(CredentialsError::NotGood)?;
        let identity = Arc::new(identity?);
        let own = Arc::new(SingleCertAndKey::from(own));
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(CredentialsError::Key)?
            .with_client_cert_verifier(Arc::clone(&verifier))
            .with_cert_resolver(Arc::clone(&own) as Arc<_>);
        server.alpn_protocols = vec![ALPN.to_vec()];
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        Ok(Self {
            identity,
            own,
            verifier,
            server: Arc::new(server),
        })
    }

    /// Returns the configuration of a server, which demands a client certificate.
    pub(crate) fn server_config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.server)
    }

    /// Returns the own certificate, with its key.
    pub(crate) fn own_certificate(&self) -> Arc<SingleCertAndKey> {
        Arc::clone(&self.own)
    }

    /// Returns the check of any certificate of the environment, for both ends: a certificate is valid for both.
    pub(crate) fn verifier(&self) -> &dyn ClientCertVerifier {
        self.verifier.as_ref()
    }

    /// Checks whether a peer's certificate is still valid.
    pub(crate) fn check_chain_again(
        &self,
        chain: &[CertificateDer<'_>],
    ) -> Result<(), rustls::Error> {
        // The time is that of the machine, as in a handshake.
        check(self.verifier(), chain, UnixTime::now()).map(drop)
    }
}

/// The protocol that both ends speak.
pub(crate) const ALPN: &[u8] = b"h2";

fn verifier(
    pem: &CredentialPem,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, CredentialsError> {
    let mut roots = RootCertStore::empty();
    for authority in pem_sections::<CertificateDer<'static>>(&pem.authorities)
        .map_err(unreadable(CredentialFile::Authorities))?
    {
        roots
            .add(authority)
            .map_err(|e| CredentialsError::Trust(e.to_string()))?;
    }
    let revoked = match &pem.revoked {
        Some(lists) => pem_sections::<CertificateRevocationListDer<'static>>(lists)
            .map_err(unreadable(CredentialFile::Revoked))?,
        None => Vec::new(),
    };
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .with_crls(revoked)
        .build()
        .map_err(|e: VerifierBuilderError| CredentialsError::Trust(e.to_string()))
}

/// Checks that the chain is valid at `now`; the inner result is the identity in it.
fn check(
    verifier: &dyn ClientCertVerifier,
    chain: &[CertificateDer<'_>],
    now: UnixTime,
) -> Result<Result<Identity, InvalidIdentity>, rustls::Error> {
    let (own, intermediates) = chain
        .split_first()
        .ok_or(rustls::Error::NoCertificatesPresented)?;
    verifier.verify_client_cert(own, intermediates, now)?;
    Ok(Identity::from_certificate(own))
}

fn unix(now: SystemTime) -> UnixTime {
    // No certificate is valid before 1970, and none at 1970.
    UnixTime::since_unix_epoch(
        now.duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or(Duration::ZERO),
    )
}

fn unreadable(file: CredentialFile) -> impl Fn(String) -> CredentialsError {
    move |reason| CredentialsError::Pem { file, reason }
}

fn read(file: CredentialFile, path: &Path) -> Result<String, CredentialsError> {
    pem::read_pem(path).map_err(unread(file, path))
}

fn unread(file: CredentialFile, path: &Path) -> impl Fn(io::Error) -> CredentialsError {
    move |source| CredentialsError::Read {
        file,
        path: path.to_owned(),
        source,
    }
}

impl fmt::Debug for CredentialPem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CredentialPem")
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("identity", &self.identity())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for LoadedCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedCredentials")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}
