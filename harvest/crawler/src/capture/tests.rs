//! Records of captures, read back and held against the standard.

use archive_formats::warc::validate::Validator;
use archive_formats::warc::{Header, WarcReader};

use super::*;
use crate::exchange::HttpProtocol;
use crate::exchange::receive::{ReceiveLimits, ResponseReceiver};

const WIRE: &[u8] =
    b"HTTP/1.1 200 OK\r\nETag: \"x\"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nETag: \"x\"\r\nTransfer-Encoding: chunked\r\n\r\n";
const REQUEST: &[u8] = b"GET /x HTTP/1.1\r\nHost: a.dk\r\n\r\n";

/// A record as it is read back.
#[derive(Debug)]
struct StoredRecord {
    kind: WarcType,
    header: Header,
    block: Vec<u8>,
}

impl StoredRecord {
    fn field(&self, name: &str) -> Option<String> {
        let value = self.header.get(name)?;
        Some(String::from_utf8_lossy(&value).into_owned())
    }
}

fn stored(wire: &[u8], novelty: Novelty) -> (Vec<StoredRecord>, RecordGroup) {
    let directory = std::env::temp_dir();
    let limits = ReceiveLimits::default();
    let mut receiver = ResponseReceiver::new(false, limits, directory.clone());
    receiver.take_bytes(wire).unwrap();
    let mut response = receiver.finish_response(None).unwrap();
    let capture = CapturedExchange {
        uri: "http://a.dk/x",
        began: "2026-11-23T03:04:05.678Z".parse().unwrap(),
        address: Some("192.0.2.1".parse().unwrap()),
        request: REQUEST,
        response: &mut response,
        protocol: HttpProtocol::Http1,
        novelty,
        metadata: &[
            ("via".to_owned(), "http://a.dk/".to_owned()),
            ("hopsFromSeed".to_owned(), "L".to_owned()),
        ],
        record_ids: [1, 2, 3].map(|number| record_id([number; 16])),
    };
    let mut group = capture
        .into_records(&RecordWriterPool::new(directory, true))
        .unwrap();
    let mut bytes = Vec::new();
    group.bytes.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len() as u64, group.length);
    assert_valid(&bytes);
    (read(&bytes), group)
}

fn read(file: &[u8]) -> Vec<StoredRecord> {
    let mut reader = WarcReader::new(file);
    let mut records = Vec::new();
    while let Some(mut record) = reader.next_record().unwrap() {
        let kind = record.kind();
        let header = record.header().clone();
        let mut block = Vec::new();
        record.read_to_end(&mut block).unwrap();
        records.push(StoredRecord {
            kind,
            header,
            block,
        });
    }
    records
}

/// Fails on every violation of the standard that `holdfast warc check` would find.
fn assert_valid(file: &[u8]) {
    let mut validator = Validator::default();
    let mut reader = WarcReader::new(file);
    let mut found = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        found.extend(validator.check_record(record).unwrap());
    }
    found.extend(validator.finish_file());
    assert!(found.is_empty(), "{found:?}");
}

fn earlier() -> RevisitTarget {
    RevisitTarget {
        uri: "http://a.dk/before".to_owned(),
        time: "2020-01-01T00:00:00Z".parse().unwrap(),
        record_id: Some("urn:uuid:00000000-0000-4000-8000-000000000009".to_owned()),
    }
}

/// Fails if a block is another than what went over the wire, or a record lacks a field that readers need.
#[test]
fn exchange_becomes_three_records() {
    let (records, group) = stored(WIRE, Novelty::New);
    let kinds: Vec<WarcType> = records.iter().map(|record| record.kind).collect();
    assert_eq!(
        kinds,
        [WarcType::Response, WarcType::Request, WarcType::Metadata]
    );
    let blocks: Vec<&[u8]> = records
        .iter()
        .map(|record| record.block.as_slice())
        .collect();
    assert_eq!(
        blocks,
        [WIRE, REQUEST, b"via: http://a.dk/\r\nhopsFromSeed: L\r\n"]
    );
    let [response, request, metadata] = records.as_slice() else {
        panic!("{records:?}")
    };
    assert_eq!(group.response.offset, 0);
    assert!(group.response.length < group.length);
    assert_eq!(
        response.field("WARC-Date").as_deref(),
        Some("2026-11-23T03:04:05Z")
    );
    assert_eq!(
        response.field("WARC-Payload-Digest"),
        Some(digest_bytes(Algorithm::Sha1, b"hello").to_string())
    );
    assert_eq!(response.field("WARC-Truncated"), None);
    for record in [request, metadata] {
        assert_eq!(
            record.field("WARC-Concurrent-To"),
            response.field("WARC-Record-ID")
        );
    }
    for record in &records {
        assert_eq!(
            record.field("WARC-Target-URI").as_deref(),
            Some("http://a.dk/x")
        );
    }
    assert_eq!(
        response.field("WARC-IP-Address").as_deref(),
        Some("192.0.2.1")
    );
    assert_eq!(
        response.field("WARC-Block-Digest"),
        Some(digest_bytes(Algorithm::Sha1, &response.block).to_string())
    );
}

/// Fails if a revisit stores a body twice, or does not say where the first one is.
#[test]
fn known_payload_becomes_a_revisit() {
    let (records, _) = stored(WIRE, Novelty::SamePayload(earlier()));
    let revisit = &records[0];
    assert_eq!(
        (revisit.kind, revisit.block.as_slice()),
        (WarcType::Revisit, HEAD)
    );
    for (name, value) in [
        ("WARC-Refers-To-Target-URI", "http://a.dk/before"),
        ("WARC-Refers-To-Date", "2020-01-01T00:00:00Z"),
        (
            "WARC-Refers-To",
            "<urn:uuid:00000000-0000-4000-8000-000000000009>",
        ),
        ("WARC-Truncated", "length"),
    ] {
        assert_eq!(revisit.field(name).as_deref(), Some(value));
    }
    let unchanged = b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n";
    let (records, _) = stored(unchanged, Novelty::NotModified(earlier()));
    let revisit = &records[0];
    assert_eq!(
        (revisit.kind, revisit.block.as_slice()),
        (WarcType::Revisit, &unchanged[..])
    );
    assert_eq!(revisit.field("WARC-Truncated"), None);
    assert!(
        revisit
            .field("WARC-Profile")
            .unwrap()
            .ends_with("server-not-modified")
    );
}

/// Fails if a cut response is written as a whole one.
#[test]
fn cut_response_is_written_as_cut() {
    let (records, _) = stored(&WIRE[..WIRE.len() - 9], Novelty::New);
    assert_eq!(
        records[0].field("WARC-Truncated").as_deref(),
        Some("disconnect")
    );
}

/// Fails if an id is no UUID of version 4, or two are one.
#[test]
fn record_ids_are_random_uuids() {
    assert_eq!(
        record_id([0xff; 16]),
        "urn:uuid:ffffffff-ffff-4fff-bfff-ffffffffffff"
    );
    assert_ne!(record_id([1; 16]), record_id([2; 16]));
}
