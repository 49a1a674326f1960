//! The section `[rpc]`, the same in every part's settings: where it listens, and who it is.

use std::path::PathBuf;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::tls::{CredentialFiles, Credentials, CredentialsError};

/// Where a part listens and with which certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RpcSettings {
    /// `host:port`; port 0 takes any free one.
    pub listen: String,
    /// Its certificate chain, PEM.
    pub certificate: PathBuf,
    /// Its private key, PEM (PKCS #8).
    pub key: PathBuf,
    /// The certificate authorities of the environment, PEM.
    pub authorities: PathBuf,
    /// The list of revoked certificates, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<PathBuf>,
}

impl RpcSettings {
    /// Reads the certificate, the key and the authorities.
    pub fn credentials(&self, now: SystemTime) -> Result<Credentials, CredentialsError> {
        let files = CredentialFiles {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            authorities: self.authorities.clone(),
            revoked: self.revoked.clone(),
        };
        Credentials::from_files(files, now)
    }
}
