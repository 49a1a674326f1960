//! Charsets.

use encoding_rs::{SHIFT_JIS, WINDOWS_1251};

use super::*;

fn annotations_of(media: &str, body: &[u8]) -> (String, Vec<String>) {
    let extraction = extraction_of(media, body);
    (
        extraction.charset.unwrap_or_default(),
        extraction.annotations,
    )
}

/// Fails if a weaker witness of the charset is believed before a stronger one, or the crawl log is told wrong.
#[test]
fn witnesses_are_believed_in_order() {
    for (media, body, charset, annotations) in [
        (
            "text/html; charset=latin1",
            "\u{feff}<meta charset=koi8-r>",
            "UTF-8",
            &["inconsistentCharsetInHTML:KOI8-R"][..],
        ),
        (
            "text/html; charset=latin1",
            "<meta charset=windows-1252>",
            "windows-1252",
            &["usingCharsetInHeader:windows-1252"],
        ),
        (
            "text/html; charset=utf-8",
            "<meta charset=koi8-r>",
            "UTF-8",
            &[
                "usingCharsetInHeader:UTF-8",
                "inconsistentCharsetInHTML:KOI8-R",
            ],
        ),
        (
            "text/html; charset=b,o g\"u$s",
            "<meta charset=koi8-r>",
            "KOI8-R",
            &[
                "unsatisfiableCharsetInHeader:b",
                "usingCharsetInHTML:KOI8-R",
            ],
        ),
        (
            "text/html",
            "<META http-equiv=Content-Type content='text/html; charset=KOI8-R'>",
            "KOI8-R",
            &["usingCharsetInHTML:KOI8-R"],
        ),
        (
            "text/html",
            "<!-- <meta charset=koi8-r> --><meta name=x><meta charset='utf-16'>",
            "UTF-8",
            &["usingCharsetInHTML:UTF-8"],
        ),
        (
            "text/html",
            "<meta charset=klingon>",
            "UTF-8",
            &["unsatisfiableCharsetInHTML:klingon"],
        ),
        ("text/html", "<p>plain", "UTF-8", &[]),
        ("text/html", "<p>bl\u{e5}", "UTF-8", &[]),
        (
            "text/xml",
            "<?xml version='1.0' encoding='iso-8859-15'?><x/>",
            "ISO-8859-15",
            &["usingCharsetInXML:ISO-8859-15"],
        ),
        (
            "text/css",
            "@charset \"koi8-r\"; a{}",
            "KOI8-R",
            &["usingCharsetInCSS:KOI8-R"],
        ),
        (
            "text/html; charset=replacement",
            "<p>",
            "UTF-8",
            &["unsatisfiableCharsetInHeader:replacement"],
        ),
    ] {
        let (found, told) = annotations_of(media, body.as_bytes());
        assert_eq!(
            (found.as_str(), told.as_slice()),
            (
                charset,
                annotations
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .as_slice()
            ),
            "{body}"
        );
    }
}

/// Fails if the charset of a page without a witness is not guessed, or a declaration far into the page counts.
#[test]
fn detector_guesses_undeclared_charset() {
    let text = "<html><p>Съешь же ещё этих мягких французских булок, да выпей чаю<a href=x>";
    let (bytes, _, _) = WINDOWS_1251.encode(text);
    assert_eq!(annotations_of("text/html", &bytes).0, "windows-1251");
    let far = format!("{}<meta charset=koi8-r>", " ".repeat(1100));
    assert_eq!(annotations_of("text/html", far.as_bytes()).0, "UTF-8");
}

/// Fails if paths and queries of a page in an old charset are not escaped as browsers do: paths in UTF-8, queries as
/// the page.
#[test]
fn queries_are_escaped_in_page_charset() {
    let (bytes, _, _) = SHIFT_JIS.encode("<meta charset=shift_jis><a href='/日?q=日&amp;r=å'>");
    let expected = ["L /%E6%97%A5?q=%93%FA&r=%26%23229%3B"];
    assert_eq!(links_of("text/html", &bytes), expected);
    let latin = b"<meta charset=iso-8859-1><a href='/?q=\xe5'>";
    assert_eq!(links_of("text/html", latin), ["L /?q=%E5"]);
    let utf8 = "<meta charset=utf-8><a href='/?q=å'>";
    assert_eq!(links_of("text/html", utf8.as_bytes()), ["L /?q=%C3%A5"]);
}

/// Fails if UTF-16, whose bytes are no ASCII, is not read.
#[test]
fn utf16_is_read_by_its_mark() {
    for little in [true, false] {
        let body: Vec<u8> = "\u{feff}<html><a href='/å'>"
            .encode_utf16()
            .flat_map(|unit| {
                if little {
                    unit.to_le_bytes()
                } else {
                    unit.to_be_bytes()
                }
            })
            .collect();
        assert_eq!(links_of("text/html", &body), ["L /%C3%A5"]);
    }
    let body: Vec<u8> = "<a href='/x'>"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(links_of("text/html; charset=utf-16le", &body), ["L /x"]);
}

/// Fails if a page without a declaration is read as UTF-8 because its first letter that is not in ASCII stands late, or a
/// part of it is read twice or lost.
#[test]
fn late_letters_tell_the_charset() {
    for (letters, expected) in [
        (b"/bl\xe5b\xe6r".as_slice(), "http://a.dk/bl%C3%A5b%C3%A6r"),
        ("/blåbær".as_bytes(), "http://a.dk/bl%C3%A5b%C3%A6r"),
    ] {
        let mut body = b"<p>text</p> ".repeat(10_000);
        body.extend_from_slice(b"<a href=/first>x</a>");
        body.extend(b"<p>text</p> ".repeat(3_000));
        body.extend([b"<a href='".as_slice(), letters, b"'>x</a>"].concat());
        let extraction = extraction_of("text/html", &body);
        let urls: Vec<&str> = extraction
            .links
            .iter()
            .map(|link| link.url.as_str())
            .collect();
        assert_eq!(urls, ["http://a.dk/first", expected]);
    }
}
