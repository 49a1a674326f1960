//! The proxy over real sockets: by curl, and byte by byte.

mod browser;
mod control;
mod posted;
mod tunnels;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use tokio::task::spawn_blocking;

use super::broken::BrokenIndex;
use super::test_archive::{Answer, OK, TestArchive, TestServer, Warc};
use super::{FIRST, PAGE, SECOND, ruled_pages, three_pages};

/// A proxy, and the directory of its authority.
struct Proxy {
    served: TestServer,
    directory: tempfile::TempDir,
}

impl Proxy {
    async fn over(archive: TestArchive) -> Self {
        Self::with(archive, "").await
    }

    /// Makes a proxy with more settings in its section.
    async fn with(archive: TestArchive, settings: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("proxy");
        let data = data.display();
        let section =
            format!("proxy={{ listen = \"127.0.0.1:0\", data = \"{data}\", {settings} }}");
        Self {
            served: archive.set(section).serve_proxy().await,
            directory,
        }
    }

    fn authority(&self) -> PathBuf {
        self.directory.path().join("proxy/authority.pem")
    }

    /// Asks with curl; `None` where there is no curl.
    async fn curl(&self, arguments: &[&str]) -> Option<Answer> {
        let proxy = format!("http://{}", self.served.address);
        let authority = self.authority();
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--include", "--raw"])
            .args(["--suppress-connect-headers", "--max-time", "20"])
            .args(["--proxy", &proxy, "--cacert"])
            .arg(authority)
            .args(arguments)
            .env("no_proxy", "")
            .stdin(Stdio::null());
        let output = match spawn_blocking(move || curl.output()).await.unwrap() {
            Ok(output) => output,
            Err(error) => {
                tools_testing::skipped(&format!("curl: {error}"));
                return None;
            }
        };
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        let is_head = arguments.contains(&"--head");
        Some(Answer::read(&output.stdout, is_head))
    }

    async fn get(&self, url: &str) -> Answer {
        self.served.get(url).await
    }
}

/// Fails if a tool that we have not written does not see the archive, over http and https, at two dates.
#[tokio::test]
async fn curl_sees_archive_at_two_dates() {
    let proxy = Proxy::over(three_pages().await).await;
    for url in [
        PAGE,
        "https://example.org/page",
        "https://example.org:8443/page",
    ] {
        let early = "Accept-Datetime: Wed, 01 Jan 2020 00:00:00 GMT";
        let Some(answer) = proxy.curl(&["--header", early, url]).await else {
            return;
        };
        let is_own_site = !url.contains("8443");
        let status = if is_own_site { 200 } else { 404 };
        assert_eq!(answer.status, status, "{url}: {answer:?}");
        if !is_own_site {
            continue;
        }
        assert_eq!(answer.text(), "<p>one</p>");
        assert_eq!(
            answer.field("memento-datetime"),
            Some("Wed, 01 Jan 2020 00:00:00 GMT")
        );
        assert_eq!(
            answer.field("link"),
            Some(format!("<{url}>; rel=\"original timegate\"").as_str())
        );
        let latest = proxy.curl(&[url]).await.unwrap();
        assert_eq!(latest.text(), "<p>three</p>", "{url}");
        assert!(latest.list("vary").contains("accept-datetime"));
    }
    let head = proxy.curl(&["--head", "https://example.org/page"]).await;
    assert_eq!(head.unwrap().field("content-length"), Some("12"));
}

/// Fails if an answer is not that of the archived server, or leaves something in the browser.
#[tokio::test]
async fn answer_is_that_of_archived_server() {
    let head = "HTTP/1.1 302 Found\r\nLocation: http://elsewhere.example/\r\nConnection: close\r\nX-Own: x\r\n\
                Content-Security-Policy: upgrade-insecure-requests\r\nSet-Cookie: a=b\r\nCache-Control: max-age=99\r\n\
                Strict-Transport-Security: max-age=99\r\n\r\n";
    let missing = "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n\r\n";
    let warc = Warc::new()
        .response("http://example.org/r", FIRST, head, b"moved")
        .response("http://example.org/gone", FIRST, missing, b"was gone then");
    let archive = TestArchive::new().with("1-1-a.warc.gz", warc).await;
    let proxy = Proxy::over(archive).await;
    let answer = proxy.get("http://example.org/r").await;
    assert_eq!((answer.status, answer.text().as_str()), (302, "moved"));
    for (name, value) in [
        ("location", "http://elsewhere.example/"),
        ("x-own", "x"),
        ("content-security-policy", "upgrade-insecure-requests"),
        ("cache-control", "no-store"),
        ("x-archive-orig-set-cookie", "a=b"),
        ("x-archive-orig-cache-control", "max-age=99"),
    ] {
        assert_eq!(answer.list(name), value, "{name}");
    }
    for name in [
        "set-cookie",
        "strict-transport-security",
        "cross-origin-resource-policy",
        "x-content-type-options",
    ] {
        assert_eq!(answer.field(name), None, "{name}");
    }
    let gone = proxy.get("http://example.org/gone").await;
    assert_eq!((gone.status, gone.text().as_str()), (404, "was gone then"));
    assert!(gone.field("memento-datetime").is_some());
}

/// Fails if a page that asks with a new cache buster each time does not find what was captured.
#[tokio::test]
async fn cache_busters_are_passed_over() {
    let url = "http://example.org/d?a=1&_=1577836800000";
    let warc = Warc::new().response(url, FIRST, OK, b"data");
    let archive = TestArchive::new().with("1-1-a.warc.gz", warc).await;
    let proxy = Proxy::over(archive).await;
    let answer = proxy.get("http://example.org/d?a=1&_=1999999999999").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "data"));
    let other = proxy.get("http://example.org/d?a=2&_=1999999999999").await;
    assert_eq!(other.status, 404);
}

/// Fails if the escapes of a URL count against its length.
#[tokio::test]
async fn url_of_escapes_is_found() {
    let url = format!("http://example.org/{}", "%C3%A6".repeat(4_990));
    let warc = Warc::new().response(&url, FIRST, OK, b"long");
    let archive = TestArchive::new().with("1-1-a.warc.gz", warc).await;
    let proxy = Proxy::over(archive).await;
    let answer = proxy.get(&url).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "long"));
    let longer = proxy.get(&format!("{url}%C3%A6")).await;
    assert_eq!(longer.status, 414);
}

/// Fails if a range has other bytes than it says, the head of an answer has a body, or a connection ends too early.
#[tokio::test]
async fn one_connection_serves_ranges_and_heads() {
    let warc = Warc::new().response("http://example.org/s", FIRST, OK, b"0123456789");
    let archive = TestArchive::new().with("1-1-a.warc.gz", warc).await;
    let proxy = Proxy::over(archive).await;
    let url = "http://example.org/s";
    let request = format!(
        "GET {url} HTTP/1.1\r\nHost: x\r\nRange: bytes=2-4\r\n\r\nHEAD {url} HTTP/1.1\r\nHost: x\r\n\r\n\
         GET {url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    );
    let bytes = proxy.served.exchange(request.as_bytes()).await.unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let answers: Vec<&str> = text.split("HTTP/1.1 ").skip(1).collect();
    assert_eq!(answers.len(), 3, "{text}");
    assert!(
        answers[0].starts_with("206 ") && answers[0].ends_with("\r\n\r\n234"),
        "{text}"
    );
    assert!(answers[0].contains("content-range: bytes 2-4/10"), "{text}");
    assert!(
        answers[1].contains("content-length: 10") && answers[1].ends_with("\r\n\r\n"),
        "{text}"
    );
    assert!(answers[2].ends_with("\r\n\r\n0123456789"), "{text}");
    let beyond = proxy
        .served
        .ask("GET", url, &[("Range", "bytes=10-")])
        .await;
    assert_eq!(beyond.status, 416);
}

/// Fails if nonsense is answered with anything but words about it, or ends the proxy.
#[tokio::test]
async fn nonsense_is_refused_in_words() {
    let proxy = Proxy::over(three_pages().await).await;
    let own = format!("http://{}/", proxy.served.address);
    let long = format!("http://example.org/{}", "x".repeat(10_001));
    let longer = format!("http://example.org/{}", "x".repeat(20_000));
    for (method, target, status) in [
        ("GET", "/", 400),
        ("GET", "/ca.pem", 400),
        ("OPTIONS", "*", 400),
        ("GET", "http://user:pw@example.org/page", 400),
        ("GET", "gopher://example.org/", 400),
        ("GET", "http://example.org:0/page", 400),
        ("CONNECT", "example.org", 400),
        ("CONNECT", "example.org:0", 400),
        ("POST", PAGE, 404),
        ("DELETE", PAGE, 404),
        ("GET", &own, 404),
        ("GET", "http://127.0.0.1:1/", 404),
        ("GET", "ftp://example.org/none", 404),
        ("GET", &long, 414),
        ("GET", &longer, 414),
    ] {
        let answer = proxy.served.ask(method, target, &[]).await;
        let start: String = target.chars().take(40).collect();
        assert_eq!(answer.status, status, "{method} {start}: {answer:?}");
        assert!(answer.body.len() > 10, "{method} {start}");
    }
    for (fields, status) in [
        (("Upgrade", "websocket"), 501),
        (("Service-Worker", "script"), 403),
        (("Accept-Datetime", "yesterday"), 400),
        (("Upgrade", "h2c"), 200),
        (("Range", "lines=1-2"), 200),
    ] {
        let answer = proxy.served.ask("GET", PAGE, &[fields]).await;
        assert_eq!(answer.status, status, "{fields:?}");
    }
    let preflight = [
        ("Origin", "http://other.example"),
        ("Access-Control-Request-Method", "GET"),
    ];
    let answer = proxy.served.ask("OPTIONS", PAGE, &preflight).await;
    assert_eq!(answer.status, 204);
    for bytes in [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(),
        b"\x16\x03\x01\x00\x05hello",
        b"\x05\x01\x00",
        b"GET http://exa\0mple.org/ HTTP/1.1\r\n\r\n",
        b"nonsense\r\n\r\n",
    ] {
        let answer = proxy.served.exchange(bytes).await.unwrap_or_default();
        let is_refusal = answer.is_empty() || answer.starts_with(b"HTTP/1.1 400");
        assert!(
            is_refusal,
            "{bytes:?}: {}",
            String::from_utf8_lossy(&answer)
        );
    }
    let huge = format!("GET {PAGE} HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(200_000));
    let answer = proxy.served.exchange(huge.as_bytes()).await;
    let answer = answer.unwrap_or_default();
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431"));
    assert_eq!(proxy.get(PAGE).await.status, 200, "it still serves");
}

/// Fails if a client that sends nothing, or half a head, keeps a connection for good.
#[tokio::test]
async fn slow_clients_are_cut_off() {
    let proxy = Proxy::with(
        three_pages().await,
        "head_time = \"200 ms\", connections = 1",
    )
    .await;
    for bytes in [
        b"".as_slice(),
        b"GET http://example.org/page HTTP/1.1\r\nHos",
        b"CONNECT example.org:443 HTTP/1.1\r\n\r\n",
        b"CONNECT example.org:443 HTTP/1.1\r\n\r\n\x16\x03",
    ] {
        // The next one is served only when this one has ended.
        drop(proxy.served.exchange(bytes).await);
    }
    assert_eq!(proxy.get(PAGE).await.status, 200);
}

/// Fails if a rule of the replay listener does not hold here, or a page becomes staff by a field of its request.
#[tokio::test]
async fn rules_hold_in_the_proxy() {
    let directory = tempfile::tempdir().unwrap();
    let (rules, warc) = ruled_pages(directory.path());
    let archive = TestArchive::new().with("1-1-a.warc.gz", warc).await;
    let collection = format!(
        "collection=[{{ name = \"all\", rules = [\"{}\"], file_groups = [\"staff\"] }}]",
        rules.display()
    );
    let archive = archive
        .set(collection)
        .set("access.trusted_proxies=[\"127.0.0.1\"]");
    let proxy = Proxy::over(archive).await;
    let file = "http://viewerproxy.invalid/getFile?arcFile=1-1-a.warc.gz";
    for (url, status) in [
        (PAGE, 451),
        ("http://example.org/secret", 404),
        ("http://example.org/open", 200),
        (file, 451),
    ] {
        for fields in [&[][..], &[("X-Pywb-ACL-User", "staff")]] {
            let answer = proxy.served.ask("GET", url, fields).await;
            assert_eq!(answer.status, status, "{url} {fields:?}");
        }
    }
}

/// Fails if an index that is down looks like an archive without captures, or its silence is recorded as missing.
#[tokio::test]
async fn index_down_is_503_and_not_missing() {
    let world = TestArchive {
        index: Some(Arc::new(BrokenIndex(Vec::new()))),
        ..TestArchive::new()
    };
    let proxy = Proxy::over(world).await;
    proxy
        .get("http://viewerproxy.invalid/startRecordingURIs")
        .await;
    let answer = proxy.get(PAGE).await;
    assert_eq!(answer.status, 503);
    assert!(answer.field("retry-after").is_some());
    let list = proxy
        .get("http://viewerproxy.invalid/getRecordedURIs")
        .await;
    assert_eq!(list.text(), "");
}

/// Fails if a page of another capture time is shown when a client has chosen a date.
#[tokio::test]
async fn chosen_date_holds_until_changed() {
    let proxy = Proxy::over(three_pages().await).await;
    assert_eq!(proxy.get(PAGE).await.text(), "<p>three</p>");
    let set = proxy
        .get("http://viewerproxy.invalid/changeView?date=20200601")
        .await;
    assert!(set.text().contains("20200601235959"), "{}", set.text());
    assert_eq!(proxy.get(PAGE).await.text(), "<p>one</p>");
    let asked = [("Accept-Datetime", "Fri, 01 Jan 2021 00:00:00 GMT")];
    let answer = proxy.served.ask("GET", PAGE, &asked).await;
    assert_eq!(
        answer.field("memento-datetime").unwrap().get(5..16),
        Some("01 Jan 2021")
    );
    assert_eq!(answer.text(), "<p>two</p>", "{SECOND}");
    proxy.get("http://viewerproxy.invalid/changeView").await;
    assert_eq!(proxy.get(PAGE).await.text(), "<p>three</p>");
}
