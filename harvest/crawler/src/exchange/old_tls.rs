//! TLS with hosts that speak nothing else than what was given up: versions before 1.2, cipher suites without forward
//! secrecy, short keys.
//!
//! A page of such a host is a page of its time as well, and nobody is asked for a secret of ours on such a connection.
//! Owns the second handshake, by the system's OpenSSL at security level 0 (OpenSSL 3, `SSL_CTX_set_security_level`): TLS
//! 1.0 and up, with whatever suite the host has.

use std::io;
use std::pin::Pin;

use openssl::error::ErrorStack;
use openssl::ssl::{
    Ssl, SslCipherRef, SslContext, SslMethod, SslOptions, SslVerifyMode, SslVersion,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpStream;
use tokio_openssl::SslStream;

use super::tls::{TlsClient, TlsSession};

/// The suites that a host is offered: all that encrypt, at any strength.
const SUITES: &str = "ALL:!aNULL:!eNULL:@SECLEVEL=0";

/// The option that a host may be connected to which knows no secure renegotiation (`SSL_OP_LEGACY_SERVER_CONNECT`).
const LEGACY_SERVER_CONNECT: u64 = 1 << 2;

/// A client for hosts of old.
#[derive(Clone)]
pub struct OldTlsClient {
    context: SslContext,
}

impl std::fmt::Debug for OldTlsClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OldTlsClient").finish_non_exhaustive()
    }
}

impl OldTlsClient {
    /// Makes a client.
    ///
    /// # Errors
    ///
    /// If the system's library was built without what this needs.
    pub fn new() -> Result<Self, ErrorStack> {
        let mut context = SslContext::builder(SslMethod::tls_client())?;
        context.set_security_level(0);
        context.set_cipher_list(SUITES)?;
        context.set_min_proto_version(Some(SslVersion::TLS1))?;
        context.set_verify(SslVerifyMode::NONE);
        // Servers that know no secure renegotiation (RFC 5746).
        context.set_options(SslOptions::from_bits_retain(LEGACY_SERVER_CONNECT));
        Ok(Self {
            context: context.build(),
        })
    }

    /// Makes a TLS session on a connection; `judge` says what the certificate would have been worth.
    pub(super) async fn connect(
        &self,
        stream: TcpStream,
        name: &ServerName<'_>,
        judge: &TlsClient,
        now: UnixTime,
    ) -> io::Result<(SslStream<TcpStream>, TlsSession)> {
        let mut ssl = Ssl::new(&self.context)?;
        if let ServerName::DnsName(host) = name {
            ssl.set_hostname(host.as_ref())?;
        }
        let mut stream = SslStream::new(ssl, stream)?;
        Pin::new(&mut stream)
            .connect()
            .await
            .map_err(io::Error::other)?;
        let mut chain = Vec::new();
        for certificate in stream.ssl().peer_cert_chain().into_iter().flatten() {
            chain.push(CertificateDer::from(certificate.to_der()?));
        }
        let cipher = stream.ssl().current_cipher();
        let cipher = cipher.and_then(SslCipherRef::standard_name);
        let session = TlsSession {
            verdict: judge.verdict(&chain, name, now),
            version: version_name(stream.ssl().version_str()),
            cipher: cipher.unwrap_or("unknown").to_owned(),
            fingerprint: hex::encode(chain.first().map(Sha256::digest).unwrap_or_default()),
            protocol: None,
        };
        Ok((stream, session))
    }
}

/// Returns the name of a version as the other library writes it: `TLSv1_0` for `TLSv1`, `TLSv1_2` for `TLSv1.2`.
fn version_name(name: &str) -> String {
    match name {
        "TLSv1" => "TLSv1_0".to_owned(),
        name => name.replace('.', "_"),
    }
}
