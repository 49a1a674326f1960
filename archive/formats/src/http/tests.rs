//! Messages as servers send them, and as disks and attackers damage them.

use std::io::{Cursor, Read};

use super::*;
use crate::digest::{Algorithm, Digest, digest_bytes};

mod body;
mod bombs;

fn head(bytes: &[u8]) -> Head {
    Head::read_head(&mut Cursor::new(bytes), 1 << 16).unwrap()
}

fn status(bytes: &[u8]) -> (Option<u16>, String) {
    match head(bytes).start() {
        Start::Status { code, reason, .. } => (*code, String::from_utf8_lossy(reason).into_owned()),
        other @ (Start::Request { .. } | Start::Missing) => panic!("{other:?}"),
    }
}

/// Fails if an unusual status line loses its code, or a number of two or four digits passes for a code.
#[test]
fn status_lines_of_any_shape() {
    let check = |line: &str, code, reason: &str| {
        assert_eq!(status(line.as_bytes()), (code, reason.to_owned()), "{line}");
    };
    check("HTTP/1.1 200 OK\r\n\r\n", Some(200), "OK");
    check("HTTP/1.1 200\r\n\r\n", Some(200), "");
    check("HTTP/1.0  404   Not  Found \n\n", Some(404), "Not  Found");
    check("http/1.1 301 Moved\r\n\r\n", Some(301), "Moved");
    check("ICY 200 OK\r\n\r\n", Some(200), "OK");
    check("HTTP/2 204\r\n\r\n", Some(204), "");
    check("HTTP/1.1 200OK\r\n\r\n", Some(200), "OK");
    check("HTTP/1.1 20 OK\r\n\r\n", None, "20 OK");
    check("HTTP/1.1 2000 OK\r\n\r\n", None, "2000 OK");
    check("HTTP/1.1\r\n\r\n", None, "");
    check(
        "HTTP/1.1 200 \u{e9}t\u{e9}\r\n\r\n",
        Some(200),
        "\u{e9}t\u{e9}",
    );
}

/// Fails if a blank in the target of a request shifts the version, or a request without a version is refused.
#[test]
fn request_lines_of_any_shape() {
    let check = |line: &str, method: &str, target: &str, version: &str| match head(line.as_bytes())
        .start()
    {
        Start::Request {
            method: m,
            target: t,
            version: v,
        } => {
            assert_eq!(
                (m.as_slice(), t.as_slice(), v.as_slice()),
                (method.as_bytes(), target.as_bytes(), version.as_bytes())
            );
        }
        other @ (Start::Status { .. } | Start::Missing) => panic!("{other:?}"),
    };
    check("GET / HTTP/1.1\r\n\r\n", "GET", "/", "HTTP/1.1");
    check("GET /a b?c HTTP/1.0\n\n", "GET", "/a b?c", "HTTP/1.0");
    check("GET /\r\n\r\n", "GET", "/", "");
    check("M-SEARCH * HTTP/1.1\r\n\r\n", "M-SEARCH", "*", "HTTP/1.1");
    check(
        "POST http://a/ HTTP/ HTTP/1.1\r\n\r\n",
        "POST",
        "http://a/ HTTP/",
        "HTTP/1.1",
    );
}

/// Fails if a repeated or folded field of an HTTP head is lost, or an oddity is not noted at its offset.
#[test]
fn fields_are_found_and_oddities_are_noted() {
    let bytes = b"HTTP/1.1 200 OK\r\nA: 1\nb : 2\r\nno field\r\n: x\r\nA:3\r\n folded\r\n\tmore\r\nC:\xe9\r\n\r\nbody";
    let mut input = Cursor::new(&bytes[..]);
    let head = Head::read_head(&mut input, 1000).unwrap();
    assert_eq!(head.raw(), &bytes[..bytes.len() - 4]);
    assert_eq!(input.position(), bytes.len() as u64 - 4);
    assert_eq!(
        head.all_values("a").collect::<Vec<_>>(),
        [&b"1"[..], b"3 folded more"]
    );
    assert_eq!(head.get("B"), Some(&b"2"[..]));
    assert_eq!(head.get("c"), Some(&b"\xe9"[..]));
    let at = |needle: &[u8]| memchr::memmem::find(bytes, needle).unwrap();
    assert_eq!(
        head.notes(),
        [
            HeadNote::BareLf { at: at(b"A: 1") },
            HeadNote::BlankInName { at: at(b"b :") },
            HeadNote::NoField { at: at(b"no f") },
            HeadNote::Folded { at: at(b" folded") },
            HeadNote::NotAscii { at: at(b"\xe9") },
        ]
    );
}

/// Fails if the first lines of a block without an HTTP head are left out of its body.
#[test]
fn without_a_head_all_is_body() {
    for bytes in [
        &b"<html>\r\n\r\nHTTP/1.1 200 OK"[..],
        b"",
        b"\r\n",
        b"\x89PNG",
        b"Get lost",
    ] {
        let mut input = Cursor::new(bytes);
        let head = Head::read_head(&mut input, 10).unwrap();
        assert_eq!((head.start(), head.raw()), (&Start::Missing, &b""[..]));
        let mut body = Vec::new();
        Body::decoded_body(&head, input, DecodeLimits::default())
            .read_to_end(&mut body)
            .unwrap();
        assert_eq!(body, bytes);
    }
}

/// Fails if a head of any length is held in memory, or a head that ends with the block is refused.
#[test]
fn head_has_limit_and_may_lack_end() {
    let long = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "x".repeat(1000));
    for limit in [10, 100, long.len() - 1] {
        assert!(
            matches!(
                Head::read_head(&mut Cursor::new(&long), limit),
                Err(HeadError::TooLarge { .. })
            ),
            "{limit}"
        );
    }
    assert!(
        Head::read_head(&mut Cursor::new(&long), long.len())
            .unwrap()
            .notes()
            .is_empty()
    );
    let cut = head(b"HTTP/1.1 200 OK\r\nA: b");
    assert_eq!(
        (cut.get("a"), cut.notes()),
        (Some(&b"b"[..]), &[HeadNote::NoEmptyLine][..])
    );
    assert_eq!(
        head(b"HTTP/1.1 200 OK\r\nA: b\r\n").notes(),
        [HeadNote::NoEmptyLine]
    );
}

/// Fails if a `charset` within a quoted value is believed, or a media type in capitals or without a semicolon loses its
/// own.
#[test]
fn media_types_as_servers_write_them() {
    let check = |value: &str, essence: &str, charset: Option<&str>| {
        let media = MediaType::read_media(value.as_bytes()).unwrap();
        assert_eq!(
            (media.essence.as_str(), media.charset.as_deref()),
            (essence, charset),
            "{value}"
        );
    };
    check("text/html", "text/html", None);
    check(" Text/HTML ; Charset=UTF-8 ", "text/html", Some("UTF-8"));
    check(
        "text/html;charset=\"iso-8859-1\";x=y",
        "text/html",
        Some("iso-8859-1"),
    );
    check(
        "text/html; a=\"b;charset=c\"; charset='d'",
        "text/html",
        Some("d"),
    );
    check("text/html charset=utf-8", "text/html", Some("utf-8"));
    check("text/html, text/plain", "text/html", None);
    check("text/html; charset=; charset", "text/html", None);
    check("html", "html", None);
    check("text/html; charset=\"x\\\"y", "text/html", Some("x\"y"));
    for nothing in ["", " ", ";charset=x", ",", "\"\""] {
        assert_eq!(MediaType::read_media(nothing.as_bytes()), None, "{nothing}");
    }
    assert_eq!(
        MediaType::read_parameter(b"multipart/mixed; Boundary=\"a b\"", "boundary").as_deref(),
        Some("a b")
    );
}

fn verdict(block: &[u8], digest: &str) -> PayloadCheck {
    check_payload(
        &mut Cursor::new(block),
        &digest.parse::<Digest>().unwrap(),
        1 << 16,
    )
    .unwrap()
}

/// Fails if a payload digest is called wrong although it is that of the chunked or of the unchunked body, or a wrong
/// one passes.
#[test]
fn payload_digests_in_both_readings() {
    let plain = b"HTTP/1.1 200 OK\r\n\r\nabc";
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    for algorithm in Algorithm::ALL {
        let entity = digest_bytes(algorithm, b"abc").to_string();
        let stored = digest_bytes(algorithm, b"3\r\nabc\r\n0\r\n\r\n").to_string();
        let wrong = digest_bytes(algorithm, b"abd").to_string();
        assert_eq!(
            verdict(plain, &entity),
            PayloadCheck::Matches(PayloadReading::Only)
        );
        assert_eq!(
            verdict(chunked, &entity),
            PayloadCheck::Matches(PayloadReading::Entity)
        );
        assert_eq!(
            verdict(chunked, &stored),
            PayloadCheck::Matches(PayloadReading::Stored)
        );
        assert!(matches!(
            verdict(chunked, &wrong),
            PayloadCheck::Differs {
                entity: Some(_),
                ..
            }
        ));
        assert!(matches!(
            verdict(plain, &wrong),
            PayloadCheck::Differs { entity: None, .. }
        ));
        // A body with cut chunks has one reading left.
        let cut = &chunked[..chunked.len() - 6];
        let stored = digest_bytes(algorithm, b"3\r\nabc\r").to_string();
        assert_eq!(
            verdict(cut, &stored),
            PayloadCheck::Matches(PayloadReading::Only)
        );
        assert!(matches!(
            verdict(cut, &entity),
            PayloadCheck::Differs { entity: None, .. }
        ));
    }
    let unchunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n<html>";
    let html = digest_bytes(Algorithm::Sha1, b"<html>").to_string();
    assert_eq!(
        verdict(unchunked, &html),
        PayloadCheck::Matches(PayloadReading::Only)
    );
    assert_eq!(
        verdict(plain, "crc:1"),
        PayloadCheck::CannotCheck(UncheckedReason::Algorithm)
    );
    let sha1: Digest = digest_bytes(Algorithm::Sha1, b"abc").into();
    assert_eq!(
        check_payload(&mut Cursor::new(plain), &sha1, 5).unwrap(),
        PayloadCheck::CannotCheck(UncheckedReason::Head)
    );
    let headless = digest_bytes(Algorithm::Sha1, b"<html>\n\n").to_string();
    assert_eq!(
        verdict(b"<html>\n\n", &headless),
        PayloadCheck::Matches(PayloadReading::Only)
    );
}
