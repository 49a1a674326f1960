//! Hostile documents: cut, endless, nested, huge.

use std::io::{BufReader, Read, repeat};

use tools_testing::FailingReader;

use super::*;

const RICH: &str = "<!doctype html><html><head><base href='/b/'><link rel=stylesheet href=s.css>\
    <meta http-equiv=refresh content='9;url=/r'><script>var u='/js/x', r=/['/]/, t=`/t/${u}`, v=\"\\/esc\\/x\"</script>\
    <style>@import 'i.css'; a{b:url(\"u.png\")}</style></head><body onload=\"go('/on/load')\">\
    <img src=i.png srcset='i1.png 1x, i2.png 2x'><noscript><img src=n.png></noscript><a href='/a?x=1&amp;y=\u{e5}'>\
    <script type=application/json>{\"k\":\"https://b.dk/j\"}</script><svg><use xlink:href=v.svg#i /></svg></body></html>";

const FEED: &str = "<?xml version='1.0'?><?xml-stylesheet href='/s.xsl'?><rss><item><link>/1</link>\
    <enclosure url='/e.mp3'/><description>&lt;img src='/d.png'&gt;</description><guid>http://a.dk/g</guid></item></rss>";

/// Fails if a document that is cut panics, or gives a link that the whole one has not.
#[test]
fn every_prefix_gives_first_links() {
    let style =
        "@import 'a.css'; a{b:url(b.png);c:image-set('d.png' 1x)} /* x */ e{f:url('g\\'.png')}";
    let pdf = "%PDF-1 1 0 obj<</URI(http://a.dk/1)>>endobj 2 0 obj<</URI<687474703A2F2F612E646B2F32>>>endobj";
    for (media, body) in [
        ("text/html; charset=utf-8", RICH),
        ("text/xml", FEED),
        ("text/css", style),
        ("application/pdf", pdf),
        (
            "text/javascript",
            "a='/one/x'+`/two/${b}`;/* c */d=/[/]'/;e=\"/three\\/x\"",
        ),
    ] {
        let whole = links_of(media, body.as_bytes());
        assert!(whole.len() > 1, "{media}: {whole:?}");
        for end in 0..body.len() {
            let found = links_of(media, &body.as_bytes()[..end]);
            assert!(whole.starts_with(&found), "{media} {end}: {found:?}");
        }
    }
}

/// Fails if links depend on how the reader cuts the bytes.
#[test]
fn pieces_of_any_size_give_same_links() {
    for (media, body) in [("text/html; charset=utf-8", RICH), ("text/xml", FEED)] {
        let whole = links_of(media, body.as_bytes());
        for size in 1..40 {
            let url = Url::parse("http://a.dk/d/p.html").unwrap();
            let head = head_of(media);
            let document = FetchedDocument {
                head: Some(&head),
                ..FetchedDocument::new(&url)
            };
            // The first bytes are looked at together; these keep the others behind them.
            let far = format!("{}{body}", " ".repeat(17 << 10));
            let skipped = if media == "text/xml" {
                body.to_owned()
            } else {
                far
            };
            let input = BufReader::with_capacity(size, skipped.as_bytes());
            let found = extract_links(&document, input, &ExtractionLimits::default()).links;
            assert_eq!(
                found.iter().map(shown).collect::<Vec<_>>(),
                whole,
                "{media} {size}"
            );
        }
    }
}

/// Fails if a byte anywhere makes a parser panic.
#[test]
fn flipped_bytes_do_not_panic() {
    for (media, body) in [
        ("text/html", RICH),
        ("text/xml", FEED),
        ("text/css", RICH),
        ("application/json", RICH),
        ("application/pdf", RICH),
    ] {
        for at in 0..body.len() {
            for byte in [0, b'<', b'\'', b'\\', b'&', b'/', 0xff] {
                let mut bytes = body.as_bytes().to_vec();
                bytes[at] = byte;
                assert!(links_of(media, &bytes).len() <= 64);
            }
        }
    }
}

/// Returns the extraction of a piece that is repeated to a number of mebibytes, behind a beginning.
fn repeated(media: &str, beginning: &str, piece: &str, mebibytes: usize) -> Extraction {
    let count = (mebibytes << 20) / piece.len();
    let body = format!("{beginning}{}", piece.repeat(count));
    extraction_of(media, body.as_bytes())
}

/// Fails if time grows with the square of a document: the machine is then busy for minutes.
#[test]
fn nested_and_unended_pieces_take_linear_time() {
    for (media, beginning, piece) in [
        ("text/html", "<html><a href=x>", "<div>"),
        ("text/html", "<html><a href=x>", "<a></b>"),
        ("text/html", "<html><a href=x>", "<noscript>"),
        ("text/html", "<html><a href=x><b>", "<i></b><b>"),
        ("text/html", "<html><a href=x>", "<svg>"),
        ("text/html", "<html><a href=x><p ", "a=b "),
        ("text/html", "<html><a href=x>", "<!--"),
        ("text/html", "<html><a href=x>", "<script>"),
        ("text/html", "<html><a href=x>", "\0"),
        ("text/html", "<html><a href=x><img srcset='", "a,,"),
        ("text/html", "<html><a href=x><a href='", "&"),
        ("text/html", "<html><a href=x>", "<a href='&amp;"),
        ("text/xml", "<r><loc>/x</loc>", "<a>"),
        ("text/xml", "<r><loc>/x</loc>", "<a b='c' "),
        ("text/xml", "<r><loc>/x</loc>", "&amp;"),
        ("text/xml", "<r><loc>/x</loc>", "<![CDATA["),
        ("text/css", "a{b:url(x)}", "url("),
        ("text/css", "a{b:url(x)}", "/*"),
        ("text/css", "a{b:url(x)}", "(\\"),
        ("text/css", "a{b:url(x)}", "url(a'b)"),
        ("text/javascript", "'/x/y'", "=/["),
        ("text/javascript", "'/x/y'", "`${"),
        ("text/javascript", "'/x/y'", "/*"),
        ("text/javascript", "'/x/y'", "a /"),
        ("text/javascript", "'/x/y'", "\\u"),
        ("application/json", "[\"/x/y\"", "["),
        ("application/pdf", "%PDF-/URI(http://b.dk/)", "/URI("),
        (
            "application/pdf",
            "%PDF-/URI(http://b.dk/)",
            "obj/ObjStm/FlateDecode stream\n",
        ),
        ("text/html", "<html><a href=x>", "<meta charset"),
    ] {
        let extraction = repeated(media, beginning, piece, 2);
        assert!(!extraction.links.is_empty(), "{media} {piece}");
    }
}

/// Fails if a tag, script or text that is larger than memory may be is held, or what came before it is lost.
#[test]
fn huge_parts_end_document_early() {
    for (media, beginning, piece) in [
        ("text/html", "<html><a href=x><img src='", "x"),
        ("text/html", "<html><a href=x><script>'", "x"),
        ("text/html", "<html><a href=x>", "<div>"),
        ("text/xml", "<r><loc>/x</loc><a b='", "x"),
        ("text/xml", "<r><loc>/x</loc>", "x"),
        ("text/css", "a{b:url(x)}", "x"),
    ] {
        let extraction = repeated(media, beginning, piece, 20);
        assert_eq!(extraction.links.len(), 1, "{media} {piece}");
        let ending = extraction.annotations.last().map(String::as_str);
        assert_eq!(ending, Some("extractTrunc:memory"), "{media} {piece}");
    }
}

/// Fails if an endless document is read for longer than the limit, or the crawl log does not say that it was cut.
#[test]
fn endless_document_ends_at_limit() {
    let url = Url::parse("http://a.dk/").unwrap();
    let limits = ExtractionLimits {
        bytes: 1 << 20,
        ..ExtractionLimits::default()
    };
    let body = (&b"<html><a href=x>"[..]).chain(repeat(b' '));
    let extraction = extract_links(&FetchedDocument::new(&url), BufReader::new(body), &limits);
    assert_eq!(extraction.links.len(), 1);
    assert_eq!(extraction.annotations, ["extractTrunc:length"]);
}

/// Fails if the links before damage are lost, or the damage is not told.
#[test]
fn failing_body_keeps_links_before_failure() {
    let url = Url::parse("http://a.dk/").unwrap();
    let body = BufReader::new(FailingReader::new(b"<html><a href=x>", "damaged"));
    let extraction = extract_links(
        &FetchedDocument::new(&url),
        body,
        &ExtractionLimits::default(),
    );
    assert_eq!(extraction.links.len(), 1);
    assert_eq!(extraction.annotations, ["extractTrunc:body"]);
}

/// Fails if URLs that no server takes are links, or are left out without a word.
#[test]
fn too_long_urls_are_left_out() {
    let page = |length| format!("<html><a href='/{}'>", "x".repeat(length));
    assert_eq!(links_of("text/html", page(2000).as_bytes()).len(), 1);
    for length in [2100, 9000] {
        let extraction = extraction_of("text/html", page(length).as_bytes());
        assert_eq!(extraction.links.len(), 0);
        assert!(
            extraction.annotations.contains(&"longUris:1".to_owned()),
            "{extraction:?}"
        );
    }
}
