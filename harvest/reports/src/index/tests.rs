//! Indexes of archive files that were written for it.

use std::io::Read as _;

use archive_formats::digest::digest_bytes;
use archive_formats::warc::{Builder, WarcWriter};

use super::*;

const DATE: &str = "2021-07-05T15:20:39Z";
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; charset=utf-8\r\nETag: \"v 1\"\r\n\
                    Last-Modified: Mon, 05 Jul 2021 00:00:00 GMT\r\n\r\n";

/// Writes records, each from its header and block.
fn archive(records: &[(Builder, &str)]) -> Vec<u8> {
    let mut writer = WarcWriter::gzip_writer(Vec::new(), 6);
    for (builder, block) in records {
        let length = u64::try_from(block.len()).unwrap();
        let head = builder.render_head(length).unwrap();
        writer
            .write_record(&head, length, &mut block.as_bytes())
            .unwrap();
    }
    writer.into_inner()
}

fn record(kind: WarcType, id: &str, uri: &str) -> Builder {
    described(Builder::new(kind, id, DATE), uri)
}

fn described(builder: Builder, uri: &str) -> Builder {
    builder
        .target_uri(uri)
        .with_field("WARC-IP-Address", "192.0.2.7")
        .content_type("application/http; msgtype=response")
}

fn index(bytes: &[u8]) -> ArchiveIndex {
    let directory = tempfile::tempdir().unwrap();
    index_archive_file(bytes, "7-1-0.warc.gz", directory.path()).unwrap()
}

fn lines(list: &mut IndexLines) -> Vec<String> {
    let mut text = String::new();
    list.lines.read_to_string(&mut text).unwrap();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    assert_eq!(list.count, u64::try_from(lines.len()).unwrap());
    lines
}

/// Fails if a response has no line, another record has one, or a field is not what NetarchiveSuite puts there.
#[test]
fn cdx_lines_are_of_responses_only() {
    let page = format!("{HEAD}hello");
    let archive = archive(&[
        (Builder::new(WarcType::Warcinfo, "urn:uuid:1", DATE), ""),
        (
            record(WarcType::Response, "urn:uuid:2", "http://b.dk/"),
            &page,
        ),
        (
            record(WarcType::Request, "urn:uuid:3", "http://b.dk/"),
            "GET / HTTP/1.1\r\n\r\n",
        ),
        (record(WarcType::Resource, "urn:uuid:4", "dns:b.dk"), "x"),
        (
            described(
                Builder::identical_payload("urn:uuid:5", DATE, "sha1:A"),
                "http://b.dk/x",
            ),
            HEAD,
        ),
        (
            record(WarcType::Response, "urn:uuid:6", "http://a.dk/x y"),
            "HTTP/1.1 204 No\r\n\r\n",
        ),
    ]);
    let mut index = index(&archive);
    let md5 = |bytes: &[u8]| digest_bytes(Algorithm::Md5, bytes).hex_text();
    let found = lines(&mut index.cdx);
    let offsets = |line: &str| line.split(' ').nth(6).unwrap().parse::<usize>().unwrap();
    for line in &found {
        assert_eq!(archive[offsets(line)..][..2], [0x1f, 0x8b], "{line}");
    }
    let expected = [
        format!(
            "http://a.dk/x%20y 192.0.2.7 20210705152039 - 19 7-1-0.warc.gz {} {}",
            offsets(&found[0]),
            md5(b"")
        ),
        format!(
            "http://b.dk/ 192.0.2.7 20210705152039 text/html {} 7-1-0.warc.gz {} {}",
            page.len(),
            offsets(&found[1]),
            md5(b"hello")
        ),
    ];
    assert_eq!(found, expected);
    assert_eq!((index.problem_count, index.problems), (0, Vec::new()));
}

/// Fails if a capture lacks what a later job is deduplicated by, or a revisit does not name its original.
#[test]
fn captures_say_what_deduplication_needs() {
    let page = format!("{HEAD}hello");
    let archive = archive(&[
        (
            record(WarcType::Response, "urn:uuid:2", "http://b.dk/")
                .with_field("WARC-Payload-Digest", "sha1:AAA"),
            &page,
        ),
        (
            described(Builder::not_modified("urn:uuid:3", DATE), "http://a.dk/")
                .refers_to("urn:uuid:0")
                .refers_to_capture("http://a.dk/old", "2020-01-01T00:00:00Z"),
            "HTTP/1.1 304 Not Modified\r\nETag: \"v2\"\r\n\r\n",
        ),
    ]);
    let mut index = index(&archive);
    let offset = 0;
    let found = lines(&mut index.captures);
    let captures: Vec<Capture> = found
        .iter()
        .map(|line| Format::Cdxj.read_line(line).unwrap())
        .collect();
    let [revisit, response] = captures.as_slice() else {
        panic!("{found:?}")
    };
    let length = response.length.unwrap();
    assert_eq!(
        found[1],
        format!(
            "dk,b)/ 20210705152039 {{\"url\": \"http://b.dk/\", \"mime\": \"text/html\", \"status\": \"200\", \
             \"digest\": \"sha1:AAA\", \"length\": \"{length}\", \"offset\": \"{offset}\", \
             \"filename\": \"7-1-0.warc.gz\", \"recordId\": \"urn:uuid:2\", \"etag\": \"\\\"v 1\\\"\", \
             \"lastModified\": \"Mon, 05 Jul 2021 00:00:00 GMT\"}}"
        )
    );
    assert_eq!(
        (revisit.mime.as_deref(), revisit.offset),
        (Some("warc/revisit"), Some(length))
    );
    for (name, expected) in [
        ("recordId", "urn:uuid:3"),
        ("etag", "\"v2\""),
        ("refersTo", "urn:uuid:0"),
        ("refersToTargetUri", "http://a.dk/old"),
        ("refersToDate", "2020-01-01T00:00:00Z"),
    ] {
        assert_eq!(revisit.extra(name), Some(expected), "{name}");
    }
}

/// Fails if damage passes for a whole file, or hides the records before it.
#[test]
fn damage_is_among_the_problems() {
    let page = format!("{HEAD}{}", "hello ".repeat(1000));
    let whole = archive(&[
        (
            record(WarcType::Response, "urn:uuid:2", "http://b.dk/"),
            &page,
        ),
        (
            record(WarcType::Response, "urn:uuid:3", "http://a.dk/"),
            &page,
        ),
    ]);
    for cut in whole.len() - 40..whole.len() {
        let mut index = index(&whole[..cut]);
        assert_eq!(lines(&mut index.captures).len(), 1, "cut at {cut}");
        assert!(index.problem_count > 0, "cut at {cut}");
        assert!(
            index.problems[0].starts_with("offset "),
            "{:?}",
            index.problems
        );
        let found = lines(&mut index.cdx);
        assert!(
            found.iter().any(|line| line.starts_with("http://b.dk/ ")),
            "{found:?}"
        );
        let damaged = found.iter().find(|line| line.starts_with("http://a.dk/ "));
        assert!(damaged.is_none_or(|line| line.ends_with(" -")), "{found:?}");
    }
    let mut garbage = index(b"\0\x01nothing of the kind\r\n\r\n");
    assert!(garbage.problem_count > 0 && lines(&mut garbage.cdx).is_empty());
}

/// Fails if a later job would ask whether a response has changed of which only a part was stored.
#[test]
fn truncated_response_has_no_validators() {
    let truncated = record(WarcType::Response, "urn:uuid:2", "http://b.dk/")
        .with_field("WARC-Truncated", "length");
    let mut index = index(&archive(&[(truncated, HEAD)]));
    let capture = Format::Cdxj
        .read_line(&lines(&mut index.captures)[0])
        .unwrap();
    assert_eq!(capture.extra("recordId"), Some("urn:uuid:2"));
    assert_eq!(
        (capture.extra("etag"), capture.extra("lastModified")),
        (None, None)
    );
}

/// Fails if a validator of any length goes into an index, or one that is no text.
#[test]
fn hostile_validators_are_left_out() {
    let long = format!(
        "HTTP/1.1 200 OK\r\nETag: {}\r\nLast-Modified: \r\n\r\n",
        "x".repeat(1025)
    );
    let archive = archive(&[(
        record(WarcType::Response, "urn:uuid:2", "http://b.dk/"),
        &long,
    )]);
    let mut index = index(&archive);
    let capture = Format::Cdxj
        .read_line(&lines(&mut index.captures)[0])
        .unwrap();
    assert_eq!(
        (capture.extra("etag"), capture.extra("lastModified")),
        (None, None)
    );
}
