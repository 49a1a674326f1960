//! Exchanges with a host that sends what a test tells it, over real sockets and real TLS.

use std::io::Read as _;

use archive_daemon::clock::ManualClock;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::TcpListener;
use url::Url;

use super::receive::Truncation;
use super::*;

mod tls;

/// The act of a host after it has answered the last request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerEnd {
    Close,
    Wait,
}

/// Serves a host that answers each request of one connection with the next of `answers`; returns its address.
async fn host(answers: &'static [&'static str], then: ServerEnd) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::task::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        serve(&mut stream, answers, then).await;
    });
    address
}

async fn serve(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    answers: &[&str],
    then: ServerEnd,
) {
    for answer in answers {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
    }
    if then == ServerEnd::Wait {
        // Until the other end closes.
        _ = stream.read_u8().await;
    }
}

fn request() -> HttpRequest {
    HttpRequest::get(&Url::parse("http://127.0.0.1/").unwrap(), &[]).unwrap()
}

async fn open(address: SocketAddr, clock: &Clock) -> HostConnection {
    HostConnection::open_connection(address, None, &ExchangeLimits::default(), clock)
        .await
        .unwrap()
}

async fn exchange(
    connection: &mut HostConnection,
    clock: &Clock,
) -> Result<Exchange, ExchangeError> {
    let means = ExchangeMeans {
        limits: &ExchangeLimits::default(),
        directory: &std::env::temp_dir(),
        received: &AtomicU64::new(0),
        room: &AtomicU64::new(u64::MAX),
        bandwidth: &Bandwidth::default(),
    };
    connection.exchange_request(&request(), means, clock).await
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
    let clock = Clock::system_clock();
    let mut connection = open(host(&[FIRST, SECOND], ServerEnd::Close).await, &clock).await;
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

/// Returns a connection to a host that has sent its answer before it was asked, and the other end of it.
async fn answered(answer: &str) -> (HostConnection, DuplexStream) {
    let (wire, mut host) = tokio::io::duplex(1 << 16);
    host.write_all(answer.as_bytes()).await.unwrap();
    let connection = HostConnection {
        messages: MessageTransport::Text(Box::new(wire), vec![0; READ]),
        address: "127.0.0.1:80".parse().unwrap(),
        tls: None,
    };
    (connection, host)
}

/// Fails if bytes that nobody asked for begin the next response.
#[tokio::test]
async fn bytes_behind_a_response_end_the_connection() {
    let (mut connection, _host) = answered(&format!("{FIRST} and more")).await;
    let mut exchange = exchange(&mut connection, &Clock::system_clock())
        .await
        .unwrap();
    assert_eq!(block(&mut exchange), FIRST);
    assert!(!exchange.response.is_reusable);
}

/// Fails if what a host says while a connection waits, or that it has closed it, is not noticed before the next
/// request.
#[tokio::test]
async fn waiting_connection_tells_what_has_come() {
    let clock = Clock::system_clock();
    let late = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n";
    for (afterwards, closes) in [("", false), (late, false), ("", true), (late, true)] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut connection = open(listener.local_addr().unwrap(), &clock).await;
        let (mut stream, _) = listener.accept().await.unwrap();
        let (exchanged, ()) = tokio::join!(
            exchange(&mut connection, &clock),
            serve(&mut stream, &[FIRST], ServerEnd::Close)
        );
        assert!(exchanged.unwrap().response.is_reusable);
        stream.write_all(afterwards.as_bytes()).await.unwrap();
        let _open = (!closes).then_some(stream);
        // On loopback bytes and ends have come as soon as they are sent; the runtime has had no time to notice them.
        assert_eq!(
            connection.is_quiet().await,
            afterwards.is_empty() && !closes,
            "{afterwards:?} {closes}"
        );
    }
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
async fn silent_and_absent_hosts_are_distinguished() {
    let clock = Clock::system_clock();
    let mut connection = open(host(&[""], ServerEnd::Close).await, &clock).await;
    let silent = exchange(&mut connection, &clock).await;
    assert!(
        matches!(silent, Err(ExchangeError::NoResponse { .. })),
        "{silent:?}"
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let absent =
        HostConnection::open_connection(address, None, &ExchangeLimits::default(), &clock).await;
    assert!(
        matches!(absent, Err(ExchangeError::Connect { .. })),
        "{absent:?}"
    );
}

/// Fails if a host sees another address of this machine than it is to see.
#[tokio::test]
async fn host_sees_the_address_of_the_order() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ends = ConnectionEnds {
        proxy: None,
        host: listener.local_addr().unwrap(),
        own: Some("127.0.0.9".parse().unwrap()),
    };
    let clock = Clock::system_clock();
    let limits = ExchangeLimits::default();
    let opened = HostConnection::open_connection(ends, None, &limits, &clock);
    let (opened, accepted) = tokio::join!(opened, listener.accept());
    opened.unwrap();
    assert_eq!(accepted.unwrap().1.ip().to_string(), "127.0.0.9");
}
