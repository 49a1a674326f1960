//! Tests with hostile URLs, rules that hide captures, and an index that is down.

use std::sync::Arc;

use archive_formats::cdx::query::CaptureQuery;
use archive_rpc::CallErrorKind;
use index_client::{CaptureSearch, CaptureStream, IndexCallError, IndexFuture as IndexAnswer};

use super::page_client::{TestPages, capture};

/// Returns a rule file, and the directory that it lies in.
fn rules(text: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.aclj");
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .unwrap();
    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    let setting = format!(
        "collection=[{{ name = \"all\", rules = [\"{}\"] }}]",
        path.display()
    );
    (directory, setting)
}

/// Fails if an archived URL can become markup, wherever it is shown.
#[tokio::test]
async fn hostile_urls_are_escaped_everywhere() {
    let url = "http://example.org/\"><script>alert('1')</script><b x=&amp;";
    let pages = TestPages::new([
        capture(url, "20200101000000"),
        capture(url, "20200101000001"),
    ]);
    let raw = "http://example.org/%22%3E%3Cscript%3Ealert('1')%3C/script%3E%3Cb%20x=&amp;";
    for path in [
        format!("/all/*/{raw}"),
        format!("/all/20200101*/{raw}"),
        "/all/*/http://example.org/*".to_owned(),
        "/all/*/*.example.org".to_owned(),
        format!("/replay/all/20200101000000/{raw}"),
        format!("/all/*/{raw}none"),
        "/?url=%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E%00".to_owned(),
        "/all/timemap/link/x%22%3E%3Cscript%3E".to_owned(),
        "/%3Cscript%3E/*/x".to_owned(),
    ] {
        // The client asserts that no page has a script.
        let answer = pages.get(&path).await;
        assert!(!answer.text.contains("<b x"), "{path}: {}", answer.text);
        assert!(!answer.text.contains("alert('"), "{path}: {}", answer.text);
    }
    let frame = pages
        .get(&format!("/replay/all/20200101000000/{raw}"))
        .await;
    assert_eq!(frame.status, 200);
}

/// Fails if an address that makes no sense is answered with another page than one that says what to do.
#[tokio::test]
async fn nonsense_gets_a_page_with_advice() {
    let pages = TestPages::new([capture("http://example.org/a*", "20200101000000")]);
    let long = format!("/all/*/http://example.org/{}", "x".repeat(10_001));
    let longer = format!("/all/*/http://example.org/{}", "x".repeat(60_000));
    for (path, status, says) in [
        ("/all/20201399*/http://example.org/", 400, "is not a time"),
        ("/all/20200230*/http://example.org/", 400, "is not a time"),
        (
            "/replay/all/2020133/http://example.org/",
            400,
            "is not a time",
        ),
        (
            "/all/*/http%3A%2F%2Fexample.org?from=20209999",
            400,
            "is not a time",
        ),
        ("/all/*/", 400, "which archived page"),
        ("/all/*/http://", 400, "which archived page"),
        ("/none/*/http://example.org/", 404, "no collection “none”"),
        ("/none/", 404, "no collection"),
        ("/favicon.ico", 404, "no collection"),
        ("/replay/all", 404, "nothing at this address"),
        (
            "/all/timemap/x/http://example.org/",
            400,
            "has a form that is not known",
        ),
        ("/all/cdx?url=x", 404, "replay host"),
        (
            "/all/20200101000000id_/http://example.org/",
            404,
            "http://127.0.0.1:8091/all/20200101000000id_/",
        ),
        ("/all/getFile?arcFile=a", 404, "replay host"),
        (&long, 414, "at most 10,000 characters"),
        (&longer, 414, "at most 10,000 characters"),
    ] {
        let answer = pages.get(path).await;
        let shown: String = path.chars().take(80).collect();
        assert_eq!(answer.status, status, "{shown}: {}", answer.text);
        assert!(answer.text.contains(says), "{shown}: {}", answer.text);
        assert!(answer.text.contains("role=\"search\""), "{shown}");
        assert_eq!(answer.field("cache-control"), Some("no-store"), "{shown}");
    }
    let posted = pages.ask("POST", "/", &[]).await;
    assert_eq!(
        (posted.status, posted.field("allow")),
        (405, Some("GET, HEAD"))
    );
    // A literal star is that of a URL where it is escaped.
    for path in [
        "/all/*/http://example.org/a%2A",
        "/all/*/http%3A%2F%2Fexample.org%2Fa%2A",
    ] {
        let answer = pages.get(path).await;
        assert!(
            answer.text.contains("<strong>1 capture</strong>"),
            "{path}: {}",
            answer.text
        );
    }
}

/// Fails if a URL of 10,000 characters has no page, or fills it.
#[tokio::test]
async fn longest_urls_have_short_pages() {
    let url = format!("http://example.org/{}", "x".repeat(9_000));
    let pages = TestPages::new([capture(&url, "20200101000000")]);
    let calendar = pages.get(&format!("/all/*/{url}")).await;
    assert_eq!(calendar.status, 200);
    assert!(calendar.text.contains("<details class=\"long-url\">"));
    let frame = pages
        .get(&format!("/replay/all/20200101000000/{url}"))
        .await;
    let heading = frame.text.split("<h1>").nth(1).unwrap();
    assert!(heading.split("</h1>").next().unwrap().len() < 200);
    let list = pages.get("/all/*/http://example.org/*").await;
    assert!(list.text.contains('…'));
}

/// Fails if a page reveals captures that its visitor may not see.
#[tokio::test]
async fn hidden_captures_are_on_no_page() {
    let (_directory, setting) = rules(
        "org,example)/secret - {\"access\": \"exclude\"}\norg,example)/closed - {\"access\": \"block\"}\n",
    );
    let url = |name: &str| format!("http://example.org/{name}");
    let captures = ["open", "secret", "closed"].map(|name| capture(&url(name), "20200101000000"));
    let pages = TestPages::new(captures).set(setting);
    for (path, status) in [
        ("/all/*/http://example.org/open", 200),
        ("/all/*/http://example.org/secret", 404),
        ("/all/*/http://example.org/closed", 451),
        ("/all/*/http://example.org/clos*", 451),
        ("/all/*/http://example.org/secr*", 404),
        ("/replay/all/20200101000000/http://example.org/secret", 404),
        ("/replay/all/20200101000000/http://example.org/closed", 451),
        ("/replay/all/http://example.org/closed", 451),
    ] {
        let answer = pages.get(path).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text);
    }
    let secret = pages.get("/all/*/http://example.org/secret").await;
    let none = pages.get("/all/*/http://example.org/nevers").await;
    assert_eq!(
        secret.text.replace("secret", ""),
        none.text.replace("nevers", ""),
        "both look alike"
    );
    let list = pages.get("/all/*/http://example.org/*").await;
    assert!(list.text.contains("1 address"), "{}", list.text);
    assert!(
        !list.text.contains("secret") && !list.text.contains("closed"),
        "{}",
        list.text
    );
}

/// Fails if an embargo is not asked for each capture.
#[tokio::test]
async fn embargoed_captures_are_not_counted() {
    let url = "http://example.org/";
    let captures =
        ["20180101000000", "20190101000000", "20200101000000"].map(|at| capture(url, at));
    let embargo = "collection=[{ name = \"all\", embargo = { after = \"2019\" } }]";
    let pages = TestPages::new(captures).set(embargo);
    let answer = pages.get("/all/*/http://example.org/").await;
    assert!(
        answer.text.contains("<strong>1 capture</strong>"),
        "{}",
        answer.text
    );
    assert!(!answer.text.contains("2020"), "{}", answer.text);
    let frame = pages
        .get("/replay/all/20200101000000/http://example.org/")
        .await;
    assert_eq!(
        frame.field("location"),
        Some("/replay/all/20180101000000/http://example.org/")
    );
}

/// An index that fails with one kind of error; without one it never answers.
struct BrokenIndex(Option<CallErrorKind>);

impl CaptureSearch for BrokenIndex {
    fn query<'a>(&'a self, _query: &'a CaptureQuery) -> IndexAnswer<'a, CaptureStream> {
        match self.0 {
            Some(kind) => Box::pin(async move { Err(IndexCallError::new(kind, "it is \"><down")) }),
            None => Box::pin(std::future::pending()),
        }
    }
}

/// Fails if an index that is down looks as if nothing had been captured.
#[tokio::test]
async fn index_that_is_down_is_503() {
    for (kind, retry) in [
        (Some(CallErrorKind::Unavailable), "5"),
        (Some(CallErrorKind::TimedOut), "5"),
        (Some(CallErrorKind::Damaged), "60"),
        (None, "5"),
    ] {
        let pages = TestPages::over(Arc::new(BrokenIndex(kind))).set("web.answer_time=200 ms");
        for path in [
            "/all/*/http://example.org/",
            "/all/*/http://example.org/*",
            "/replay/all/2020/http://example.org/",
        ] {
            for (language, says) in [("en", "Nothing is lost."), ("da", "Intet er gået tabt.")] {
                let answer = pages
                    .ask("GET", path, &[("accept-language", language)])
                    .await;
                assert_eq!(answer.status, 503, "{path}");
                assert_eq!(answer.field("retry-after"), Some(retry), "{path} {kind:?}");
                assert!(answer.text.contains(says), "{path}: {}", answer.text);
                assert!(!answer.text.contains("down\"") && !answer.text.contains("><down"));
            }
        }
        assert_eq!(
            pages.get("/").await.status,
            200,
            "the search needs no index"
        );
    }
}

/// Fails if a visitor can use the pages by the host of the archived pages.
#[tokio::test]
async fn replay_host_leads_to_page_host() {
    let pages = TestPages::new([]);
    for host in ["127.0.0.1:8090", "127.0.0.1", "127.0.0.1:8091"] {
        let answer = pages
            .ask("GET", "/all/*/http://a.b/?c=d", &[("host", host)])
            .await;
        let expected = Some("http://localhost:8090/all/*/http://a.b/?c=d");
        assert_eq!(
            (answer.status, answer.field("location")),
            (308, expected),
            "{host}"
        );
    }
    for host in ["localhost:8090", "localhost", "archive.example", "\u{7f}"] {
        if let Ok(value) = axum::http::HeaderValue::from_str(host) {
            let fields = [("host", value.to_str().unwrap())];
            assert_eq!(pages.ask("GET", "/", &fields).await.status, 200, "{host}");
        }
    }
}
