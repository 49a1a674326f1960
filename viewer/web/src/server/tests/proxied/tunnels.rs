//! Tunnels: they end in the proxy, whatever host, address or port they were to lead to.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::test_archive::{OK, TestArchive, Warc};
use super::super::{FIRST, three_pages};
use super::Proxy;
use tools_testing::in_time;

/// Opens a tunnel, sends bytes in it, and returns everything that came behind the answer to `CONNECT`.
async fn through(proxy: &Proxy, to: &str, bytes: &[u8]) -> String {
    in_time(async {
        let mut stream = TcpStream::connect(proxy.served.address).await.unwrap();
        let connect = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n");
        stream.write_all(connect.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{to}: {head}");
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        // A connection that is cut is an end, too.
        _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    })
    .await
}

/// Fails if a site at an odd port or an address cannot be seen, or plain HTTP in a tunnel.
#[tokio::test]
async fn odd_ports_and_addresses_are_replayed() {
    let warc = Warc::new()
        .response("https://example.org:8443/x", FIRST, OK, b"odd")
        .response("https://192.0.2.7/x", FIRST, OK, b"four")
        .response("http://[2001:db8::7]/x", FIRST, OK, b"six")
        .response("http://example.org:81/x", FIRST, OK, b"plain");
    let archive = TestArchive::new().with("1-1-a.warc.gz", warc).await;
    let proxy = Proxy::over(archive).await;
    for (url, body) in [
        ("https://example.org:8443/x", "odd"),
        ("https://192.0.2.7/x", "four"),
        ("https://[2001:db8::7]/x", "six"),
    ] {
        let Some(answer) = proxy.curl(&["--globoff", url]).await else {
            return;
        };
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, body),
            "{url}"
        );
    }
    let tunnelled = ["--proxytunnel", "http://example.org:81/x"];
    let answer = proxy.curl(&tunnelled).await.unwrap();
    assert_eq!(answer.text(), "plain");
}

/// Fails if a tunnel is opened in a tunnel, or to one host and used for another one.
#[tokio::test]
async fn tunnel_serves_its_own_host_only() {
    let proxy = Proxy::over(three_pages().await).await;
    for (request, status) in [
        ("GET /page HTTP/1.1\r\nHost: example.org\r\n", "200"),
        ("GET /page HTTP/1.1\r\nHost: other.example\r\n", "421"),
        (
            "GET http://other.example/ HTTP/1.1\r\nHost: example.org\r\n",
            "421",
        ),
        (
            "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n",
            "400",
        ),
        ("GET / HTTP/1.1\r\nHost: viewerproxy.invalid\r\n", "421"),
    ] {
        let request = format!("{request}Connection: close\r\n\r\n");
        let answer = through(&proxy, "example.org:80", request.as_bytes()).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{request}: {answer}"
        );
    }
}

/// Fails if nonsense in a tunnel is answered, or ends the proxy.
#[tokio::test]
async fn nonsense_in_tunnel_ends_it() {
    let proxy = Proxy::over(three_pages().await).await;
    for bytes in [
        b"\x16\x03\x01\xff\xff\xff\xff".as_slice(),
        b"\x16\x03\x01\x00\x05hello",
        b"\x16GET / HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x00\x00\x00\r\n\r\n",
    ] {
        let answer = through(&proxy, "example.org:443", bytes).await;
        assert!(!answer.contains(" 200 "), "{bytes:?}: {answer}");
    }
    let answer = proxy.get(super::PAGE).await;
    assert_eq!(answer.status, 200);
}
