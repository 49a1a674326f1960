//! The authority of the proxy: it makes the certificates that browsers are shown for archived hosts.
//!
//! Owns its private key and its certificate, two files in the data directory of the proxy, made at the first start and
//! never replaced. It belongs to the proxy alone: the authority of the environment, with whose certificates parts know
//! each other, is refused, because people install this one in browsers. A certificate for a host is good for a month,
//! and has a serial number of its own, because browsers refuse two certificates of one authority that share one.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use archive_daemon::{Chance, Clock};
use archive_durable::{
    DiskError, directory, read_secret, read_state, replace_file, replace_secret,
};
use archive_rpc::browser::{HostPem, MakeCertificate};
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType, SerialNumber, date_time_ymd,
};
use sha2::{Digest, Sha256};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;
use x509_parser::pem::parse_x509_pem;

const DAY: Duration = Duration::from_hours(24);

/// The time for which the authority is good.
const AUTHORITY_TERM: Duration = Duration::from_hours(24 * 3650);

/// The time for which a certificate for a host is good. Browsers take no long ones.
const HOST_TERM: Duration = Duration::from_hours(24 * 30);

/// The longest name of a host, as the domain name system has it.
const LONGEST_HOST: usize = 253;

/// The reason why there is no authority.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The disk has an error.
    #[error("cannot use proxy.data: {0}")]
    Disk(#[from] DiskError),
    /// The directory has a certificate without its key.
    #[error(
        "cannot use {}: there is a certificate and no private key beside it; put the key back, or delete the certificate to have a new \
         authority made, which people have to install again", .0.display()
    )]
    NoKey(PathBuf),
    /// A file cannot be used.
    #[error("cannot use {}: {reason}", path.display())]
    Unusable {
        /// The file that cannot be used.
        path: PathBuf,
        /// The fault, and the remedy.
        reason: String,
    },
    /// The system gives no random bytes, or signing fails.
    #[error("cannot make the authority of the proxy: {0}")]
    Making(Box<dyn Error + Send + Sync>),
}

/// The authority that issues certificates for archived hosts.
pub(crate) struct ProxyAuthority {
    certificate: String,
    fingerprint: String,
    issuer: Issuer<'static, KeyPair>,
    /// The key of all certificates for hosts, new at each start.
    host_key: KeyPair,
    clock: Clock,
    chance: Chance,
}

impl ProxyAuthority {
    /// Loads the authority from a directory, or makes one if the directory has none.
    pub(crate) fn open(data: &Path, clock: Clock, chance: Chance) -> Result<Self, AuthorityError> {
        directory::make_directory(data)?;
        let key_path = data.join("authority.key");
        let path = data.join("authority.pem");
        let key = read_secret(&key_path)?;
        let certificate = read_state(&path)?;
        let key = match (key, &certificate) {
            (Some(pem), _) => KeyPair::from_pem(&String::from_utf8_lossy(&pem))
                .map_err(|error| unusable(&key_path, format!("this is no private key: {error}")))?,
            (None, Some(_)) => return Err(AuthorityError::NoKey(path)),
            (None, None) => {
                let key = KeyPair::generate().map_err(making)?;
                replace_secret(&key_path, key.serialize_pem().as_bytes())?;
                key
            }
        };
        let certificate = if let Some(pem) = certificate {
            String::from_utf8_lossy(&pem).into_owned()
        } else {
            // A first start that was cut off has left a key only.
            let made = self_signed(&key, clock.now(), &chance)?;
            replace_file(&path, made.as_bytes())?;
            made
        };
        let fingerprint =
            check(&certificate, &key, clock.now()).map_err(|reason| unusable(&path, reason))?;
        let issuer = Issuer::from_ca_cert_pem(&certificate, key)
            .map_err(|error| unusable(&path, error.to_string()))?;
        Ok(Self {
            certificate,
            fingerprint,
            issuer,
            host_key: KeyPair::generate().map_err(making)?,
            clock,
            chance,
        })
    }

    /// Returns the certificate of the authority, PEM: to be installed where archived sites are looked at.
    pub(crate) fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Returns the SHA-256 of the certificate, as browsers show it.
    pub(crate) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

impl MakeCertificate for ProxyAuthority {
    fn make(&self, host: &str) -> Result<HostPem, Box<dyn Error + Send + Sync>> {
        if host.len() > LONGEST_HOST {
            return Err("the name of the host is too long".into());
        }
        let mut params = params(self.clock.now(), HOST_TERM)?;
        params
            .distinguished_name
            .push(DnType::CommonName, "archived site");
        params.subject_alt_names.push(match host.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_not_an_address) => SanType::DnsName(host.try_into()?),
        });
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        params.serial_number = Some(serial(&self.chance)?);
        let issued = params.signed_by(&self.host_key, &self.issuer)?;
        Ok(HostPem {
            certificate: issued.pem(),
            key: self.host_key.serialize_pem(),
        })
    }
}

fn self_signed(key: &KeyPair, now: Timestamp, chance: &Chance) -> Result<String, AuthorityError> {
    let mut params = params(now, AUTHORITY_TERM).map_err(AuthorityError::Making)?;
    let own: [u8; 4] = chance.random_bytes().map_err(making)?;
    // Several archives have several authorities, and people have to tell them apart.
    let name = format!("Holdfast archive proxy {}", hex::encode(own));
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.serial_number = Some(serial(chance).map_err(AuthorityError::Making)?);
    Ok(params.self_signed(key).map_err(making)?.pem())
}

/// Returns parameters of a certificate that is good from the day before, for clocks that are late.
fn params(
    now: Timestamp,
    term: Duration,
) -> Result<CertificateParams, Box<dyn Error + Send + Sync>> {
    let now = Duration::from_secs(u64::try_from(now.as_second())?);
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.not_before = date_time_ymd(1970, 1, 1) + now.saturating_sub(DAY);
    params.not_after = date_time_ymd(1970, 1, 1) + now.saturating_add(term);
    Ok(params)
}

fn serial(chance: &Chance) -> Result<SerialNumber, Box<dyn Error + Send + Sync>> {
    let [first, rest @ ..]: [u8; 16] = chance.random_bytes()?;
    // Positive, and of one length.
    let mut bytes = vec![first & 0x7f | 0x40];
    bytes.extend(rest);
    Ok(SerialNumber::from(bytes))
}

/// Returns whether a certificate is that of the authority of a proxy with this key; returns its fingerprint.
fn check(pem: &str, key: &KeyPair, now: Timestamp) -> Result<String, String> {
    let remedy = "delete the files authority.pem and authority.key to have a new authority made, which people have to install again";
    let (_, pem) = parse_x509_pem(pem.as_bytes())
        .map_err(|error| format!("this is no certificate: {error}; {remedy}"))?;
    let (_, certificate) = parse_x509_certificate(&pem.contents)
        .map_err(|error| format!("this is no certificate: {error}; {remedy}"))?;
    if !certificate.is_ca() {
        return Err(format!(
            "this is the certificate of a host and not of an authority; {remedy}"
        ));
    }
    if names_environment(&certificate) {
        return Err(format!(
            "this is the authority of an environment, which must not be installed in browsers; {remedy}"
        ));
    }
    if certificate.public_key().raw != key.subject_public_key_info() {
        return Err(format!("authority.key is the key of another one; {remedy}"));
    }
    let term = certificate.validity();
    let seconds = now.as_second();
    if !(term.not_before.timestamp()..=term.not_after.timestamp()).contains(&seconds) {
        return Err(format!(
            "it is good from {} to {} only; {remedy}",
            term.not_before, term.not_after
        ));
    }
    let digest = Sha256::digest(&pem.contents);
    let pairs: Vec<String> = digest.iter().map(|byte| format!("{byte:02X}")).collect();
    Ok(pairs.join(":"))
}

/// Returns whether a certificate names an environment, as the authorities of `holdfast pki` do.
fn names_environment(certificate: &X509Certificate<'_>) -> bool {
    let names = certificate.subject_alternative_name().ok().flatten();
    let names = names.map(|names| names.value.general_names.as_slice());
    let mut names = names.unwrap_or_default().iter();
    names.any(|name| matches!(name, GeneralName::URI(_)))
}

fn unusable(path: &Path, reason: String) -> AuthorityError {
    AuthorityError::Unusable {
        path: path.to_owned(),
        reason,
    }
}

fn making(error: impl Into<Box<dyn Error + Send + Sync>>) -> AuthorityError {
    AuthorityError::Making(error.into())
}

impl fmt::Debug for ProxyAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyAuthority")
            .field("fingerprint", &self.fingerprint)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests damage files")]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use archive_daemon::clock::ManualClock;
    use archive_rpc::{CertificateAuthority, Validity};

    use super::*;

    fn clock() -> Clock {
        ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap()).clock()
    }

    fn open(data: &Path) -> Result<ProxyAuthority, AuthorityError> {
        ProxyAuthority::open(data, clock(), Chance::system_chance())
    }

    /// Fails if people would have to install another certificate after each start, or others can read the key.
    #[test]
    fn authority_stays_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("proxy");
        let first = open(&data).unwrap();
        let again = open(&data).unwrap();
        assert_eq!(first.certificate(), again.certificate());
        assert_eq!(first.fingerprint().len(), 95);
        let key = fs::metadata(data.join("authority.key")).unwrap();
        assert_eq!(key.permissions().mode() & 0o777, 0o600);
    }

    /// Fails if two certificates share a serial number, or one names another host than was asked for.
    #[test]
    fn each_host_has_its_own_certificate() {
        let directory = tempfile::tempdir().unwrap();
        let authority = open(&directory.path().join("proxy")).unwrap();
        let mut serials = Vec::new();
        for host in ["a.example", "a.example", "127.0.0.1", "::1", "a_b.example"] {
            let made = authority.make(host).unwrap();
            let (_, pem) = parse_x509_pem(made.certificate.as_bytes()).unwrap();
            let (_, certificate) = parse_x509_certificate(&pem.contents).unwrap();
            assert!(!certificate.is_ca());
            let names = certificate.subject_alternative_name().unwrap().unwrap();
            assert_eq!(names.value.general_names.len(), 1, "{host}");
            serials.push(certificate.raw_serial().to_vec());
        }
        serials.sort();
        serials.dedup();
        assert_eq!(serials.len(), 5);
        assert!(authority.make(&"a".repeat(300)).is_err());
    }

    /// Fails if a proxy makes certificates with a key that every account of its machine can read.
    #[test]
    fn exposed_key_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("proxy");
        open(&data).unwrap();
        let key = data.join("authority.key");
        fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
        let error = open(&data).unwrap_err().to_string();
        assert!(error.contains("authority.key: its mode is 0644"), "{error}");
    }

    /// Fails if damaged files, the files of two authorities or that of the environment are taken.
    #[test]
    fn foreign_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("proxy");
        open(&data).unwrap();
        let key = data.join("authority.key");
        let pem = data.join("authority.pem");
        let own_key = fs::read(&key).unwrap();
        let own = fs::read(&pem).unwrap();
        let other = directory.path().join("other");
        let _made = open(&other).unwrap();
        let now = clock().now().into();
        let environment = CertificateAuthority::create_authority(
            "lab",
            Validity {
                not_before: now,
                not_after: now + AUTHORITY_TERM,
            },
        )
        .unwrap();
        for (key_bytes, bytes, words) in [
            (own_key.clone(), b"nonsense".to_vec(), "no certificate"),
            (b"nonsense".to_vec(), own.clone(), "no private key"),
            (
                fs::read(other.join("authority.key")).unwrap(),
                own.clone(),
                "the key of another one",
            ),
            (
                environment.key().into_bytes(),
                environment.certificate().as_bytes().to_vec(),
                "the authority of an environment",
            ),
        ] {
            fs::write(&key, key_bytes).unwrap();
            fs::write(&pem, bytes).unwrap();
            let error = open(&data).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        fs::write(&pem, &own).unwrap();
        fs::remove_file(&key).unwrap();
        assert!(matches!(open(&data), Err(AuthorityError::NoKey(_))));
        replace_secret(&key, &own_key).unwrap();
        fs::remove_file(&pem).unwrap();
        open(&data).unwrap();
        let late = ManualClock::new("2046-01-01T00:00:00Z".parse().unwrap()).clock();
        let error = ProxyAuthority::open(&data, late, Chance::system_chance()).unwrap_err();
        assert!(error.to_string().contains("is good from"), "{error}");
    }
}
