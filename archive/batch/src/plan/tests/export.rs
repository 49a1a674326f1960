//! Records in a new file.

use std::io::Read as _;

use archive_formats::warc::{Compression, Version, WarcReader, validate_record};

use super::crawl::{files, page};
use super::*;

/// Returns the records of an exported file: header and block.
fn exported(bytes: &[u8]) -> Vec<(WarcType, Vec<u8>, Vec<u8>)> {
    let mut reader = WarcReader::new(bytes);
    let mut records = Vec::new();
    while let Some(mut record) = reader.next_record().unwrap() {
        let mut block = Vec::new();
        record.read_to_end(&mut block).unwrap();
        records.push((record.kind(), record.header().raw().to_vec(), block));
        let end = record.read_end().unwrap();
        assert!(end.complete && end.length.is_some() && end.defects.is_empty());
    }
    assert!(records.is_empty() || reader.compression() == Compression::Gzip);
    records
}

/// Returns the offset behind each record of a file.
fn ends(bytes: &[u8]) -> Vec<usize> {
    let mut reader = WarcReader::new(bytes);
    let mut ends = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        let end = record.read_end().unwrap();
        ends.push(usize::try_from(end.offset + end.length.unwrap()).unwrap());
    }
    ends
}

fn export(
    arguments: &[(&str, &str)],
    files: &[(&str, &[u8])],
) -> Vec<(WarcType, Vec<u8>, Vec<u8>)> {
    let (bytes, failures) = run("export", arguments, files);
    assert_eq!(failures, [], "{arguments:?}");
    let records = exported(&bytes);
    // The same records are written byte for byte again.
    assert!(run("export", arguments, files).0 == bytes);
    records
}

/// Fails if an exported record differs by a byte from its original, a filter lets another record pass, or an empty
/// selection makes a file.
#[test]
fn records_are_copied_as_they_stand() {
    let (warc, arc) = files();
    let files = [("b.warc.gz", warc.as_slice()), ("c.arc", &arc)];
    let original = exported(&warc);
    let all = export(&[], &files);
    assert_eq!(all.len(), 1 + 5 + 1 + 2);
    assert_eq!(all[1..6], original[1..]);
    assert_eq!(
        (all[0].0, all[6].0),
        (WarcType::Warcinfo, WarcType::Warcinfo)
    );
    let said = String::from_utf8(all[0].2.clone()).unwrap();
    assert!(said.contains("records of b.warc.gz (BLAKE3 "), "{said}");
    for (arguments, wanted) in [
        (&[("url", "https?://.*")][..], &[1, 2, 3][..]),
        (&[("mime", "text/html")], &[1, 3]),
        (
            &[("mime", "text/.*"), ("url", ".*a\\.example\\.org.*")],
            &[3, 4],
        ),
        (&[("from", "2026")], &[1, 2, 3, 4, 5]),
        (&[("from", "2027")], &[]),
        (&[("to", "2025")], &[]),
        (
            &[("from", "20261121191409"), ("to", "2026-11-21")],
            &[1, 2, 3, 4, 5],
        ),
        (&[("url", "nothing")], &[]),
    ] {
        let records = export(arguments, &files[..1]);
        let expected: Vec<_> = wanted.iter().map(|at| original[*at].clone()).collect();
        assert_eq!(
            records.get(1..).unwrap_or_default(),
            expected,
            "{arguments:?}"
        );
        assert_eq!(records.is_empty(), wanted.is_empty());
    }
}

/// Fails if a record of an ARC file loses its URL, date, address or block in an export, or the file made of them breaks
/// the WARC standard.
#[test]
fn records_of_arc_files_become_warc_records() {
    let (_, arc) = files();
    let (bytes, failures) = run("export", &[], &[("c.arc", &arc)]);
    assert_eq!(failures, []);
    let records = exported(&bytes);
    let (kind, header, block) = &records[1];
    assert_eq!((*kind, block), (WarcType::Response, &page("three")));
    let header = String::from_utf8(header.clone()).unwrap();
    for line in [
        "WARC/1.1\r\n",
        "WARC-Target-URI: http://c.example.org/\r\n",
        "WARC-Date: 2008-04-30T20:48:25Z\r\n",
        "WARC-IP-Address: 192.0.2.9\r\n",
        "Content-Type: application/http; msgtype=response\r\n",
        "WARC-Record-ID: <urn:uuid:",
    ] {
        assert!(header.contains(line), "{header}");
    }
    let (kind, header, block) = &records[2];
    assert_eq!((*kind, block.as_slice()), (WarcType::Resource, &b"x"[..]));
    assert!(String::from_utf8_lossy(header).contains("Content-Type: text/dns\r\n"));
    // The exported file follows the standard to the letter.
    let mut reader = WarcReader::new(bytes.as_slice());
    let mut ids = std::collections::BTreeSet::new();
    while let Some(record) = reader.next_record().unwrap() {
        assert_eq!(record.version(), Version::Warc1_1);
        ids.insert(
            record
                .header()
                .read_uri("WARC-Record-ID")
                .unwrap()
                .into_owned(),
        );
        let kind = record.kind();
        let version = record.version();
        let header = record.header().clone();
        let end = record.read_end().unwrap();
        assert_eq!(validate_record(kind, version, &header, &end), []);
    }
    assert_eq!(ids.len(), 3);
}

/// Fails if a record that is cut off is exported, takes a whole one before it along, or is left out without a word.
#[test]
fn incomplete_record_is_not_exported() {
    let (warc, _) = files();
    let whole = exported(&warc);
    let ends = ends(&warc);
    assert_eq!(ends.len(), whole.len());
    // The first record says what is in the file; it is not exported.
    for (last, end) in ends.iter().enumerate().skip(1) {
        let begin = ends[last - 1];
        for cut in [begin + 1, begin.midpoint(*end), end - 1] {
            let (bytes, failures) = run("export", &[], &[("a.warc.gz", &warc[..cut])]);
            let records = exported(&bytes);
            let came = records.get(1..).unwrap_or_default();
            assert_eq!(came, &whole[1..last], "{last} {cut}");
            assert!(!failures.is_empty(), "{last} {cut}");
        }
        // Nothing is known of a record without its header, which is whole if little is missing.
        let (_, failures) = run("export", &[], &[("a.warc.gz", &warc[..end - 1])]);
        let mut reasons = failures.iter().map(|failure| &failure.reason);
        let is_told = reasons.any(|reason| reason.starts_with("not exported"));
        assert!(is_told, "{last}: {failures:?}");
    }
}

/// Fails if a record that does not fit into the buffer of the export is left out, cut or mixed up.
#[test]
fn record_larger_than_buffer_is_exported() {
    let mut block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n".to_vec();
    let mut random = Random::new(5);
    block.extend((0..9 << 20).map(|_| u8::try_from(random.below(256)).unwrap()));
    let bytes = plain(&[(WarcType::Response, "http://a/", HTTP, &block)]);
    let records = export(&[("mime", "text/html")], &[("a.warc", &bytes)]);
    assert!(records[1].2 == block);
}
