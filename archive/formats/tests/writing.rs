//! Everything is written, the same every time, and nothing comes after an error.

use std::io::{self, Write};

use archive_formats::warc::{WarcReader, WarcWriter, WriteError};

use crate::files::{crawl, gzip, member, plain, read};

/// Takes seven bytes at a time, and no more than it is told.
struct Narrow {
    taken: Vec<u8>,
    room: usize,
}

impl Write for Narrow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(7).min(self.room - self.taken.len());
        self.taken.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Fails if bytes are lost when the sink takes only a part of a write, or an offset is counted wrongly.
#[test]
fn every_byte_reaches_a_narrow_sink() {
    let records = crawl();
    let expected = gzip(&records);
    let mut writer = WarcWriter::gzip_writer(
        Narrow {
            taken: Vec::new(),
            room: usize::MAX,
        },
        6,
    );
    let mut offset = 0;
    for (head, block) in &records {
        let written = writer
            .write_record(head, block.len() as u64, &mut block.as_slice())
            .unwrap();
        assert_eq!(written.offset, offset);
        offset += written.length;
    }
    assert_eq!(writer.position(), expected.len() as u64);
    assert!(writer.into_inner().taken == expected);
}

/// Fails if another record is written behind the torn one after the disk was full.
#[test]
fn full_disk_ends_writing_with_error() {
    let (head, block) = &crawl()[1];
    let mut writer = WarcWriter::plain_writer(Narrow {
        taken: Vec::new(),
        room: 100,
    });
    let length = block.len() as u64;
    let first = writer.write_record(head, length, &mut block.as_slice());
    assert!(matches!(first, Err(WriteError::Io(_))), "{first:?}");
    let second = writer.write_record(head, length, &mut block.as_slice());
    assert!(matches!(second, Err(WriteError::Poisoned)), "{second:?}");
}

/// Fails if a block of another length than its header says is accepted, or a record is written behind the torn one.
#[test]
fn a_length_that_lies_is_an_error() {
    let (head, block) = &crawl()[1];
    let length = block.len() as u64;
    for wrong in [&block[1..], &[block.as_slice(), b"x"].concat()] {
        let mut writer = WarcWriter::gzip_writer(Vec::new(), 6);
        let result = writer.write_record(head, length, &mut &*wrong);
        assert!(
            matches!(result, Err(WriteError::WrongLength { .. })),
            "{result:?}"
        );
        let after = writer.write_record(head, length, &mut block.as_slice());
        assert!(matches!(after, Err(WriteError::Poisoned)));
    }
    let mut writer = WarcWriter::gzip_writer(Vec::new(), 6);
    let result = writer.write_record(head, length + 1, &mut block.as_slice());
    assert!(
        matches!(result, Err(WriteError::Header { .. })),
        "{result:?}"
    );
    assert_eq!(writer.position(), 0);
}

/// Fails if a writer that is used again writes other bytes than a new one, also behind a record that failed.
#[test]
fn writer_used_again_writes_the_same() {
    let records = crawl();
    let mut writer = WarcWriter::gzip_writer(Vec::new(), 6);
    for fails_first in [false, true, false] {
        if fails_first {
            let (head, block) = &records[1];
            let result = writer.write_record(head, block.len() as u64, &mut &block[1..]);
            assert!(matches!(result, Err(WriteError::WrongLength { .. })));
            writer.begin_again(Vec::new());
        }
        for (head, block) in &records {
            let length = block.len() as u64;
            writer
                .write_record(head, length, &mut block.as_slice())
                .unwrap();
        }
        assert!(writer.begin_again(Vec::new()) == gzip(&records));
        assert_eq!(writer.position(), 0);
    }
}

/// Fails if copying a record changes the case, the folding, the order or the blanks of its header.
#[test]
fn file_is_written_back_byte_for_byte() {
    let odd = b"WARC/1.0\r\nwarc-type:response\r\nX-Folded: a\r\n  b\r\nX: 1\r\nx: 2\r\nContent-Length:  3 \r\n\r\nabc\r\n\r\n";
    let arc = b"filedesc://a.arc 0.0.0.0 20080430204825 text/plain 14\n1 0 X\nURL IP\n\n\nhttp://a/ 1.2.3.4 20080430204825 text/html 3\nabc\n";
    let file = [odd, plain(&crawl()).as_slice()].concat();
    for (original, inside) in [
        (file.clone(), file.clone()),
        (member(&file), file.clone()),
        (gzip(&crawl()), plain(&crawl())),
        (arc.to_vec(), arc.to_vec()),
    ] {
        let mut reader = WarcReader::new(original.as_slice());
        let mut writer = WarcWriter::plain_writer(Vec::new());
        while let Some(record) = reader.next_record().unwrap() {
            writer.copy_record(record).unwrap();
        }
        assert!(writer.into_inner() == inside);
    }
}

/// Fails if a record that was cut is copied as if it were whole.
#[test]
fn a_damaged_record_is_not_copied() {
    let file = gzip(&crawl());
    let mut reader = WarcReader::new(&file[..file.len() - 20]);
    let mut writer = WarcWriter::plain_writer(Vec::new());
    let mut failed = 0;
    while let Some(record) = reader.next_record().unwrap() {
        failed += u32::from(writer.copy_record(record).is_err());
    }
    assert_eq!(failed, 1);
}

/// Fails if the time of writing gets into the output, or some level of compression makes a file that cannot be read.
#[test]
fn the_same_records_give_the_same_bytes() {
    assert!(gzip(&crawl()) == gzip(&crawl()));
    for level in [0, 1, 9, 77] {
        let mut writer = WarcWriter::gzip_writer(Vec::new(), level);
        for (head, block) in crawl() {
            writer
                .write_record(&head, block.len() as u64, &mut block.as_slice())
                .unwrap();
        }
        let (seen, classes) = read(&writer.into_inner());
        assert_eq!((seen.len(), classes.len()), (8, 0), "level {level}");
    }
}
