//! Files cut at every byte, and with bits flipped: never a panic, never an endless loop, and every whole record is
//! found.

use archive_formats::defect::Class;
use tools_testing::Random;

use crate::files::{ReadRecord, crawl, frame, gzip, member, plain, read};

fn small() -> Vec<(Vec<u8>, Vec<u8>)> {
    let records = crawl().into_iter();
    records.filter(|(_, block)| block.len() < 1000).collect()
}

const ARC: &[u8] = b"filedesc://a.arc 0.0.0.0 20080430204825 text/plain 14\n1 0 X\nURL IP\n\n\n\
    http://a/b 1.2.3.4 20080430204825 text/html 22\nHTTP/1.1 200 OK\r\n\r\nabc\n\
    dns:a 1.2.3.4 20080430204825 text/dns 1\nx\n";

pub(crate) fn files() -> Vec<Vec<u8>> {
    let records = small();
    let frames = |with_sums: bool| {
        let mut context = zstd_safe::CCtx::create();
        let sums = zstd_safe::CParameter::ChecksumFlag(with_sums);
        context.set_parameter(sums).unwrap();
        let records = records.iter().map(std::slice::from_ref);
        records
            .flat_map(|record| frame(&mut context, &plain(record)))
            .collect()
    };
    vec![
        plain(&records),
        gzip(&records),
        frames(false),
        frames(true),
        member(&plain(&records)),
        ARC.to_vec(),
        member(ARC),
    ]
}

/// Fails if a file that is cut anywhere loses a record before the cut, or passes for whole.
#[test]
fn every_prefix_is_read_politely() {
    for file in files() {
        let whole = read(&file).0;
        for length in 0..file.len() {
            let (seen, classes) = read(&file[..length]);
            assert!(!classes.is_empty() || seen.len() < whole.len(), "{length}");
            // The records before the cut are as they were.
            for (seen, whole) in seen.iter().zip(&whole) {
                if seen.end.complete {
                    assert_eq!(seen.header, whole.header, "{length}");
                    assert_eq!(seen.block, whole.block, "{length}");
                }
            }
            let complete = seen.iter().filter(|seen| seen.end.complete).count();
            let before = whole.iter().filter(|seen| {
                seen.end
                    .length
                    .is_some_and(|size| seen.end.offset + size <= length as u64)
            });
            assert!(complete >= before.count(), "{length}");
        }
    }
}

/// Fails if a flipped bit in one gzip member costs or moves the record of another member.
#[test]
fn flipped_bit_in_member_costs_one_record() {
    let records = small();
    let file = gzip(&records);
    let whole = read(&file).0;
    for at in 0..file.len() {
        let mut damaged = file.clone();
        damaged[at] ^= 1 << (at % 8);
        let (seen, _) = read(&damaged);
        let hit = whole
            .iter()
            .rposition(|seen| seen.end.offset <= at as u64)
            .unwrap();
        for (number, record) in whole.iter().enumerate() {
            if number != hit {
                assert!(
                    seen.iter().any(|seen| seen.id == record.id
                        && seen.block == record.block
                        && seen.end.offset == record.end.offset),
                    "byte {at} of record {hit} cost record {number}"
                );
            }
        }
    }
}

/// Fails if a flipped bit in a file without compression costs more than its record and the next one.
#[test]
fn flipped_bit_in_plain_file_costs_two_records() {
    let file = plain(&small());
    let whole = read(&file).0;
    for at in 0..file.len() * 8 {
        let mut damaged = file.clone();
        damaged[at / 8] ^= 1 << (at % 8);
        let (seen, _) = read(&damaged);
        let hit = whole
            .iter()
            .rposition(|seen| seen.end.offset <= (at / 8) as u64)
            .unwrap();
        for (number, record) in whole.iter().enumerate() {
            // The line end before a record shows where it begins.
            if number != hit && number != hit + 1 {
                let is_same = |seen: &ReadRecord| {
                    seen.id == record.id && seen.end.offset == record.end.offset
                };
                assert!(
                    seen.iter().any(is_same),
                    "bit {at} of record {hit} cost record {number}"
                );
            }
        }
    }
}

/// Fails if a frame of zstandard with a wrong checksum passes for whole, or costs another record.
#[test]
fn frame_with_wrong_end_is_passed_over() {
    let mut context = zstd_safe::CCtx::create();
    let sums = zstd_safe::CParameter::ChecksumFlag(true);
    context.set_parameter(sums).unwrap();
    let records = small();
    let frames: Vec<Vec<u8>> = records
        .iter()
        .map(|record| frame(&mut context, &plain(std::slice::from_ref(record))))
        .collect();
    // Flips a bit in the first frame, the one in the middle and the last.
    for wrong in [0, frames.len() / 2, frames.len() - 1] {
        let mut damaged = frames.clone();
        *damaged[wrong].last_mut().unwrap() ^= 1;
        let (seen, classes) = read(&damaged.concat());
        assert!(classes.contains(&Class::Crc), "{classes:?}");
        let whole = seen.iter().filter(|seen| seen.end.complete).count();
        assert_eq!(whole, records.len() - 1, "{classes:?}");
    }
}

/// Fails if overwritten, removed or inserted bytes cost more than their record, or are reported as more than one
/// defect.
#[test]
fn damage_in_the_middle_is_located() {
    let records = crawl();
    let file = gzip(&records);
    let large = &read(&file).0[4];
    let offset = large.end.offset;
    let length = large.end.length.unwrap();
    let mut damaged = file.clone();
    let middle = usize::try_from(offset + length / 2).unwrap();
    damaged[middle..middle + 100].fill(0xa5);
    let (seen, classes) = read(&damaged);
    assert_eq!(seen.len(), 8);
    assert_eq!(classes.len(), 1, "{classes:?}");
    let defect = &seen[4].end.defects[0];
    assert!(
        matches!(defect.class, Class::Deflate | Class::Crc),
        "{defect}"
    );
    assert_eq!(defect.record.as_deref(), Some("<urn:uuid:5>"));
    assert!(!seen[4].end.complete && seen[5].end.complete);
    // Bytes were inserted or removed.
    let cut = [&file[..middle], &file[middle + 5000..]].concat();
    let (seen, classes) = read(&cut);
    assert_eq!((seen.len(), classes.len()), (8, 1), "{classes:?}");
    let at = usize::try_from(offset).unwrap();
    let padded = [&file[..at], &[0; 512], &file[at..]].concat();
    assert_eq!(read(&padded).1, [Class::Padding]);
    let padded = [&file[..at], &b"\x07".repeat(100_000), &file[at..]].concat();
    let (seen, classes) = read(&padded);
    assert_eq!((seen.len(), classes), (8, vec![Class::Garbage]));
    let headless = &file[1..];
    let (seen, classes) = read(headless);
    assert_eq!((seen.len(), classes), (7, vec![Class::Garbage]));
}

/// Fails if a file of mixed pieces makes the reader panic, give out records out of order, or many times the bytes of
/// the file.
#[test]
fn nothing_that_was_thrown_together_stops_a_reader() {
    let files = files();
    let mut dice = Random::new(0x9e37_79b9_7f4a_7c15);
    for round in 0..6000 {
        let mut file = files[round % files.len()].clone();
        for _ in 0..=dice.index(8) {
            let at = dice.index(file.len());
            match dice.index(5) {
                0 => file[at] ^= 1 << dice.index(8),
                1 => file[at] = b"\n\r :0"[dice.index(5)],
                2 => file.truncate(at.max(1)),
                3 => {
                    let to = (at + dice.index(300)).min(file.len());
                    let piece = file[at..to].to_vec();
                    let into = dice.index(file.len());
                    file.splice(into..into, piece);
                }
                _ => {
                    let other = &files[dice.index(files.len())];
                    let from = dice.index(other.len());
                    let to = (from + dice.index(500)).min(other.len());
                    file.splice(at..at, other[from..to].iter().copied());
                }
            }
        }
        let (seen, _) = read(&file);
        let blocks: usize = seen.iter().map(|seen| seen.block.len()).sum();
        assert!(blocks <= 100 * file.len() + 100_000, "round {round}");
        assert!(
            seen.is_sorted_by_key(|seen| seen.end.offset),
            "round {round}"
        );
    }
}

/// Fails if each beginning that leads to no record is searched from there to the end of the file: time in the square.
#[test]
fn file_of_beginnings_is_read_in_linear_time() {
    for piece in [
        &b"\x1f\x8b\x08\x00"[..],
        b"\x1f\x8b\x08\x08AAAA",
        b"\x1f\x8b\x08\x00\0\0\0\0\0\xff\0\0\0\xff\xff",
        b"WARC/1.0\r\n",
        b"WARC/1.0\r\nContent-Length: 60000\r\n\r\n",
        b"http://a/ 1.2.3.4 20080430204825 text/html 60000\n",
        b"\x28\xb5\x2f\xfd\x20",
        b"\n",
    ] {
        let file = piece.repeat(1_000_000 / piece.len());
        let started = std::time::Instant::now();
        let mut found = 0_u64;
        let mut reader = archive_formats::warc::WarcReader::new(file.as_slice());
        while reader.next_record().unwrap().is_some() {
            found += 1;
        }
        let taken = started.elapsed();
        assert!(found <= file.len() as u64);
        // Time in the square of the length would be hours.
        assert!(taken.as_secs() < 60, "{taken:?} {piece:?}");
    }
}
