//! Bodies: chunks, encodings, and bodies that are broken or too large.

use std::io::{Cursor, Read, Write};

use tools_testing::FailingReader;

use super::super::*;
use crate::digest::{Algorithm, Digest, digest_bytes};

fn decoded(header: &str, body: &[u8]) -> (Vec<u8>, Option<BodyError>, Vec<Note>) {
    limited(header, body, DecodeLimits::default())
}

pub(super) fn limited(
    header: &str,
    body: &[u8],
    limits: DecodeLimits,
) -> (Vec<u8>, Option<BodyError>, Vec<Note>) {
    let mut bytes = format!("HTTP/1.1 200 OK\r\n{header}\r\n\r\n").into_bytes();
    bytes.extend_from_slice(body);
    let mut input = Cursor::new(bytes);
    let head = Head::read_head(&mut input, 1 << 16).unwrap();
    let mut body = Body::decoded_body(&head, input, limits);
    let mut out = Vec::new();
    let error = body
        .read_to_end(&mut out)
        .err()
        .map(|e| BodyError::find_within(&e).unwrap());
    (out, error, body.notes())
}

const CHUNKED: &str = "Transfer-Encoding: chunked";

/// Fails if a chunk extension, a bare line feed or a trailer breaks the body, or a body without chunks is not given as
/// it is.
#[test]
fn chunks_are_undone() {
    let check = |body: &[u8], expected: &[u8], notes: &[Note]| {
        assert_eq!(
            decoded(CHUNKED, body),
            (expected.to_vec(), None, notes.to_vec()),
            "{}",
            String::from_utf8_lossy(body)
        );
    };
    check(b"3\r\nabc\r\n0\r\n\r\n", b"abc", &[]);
    check(
        b"3;x=y\r\nabc\r\n0A  \r\n0123456789\r\n00\r\n\r\n",
        b"abc0123456789",
        &[],
    );
    check(b"3\nabc\n0\n\n", b"abc", &[]);
    check(b"3\r\nabc\r\n0\r\nX: y\r\n\r\n", b"abc", &[Note::Trailers]);
    check(b"3\r\nabc\r\n0\r\n", b"abc", &[Note::NoEndOfTrailers]);
    check(b"3\r\nabc\r\n0", b"abc", &[Note::NoEndOfTrailers]);
    check(b"0\r\n\r\n", b"", &[]);
    check(b"<html>3\r\nabc", b"<html>3\r\nabc", &[Note::NotChunked]);
    check(b"", b"", &[Note::NotChunked]);
    check(b"abc", b"abc", &[Note::NotChunked]);
    check(b"0", b"0", &[Note::NotChunked]);
    check(
        b"ffffffffffffffffff\r\nabc",
        b"ffffffffffffffffff\r\nabc",
        &[Note::NotChunked],
    );
}

/// Fails if the bytes before a broken chunk are lost, or the error points at another offset.
#[test]
fn broken_chunks_give_their_beginning_and_offset() {
    let check = |body: &[u8], expected: &[u8], error| {
        let (out, found, _) = decoded(CHUNKED, body);
        assert_eq!(
            (out.as_slice(), found),
            (expected, Some(error)),
            "{}",
            String::from_utf8_lossy(body)
        );
    };
    check(b"3\r\nab", b"ab", BodyError::CutChunks { at: 5 });
    check(b"3\r\nabc", b"abc", BodyError::CutChunks { at: 6 });
    check(b"3\r\nabc\r\n", b"abc", BodyError::CutChunks { at: 8 });
    check(b"3\r\nabc\r\n1", b"abc", BodyError::CutChunks { at: 9 });
    check(
        b"3\r\nabcd\r\n0\r\n\r\n",
        b"abc",
        BodyError::BadChunk { at: 6 },
    );
    check(b"3\r\nabc\r\nzz\r\n", b"abc", BodyError::BadChunk { at: 8 });
    check(b"3\r\nabc\r\n-1\r\n", b"abc", BodyError::BadChunk { at: 8 });
    check(
        b"fffffffffffffff\r\nabc",
        b"abc",
        BodyError::CutChunks { at: 20 },
    );
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn raw_deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder =
        flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn zstd_frame(bytes: &[u8]) -> Vec<u8> {
    let mut packed = vec![0; zstd_safe::compress_bound(bytes.len())];
    let length = zstd_safe::compress(packed.as_mut_slice(), bytes, 3).unwrap();
    packed.truncate(length);
    packed
}

/// Makes brotli without compression: stored meta-blocks (RFC 7932, 9.2), and an empty last one.
fn brotli(bytes: &[u8]) -> Vec<u8> {
    // Bits of a block: window bits 16: one bit 0; not last: 0; 4 nibbles: 00; length - 1: 16 bits; stored: 1.
    let mut out = Vec::new();
    let mut first = true;
    for piece in bytes.chunks(60_000) {
        let length = u32::try_from(piece.len() - 1).unwrap();
        if first {
            let bits = (length << 4) | (1 << 20);
            out.extend_from_slice(&bits.to_le_bytes()[..3]);
        } else {
            let bits = (length << 3) | (1 << 19);
            out.extend_from_slice(&bits.to_le_bytes()[..3]);
        }
        first = false;
        out.extend_from_slice(piece);
    }
    // The last block is empty; the window bits come first if there was no other block.
    out.push(if first { 0b110 } else { 0b11 });
    out
}

fn text() -> Vec<u8> {
    (0..20_000_u32)
        .flat_map(|n| format!("line {n}\n").into_bytes())
        .collect()
}

type Encode = fn(&[u8]) -> Vec<u8>;

const CODINGS: [(&str, Encode); 6] = [
    ("gzip", gzip),
    ("X-GZip", gzip),
    ("deflate", zlib),
    ("deflate", raw_deflate),
    ("br", brotli),
    ("zstd", zstd_frame),
];

/// Fails if a content encoding is not undone, or two of them are undone in the wrong order.
#[test]
fn every_coding_and_every_pair_is_decoded() {
    let text = text();
    for (name, encode) in CODINGS {
        let header = format!("Content-Encoding: {name}");
        assert_eq!(
            decoded(&header, &encode(&text)),
            (text.clone(), None, vec![]),
            "{name}"
        );
        for (outer_name, outer) in CODINGS {
            let header =
                format!("Content-Encoding: {name}, identity\r\nContent-Encoding: {outer_name}");
            assert_eq!(
                decoded(&header, &outer(&encode(&text))),
                (text.clone(), None, vec![]),
                "{header}"
            );
        }
    }
}

/// Fails if an encoding is undone before the chunks, or a body that was stored without its chunks is not decoded.
#[test]
fn encodings_lie_under_chunks() {
    let body = gzip(b"hello");
    let mut chunked = format!("{:x}\r\n", body.len()).into_bytes();
    chunked.extend_from_slice(&body);
    chunked.extend_from_slice(b"\r\n0\r\n\r\n");
    let header = format!("{CHUNKED}\r\nContent-Encoding: gzip");
    assert_eq!(
        decoded(&header, &chunked),
        (b"hello".to_vec(), None, vec![])
    );
    assert_eq!(
        decoded(&header, &chunked[..chunked.len() - 12]).1,
        Some(BodyError::CutChunks {
            at: chunked.len() as u64 - 12
        })
    );
    // The header says that the body is chunked, and it is unchunked already: a very usual record.
    assert_eq!(
        decoded(&header, &body),
        (b"hello".to_vec(), None, vec![Note::NotChunked])
    );
}

/// Fails if a body with an unknown or untrue `Content-Encoding` is an error, or is left encoded without a note.
#[test]
fn unknown_coding_is_left_and_noted() {
    let text = b"hello".to_vec();
    let left = |names: &str| vec![Note::LeftCoded(names.into())];
    assert_eq!(
        decoded("Content-Encoding: rot13", &text),
        (text.clone(), None, left("rot13"))
    );
    assert_eq!(
        decoded("Content-Encoding: gzip, rot13", &text),
        (text.clone(), None, left("gzip, rot13"))
    );
    assert_eq!(
        decoded("Content-Encoding: rot13, gzip", &gzip(&text)),
        (text.clone(), None, left("rot13"))
    );
    let five = "Content-Encoding: gzip, gzip, gzip, gzip, gzip";
    let bytes = (0..5).fold(text.clone(), |b, _| gzip(&b));
    assert_eq!(decoded(five, &bytes), (gzip(&text), None, left("gzip")));
    assert_eq!(
        decoded("Content-Encoding: gzip", &text),
        (text, None, vec![Note::NotCoded(Coding::Gzip)])
    );
    assert_eq!(
        decoded("Content-Encoding: gzip", b""),
        (vec![], None, vec![])
    );
    let length = Note::Length {
        expected: 9,
        found: 5,
    };
    assert_eq!(
        decoded("Content-Length: 9", b"hello"),
        (b"hello".to_vec(), None, vec![length])
    );
}

/// Fails if only the first gzip member of a body is decoded, or bytes behind the last one make the body an error.
#[test]
fn members_are_joined_and_junk_is_ignored() {
    let two = [gzip(b"one "), gzip(b"two")].concat();
    assert_eq!(
        decoded("Content-Encoding: gzip", &two),
        (b"one two".to_vec(), None, vec![])
    );
    let junk = [gzip(b"one"), b"junk".to_vec()].concat();
    assert_eq!(
        decoded("Content-Encoding: gzip", &junk),
        (b"one".to_vec(), None, vec![Note::Behind(Coding::Gzip)])
    );
}

/// Fails if a cut stream ends without an error or a note, as if it were whole.
#[test]
fn cut_streams_never_pass_for_whole() {
    let text = text();
    for (name, encode) in CODINGS {
        let header = format!("Content-Encoding: {name}");
        let whole = encode(&text);
        for cut in (1..whole.len()).step_by(whole.len() / 97 + 1) {
            let (out, error, notes) = decoded(&header, &whole[..cut]);
            assert!(text.starts_with(&out) || notes.len() == 1, "{name} {cut}");
            assert!(error.is_some() || !notes.is_empty(), "{name} cut at {cut}");
        }
    }
}

fn zstd_frame_with_checksum(bytes: &[u8]) -> Vec<u8> {
    let mut context = zstd_safe::CCtx::create();
    let sums = zstd_safe::CParameter::ChecksumFlag(true);
    context.set_parameter(sums).unwrap();
    let mut packed = vec![0; zstd_safe::compress_bound(bytes.len())];
    let length = context.compress2(packed.as_mut_slice(), bytes).unwrap();
    packed.truncate(length);
    packed
}

/// Fails if the checksum of a stream is not compared, so that other bytes than were encoded pass for whole, or a
/// flipped bit makes a decoder panic.
#[test]
fn flipped_stream_with_checksum_never_passes() {
    let text = text();
    let codings: [(&str, Encode, bool); 5] = [
        ("gzip", gzip, true),
        ("deflate", zlib, true),
        ("zstd", zstd_frame_with_checksum, true),
        ("deflate", raw_deflate, false),
        ("br", brotli, false),
    ];
    let limits = DecodeLimits {
        output: 1 << 22,
        ..DecodeLimits::default()
    };
    for (name, encode, has_checksum) in codings {
        let header = format!("Content-Encoding: {name}");
        let whole = encode(&text);
        let end = whole.len() - 8..whole.len();
        for at in (1..end.start).step_by(whole.len() / 97 + 1).chain(end) {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x10;
            let (out, error, notes) = limited(&header, &flipped, limits);
            // A few bits of a header, such as those of its date, mean nothing for the body.
            let passes = error.is_none() && notes.is_empty() && out != text;
            assert!(!(has_checksum && passes), "{name} flipped at {at}");
        }
    }
}

/// Fails if an error of the disk is reported as damage of the body, or a digest is judged in spite of it.
#[test]
fn error_of_input_is_not_damage() {
    let text = text();
    for (name, encode) in CODINGS {
        for framing in ["", "Transfer-Encoding: chunked\r\n"] {
            let mut whole = format!("HTTP/1.1 200 OK\r\n{framing}Content-Encoding: {name}\r\n\r\n")
                .into_bytes();
            let body = encode(&text);
            if !framing.is_empty() {
                whole.extend_from_slice(format!("{:x}\r\n", body.len()).as_bytes());
            }
            whole.extend_from_slice(&body[..body.len() / 2]);
            let mut input =
                std::io::BufReader::new(FailingReader::new(&whole, "group 7 is damaged"));
            let head = Head::read_head(&mut input, 1 << 16).unwrap();
            let mut out = Vec::new();
            let error = Body::decoded_body(&head, input, DecodeLimits::default())
                .read_to_end(&mut out)
                .unwrap_err();
            assert_eq!(error.to_string(), "group 7 is damaged", "{name}");
            let sha1: Digest = digest_bytes(Algorithm::Sha1, b"").into();
            let mut input =
                std::io::BufReader::new(FailingReader::new(&whole, "group 7 is damaged"));
            assert!(check_payload(&mut input, &sha1, 1 << 16).is_err());
        }
    }
}

/// Fails if a message that is cut or changed anywhere makes the reader panic, or gives more bytes than it can contain.
#[test]
fn prefixes_and_changes_of_message_are_read() {
    let mut message = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\nContent-Type: text/html; charset=\"x\"\r\n\r\n".to_vec();
    let body = gzip(b"hello");
    message.extend_from_slice(format!("{:x}\r\n", body.len()).as_bytes());
    message.extend_from_slice(&body);
    message.extend_from_slice(b"\r\n0\r\nA: b\r\n\r\n");
    for at in 0..message.len() {
        let mut variants = vec![message[..at].to_vec()];
        for byte in [0, b' ', b'\n', b':', b'9', 0xff] {
            let mut changed = message.clone();
            changed[at] = byte;
            variants.push(changed);
        }
        for bytes in variants {
            let mut input = Cursor::new(&bytes);
            let head = Head::read_head(&mut input, 1 << 16).unwrap();
            assert!(bytes.starts_with(head.raw()));
            let mut out = Vec::new();
            let _taken = Body::decoded_body(&head, input, DecodeLimits::default())
                .read_to_end(&mut out)
                .is_ok();
            assert!(out.len() < 1000);
            let sha1: Digest = digest_bytes(Algorithm::Sha1, b"").into();
            let _taken = check_payload(&mut Cursor::new(&bytes), &sha1, 1 << 16).is_ok();
        }
    }
}
