//! Archive files, and the HTTP messages in them.

use std::io::{Cursor, Read as _};

use archive_formats::arc;
use archive_formats::cdx::{Exchanges, extract_capture};
use archive_formats::defect::{Action, DefectPolicy};
use archive_formats::http::{Body, BodyError, ChunkedReader, DecodeLimits, Head};
use archive_formats::warc::{
    Builder, ReaderOptions, RecordSummary, WarcReader, WarcType, WarcWriter, validate_record,
};

const DATE: &str = "2026-11-21T19:14:09Z";
const RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
const REQUEST: &[u8] =
    b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 7\r\n\r\na=1&b=2";
const ARC: &[u8] = b"filedesc://a.arc 0.0.0.0 20140216050221 text/plain 75\n1 0 X\nURL IP-address Archive-date Content-type Archive-length\n\n\n\
http://a.b/c d 1.2.3.4 20140216050221 text/html 26\nHTTP/1.1 200 OK\r\n\r\nhello\n\n\nhttp://a.b/e ::1 201402160502210000 text/html -1\nrest\n";

fn records() -> Vec<(Vec<u8>, &'static [u8])> {
    let of = |kind, number: u32| Builder::new(kind, &format!("urn:uuid:{number}"), DATE);
    let http = "application/http; msgtype=response";
    [
        (
            of(WarcType::Warcinfo, 1).content_type("application/warc-fields"),
            &b"software: x\r\n"[..],
        ),
        (
            of(WarcType::Request, 2)
                .target_uri("http://a.b/a")
                .concurrent_to("urn:uuid:3"),
            REQUEST,
        ),
        (
            of(WarcType::Response, 3)
                .target_uri("http://a.b/a")
                .content_type(http),
            RESPONSE,
        ),
        (
            of(WarcType::Resource, 4)
                .target_uri("dns:a.b")
                .content_type("text/dns"),
            b"x",
        ),
        (
            Builder::identical_payload("urn:uuid:5", DATE, "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ")
                .target_uri("http://a.b/a")
                .refers_to_capture("http://a.b/a", DATE),
            b"HTTP/1.1 200 OK\r\n\r\n",
        ),
        (of(WarcType::Metadata, 6).content_type("text/anvl"), b""),
    ]
    .into_iter()
    .map(|(builder, block)| (builder.render_head(block.len() as u64).unwrap(), block))
    .collect()
}

fn file(mut writer: WarcWriter<Vec<u8>>) -> Vec<u8> {
    for (head, mut block) in records() {
        writer
            .write_record(&head, block.len() as u64, &mut block)
            .unwrap();
    }
    writer.into_inner()
}

/// Returns files of every compression, good ones and some with the damage that bad ones have.
pub(super) fn warc_seeds() -> Vec<Vec<u8>> {
    let plain = file(WarcWriter::plain_writer(Vec::new()));
    let gzip = file(WarcWriter::gzip_writer(Vec::new(), 6));
    let with_line_feeds = plain
        .iter()
        .copied()
        .filter(|byte| *byte != b'\r')
        .collect();
    let cut = gzip[..gzip.len() - 9].to_vec();
    let flipped = gzip
        .iter()
        .enumerate()
        .map(|(at, byte)| byte ^ u8::from(at == 300))
        .collect();
    let folded = b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: <http://a/\r\n b>\r\nWARC-Date: 2016\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n";
    // `a` in a frame as the specification of Zstandard has it: raw block, one byte.
    let zstd = b"\x28\xb5\x2f\xfd\x20\x01\x09\x00\x00a\x5d\x2a\x4d\x18\x01\x00\x00\x00z";
    vec![
        plain,
        gzip,
        with_line_feeds,
        cut,
        flipped,
        folded.to_vec(),
        zstd.to_vec(),
        ARC.to_vec(),
    ]
}

/// Reads records, which must be bounded, in order and located; a second reading must equal the first.
pub(super) fn warc(input: &[u8]) {
    let first = ends(input, DefectPolicy::one_action(Action::Report));
    assert!(first.is_sorted_by_key(|end| (end.offset, end.position)));
    let length = input.len() as u64;
    for end in &first {
        assert!(end.offset <= length && end.length.is_none_or(|l| end.offset + l <= length));
        if let Some(index) = end.index_length {
            assert!(end.offset + index <= length, "{end:?}");
        }
        for defect in &end.defects {
            assert!(defect.offset <= length, "{defect}");
        }
    }
    // A reader has large buffers: one more question for each input, by its last byte, and not all of them.
    match input.last().unwrap_or(&0) % 4 {
        0 => {
            let again = ends(input, DefectPolicy::one_action(Action::Report));
            assert_eq!(first, again, "reading is repeatable");
        }
        1 => {
            let _strict = ends(input, DefectPolicy::strict_policy());
        }
        2 => indexed(input, &first),
        _ => rewritten(input),
    }
}

/// An index is made of anything; and what a whole record says it is can be cut out, and read alone.
fn indexed(input: &[u8], ends_of_all: &[RecordSummary]) {
    let mut exchanges = Exchanges::new("a.warc.gz");
    let mut reader = WarcReader::new(input);
    while let Some(record) = reader.next_record().unwrap() {
        exchanges.read_record(record).unwrap();
    }
    exchanges.finish_exchange();
    let whole = |end: &&RecordSummary| end.complete && end.defects.is_empty();
    if let Some(end) = ends_of_all.iter().find(whole)
        && let Some(index) = end.index_length
    {
        let from = usize::try_from(end.offset).unwrap();
        let upto = usize::try_from(end.offset + index).unwrap();
        let alone = ends(&input[from..upto], DefectPolicy::one_action(Action::Report));
        if let Some(alone) = alone
            .first()
            .filter(|alone| alone.announced == end.announced)
        {
            assert_eq!(alone.header_length, end.header_length, "{end:?}");
        }
    }
}

fn ends(input: &[u8], policy: DefectPolicy) -> Vec<RecordSummary> {
    let options = ReaderOptions {
        policy,
        header_limit: 4096,
        ..ReaderOptions::default()
    };
    let mut reader = WarcReader::with_options(input, options);
    let mut ends = Vec::new();
    let mut ended = false;
    // A refusal is an answer, too: a reader that asks again reads on behind it. Every answer moves on.
    for _ in 0..=2 * input.len() + 2000 {
        match reader.next_record() {
            Ok(None) => {
                ended = true;
                break;
            }
            Ok(Some(record)) => {
                let kind = record.kind();
                let version = record.version();
                let header = record.header().clone();
                if let Ok(end) = record.read_end() {
                    let _violations = validate_record(kind, version, &header, &end);
                    ends.push(end);
                }
            }
            Err(_) => {}
        }
    }
    assert!(ended, "the reader comes to an end");
    ends
}

/// Copies records, which must read back as they were.
fn rewritten(input: &[u8]) {
    let mut reader = WarcReader::new(input);
    let mut plain = WarcWriter::plain_writer(Vec::new());
    let mut headers = Vec::new();
    while let Ok(Some(record)) = reader.next_record() {
        let header = record.header().raw().to_vec();
        let is_arc = record.version().is_arc();
        match plain.copy_record(record) {
            Ok((_, end)) if end.complete && !is_arc => headers.push((header, end.block_length)),
            _ => return,
        }
    }
    let file = plain.into_inner();
    let mut reader = WarcReader::new(file.as_slice());
    for (header, length) in headers {
        let record = reader.next_record().unwrap().unwrap();
        assert_eq!(record.header().raw(), header);
        assert_eq!(record.read_end().unwrap().block_length, length);
    }
}

pub(super) fn gzip_seeds() -> Vec<Vec<u8>> {
    vec![
        file(WarcWriter::gzip_writer(Vec::new(), 1)),
        file(WarcWriter::gzip_writer(Vec::new(), 9)),
        b"\x1f\x8b\x08\x1c\0\0\0\0\0\0\x02\0slname\0comment\0\x03\0\0\0\0\0\0\0\0\0".to_vec(),
    ]
}

/// Members around any deflated bytes: `input` is what is in one, or it is a file.
pub(super) fn gzip(input: &[u8]) {
    warc(input);
    let mut whole = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".to_vec();
    whole.extend_from_slice(input);
    ends(&whole, DefectPolicy::one_action(Action::Report));
    // Behind damage a good file is found again.
    let good = file(WarcWriter::gzip_writer(Vec::new(), 6));
    let found = ends(
        &[input, &good].concat(),
        DefectPolicy::one_action(Action::Report),
    );
    if !input.starts_with(b"\x1f\x8b") {
        assert!(found.len() <= input.len() + 6);
    }
}

pub(super) fn arc_seeds() -> Vec<Vec<u8>> {
    vec![
        ARC.to_vec(),
        b"http://a/x y 1.2.3.4 20080430204825 text/html 200 ABC - 77 f.arc 12".to_vec(),
        b"dns:a 1.2.3.4 200804302048 text/dns 0".to_vec(),
    ]
}

/// A line, and a file of it.
pub(super) fn arc(input: &[u8]) {
    let line = input
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    if let Some(read) = arc::ArcLine::parse(line) {
        assert!(!read.url.is_empty() && !read.url.contains(&b'\n'));
        assert!(line.starts_with(&read.url), "the URL is the beginning");
    }
    let version = b"filedesc://a.arc 0.0.0.0 20140216050221 text/plain 5\n1 0 X\n";
    let file = [&version[..], input].concat();
    ends(&file, DefectPolicy::one_action(Action::Report));
    let mut reader = WarcReader::new(file.as_slice());
    while let Some(record) = reader.next_record().unwrap() {
        extract_capture(record, "a.arc").unwrap();
    }
}

pub(super) fn http_seeds() -> Vec<Vec<u8>> {
    let with = |head: &str, body: &[u8]| {
        [
            format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").as_bytes(),
            body,
        ]
        .concat()
    };
    let gzip =
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x04\x00\x43\xbe\xb7\xe8\x01\x00\x00\x00";
    vec![
        RESPONSE.to_vec(),
        REQUEST.to_vec(),
        with("Content-Encoding: gzip", gzip),
        with(
            "Content-Encoding: deflate",
            b"\x78\x9c\x4b\x04\x00\x00\x62\x00\x62",
        ),
        with("Content-Encoding: br", b"\x0b\x00\x80a\x03"),
        with(
            "Content-Encoding: zstd",
            b"\x28\xb5\x2f\xfd\x20\x01\x09\x00\x00a",
        ),
        with(
            "Content-Encoding: gzip, br, identity\r\nTransfer-Encoding: gzip, chunked",
            b"3;x=y\r\nabc\r\n0\r\nT: 1\r\n\r\n",
        ),
        b"HTTP/1.0 200\nA: b\n c\nContent-Length: 9\n\nab".to_vec(),
        b"no head at all".to_vec(),
    ]
}

const BOUND: DecodeLimits = DecodeLimits {
    output: 1 << 16,
    ratio: 1100,
    codings: 3,
};

pub(super) fn http(input: &[u8]) {
    let mut rest = Cursor::new(input);
    let Ok(head) = Head::read_head(&mut rest, 8192) else {
        return;
    };
    let at = usize::try_from(rest.position()).unwrap();
    assert_eq!(
        [head.raw(), head.unread_bytes()].concat(),
        input[..at],
        "kept as it is"
    );
    let body = &input[at..];
    for body in [
        Body::entity_body(&head, body),
        Body::decoded_body(&head, body, BOUND),
    ] {
        read(body, 1 << 20);
    }
    let decoded = read(Body::decoded_body(&head, body, BOUND), u64::MAX);
    if head.get("Content-Encoding").is_some()
        && !head
            .list_values("Content-Encoding")
            .all(|name| name.eq_ignore_ascii_case(b"identity"))
    {
        assert!(
            decoded.len() <= input.len().max(1 << 16) + 1,
            "{} bytes",
            decoded.len()
        );
    }
    let mut chunked = ChunkedReader::new(Cursor::new(input));
    let mut out = Vec::new();
    match chunked.read_to_end(&mut out) {
        Ok(_) => {}
        Err(error) => assert!(BodyError::find_within(&error).is_some(), "{error}"),
    }
    assert!(
        out.len() <= input.len(),
        "chunks hold no more than there is"
    );
}

fn read(body: Body<'_>, limit: u64) -> Vec<u8> {
    let mut out = Vec::new();
    match body.take(limit).read_to_end(&mut out) {
        Ok(_) => {}
        Err(error) => assert!(BodyError::find_within(&error).is_some(), "{error}"),
    }
    out
}
