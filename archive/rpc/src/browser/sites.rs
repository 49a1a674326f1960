//! Certificates of sites, read from files, by the hosts that they name.
//!
//! Certificates are loaded as a whole or not at all: each key is that of its certificate, each certificate is valid now
//! and names a host, and no host has two.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

use super::{BrowserError, SiteError, SiteFiles, UnknownHosts};
use crate::pem::{self, first_section, pem_sections};

/// The certificates of sites. They are exchanged as a whole.
pub(super) struct SiteCertificates {
    files: Vec<SiteFiles>,
    unknown: UnknownHosts,
    current: Mutex<Arc<Sites>>,
}

/// The certificates that were loaded last.
#[derive(Default)]
struct Sites {
    first: Option<Arc<CertifiedKey>>,
    /// The certificates by host; that of `*.example.org` under `.example.org`.
    hosts: BTreeMap<String, (usize, Arc<CertifiedKey>)>,
}

impl SiteCertificates {
    pub(super) fn open(
        files: Vec<SiteFiles>,
        unknown: UnknownHosts,
        now: SystemTime,
    ) -> Result<Self, SiteError> {
        let sites = Sites::read(&files, now)?;
        Ok(Self {
            files,
            unknown,
            current: Mutex::new(Arc::new(sites)),
        })
    }

    pub(super) fn reload_certificates(&self, now: SystemTime) -> Result<(), SiteError> {
        let sites = Arc::new(Sites::read(&self.files, now)?);
        *self.current.lock() = sites;
        Ok(())
    }

    /// Returns the certificate for a host in lower case.
    pub(super) fn choose_certificate(
        &self,
        host: Option<String>,
    ) -> Result<Arc<CertifiedKey>, BrowserError> {
        let sites = Arc::clone(&self.current.lock());
        if let Some(key) = host.as_deref().and_then(|host| sites.find(host)) {
            return Ok(key);
        }
        match (self.unknown, &sites.first, host) {
            (UnknownHosts::First, Some(first), _) => Ok(Arc::clone(first)),
            (_, _, Some(host)) => Err(BrowserError::UnknownHost(host)),
            (_, _, None) => Err(BrowserError::NoHost),
        }
    }
}

impl Sites {
    fn read(files: &[SiteFiles], now: SystemTime) -> Result<Self, SiteError> {
        let mut sites = Self::default();
        for (index, site) in files.iter().enumerate() {
            let key = Arc::new(site.read()?);
            for host in site.hosts(&key, now)? {
                let entry = (index, Arc::clone(&key));
                if let Some((other, _)) = sites.hosts.insert(host.clone(), entry)
                    && let Some(other) = files.get(other)
                {
                    return Err(SiteError::Twice {
                        host,
                        path: other.certificate.clone(),
                        other: site.certificate.clone(),
                    });
                }
            }
            sites.first.get_or_insert(key);
        }
        if sites.first.is_none() {
            return Err(SiteError::Nothing);
        }
        Ok(sites)
    }

    fn find(&self, host: &str) -> Option<Arc<CertifiedKey>> {
        let of_all = || {
            let dot = host.find('.')?;
            self.hosts.get(host.get(dot..)?)
        };
        let found = self.hosts.get(host).or_else(of_all);
        found.map(|(_, key)| Arc::clone(key))
    }
}

impl SiteFiles {
    fn read(&self) -> Result<CertifiedKey, SiteError> {
        let unread = |path: &Path| {
            let path = path.to_owned();
            move |source| SiteError::Read { path, source }
        };
        let wrong = |path: &Path, reason| SiteError::Pem {
            path: path.to_owned(),
            reason,
        };
        let chain = pem::read_pem(&self.certificate).map_err(unread(&self.certificate))?;
        let chain: Vec<CertificateDer<'static>> =
            pem_sections(&chain).map_err(|reason| wrong(&self.certificate, reason))?;
        let key = pem::read_secret(&self.key).map_err(unread(&self.key))?;
        let key: PrivateKeyDer<'static> =
            first_section(&key).map_err(|reason| wrong(&self.key, reason))?;
        read_certified(chain, key).map_err(|reason| SiteError::Key {
            path: self.certificate.clone(),
            reason,
        })
    }

    /// Returns the hosts that the certificate names.
    fn hosts(&self, key: &CertifiedKey, now: SystemTime) -> Result<Vec<String>, SiteError> {
        let path = || self.certificate.clone();
        let own = key.cert.first().map(AsRef::as_ref).unwrap_or_default();
        let wrong = |reason: String| SiteError::Pem {
            path: path(),
            reason,
        };
        let (_, certificate) =
            parse_x509_certificate(own).map_err(|error| wrong(error.to_string()))?;
        let term = certificate.validity();
        if !is_good(&certificate, now) {
            return Err(SiteError::Term {
                path: path(),
                from: term.not_before.to_string(),
                to: term.not_after.to_string(),
            });
        }
        let names = certificate.subject_alternative_name();
        let names = names.map_err(|error| wrong(error.to_string()))?;
        let names = names.map(|names| names.value.general_names.as_slice());
        let names = names.unwrap_or_default().iter();
        let hosts: Vec<_> = names.filter_map(host).collect();
        if hosts.is_empty() {
            return Err(SiteError::NoHost { path: path() });
        }
        Ok(hosts)
    }
}

/// Returns whether the certificate is valid now.
fn is_good(certificate: &X509Certificate<'_>, now: SystemTime) -> bool {
    let now = now.duration_since(SystemTime::UNIX_EPOCH);
    let now = now.unwrap_or(Duration::ZERO).as_secs();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let term = certificate.validity();
    (term.not_before.timestamp()..=term.not_after.timestamp()).contains(&now)
}

/// Returns the name in the form in which hosts are looked up.
fn host(name: &GeneralName<'_>) -> Option<String> {
    if let GeneralName::DNSName(name) = name {
        let name = name.to_ascii_lowercase();
        // The certificate of all hosts of a domain is not one of the domain itself.
        let name = name.strip_prefix('*').unwrap_or(&name);
        let is_whole = !name.contains('*') && !name.is_empty();
        return is_whole.then(|| name.to_owned());
    }
    let GeneralName::IPAddress(bytes) = name else {
        return None;
    };
    let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
    let sixteen = || <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
    let address = four.or_else(|_not_four| sixteen()).ok();
    address.map(|address| address.to_string())
}

/// Returns certificate and key as one, if they belong together.
pub(super) fn read_certified(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<CertifiedKey, rustls::Error> {
    let provider = rustls::crypto::ring::default_provider();
    CertifiedKey::from_der(chain, key, &provider)
}
