//! The identity that a certificate gives its holder.
//!
//! Owns the reading of the URI names. Not promised: that the certificate is genuine; the handshake decided that before.
//! A certificate that names two environments or two persons gives no identity.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};
use tonic::Status;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

use crate::role::{Grant, InvalidGrant, Role, SCHEME, is_environment, shorten_text};

/// The holder of a certificate: an environment and the grants of this environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    environment: String,
    grants: Vec<Grant>,
    fingerprint: String,
    expires: SystemTime,
}

/// The reason why a certificate gives no identity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidIdentity {
    /// The certificate cannot be read at all.
    #[error("the certificate cannot be read: {0}")]
    Certificate(String),
    /// The certificate carries no `spiffe://` name.
    #[error(
        "the certificate carries no `spiffe://environment/role/name`; issue one with `holdfast pki issue`"
    )]
    Nobody,
    /// A name does not have the form `spiffe://environment/role/name`.
    #[error("the certificate carries {uri:?}, which is not `spiffe://environment/role/name`")]
    Uri {
        /// The name in the certificate.
        uri: String,
    },
    /// A name has the form, but its role or name is invalid.
    #[error("the certificate carries {uri:?}: {reason}")]
    Grant {
        /// The name in the certificate.
        uri: String,
        /// The problem of the name.
        reason: InvalidGrant,
    },
    /// Two names are of different environments.
    #[error("the certificate is of two environments, {0:?} and {1:?}")]
    TwoEnvironments(String, String),
    /// Two personal roles have different names: nobody could say who acted.
    #[error("the certificate is of two persons, {0:?} and {1:?}")]
    TwoPersons(String, String),
}

impl Identity {
    /// Reads a certificate (DER). Names of other schemes are skipped.
    ///
    /// # Errors
    ///
    /// [`InvalidIdentity`] if the certificate cannot be read, or names two environments or two persons.
    pub fn from_certificate(der: &[u8]) -> Result<Self, InvalidIdentity> {
        let unreadable = |reason: String| InvalidIdentity::Certificate(reason);
        let (rest, certificate) =
            parse_x509_certificate(der).map_err(|e| unreadable(e.to_string()))?;
        if !rest.is_empty() {
            return Err(unreadable(format!("{} bytes follow it", rest.len())));
        }
        let names = certificate
            .subject_alternative_name()
            .map_err(|e| unreadable(e.to_string()))?;
        let names = names
            .map(|extension| extension.value.general_names.as_slice())
            .unwrap_or_default();
        let uris = names.iter().filter_map(|name| {
            let GeneralName::URI(uri) = name else {
                return None;
            };
            uri.starts_with(SCHEME).then_some(*uri)
        });
        let (environment, grants) = read_names(uris)?;
        let seconds = u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or(0);
        Ok(Self {
            environment,
            grants,
            fingerprint: hex::encode(Sha256::digest(der)),
            expires: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
        })
    }

    /// Returns the caller of an RPC, for a handler of a [`Server`](crate::Server).
    ///
    /// # Errors
    ///
    /// `Unauthenticated` if the server was made without the guard.
    pub fn from_request<T>(request: &tonic::Request<T>) -> Result<Arc<Self>, Status> {
        request
            .extensions()
            .get::<Arc<Self>>()
            .cloned()
            .ok_or_else(|| {
                // Only a server without the guard can get here.
                Status::unauthenticated("the caller of this RPC is not known")
            })
    }

    /// Returns the environment that issued the certificate.
    pub fn environment(&self) -> &str {
        &self.environment
    }

    /// Returns the grants of the certificate, sorted.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// Returns the SHA-256 of the certificate (DER), in hex.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Returns when the certificate ends.
    pub fn expiry_time(&self) -> SystemTime {
        self.expires
    }

    /// Returns whether the holder may act in `role`, by that role or by one that includes it.
    pub fn has_role(&self, role: Role) -> bool {
        self.grants.iter().any(|grant| grant.role().includes(role))
    }

    /// Returns whether the holder is exactly `name` in exactly `role`: a heartbeat speaks only for its own id.
    pub fn is_named(&self, role: Role, name: &str) -> bool {
        self.grants
            .iter()
            .any(|grant| grant.role() == role && grant.name() == name)
    }

    /// Returns the one name of all personal roles; `None` for a part of the archive.
    pub fn person_name(&self) -> Option<&str> {
        self.grants
            .iter()
            .find(|grant| grant.role().is_personal())
            .map(Grant::name)
    }
}

/// Shows the grants: `officer/anna, operator/anna`.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, grant) in self.grants.iter().enumerate() {
            write!(f, "{}{grant}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

fn read_names<'a>(
    uris: impl Iterator<Item = &'a str>,
) -> Result<(String, Vec<Grant>), InvalidIdentity> {
    let mut found: Option<&str> = None;
    let mut grants = BTreeSet::new();
    for uri in uris {
        let (environment, grant) = read_name(uri)?;
        if let Some(other) = found.filter(|other| *other != environment) {
            return Err(InvalidIdentity::TwoEnvironments(
                other.to_owned(),
                environment.to_owned(),
            ));
        }
        found = Some(environment);
        grants.insert(grant);
    }
    let grants: Vec<Grant> = grants.into_iter().collect();
    let mut persons = grants
        .iter()
        .filter(|grant| grant.role().is_personal())
        .map(Grant::name);
    if let Some(person) = persons.next()
        && let Some(other) = persons.find(|other| *other != person)
    {
        return Err(InvalidIdentity::TwoPersons(
            person.to_owned(),
            other.to_owned(),
        ));
    }
    let environment = found.ok_or(InvalidIdentity::Nobody)?;
    Ok((environment.to_owned(), grants))
}

fn read_name(uri: &str) -> Result<(&str, Grant), InvalidIdentity> {
    let form = || InvalidIdentity::Uri {
        uri: shorten_text(uri),
    };
    let (environment, grant) = uri
        .strip_prefix(SCHEME)
        .and_then(|rest| rest.split_once('/'))
        .ok_or_else(form)?;
    if !is_environment(environment) {
        return Err(form());
    }
    let grant = grant.parse().map_err(|reason| InvalidIdentity::Grant {
        uri: shorten_text(uri),
        reason,
    })?;
    Ok((environment, grant))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if one of several grants of a certificate is lost, listed twice or out of order.
    #[test]
    fn grants_add_up_and_are_sorted() {
        let uris = [
            "spiffe://lab/officer/anna",
            "spiffe://lab/node/kb-3",
            "spiffe://lab/officer/anna",
        ];
        let (environment, grants) = read_names(uris.into_iter()).unwrap();
        assert_eq!(environment, "lab");
        assert_eq!(
            grants.iter().map(Grant::to_string).collect::<Vec<_>>(),
            ["officer/anna", "node/kb-3"]
        );
    }

    /// Fails if a certificate of two persons or two environments is accepted, or a grant that cannot be read is
    /// skipped.
    #[test]
    fn a_certificate_that_says_two_things_is_nobodys() {
        let check = |uris: &[&str]| read_names(uris.iter().copied()).unwrap_err();
        assert_eq!(check(&[]), InvalidIdentity::Nobody);
        assert!(matches!(
            check(&["spiffe://a/reader/x", "spiffe://b/reader/x"]),
            InvalidIdentity::TwoEnvironments(..)
        ));
        assert!(matches!(
            check(&["spiffe://a/reader/x", "spiffe://a/custodian/y"]),
            InvalidIdentity::TwoPersons(..)
        ));
        for bad in [
            "spiffe://",
            "spiffe://a",
            "spiffe:///reader/x",
            "spiffe://A/reader/x",
            "spiffe://a b/reader/x",
        ] {
            assert!(
                matches!(check(&[bad]), InvalidIdentity::Uri { .. }),
                "{bad}"
            );
        }
        for bad in [
            "spiffe://a/",
            "spiffe://a/reader",
            "spiffe://a/king/x",
            "spiffe://a/reader/",
            "spiffe://a/reader/x/y",
        ] {
            assert!(
                matches!(check(&[bad]), InvalidIdentity::Grant { .. }),
                "{bad}"
            );
        }
    }

    /// Fails if a certificate of several parts of the archive is refused because a person is named in it, too.
    #[test]
    fn parts_may_share_a_certificate_with_a_person() {
        let uris = [
            "spiffe://lab/node/kb-3",
            "spiffe://lab/monitor/one",
            "spiffe://lab/harvester/h1",
        ];
        assert_eq!(read_names(uris.into_iter()).unwrap().1.len(), 3);
    }

    /// Fails if the parser panics on bytes that are no certificate, or reads an identity out of them.
    #[test]
    fn garbage_is_no_certificate() {
        for bad in [
            &b""[..],
            &[0xff; 300],
            &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
        ] {
            assert!(matches!(
                Identity::from_certificate(bad),
                Err(InvalidIdentity::Certificate(_))
            ));
        }
    }
}
