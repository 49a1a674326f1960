//! TLS towards hosts whose certificates are no reason not to archive them.
//!
//! Owns what is noted of a connection: whether the certificate would have been good, and what was agreed on. Every
//! certificate is taken, because a page behind an expired one is a page of its time as well; nobody is asked for a
//! secret of ours on such a connection. TLS 1.2 and 1.3.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};
use sha2::{Digest as _, Sha256};

/// The protocol whose text is archived as it is.
const HTTP1: &[u8] = b"http/1.1";

/// The protocol whose heads are archived as text of HTTP/1.1.
pub(super) const HTTP2: &[u8] = b"h2";

/// The protocols that a host is offered (ALPN, RFC 7301).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolOffer {
    /// HTTP/1.1 alone.
    Http1,
    /// HTTP/2 alone.
    Http2,
    /// HTTP/2, or else HTTP/1.1.
    Both,
}

/// The worth of a host's certificate, had it been asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateVerdict {
    /// An authority that is known vouches for this host now.
    Good,
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// No authority that is known has issued the certificate, or none is known at all.
    UnknownIssuer,
    /// The certificate was issued by itself, and is no authority that is known.
    SelfSigned,
    /// The certificate names other hosts.
    WrongName,
    /// The signature of an issuer, or that of the host in the handshake, is another one than its key makes.
    BadSignature,
    /// The certificate is wrong in another way, in the words of the library.
    Invalid(String),
}

impl CertificateVerdict {
    /// Returns the annotation of the crawl log; `None` of a good one.
    pub const fn annotation(&self) -> Option<&'static str> {
        match self {
            Self::Good => None,
            Self::Expired => Some("tls:expired"),
            Self::NotYetValid => Some("tls:notYetValid"),
            Self::UnknownIssuer => Some("tls:unknownIssuer"),
            Self::SelfSigned => Some("tls:selfSigned"),
            Self::WrongName => Some("tls:wrongName"),
            Self::BadSignature => Some("tls:badSignature"),
            Self::Invalid(_) => Some("tls:invalid"),
        }
    }
}

/// The terms of a TLS session with a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSession {
    /// The worth of the host's certificate.
    pub verdict: CertificateVerdict,
    /// The version: `TLSv1_3`.
    pub version: String,
    /// The cipher suite: `TLS13_AES_256_GCM_SHA384`.
    pub cipher: String,
    /// The SHA-256 of the certificate, in hexadecimal digits.
    pub fingerprint: String,
    /// The protocol that the host has selected of those offered: `h2`.
    pub protocol: Option<Vec<u8>>,
}

/// A client that accepts every certificate.
#[derive(Clone, Debug)]
pub struct TlsClient {
    config: ClientConfig,
    provider: Arc<CryptoProvider>,
    /// Absent: no authority is known.
    judge: Option<Arc<WebPkiServerVerifier>>,
}

impl TlsClient {
    /// Returns a client that measures certificates by these authorities.
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
            has_bad_signature: Arc::default(),
        };
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Self {
            config,
            provider,
            judge: judge.build().ok(),
        })
    }

    /// Begins a handshake.
    pub(super) fn begin_attempt(&self, offer: ProtocolOffer) -> TlsAttempt<'_> {
        let has_bad_signature = Arc::<AtomicBool>::default();
        let verifier = AnyCertificate {
            provider: Arc::clone(&self.provider),
            has_bad_signature: Arc::clone(&has_bad_signature),
        };
        let mut config = self.config.clone();
        config
            .dangerous()
            .set_certificate_verifier(Arc::new(verifier));
        let protocols: &[&[u8]] = match offer {
            ProtocolOffer::Http1 => &[HTTP1],
            ProtocolOffer::Http2 => &[HTTP2],
            ProtocolOffer::Both => &[HTTP2, HTTP1],
        };
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        TlsAttempt {
            client: self,
            config: Arc::new(config),
            has_bad_signature,
        }
    }

    /// Returns the worth of a host's certificate, which is the first of a chain.
    pub(super) fn verdict(
        &self,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> CertificateVerdict {
        use CertificateError as E;
        let Some((own, others)) = chain.split_first() else {
            return CertificateVerdict::UnknownIssuer;
        };
        let Some(judge) = &self.judge else {
            return if is_self_issued(own) {
                CertificateVerdict::SelfSigned
            } else {
                CertificateVerdict::UnknownIssuer
            };
        };
        let Err(error) = judge.verify_server_cert(own, others, name, &[], now) else {
            return CertificateVerdict::Good;
        };
        let Error::InvalidCertificate(why) = &error else {
            return CertificateVerdict::Invalid(error.to_string());
        };
        // A certificate that may issue others is refused as that of a host before its issuer is looked for.
        let has_no_issuer = *why == E::UnknownIssuer || matches!(why, E::Other(_));
        if has_no_issuer && is_self_issued(own) {
            return CertificateVerdict::SelfSigned;
        }
        if matches!(why, E::Expired | E::ExpiredContext { .. }) {
            CertificateVerdict::Expired
        } else if matches!(why, E::NotValidYet | E::NotValidYetContext { .. }) {
            CertificateVerdict::NotYetValid
        } else if matches!(why, E::NotValidForName | E::NotValidForNameContext { .. }) {
            CertificateVerdict::WrongName
        } else if *why == E::UnknownIssuer {
            CertificateVerdict::UnknownIssuer
        } else if *why == E::BadSignature {
            CertificateVerdict::BadSignature
        } else {
            CertificateVerdict::Invalid(why.to_string())
        }
    }
}

/// A handshake that has begun.
pub(super) struct TlsAttempt<'a> {
    client: &'a TlsClient,
    config: Arc<ClientConfig>,
    has_bad_signature: Arc<AtomicBool>,
}

impl TlsAttempt<'_> {
    pub(super) fn client_config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// Notes what was agreed on, once the handshake is over.
    pub(super) fn tls_session(
        &self,
        connection: &ClientConnection,
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> TlsSession {
        let version = connection.protocol_version();
        let cipher = connection.negotiated_cipher_suite();
        let chain = connection.peer_certificates().unwrap_or_default();
        let digest = chain.first().map(Sha256::digest).unwrap_or_default();
        let verdict = if self.has_bad_signature.load(Ordering::Relaxed) {
            CertificateVerdict::BadSignature
        } else {
            self.client.verdict(chain, name, now)
        };
        TlsSession {
            verdict,
            version: version.map_or_else(String::new, |version| format!("{version:?}")),
            cipher: cipher.map_or_else(String::new, |cipher| format!("{:?}", cipher.suite())),
            fingerprint: hex::encode(digest),
            protocol: connection.alpn_protocol().map(<[u8]>::to_vec),
        }
    }
}

/// Returns the authorities that this machine knows. None that can be read: every certificate is one of an unknown
/// issuer.
pub fn system_authorities() -> RootCertStore {
    let mut authorities = RootCertStore::empty();
    // An authority that cannot be read vouches for nobody; the others do.
    authorities.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    authorities
}

/// Returns whether a certificate names itself as its issuer (RFC 5280 §4.1): issuer and subject are the same.
fn is_self_issued(certificate: &[u8]) -> bool {
    const SEQUENCE: u8 = 0x30;
    const VERSION: u8 = 0xa0;
    let names = || {
        let (_, certificate, _) = der_element(certificate)?;
        let (_, mut rest, _) = der_element(certificate)?;
        if rest.first() == Some(&VERSION) {
            (_, _, rest) = der_element(rest)?;
        }
        // Number and algorithm, then the issuer, the validity and the subject.
        let mut issuer = None;
        for position in 0..5 {
            let (tag, element, behind) = der_element(rest)?;
            rest = behind;
            match position {
                2 => issuer = Some((tag, element)),
                4 => return Some(issuer == Some((tag, element)) && tag == SEQUENCE),
                _ => {}
            }
        }
        None
    };
    names().unwrap_or(false)
}

/// Reads an element of DER: its tag, its content, and what follows it.
fn der_element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = bytes.split_first_chunk()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let add = |length: usize, digit: &u8| length << 8 | usize::from(*digit);
            (digits.iter().fold(0, add), rest)
        }
        _ => return None,
    };
    let (content, behind) = rest.split_at_checked(length)?;
    Some((tag, content, behind))
}

/// A verifier that accepts every certificate and every signature: see the head of this file.
#[derive(Debug)]
struct AnyCertificate {
    provider: Arc<CryptoProvider>,
    has_bad_signature: Arc<AtomicBool>,
}

impl AnyCertificate {
    /// Accepts a signature, and notes if it is a bad one. One that this library cannot check is not called bad.
    fn take(&self, verified: Result<HandshakeSignatureValid, Error>) -> HandshakeSignatureValid {
        verified.unwrap_or_else(|error| {
            let is_bad = error == Error::InvalidCertificate(CertificateError::BadSignature);
            self.has_bad_signature.fetch_or(is_bad, Ordering::Relaxed);
            HandshakeSignatureValid::assertion()
        })
    }
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
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        Ok(self.take(verify_tls12_signature(message, cert, dss, algorithms)))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        Ok(self.take(verify_tls13_signature(message, cert, dss, algorithms)))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};

    use super::*;

    /// Fails if a certificate of another issuer passes for a self-signed one, or one that is cut or damaged ends the
    /// crawl.
    #[test]
    fn damaged_certificate_is_not_self_issued() {
        let params = |name: &str| {
            let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            let names = &mut params.distinguished_name;
            names.push(rcgen::DnType::CommonName, name);
            params
        };
        let key = KeyPair::generate().unwrap();
        let own = params("a.test").self_signed(&key).unwrap();
        let own = own.der();
        assert!(is_self_issued(own));
        for length in 0..own.len() {
            assert!(!is_self_issued(&own[..length]), "{length}");
        }
        for at in 0..own.len() {
            for byte in [0x00, 0x7f, 0x80, 0x84, 0xff] {
                let mut damaged = own.to_vec();
                damaged[at] = byte;
                // Any answer is right; a panic is not.
                let _answer = is_self_issued(&damaged);
            }
        }
        let authority =
            CertifiedIssuer::self_signed(params("b.test"), KeyPair::generate().unwrap());
        let issued = params("a.test")
            .signed_by(&key, &authority.unwrap())
            .unwrap();
        assert!(!is_self_issued(issued.der()));
    }
}
