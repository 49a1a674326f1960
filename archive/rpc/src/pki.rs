//! An environment's own certificate authority: certificates for its parts and its people, and the list of revoked ones.
//!
//! Everything goes in and out as PEM text; writing files is up to the caller. Times come from the caller.
//! Keys are ECDSA P-256, private keys PKCS#8. Every certificate is good for both ends of a connection. Its serial
//! number is derived from its fresh key, so that no counter has to be kept.
//!
//! Not promised: intermediate authorities, or names of hosts with a meaning for us. Hosts are written into certificates
//! for other people's tools; our own clients check the role and the name.

use std::fmt;
use std::net::IpAddr;
use std::time::SystemTime;

use rcgen::{
    BasicConstraints, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PublicKeyData, SanType,
};
use rustls::pki_types::{CertificateDer, DnsName};
use sha2::{Digest, Sha256};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

use crate::pem::first_section;
use crate::role::{Grant, SCHEME, is_environment, shorten_text};

mod revoked;
mod validity;

pub use revoked::Serial;
pub use validity::Validity;
use validity::time_at;

/// The reason why an authority could not be made or read, or could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// The name of the environment is not allowed.
    #[error(
        "{0:?} names no environment: 1-128 of a-z, 0-9, `.`, `-`, with a letter or digit at both ends, do"
    )]
    Environment(String),
    /// The times of the validity are not allowed.
    #[error(
        "the validity must begin after 1970, end after it began, not after 9999, and not after the authority's own"
    )]
    Validity,
    /// No grant was given: the certificate would open nothing.
    #[error("nothing is granted: name at least one role/name")]
    NoGrant,
    /// The name of a host is invalid.
    #[error("{0:?} is neither an IP address nor the name of a host")]
    Host(String),
    /// The PEM of an authority, a certificate or a list cannot be read.
    #[error("{what} cannot be read: {reason}")]
    Unreadable {
        /// The kind of PEM that was expected.
        what: &'static str,
        /// The reason why it cannot be read.
        reason: String,
    },
    /// Certificate and key belong to two authorities.
    #[error(
        "the private key is not that of the authority's certificate; give the two files that belong together"
    )]
    OtherKey,
    /// The list of revoked certificates was signed by another authority, or is damaged.
    #[error(
        "the list of revoked certificates is not signed by this authority; restore it from a backup"
    )]
    OtherList,
    /// A serial number cannot be read.
    #[error("{0:?} is not a serial number: write it in hexadecimal digits")]
    Serial(String),
    /// Key generation or signing failed.
    #[error("signing failed: {0}")]
    Signing(#[from] rcgen::Error),
}

/// The authority of an environment: its certificate and its private key.
pub struct CertificateAuthority {
    environment: String,
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A new certificate and its private key.
pub struct IssuedCertificate {
    /// The certificate, PEM.
    pub certificate: String,
    /// The private key, PKCS#8 PEM. It must be kept secret.
    pub key: String,
    /// The serial number of the certificate, by which it can be revoked.
    pub serial: Serial,
    /// The SHA-256 of the certificate (DER), in hex, for the audit trail.
    pub fingerprint: String,
}

impl CertificateAuthority {
    /// Makes the authority of `environment`, with a fresh key.
    ///
    /// # Errors
    ///
    /// [`PkiError`] if the environment's name is not allowed, the validity is empty, or no key can be made.
    pub fn create_authority(environment: &str, validity: Validity) -> Result<Self, PkiError> {
        if !is_environment(environment) {
            return Err(PkiError::Environment(shorten_text(environment)));
        }
        let mut params = validity.certificate_params()?;
        params.distinguished_name.push(
            DnType::CommonName,
            format!("Holdfast authority of {environment}"),
        );
        params
            .subject_alt_names
            .push(SanType::URI(format!("{SCHEME}{environment}").try_into()?));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self {
            environment: environment.to_owned(),
            certificate,
            issuer: Issuer::new(params, key),
        })
    }

    /// Reads an authority from the texts that [`certificate`](Self::certificate) and [`key`](Self::key) returned.
    ///
    /// # Errors
    ///
    /// [`PkiError`] if a text cannot be read, or the two do not belong together.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, PkiError> {
        let what = "the authority's certificate";
        let key =
            KeyPair::from_pem(key).map_err(|e| unreadable("the authority's private key", &e))?;
        let der =
            first_section::<CertificateDer<'_>>(certificate).map_err(|e| unreadable(what, &e))?;
        let parsed = parsed(&der, what)?;
        if !parsed.is_ca() {
            return Err(unreadable(
                what,
                "it is the certificate of a part or a person",
            ));
        }
        if parsed.public_key().raw != key.subject_public_key_info() {
            return Err(PkiError::OtherKey);
        }
        let names = parsed
            .subject_alternative_name()
            .map_err(|e| unreadable(what, &e))?;
        let names = names
            .map(|extension| extension.value.general_names.as_slice())
            .unwrap_or_default();
        let environment = names.iter().find_map(|name| {
            let GeneralName::URI(uri) = name else {
                return None;
            };
            uri.strip_prefix(SCHEME).filter(|rest| is_environment(rest))
        });
        let environment = environment
            .ok_or_else(|| unreadable(what, "it names no environment"))?
            .to_owned();
        let issuer = Issuer::from_ca_cert_der(&der, key)?;
        Ok(Self {
            environment,
            certificate: certificate.to_owned(),
            issuer,
        })
    }

    /// Returns the environment of the authority.
    pub fn environment(&self) -> &str {
        &self.environment
    }

    /// Returns the certificate of the authority, PEM, which every part trusts.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Returns the private key of the authority, PKCS#8 PEM. It must be kept secret, and away from the machines of the
    /// archive.
    pub fn key(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// Issues a certificate that carries all of `grants`. `hosts` are IP addresses or DNS names.
    ///
    /// # Errors
    ///
    /// [`PkiError`] if there is no grant, a host is neither an address nor a name, or the certificate would outlive the
    /// authority.
    pub fn issue_certificate(
        &self,
        grants: &[Grant],
        hosts: &[&str],
        validity: Validity,
    ) -> Result<IssuedCertificate, PkiError> {
        let subject = grants.first().ok_or(PkiError::NoGrant)?;
        let mut params = validity.certificate_params()?;
        if validity.not_after > self.not_after()? {
            return Err(PkiError::Validity);
        }
        params
            .distinguished_name
            .push(DnType::CommonName, subject.to_string());
        for grant in grants {
            params
                .subject_alt_names
                .push(SanType::URI(grant.uri(&self.environment).try_into()?));
        }
        for host in hosts {
            params.subject_alt_names.push(match host.parse::<IpAddr>() {
                Ok(address) => SanType::IpAddress(address),
                Err(_not_an_address) if DnsName::try_from(*host).is_ok() => {
                    SanType::DnsName((*host).try_into()?)
                }
                Err(_not_an_address) => return Err(PkiError::Host(shorten_text(host))),
            });
        }
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(IssuedCertificate {
            serial: Serial::new(parsed(certificate.der(), "the new certificate")?.raw_serial()),
            fingerprint: hex::encode(Sha256::digest(certificate.der())),
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }

    fn der(&self) -> Result<CertificateDer<'static>, PkiError> {
        first_section(&self.certificate).map_err(|e| unreadable("the authority's certificate", &e))
    }

    fn not_after(&self) -> Result<SystemTime, PkiError> {
        let der = self.der()?;
        time_at(
            parsed(&der, "the authority's certificate")?
                .validity()
                .not_after
                .timestamp(),
        )
    }
}

impl fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority")
            .field("environment", &self.environment)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for IssuedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued")
            .field("serial", &self.serial)
            .finish_non_exhaustive()
    }
}

fn parsed<'a>(
    der: &'a CertificateDer<'_>,
    what: &'static str,
) -> Result<X509Certificate<'a>, PkiError> {
    parse_x509_certificate(der)
        .map(|(_, certificate)| certificate)
        .map_err(|e| unreadable(what, &e))
}

fn unreadable(what: &'static str, reason: &(impl ToString + ?Sized)) -> PkiError {
    PkiError::Unreadable {
        what,
        reason: reason.to_string(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use super::validity::LAST_SECOND;
    use super::*;
    use crate::identity::Identity;

    pub(super) fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    pub(super) const YEAR: u64 = 365 * 24 * 3600;
    /// Returns a validity from 2020 to 2100, approximately.
    pub(super) fn long() -> Validity {
        Validity {
            not_before: at(50 * YEAR),
            not_after: at(130 * YEAR),
        }
    }

    fn grants(texts: &[&str]) -> Vec<Grant> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    /// Returns the identity of a certificate that was issued with these grants.
    pub(crate) fn identity(texts: &[&str]) -> Identity {
        identity_in("lab", texts)
    }

    pub(crate) fn identity_in(environment: &str, texts: &[&str]) -> Identity {
        let authority = CertificateAuthority::create_authority(environment, long()).unwrap();
        let issued = authority
            .issue_certificate(&grants(texts), &[], long())
            .unwrap();
        let der = first_section::<CertificateDer<'_>>(&issued.certificate).unwrap();
        let identity = Identity::from_certificate(&der).unwrap();
        assert_eq!(identity.fingerprint(), issued.fingerprint);
        identity
    }

    /// Fails if a certificate loses a grant, its person or its end, or lets its holder speak for another name.
    #[test]
    fn a_certificate_says_what_was_granted() {
        let identity = identity(&["operator/anna", "officer/anna", "node/kb-3"]);
        assert_eq!(identity.environment(), "lab");
        assert_eq!(
            identity.to_string(),
            "officer/anna, operator/anna, node/kb-3"
        );
        assert_eq!(identity.person_name(), Some("anna"));
        assert_eq!(identity.expiry_time(), long().not_after);
        assert_eq!(identity.fingerprint().len(), 64);
        assert!(
            identity.has_role(crate::Role::Reader) && !identity.has_role(crate::Role::Researcher)
        );
        assert!(
            identity.is_named(crate::Role::Node, "kb-3")
                && !identity.is_named(crate::Role::Node, "kb-4")
        );
        assert!(!identity.is_named(crate::Role::Reader, "anna"));
        assert_eq!(super::tests::identity(&["node/kb-3"]).person_name(), None);
    }

    /// Fails if an authority that is opened again has another name or key, or a private key shows in debug output.
    #[test]
    fn reopened_authority_continues_issuing() {
        let made = CertificateAuthority::create_authority("archive.example", long()).unwrap();
        let taken = CertificateAuthority::from_pem(made.certificate(), &made.key()).unwrap();
        assert_eq!(
            (taken.environment(), taken.certificate()),
            ("archive.example", made.certificate())
        );
        assert_eq!(taken.key(), made.key());
        let issued = taken
            .issue_certificate(
                &grants(&["viewer/web"]),
                &["127.0.0.1", "::1", "localhost"],
                long(),
            )
            .unwrap();
        assert_eq!(
            Serial::of_certificate(&issued.certificate).unwrap(),
            issued.serial
        );
        assert_eq!(
            issued.serial.to_string().parse::<Serial>().unwrap(),
            issued.serial
        );
        assert!(issued.key.starts_with("-----BEGIN PRIVATE KEY-----"));
        assert!(!format!("{made:?} {issued:?}").contains("PRIVATE"));
    }

    /// Fails if an authority is opened with the key of another one, with a certificate that may not issue, or with one
    /// that is cut.
    #[test]
    fn authority_with_wrong_key_or_certificate_is_refused() {
        let a = CertificateAuthority::create_authority("lab", long()).unwrap();
        let b = CertificateAuthority::create_authority("lab", long()).unwrap();
        assert!(matches!(
            CertificateAuthority::from_pem(a.certificate(), &b.key()),
            Err(PkiError::OtherKey)
        ));
        let leaf = a
            .issue_certificate(&grants(&["officer/anna"]), &[], long())
            .unwrap();
        assert!(matches!(
            CertificateAuthority::from_pem(&leaf.certificate, &leaf.key),
            Err(PkiError::Unreadable { .. })
        ));
        for cut in 0..a.certificate().len() - 1 {
            assert!(
                CertificateAuthority::from_pem(&a.certificate()[..cut], &a.key()).is_err(),
                "cut at {cut}"
            );
        }
        assert!(matches!(
            CertificateAuthority::from_pem(a.certificate(), ""),
            Err(PkiError::Unreadable { .. })
        ));
    }

    /// Fails if a certificate is issued that grants nothing, is for an invalid host, or is valid longer than its
    /// authority.
    #[test]
    fn impossible_requests_are_refused() {
        for bad in ["", "Lab", "a/b", "a b", "-"] {
            assert!(
                matches!(
                    CertificateAuthority::create_authority(bad, long()),
                    Err(PkiError::Environment(_))
                ),
                "{bad:?}"
            );
        }
        let authority = CertificateAuthority::create_authority("lab", long()).unwrap();
        let anna = grants(&["officer/anna"]);
        assert!(matches!(
            authority.issue_certificate(&[], &[], long()),
            Err(PkiError::NoGrant)
        ));
        for bad in ["", "a b", "http://x", "a/b", "ä.example"] {
            assert!(
                matches!(
                    authority.issue_certificate(&anna, &[bad], long()),
                    Err(PkiError::Host(_))
                ),
                "{bad:?}"
            );
        }
        for (not_before, not_after) in [
            (at(60 * YEAR), at(60 * YEAR)),
            (at(60 * YEAR), at(131 * YEAR)),
            (
                SystemTime::UNIX_EPOCH - Duration::from_secs(1),
                at(60 * YEAR),
            ),
            (at(60 * YEAR), at(LAST_SECOND + 1)),
        ] {
            let validity = Validity {
                not_before,
                not_after,
            };
            assert!(
                matches!(
                    authority.issue_certificate(&anna, &[], validity),
                    Err(PkiError::Validity)
                ),
                "{validity:?}"
            );
        }
    }
}
