//! Tests of raw answers.

use std::io::{BufRead, Read};

use archive_formats::digest::{Algorithm, Digest, digest_bytes};
use archive_formats::http::{PayloadCheck, PayloadReading, check_payload};
use archive_formats::warc::{Header, WarcType};

use super::*;

mod samples;

const LIMIT: usize = 1 << 20;

fn head(text: impl AsRef<[u8]>) -> Head {
    Head::read_head(&mut text.as_ref(), LIMIT).unwrap()
}

fn options(redirects: Redirects<'_>) -> ReplyOptions<'_> {
    ReplyOptions {
        url: "http://a.dk/x/y?z",
        time: "20200102030405".parse().unwrap(),
        media: None,
        redirects,
        is_decoded: false,
    }
}

fn reply(text: impl AsRef<[u8]>) -> ReplyHead {
    ReplyHead::new(Some(&head(text)), &options(Redirects::Reported))
}

fn text<'a>(reply: &'a ReplyHead, name: &str) -> Option<&'a str> {
    reply.get(name).map(|value| str::from_utf8(value).unwrap())
}

/// Fails if a field of the archived server acts in the browser, or one that says what the bytes are does not.
#[test]
fn archived_fields_do_not_act() {
    let stored = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=iso-8859-1\r\nContent-Encoding: gzip\r\n\
        Content-Language: da\r\nContent-Disposition: inline\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\
        Content-Length: 7\r\nContent-Security-Policy: default-src 'none'\r\nStrict-Transport-Security: max-age=1\r\n\
        X-Frame-Options: DENY\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nLink: <http://b.dk/>; rel=preconnect\r\n\
        Refresh: 0; url=http://b.dk/\r\nWWW-Authenticate: Basic\r\nAccess-Control-Allow-Origin: *\r\nAlt-Svc: h3\r\n\
        Service-Worker-Allowed: /\r\nMemento-Datetime: x\r\nx-orig-location: y\r\nClear-Site-Data: *\r\n\
        Content-Type: text/plain\r\n\r\n";
    let reply = reply(stored);
    assert_eq!(reply.status, 200);
    let acting: Vec<&str> = reply
        .fields
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| !name.starts_with("X-Archive-Orig-"))
        .collect();
    assert_eq!(
        acting,
        [
            "Content-Type",
            "Content-Encoding",
            "Content-Language",
            "Content-Disposition"
        ]
    );
    assert_eq!(
        text(&reply, "content-type"),
        Some("text/html; charset=iso-8859-1")
    );
    assert_eq!(text(&reply, "X-Archive-Orig-Memento-Datetime"), Some("x"));
    assert_eq!(
        text(&reply, "X-Archive-Orig-Content-Type"),
        Some("text/plain")
    );
    let cookies = reply
        .fields
        .iter()
        .filter(|(name, _)| name == "X-Archive-Orig-Set-Cookie");
    assert_eq!(cookies.count(), 2);
    let decoded = ReplyOptions {
        is_decoded: true,
        ..options(Redirects::Reported)
    };
    let reply = ReplyHead::new(Some(&head(stored)), &decoded);
    assert_eq!(reply.get("Content-Encoding"), None);
    assert_eq!(
        text(&reply, "X-Archive-Orig-Content-Encoding"),
        Some("gzip")
    );
}

/// Fails if bytes of an archived head can end a line of the answer, or too many of them are kept.
#[test]
fn heads_cannot_inject_fields() {
    let mut stored =
        b"HTTP/1.1 200 O\rK\r\nContent-Type: text/html\rSet-Cookie: a\x00b\r\n".to_vec();
    stored.extend_from_slice(
        b"A: one\r\n two\r\n\tthree\r\nB: \xe6\xf8 \xc3\xa6\r\nbad name: x\r\n\xff: y\r\n@: z\r\n",
    );
    stored.extend_from_slice(format!("Long: {}\r\n", "x".repeat(5000)).as_bytes());
    for at in 0..200 {
        stored.extend_from_slice(format!("Many-{at}: {}\r\n", "y".repeat(200)).as_bytes());
    }
    stored.extend_from_slice(b"\r\n");
    let reply = reply(&stored);
    for (name, value) in &reply.fields {
        assert!(is_token(name.as_bytes()), "{name}");
        assert!(
            value.iter().all(|byte| *byte >= 0x20 && *byte != 0x7f),
            "{name}"
        );
    }
    assert_eq!(
        text(&reply, "Content-Type"),
        Some("text/html Set-Cookie: a b")
    );
    assert_eq!(text(&reply, "X-Archive-Orig-A"), Some("one two three"));
    assert_eq!(
        reply.get("X-Archive-Orig-B"),
        Some(&b"\xe6\xf8 \xc3\xa6"[..])
    );
    let bytes: usize = reply
        .fields
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    assert!(bytes < 20_000, "{bytes}");
    let omitted: usize = text(&reply, "X-Archive-Omitted-Fields")
        .unwrap()
        .parse()
        .unwrap();
    let told = reply
        .fields
        .iter()
        .filter(|(name, _)| name.starts_with(TOLD))
        .count();
    // Of 207 fields one is passed on.
    assert_eq!(told + omitted, 206);
}

/// Fails if a status is another one than was archived, without need.
#[test]
fn statuses_are_kept_where_possible() {
    for (line, status) in [
        ("HTTP/1.1 200 OK", 200),
        ("HTTP/1.0 404", 404),
        ("HTTP/1.1 451 x", 451),
        ("HTTP/1.1 999 Denied", 999),
        ("HTTP/1.1 100 Continue", 200),
        ("HTTP/1.1 000", 200),
        ("HTTP/1.1 OK", 200),
        ("ICY 200 OK", 200),
    ] {
        assert_eq!(reply(format!("{line}\r\n\r\n")).status, status, "{line}");
    }
    let without = ReplyOptions {
        media: Some(b"text/dns"),
        ..options(Redirects::Reported)
    };
    let reply = ReplyHead::new(None, &without);
    assert_eq!(
        (reply.status, text(&reply, "Content-Type")),
        (200, Some("text/dns"))
    );
}

/// Fails if a redirect leads out of the archive, in any style, or a worker cannot see where it went.
#[test]
fn redirects_stay_in_the_archive() {
    let addresses = Addresses::new("http://127.0.0.1:8091", "all");
    let in_archive = Redirects::InArchive {
        addresses: &addresses,
        modifier: Some(Modifier::IdentityRedirect),
    };
    let base = "http://127.0.0.1:8091/all/20200102030405ir_/";
    for (location, expected) in [
        ("http://b.dk/", Some("http://b.dk/")),
        ("//b.dk/c#d", Some("http://b.dk/c")),
        ("/c?d", Some("http://a.dk/c?d")),
        ("c", Some("http://a.dk/x/c")),
        ("\u{e6} \"<x>", Some("http://a.dk/x/%C3%A6%20%22%3Cx%3E")),
        ("javascript:alert(1)", None),
        ("data:text/html,x", None),
        ("http://", None),
        ("", None),
    ] {
        let stored = head(format!(
            "HTTP/1.1 302 Found it\r\nLocation: {location}\r\n\r\n"
        ));
        let found = ReplyHead::new(Some(&stored), &options(in_archive));
        let expected = expected.map(|url| format!("{base}{url}"));
        assert_eq!(
            (found.status, text(&found, "Location")),
            (302, expected.as_deref()),
            "{location}"
        );
        let told = ReplyHead::new(Some(&stored), &options(Redirects::Reported));
        assert_eq!((told.status, told.get("Location")), (302, None));
        let worker = ReplyHead::new(Some(&stored), &options(Redirects::ToWorker));
        assert_eq!(worker.get("Location"), None);
        assert_eq!(text(&worker, "x-orig-ts"), Some("20200102030405"));
        if location.is_empty() {
            assert_eq!(
                (worker.status, worker.get("x-redirect-status")),
                (302, None)
            );
        } else {
            assert_eq!(
                (worker.status, text(&worker, "x-redirect-status")),
                (200, Some("302"))
            );
            assert_eq!(text(&worker, "x-redirect-statusText"), Some("Found it"));
            assert_eq!(text(&worker, "x-orig-location"), Some(location));
        }
    }
    let latin = head(b"HTTP/1.1 301 M\r\nLocation: /bl\xe5\r\n\r\n");
    let found = ReplyHead::new(Some(&latin), &options(in_archive));
    assert_eq!(
        text(&found, "Location"),
        Some(&*format!("{base}http://a.dk/bl%E5"))
    );
    let with_body = head("HTTP/1.1 200 OK\r\nLocation: http://b.dk/\r\n\r\n");
    let found = ReplyHead::new(Some(&with_body), &options(in_archive));
    assert_eq!(found.get("Location"), None);
}

/// Fails if a range has wrong ends, or one that cannot be answered is not refused.
#[test]
fn ranges_have_right_ends() {
    let ask = |method, range: &str, length| {
        let ranges = [range.as_bytes()];
        let ranges = if range.is_empty() { &[][..] } else { &ranges };
        let (reply, extent) = reply("HTTP/1.1 200 OK\r\n\r\n").with_extent(method, ranges, length);
        let field = |name| text(&reply, name).unwrap_or("-").to_owned();
        (
            format!(
                "{} {} {}",
                reply.status,
                field("Content-Range"),
                field("Content-Length")
            ),
            (extent.skip, extent.take),
        )
    };
    for (range, expected, extent) in [
        ("", "200 - 10", (0, Some(10))),
        ("bytes=0-0", "206 bytes 0-0/10 1", (0, Some(1))),
        ("bytes=2-5", "206 bytes 2-5/10 4", (2, Some(4))),
        ("Bytes = 7-", "206 bytes 7-9/10 3", (7, Some(3))),
        (
            "bytes=7-99999999999999999999999",
            "206 bytes 7-9/10 3",
            (7, Some(3)),
        ),
        ("bytes=-3", "206 bytes 7-9/10 3", (7, Some(3))),
        ("bytes=-99", "206 bytes 0-9/10 10", (0, Some(10))),
        ("bytes=10-", "416 bytes */10 0", (0, Some(0))),
        (
            "bytes=99999999999999999999-",
            "416 bytes */10 0",
            (0, Some(0)),
        ),
        ("bytes=-0", "416 bytes */10 0", (0, Some(0))),
        ("bytes=5-2", "200 - 10", (0, Some(10))),
        ("bytes=0-1,3-4", "200 - 10", (0, Some(10))),
        ("bytes=-", "200 - 10", (0, Some(10))),
        ("bytes=a-b", "200 - 10", (0, Some(10))),
        ("lines=1-2", "200 - 10", (0, Some(10))),
        ("bytes", "200 - 10", (0, Some(10))),
    ] {
        assert_eq!(
            ask(ReplyMethod::Get, range, Some(10)),
            (expected.to_owned(), extent),
            "{range}"
        );
        assert_eq!(
            ask(ReplyMethod::Head, range, Some(10)),
            ("200 - 10".to_owned(), (0, Some(0))),
            "{range}"
        );
    }
    assert_eq!(
        ask(ReplyMethod::Get, "bytes=0-", Some(0)).0,
        "416 bytes */0 0"
    );
    assert_eq!(
        ask(ReplyMethod::Get, "bytes=-1", Some(0)).0,
        "416 bytes */0 0"
    );
    assert_eq!(
        ask(ReplyMethod::Get, "bytes=0-1", None),
        ("200 - -".to_owned(), (0, None))
    );
    let (found, extent) =
        reply("HTTP/1.1 404 x\r\n\r\n").with_extent(ReplyMethod::Get, &[b"bytes=0-1"], Some(10));
    assert_eq!((found.status, extent.take), (404, Some(10)));
    let (found, extent) =
        reply("HTTP/1.1 204 x\r\n\r\n").with_extent(ReplyMethod::Get, &[], Some(10));
    assert_eq!((found.get("Content-Length"), extent.take), (None, Some(0)));
    assert!(!extent.is_whole(Some(10)));
}

fn message(kind: WarcType, media: &str, block: &mut impl BufRead) -> StoredMessage {
    let header = Header::parse(format!("WARC/1.1\r\nContent-Type: {media}\r\n\r\n").as_bytes());
    StoredMessage::read_message(kind, &header, block, LIMIT).unwrap()
}

/// Fails if the payload of a record is cut, framed, or taken for a head.
#[test]
fn payloads_are_found_in_all_records() {
    let http = "application/http; msgtype=response";
    for (kind, media, block, expected, length) in [
        (
            WarcType::Response,
            http,
            &b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody"[..],
            &b"body"[..],
            Some(4),
        ),
        (
            WarcType::Response,
            http,
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n",
            b"body",
            None,
        ),
        (
            WarcType::Response,
            http,
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nbody",
            b"body",
            None,
        ),
        (
            WarcType::Response,
            http,
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b",
            b"\x1f\x8b",
            Some(2),
        ),
        (
            WarcType::Response,
            http,
            b"<html>no head\nat all",
            b"<html>no head\nat all",
            Some(20),
        ),
        (
            WarcType::Response,
            "text/dns",
            b"HTTP/1.1 200 OK",
            b"HTTP/1.1 200 OK",
            Some(15),
        ),
        (
            WarcType::Resource,
            "text/html",
            b"HTTP/1.1 200 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n\r\n",
            Some(19),
        ),
        (
            WarcType::Revisit,
            http,
            b"HTTP/1.1 304 Not\r\n\r\n",
            b"",
            Some(0),
        ),
        (WarcType::Response, http, b"", b"", Some(0)),
    ] {
        let mut input = block;
        let message = message(kind, media, &mut input);
        assert_eq!(
            message.entity_length(block.len() as u64),
            length,
            "{block:?}"
        );
        let mut entity = Vec::new();
        message.entity_body(input).read_to_end(&mut entity).unwrap();
        assert_eq!(entity, expected);
        let measured = measure_entity(&mut message.entity_body(input)).unwrap();
        assert_eq!(
            (measured.length, measured.damage),
            (expected.len() as u64, None)
        );
    }
    let mut input =
        &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\nff\r\ndy"[..];
    let cut = message(WarcType::Response, http, &mut input);
    let measured = measure_entity(&mut cut.entity_body(input)).unwrap();
    assert_eq!(measured.length, 4);
    assert!(measured.damage.is_some());
}

/// Fails if the audit of bytes that are sent says another thing than a second look at the record.
#[test]
fn audit_agrees_with_second_look() {
    let chunks = &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\nTrailer: x\r\n\r\n"[..];
    let cut = &chunks[..chunks.len() - 20];
    let plain = &b"HTTP/1.1 200 OK\r\n\r\nbody"[..];
    let bare = &b"no head"[..];
    let not_chunked = &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nbody"[..];
    let mut readings = Vec::new();
    for block in [chunks, cut, plain, bare, not_chunked] {
        let body = block
            .windows(4)
            .position(|w| w == b"\r\n\r\n")
            .map_or(block, |at| &block[at + 4..]);
        for hashed in [&b"body"[..], body, b"something else"] {
            for algorithm in [Algorithm::Sha1, Algorithm::Sha256] {
                let digest = Digest::from(digest_bytes(algorithm, hashed));
                let expected = check_payload(&mut &*block, &digest, LIMIT).unwrap();
                for size in [1, 3, 1000] {
                    let mut input = block;
                    let message = message(WarcType::Response, "application/http", &mut input);
                    let mut audited = AuditedBody::new(&message, input, Some(digest.clone()));
                    // Some of the bytes are sent, the rest is read by the audit.
                    let mut some = vec![0; size];
                    let _sent = audited.read(&mut some).unwrap();
                    let audit = audited.finish().unwrap();
                    assert_eq!(
                        audit.verdict,
                        Some(expected.clone()),
                        "{block:?} {hashed:?}"
                    );
                    assert_eq!(audit.damage.is_some(), block == cut);
                }
                if let PayloadCheck::Matches(reading) = expected {
                    readings.push(reading);
                }
            }
        }
    }
    assert!(readings.contains(&PayloadReading::Only));
    assert!(readings.contains(&PayloadReading::Stored));
    assert!(readings.contains(&PayloadReading::Entity));
    let mut input = plain;
    let message = message(WarcType::Response, "application/http", &mut input);
    let unknown: Digest = "crc32:00".parse().unwrap();
    let audit = AuditedBody::new(&message, input, Some(unknown))
        .finish()
        .unwrap();
    assert!(matches!(audit.verdict, Some(PayloadCheck::CannotCheck(_))));
    assert_eq!(
        AuditedBody::new(&message, input, None)
            .finish()
            .unwrap()
            .verdict,
        None
    );
}
