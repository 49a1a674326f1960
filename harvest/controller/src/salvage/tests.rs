//! Files of dead processes, cut and changed at every place.

use std::collections::BTreeSet;

use archive_formats::warc::{Builder, WarcType, WarcWriter};

use super::*;

/// Returns the place at which each of five records begins, and the end, with the whole file: the first record says what
/// the file is.
fn archive_file() -> (Vec<usize>, Vec<u8>) {
    let mut writer = WarcWriter::gzip_writer(Vec::new(), 6);
    let mut begins = Vec::new();
    for number in 0..5 {
        begins.push(writer.get_ref().len());
        let kind = if number == 0 {
            WarcType::Warcinfo
        } else {
            WarcType::Response
        };
        let id = format!("urn:uuid:{number}");
        let builder = Builder::new(kind, &id, "2026-11-23T00:00:00Z");
        let builder = match number {
            0 => builder.content_type("application/warc-fields"),
            _ => builder
                .target_uri("http://a.dk/")
                .content_type("application/http; msgtype=response"),
        };
        let block = format!("HTTP/1.1 200 OK\r\n\r\n{number}");
        let length = u64::try_from(block.len()).unwrap();
        let head = builder.render_head(length).unwrap();
        writer
            .write_record(&head, length, &mut block.as_bytes())
            .unwrap();
    }
    let bytes = writer.into_inner();
    begins.push(bytes.len());
    (begins, bytes)
}

/// Returns the only file that is left of an open one, with its name; `None` if it was deleted.
fn left_of(bytes: &[u8]) -> Option<(String, Vec<u8>)> {
    let directory = tempfile::tempdir().unwrap();
    let open = directory.path().join("1-1-x.warc.gz.open");
    archive_durable::replace_file(&open, bytes).unwrap();
    close_open_file(&open).unwrap();
    let mut entries = std::fs::read_dir(directory.path()).unwrap();
    let path = entries.next()?.unwrap().path();
    assert!(entries.next().is_none());
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    Some((name, std::fs::read(path).unwrap()))
}

/// Fails if a file that was cut anywhere keeps half a record, loses a whole one, or is deleted with more than its
/// first.
#[test]
fn every_cut_leaves_all_whole_records() {
    let (begins, bytes) = archive_file();
    for cut in 0..=bytes.len() {
        let whole = *begins.iter().rev().find(|begin| **begin <= cut).unwrap();
        let left = left_of(&bytes[..cut]);
        if whole >= begins[2] {
            let expected = ("1-1-x.warc.gz".to_owned(), bytes[..whole].to_vec());
            assert_eq!(left, Some(expected), "{cut}");
        } else if cut == whole {
            assert_eq!(left, None, "{cut}");
        } else {
            let expected = ("1-1-x.warc.gz.invalid".to_owned(), bytes[..cut].to_vec());
            assert_eq!(left, Some(expected), "{cut}");
        }
    }
}

/// Fails if a file with a changed byte loses a whole record, is deleted, or passes for whole with the changed one in
/// it.
#[test]
fn every_flipped_byte_is_cut_or_set_aside() {
    let (begins, bytes) = archive_file();
    let mut names = BTreeSet::new();
    for at in (0..bytes.len()).step_by(3) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        let (name, left) = left_of(&changed).unwrap();
        if name.ends_with(INVALID) {
            assert_eq!(left, changed, "{at}");
        } else {
            // A changed byte in the head of a gzip member may change nothing.
            let is_harmless = left == changed;
            let is_cut = left == bytes[..begins[4]] && at >= begins[4];
            assert!(is_harmless || is_cut, "{at}");
            let records = WarcReader::new(left.as_slice());
            let whole = whole_count(records);
            assert!(whole >= 4, "{at}");
        }
        names.insert(name);
    }
    assert_eq!(names.len(), 2);
}

fn whole_count(mut reader: WarcReader<&[u8]>) -> usize {
    let mut count = 0;
    while let Some(record) = reader.next_record().unwrap() {
        count += usize::from(record.read_end().unwrap().complete);
    }
    count
}
