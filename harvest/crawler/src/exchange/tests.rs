//! Exchanges with a host that sends what a test tells it, over real sockets and real TLS.

use std::io::Read as _;
use std::sync::Arc;

use archive_daemon::clock::ManualClock;
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::io::DuplexStream;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use url::Url;

use super::receive::Truncation;
use super::tls::CertificateVerdict;
use super::*;

/// The act of a host after it has answered the last request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Close,
    Wait,
}

/// A host that answers each request of one connection with the next of `answers`, and then does something.
async fn host(answers: &'static [&'static str], then: Then) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::task::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        serve(&mut stream, answers, then).await;
    });
    address
}

async fn serve(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), answers: &[&str], then: Then) {
    for answer in answers {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
    }
    if then == Then::Wait {
        // Until the other end is gone.
        drop(stream.read_u8().await);
    }
}

fn request() -> Request {
    Request::get(&Url::parse("http://127.0.0.1/").unwrap(), &[]).unwrap()
}

async fn open(address: SocketAddr, clock: &Clock) -> Connection {
    Connection::open(address, None, &ExchangeLimits::default(), clock)
        .await
        .unwrap()
}

async fn exchange(connection: &mut Connection, clock: &Clock) -> Result<Exchange, ExchangeError> {
    let limits = ExchangeLimits::default();
    connection
        .exchange(&request(), &limits, &std::env::temp_dir(), clock)
        .await
}

fn block(exchange: &mut Exchange) -> String {
    let mut block = String::new();
    exchange.response.block.read_to_string(&mut block).unwrap();
    block
}

const FIRST: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none";
const SECOND: &str =
    "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n";

/// Fails if a connection that is kept alive mixes two responses, or is kept although the host closes it.
#[tokio::test]
async fn kept_connection_carries_one_response_each() {
    let clock = Clock::system();
    let mut connection = open(host(&[FIRST, SECOND], Then::Close).await, &clock).await;
    for (expected, reusable) in [(FIRST, true), (SECOND, true)] {
        let mut exchange = exchange(&mut connection, &clock).await.unwrap();
        assert_eq!(block(&mut exchange), expected);
        assert_eq!(exchange.response.is_reusable, reusable);
    }
    let closed = exchange(&mut connection, &clock).await;
    assert!(
        matches!(closed, Err(ExchangeError::NoResponse { .. })),
        "{closed:?}"
    );
}

/// A connection to a host that has sent its answer before it was asked, and the other end of it.
async fn answered(answer: &str) -> (Connection, DuplexStream) {
    let (wire, mut host) = tokio::io::duplex(1 << 16);
    host.write_all(answer.as_bytes()).await.unwrap();
    let connection = Connection {
        wire: Box::new(wire),
        address: "127.0.0.1:80".parse().unwrap(),
        tls: None,
        buffer: vec![0; READ],
    };
    (connection, host)
}

/// Fails if bytes that nobody asked for begin the next response.
#[tokio::test]
async fn bytes_behind_a_response_end_the_connection() {
    let (mut connection, _host) = answered(&format!("{FIRST} and more")).await;
    let mut exchange = exchange(&mut connection, &Clock::system()).await.unwrap();
    assert_eq!(block(&mut exchange), FIRST);
    assert!(!exchange.response.is_reusable);
}

/// Fails if a host that stops in the middle is waited for without a limit, or what it has sent is thrown away.
#[tokio::test]
async fn stalled_host_is_given_up_in_time() {
    let time = ManualClock::new("2096-01-15T12:00:00Z".parse().unwrap());
    let clock = time.clock();
    let begun = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\none";
    for (answer, is_begun) in [(begun, true), ("", false)] {
        // So that the first wait is the one for what never comes.
        let (mut connection, _host) = answered(answer).await;
        let stall = ExchangeLimits::default().stall;
        let (outcome, ()) = tokio::join!(
            exchange(&mut connection, &clock),
            time.advance_sleepers(1, stall)
        );
        if is_begun {
            let mut exchange = outcome.unwrap();
            assert_eq!(exchange.response.truncation, Some(Truncation::Time));
            assert_eq!(block(&mut exchange), answer);
            assert!(!exchange.response.is_reusable);
        } else {
            assert!(
                matches!(outcome, Err(ExchangeError::Timeout { .. })),
                "{outcome:?}"
            );
        }
    }
}

/// Fails if a host that answers nothing is taken for one that has answered.
#[tokio::test]
async fn silent_and_absent_hosts_are_told_apart() {
    let clock = Clock::system();
    let mut connection = open(host(&[""], Then::Close).await, &clock).await;
    let silent = exchange(&mut connection, &clock).await;
    assert!(
        matches!(silent, Err(ExchangeError::NoResponse { .. })),
        "{silent:?}"
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let absent = Connection::open(address, None, &ExchangeLimits::default(), &clock).await;
    assert!(
        matches!(absent, Err(ExchangeError::Connect { .. })),
        "{absent:?}"
    );
}

/// An authority, and a server's configuration with a certificate of it for `name` that is good for these years.
fn certified(name: &str, years: (i32, i32)) -> (RootCertStore, ServerConfig) {
    let mut params = CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(years.0, 1, 1);
    params.not_after = rcgen::date_time_ymd(years.1, 1, 1);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .unwrap();
    (roots, config)
}

/// Fails if a page behind a bad certificate is not fetched, or a bad certificate passes for a good one.
#[tokio::test]
async fn every_certificate_is_taken_and_judged() {
    for (name, years, known, expected) in [
        ("a.test", (2000, 4000), true, CertificateVerdict::Good),
        ("a.test", (2000, 2020), true, CertificateVerdict::Expired),
        (
            "a.test",
            (3000, 4000),
            true,
            CertificateVerdict::NotYetValid,
        ),
        ("b.test", (2000, 4000), true, CertificateVerdict::WrongName),
        (
            "a.test",
            (2000, 4000),
            false,
            CertificateVerdict::UnknownIssuer,
        ),
    ] {
        let (roots, config) = certified(name, years);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::task::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = TlsAcceptor::from(Arc::new(config));
            let mut stream = acceptor.accept(stream).await.unwrap();
            serve(&mut stream, &[FIRST], Then::Wait).await;
        });
        let client = TlsClient::new(if known { roots } else { RootCertStore::empty() }).unwrap();
        let name = ServerName::try_from("a.test").unwrap();
        let (clock, limits) = (Clock::system(), ExchangeLimits::default());
        let connection = Connection::open(address, Some((&client, name)), &limits, &clock);
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
