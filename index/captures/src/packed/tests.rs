//! Captures go into bytes and come back as they were.

use archive_formats::surt::UrlKey;

use super::*;
use crate::moment::Moment;

fn packed(capture: &Capture, position: Position) -> (Place, PackedCapture) {
    let place = Place {
        key: capture.key.clone(),
        time: Moment::from_stamp(capture.timestamp),
        file: 7,
        position,
    };
    let packed = pack_capture(&place, capture);
    (place, packed)
}

#[track_caller]
fn check(capture: &Capture) -> usize {
    let position = match capture.offset {
        Some(offset) => Position::Offset(offset),
        None => Position::Line(3),
    };
    for position in [position, Position::Line(u64::MAX)] {
        let (place, packed) = packed(capture, position);
        let file = capture.file.as_deref();
        assert_eq!(unpack_capture(&place, &packed, file).as_ref(), Ok(capture));
    }
    packed(capture, position).1.0.len()
}

fn capture(url: &str) -> Capture {
    let key = UrlKey::parse(url).to_string();
    let mut capture = Capture::new(key, "20200101000000".parse().unwrap());
    capture.original = Some(url.to_owned());
    capture
}

fn full() -> Capture {
    Capture {
        mime: Some("text/html".into()),
        status: Some(200),
        digest: Some("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ".into()),
        redirect: Some("http://ø/".into()),
        robots: Some("AFI".into()),
        length: Some(u64::MAX),
        offset: Some(123_456_789),
        file: Some("a.warc.gz".into()),
        original_record: Some(OriginalRecord {
            length: Some(1),
            offset: Some(0),
            file: Some(String::new()),
        }),
        extra: vec![("x".into(), "y".into()), (String::new(), "\0".into())],
        ..capture("http://www.a.dk/b?c=1")
    }
}

fn drop<T>(field: &mut Option<T>, is_out: bool) {
    if is_out {
        *field = None;
    }
}

/// Fails if a field is lost or changed, in any combination of fields.
#[test]
fn every_combination_of_fields_comes_back() {
    for bits in 0..1_u32 << 14 {
        let mut capture = full();
        let is_out = |bit: u32| bits >> bit & 1 == 0;
        drop(&mut capture.original, is_out(0));
        drop(&mut capture.mime, is_out(1));
        drop(&mut capture.status, is_out(2));
        drop(&mut capture.digest, is_out(3));
        drop(&mut capture.redirect, is_out(4));
        drop(&mut capture.robots, is_out(5));
        drop(&mut capture.length, is_out(6));
        drop(&mut capture.offset, is_out(7));
        drop(&mut capture.file, is_out(8));
        drop(&mut capture.original_record, is_out(9));
        if let Some(record) = &mut capture.original_record {
            drop(&mut record.length, is_out(10));
            drop(&mut record.offset, is_out(11));
            drop(&mut record.file, is_out(12));
        }
        if is_out(13) {
            capture.extra.clear();
        }
        check(&capture);
    }
}

/// Fails if a URL, a media type or a digest comes back in another spelling.
#[test]
fn every_spelling_comes_back() {
    for url in [
        "http://a.dk/",
        "http://a.dk",
        "https://www.a.dk/b/",
        "http://www.a.dk/B/c?D=1&a=2#f",
        "http://www2.a.dk/",
        "HTTP://A.dk/",
        "http://a.dk:8080/x/",
        "http://www.a.dk:8080",
        "http://127.0.0.1:80/x",
        "http://[::1]/x",
        "http://user@a.dk/",
        "http://a.dk/)x,y)",
        "dns:a.dk",
        "urn:x",
        "",
        "ø",
        "http://",
        "http://)",
        "http://ø.dk/æ",
        "ftp://a.dk/b",
        "https://a.dk//",
        "http://www.www.dk/",
        "http://www.dk/",
        "https://https://a.dk/",
    ] {
        check(&capture(url));
        // A key that is not that of the URL, as a change of rules leaves it until the row is written again.
        for key in ["dk,a)/", "-", "x", ")", ",)/", "dk,a:81)", "dk,a"] {
            let mut foreign = capture(url);
            foreign.key = key.to_owned();
            check(&foreign);
        }
    }
    for media in ["text/html", "no-type", "TEXT/HTML", "", "x/y", "image/avif"] {
        let mut capture = capture("http://a.dk/");
        capture.mime = Some(media.to_owned());
        check(&capture);
    }
    let base32 = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ";
    let hex = "0123456789abcdef".repeat(4);
    let labels = ["", "sha1:", "SHA1:", "sha-1:", "sha256:", "md5:", "blake3:"];
    for label in labels {
        for value in [base32, &base32.to_lowercase(), "", "-", &hex, "3i4="] {
            for length in [16, 20, 32, 40, 64, 128] {
                let value: String = value.chars().take(length).collect();
                let mut capture = capture("http://a.dk/");
                capture.digest = Some(format!("{label}{value}"));
                check(&capture);
            }
        }
    }
}

/// Fails if an ordinary capture takes more bytes than its digest, its length and a few marks.
#[test]
fn ordinary_capture_is_small() {
    let mut ordinary = full();
    ordinary.redirect = None;
    ordinary.robots = None;
    ordinary.length = Some(50_000);
    ordinary.original_record = None;
    ordinary.extra.clear();
    let (_, packed) = packed(&ordinary, Position::Offset(123_456_789));
    assert_eq!(packed.0.len(), 1 + 1 + 1 + 2 + 21 + 3);
}

/// Fails if cut or changed bytes panic, take memory that is not there, or are read as a whole capture.
#[test]
fn damaged_bytes_are_refused() {
    let (place, packed) = packed(&full(), Position::Offset(123_456_789));
    for cut in 0..packed.0.len() {
        let cut = PackedCapture(packed.0[..cut].to_vec());
        assert!(unpack_capture(&place, &cut, None).is_err());
    }
    let mut longer = packed.clone();
    longer.0.push(0);
    assert!(unpack_capture(&place, &longer, None).is_err());
    for at in 0..packed.0.len() {
        for bit in 0..8 {
            let mut flipped = packed.clone();
            flipped.0[at] ^= 1 << bit;
            if let Ok(read) = unpack_capture(&place, &flipped, None) {
                assert!(read.key == place.key);
            }
        }
    }
    let huge = PackedCapture([&[URL, WHOLE_URL][..], &[0xff; 9], &[1]].concat());
    assert!(unpack_capture(&place, &huge, None).is_err());
}

const WHOLE_URL: u8 = 0;
