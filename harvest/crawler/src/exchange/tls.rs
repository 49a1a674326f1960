//! TLS towards hosts whose certificates are no reason not to archive them.
//!
//! Owns what is noted of a connection: whether the certificate would have been good, and what was agreed on. Every certificate is
//! taken, because a page behind an expired one is a page of its time as well; nobody is asked for a secret of ours on such a
//! connection. TLS 1.2 and 1.3.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};
use sha2::{Digest as _, Sha256};

/// The protocol that is asked for: with another one the wire would not be the text that is archived.
const ALPN: &[u8] = b"http/1.1";

/// The worth of a host's certificate, had it been asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateVerdict {
    /// An authority that is known vouches for this host now.
    Good,
    /// Its time is over.
    Expired,
    /// Its time has not come.
    NotYetValid,
    /// No authority that is known has issued it, or none is known at all.
    UnknownIssuer,
    /// It names other hosts.
    WrongName,
    /// It is wrong in another way, in the words of the library.
    Invalid(String),
}

impl CertificateVerdict {
    /// The annotation of the crawl log; `None` of a good one.
    pub const fn annotation(&self) -> Option<&'static str> {
        match self {
            Self::Good => None,
            Self::Expired => Some("tls:expired"),
            Self::NotYetValid => Some("tls:notYetValid"),
            Self::UnknownIssuer => Some("tls:unknownIssuer"),
            Self::WrongName => Some("tls:wrongName"),
            Self::Invalid(_) => Some("tls:invalid"),
        }
    }
}

/// The terms of a TLS session with a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSession {
    /// The worth of its certificate.
    pub verdict: CertificateVerdict,
    /// The version: `TLSv1_3`.
    pub version: String,
    /// The cipher suite: `TLS13_AES_256_GCM_SHA384`.
    pub cipher: String,
    /// The SHA-256 of the certificate, in hexadecimal digits.
    pub fingerprint: String,
}

/// Makes connections that take every certificate.
#[derive(Clone, Debug)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
    /// Absent: no authority is known.
    judge: Option<Arc<WebPkiServerVerifier>>,
}

impl TlsClient {
    /// A client that measures certificates by these authorities.
    ///
    /// # Errors
    ///
    /// If the crypto provider lacks a version of TLS.
    pub fn new(authorities: RootCertStore) -> Result<Self, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let judge = WebPkiServerVerifier::builder_with_provider(
            Arc::new(authorities),
            Arc::clone(&provider),
        );
        let verifier = AnyCertificate {
            provider: Arc::clone(&provider),
        };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Self {
            config: Arc::new(config),
            judge: judge.build().ok(),
        })
    }

    pub(super) fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// Notes what was agreed on, once the handshake is over.
    pub(super) fn session(
        &self,
        connection: &ClientConnection,
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> TlsSession {
        let version = connection.protocol_version();
        let cipher = connection.negotiated_cipher_suite();
        let chain = connection.peer_certificates().unwrap_or_default();
        let digest = chain.first().map(Sha256::digest).unwrap_or_default();
        TlsSession {
            verdict: self.verdict(chain, name, now),
            version: version.map_or_else(String::new, |version| format!("{version:?}")),
            cipher: cipher.map_or_else(String::new, |cipher| format!("{:?}", cipher.suite())),
            fingerprint: hex::encode(digest),
        }
    }

    fn verdict(
        &self,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> CertificateVerdict {
        use CertificateError as E;
        let (Some(judge), Some((own, others))) = (&self.judge, chain.split_first()) else {
            return CertificateVerdict::UnknownIssuer;
        };
        let Err(error) = judge.verify_server_cert(own, others, name, &[], now) else {
            return CertificateVerdict::Good;
        };
        let Error::InvalidCertificate(why) = &error else {
            return CertificateVerdict::Invalid(error.to_string());
        };
        if matches!(why, E::Expired | E::ExpiredContext { .. }) {
            CertificateVerdict::Expired
        } else if matches!(why, E::NotValidYet | E::NotValidYetContext { .. }) {
            CertificateVerdict::NotYetValid
        } else if matches!(why, E::NotValidForName | E::NotValidForNameContext { .. }) {
            CertificateVerdict::WrongName
        } else if *why == E::UnknownIssuer {
            CertificateVerdict::UnknownIssuer
        } else {
            CertificateVerdict::Invalid(why.to_string())
        }
    }
}

/// Takes every certificate and every signature: see the head of this file.
#[derive(Debug)]
struct AnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
