//! Hosts that ask for patience, and earlier captures that spare a host its answer.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Instant;

use archive_formats::warc::{Builder, WarcWriter};
use index_dedup::{DedupIndex, Workspace, build_index};
use jiff::Timestamp;

use super::requests::{page_with, requests_for, serve_requests};
use super::*;
use crate::process::KnownCaptures;

fn refusal(status: &str, fields: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: 0\r\n\r\n")
}

/// Returns a date as it stands in a head.
fn http_date(time: Timestamp) -> String {
    time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// Fails if a host that asks for time is not given it, is given more than the order allows, or a page is lost by it.
#[tokio::test]
async fn hosts_are_given_the_time_they_ask() {
    let later = |fields: &str| refusal("503 Service Unavailable", fields);
    let date = |seconds: i64| {
        let time = Timestamp::from_second(Timestamp::now().as_second() + seconds);
        http_date(time.unwrap())
    };
    // The refusal, the milliseconds that it asks for at least, the status in the end and the number of tries.
    let cases = [
        (later("Retry-After: 1\r\n"), 1000, 200, 2),
        (
            refusal("429 Too Many Requests", "retry-after:1\r\n"),
            1000,
            200,
            2,
        ),
        (later("Retry-After: SOON\r\n"), 1500, 200, 2),
        (later("Retry-After: PAST\r\n"), 0, 200, 2),
        (later("Retry-After: 0\r\n"), 0, 200, 2),
        // More than the order allows.
        (later("Retry-After: 99999\r\n"), 3000, 200, 2),
        // What says nothing is given the pause of any failure.
        (
            later("Retry-After: 99999999999999999999999\r\n"),
            100,
            200,
            2,
        ),
        (later("Retry-After: soon\r\n"), 100, 200, 2),
        (later("Retry-After: -1\r\n"), 100, 200, 2),
        (later(""), 100, 200, 2),
        (refusal("404 Not Found", "Retry-After: 1\r\n"), 0, 404, 1),
    ];
    for (refusal, milliseconds, status, tries) in cases {
        let refusal = refusal.replace("SOON", &date(3)).replace("PAST", &date(-3));
        let times = Arc::<Mutex<Vec<Instant>>>::default();
        let told = Arc::clone(&times);
        let answer = refusal.clone();
        let (base, _) = serve_requests("127.0.0.1", move |request| {
            if request.starts_with("GET /robots.txt") {
                return "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n".to_owned();
            }
            let mut times = told.lock();
            times.push(Instant::now());
            if times.len() == 1 {
                answer.clone()
            } else {
                page("page")
            }
        })
        .await;
        let directory = tempfile::tempdir().unwrap();
        let order =
            "retry = { max_tries = 3, first_delay = \"100 ms\", max_retry_after = \"3 s\" }";
        let begin = Instant::now();
        crawl(settings(
            directory.path(),
            std::slice::from_ref(&base),
            order,
        ))
        .await;
        let took = begin.elapsed();
        let lines = log(directory.path());
        let line = lines.iter().find(|line| line.uri == base.as_str()).unwrap();
        assert_eq!(line.status, status, "{refusal}");
        let says_tries = line.annotations.contains(&"2t".to_owned());
        assert_eq!(says_tries, tries == 2, "{refusal}");
        let times = times.lock();
        assert_eq!(times.len(), tries, "{refusal}");
        if let [first, second] = times.as_slice() {
            let rest = second.duration_since(*first);
            assert!(
                rest >= Duration::from_millis(milliseconds),
                "{refusal} {rest:?}"
            );
        }
        assert!(took < Duration::from_secs(20), "{refusal} {took:?}");
    }
}

/// Returns an index of captures: URL, media type and further fields of each.
fn known(captures: &[(Url, &str, &str)]) -> KnownCaptures {
    let mut lines = String::new();
    for (number, (url, media_type, fields)) in captures.iter().enumerate() {
        writeln!(
            lines,
            "key 20260102030405 {{\"url\": \"{url}\", \"mime\": \"{media_type}\", \"status\": \"200\", \
             \"digest\": \"sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ\", \"offset\": \"{number}\", \
             \"filename\": \"1.warc.gz\"{fields}}}"
        )
        .unwrap();
    }
    let id = "urn:uuid:6f6e9f5e-0d2b-4a0b-8f6c-7a1b2c3d4e5f";
    let uri = "metadata://example.org/crawl/index/captures?harvestid=1&jobid=1";
    let record = Builder::new(WarcType::Resource, id, "2026-01-02T04:00:00Z").target_uri(uri);
    let length = lines.len() as u64;
    let mut metadata = WarcWriter::plain_writer(Vec::new());
    let head = record.render_head(length).unwrap();
    metadata
        .write_record(&head, length, &mut lines.as_bytes())
        .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut file = tempfile::NamedTempFile::new_in(&directory).unwrap();
    let workspace = Workspace {
        directory: directory.path(),
        memory: 1 << 20,
    };
    let inputs = [(
        "1-metadata-1.warc".to_owned(),
        metadata.get_ref().as_slice(),
    )];
    let report = build_index(inputs, workspace, &mut file).unwrap();
    file.flush().unwrap();
    assert_eq!(report.captures, captures.len() as u64);
    KnownCaptures {
        index: DedupIndex::open(file.path()).unwrap(),
        with_text: false,
    }
}

/// Fails if a request is conditional where its page would lose links, or is not where it might be; or if the answer
/// that nothing has changed does not become a revisit of the earlier capture.
#[tokio::test]
async fn unchanged_files_become_revisits() {
    const DATE: &str = "Fri, 02 Jan 2026 03:04:05 GMT";
    let paths = [
        "/e.png",
        "/m.png",
        "/changed.png",
        "/bare.png",
        "/liar.png",
        "/a.html",
        "/a.txt",
    ];
    let links = format!("<a href={}>a</a>", paths.join(">a</a> <a href="));
    let (base, requests) = serve_requests("127.0.0.1", move |request| {
        let is_conditional = request.contains("\r\nIf-");
        match request.split(' ').nth(1).unwrap() {
            "/" => page(&links),
            "/liar.png" => refusal("304 Not Modified", "ETag: \"9\"\r\n"),
            "/e.png" | "/m.png" if is_conditional => refusal("304 Not Modified", "ETag: \"7\"\r\n"),
            path => page_with("Content-Type: image/png\r\n", path),
        }
    })
    .await;
    let url = |path: &str| base.join(path).unwrap();
    let etag = ", \"etag\": \"\\\"7\\\"\"";
    let date = format!(", \"last-modified\": \"{DATE}\"");
    let captures = [
        (url("/e.png"), "image/png", etag),
        (url("/m.png"), "image/png", &date),
        (url("/changed.png"), "image/png", etag),
        (url("/bare.png"), "image/png", ""),
        (url("/a.html"), "text/html", etag),
        (url("/a.txt"), "text/plain", etag),
        (url("/robots.txt"), "image/png", etag),
    ];
    let directory = tempfile::tempdir().unwrap();
    let mut settings = settings(directory.path(), std::slice::from_ref(&base), "");
    settings.known = Some(Arc::new(known(&captures)));
    crawl(settings).await;
    for (path, field) in [
        ("/e.png", Some("If-None-Match: \"7\"")),
        (
            "/m.png",
            Some("If-Modified-Since: Fri, 02 Jan 2026 03:04:05 GMT"),
        ),
        ("/changed.png", Some("If-None-Match: \"7\"")),
        ("/bare.png", None),
        ("/liar.png", None),
        ("/a.html", None),
        ("/a.txt", None),
        ("/robots.txt", None),
    ] {
        let sent = requests_for(&requests, path);
        assert_eq!(sent.len(), 1, "{path}");
        let found = sent[0].lines().find(|line| line.starts_with("If-"));
        assert_eq!(found, field, "{path}");
    }
    let mut revisits = recorded(directory.path(), WarcType::Revisit);
    revisits.sort();
    assert_eq!(
        revisits,
        ["/e.png", "/m.png"].map(|path| url(path).to_string())
    );
    let statuses = statuses(directory.path(), &base);
    assert_eq!(
        (
            statuses["/e.png"],
            statuses["/liar.png"],
            statuses["/changed.png"]
        ),
        (304, 304, 200)
    );
    for line in log(directory.path()) {
        let is_duplicate = line
            .annotations
            .iter()
            .any(|text| text == "duplicate:server-not-modified");
        assert_eq!(is_duplicate, revisits.contains(&line.uri), "{}", line.uri);
    }
}
