//! Hosts with certificates that are worth nothing, and hosts with a TLS of another time.

use std::sync::Arc;

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use super::super::tls::CertificateVerdict;
use super::*;

/// A host's certificate, and the key that it signs with.
struct TestIdentity {
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

/// Returns an authority, and a certificate of it for `name` that is good for these years.
fn certified(name: &str, years: (i32, i32)) -> (RootCertStore, TestIdentity) {
    let mut params = CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = good_for(name, years);
    let certificate = params.signed_by(&key, &authority).unwrap().der().clone();
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    (roots, TestIdentity { certificate, key })
}

fn good_for(name: &str, years: (i32, i32)) -> CertificateParams {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    let kind = rcgen::DnType::CommonName;
    params.distinguished_name.push(kind, name);
    params.not_before = rcgen::date_time_ymd(years.0, 1, 1);
    params.not_after = rcgen::date_time_ymd(years.1, 1, 1);
    params
}

fn self_signed(is_authority: bool) -> TestIdentity {
    let mut params = good_for("a.test", (2000, 4000));
    if is_authority {
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    }
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().der().clone();
    TestIdentity { certificate, key }
}

/// Shows a certificate, whether its key belongs to it or not.
#[derive(Debug)]
struct FixedCertificate(Arc<CertifiedKey>);

impl ResolvesServerCert for FixedCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

fn config(identity: &TestIdentity) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivatePkcs8KeyDer::from(identity.key.serialize_der());
    let key = provider
        .key_provider
        .load_private_key(PrivateKeyDer::Pkcs8(key));
    let shown = CertifiedKey::new(vec![identity.certificate.clone()], key.unwrap());
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(FixedCertificate(Arc::new(shown))))
}

/// Fails if a page behind a bad certificate is not fetched, or a bad certificate passes for a good one.
#[tokio::test]
async fn every_certificate_is_taken_and_judged() {
    use CertificateVerdict as V;
    let always = (2000, 4000);
    let nobody = RootCertStore::empty();
    let (roots, good) = certified("a.test", always);
    let (past_roots, past) = certified("a.test", (2000, 2020));
    let (future_roots, future) = certified("a.test", (3000, 4000));
    let (other_roots, other) = certified("b.test", always);
    let stolen = TestIdentity {
        certificate: good.certificate.clone(),
        key: KeyPair::generate().unwrap(),
    };
    for (roots, identity, expected) in [
        (&roots, &good, V::Good),
        (&past_roots, &past, V::Expired),
        (&future_roots, &future, V::NotYetValid),
        (&other_roots, &other, V::WrongName),
        (&nobody, &good, V::UnknownIssuer),
        // An authority of the same name.
        (&other_roots, &good, V::BadSignature),
        (&roots, &stolen, V::BadSignature),
        (&roots, &self_signed(false), V::SelfSigned),
        (&roots, &self_signed(true), V::SelfSigned),
        (&nobody, &self_signed(true), V::SelfSigned),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config(identity)));
        tokio::task::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = acceptor.accept(stream).await.unwrap();
            serve(&mut stream, &[FIRST], ServerEnd::Wait).await;
        });
        let client = TlsClient::new(roots.clone()).unwrap();
        let name = ServerName::try_from("a.test").unwrap();
        let clock = Clock::system_clock();
        let limits = ExchangeLimits::default();
        let tls = Some((&client, name, ProtocolOffer::Http1));
        let connection = HostConnection::open_connection(address, tls, &limits, &clock);
        let mut connection = connection.await.unwrap();
        let session = connection.tls().unwrap().clone();
        assert_eq!(session.verdict, expected);
        assert_eq!(
            (session.version.as_str(), session.fingerprint.len()),
            ("TLSv1_3", 64)
        );
        let mut exchange = exchange(&mut connection, &clock).await.unwrap();
        assert_eq!(block(&mut exchange), FIRST);
    }
}

/// Fails if a body without a length passes for whole though its TLS session has ended without a farewell, or for cut
/// though it has not (RFC 9112 §9.8).
#[tokio::test]
async fn session_without_farewell_cuts_its_body() {
    let identity = self_signed(false);
    for (says_farewell, expected) in [(true, None), (false, Some(Truncation::Disconnect))] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config(&identity)));
        tokio::task::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = acceptor.accept(stream).await.unwrap();
            let body = "HTTP/1.1 200 OK\r\n\r\nhello";
            if says_farewell {
                _ = stream.read_u8().await;
                stream.write_all(body.as_bytes()).await.unwrap();
                stream.shutdown().await.unwrap();
            } else {
                _ = stream.read_u8().await;
                stream.write_all(body.as_bytes()).await.unwrap();
                stream.flush().await.unwrap();
                let (mut tcp, _) = stream.into_inner();
                tcp.shutdown().await.unwrap();
            }
        });
        let client = TlsClient::new(RootCertStore::empty()).unwrap();
        let name = ServerName::try_from("a.test").unwrap();
        let clock = Clock::system_clock();
        let limits = ExchangeLimits::default();
        let tls = Some((&client, name, ProtocolOffer::Http1));
        let connection = HostConnection::open_connection(address, tls, &limits, &clock);
        let mut connection = connection.await.unwrap();
        let exchange = exchange(&mut connection, &clock).await.unwrap();
        assert_eq!(exchange.response.truncation, expected);
    }
}

/// Fails if a host with a TLS of before 2008 is not distinguished from one that is down, or with none at all from both.
#[tokio::test]
async fn old_tls_is_distinguished() {
    let alert = vec![21, 3, 1, 0, 2, 2, 70];
    let mut hello = vec![22, 3, 1, 0, 42, 2, 0, 0, 38, 3, 1];
    hello.extend([7; 32]);
    hello.extend([0, 0, 0x2f, 0]);
    let plain = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec();
    for (answer, is_old) in [(alert, true), (hello, true), (plain, false)] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::task::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            _ = stream.read_u8().await;
            stream.write_all(&answer).await.unwrap();
            // Until the other end closes.
            while stream.read_u8().await.is_ok() {}
        });
        let client = TlsClient::new(RootCertStore::empty()).unwrap();
        let name = ServerName::try_from("a.test").unwrap();
        let clock = Clock::system_clock();
        let limits = ExchangeLimits::default();
        let tls = Some((&client, name, ProtocolOffer::Http1));
        let error = HostConnection::open_connection(address, tls, &limits, &clock).await;
        let error = error.unwrap_err();
        assert!(matches!(error, ExchangeError::Tls { .. }), "{error}");
        assert_eq!(error.has_old_tls(), is_old, "{error}");
        assert!(error.is_lasting(), "{error}");
        assert!(!error.refuses_protocol(), "{error}");
    }
}
