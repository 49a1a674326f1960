//! Documents that are encoded, cut, huge, or not what their digest says.

use super::test_archive::{OK, TestArchive, Warc};
use super::{FIRST, PAGE};

const OF_WORKER: (&str, &str) = ("X-Replay-Worker", "iframe");

fn typed(fields: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    // One member of stored blocks: no compressor is needed to be one.
    let mut member = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut blocks = bytes.chunks(65_535).peekable();
    while let Some(block) = blocks.next() {
        let length = u16::try_from(block.len()).unwrap();
        member.push(u8::from(blocks.peek().is_none()));
        member.extend(length.to_le_bytes());
        member.extend((!length).to_le_bytes());
        member.extend(block);
    }
    let sum = bytes.iter().fold(!0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 & (!(sum & 1)).wrapping_add(1))
        })
    });
    member.extend((!sum).to_le_bytes());
    member.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
    member
}

/// The part of a page that is expected where the capture has no bytes.
const EMPTY: &str = "";

/// A name, the fields of the head, the stored body, what is shown of it, and what the banner says of it.
type DamagedCase = (
    &'static str,
    String,
    Vec<u8>,
    &'static str,
    Option<&'static str>,
);

/// Fails if an encoded page is rewritten as if it were plain, or a cut, a fault or an encoding that stays is not said.
#[tokio::test]
async fn encoded_and_damaged_pages_are_shown_with_words() {
    let page = b"<p>hello</p>";
    let member = gzip(page);
    let chunked = b"5\r\n<p>he\r\n7\r\nllo</p>\r\n0\r\n\r\n";
    let both = [
        format!("{:x}\r\n", member.len()).as_bytes(),
        &member,
        b"\r\n0\r\n\r\n",
    ]
    .concat();
    let deep = gzip(&gzip(&gzip(&gzip(&gzip(page)))));
    let html = "Content-Type: text/html\r\n";
    let cases: [DamagedCase; 9] = [
        (
            "gzip",
            format!("{html}Content-Encoding: gzip"),
            member.clone(),
            "<p>hello</p>",
            None,
        ),
        (
            "chunked",
            format!("{html}Transfer-Encoding: chunked"),
            chunked.to_vec(),
            "<p>hello</p>",
            None,
        ),
        (
            "both",
            format!("{html}Content-Encoding: x-gzip\r\nTransfer-Encoding: chunked"),
            both,
            "<p>hello</p>",
            None,
        ),
        (
            "cut",
            format!("{html}Content-Encoding: gzip"),
            member[..20].to_vec(),
            "<p>he",
            Some("This page is not whole"),
        ),
        (
            "cutchunks",
            format!("{html}Transfer-Encoding: chunked"),
            chunked[..12].to_vec(),
            "<p>he",
            Some("This page is not whole"),
        ),
        (
            "plainly",
            format!("{html}Content-Encoding: gzip"),
            page.to_vec(),
            "<p>hello</p>",
            None,
        ),
        (
            "deep",
            format!("{html}Content-Encoding: gzip, gzip, gzip, gzip, gzip"),
            deep,
            "<p>hello</p>",
            Some("their encoding is gzip."),
        ),
        (
            "zero",
            format!("{html}Content-Encoding: br"),
            Vec::new(),
            EMPTY,
            None,
        ),
        (
            "unknown",
            format!("{html}Content-Encoding: x-<b>"),
            page.to_vec(),
            "<p>hello</p>",
            Some("their encoding is x-&lt;b&gt;."),
        ),
    ];
    let mut warc = Warc::new();
    for (name, fields, body, ..) in &cases {
        warc = warc.response(
            &format!("http://example.org/{name}"),
            FIRST,
            &typed(fields),
            body,
        );
    }
    let served = TestArchive::new()
        .with("a.warc.gz", warc)
        .await
        .serve()
        .await;
    for (name, _, _, expected, words) in &cases {
        for (modifier, fields) in [("", &[][..]), ("mp_", &[OF_WORKER][..])] {
            let path = format!("/all/2020{modifier}/http://example.org/{name}");
            let answer = served.ask("GET", &path, fields).await;
            assert_eq!((answer.status, answer.is_whole), (200, true), "{path}");
            let text = answer.text();
            assert_eq!(text.contains("<p>"), *expected != EMPTY, "{path}: {text}");
            assert!(text.contains(expected), "{path}: {text}");
            assert_eq!(answer.field("content-encoding"), None, "{path}");
            let is_said = text.contains("role=\"alert\"");
            assert_eq!(is_said, words.is_some(), "{path}: {text}");
            assert!(
                words.is_none_or(|words| text.contains(words)),
                "{path}: {text}"
            );
        }
    }
}

/// Fails if a style sheet that is cut or encoded is sent as if it were whole and plain.
#[tokio::test]
async fn broken_style_sheets_are_refused() {
    let member = gzip(b"p{color:red}");
    let cut = member[..20].to_vec();
    let cases = [
        ("whole", "Content-Encoding: gzip", member, 200),
        ("cut", "Content-Encoding: gzip", cut, 502),
        ("unknown", "Content-Encoding: x-own", b"p{}".to_vec(), 502),
        (
            "cutchunks",
            "Transfer-Encoding: chunked",
            b"9\r\np{}".to_vec(),
            502,
        ),
    ];
    let mut warc = Warc::new();
    for (name, field, body, _) in &cases {
        let url = format!("http://example.org/{name}");
        let head = typed(&format!("Content-Type: text/css\r\n{field}"));
        warc = warc.response(&url, FIRST, &head, body);
    }
    let served = TestArchive::new()
        .with("a.warc.gz", warc)
        .await
        .serve()
        .await;
    for (name, _, _, status) in &cases {
        let path = format!("/all/2020cs_/http://example.org/{name}");
        let answer = served.get(&path).await;
        assert_eq!(answer.status, *status, "{path}: {}", answer.text());
        let is_sent = answer.text().contains("p{");
        assert_eq!(is_sent, *status == 200, "{path}: {}", answer.text());
    }
}

/// Fails if a payload that is not what its digest says passes in any of the ways of replay without a word, or is not
/// listed.
#[tokio::test]
async fn wrong_digest_is_reported_and_listed() {
    let long = vec![b'x'; 400_000];
    let warc = Warc::new()
        .mismatch(PAGE, FIRST, b"<p>not that</p>")
        .mismatch("http://example.org/long", FIRST, &long)
        .response("http://example.org/good", FIRST, OK, b"<p>good</p>");
    let served = TestArchive::new()
        .with("a.warc.gz", warc)
        .await
        .serve()
        .await;
    assert_eq!(served.get("/all/mismatches").await.text(), "");
    for (modifier, fields) in [("", &[][..]), ("mp_", &[OF_WORKER][..]), ("id_", &[][..])] {
        for (name, is_wrong) in [("page", true), ("long", true), ("good", false)] {
            let path = format!("/all/2020{modifier}/http://example.org/{name}");
            let answer = served.ask("GET", &path, fields).await;
            let is_said = answer.text().contains("do not have the digest")
                || answer.field("x-archive-payload-digest") == Some("mismatch");
            // Of a long body the head is sent before the end is known.
            let is_late = name == "long" && modifier == "id_";
            assert_eq!(is_said, is_wrong && !is_late, "{path}");
        }
    }
    let list = served.get("/all/mismatches").await.text();
    assert_eq!(list.lines().count(), 2, "{list}");
    assert!(
        list.contains("\"url\":\"http://example.org/long\""),
        "{list}"
    );
    assert!(list.contains("\"filename\":\"a.warc.gz\""), "{list}");
}

/// Fails if a page grows without a limit, or a long one is not whole.
#[tokio::test]
async fn long_pages_pass_in_pieces() {
    let mut body = Vec::new();
    for at in 0..60_000 {
        body.extend(format!("<a href='/{at}'>x</a>").bytes());
    }
    let tag = [b"<p a='".as_slice(), &vec![b'x'; 5 << 20], b"'>after"].concat();
    let warc = Warc::new().response(PAGE, FIRST, OK, &body).response(
        "http://example.org/tag",
        FIRST,
        OK,
        &tag,
    );
    let served = TestArchive::new()
        .with("a.warc.gz", warc)
        .await
        .serve()
        .await;
    for (modifier, fields) in [("", &[][..]), ("mp_", &[OF_WORKER][..])] {
        let path = format!("/all/20200101000000{modifier}/http://example.org/page");
        let answer = served.ask("GET", &path, fields).await;
        assert!(answer.is_whole);
        let link = format!("href=\"/all/20200101000000{modifier}/http://example.org/59999\"");
        assert!(answer.text().contains(&link));
        let path = format!("/all/20200101000000{modifier}/http://example.org/tag");
        let answer = served.ask("GET", &path, fields).await;
        assert!(answer.is_whole && !answer.text().contains("after"));
        assert!(answer.text().contains("This page is not whole"), "{path}");
    }
}

/// Fails if a long page whose record is cut in the archive, or whose chunks are, passes for whole.
#[tokio::test]
async fn long_page_that_is_cut_is_never_whole() {
    let body = b"<p>0123456789</p>".repeat(100_000);
    let chunk = [format!("{:x}\r\n", body.len() * 2).as_bytes(), &body].concat();
    let chunked = typed("Content-Type: text/html\r\nTransfer-Encoding: chunked");
    let whole = Warc::new().response(PAGE, FIRST, OK, &body);
    let cut = Warc::new().response("http://example.org/cut", FIRST, &chunked, &chunk);
    let mut archive = TestArchive::new().with("chunked.warc.gz", cut).await;
    let bytes = whole.bytes();
    let mut capture = archive.captures[0].clone();
    capture.key = "org,example)/page".to_owned();
    capture.original = Some(PAGE.to_owned());
    capture.file = Some("cut.warc.gz".to_owned());
    capture.length = None;
    archive.captures.push(capture);
    archive
        .store("cut.warc.gz", bytes[..bytes.len() / 2].to_vec())
        .await;
    let served = archive.serve().await;
    for (modifier, fields) in [("", &[][..]), ("mp_", &[OF_WORKER][..]), ("id_", &[][..])] {
        for name in ["page", "cut"] {
            let path = format!("/all/2020{modifier}/http://example.org/{name}");
            let answer = served.ask("GET", &path, fields).await;
            assert_eq!((answer.status, answer.is_whole), (200, false), "{path}");
            assert!(answer.text().contains("<p>0123456789</p>"), "{path}");
        }
    }
    assert_eq!(served.get("/all/mismatches").await.text(), "");
}
