//! Files with bytes that cannot be read: every whole record before and behind them is found, each once.

use std::io::Read;

use archive_formats::warc::{Compression, KnownFormat, ReaderOptions, RecordSummary, WarcReader};
use tools_testing::FailingReader;

use crate::damage::files;
use crate::files::read;

/// The header, the block and the end of a record.
type WholeRecord = (Vec<u8>, Vec<u8>, RecordSummary);

/// Returns the records that can be read to their end, and whether an error ended that.
fn whole(mut reader: WarcReader<impl Read>) -> (Vec<WholeRecord>, bool) {
    let mut found = Vec::new();
    loop {
        let mut record = match reader.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => return (found, false),
            Err(_) => return (found, true),
        };
        let mut block = Vec::new();
        if record.read_to_end(&mut block).is_err() {
            return (found, true);
        }
        let header = record.header().raw().to_vec();
        match record.read_end() {
            Ok(end) => found.push((header, block, end)),
            Err(_) => return (found, true),
        }
    }
}

fn same(found: &WholeRecord, seen: &crate::files::ReadRecord) -> bool {
    found.0 == seen.header
        && found.1 == seen.block
        && found.2.offset == seen.end.offset
        && found.2.length == seen.end.length
        && found.2.complete
}

/// Fails if a read error costs a whole record before it, or is taken for the end of the file.
#[test]
fn whole_records_before_hole_are_read() {
    for (number, file) in files().into_iter().enumerate() {
        let all = read(&file).0;
        for hole in 0..file.len() {
            let (found, is_broken) = whole(WarcReader::new(FailingReader::new(
                &file[..hole],
                "unreadable",
            )));
            assert!(is_broken, "{number} {hole}");
            let before = all.iter().filter(|seen| {
                let end = seen.end.length.map(|length| seen.end.offset + length);
                end.is_some_and(|end| end <= hole as u64)
            });
            for seen in before {
                assert!(
                    found.iter().any(|found| same(found, seen)),
                    "{number} {hole}: {} is not there",
                    seen.end.offset
                );
            }
            for found in &found {
                assert!(
                    all.iter().any(|seen| found.0 == seen.header
                        && found.1 == seen.block
                        && found.2.offset == seen.end.offset),
                    "{number} {hole}: {} is no record",
                    found.2.offset
                );
            }
        }
    }
}

/// Fails if reading that is resumed behind a hole loses, repeats or moves a record, or calls the rest of a record a
/// defect.
#[test]
fn whole_records_behind_hole_are_read() {
    for (number, file) in files().into_iter().enumerate() {
        let mut reader = WarcReader::new(file.as_slice());
        assert_eq!(reader.known_format(), None);
        while reader.next_record().unwrap().is_some() {}
        let known = reader.known_format().unwrap();
        for from in 1..=file.len() {
            for known in [known, KnownFormat::known_compressed(reader.compression())] {
                let options = ReaderOptions {
                    offset: from as u64,
                    ..ReaderOptions::default()
                };
                let mut resumed =
                    WarcReader::resume_at(&file[from..], options, known, None).unwrap();
                while resumed.next_record().unwrap().is_some() {
                    let defects = resumed.take_defects();
                    assert!(defects.is_empty(), "{number} {from}: {defects:?}");
                }
                let defects = resumed.take_defects();
                assert!(
                    defects.is_empty(),
                    "{number} {from}: {defects:?} {:?}",
                    String::from_utf8_lossy(&file[from..file.len().min(from + 200)])
                );
                let options = ReaderOptions {
                    offset: from as u64,
                    ..ReaderOptions::default()
                };
                let resumed = WarcReader::resume_at(&file[from..], options, known, None).unwrap();
                let (found, is_broken) = whole(resumed);
                assert!(!is_broken);
                let behind: Vec<_> = read(&file)
                    .0
                    .into_iter()
                    .filter(|seen| seen.end.offset >= from as u64)
                    .collect();
                assert_eq!(found.len(), behind.len(), "{number} {from}");
                for (found, seen) in found.iter().zip(&behind) {
                    assert!(same(found, seen), "{number} {from}: {}", seen.end.offset);
                }
            }
        }
    }
}

/// Fails if bytes that are read in another compression than their own give a record.
#[test]
fn a_wrong_guess_of_the_compression_finds_nothing() {
    for file in files() {
        let compression = WarcReader::new(file.as_slice());
        let mut reader = compression;
        reader.next_record().unwrap();
        for guess in [Compression::Plain, Compression::Gzip, Compression::Zstd] {
            if guess == reader.compression() {
                continue;
            }
            let options = ReaderOptions {
                offset: 1,
                ..ReaderOptions::default()
            };
            let known = KnownFormat::known_compressed(guess);
            let resumed = WarcReader::resume_at(&file[1..], options, known, None).unwrap();
            assert_eq!(whole(resumed).0.len(), 0);
        }
    }
}
