//! The entries of an index for records: lengths that cut them out, and keys of posted bodies.

use archive_formats::cdx::{Capture, Exchanges, extract_capture};
use archive_formats::warc::{Builder, WarcReader, WarcType, WarcWriter};

use crate::files::{DATE, crawl, gzip, plain, write};

fn captures(file: &[u8]) -> Vec<Capture> {
    let mut reader = WarcReader::new(file);
    let mut captures = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        captures.extend(extract_capture(record, "a.warc").unwrap().capture);
    }
    captures
}

fn cut_out<'a>(file: &'a [u8], capture: &Capture) -> &'a [u8] {
    let from = usize::try_from(capture.offset.unwrap()).unwrap();
    let length = usize::try_from(capture.length.unwrap()).unwrap();
    &file[from..from + length]
}

/// Fails if the offset and length of an index entry cut out more or less than its record.
#[test]
fn index_entry_cuts_out_exactly_its_record() {
    let records = crawl();
    let plain = plain(&records);
    let gzip = gzip(&records);
    let here = captures(&plain);
    let there = captures(&gzip);
    assert_eq!((here.len(), there.len()), (4, 4));
    for capture in &here {
        let bytes = cut_out(&plain, capture);
        assert!(
            records
                .iter()
                .any(|(head, block)| bytes == [head.as_slice(), block].concat())
        );
    }
    for (capture, other) in there.iter().zip(&here) {
        let mut reader = WarcReader::new(cut_out(&gzip, capture));
        let record = reader.next_record().unwrap().unwrap();
        assert_eq!(
            record.header().read_uri("WARC-Target-URI").as_deref(),
            other.original.as_deref()
        );
        assert!(record.read_end().unwrap().complete);
        assert!(reader.next_record().unwrap().is_none() && reader.take_defects().is_empty());
    }
}

/// Fails if the length of a damaged record reaches into the next one, or a record that shares its member has a length.
#[test]
fn damaged_record_has_length_of_its_rest() {
    let gzip = gzip(&crawl());
    let whole = captures(&gzip);
    let length = |at: usize| usize::try_from(whole[at].length.unwrap()).unwrap();
    let offset = |at: usize| usize::try_from(whole[at].offset.unwrap()).unwrap();
    // The file ends within a record.
    let end = offset(1) + length(1) / 2;
    let cut = captures(&gzip[..end]);
    assert_eq!(cut.last().unwrap().length, Some((end - offset(1)) as u64));
    // A byte within a record is wrong: the record ends where the next one begins.
    let mut flipped = gzip.clone();
    flipped[offset(0) + length(0) - 6] ^= 1;
    let found = captures(&flipped);
    assert_eq!(found[0].length, whole[0].length);
    assert_eq!(found.len(), whole.len());
    // A record cannot be cut out of a member that it shares.
    let shared = crate::files::member(&plain(&crawl()));
    assert!(
        captures(&shared)
            .iter()
            .all(|capture| capture.length.is_none())
    );
}

/// Fails if a response is indexed without the body that was posted for it, or with the body of another request.
#[test]
fn answers_have_the_key_of_what_was_posted() {
    let url = "http://example.org/form";
    let post = b"POST /form HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\na=1&b=2";
    let answer = b"HTTP/1.1 200 OK\r\n\r\n";
    let of = |kind, number: u32| {
        Builder::new(kind, &format!("urn:uuid:{number}"), DATE)
            .target_uri(url)
            .content_type("application/http")
    };
    let keys = |records: Vec<(Builder, &[u8])>| -> Vec<String> {
        let records: Vec<_> = records
            .into_iter()
            .map(|(builder, block)| {
                (
                    builder.render_head(block.len() as u64).unwrap(),
                    block.to_vec(),
                )
            })
            .collect();
        let file = write(&records, WarcWriter::plain_writer(Vec::new()));
        let mut reader = WarcReader::new(file.as_slice());
        let mut exchanges = Exchanges::new("a.warc");
        let mut captures = Vec::new();
        while let Some(record) = reader.next_record().unwrap() {
            captures.extend(exchanges.read_record(record).unwrap().capture);
        }
        captures.extend(exchanges.finish_exchange());
        captures.into_iter().map(|capture| capture.key).collect()
    };
    let request = || of(WarcType::Request, 1);
    let response = || of(WarcType::Response, 2);
    let revisit = || {
        Builder::not_modified("urn:uuid:2", DATE)
            .target_uri(url)
            .content_type("application/http")
    };
    let posted = "org,example)/form?__wb_method=post&a=1";
    let plain = "org,example)/form";
    for (records, expected) in [
        (
            vec![
                (request(), &post[..]),
                (response().concurrent_to("urn:uuid:1"), &answer[..]),
            ],
            vec![posted],
        ),
        (
            vec![
                (response(), answer),
                (request().concurrent_to("urn:uuid:2"), post),
            ],
            vec![posted],
        ),
        (
            vec![
                (request().concurrent_to("urn:uuid:2"), post),
                (response(), answer),
            ],
            vec![posted],
        ),
        (
            vec![
                (revisit(), answer),
                (
                    request()
                        .concurrent_to("urn:uuid:7")
                        .concurrent_to("urn:uuid:2"),
                    post,
                ),
            ],
            vec![posted],
        ),
        (vec![(request(), post), (response(), answer)], vec![plain]),
        (
            vec![
                (response(), answer),
                (of(WarcType::Resource, 3), b"x"),
                (request().concurrent_to("urn:uuid:2"), post),
            ],
            vec![plain, plain],
        ),
        (
            vec![
                (response(), answer),
                (
                    request().concurrent_to("urn:uuid:2"),
                    b"GET /form HTTP/1.1\r\n\r\n",
                ),
            ],
            vec![plain],
        ),
    ] {
        assert_eq!(keys(records), expected);
    }
}

/// Fails if an ARC date of more than 14 digits costs the index entry of its record.
#[test]
fn arc_dates_with_fractions_are_dates() {
    let file = b"filedesc://a.arc 0.0.0.0 20140216050221 text/plain 5\n1 0 X\nhttp://a.b/ 1.2.3.4 201402160502219999 text/html 5\nhello\n";
    let captures = captures(file);
    assert_eq!(captures[0].timestamp.to_string(), "20140216050221");
}

/// Fails if the Latin-1 bytes of a URL are indexed as replacement characters, so that different URLs get one key.
#[test]
fn urls_of_other_bytes_stay_apart() {
    let of = |url: &[u8]| {
        let mut file = b"WARC/1.1\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:x:1>\r\n\
            WARC-Date: 2026-11-21T19:14:09Z\r\nContent-Length: 0\r\nWARC-Target-URI: "
            .to_vec();
        file.extend_from_slice(url);
        file.extend_from_slice(b"\r\n\r\n\r\n\r\n");
        let capture = captures(&file).remove(0);
        (capture.key, capture.original.unwrap())
    };
    let pair = |key: &str, url: &str| (key.to_owned(), url.to_owned());
    assert_eq!(of(b"http://u/\xe6"), pair("u)/%c3%a6", "http://u/\u{e6}"));
    assert_eq!(of(b"<http://u/\xf8>"), pair("u)/%c3%b8", "http://u/\u{f8}"));
    assert_eq!(
        of("http://u/\u{e6}".as_bytes()),
        pair("u)/%c3%a6", "http://u/\u{e6}")
    );
}
