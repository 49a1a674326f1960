//! Helpers of tests: an environment's authority, and certificates of it; the messages of a peer, read as steps.
//!
//! Owns the years in which the certificates are valid, so that no test depends on the day on which it runs. Other
//! crates see it with the feature `testing`.

#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "helpers of tests"
)]

use std::fmt::Display;
use std::time::{Duration, SystemTime};

use tokio_stream::StreamExt;
use tonic::Status;

use crate::pki::{CertificateAuthority, Validity};
use crate::role::Grant;
use crate::rules::{Rules, rpc_paths};
use crate::steps::{StepReader, StepStream};
use crate::tls::{CredentialPem, Credentials};

/// Reads the steps of messages, as those of a call that a peer may not offer. Returns them, and how they ended.
///
/// # Errors
///
/// The second value has the text of the error with which the steps ended.
///
/// # Panics
///
/// If something follows the end, or an error.
pub async fn read_steps<T: StepReader<Error: Display>>(
    reader: T,
    messages: Vec<Result<T::Message, Status>>,
) -> (Vec<T::Item>, Result<(), String>) {
    let mut steps = StepStream::of_optional_call(tokio_stream::iter(messages), reader, "this");
    let mut items = Vec::new();
    let mut ended = Ok(());
    while let Some(item) = steps.next().await {
        match item {
            Ok(item) => items.push(item),
            Err(error) => {
                ended = Err(error.to_string());
                break;
            }
        }
    }
    assert!(steps.next().await.is_none(), "nothing follows the end");
    (items, ended)
}

/// The authority of an environment that exists for one test. Its certificates are valid from 2000 to 2200.
///
/// ```
/// use archive_rpc::testing::TestAuthority;
///
/// let authority = TestAuthority::new();
/// let own = authority.credentials(&["node/n-1"]);
/// assert_eq!(own.identity().grants()[0].to_string(), "node/n-1");
/// ```
#[derive(Debug)]
pub struct TestAuthority(CertificateAuthority);

impl TestAuthority {
    /// Makes the authority of an environment named `archive.example`.
    #[expect(clippy::new_without_default, reason = "it makes a key")]
    pub fn new() -> Self {
        let made = CertificateAuthority::create_authority("archive.example", validity());
        Self(made.expect("an authority"))
    }

    /// Returns the certificate of the authority itself, as PEM.
    pub fn certificate(&self) -> &str {
        self.0.certificate()
    }

    /// Returns a certificate for this machine that carries these grants, with its key and the authority.
    pub fn pem(&self, grants: &[&str]) -> CredentialPem {
        let grants = grants.iter().map(|grant| grant.parse());
        let grants: Vec<Grant> = grants.collect::<Result<_, _>>().expect("grants");
        let issued = self
            .0
            .issue_certificate(&grants, &["127.0.0.1"], validity());
        let issued = issued.expect("a certificate");
        CredentialPem {
            certificate: issued.certificate,
            key: issued.key,
            authorities: self.0.certificate().to_owned(),
            revoked: None,
        }
    }

    /// Returns the credentials of such a certificate, as they are used in 2026.
    pub fn credentials(&self, grants: &[&str]) -> Credentials {
        Credentials::from_pem(&self.pem(grants), in_year(2026)).expect("credentials")
    }
}

/// Checks that rules and RPCs match each other: each RPC of these descriptors has a rule, and each rule an RPC.
pub fn check_rules(rules: &Rules, descriptors: &[u8]) {
    let paths = rpc_paths(descriptors).expect("descriptors");
    assert_eq!(rules.missing_paths(&paths), [""; 0], "RPCs without a rule");
    let known = rules.paths().filter(|path| path.starts_with("/holdfast."));
    let is_unknown = |path: &&str| !paths.iter().any(|rpc| rpc == path);
    let unknown: Vec<&str> = known.filter(is_unknown).collect();
    assert_eq!(unknown, [""; 0], "rules without an RPC");
}

fn validity() -> Validity {
    Validity {
        not_before: in_year(2000),
        not_after: in_year(2200),
    }
}

fn in_year(year: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs((year - 1970) * 31_556_952)
}
