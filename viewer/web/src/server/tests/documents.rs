//! Pages without scripts, style sheets, and records of other kinds.

use archive_formats::warc::WarcType;

use super::test_archive::{OK, TestArchive, Warc};
use super::{FIRST, PAGE, SECOND, three_pages};

const OF_WORKER: (&str, &str) = ("X-Replay-Worker", "iframe");

fn typed(fields: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n")
}

/// Fails if a page without scripts runs one, leads out of the archive, or does not say what it is.
#[tokio::test]
async fn page_without_modifier_has_no_scripts() {
    let body = b"<body onload=x()><script>x()</script><a href=http://b.dk/>b</a><img srcset='a 1x, http://b.dk/c 2x'>\
        <style>p{background:url(http://b.dk/d)}</style><link rel=preconnect href=http://b.dk/>";
    let warc = Warc::new().response(PAGE, FIRST, OK, body);
    let served = TestArchive::new()
        .with("a.warc.gz", warc)
        .await
        .serve()
        .await;
    let answer = served
        .get("/all/20200101000000/http://example.org/page")
        .await;
    assert_eq!(
        answer.field("content-type"),
        Some("text/html; charset=UTF-8")
    );
    let text = answer.text();
    for part in [
        "href=\"/all/20200101000000/http://b.dk/\"",
        "/all/20200101000000im_/http://b.dk/c 2x",
        "url(\"/all/20200101000000oe_/http://b.dk/d\")",
        "http://example.org/page</b>",
        "2020-01-01T00:00:00Z",
        "href=\"/all/timemap/link/http://example.org/page\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        !text.contains("x()") && !text.contains("preconnect"),
        "{text}"
    );
    let policy = answer.list("content-security-policy");
    assert!(policy.contains("script-src 'none'") && policy.contains("default-src 'none'"));
    assert!(!policy.contains("http"), "{policy}");
    assert_eq!(
        answer.field("memento-datetime"),
        Some("Wed, 01 Jan 2020 00:00:00 GMT")
    );
    let head = served
        .ask("HEAD", "/all/20200101000000/http://example.org/page", &[])
        .await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    let preferred = served
        .ask(
            "GET",
            "/all/20200101000000/http://example.org/page",
            &[("Prefer", "rewritten")],
        )
        .await;
    assert_eq!(preferred.field("preference-applied"), Some("rewritten"));
}

/// Fails if a cache may give an answer to a client that prefers another form of the same address.
#[tokio::test]
async fn negotiable_answers_vary_by_prefer() {
    let served = three_pages().await.serve().await;
    let url = "http://example.org/page";
    for (path, is_negotiable) in [
        (format!("/all/20200101000000/{url}"), true),
        (format!("/all/{url}"), true),
        (format!("/all/20200101000000id_/{url}"), false),
    ] {
        for preference in ["respond-async", "raw", "rewritten"] {
            let fields = [("Prefer", preference)];
            let answer = served.ask("GET", &path, &fields).await;
            let vary = answer.list("vary");
            assert_eq!(answer.status, 200, "{path} {preference}");
            assert_eq!(vary.contains("prefer"), is_negotiable, "{path}: {vary}");
        }
    }
}

/// Fails if a redirect without the worker leads out of the archive, or to another form of the page.
#[tokio::test]
async fn redirects_of_pages_stay_inside() {
    let head = "HTTP/1.1 302 Found\r\nLocation: https://other.example/x#y\r\n\r\n";
    let warc = Warc::new().response("http://example.org/r", FIRST, head, b"");
    let served = TestArchive::new()
        .with("a.warc.gz", warc)
        .await
        .serve()
        .await;
    let answer = served.get("/all/20200101000000/http://example.org/r").await;
    let expected = "http://replay.example:80/all/20200101000000/https://other.example/x";
    assert_eq!(
        (answer.status, answer.field("location")),
        (302, Some(expected))
    );
}

/// Fails if a style sheet for pages without scripts keeps references to the live web, or one for the worker loses them.
#[tokio::test]
async fn style_sheets_are_rewritten_without_worker() {
    let body = b"@import 'b.css'; p{background:url(http://b.dk/\xe6)}";
    let warc = Warc::new().response(
        "http://example.org/s.css",
        FIRST,
        &typed("Content-Type: text/css; charset=iso-8859-1"),
        body,
    );
    let served = TestArchive::new()
        .with("a.warc.gz", warc)
        .await
        .serve()
        .await;
    let path = "/all/20200101000000cs_/http://example.org/s.css";
    let sheet = served.get(path).await;
    assert_eq!(sheet.field("content-type"), Some("text/css; charset=utf-8"));
    assert_eq!(
        sheet.text(),
        "@import \"/all/20200101000000cs_/http://example.org/b.css\"; \
         p{background:url(\"/all/20200101000000oe_/http://b.dk/%C3%A6\")}"
    );
    let raw = served
        .ask("GET", path, &[("X-Replay-Worker", "style")])
        .await;
    assert_eq!(raw.body, body);
}

/// Fails if records that are no answers of HTTP are shown as something else than they are.
#[tokio::test]
async fn records_without_http_are_shown() {
    let facts = |name| (name, FIRST);
    let warc = Warc::new()
        .record(
            WarcType::Resource,
            facts("http://example.org/r"),
            "text/html",
            b"<p>resource</p>",
        )
        .record(
            WarcType::Resource,
            facts("http://example.org/i"),
            "image/png",
            b"\x89PNG",
        )
        .record(
            WarcType::Response,
            facts("http://example.org/h"),
            "application/http; msgtype=response",
            b"<html><p>no head</p>",
        );
    let served = TestArchive::new()
        .with("a.warc.gz", warc)
        .await
        .serve()
        .await;
    for (name, expected) in [("r", "<p>resource</p>"), ("h", "<p>no head</p>")] {
        for (modifier, fields) in [("", &[][..]), ("mp_", &[OF_WORKER][..])] {
            let path = format!("/all/2020{modifier}/http://example.org/{name}");
            let answer = served.ask("GET", &path, fields).await;
            assert!(
                answer.text().contains(expected),
                "{path}: {}",
                answer.text()
            );
        }
    }
    let image = served.get("/all/2020/http://example.org/i").await;
    assert_eq!(
        (image.field("content-type"), image.body.as_slice()),
        (Some("image/png"), &b"\x89PNG"[..])
    );
}

/// Fails if captures of an ARC file are not shown.
#[tokio::test]
async fn arc_records_are_shown() {
    let message = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>old</p>";
    let first = "1 0 Archive\nURL IP-address Archive-date Content-type Archive-length\n\n";
    let arc = format!(
        "filedesc://a.arc 0.0.0.0 20200101000000 text/plain {}\n{first}\nhttp://example.org/old 1.2.3.4 20200101000000 \
         text/html {}\n{message}\n",
        first.len(),
        message.len()
    );
    let world = TestArchive::new()
        .with_bytes("a.arc", arc.into_bytes())
        .await;
    let served = world.serve().await;
    let answer = served.get("/all/2020/http://example.org/old").await;
    assert!(answer.text().contains("<p>old</p>"), "{}", answer.text());
    let framed = served
        .ask("GET", "/all/2020mp_/http://example.org/old", &[OF_WORKER])
        .await;
    assert!(framed.text().contains("<p>old</p>"));
}

/// Fails if a cache buster hides a capture, or one finds a capture that says something else.
#[tokio::test]
async fn cache_busters_are_passed_over() {
    let url = |query: &str| format!("http://example.org/d?{query}");
    let warc = Warc::new()
        .response(&url("a=1&_=1577836800000"), FIRST, OK, b"first")
        .response(&url("a=1&_=1609459200000"), SECOND, OK, b"second")
        .response(&url("a=2&_=1577836800000"), FIRST, OK, b"other")
        .response("http://example.org/plain", FIRST, OK, b"plain");
    let served = TestArchive::new()
        .with("a.warc.gz", warc)
        .await
        .serve()
        .await;
    for (path, expected) in [
        (
            "/all/20200102id_/http://example.org/d?_=1999999999999&a=1",
            Some("first"),
        ),
        (
            "/all/20210102id_/http://example.org/d?_=1999999999999&a=1",
            Some("second"),
        ),
        (
            "/all/20210102id_/http://example.org/d?_=1577836800000&a=1",
            Some("first"),
        ),
        (
            "/all/2020id_/http://example.org/d?_=1999999999999&a=3",
            None,
        ),
        (
            "/all/2020id_/http://example.org/d?a=1&b=1999999999999",
            None,
        ),
        (
            "/all/2020id_/http://example.org/plain?1999999999999",
            Some("plain"),
        ),
    ] {
        let answer = served.get(path).await;
        match expected {
            Some(text) => assert_eq!(
                (answer.status, answer.text().as_str()),
                (200, text),
                "{path}"
            ),
            None => assert_eq!(answer.status, 404, "{path}"),
        }
    }
    let named = served
        .get("/all/20200102id_/http://example.org/d?_=1999999999999&a=1")
        .await;
    let location = named.field("content-location").unwrap();
    assert!(location.ends_with("d?a=1&_=1577836800000"), "{location}");
}

/// Fails if a page is shown in a charset that differs from the one that it was read in.
#[tokio::test]
async fn charset_of_page_is_always_named() {
    let served = three_pages().await.serve().await;
    let utf16: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain(
            "<script>x</script><p>\u{e6}</p>"
                .encode_utf16()
                .flat_map(u16::to_le_bytes),
        )
        .collect();
    assert_eq!(
        served
            .get("/all/2020/http://example.org/page")
            .await
            .field("content-type"),
        Some("text/html; charset=UTF-8")
    );
    let warc = Warc::new()
        .response("http://example.org/w", FIRST, OK, b"bl\xe5b\xe6r")
        .response("http://example.org/u", FIRST, OK, &utf16)
        .response(
            "http://example.org/k",
            FIRST,
            &typed("Content-Type: text/html; charset=KOI8-R"),
            b"\xc1",
        );
    let served = TestArchive::new()
        .with("a.warc.gz", warc)
        .await
        .serve()
        .await;
    for (name, media, expected) in [
        (
            "w",
            "text/html; charset=windows-1252",
            b"bl\xe5b\xe6r".as_slice(),
        ),
        ("u", "text/html; charset=UTF-8", "<p>\u{e6}</p>".as_bytes()),
        ("k", "text/html; charset=KOI8-R", b"\xc1"),
    ] {
        let answer = served
            .get(&format!("/all/2020/http://example.org/{name}"))
            .await;
        assert_eq!(answer.field("content-type"), Some(media), "{name}");
        assert!(
            answer.body.starts_with(expected),
            "{name}: {:?}",
            answer.text()
        );
    }
}
