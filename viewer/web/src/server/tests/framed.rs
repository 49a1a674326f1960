//! Framed replay: who gets archived pages, and with which walls around them.

use super::test_archive::{Answer, OK, TestArchive, Warc};
use super::{FIRST, PAGE, SECOND, three_pages};

const FRAMED: &str = "/all/20210101000000mp_/http://example.org/page";
const OF_WORKER: (&str, &str) = ("X-Replay-Worker", "iframe");

fn is_loader(answer: &Answer) -> bool {
    answer.text().contains("navigator.serviceWorker.register")
}

/// Fails if any request but that of the worker for a frame gets an archived page as it was.
#[tokio::test]
async fn pages_are_for_framed_worker_alone() {
    let served = three_pages().await.serve().await;
    let page = served.ask("GET", FRAMED, &[OF_WORKER]).await;
    assert_eq!(page.status, 200);
    assert!(page.text().contains("<p>two</p>") && page.text().starts_with("<script>"));
    for modifier in ["mp_", "if_", "fr_", "bn_"] {
        for fields in [
            vec![],
            vec![("Sec-Fetch-Dest", "iframe"), ("Sec-Fetch-Mode", "navigate")],
            vec![
                ("Sec-Fetch-Dest", "iframe"),
                ("Sec-Fetch-Mode", "navigate"),
                OF_WORKER,
            ],
            vec![("Sec-Fetch-Dest", "empty"), ("Sec-Fetch-Mode", "cors")],
            vec![("X-Replay-Worker", "document")],
            vec![("X-Replay-Worker", "empty")],
            vec![("X-ServiceWorker", "iframe")],
            vec![OF_WORKER, ("Sec-Fetch-Site", "cross-site")],
            vec![("Cache-Control", "no-cache"), ("Pragma", "no-cache")],
        ] {
            let path = format!("/all/20210101000000{modifier}/http://example.org/page");
            let answer = served.ask("GET", &path, &fields).await;
            assert!(is_loader(&answer), "{path} {fields:?}: {}", answer.text());
            assert!(!answer.text().contains("<p>two</p>"), "{path} {fields:?}");
            assert_eq!(answer.field("cache-control"), Some("no-store"));
        }
    }
    // The look-up is not even made: the loader is for any URL.
    let unknown = served
        .get("/all/2020mp_/http://example.org/'onload='alert(1)%22%3E%3Cscript%3E")
        .await;
    assert!(is_loader(&unknown) && !unknown.text().contains("'onload="));
    let latest = served
        .ask("GET", "/all/mp_/http://example.org/page", &[OF_WORKER])
        .await;
    assert!(latest.text().contains("<p>three</p>"));
}

/// Fails if a framed page lacks a wall, or a field of its own server acts.
#[tokio::test]
async fn framed_page_has_its_walls() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=iso-8859-1\r\nLink: <http://b.dk/>; rel=preconnect\r\n\
        Content-Security-Policy: default-src *\r\nSet-Cookie: a=b\r\nRefresh: 3; url=/next\r\nReport-To: {}\r\n\
        NEL: {}\r\nAlt-Svc: h3\r\nSpeculation-Rules: \"/x\"\r\nX-A: b\r\n c\r\n\r\n";
    let body =
        b"<link rel=preconnect href=http://b.dk/><a href=/n>bl\xe5</a><img src=http://b.dk/i>";
    let warc = Warc::new().response(PAGE, FIRST, head, body);
    let mut world = TestArchive::new().with("a.warc.gz", warc).await;
    world.page_host = Some("http://localhost:7".to_owned());
    let served = world.serve().await;
    let answer = served
        .ask(
            "GET",
            "/all/20200101000000mp_/http://example.org/page",
            &[OF_WORKER],
        )
        .await;
    assert_eq!(
        answer.field("content-type"),
        Some("text/html; charset=windows-1252")
    );
    let policy = answer.list("content-security-policy");
    for part in [
        "frame-ancestors 'self' http://localhost:7",
        "form-action 'self'",
        "frame-src 'self'",
        "connect-src 'self' http: https:",
    ] {
        assert!(policy.contains(part), "{part}: {policy}");
    }
    assert!(
        !policy.contains("ws:") && !policy.contains("default-src *"),
        "{policy}"
    );
    assert!(answer.list("permissions-policy").contains("camera=()"));
    assert_eq!(answer.field("referrer-policy"), Some("same-origin"));
    assert_eq!(answer.field("x-dns-prefetch-control"), Some("off"));
    assert_eq!(answer.field("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.field("cache-control"), Some("no-store"));
    assert!(
        !answer.list("link").contains("preconnect"),
        "{}",
        answer.list("link")
    );
    for name in [
        "set-cookie",
        "report-to",
        "nel",
        "alt-svc",
        "speculation-rules",
        "location",
    ] {
        assert_eq!(answer.field(name), None, "{name}");
    }
    let next = "3; url=/all/20200101000000mp_/http://example.org/next";
    assert_eq!(answer.field("refresh"), Some(next));
    let script = answer
        .body
        .windows(9)
        .position(|at| at == b"</script>")
        .unwrap();
    let rest = &answer.body[script + 9..];
    assert_eq!(
        rest,
        b"<a href=\"/all/20200101000000mp_/http://example.org/n\">bl\xe5</a><img src=http://b.dk/i>"
    );
    let first = String::from_utf8_lossy(&answer.body[..script]).into_owned();
    assert!(first.contains("RTCPeerConnection") && first.contains("WebTransport"));
}

/// Fails if a visitor at the top is given a page, or is left without a word.
#[tokio::test]
async fn top_level_visit_leads_to_page_host() {
    let top = [
        ("Sec-Fetch-Dest", "document"),
        ("Sec-Fetch-Mode", "navigate"),
    ];
    let alone = three_pages().await.serve().await;
    let told = alone.ask("GET", FRAMED, &top).await;
    assert_eq!((told.status, told.field("location")), (200, None));
    assert!(
        told.text().contains("web.url") && !told.text().contains("<p>two"),
        "{}",
        told.text()
    );
    let mut world = three_pages().await;
    world.page_host = Some("https://archive.example".to_owned());
    let served = world.serve().await;
    let led = served.ask("GET", FRAMED, &top).await;
    assert_eq!(
        (led.status, led.field("location")),
        (
            302,
            Some("https://archive.example/replay/all/20210101000000/http://example.org/page")
        )
    );
    let calendar = served.get("/all/*/http://example.org/page").await;
    assert_eq!(
        (calendar.status, calendar.field("location")),
        (
            302,
            Some("https://archive.example/all/*/http://example.org/page")
        )
    );
    let loader = served.get(FRAMED).await;
    assert!(
        loader
            .text()
            .contains("data-page=\"https://archive.example/replay/all/")
    );
    assert!(
        loader
            .list("content-security-policy")
            .contains("script-src 'sha256-")
    );
}

/// Fails if archived bytes come under the name of the page host, whose cookies a page could then read.
#[tokio::test]
async fn page_host_name_leads_to_page_host() {
    let mut world = three_pages().await;
    world.page_host = Some("https://replay.example:7".to_owned());
    let served = world.serve().await;
    for path in [
        FRAMED,
        "/all/2021id_/http://example.org/page",
        "/all/cdx?url=x",
        "/static/worker.js",
    ] {
        let answer = served.ask("GET", path, &[OF_WORKER]).await;
        let expected = format!("https://replay.example:7{path}");
        assert_eq!(
            (answer.status, answer.field("location")),
            (308, Some(expected.as_str()))
        );
        assert!(answer.body.is_empty(), "{path}");
    }
}

/// Fails if what a page loads is changed, or a redirect of it could be followed to the live web.
#[tokio::test]
async fn worker_gets_bytes_as_they_were() {
    let moved =
        "HTTP/1.1 301 Moved\r\nLocation: https://live.example/\r\nContent-Type: text/html\r\n\r\n";
    let script = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
    let warc = Warc::new()
        .response("http://example.org/moved", FIRST, moved, b"<p>moved")
        .response(
            "http://example.org/x.js",
            FIRST,
            script,
            b"let a = '</script>';",
        )
        .response(PAGE, FIRST, OK, b"<a href=/n>");
    let served = TestArchive::new()
        .with("a.warc.gz", warc)
        .await
        .serve()
        .await;
    for (destination, is_framed) in [("iframe", true), ("image", false)] {
        let modifier = if is_framed { "mp_" } else { "id_" };
        let path = format!("/all/2020{modifier}/http://example.org/moved");
        let answer = served
            .ask("GET", &path, &[("X-Replay-Worker", destination)])
            .await;
        assert_eq!(
            (answer.status, answer.field("location")),
            (200, None),
            "{path}"
        );
        assert_eq!(answer.field("x-redirect-status"), Some("301"));
        assert_eq!(
            answer.field("x-orig-location"),
            Some("https://live.example/")
        );
    }
    let script = served
        .ask(
            "GET",
            "/all/2020id_/http://example.org/x.js",
            &[("X-Replay-Worker", "script")],
        )
        .await;
    assert_eq!(script.text(), "let a = '</script>';");
    assert_eq!(
        script.field("x-content-type-options"),
        None,
        "browsers ran it with its wrong type"
    );
    let thread = served
        .ask(
            "GET",
            "/all/2020id_/http://example.org/x.js",
            &[("X-Replay-Worker", "worker")],
        )
        .await;
    assert!(
        thread
            .list("content-security-policy")
            .contains("connect-src 'self'")
    );
    let fetched = served
        .ask(
            "GET",
            "/all/2020id_/http://example.org/page",
            &[("X-Replay-Worker", "empty")],
        )
        .await;
    assert_eq!(fetched.text(), "<a href=/n>");
}

/// Fails if a browser that opens raw bytes shows them as a page, from which links lead to the live web.
#[tokio::test]
async fn raw_page_is_shown_as_text() {
    let served = three_pages().await.serve().await;
    let path = "/all/20210101000000id_/http://example.org/page";
    let program = served.get(path).await;
    assert_eq!(program.field("content-type"), Some("text/html"));
    let browser = served
        .ask("GET", path, &[("Sec-Fetch-Mode", "navigate")])
        .await;
    assert_eq!(browser.field("content-type"), Some("text/plain"));
    assert_eq!(browser.body, program.body);
    for answer in [program, browser] {
        assert!(
            answer
                .list("content-security-policy")
                .starts_with("sandbox;")
        );
    }
}

/// Fails if a form of an archived page finds the capture of another one, or a stranger can send one.
#[tokio::test]
async fn form_post_finds_capture_of_its_body() {
    let warc = Warc::new()
        .response("http://example.org/form", FIRST, OK, b"<p>got</p>")
        .response("http://example.org/form", SECOND, OK, b"<p>posted</p>");
    let mut world = TestArchive::new().with("a.warc.gz", warc).await;
    let posted = world.captures.last_mut().unwrap();
    posted.key = "org,example)/form?__wb_method=post&q=1".to_owned();
    let served = world.serve().await;
    let ask = async |method: &str, fields: &str, body: &str| {
        let request = format!(
            "{method} /all/2021mp_/http://example.org/form HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{fields}\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let bytes = served.exchange(request.as_bytes()).await.unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let worker = "X-Replay-Worker: iframe\r\n";
    assert!(ask("POST", worker, "q=1").await.contains("<p>posted</p>"));
    assert!(ask("POST", worker, "q=2").await.starts_with("HTTP/1.1 404"));
    assert!(ask("PUT", worker, "q=1").await.starts_with("HTTP/1.1 404"));
    assert!(ask("POST", "", "q=1").await.starts_with("HTTP/1.1 405"));
    assert!(ask("GET", worker, "").await.contains("<p>got</p>"));
}

/// Fails if a drawing or another document in a frame can act as a page.
#[tokio::test]
async fn other_documents_in_frames_do_not_act() {
    let typed = |media: &str| format!("HTTP/1.1 200 OK\r\nContent-Type: {media}\r\n\r\n");
    let body = b"<svg xmlns='http://www.w3.org/2000/svg'><script>x</script></svg>";
    let warc = Warc::new()
        .response("http://example.org/d", FIRST, &typed("image/svg+xml"), body)
        .response("http://example.org/x", FIRST, &typed("text/xml"), body)
        .response(
            "http://example.org/t",
            FIRST,
            &typed("image/png, text/html"),
            body,
        )
        .response(
            "http://example.org/u",
            FIRST,
            "HTTP/1.1 200 OK\r\n\r\n",
            b"<html><script>x</script>",
        )
        .response(
            "http://example.org/n",
            FIRST,
            "HTTP/1.1 200 OK\r\n\r\n",
            b"no page",
        );
    let served = TestArchive::new()
        .with("a.warc.gz", warc)
        .await
        .serve()
        .await;
    for (name, media, is_page) in [
        ("d", "text/html; charset=utf-8", false),
        ("x", "text/plain", false),
        ("t", "image/png", false),
        ("u", "text/html; charset=UTF-8", true),
        ("n", "text/plain", false),
    ] {
        let path = format!("/all/2020mp_/http://example.org/{name}");
        let answer = served.ask("GET", &path, &[OF_WORKER]).await;
        assert_eq!(
            (answer.status, answer.field("content-type")),
            (200, Some(media)),
            "{name}"
        );
        let policy = answer.list("content-security-policy");
        assert_eq!(
            policy.contains("'unsafe-eval'"),
            is_page,
            "{name}: {policy}"
        );
        assert_eq!(
            policy.contains("default-src 'none'"),
            !is_page,
            "{name}: {policy}"
        );
        assert_eq!(answer.field("cache-control"), Some("no-store"), "{name}");
    }
    let drawing = served
        .ask("GET", "/all/2020mp_/http://example.org/d", &[OF_WORKER])
        .await;
    assert!(!drawing.text().contains("<script") && drawing.text().contains("20200101000000im_/"));
}
