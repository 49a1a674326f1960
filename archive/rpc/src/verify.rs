//! The server that a client means to reach, by its role and name; the name of its host does not matter.
//!
//! A server at the address of the repository that does not hold its certificate is not the repository. Nodes move
//! between machines, so hosts prove nothing.

use std::fmt;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, SignatureScheme,
};

use crate::identity::{Identity, InvalidIdentity};
use crate::role::{Grant, Role};
use crate::tls::{ALPN, LoadedCredentials};

/// The server that a connection is meant for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedIdentity {
    role: Role,
    name: Option<String>,
}

/// The reason why a genuine certificate is not that of the expected server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongServer {
    /// The certificate gives no identity.
    #[error(transparent)]
    Nobody(#[from] InvalidIdentity),
    /// The certificate is of another environment.
    #[error("it is of environment {found:?}, not {own:?}")]
    Environment {
        /// The own environment.
        own: String,
        /// The environment of the server.
        found: String,
    },
    /// The certificate is of another part or person.
    #[error("it is {found}, not {expected}")]
    Somebody {
        /// The server that was expected.
        expected: ExpectedIdentity,
        /// The server that answered.
        found: String,
    },
}

impl ExpectedIdentity {
    /// Expects any server in this role: the repository, whatever its name.
    pub fn any_of_role(role: Role) -> Self {
        Self { role, name: None }
    }

    /// Expects exactly this server: `node/kb-3`.
    pub fn named_grant(grant: &Grant) -> Self {
        Self {
            role: grant.role(),
            name: Some(grant.name().to_owned()),
        }
    }

    fn matches(&self, grant: &Grant) -> bool {
        grant.role() == self.role && self.name.as_deref().is_none_or(|name| name == grant.name())
    }
}

impl fmt::Display for ExpectedIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.role, self.name.as_deref().unwrap_or("*"))
    }
}

/// The verifier of a server: chain, revocation and time as for any peer; then the environment; then role and name.
#[derive(Debug)]
struct ExpectedServer {
    own: Arc<LoadedCredentials>,
    expected: ExpectedIdentity,
}

/// Returns the configuration of a connection that goes out to `expected`.
pub(crate) fn client_config(
    own: Arc<LoadedCredentials>,
    expected: &ExpectedIdentity,
) -> Result<Arc<ClientConfig>, Error> {
    let certificate = own.own_certificate();
    let provider = Arc::clone(own.server_config().crypto_provider());
    let expected = expected.clone();
    let verifier = ExpectedServer { own, expected };
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_cert_resolver(certificate);
    client.alpn_protocols = vec![ALPN.to_vec()];
    client.resumption = Resumption::disabled();
    client.enable_sni = false;
    Ok(Arc::new(client))
}

impl ExpectedServer {
    fn check(&self, certificate: &[u8]) -> Result<(), WrongServer> {
        let server = Identity::from_certificate(certificate)?;
        let own = self.own.identity.environment();
        if server.environment() != own {
            return Err(WrongServer::Environment {
                own: own.to_owned(),
                found: server.environment().to_owned(),
            });
        }
        if server
            .grants()
            .iter()
            .any(|grant| self.expected.matches(grant))
        {
            Ok(())
        } else {
            Err(WrongServer::Somebody {
                expected: self.expected.clone(),
                found: server.to_string(),
            })
        }
    }
}

impl ServerCertVerifier for ExpectedServer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.own
            .verifier()
            .verify_client_cert(end_entity, intermediates, now)?;
        match self.check(end_entity) {
            Ok(()) => Ok(ServerCertVerified::assertion()),
            Err(wrong) => Err(CertificateError::Other(OtherError(Arc::new(wrong))).into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.own
            .verifier()
            .verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.own
            .verifier()
            .verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.own.verifier().supported_verify_schemes()
    }
}
