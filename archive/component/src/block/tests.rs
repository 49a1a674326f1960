//! The order in which a block can be read, and the report of damage.

use archive_formats::warc::{Builder, WarcReader, WarcWriter};
use tools_testing::FailingReader;

use super::*;

const PLAIN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Odd: \xff\r\n\r\nhello";
const CHUNKED: &[u8] =
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
const CUT: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhello";

fn file(kind: WarcType, block: &[u8]) -> Vec<u8> {
    let id = "urn:uuid:6f6e9f5e-0d2b-4a0b-8f6c-7a1b2c3d4e5f";
    let record = Builder::new(kind, id, "2026-11-21T19:14:09Z")
        .target_uri("http://example.org/")
        .content_type("application/http");
    let mut writer = WarcWriter::plain_writer(Vec::new());
    let length = block.len() as u64;
    let head = record.render_head(length).unwrap();
    writer.write_record(&head, length, &mut &*block).unwrap();
    writer.into_inner()
}

fn with(kind: WarcType, block: &[u8], test: impl FnOnce(&mut Block<'_>)) {
    let file = file(kind, block);
    let mut reader = WarcReader::new(file.as_slice());
    let mut record = reader.next_record().unwrap().unwrap();
    let mut block = Block::from_record(&mut record);
    test(&mut block);
    block.read_damage().unwrap();
}

/// Fails if the head of a response is not parsed, is read again as part of the body, or is refused for a header that is
/// not UTF-8.
#[test]
fn block_yields_head_then_stored_bytes() {
    with(WarcType::Response, PLAIN, |block| {
        for _ in 0..2 {
            let message = format!("{:?}", block.read_http().unwrap().unwrap());
            assert!(message.contains("HTTP/1.1 200 OK"), "{message}");
            assert!(message.contains("Some(200)"), "{message}");
            assert!(message.contains("(\"X-Odd\", \"\u{fffd}\")"), "{message}");
        }
        assert_eq!(block.read_bytes(3).unwrap(), b"hel");
        assert_eq!(block.read_bytes(0).unwrap(), b"lo");
        assert_eq!(block.read_bytes(0).unwrap(), b"");
        assert!(block.read_http().unwrap().is_some());
        assert!(
            block
                .read_payload(0)
                .unwrap_err()
                .contains("`read` already")
        );
    });
}

/// Fails if `read` skips the HTTP head that the component has not asked for, or the head can be asked for too late.
#[test]
fn without_the_head_all_stored_bytes_come() {
    with(WarcType::Response, PLAIN, |block| {
        assert_eq!(block.read_bytes(u32::MAX).unwrap(), PLAIN);
        assert!(block.read_http().unwrap_err().contains("before `read`"));
    });
}

/// Fails if the content of a chunked response includes the chunk sizes, or raw bytes and content can be read in turn
/// from one block.
#[test]
fn content_has_its_chunks_undone() {
    with(WarcType::Response, CHUNKED, |block| {
        assert_eq!(block.read_payload(0).unwrap(), b"hello");
        assert_eq!(block.read_payload(0).unwrap(), b"");
        assert!(
            block
                .read_bytes(0)
                .unwrap_err()
                .contains("`payload` already")
        );
        assert!(block.read_http().unwrap().is_some());
    });
}

/// Fails if a block that is no HTTP response has no content, or loses the bytes that were read to find that out.
#[test]
fn non_http_block_is_its_own_content() {
    for (kind, bytes) in [
        (WarcType::Response, &b"220 ftp.example.org ready"[..]),
        (WarcType::Resource, PLAIN),
    ] {
        with(kind, bytes, |block| {
            assert!(block.read_http().unwrap().is_none());
            assert_eq!(block.read_payload(4).unwrap(), &bytes[..4]);
            assert_eq!(block.read_bytes(0).unwrap(), &bytes[4..]);
        });
    }
}

/// Fails if the content of a cut body ends as if it were whole, its good part is lost, or the record counts as damaged
/// for it.
#[test]
fn cut_content_fails_only_reading_of_content() {
    with(WarcType::Response, CUT, |block| {
        assert_eq!(block.read_payload(0).unwrap(), b"hello");
        for _ in 0..2 {
            assert!(block.read_payload(0).unwrap_err().contains("is cut"));
        }
    });
}

/// Fails if a component can make the node read a whole block into memory at once.
#[test]
fn one_read_returns_at_most_one_mebibyte() {
    let bytes = vec![7; 3 << 20];
    with(WarcType::Resource, &bytes, |block| {
        assert_eq!(block.read_bytes(u32::MAX).unwrap().len(), 1 << 20);
        assert_eq!(block.read_bytes(0).unwrap().len(), 64 << 10);
    });
}

/// Fails if damage takes the good bytes before it along, reads as the end of the block the second time, or is not
/// reported as the reader's error.
#[test]
fn damage_is_reported_after_good_bytes_and_remembered() {
    let file = file(WarcType::Resource, &[7; 5000]);
    let mut reader = WarcReader::new(FailingReader::new(
        &file[..2000],
        "bytes 16384–32768 are damaged",
    ));
    let mut record = reader.next_record().unwrap().unwrap();
    let mut block = Block::from_record(&mut record);
    let good = block.read_bytes(0).unwrap();
    assert!(!good.is_empty() && good.iter().all(|byte| *byte == 7));
    for _ in 0..2 {
        assert!(block.read_bytes(0).unwrap_err().contains("are damaged"));
    }
    let damage = block.read_damage().unwrap_err();
    assert!(
        matches!(damage, BatchJobError::Read(ReadRecordError::Io(_))),
        "{damage}"
    );
}

/// Fails if reading where there is no record panics or returns an error, not the end.
#[test]
fn block_without_record_reads_as_empty() {
    let mut block = Block::no_block();
    assert_eq!(block.read_bytes(1).unwrap(), b"");
    assert_eq!(block.read_payload(1).unwrap(), b"");
    assert!(block.read_http().unwrap().is_none());
}
