//! Requests of people who try things.

use std::sync::Arc;

use archive_formats::cdx::query::CaptureQuery;
use index_client::{CaptureSearch, CaptureStream, IndexFuture as IndexAnswer};

use super::test_archive::{OK, TestArchive, Warc};
use super::{FIRST, three_pages};

/// Fails if nonsense is answered with anything but words about it.
#[tokio::test]
async fn nonsense_is_refused_in_words() {
    let served = three_pages().await.serve().await;
    let long = "x".repeat(10_000);
    for (method, path, status) in [
        ("GET", "/all/20201399id_/http://example.org/", 400),
        ("GET", "/all/99999999999999id_/http://example.org/", 400),
        ("GET", "/all/2020zz_/http://example.org/", 400),
        ("GET", "/all/2020mp_/http://example.org/page", 200),
        ("GET", "/all/2020sw_/http://example.org/page", 403),
        ("GET", "/all/*/http://example.org/page", 501),
        ("GET", "/none/cdx?url=http://example.org/", 404),
        ("GET", "/../../etc/passwd", 404),
        ("GET", "/all/../../etc/passwd", 404),
        ("GET", "/all/getFile?arcFile=../../etc/passwd", 400),
        ("GET", "/all/getFile?arcFile=%2e%2e%2fa", 400),
        ("GET", "/all/getFile", 400),
        ("GET", "/all/getFile?arcFile=none.warc", 451),
        (
            "GET",
            "/all/getRecord?arcFile=1-1-a.warc.gz&arcOffset=-1",
            400,
        ),
        (
            "GET",
            "/all/getRecord?arcFile=1-1-a.warc.gz&arcOffset=99999999999999999999",
            400,
        ),
        (
            "GET",
            "/all/getRecord?arcFile=1-1-a.warc.gz&arcOffset=999999",
            404,
        ),
        ("GET", "/all/getRecord?arcFile=none.warc&arcOffset=0", 404),
        ("GET", "/all/getMetadata?jobID=.*", 400),
        ("GET", "/all/getMetadata?jobID=17", 404),
        ("GET", "/all/cdx", 400),
        ("GET", "/all/cdx?url=http://example.org/&limit=-5", 400),
        ("GET", "/all?url=http://example.org/&limit=-5", 400),
        (
            "GET",
            "/all/cdx?url=http://example.org/&matchType=fuzzy",
            400,
        ),
        (
            "GET",
            "/all/cdx?url=http://example.org/&filter=~url:(((((",
            400,
        ),
        ("GET", "/all/cdx?url=http://example.org/&from=20209999", 400),
        ("GET", "/all/timemap/xml/http://example.org/", 400),
        ("GET", "/all/timemap/link/0/http://example.org/page", 400),
        ("GET", "/all/timemap/link/9/http://example.org/page", 404),
        ("PUT", "/all/cdx?url=http://example.org/", 405),
        ("DELETE", "/all/2020id_/http://example.org/page", 405),
        ("POST", "/all/2020id_/http://example.org/page", 405),
        ("CONNECT", "example.org:443", 405),
        ("GET", "http://other.example/all/cdx", 400),
    ] {
        let answer = served.ask(method, path, &[]).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        assert!(answer.body.len() > 10, "{method} {path} has no words");
        assert!(!answer.text().contains("panicked"), "{path}");
    }
    let answer = served
        .get(&format!(
            "/all/2020id_/http://example.org/{}",
            &long[..9_900]
        ))
        .await;
    assert_eq!(answer.status, 404);
    let answer = served
        .get(&format!("/all/2020id_/http://example.org/{long}"))
        .await;
    assert_eq!(answer.status, 414);
    let answer = served
        .get(&format!("/all/2020id_/http://example.org/{long}{long}"))
        .await;
    assert_eq!(answer.status, 414);
}

/// Fails if the escapes of a URL, or those of a path, count against its length, or a field is longer than clients read.
#[tokio::test]
async fn url_of_escapes_is_replayed() {
    let url = format!("http://example.org/{}", "%C3%A6".repeat(4_990));
    let warc = Warc::new().response(&url, FIRST, OK, b"long");
    let archive = TestArchive::new().with("a.warc.gz", warc).await;
    let served = archive.serve().await;
    let whole = url.replace('%', "%25").replace("://", "%3A%2F%2F");
    for written in [&url, &whole] {
        let path = format!("/all/20200101000000id_/{written}");
        let answer = served.get(&path).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "long"));
        let link = answer.list("link");
        assert!(link.starts_with(&format!("<{url}>; rel=\"original\"")));
        assert!(link.len() < 60 << 10, "{}", link.len());
        let longer = served.get(&format!("{path}%C3%A6")).await;
        assert_eq!(longer.status, 414, "{}", longer.text());
    }
}

/// Fails if a host or URL of a request can add a field to an answer, or bend its links.
#[tokio::test]
async fn nothing_of_a_request_becomes_a_field() {
    let served = three_pages().await.serve().await;
    for host in ["evil\"><script>", "a b", "x/../y", "user@host", "h;a=b"] {
        let request = format!(
            "GET /all/2020id_/http://example.org/page HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        );
        let bytes = served.exchange(request.as_bytes()).await.unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(!text.contains(host), "{host}: {text}");
    }
    let answer = served
        .get("/all/2020id_/http://example.org/%0d%0aSet-Cookie:%20a=b")
        .await;
    assert_eq!((answer.status, answer.field("set-cookie")), (404, None));
    let page = served
        .ask(
            "GET",
            "/<script>alert(1)</script>/cdx",
            &[("Accept", "text/html")],
        )
        .await;
    assert!(
        page.status >= 400 && !page.text().contains("<script>"),
        "{}",
        page.text()
    );
}

/// Fails if heads that never end, or are huge, are read to no end.
#[tokio::test]
async fn heads_have_limits_of_size_and_time() {
    let served = three_pages()
        .await
        .set("replay.head_time=200 ms")
        .serve()
        .await;
    let many: Vec<String> = (0..200).map(|at| format!("X-{at}: y\r\n")).collect();
    let many = many.concat();
    let request = format!("GET /all/ HTTP/1.1\r\nHost: h\r\n{many}\r\n");
    let answer = served.exchange(request.as_bytes()).await.unwrap();
    assert!(
        answer.starts_with(b"HTTP/1.1 431"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
    let large = format!(
        "GET /all/ HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n",
        "y".repeat(200_000)
    );
    // The request may be cut before all of it was sent.
    if let Ok(answer) = served.exchange(large.as_bytes()).await {
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431"));
    }
    let cut = served.exchange(b"GET /all/ HTTP/1.1\r\nHost: h\r\n").await;
    assert!(cut.is_ok_and(|answer| !answer.starts_with(b"HTTP/1.1 200")));
}

/// An index that never answers.
struct SilentIndex;

impl CaptureSearch for SilentIndex {
    fn query<'a>(&'a self, _query: &'a CaptureQuery) -> IndexAnswer<'a, CaptureStream> {
        Box::pin(std::future::pending())
    }
}

/// Fails if a request waits without a limit, or requests beyond the limit wait instead of being refused.
#[tokio::test]
async fn requests_have_limits_of_time_and_number() {
    let archive = TestArchive {
        index: Some(Arc::new(SilentIndex)),
        ..TestArchive::new()
    };
    let served = archive
        .set("replay.answer_time=300 ms")
        .set("replay.requests=1")
        .serve()
        .await;
    let path = "/all/cdx?url=http://example.org/";
    let (one, other) = tokio::join!(served.get(path), served.get(path));
    for answer in [&one, &other] {
        assert_eq!(answer.status, 503);
        assert!(answer.field("retry-after").is_some());
    }
    assert_ne!(
        one.text(),
        other.text(),
        "one waited, the other was turned away"
    );
    assert_eq!(served.get("/").await.status, 200, "its place is free again");
}

/// Fails if an answer to a visitor with a group may lie in a shared cache, or be read by a page of the live web.
#[tokio::test]
async fn answers_to_groups_are_private() {
    let served = three_pages()
        .await
        .set("access.trusted_proxies=[\"127.0.0.1\"]")
        .serve()
        .await;
    let staff = [("X-Pywb-ACL-User", "staff")];
    for path in [
        "/all/2021id_/http://example.org/page",
        "/all/timemap/link/http://example.org/page",
        "/all/cdx?url=http://example.org/page",
        "/all/cdx?url=http://example.org/page&showNumPages=true",
    ] {
        let answer = served.ask("GET", path, &staff).await;
        assert_eq!(
            (answer.status, answer.field("cache-control")),
            (200, Some("private")),
            "{path}"
        );
        assert_eq!(answer.field("access-control-allow-origin"), None, "{path}");
        let anonymous = served.get(path).await;
        assert_eq!(anonymous.field("cache-control"), None, "{path}");
        let origin = path.contains("cdx").then_some("*");
        assert_eq!(
            anonymous.field("access-control-allow-origin"),
            origin,
            "{path}"
        );
    }
    let page = "/all/20210101000000mp_/http://example.org/page";
    let framed = served
        .ask("GET", page, &[staff[0], ("X-Replay-Worker", "iframe")])
        .await;
    assert_eq!(framed.field("cache-control"), Some("no-store"));
}
