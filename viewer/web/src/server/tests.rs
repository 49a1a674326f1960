//! Tests of the routes, over an index and an archive in memory; `conformance` walks the same over real ones.

mod broken;
mod damaged;
mod documents;
mod framed;
mod hostile;
mod proxied;
mod revisits;
mod test_archive;
mod worker;

use std::path::{Path, PathBuf};

use test_archive::{OK, TestArchive, Warc};

const PAGE: &str = "http://example.org/page";
const FIRST: &str = "2020-01-01T00:00:00Z";
const SECOND: &str = "2021-01-01T00:00:00Z";
const THIRD: &str = "2022-01-01T00:00:00Z";

async fn three_pages() -> TestArchive {
    let warc = Warc::new()
        .warcinfo(FIRST)
        .response(PAGE, FIRST, OK, b"<p>one</p>")
        .response(PAGE, SECOND, OK, b"<p>two</p>")
        .response(PAGE, THIRD, OK, b"<p>three</p>");
    TestArchive::new().with("1-1-a.warc.gz", warc).await
}

/// Fails if raw bytes are not those of the payload, or fields of the archived server act as if they were ours.
#[tokio::test]
async fn raw_capture_is_payload_with_memento_fields() {
    let served = three_pages().await.serve().await;
    let answer = served
        .get("/all/20210101000000id_/http://example.org/page")
        .await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "<p>two</p>"));
    assert_eq!(answer.field("content-length"), Some("10"));
    assert_eq!(
        answer.field("memento-datetime"),
        Some("Fri, 01 Jan 2021 00:00:00 GMT")
    );
    assert_eq!(answer.field("x-archive-orig-x-own"), Some("x"));
    assert_eq!(answer.field("x-archive-orig-set-cookie"), Some("a=b"));
    assert_eq!(answer.field("set-cookie"), None);
    let link = answer.field("link").unwrap();
    for part in [
        "<http://example.org/page>; rel=\"original\"",
        "<http://replay.example:80/all/http://example.org/page>; rel=\"timegate\"",
        "20200101000000/http://example.org/page>; rel=\"first prev memento\"",
        "20220101000000/http://example.org/page>; rel=\"last next memento\"",
    ] {
        assert!(link.contains(part), "{part}: {link}");
    }
    let near = served.get("/all/2020id_/http://example.org/page").await;
    assert_eq!(
        near.text(),
        "<p>two</p>",
        "the end of 2020 is nearest to 2021"
    );
    assert!(
        near.field("content-location")
            .unwrap()
            .contains("20210101000000id_")
    );
}

/// Fails if a range has other bytes than it says, or the head of an answer has a body.
#[tokio::test]
async fn ranges_and_heads_are_answered() {
    let body: Vec<u8> = (0..700_000_u32).flat_map(u32::to_le_bytes).collect();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n";
    let warc = Warc::new()
        .response("http://example.org/v", FIRST, head, &body)
        .response("http://example.org/s", FIRST, OK, b"0123456789");
    let served = TestArchive::new()
        .with("a.warc.gz", warc)
        .await
        .serve()
        .await;
    let large = "/all/2020id_/http://example.org/v";
    let small = "/all/2020id_/http://example.org/s";
    let whole = served.get(large).await;
    assert!(whole.is_whole && whole.body == body);
    assert_eq!(whole.field("accept-ranges"), Some("bytes"));
    for (path, all, range, expected) in [
        (small, b"0123456789".as_slice(), "bytes=2-4", 2..5),
        (small, b"0123456789", "bytes=-3", 7..10),
        (large, &body, "bytes=0-9", 0..10),
        (large, &body, "bytes=300000-400000", 300_000..400_001),
        (large, &body, "bytes=262140-262150", 262_140..262_151),
        (large, &body, "bytes=2799999-", 2_799_999..2_800_000),
    ] {
        let answer = served.ask("GET", path, &[("Range", range)]).await;
        assert_eq!((answer.status, answer.is_whole), (206, true), "{range}");
        assert_eq!(answer.body, &all[expected], "{range}");
    }
    let beyond = served.ask("GET", small, &[("Range", "bytes=10-")]).await;
    assert_eq!(
        (beyond.status, beyond.field("content-range")),
        (416, Some("bytes */10"))
    );
    for path in [large, small] {
        let answer = served.ask("HEAD", path, &[]).await;
        assert_eq!((answer.status, answer.body.len()), (200, 0));
        assert_ne!(answer.field("content-length"), Some("0"));
    }
}

/// Fails if a client cannot walk from a `TimeGate` to its `TimeMap` and on to every Memento.
#[tokio::test]
async fn memento_walk_reaches_every_capture() {
    let served = three_pages().await.serve().await;
    let gate = "/all/http://example.org/page";
    let asked = [("Accept-Datetime", "Mon, 01 Jun 2020 00:00:00 GMT")];
    let answer = served.ask("GET", gate, &asked).await;
    assert_eq!((answer.status, answer.page().as_str()), (200, "<p>one</p>"));
    assert!(answer.field("vary").unwrap().contains("accept-datetime"));
    assert!(
        answer
            .field("content-location")
            .unwrap()
            .contains("/all/20200101000000/")
    );
    let latest = served.get(gate).await;
    assert_eq!(latest.page(), "<p>three</p>");
    let map = served
        .get("/all/timemap/link/http://example.org/page")
        .await;
    assert_eq!(map.field("content-type"), Some("application/link-format"));
    let text = map.text();
    let mut found = Vec::new();
    for line in text
        .lines()
        .filter(|line| line.contains("memento\"; datetime"))
    {
        let (_, rest) = line.split_once("replay.example:80").unwrap();
        let (path, _) = rest.split_once('>').unwrap();
        found.push(served.get(path).await.page());
    }
    assert_eq!(
        found,
        ["<p>one</p>", "<p>two</p>", "<p>three</p>"],
        "{text}"
    );
    let bad = served
        .ask("GET", gate, &[("Accept-Datetime", "yesterday")])
        .await;
    assert_eq!(bad.status, 400);
    assert!(bad.list("vary").contains("accept-datetime"));
    let none = served.get("/all/http://example.org/none").await;
    assert_eq!(none.status, 404);
    assert!(none.field("link").unwrap().contains("rel=\"timemap\""));
}

/// Fails if a `TimeGate` that is set to redirect sends the date of a Memento, or does not redirect.
#[tokio::test]
async fn time_gate_redirects_when_set() {
    let served = three_pages()
        .await
        .set("replay.timegate=redirect")
        .serve()
        .await;
    let answer = served.get("/all/http://example.org/page").await;
    assert_eq!(answer.status, 302);
    assert_eq!(
        answer.field("location"),
        Some("http://replay.example:80/all/20220101000000/http://example.org/page")
    );
    assert_eq!(answer.field("memento-datetime"), None);
}

/// Fails if any of the three dialects has no rows, or a posted query is not read.
#[tokio::test]
async fn look_ups_answer_in_three_dialects() {
    let served = three_pages().await.serve().await;
    let url = "url=http://example.org/page";
    let pywb = served.get(&format!("/all/cdx?{url}&output=json")).await;
    assert_eq!((pywb.status, pywb.text().lines().count()), (200, 3));
    assert!(
        pywb.text().contains("\"filename\": \"1-1-a.warc.gz\""),
        "{}",
        pywb.text()
    );
    let wayback = served.get(&format!("/cdx/search/cdx?{url}&limit=-1")).await;
    assert!(
        wayback
            .text()
            .starts_with("org,example)/page 20220101000000"),
        "{}",
        wayback.text()
    );
    let outback = served
        .get(&format!("/all?{url}&sort=reverse&limit=1"))
        .await;
    assert!(
        outback
            .text()
            .starts_with("org,example)/page 20220101000000"),
        "{}",
        outback.text()
    );
    let form = "application/x-www-form-urlencoded";
    let posted = served.post("/all/cdx", form, url).await;
    assert_eq!((posted.status, posted.text().lines().count()), (200, 3));
    let added = served
        .post("/all?x=y", "text/plain", "org,example)/ 2020 …")
        .await;
    assert_eq!(added.status, 415);
    let pages = served
        .get(&format!("/all/cdx?{url}&showNumPages=true"))
        .await;
    assert!(pages.text().contains("\"pages\": 1"), "{}", pages.text());
    let page = served.get(&format!("/all/cdx?{url}&page=0")).await;
    assert_eq!(page.text().lines().count(), 3);
    let beyond = served.get(&format!("/all/cdx?{url}&page=7")).await;
    assert_eq!(beyond.status, 400);
}

/// Fails if a part of the captures is counted for all of them, or a count that is not finished is not continued.
#[tokio::test]
async fn pages_are_counted_over_several_requests() {
    let served = three_pages()
        .await
        .set("replay.counted_captures=2")
        .serve()
        .await;
    let count = "/all/cdx?url=http://example.org/page&showNumPages=true";
    let first = served.get(count).await;
    assert_eq!(first.status, 503);
    assert_eq!(first.field("retry-after"), Some("1"));
    assert!(first.text().contains("2 captures"), "{}", first.text());
    for _ in 0..2 {
        let counted = served.get(count).await;
        assert_eq!(counted.status, 200);
        assert!(counted.text().contains("\"pages\": 1"));
    }
    let far = "/all/cdx?url=example.org/*&page=3";
    assert_eq!(served.get(far).await.status, 503);
    assert_eq!(served.get(far).await.status, 400, "there is no such page");
}

/// Writes rules into a directory, and makes a file with a page that is blocked but for staff, one that is excluded, and
/// one that is open.
fn ruled_pages(directory: &Path) -> (PathBuf, Warc) {
    let rules = directory.join("a.aclj");
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&rules)
        .unwrap();
    std::io::Write::write_all(
        &mut file,
        b"org,example)/page - {\"access\": \"block\"}\norg,example)/secret - {\"access\": \"exclude\"}\n\
          org,example)/page - {\"access\": \"allow\", \"user\": \"staff\"}\n",
    )
    .unwrap();
    let warc = Warc::new()
        .response(PAGE, FIRST, OK, b"blocked")
        .response("http://example.org/secret", FIRST, OK, b"excluded")
        .response("http://example.org/open", FIRST, OK, b"open");
    (rules, warc)
}

/// Fails if one rule is asked on one route and not on another.
#[tokio::test]
async fn one_rule_blocks_on_every_route() {
    let directory = tempfile::tempdir().unwrap();
    let (rules, warc) = ruled_pages(directory.path());
    let archive = TestArchive::new().with("a.warc.gz", warc).await;
    let offset = |key: &str| {
        let mut captures = archive.captures.iter();
        captures
            .find(|capture| capture.key == key)
            .unwrap()
            .offset
            .unwrap()
    };
    let page = offset("org,example)/page");
    let secret = offset("org,example)/secret");
    let open = offset("org,example)/open");
    let served = archive
        .set(format!(
            "collection=[{{ name = \"all\", rules = [\"{}\"], file_groups = [\"staff\"] }}]",
            rules.display()
        ))
        .set("access.trusted_proxies=[\"127.0.0.1\"]")
        .serve()
        .await;
    let record = |offset: u64| format!("/all/getRecord?arcFile=a.warc.gz&arcOffset={offset}");
    let raw = |name: &str| format!("/all/2020id_/http://example.org/{name}");
    let map = |name: &str| format!("/all/timemap/link/http://example.org/{name}");
    let gate = |name: &str| format!("/all/http://example.org/{name}");
    for (path, status) in [
        (raw("page"), 451),
        (map("page"), 451),
        (gate("page"), 451),
        (record(page), 451),
        (raw("secret"), 404),
        (map("secret"), 404),
        (gate("secret"), 404),
        (record(secret), 404),
        (raw("open"), 200),
        (map("open"), 200),
        (gate("open"), 200),
        (record(open), 200),
        ("/all/getFile?arcFile=a.warc.gz".to_owned(), 451),
    ] {
        let answer = served.get(&path).await;
        assert_eq!(answer.status, status, "{path}");
        // Nobody becomes staff by saying so: the proxy says it.
        let staff = served
            .ask("GET", &path, &[("X-Pywb-ACL-User", "staff")])
            .await;
        let expected = if path.contains("secret") || path == record(secret) {
            404
        } else {
            200
        };
        assert_eq!(staff.status, expected, "{path}");
    }
    let rows = served
        .get("/all/cdx?url=example.org/&matchType=host")
        .await
        .text();
    assert!(
        rows.contains("/open") && !rows.contains("/page") && !rows.contains("/secret"),
        "{rows}"
    );
    let stored = served.get(&record(open)).await;
    assert_eq!(
        &stored.body[..2],
        b"\x1f\x8b",
        "the member as it is archived"
    );
}

/// Fails if a redirect can lead a client to the live web, or a worker is given one that it would follow.
#[tokio::test]
async fn redirects_stay_in_the_archive() {
    let head = "HTTP/1.1 302 Found\r\nLocation: https://other.example/x\r\n\r\n";
    let warc = Warc::new().response("http://example.org/r", FIRST, head, b"");
    let served = TestArchive::new()
        .with("a.warc.gz", warc)
        .await
        .serve()
        .await;
    let raw = "/all/20200101000000id_/http://example.org/r";
    let answer = served.get(raw).await;
    assert_eq!((answer.status, answer.field("location")), (302, None));
    assert_eq!(
        answer.field("x-archive-orig-location"),
        Some("https://other.example/x")
    );
    let inside = served
        .get("/all/20200101000000ir_/http://example.org/r")
        .await;
    let expected = "http://replay.example:80/all/20200101000000ir_/https://other.example/x";
    assert_eq!(
        (inside.status, inside.field("location")),
        (302, Some(expected))
    );
    let worker = served.ask("GET", raw, &[("X-ServiceWorker", "1")]).await;
    assert_eq!((worker.status, worker.field("location")), (200, None));
    assert_eq!(worker.field("x-redirect-status"), Some("302"));
    assert_eq!(
        worker.field("x-orig-location"),
        Some("https://other.example/x")
    );
    assert_eq!(worker.field("x-orig-ts"), Some("20200101000000"));
}

/// Fails if a payload that is not what its digest says passes without a word.
#[tokio::test]
async fn wrong_digest_is_reported() {
    let warc = Warc::new().mismatch(PAGE, FIRST, b"not that");
    let served = TestArchive::new()
        .with("a.warc.gz", warc)
        .await
        .serve()
        .await;
    let answer = served.get("/all/2020id_/http://example.org/page").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "not that"));
    assert_eq!(answer.field("x-archive-payload-digest"), Some("mismatch"));
}

/// Fails if a capture whose file was removed looks as if the server were down, or the other way round.
#[tokio::test]
async fn missing_file_is_404_and_damaged_record_502() {
    let mut archive = three_pages().await;
    let mut lost = archive.captures[0].clone();
    lost.key = "org,example)/lost".to_owned();
    lost.file = Some("lost.warc.gz".to_owned());
    let mut odd = lost.clone();
    odd.key = "org,example)/odd".to_owned();
    odd.file = Some("odd.warc.gz".to_owned());
    odd.offset = Some(0);
    archive.captures.extend([lost, odd]);
    let cut = Warc::new().response(PAGE, FIRST, OK, b"cut").bytes();
    archive
        .store("odd.warc.gz", cut[..cut.len() - 9].to_vec())
        .await;
    let served = archive.serve().await;
    let answer = served.get("/all/2020id_/http://example.org/lost").await;
    assert_eq!(answer.status, 404);
    assert!(
        answer.text().contains("not in the archive any more"),
        "{}",
        answer.text()
    );
    assert_eq!(
        served
            .get("/all/2020id_/http://example.org/odd")
            .await
            .status,
        502
    );
}
