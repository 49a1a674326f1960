//! The client file: the addresses of the archive, whom to trust, and the identities of the client.
//!
//! ```toml
//! authorities = "pki/authorities.pem"   # of the environment
//! trust = "trust.json"                  # whose signatures count
//! certificate = "pki/default.pem"       # the default identity
//! key = "pki/default.key"
//!
//! [endpoints]
//! repository = "127.0.0.1:7401"         # host:port
//! index = "127.0.0.1:7407"              # absent: there is no index
//! web = "http://localhost:7410"         # absent: there are no pages for people
//! replay = "http://127.0.0.1:7408"      # absent: there is no viewer
//! proxy = "127.0.0.1:7409"              # absent: the viewer has no proxy
//!
//! [[identity]]                          # others, for `--as custodian/custodian-1`
//! role = "custodian"
//! name = "custodian-1"
//! certificate = "pki/custodian-1.pem"
//! key = "pki/custodian-1.key"
//! ```
//!
//! Owns the form of the client file and its use. Paths in it are relative to it; unknown keys are refused.
//!
//! # Errors
//!
//! A function fails if the identity, file or address that it is to use is missing or cannot be used, and names it.

mod endpoints;
mod identity_name;
mod trust;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use archive_proof::{InvalidTrustFile, TrustFile};
use archive_rpc::{
    ConnectError, CredentialFiles, Credentials, CredentialsError, ExpectedIdentity, Grant, Role,
    RpcLimits, connect_lazy,
};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};
use tonic::transport::Channel;

pub use endpoints::Endpoints;
pub use identity_name::IdentityName;
pub use trust::read_trust_file;

use crate::limits::ClientLimits;

/// The content of the client file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct ClientFile {
    /// The certificate authorities of the environment, PEM.
    pub authorities: PathBuf,
    /// The list of revoked certificates, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<PathBuf>,
    /// The trust file: whose signatures count.
    pub trust: PathBuf,
    /// The certificate of the default identity, PEM.
    pub certificate: PathBuf,
    /// The private key of the default identity, PEM.
    pub key: PathBuf,
    /// The addresses of the parts.
    pub endpoints: Endpoints,
    /// The limits on waiting.
    #[serde(default)]
    pub limits: ClientLimits,
    /// The identities beside the default one.
    #[serde(default, rename = "identity", skip_serializing_if = "Vec::is_empty")]
    #[documented_fields(rename = "identity")]
    pub identities: Vec<ClientIdentity>,
}

/// An identity beside the default one, used where a caller asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct ClientIdentity {
    /// The role of the identity.
    #[serde(with = "as_text")]
    pub role: Role,
    /// The name of the identity in that role.
    pub name: String,
    /// The certificate of the identity, PEM.
    pub certificate: PathBuf,
    /// The private key of the identity, PEM.
    pub key: PathBuf,
}

/// The reason why the client file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClientFileError {
    /// The client file does not have the identity that was asked for.
    #[error(
        "the client file has no identity {who}; it has {known}: add an [[identity]], or ask for one of these"
    )]
    NoIdentity {
        /// The identity that was asked for.
        who: IdentityName,
        /// The identities that the client file has.
        known: String,
    },
    /// The client file has several identities that fit.
    #[error("the client file has several identities {who}: {known}; name one of them")]
    Ambiguous {
        /// The identity that was asked for.
        who: IdentityName,
        /// The identities that fit.
        known: String,
    },
    /// The certificate belongs to another identity than the client file says.
    #[error("{}: this is the certificate of {found}, not of {listed}; correct the client file", .path.display())]
    Somebody {
        /// The path of the certificate.
        path: PathBuf,
        /// The name in the client file.
        listed: String,
        /// The name in the certificate.
        found: String,
    },
    /// A certificate, key or authority cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// An endpoint is no address.
    #[error("the client file's endpoints: {0}")]
    Endpoint(#[from] ConnectError),
    /// The trust file cannot be read.
    #[error("{}: the trust file cannot be read: {source}; get it from the archive's operator", .path.display())]
    ReadTrust {
        /// The path of the trust file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The content of the trust file is invalid.
    #[error("{}: {source}", .path.display())]
    Trust {
        /// The path of the trust file.
        path: PathBuf,
        /// The fault of the trust file.
        source: InvalidTrustFile,
    },
}

impl ClientFile {
    /// Makes the paths relative to `directory`, in which the client file lies.
    #[must_use]
    pub fn within_directory(mut self, directory: &Path) -> Self {
        let own = [
            &mut self.authorities,
            &mut self.trust,
            &mut self.certificate,
            &mut self.key,
        ];
        let others = self
            .identities
            .iter_mut()
            .flat_map(|identity| [&mut identity.certificate, &mut identity.key]);
        for path in own.into_iter().chain(others).chain(&mut self.revoked) {
            *path = directory.join(&*path);
        }
        self
    }

    /// Loads the credentials of the default identity, or of the one that is asked for. `now` decides whether the
    /// certificate is still valid.
    pub fn load_credentials(
        &self,
        who: Option<&IdentityName>,
        now: SystemTime,
    ) -> Result<Credentials, ClientFileError> {
        let Some(who) = who else {
            return self.load(&self.certificate, &self.key, now);
        };
        let fitting: Vec<&ClientIdentity> = self
            .identities
            .iter()
            .filter(|identity| who.fits_role(identity.role, &identity.name))
            .collect();
        match fitting.as_slice() {
            [identity] => {
                let credentials = self.load(&identity.certificate, &identity.key, now)?;
                let found = credentials.identity();
                if found.is_named(identity.role, &identity.name) {
                    return Ok(credentials);
                }
                Err(ClientFileError::Somebody {
                    path: identity.certificate.clone(),
                    listed: identity.to_string(),
                    found: found.to_string(),
                })
            }
            [] => {
                let credentials = self.load(&self.certificate, &self.key, now)?;
                let own = credentials.identity();
                if own
                    .grants()
                    .iter()
                    .any(|grant| who.fits_role(grant.role(), grant.name()))
                {
                    return Ok(credentials);
                }
                let known = own
                    .grants()
                    .iter()
                    .map(Grant::to_string)
                    .chain(self.identities.iter().map(ToString::to_string));
                Err(ClientFileError::NoIdentity {
                    who: who.clone(),
                    known: known.collect::<Vec<_>>().join(", "),
                })
            }
            several => Err(ClientFileError::Ambiguous {
                who: who.clone(),
                known: several
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", "),
            }),
        }
    }

    /// Reads the trust file.
    pub fn trust_file(&self) -> Result<TrustFile, ClientFileError> {
        read_trust_file(&self.trust)
    }

    /// Returns a channel to the repository, which connects at its first call.
    pub fn connect_repository(
        &self,
        credentials: &Credentials,
    ) -> Result<Channel, ClientFileError> {
        let expected = ExpectedIdentity::any_of_role(Role::Repository);
        let address = &self.endpoints.repository;
        Ok(connect_lazy(
            address,
            credentials,
            &expected,
            &RpcLimits::default(),
        )?)
    }

    /// Returns a channel to the index, which connects at its first call, if the client file has an address of the
    /// index.
    ///
    /// # Errors
    ///
    /// Fails if the address of the index is invalid.
    pub fn connect_index(
        &self,
        credentials: &Credentials,
    ) -> Result<Option<Channel>, ClientFileError> {
        let Some(address) = &self.endpoints.index else {
            return Ok(None);
        };
        let expected = ExpectedIdentity::any_of_role(Role::Index);
        let channel = connect_lazy(address, credentials, &expected, &RpcLimits::default())?;
        Ok(Some(channel))
    }

    fn load(
        &self,
        certificate: &Path,
        key: &Path,
        now: SystemTime,
    ) -> Result<Credentials, ClientFileError> {
        let files = CredentialFiles {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            authorities: self.authorities.clone(),
            revoked: self.revoked.clone(),
        };
        Ok(Credentials::from_files(files, now)?)
    }
}

impl fmt::Display for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.role, self.name)
    }
}

/// Serializes a value as its text in the file.
mod as_text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<T: Display, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(super) fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use archive_rpc::testing::TestAuthority;

    use super::*;

    const TEXT: &str = "
        authorities = 'ca.pem'
        trust = '/elsewhere/trust.json'
        certificate = 'default.pem'
        key = 'default.key'
        [endpoints]
        repository = '127.0.0.1:7401'
        [[identity]]
        role = 'custodian'
        name = 'custodian-1'
        certificate = 'custodian-1.pem'
        key = 'custodian-1.key'
        [[identity]]
        role = 'custodian'
        name = 'custodian-2'
        certificate = 'custodian-1.pem'
        key = 'custodian-1.key'
        ";

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_hours(24 * 365 * 56)
    }

    /// Makes a directory with the files that `TEXT` names.
    fn directory() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let authority = TestAuthority::new();
        let write =
            |name: &str, text: &str| write_file(&directory.path().join(name), text.as_bytes());
        write("ca.pem", authority.certificate());
        for (file, grants) in [
            ("default", vec!["harvester/anna", "officer/anna"]),
            ("custodian-1", vec!["custodian/custodian-1"]),
        ] {
            let pem = authority.pem(&grants);
            write(&format!("{file}.pem"), &pem.certificate);
            write(&format!("{file}.key"), &pem.key);
        }
        directory
    }

    fn write_file(path: &Path, bytes: &[u8]) {
        use std::io::Write as _;
        use std::os::unix::fs::PermissionsExt;
        let mut file = std::fs::File::create_new(path).unwrap();
        file.set_permissions(PermissionsExt::from_mode(0o600))
            .unwrap();
        file.write_all(bytes).unwrap();
    }

    fn grants(file: &ClientFile, who: Option<&str>) -> Result<String, String> {
        let who = who.map(|text| text.parse().unwrap());
        file.load_credentials(who.as_ref(), now())
            .map(|credentials| credentials.identity().to_string())
            .map_err(|error| error.to_string())
    }

    /// Fails if a relative path in a client file is looked up in the working directory, or an absolute one below the
    /// folder of the file.
    #[test]
    fn paths_are_relative_to_the_file() {
        let file: ClientFile = toml::from_str(TEXT).unwrap();
        let file = file.within_directory(Path::new("/etc/holdfast"));
        assert_eq!(file.authorities, Path::new("/etc/holdfast/ca.pem"));
        assert_eq!(file.trust, Path::new("/elsewhere/trust.json"));
        assert_eq!(
            file.identities[1].key,
            Path::new("/etc/holdfast/custodian-1.key")
        );
        assert_eq!(file.limits, ClientLimits::default());
    }

    /// Fails if a misspelt key or an unknown role in a client file is ignored, or a client file that is written out
    /// loses a setting.
    #[test]
    fn client_file_is_read_strictly_and_reads_back() {
        let file: ClientFile = toml::from_str(TEXT).unwrap();
        let text = toml::to_string_pretty(&file).unwrap();
        assert_eq!(toml::from_str::<ClientFile>(&text).unwrap(), file);
        for (good, bad, reason) in [
            ("authorities", "autorities", "autorities"),
            ("repository =", "repostory =", "repostory"),
            ("role = 'custodian'", "role = 'king'", "no role"),
            ("trust = '/elsewhere/trust.json'", "", "trust"),
        ] {
            let error = toml::from_str::<ClientFile>(&TEXT.replacen(good, bad, 1));
            let error = error.unwrap_err().to_string();
            assert!(error.contains(reason), "{reason}: {error}");
        }
    }

    /// Fails if a call goes out under another identity than the one asked for: one of several that fit, or a
    /// certificate issued to another name.
    #[test]
    fn call_goes_out_under_the_asked_identity() {
        let directory = directory();
        let file: ClientFile = toml::from_str(TEXT).unwrap();
        let file = file.within_directory(directory.path());
        assert_eq!(grants(&file, None).unwrap(), "harvester/anna, officer/anna");
        assert!(
            grants(&file, Some("officer"))
                .unwrap()
                .contains("officer/anna")
        );
        assert!(grants(&file, Some("officer/anna")).is_ok());
        assert_eq!(
            grants(&file, Some("custodian/custodian-1")).unwrap(),
            "custodian/custodian-1"
        );
        let error = grants(&file, Some("custodian")).unwrap_err();
        assert!(
            error.contains("custodian/custodian-1, custodian/custodian-2"),
            "{error}"
        );
        let error = grants(&file, Some("custodian/custodian-2")).unwrap_err();
        assert!(
            error.contains("of custodian/custodian-1, not of custodian/custodian-2"),
            "{error}"
        );
        for absent in ["operator", "officer/ben"] {
            let error = grants(&file, Some(absent)).unwrap_err();
            assert!(
                error.contains(absent) && error.contains("officer/anna"),
                "{error}"
            );
        }
    }

    /// Fails if an address without a port is noticed only by the first call, as an archive that cannot be reached.
    #[test]
    fn invalid_address_is_refused_before_any_call() {
        let directory = directory();
        let file: ClientFile = toml::from_str(&TEXT.replace(":7401", "")).unwrap();
        let file = file.within_directory(directory.path());
        let credentials = file.load_credentials(None, now()).unwrap();
        let error = file.connect_repository(&credentials).unwrap_err();
        assert!(matches!(error, ClientFileError::Endpoint(_)), "{error}");
    }
}
