//! Heads of responses, and files of PDF.

use std::io::Write as _;

use archive_formats::http;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use super::*;

/// Fails if a field of the head is not read, or has the wrong hop.
#[test]
fn head_fields_lead_on() {
    for (fields, expected) in [
        ("Location: /x y", "R /x%20y"),
        ("location: http://b.dk/\u{e5}", "R http://b.dk/%C3%A5"),
        ("Content-Location: /c", "I /c"),
        ("Refresh: 3; url=/r", "R /r"),
        (
            "Link: </s.css>; rel=\"preload stylesheet\", </n>; title=\"a, b\"; rel=next",
            "E /s.css, L /n",
        ),
        ("Link: <https://b.dk>; rel=preconnect", ""),
        ("Link: </a>, </b", "L /a"),
        ("Link: </a\r\nX: </b>", ""),
    ] {
        let url = Url::parse("http://a.dk/d/p.html").unwrap();
        let head = format!("HTTP/1.1 302 Found\r\n{fields}\r\n\r\n");
        let head = Head::read_head(&mut head.as_bytes(), 1 << 16).unwrap();
        let document = FetchedDocument {
            head: Some(&head),
            ..FetchedDocument::new(&url)
        };
        let found = extract_links(&document, &b""[..], &ExtractionLimits::default()).links;
        let found: Vec<String> = found.iter().map(shown).collect();
        assert_eq!(found.join(", "), expected, "{fields}");
    }
}

/// Fails if a body that is still encoded is read as if it were not, or the crawl log does not say so.
#[test]
fn unknown_content_encoding_is_annotated() {
    let url = Url::parse("http://a.dk/").unwrap();
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip, x, y\r\nLocation: /l\r\n\r\n";
    let head = Head::read_head(&mut &head[..], 1 << 16).unwrap();
    let document = FetchedDocument {
        head: Some(&head),
        ..FetchedDocument::new(&url)
    };
    let extraction = extract_links(&document, &b"<a href=x>"[..], &ExtractionLimits::default());
    assert_eq!(extraction.links.len(), 1);
    assert_eq!(extraction.annotations, ["unsatisfiableContentEncoding:x"]);
}

/// Fails if the body of a stored response, chunked and packed, cannot be given as it is decoded.
#[test]
fn decoded_body_of_response_is_read() {
    let page = b"<!doctype html><a href=x>".repeat(1000);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&page).unwrap();
    let packed = encoder.finish().unwrap();
    let url = Url::parse("http://a.dk/").unwrap();
    let head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n";
    let head = Head::read_head(&mut &head[..], 1 << 16).unwrap();
    let document = FetchedDocument {
        head: Some(&head),
        ..FetchedDocument::new(&url)
    };
    let chunks = |bytes: &[u8]| {
        let size = format!("{:x}\r\n", bytes.len());
        [size.as_bytes(), bytes, b"\r\n0\r\n\r\n"].concat()
    };
    for (bytes, expected) in [
        (chunks(&packed), vec![]),
        (
            chunks(&packed[..packed.len() - 9]),
            vec!["extractTrunc:body"],
        ),
        (packed[..20].to_vec(), vec!["extractTrunc:body"]),
    ] {
        let body = http::Body::decoded_body(&head, bytes.as_slice(), http::DecodeLimits::default());
        let extraction = extract_links(
            &document,
            BufReader::new(body),
            &ExtractionLimits::default(),
        );
        assert_eq!(extraction.annotations, expected);
        assert_eq!(extraction.links.len(), usize::from(bytes.len() > 20));
    }
}

fn pdf(objects: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(objects).unwrap();
    let packed = encoder.finish().unwrap();
    [
        b"%PDF-1.5\n1 0 obj << /S /URI /URI (http://a.dk/1\\)\\(\\101 (x)) >> endobj\n\
          2 0 obj << /URI <687474703A2F2F612E646B2F32> >> endobj\n3 0 obj << /URI (mailto:x@a.dk) /URI (www.b.dk/x) >> endobj\n\
          4 0 obj << /Type /ObjStm /Filter /FlateDecode /N 1 >>\nstream\r\n",
        packed.as_slice(),
        b"\nendstream endobj\n5 0 obj << /URI (http://a.dk/cut",
    ]
    .concat()
}

/// Fails if links of plain or compressed objects are lost, or strings that are no URLs become links.
#[test]
fn pdf_gives_links_of_its_actions() {
    let body = pdf(b"1 0 <</A<</S/URI/URI(https://b.dk/packed)>>>>");
    let expected = [
        "L /1)(A%20(x)",
        "L /2",
        "L http://www.b.dk/x",
        "L https://b.dk/packed",
    ];
    assert_eq!(links_of("application/pdf", &body), expected);
    assert_eq!(links_of("text/html", &body), expected);
}

/// Fails if a stream of a PDF inflates without a limit.
#[test]
fn pdf_stream_inflates_up_to_limit() {
    let url = Url::parse("http://a.dk/f.pdf").unwrap();
    let mut objects = b"/URI(http://a.dk/first)".to_vec();
    objects.resize(1 << 20, b' ');
    let body = pdf(&objects);
    let limits = ExtractionLimits {
        bytes: 32 << 10,
        ..ExtractionLimits::default()
    };
    let extraction = extract_links(&FetchedDocument::new(&url), body.as_slice(), &limits);
    assert_eq!(
        extraction.links.last().map(|link| link.url.as_str()),
        Some("http://a.dk/first")
    );
    assert_eq!(extraction.annotations, ["extractTrunc:length"]);
}

/// Fails if a playlist is kept and what it plays is not.
#[test]
fn playlists_lead_to_what_they_play() {
    let hls = "#EXTM3U\r\n#EXT-X-MEDIA:TYPE=AUDIO,NAME=\"x\",URI=\"da.m3u8\"\r\n\
               #EXT-X-KEY:METHOD=AES-128,URI=\"key.bin\"\r\n#EXT-X-MAP:URI=\"init.mp4\"\r\n\
               # URI=\"no\"\r\n#EXTINF:6.0,\r\nseg.ts?t=2\r\n\r\n360/index.m3u8";
    let links = [
        "E /d/da.m3u8",
        "E /d/key.bin",
        "E /d/init.mp4",
        "E /d/seg.ts?t=2",
        "E /d/360/index.m3u8",
    ];
    for media in [
        "application/vnd.apple.mpegurl",
        "audio/x-mpegURL",
        "text/plain",
    ] {
        check(media, hls, &links);
    }
    check("audio/mpegurl", "/radio.mp3\n", &["E /radio.mp3"]);
    let dash = "<?xml version='1.0'?><MPD><BaseURL>v.mp4</BaseURL><SegmentList>\
                <Initialization sourceURL='i.mp4'/><SegmentURL media='s1.m4s'/></SegmentList></MPD>";
    check(
        "application/dash+xml",
        dash,
        &["E /d/v.mp4", "E /d/i.mp4", "E /d/s1.m4s"],
    );
}
