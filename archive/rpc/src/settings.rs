//! The section `[rpc]`, the same in every part's settings: the address, and the identity of the part.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use crate::limits::{CALLS_PER_CALLER, RpcLimits};
use crate::tls::{CredentialFiles, Credentials, CredentialsError};

/// The address at which a part listens, and its certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct RpcSettings {
    /// The address to listen at, `host:port`; port 0 takes any free one.
    pub listen: String,
    /// The certificate chain of the part, PEM.
    pub certificate: PathBuf,
    /// The private key of the part, PEM (PKCS #8). Only its owner and its group may read the file: mode 0600, or 0640.
    pub key: PathBuf,
    /// The certificate authorities of the environment, PEM.
    pub authorities: PathBuf,
    /// The list of revoked certificates, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<PathBuf>,
    /// The number of calls that one person or harvester may have under way at once; more are refused. Parts of the
    /// archive are not limited.
    #[serde(default = "calls_per_caller")]
    pub calls_per_caller: NonZeroUsize,
}

const fn calls_per_caller() -> NonZeroUsize {
    CALLS_PER_CALLER
}

impl RpcSettings {
    /// Makes settings of a part without a list of revoked certificates, with the usual limits.
    pub fn new(
        listen: impl Into<String>,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
        authorities: impl Into<PathBuf>,
    ) -> Self {
        Self {
            listen: listen.into(),
            certificate: certificate.into(),
            key: key.into(),
            authorities: authorities.into(),
            revoked: None,
            calls_per_caller: CALLS_PER_CALLER,
        }
    }

    /// Reads the certificate, the key and the authorities.
    ///
    /// # Errors
    ///
    /// [`CredentialsError`] if a file cannot be read, or they do not fit together.
    pub fn load_credentials(&self, now: SystemTime) -> Result<Credentials, CredentialsError> {
        let files = CredentialFiles {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            authorities: self.authorities.clone(),
            revoked: self.revoked.clone(),
        };
        Credentials::from_files(files, now)
    }

    /// Returns the limits of a server with these settings, which ends `drain` after it was asked to.
    pub fn rpc_limits(&self, drain: Duration) -> RpcLimits {
        RpcLimits {
            drain,
            calls_per_caller: self.calls_per_caller.get(),
            ..RpcLimits::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(calls: &str) -> Result<RpcSettings, serde_json::Error> {
        serde_json::from_str(&format!(
            r#"{{"listen": "h:1", "certificate": "c", "key": "k", "authorities": "a"{calls}}}"#
        ))
    }

    /// Fails if a server does not limit its callers as it is set, or not at all where nothing is set.
    #[test]
    fn calls_per_caller_reach_the_limits() {
        let drain = Duration::from_secs(7);
        for (text, calls_per_caller) in [
            ("", CALLS_PER_CALLER.get()),
            (r#", "calls_per_caller": 3"#, 3),
        ] {
            let expected = RpcLimits {
                calls_per_caller,
                drain,
                ..RpcLimits::default()
            };
            assert_eq!(
                settings(text).unwrap().rpc_limits(drain),
                expected,
                "{text}"
            );
        }
        assert!(settings(r#", "calls_per_caller": 0"#).is_err());
    }
}
