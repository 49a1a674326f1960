//! Links and text of pages: elements, encodings, bombs.

use std::fmt::Write as _;
use std::io::Read as _;

use super::*;

fn page_of(media: &str, body: &[u8]) -> Vec<u8> {
    let answer = answer(media, body);
    gzip(&[(
        WarcType::Response,
        "http://example.org/dir/page?q=1",
        HTTP,
        &answer,
    )])
}

fn links(body: &str) -> Vec<String> {
    let bytes = page_of("text/html; charset=utf-8", body.as_bytes());
    let all = text("extract-links", &[], &[("a.warc.gz", &bytes)]);
    let from = "http://example.org/dir/page?q=1\t";
    all.lines()
        .map(|line| line.strip_prefix(from).unwrap().replace('\t', " "))
        .collect()
}

/// Fails if a link is resolved against the wrong base, one in a `srcset` or a refresh is not found, or text in a script
/// or comment counts as a link.
#[test]
fn links_are_absolute_and_say_where_they_stand() {
    for (body, expected) in [
        ("<a href=x>", &["http://example.org/dir/x a@href"][..]),
        (
            "<A HREF='/x?a=1&amp;b=2#c'>",
            &["http://example.org/x?a=1&b=2#c a@href"],
        ),
        ("<a href=' \n//other.org/ '>", &["http://other.org/ a@href"]),
        ("<a href=''><a><a href>", &[]),
        (
            "<a href='javascript:x()'><img src='data:image/png;base64,AA'>",
            &[],
        ),
        ("<a href='mailto:a@b.org'>", &["mailto:a@b.org a@href"]),
        (
            "<a href='http://[bad/'><a href=y>",
            &["http://example.org/dir/y a@href"],
        ),
        ("<!-- <a href=x> --><script>'<a href=y>'</script>", &[]),
        (
            "<script src=s.js></script><link href=l.css><iframe src=f></iframe>",
            &[
                "http://example.org/dir/s.js script@src",
                "http://example.org/dir/l.css link@href",
                "http://example.org/dir/f iframe@src",
            ],
        ),
        (
            "<img src=i srcset='a.png 1x, b,c.png 2x,d.png'>",
            &[
                "http://example.org/dir/i img@src",
                "http://example.org/dir/a.png img@srcset",
                "http://example.org/dir/b,c.png img@srcset",
                "http://example.org/dir/d.png img@srcset",
            ],
        ),
        (
            "<a href=early><base href=/base/><base href=/not/><a href=late>",
            &[
                "http://example.org/base/early a@href",
                "http://example.org/base/late a@href",
            ],
        ),
        (
            "<meta http-equiv=Refresh content='5; URL=\"next\"'><meta name=x content='1;url=no'>",
            &["http://example.org/dir/next meta@content"],
        ),
        (
            "<td background=b.gif>",
            &["http://example.org/dir/b.gif *@background"],
        ),
        (
            "<a href='a\tb\nc d'>",
            &["http://example.org/dir/abc%20d a@href"],
        ),
        ("<a href=æ>", &["http://example.org/dir/%C3%A6 a@href"]),
    ] {
        assert_eq!(links(body), expected, "{body}");
    }
}

/// Fails if the query of a link is encoded as UTF-8 on a page of another encoding: browsers would ask for another URL.
#[test]
fn queries_are_in_the_encoding_of_the_page() {
    let bytes = page_of("text/html; charset=iso-8859-1", b"<a href='\xe6?q=\xe6'>");
    let all = text("extract-links", &[], &[("a.warc.gz", &bytes)]);
    assert!(all.contains("/dir/%C3%A6?q=%E6\t"), "{all}");
}

fn of_page(media: &str, body: &[u8]) -> serde_json::Value {
    let bytes = page_of(media, body);
    let all = text("extract-text", &[], &[("a.warc.gz", &bytes)]);
    assert_eq!(all.lines().count(), 1, "{all}");
    serde_json::from_str(&all).unwrap()
}

/// Fails if scripts, styles or comments become text, words of two blocks run together, or a tag within a word splits
/// it.
#[test]
fn text_is_what_a_reader_sees() {
    for (body, title, expected) in [
        (
            "<title> A \n title </title><p>One<p>Two",
            "A title",
            "One\nTwo",
        ),
        (
            "<h1>A</h1>b <b>c</b>d<br>e &amp; f&nbsp;g",
            "",
            "A\nb cd\ne & f g",
        ),
        (
            "a<script>no</script><style>no</style>b<template>no</template>",
            "",
            "ab",
        ),
        ("a<script><!-- '</div>' </script>b", "", "ab"),
        ("a<!-- no -->b<noscript>yes</noscript>", "", "abyes"),
        ("<table><tr><td>1<td>2<tr><td>3</table>", "", "1 2\n3"),
        ("a<script>never closed", "", "a"),
        ("a<object>no<object>no</object>no</object>b", "", "a\nb"),
        (
            "<svg><title>first</title></svg><title>second</title>x",
            "first",
            "x",
        ),
        ("<textarea>typed</textarea><iframe>no</iframe>", "", "typed"),
        ("", "", ""),
    ] {
        let document = of_page("text/html", body.as_bytes());
        assert_eq!(document["title"], title, "{body}");
        assert_eq!(document["text"], expected, "{body}");
        assert_eq!(document["url"], "http://example.org/dir/page?q=1");
        assert_eq!(document["timestamp"], "20261121191409");
        assert_eq!(document["mime"], "text/html");
    }
    let document = of_page("text/plain", b"<b> as it\nis");
    assert_eq!(document["text"], "<b> as it\nis");
}

/// Fails if a page without a usable `charset` is decoded wrongly, or the header counts for more than a byte order mark.
#[test]
fn encodings_are_found_out() {
    let utf16: Vec<u8> = "\u{feff}<p>æ"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for (media, body) in [
        ("text/html; charset=iso-8859-1", &b"<p>\xe6"[..]),
        ("text/html; charset=\"UTF-8\"", b"<p>\xc3\xa6"),
        ("text/html", b"<meta charset=windows-1252><p>\xe6"),
        (
            "text/html",
            b"<meta http-equiv=content-type content='text/html; charset=iso-8859-1'><p>\xe6",
        ),
        (
            "application/xhtml+xml",
            b"<?xml version='1.0' encoding='iso-8859-1'?><p>\xe6",
        ),
        ("text/html", b"<meta charset=utf-16><p>\xc3\xa6"),
        ("text/html", b"<p>\xc3\xa6"),
        ("text/html", b"<p>\xe6"),
        ("text/html; charset=nonsense", b"<p>\xe6"),
        ("text/html; charset=iso-8859-1", b"\xef\xbb\xbf<p>\xc3\xa6"),
        ("text/html; charset=utf-8", &utf16),
    ] {
        assert_eq!(of_page(media, body)["text"], "æ", "{media} {body:?}");
    }
}

/// Fails if an error page, a file that is not declared as a page, or a record that is no HTTP response is read as a
/// page.
#[test]
fn only_pages_that_went_well_are_read() {
    let records = [
        (
            WarcType::Response,
            "http://a/",
            HTTP,
            &b"HTTP/1.1 404 No\r\nContent-Type: text/html\r\n\r\n<a href=x>"[..],
        ),
        (
            WarcType::Response,
            "http://a/",
            HTTP,
            b"HTTP/1.1 200 OK\r\nContent-Type: text/css\r\n\r\n<a href=x>",
        ),
        (
            WarcType::Response,
            "http://a/",
            HTTP,
            b"HTTP/1.1 200 OK\r\n\r\n<a href=x>",
        ),
        (WarcType::Resource, "http://a/", "text/html", b"<a href=x>"),
        (WarcType::Response, "dns:a", "text/html", b"<a href=x>"),
    ];
    let bytes = gzip(&records);
    for job in ["extract-links", "extract-text"] {
        assert_eq!(text(job, &[], &[("a.warc.gz", &bytes)]), "");
    }
}

fn gzipped(bytes: &mut dyn std::io::Read) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = flate2::read::GzEncoder::new(bytes, flate2::Compression::new(6));
    encoder.read_to_end(&mut out).unwrap();
    out
}

fn coded(codings: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{codings}\r\n");
    let block = [head.as_bytes(), body].concat();
    gzip(&[(WarcType::Response, "http://example.org/", HTTP, &block)])
}

/// Fails if a chunked and compressed body is read undecoded, what was decoded of a cut one is lost, or a cut or unknown
/// encoding goes unreported.
#[test]
fn bodies_are_decoded_or_failure_is_reported() {
    let zipped = gzipped(&mut &b"<a href=x>y</a>"[..]);
    let mut chunked = format!("{:x}\r\n", zipped.len()).into_bytes();
    chunked.extend_from_slice(&zipped);
    chunked.extend_from_slice(b"\r\n0\r\n\r\n");
    let whole = coded(
        "Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n",
        &chunked,
    );
    assert_eq!(
        text("extract-links", &[], &[("a", &whole)]),
        "http://example.org/\thttp://example.org/x\ta@href\n"
    );
    // Cut: what could be had is there, and the failure reports the rest.
    let cut = coded("Content-Encoding: gzip\r\n", &zipped[..zipped.len() - 8]);
    let (result, failures) = run("extract-text", &[], &[("a", &cut)]);
    assert!(String::from_utf8(result).unwrap().contains("\"y\""));
    assert!(failures[0].reason.contains("cut"), "{failures:?}");
    assert_eq!(
        (failures[0].kind, failures[0].offset),
        (FailureKind::Job, Some(0))
    );
    let unknown = coded("Content-Encoding: sdch\r\n", b"<a href=x>");
    let (result, failures) = run("extract-links", &[], &[("a", &unknown)]);
    assert!(result.is_empty());
    assert!(failures[0].reason.contains("sdch"), "{failures:?}");
}

/// Fails if a large page, or a small one that decompresses to a large one, is read beyond 16 MiB, or cut there without
/// a word.
#[test]
fn large_page_and_bomb_stop_at_limit() {
    let mut large = b"<p>".to_vec();
    large.resize(17 << 20, b'x');
    let plain = coded("", &large);
    let (result, failures) = run("extract-text", &[], &[("a", &plain)]);
    assert!(result.len() > 16 << 20 && result.len() < 17 << 20);
    assert!(failures[0].reason.contains("16 MiB"), "{failures:?}");
    let bomb = gzipped(&mut std::io::repeat(b' ').take(64 << 20));
    let bomb = coded("Content-Encoding: gzip\r\n", &bomb);
    let (result, failures) = run("extract-text", &[], &[("a", &bomb)]);
    assert!(result.len() < 1000);
    assert_eq!(failures.len(), 1);
}

/// Fails if a long base makes 64 MiB and more of the links of a small page, or links that are cut or too long go
/// unreported.
#[test]
fn a_page_that_multiplies_its_links_is_stopped() {
    let mut body = format!("<base href='http://example.org/{}/'>", "y".repeat(8000));
    for _ in 0..20_000 {
        write!(body, "<a href=a>").unwrap();
    }
    let bytes = page_of("text/html", body.as_bytes());
    let (result, failures) = run("extract-links", &[], &[("a", &bytes)]);
    assert!(result.len() <= 64 << 20, "{}", result.len());
    assert!(failures[0].reason.contains("64 MiB"), "{failures:?}");
    let body = format!("<a href='{}'><a href=x>", "y".repeat(20_000));
    let bytes = page_of("text/html", body.as_bytes());
    let (result, failures) = run("extract-links", &[], &[("a", &bytes)]);
    assert_eq!(String::from_utf8(result).unwrap().lines().count(), 1);
    assert!(
        failures[0].reason.starts_with("1 links are longer"),
        "{failures:?}"
    );
}

/// Fails if a page of one unfinished construct, repeated, makes a job panic, fail, read on without an end, or write
/// more than the page has.
#[test]
fn pages_made_to_be_slow_still_end() {
    for piece in [
        "<",
        "<a ",
        "<a x",
        "&",
        "&am",
        "<!--",
        "<![CDATA[",
        "</",
        "<svg>",
        "<a b=\"",
        "<p>",
        "\u{e6} ",
    ] {
        let body = piece.repeat(300_000 / piece.len());
        let bytes = page_of("text/html", body.as_bytes());
        for job in ["extract-links", "extract-text"] {
            let (result, failures) = run(job, &[], &[("a", &bytes)]);
            assert_eq!(failures, [], "{job} {piece:?}");
            // Around the text of a page stand the names of its file, its address and its record.
            let most = body.len() + 500;
            assert!(result.len() <= most, "{job} {piece:?}: {}", result.len());
        }
    }
}
