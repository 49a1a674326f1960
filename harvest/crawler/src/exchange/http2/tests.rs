//! Exchanges with a host that speaks HTTP/2 and does what a test tells it by the path.

use std::io::Read as _;
use std::time::Duration;

use archive_daemon::clock::Clock;
use h2::Reason;
use h2::server::SendResponse;
use tokio::io::DuplexStream;
use url::Url;

use std::sync::atomic::AtomicU64;

use super::super::receive::Truncation;
use super::super::{Exchange, ExchangeLimits, HostConnection, HttpProtocol, MessageTransport};
use super::*;
use crate::exchange::ExchangeMeans;
use crate::exchange::bandwidth::Bandwidth;

/// More than the window of a connection.
const LARGE: usize = 3 << 20;

/// Answers requests until the other end goes away.
async fn host(stream: DuplexStream) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    let mut unanswered = Vec::new();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let path = request.uri().path().to_owned();
        let mut head = first_argument(SendResponse::<Bytes>::send_response);
        let mut fields = vec![("content-type", "text/plain"), ("set-cookie", "a=b")];
        fields.extend([("x-last", "y"), ("set-cookie", "c=d")]);
        let long = "x".repeat(100_000);
        if path == "/long" {
            fields.push(("x-long", &long));
        }
        if path == "/short" {
            fields.push(("content-length", "6"));
        }
        if path != "/bare" {
            let fields = fields.into_iter();
            let parsed =
                fields.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            *head.headers_mut() = parsed.collect();
        }
        match path.as_str() {
            "/silent" => unanswered.push((respond, None)),
            "/refused" => respond.send_reset(Reason::REFUSED_STREAM),
            "/bare" => {
                *head.status_mut() = 204.try_into().unwrap();
                respond.send_response(head, true).unwrap();
            }
            "/leave" => {
                let mut stream = respond.send_response(head, false).unwrap();
                stream.send_data("bye".into(), true).unwrap();
                connection.graceful_shutdown();
            }
            _ => {
                let mut stream = respond.send_response(head, false).unwrap();
                let body = match path.as_str() {
                    "/large" => Bytes::from(vec![b'x'; LARGE]),
                    _ => "hello".into(),
                };
                stream.send_data(body, false).unwrap();
                if path != "/stalled" {
                    stream.send_data(Bytes::new(), true).unwrap();
                }
                unanswered.push((respond, Some(stream)));
            }
        }
    }
}

async fn connect() -> HostConnection {
    let (wire, stream) = tokio::io::duplex(1 << 16);
    tokio::task::spawn(host(stream));
    let frames =
        FrameConnection::begin_frames(Box::new(wire), ExchangeLimits::default().receive.head);
    HostConnection {
        messages: MessageTransport::Frames(Box::new(frames.await.unwrap())),
        address: "127.0.0.1:443".parse().unwrap(),
        tls: None,
    }
}

async fn ask(
    connection: &mut HostConnection,
    path: &str,
    limits: &ExchangeLimits,
) -> Result<Exchange, ExchangeError> {
    let url = Url::parse("https://a.test/").unwrap().join(path).unwrap();
    let request = HttpRequest::get(&url, &[("User-Agent", "holdfast")]).unwrap();
    let means = ExchangeMeans {
        limits,
        directory: &std::env::temp_dir(),
        received: &AtomicU64::new(0),
        room: &AtomicU64::new(u64::MAX),
        bandwidth: &Bandwidth::default(),
    };
    connection
        .exchange_request(&request, means, &Clock::system_clock())
        .await
}

fn block(exchange: &mut Exchange) -> String {
    let mut block = String::new();
    exchange.response.block.read_to_string(&mut block).unwrap();
    block
}

const HEAD: &str = "HTTP/1.1 200 \r\ncontent-type: text/plain\r\nset-cookie: a=b\r\nset-cookie: c=d\r\nx-last: y\r\n\r\n";

/// Fails if a response by HTTP/2 is not written as text of HTTP/1.1, or ends elsewhere than its stream.
#[tokio::test]
async fn response_is_written_as_text() {
    let mut connection = connect().await;
    let limits = ExchangeLimits::default();
    for (path, body, head) in [
        ("/", "hello".to_owned(), HEAD),
        ("/bare", String::new(), "HTTP/1.1 204 \r\n\r\n"),
        ("/large", "x".repeat(LARGE), HEAD),
        ("/?a=b", "hello".to_owned(), HEAD),
    ] {
        let mut exchange = ask(&mut connection, path, &limits).await.unwrap();
        assert!(block(&mut exchange) == format!("{head}{body}"), "{path}");
        let response = &exchange.response;
        assert_eq!(exchange.protocol, HttpProtocol::Http2);
        assert_eq!(response.payload_length, body.len() as u64, "{path}");
        assert_eq!((response.truncation, response.is_reusable), (None, true));
        assert!(connection.is_quiet().await, "{path}");
    }
}

/// Fails if a limit does not hold, what has come is thrown away, or a response that was cut passes for a whole one.
#[tokio::test]
async fn cut_response_says_why() {
    let short = ExchangeLimits {
        stall: Duration::from_millis(300),
        ..ExchangeLimits::default()
    };
    let mut small = ExchangeLimits::default();
    small.receive.body = Some(1000);
    let whole = ExchangeLimits::default();
    for (path, limits, truncation, body) in [
        ("/stalled", &short, Truncation::Time, "hello".to_owned()),
        ("/large", &small, Truncation::Length, "x".repeat(1000)),
    ] {
        let mut connection = connect().await;
        let mut exchange = ask(&mut connection, path, limits).await.unwrap();
        assert_eq!(exchange.response.truncation, Some(truncation), "{path}");
        assert!(!exchange.response.is_reusable, "{path}");
        let block = block(&mut exchange);
        // A reset overtakes what was sent before it.
        assert!(
            block.starts_with(&format!("{HEAD}{body}")),
            "{path}: {block}"
        );
    }
    for (path, limits, is_late) in [
        ("/silent", &short, true),
        ("/refused", &whole, false),
        ("/long", &whole, false),
    ] {
        let mut connection = connect().await;
        let error = ask(&mut connection, path, limits).await.unwrap_err();
        let has_timed_out = matches!(error, ExchangeError::Timeout { .. });
        let has_ended = matches!(error, ExchangeError::NoResponse { .. });
        assert_eq!(
            (has_timed_out, has_ended),
            (is_late, !is_late),
            "{path}: {error}"
        );
    }
}

/// Fails if a connection that the host has given notice of is used again.
#[tokio::test]
async fn connection_that_host_leaves_is_given_up() {
    let mut connection = connect().await;
    let limits = ExchangeLimits::default();
    let mut exchange = ask(&mut connection, "/leave", &limits).await.unwrap();
    assert_eq!(block(&mut exchange), format!("{HEAD}bye"));
    let again = ask(&mut connection, "/", &limits).await;
    assert!(
        matches!(again, Err(ExchangeError::NoResponse { .. })) && !connection.is_quiet().await,
        "{again:?}"
    );
}

/// Fails if a host that speaks HTTP/2 unasked is taken for one that sends an old page, or the other way round.
#[test]
fn first_frame_of_http2_is_recognized() {
    for (bytes, expected) in [
        (&[0, 0, 0, 4, 0, 0, 0, 0, 0][..], true),
        (&[0, 0, 18, 4, 0, 0, 0, 0, 0], true),
        (&[0, 0, 17, 4, 0, 0, 0, 0, 0], false),
        (&[0, 0, 0, 4, 1, 0, 0, 0, 0], false),
        (&[0, 0, 8, 7, 0, 0, 0, 0, 0], false),
        (&[0, 0, 0, 4, 0, 0, 0, 0], false),
        (b"<html>...", false),
    ] {
        assert_eq!(is_settings_frame(bytes), expected, "{bytes:?}");
    }
}
