//! Certificates that are made for the hosts that clients name, kept for a while.

use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::sites::read_certified;
use super::{BrowserError, MakeCertificate};
use crate::pem::{first_section, pem_sections};

/// The most certificates that are kept.
const MOST: usize = 1024;

/// The time for which a certificate is shown: shorter than its validity.
const AGE: Duration = Duration::from_hours(12);

/// The certificates that were made.
pub(super) struct MadeCertificates {
    maker: Arc<dyn MakeCertificate>,
    kept: Mutex<CertificateCache>,
}

#[derive(Default)]
struct CertificateCache {
    keys: HashMap<String, (Arc<CertifiedKey>, Instant)>,
    /// The hosts, the oldest first.
    order: VecDeque<String>,
}

impl MadeCertificates {
    pub(super) fn new(maker: Arc<dyn MakeCertificate>) -> Self {
        Self {
            maker,
            kept: Mutex::default(),
        }
    }

    pub(super) fn forget_certificates(&self) {
        *self.cache() = CertificateCache::default();
    }

    fn cache(&self) -> MutexGuard<'_, CertificateCache> {
        self.kept.lock()
    }

    /// Returns the certificate for a host in lower case.
    pub(super) async fn choose_certificate(
        &self,
        host: String,
    ) -> Result<Arc<CertifiedKey>, BrowserError> {
        let now = Instant::now();
        if let Some(key) = self.cache().find(&host, now) {
            return Ok(key);
        }
        let maker = Arc::clone(&self.maker);
        let wanted = host.clone();
        let made = spawn_blocking(move || make(maker.as_ref(), &wanted)).await;
        let made = made.unwrap_or_else(|error| Err(error.into()));
        match made {
            Ok(key) => {
                let key = Arc::new(key);
                self.cache().keep(host, &key, now);
                Ok(key)
            }
            Err(reason) => Err(BrowserError::NotMade { host, reason }),
        }
    }
}

impl CertificateCache {
    fn find(&self, host: &str, now: Instant) -> Option<Arc<CertifiedKey>> {
        let (key, made) = self.keys.get(host)?;
        (now.duration_since(*made) < AGE).then(|| Arc::clone(key))
    }

    fn keep(&mut self, host: String, key: &Arc<CertifiedKey>, now: Instant) {
        let entry = (Arc::clone(key), now);
        if self.keys.insert(host.clone(), entry).is_some() {
            self.order.retain(|other| *other != host);
        }
        self.order.push_back(host);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
        }
    }
}

/// Has a certificate made, and checks that it is for that host.
fn make(
    maker: &dyn MakeCertificate,
    host: &str,
) -> Result<CertifiedKey, Box<dyn Error + Send + Sync>> {
    let name = ServerName::try_from(host.to_owned())?;
    let pem = maker.make(host)?;
    let chain: Vec<CertificateDer<'static>> = pem_sections(&pem.certificate)?;
    let key: PrivateKeyDer<'static> = first_section(&pem.key)?;
    let certified = read_certified(chain, key)?;
    let own = certified.end_entity_cert()?;
    verify_server_name(&ParsedCertificate::try_from(own)?, &name)?;
    Ok(certified)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Arc<CertifiedKey> {
        let made = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        Arc::new(read_certified(vec![made.cert.der().clone()], key).unwrap())
    }

    /// Fails if certificates of ever new hosts fill the memory, or one is shown after its time.
    #[test]
    fn kept_certificates_are_few_and_young() {
        let mut kept = CertificateCache::default();
        let key = key();
        let now = Instant::now();
        for number in 0..MOST + 10 {
            kept.keep(format!("h{number}"), &key, now);
            kept.keep(format!("h{number}"), &key, now);
        }
        assert_eq!((kept.keys.len(), kept.order.len()), (MOST, MOST));
        assert!(kept.find("h9", now).is_none(), "the oldest went");
        assert!(kept.find("h10", now).is_some());
        let later = now + AGE;
        assert!(kept.find("h10", later).is_none(), "it is made anew");
        kept.keep("h10".to_owned(), &key, later);
        assert!(kept.find("h10", later).is_some());
    }
}
