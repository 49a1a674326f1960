//! The files of the tests, and the way in which the tests read them.

use std::io::Read;

use archive_formats::defect::{Action, Class, Defect, DefectPolicy};
use archive_formats::warc::{
    Builder, ReaderOptions, RecordSummary, WarcReader, WarcType, WarcWriter,
};
use tools_testing::Random;

pub(crate) const DATE: &str = "2026-11-21T19:14:09.123456Z";

/// A record that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadRecord {
    pub(crate) kind: WarcType,
    pub(crate) id: String,
    pub(crate) header: Vec<u8>,
    pub(crate) block: Vec<u8>,
    pub(crate) end: RecordSummary,
}

/// All records of a file, and the defects behind the last.
pub(crate) fn read_all(source: impl Read, policy: DefectPolicy) -> (Vec<ReadRecord>, Vec<Defect>) {
    let options = ReaderOptions {
        policy,
        ..ReaderOptions::default()
    };
    let mut reader = WarcReader::with_options(source, options);
    let mut seen = Vec::new();
    while let Some(mut record) = reader.next_record().unwrap() {
        let mut block = Vec::new();
        record.read_to_end(&mut block).unwrap();
        let header = record.header().raw().to_vec();
        let id = record
            .header()
            .read_uri("WARC-Record-ID")
            .unwrap_or_default();
        let id = id.into_owned();
        let kind = record.kind();
        seen.push(ReadRecord {
            kind,
            id,
            header,
            block,
            end: record.read_end().unwrap(),
        });
    }
    assert!(reader.next_record().unwrap().is_none());
    (seen, reader.take_defects())
}

/// Records, and the classes of all defects.
pub(crate) fn read(source: &[u8]) -> (Vec<ReadRecord>, Vec<Class>) {
    let (seen, rest) = read_all(source, DefectPolicy::one_action(Action::Report));
    let classes = seen
        .iter()
        .flat_map(|seen| &seen.end.defects)
        .chain(&rest)
        .map(|defect| defect.class)
        .collect();
    (seen, classes)
}

/// Headers and blocks of a small crawl: every type, an empty block, a large one, one that looks like lines.
pub(crate) fn crawl() -> Vec<(Vec<u8>, Vec<u8>)> {
    let uri = "http://example.org/a b/\u{e6}";
    let http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>Hello</p>\r\n\r\n";
    let mut dice = Random::new(7);
    let noise: Vec<u8> = (0..200_000)
        .map(|_| u8::try_from(dice.index(256)).unwrap())
        .collect();
    let of = |kind, number: u32| Builder::new(kind, &format!("urn:uuid:{number}"), DATE);
    let records = [
        (
            of(WarcType::Warcinfo, 1).content_type("application/warc-fields"),
            b"software: x\r\n".to_vec(),
        ),
        (
            of(WarcType::Response, 2)
                .target_uri(uri)
                .content_type("application/http; msgtype=response"),
            http.to_vec(),
        ),
        (
            of(WarcType::Request, 3)
                .target_uri(uri)
                .concurrent_to("urn:uuid:2"),
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        ),
        (
            of(WarcType::Metadata, 4)
                .concurrent_to("urn:uuid:2")
                .concurrent_to("urn:uuid:3"),
            b"via: x\r\n".to_vec(),
        ),
        (
            of(WarcType::Resource, 5)
                .target_uri("dns:example.org")
                .content_type("text/dns"),
            noise,
        ),
        (
            Builder::identical_payload("urn:uuid:6", DATE, "sha1:AAAA")
                .target_uri(uri)
                .refers_to_capture(uri, DATE),
            b"HTTP/1.1 200 OK\r\n\r\n".to_vec(),
        ),
        (
            Builder::not_modified("urn:uuid:7", DATE)
                .target_uri(uri)
                .refers_to("urn:uuid:2"),
            Vec::new(),
        ),
        (
            of(WarcType::Conversion, 8)
                .target_uri(uri)
                .refers_to("urn:uuid:2"),
            vec![b'\n'; 70_000],
        ),
    ];
    records
        .into_iter()
        .map(|(builder, block)| (builder.render_head(block.len() as u64).unwrap(), block))
        .collect()
}

pub(crate) fn write(records: &[(Vec<u8>, Vec<u8>)], mut writer: WarcWriter<Vec<u8>>) -> Vec<u8> {
    for (head, block) in records {
        writer
            .write_record(head, block.len() as u64, &mut block.as_slice())
            .unwrap();
    }
    writer.into_inner()
}

pub(crate) fn gzip(records: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    write(records, WarcWriter::gzip_writer(Vec::new(), 6))
}

pub(crate) fn plain(records: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    write(records, WarcWriter::plain_writer(Vec::new()))
}

/// Some bytes as a gzip member.
pub(crate) fn member(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::bufread::GzEncoder::new(bytes, flate2::Compression::new(6));
    let mut out = Vec::new();
    encoder.read_to_end(&mut out).unwrap();
    out
}

/// Some bytes as a zstd frame.
pub(crate) fn frame(context: &mut zstd_safe::CCtx<'_>, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0; zstd_safe::compress_bound(bytes.len())];
    let length = context.compress2(out.as_mut_slice(), bytes).unwrap();
    out.truncate(length);
    out
}
