//! The results of a reader for files that are as they should be, or nearly.

use std::io::{Cursor, Read};

use zstd_safe::{CCtx, CParameter};

use archive_formats::defect::{Action, Class, DefectPolicy};
use archive_formats::warc::{
    Compression, Dictionary, ReadRecordError, ReaderOptions, Version, WarcReader, WarcType,
};
use tools_testing::PieceReader;

use crate::files::{crawl, frame, gzip, member, plain, read, read_all};

fn check(source: &[u8], expected: &[Class], records: usize) {
    let (seen, classes) = read(source);
    let shown = String::from_utf8_lossy(&source[..source.len().min(300)]).into_owned();
    assert_eq!(classes, expected, "{shown}");
    assert_eq!(seen.len(), records, "{shown}");
}

/// Fails if the offset or length of a record leaves out a byte of the record, or takes in one of its neighbour.
#[test]
fn offsets_and_lengths_lead_to_each_record_alone() {
    let records = crawl();
    for (file, compression) in [
        (plain(&records), Compression::Plain),
        (gzip(&records), Compression::Gzip),
    ] {
        let (seen, classes) = read(&file);
        assert_eq!((seen.len(), classes.len()), (records.len(), 0));
        let mut offset = 0;
        for (seen, (head, block)) in seen.iter().zip(&records) {
            assert!(seen.header == *head && seen.block == *block);
            assert_eq!(seen.end.offset, offset);
            let length = seen.end.length.unwrap();
            offset += length;
            assert!(seen.end.complete && !seen.end.shared);
            // The range alone is the record, and so is the record that begins at the offset.
            let from = usize::try_from(seen.end.offset).unwrap();
            let range = &file[from..from + usize::try_from(length).unwrap()];
            let (alone, none) = read(range);
            assert_eq!((alone.len(), none.len()), (1, 0));
            assert!(alone[0].block == *block);
            let mut reader = WarcReader::open_at(Cursor::new(&file), seen.end.offset).unwrap();
            let record = reader.next_record().unwrap().unwrap();
            assert_eq!(record.offset(), seen.end.offset);
            assert_eq!(record.header().raw(), head);
            assert_eq!(reader.compression(), compression);
        }
        assert_eq!(offset, file.len() as u64);
    }
}

/// Fails if the records or defects of a file depend on how many bytes each read returns.
#[test]
fn pieces_of_input_do_not_matter() {
    let records = crawl();
    for file in [plain(&records), gzip(&records), member(&plain(&records))] {
        let whole = read_all(file.as_slice(), DefectPolicy::default());
        for size in [1, 7, 4096] {
            let dripped = read_all(PieceReader::new(&file, size), DefectPolicy::default());
            assert!(dripped == whole, "{size}");
        }
    }
}

/// Fails if a record within a shared member passes for one that can be read alone, or the sharing is not reported.
#[test]
fn one_member_for_the_whole_file() {
    let file = member(&plain(&crawl()));
    let (seen, classes) = read(&file);
    assert_eq!(classes, [Class::Shared]);
    assert_eq!(seen.len(), 8);
    assert!(
        seen.iter()
            .all(|seen| seen.end.shared && seen.end.offset == 0)
    );
    let positions: Vec<_> = seen.iter().map(|seen| seen.end.in_member).collect();
    assert!(positions.is_sorted() && positions[1] > 0);
}

/// Fails if the end of a member ends the record that continues in the next member.
#[test]
fn records_over_several_members() {
    let file = plain(&crawl());
    for size in [3, 100, 5000] {
        let file: Vec<u8> = file[..2000].chunks(size).flat_map(member).collect();
        let (seen, _) = read(&file);
        let whole = read(&plain(&crawl())[..2000]).0;
        assert_eq!(seen.len(), whole.len(), "{size}");
        assert_eq!(seen[0].block, whole[0].block);
        assert!(seen[0].end.complete);
    }
    // The record is cut within its block: one record, four members, nothing lost.
    let records = &crawl()[..1];
    let plain = plain(records);
    let file = [
        &plain[..20],
        &plain[20..170],
        &plain[170..plain.len() - 2],
        &plain[plain.len() - 2..],
    ]
    .into_iter()
    .flat_map(member)
    .collect::<Vec<_>>();
    let (seen, classes) = read(&file);
    assert_eq!(classes, [Class::Spans]);
    assert_eq!(seen[0].end.length, Some(file.len() as u64));
    assert_eq!(seen[0].end.members, 4);
}

/// Fails if the dictionary at the beginning of a file is not used from an offset or behind a hole, or a huge window is
/// allocated.
#[test]
fn zstd_with_and_without_a_dictionary() {
    let records = crawl();
    let mut context = CCtx::create();
    let mut frame = |bytes: &[u8]| frame(&mut context, bytes);
    let wholes: Vec<Vec<u8>> = records
        .iter()
        .map(|record| plain(std::slice::from_ref(record)))
        .collect();
    let file: Vec<u8> = wholes.iter().flat_map(|whole| frame(whole)).collect();
    check(&file, &[], 8);
    // Header and block lie in frames of their own: one record.
    let file: Vec<u8> = wholes
        .iter()
        .flat_map(|whole| [frame(&whole[..50]), frame(&whole[50..])].concat())
        .collect();
    let (seen, classes) = read(&file);
    assert_eq!((seen.len(), classes.len()), (8, 0));
    let lengths: u64 = seen.iter().filter_map(|seen| seen.end.length).sum();
    assert_eq!(lengths, file.len() as u64);

    let samples: Vec<Vec<u8>> = (0..2000)
        .map(|at| {
            format!(
                "WARC/1.1\r\nWARC-Record-ID: <urn:uuid:{at}>\r\nnumber {}",
                at * 7919
            )
            .into_bytes()
        })
        .collect();
    let sizes: Vec<usize> = samples.iter().map(Vec::len).collect();
    let mut dictionary = vec![0; 4096];
    let length =
        zstd_safe::train_from_buffer(dictionary.as_mut_slice(), &samples.concat(), &sizes).unwrap();
    dictionary.truncate(length);
    let mut with = CCtx::create();
    with.load_dictionary(&dictionary).unwrap();
    let frames: Vec<Vec<u8>> = wholes
        .iter()
        .map(|whole| crate::files::frame(&mut with, whole))
        .collect();
    let body = frames.concat();
    for stored in [dictionary.clone(), frame(&dictionary)] {
        let mut file = vec![0x5d, 0x2a, 0x4d, 0x18];
        file.extend_from_slice(&u32::try_from(stored.len()).unwrap().to_le_bytes());
        file.extend_from_slice(&stored);
        let first = file.len() + frames[0].len();
        file.extend_from_slice(&body);
        check(&file, &[], 8);
        let mut reader = WarcReader::open_at(Cursor::new(&file), first as u64).unwrap();
        let record = reader.next_record().unwrap().unwrap();
        assert_eq!(record.kind(), WarcType::Response);
        assert!(record.read_end().unwrap().complete);
        // The dictionary is also known behind bytes that cannot be read.
        let known = reader.known_format().unwrap();
        let dictionary = Dictionary::read_dictionary(file.as_slice()).unwrap();
        assert!(dictionary.is_some());
        let options = ReaderOptions {
            offset: first as u64 - 5,
            ..ReaderOptions::default()
        };
        let mut reader =
            WarcReader::resume_at(&file[first - 5..], options, known, dictionary).unwrap();
        let record = reader.next_record().unwrap().unwrap();
        assert_eq!(record.offset(), first as u64);
        assert!(record.read_end().unwrap().complete);
    }
    check(&body, &[Class::Dictionary, Class::NoRecord], 0);
    // A window beyond the bound is refused, not allocated.
    let mut wide = CCtx::create();
    wide.set_parameter(CParameter::WindowLog(27)).unwrap();
    let file = crate::files::frame(&mut wide, &plain(&records).repeat(50));
    let (seen, classes) = read(&file);
    assert_eq!((seen.len(), classes[0]), (0, Class::Deflate));
}

/// Fails if the second version of ARC is read as the first one, or a URL with a blank is cut there.
#[test]
fn arc_is_a_dialect() {
    let file = b"filedesc://a.arc 0.0.0.0 20080430204825 text/plain 15\n2 0 X\nURL IP\n\n\n\
        http://a/b c 1.2.3.4 20080430204825 text/html 200 X - 70 a.arc 22\nHTTP/1.1 200 OK\r\n\r\nabc\n\
        dns:a 1.2.3.4 20080430204825 text/dns 200 X - 99 a.arc 1\nx\n";
    for file in [file.to_vec(), member(file)] {
        let mut reader = WarcReader::new(file.as_slice());
        let record = reader.next_record().unwrap().unwrap();
        assert_eq!(
            (record.kind(), record.version()),
            (WarcType::ArcHeader, Version::Arc2)
        );
        let record = reader.next_record().unwrap().unwrap();
        assert_eq!(
            (record.kind(), record.version()),
            (WarcType::Response, Version::Arc2)
        );
        assert_eq!(
            record.header().read_uri("WARC-Target-URI").as_deref(),
            Some("http://a/b c")
        );
        assert_eq!(
            record.arc().unwrap().two.as_ref().unwrap().result_code,
            b"200"
        );
        assert!(record.header().raw().ends_with(b" 22\n"));
        let record = reader.next_record().unwrap().unwrap();
        assert_eq!(
            record.header().text_of("content-type").as_deref(),
            Some("text/dns")
        );
        assert!(record.read_end().unwrap().complete);
        assert!(reader.next_record().unwrap().is_none());
    }
}

/// Fails if an empty file or one of another format passes for an archive file that has no records.
#[test]
fn empty_or_foreign_file_is_reported() {
    check(b"", &[Class::Empty], 0);
    check(b"x", &[Class::Garbage, Class::NoRecord], 0);
    check(b"\x1f", &[Class::Cut, Class::NoRecord], 0);
    check(&[0; 5000], &[Class::Garbage, Class::NoRecord], 0);
    check(
        b"<html>\nhttp://a/ b c\n</html>\n",
        &[Class::Garbage, Class::NoRecord],
        0,
    );
    check(
        &b"line\n".repeat(200_000),
        &[Class::Garbage, Class::NoRecord],
        0,
    );
    check(&member(b"hello"), &[Class::Garbage, Class::NoRecord], 0);
    check(&member(b""), &[Class::NoRecord], 0);
}

/// Fails if an oddity of one record costs a neighbour, or is passed over without its defect.
#[test]
fn odd_records_are_read_and_reported() {
    let with = |head: &str, block: &str| {
        format!(
            "{head}\r\nWARC-Type: resource\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    };
    let good = with("WARC/1.1", "abc");
    check(good.as_bytes(), &[], 1);
    check(with("WARC/3.7", "abc").as_bytes(), &[Class::Version], 1);
    check(
        with("WARC/1.1\r\nno field", "abc").as_bytes(),
        &[Class::Field],
        1,
    );
    let lf = good.replace("\r\n", "\n");
    check(
        (lf.clone() + &lf).as_bytes(),
        &[
            Class::LineEnding,
            Class::Trailer,
            Class::LineEnding,
            Class::Trailer,
        ],
        2,
    );
    check(
        good.replace("resource", "zebra").as_bytes(),
        &[Class::UnknownType],
        1,
    );
    check(
        good.replace("WARC-Type", "X").as_bytes(),
        &[Class::MissingType],
        1,
    );
    for (length, class) in [
        ("X: 3", Class::MissingLength),
        ("Content-Length: abc", Class::BadLength),
    ] {
        let bad = good.replace("Content-Length: 3", length);
        let file = bad + &good;
        check(file.as_bytes(), &[class], 2);
        assert_eq!(read(file.as_bytes()).0[0].block, b"abc\r\n\r\n");
    }
    for too_short in ["0", "1"] {
        let bad = good.replace("Length: 3", &format!("Length: {too_short}"));
        check(
            (bad + &good).as_bytes(),
            &[Class::WrongLength, Class::Garbage],
            2,
        );
    }
    // The announced length reaches into the next record, which is found again.
    let bad = good.replace("Length: 3", "Length: 30");
    check(
        (bad.clone() + &good + &good).as_bytes(),
        &[Class::WrongLength],
        3,
    );
    check(
        (bad.replace("30", "3000000") + &good + &good).as_bytes(),
        &[Class::Cut],
        3,
    );
    check(
        (String::from("junk\n") + &good + "junk\njunk\n" + &good + "junk").as_bytes(),
        &[Class::Garbage; 3],
        2,
    );
    check(
        (good.trim_end().to_owned() + &good).as_bytes(),
        &[Class::Trailer],
        2,
    );
    let cut = "WARC/1.1\r\nWARC-Ty\r\n".to_owned() + &good;
    check(cut.as_bytes(), &[Class::HeaderCut], 1);
    check(
        &[member(b"WARC/1.1\r\nWARC-Ty"), member(good.as_bytes())].concat(),
        &[Class::HeaderCut],
        1,
    );
}

/// A reader that notes the largest buffer that it is given: it grows with the bytes that are held.
struct LargestRead<'a> {
    bytes: &'a [u8],
    largest: usize,
}

impl Read for LargestRead<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.largest = self.largest.max(buffer.len());
        self.bytes.read(buffer)
    }
}

/// Fails if a header may have any length, is held beyond the limit of a mebibyte, or costs the record behind it.
#[test]
fn header_of_ten_megabytes_is_not_held() {
    let good = "WARC/1.1\r\nWARC-Type: resource\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n";
    let long = format!(
        "WARC/1.1\r\n{}\r\n\r\n{good}",
        "A: bcdefg\r\n".repeat(1_000_000)
    );
    check(long.as_bytes(), &[Class::HeaderTooLong, Class::Garbage], 1);
    let line = format!("WARC/1.1\r\nA: {}\r\n\r\n{good}", "b".repeat(10_000_000));
    check(line.as_bytes(), &[Class::HeaderTooLong, Class::Garbage], 1);
    check(
        &member(line.as_bytes()),
        &[Class::HeaderTooLong, Class::Garbage],
        1,
    );
    for file in [long, line] {
        let mut source = LargestRead {
            bytes: file.as_bytes(),
            largest: 0,
        };
        read_all(&mut source, DefectPolicy::default());
        assert!(source.largest < 3 << 20, "{} bytes", source.largest);
    }
}

/// Fails if a member that expands a thousandfold is cut or refused, or gets a wrong length.
#[test]
fn a_bomb_is_a_long_stream() {
    let head = "WARC/1.1\r\nWARC-Type: resource\r\nContent-Length: 300000000\r\n\r\n";
    let zeros = std::io::repeat(0).take(300_000_000);
    let source = head.as_bytes().chain(zeros).chain(&b"\r\n\r\n"[..]);
    let mut bomb = Vec::new();
    flate2::read::GzEncoder::new(source, flate2::Compression::new(9))
        .read_to_end(&mut bomb)
        .unwrap();
    let mut reader = WarcReader::new(bomb.as_slice());
    let end = reader.next_record().unwrap().unwrap().read_end().unwrap();
    assert_eq!((end.block_length, end.complete), (300_000_000, true));
    assert_eq!(end.length, Some(bomb.len() as u64));
}

/// Fails if a refused defect ends the reading of a file, or an ignored one is reported.
#[test]
fn refused_defect_is_error_and_reading_continues() {
    let mut file = gzip(&crawl());
    let last = file.len() - 6;
    file[last] ^= 1;
    file.extend_from_slice(b"junk");
    let options = ReaderOptions {
        policy: DefectPolicy::strict_policy(),
        ..ReaderOptions::default()
    };
    let mut reader = WarcReader::with_options(file.as_slice(), options);
    let mut records = 0;
    let mut refused = Vec::new();
    loop {
        match reader.next_record() {
            Ok(Some(_)) => records += 1,
            Ok(None) => break,
            Err(ReadRecordError::Refused(defect)) => refused.push(defect.class),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(records, 8);
    assert_eq!(refused[0], Class::Crc);
    let (_, defects) = read_all(file.as_slice(), DefectPolicy::one_action(Action::Ignore));
    assert!(defects.is_empty());
}

/// Fails if records are passed over whose version line or date is in small letters.
#[test]
fn literals_are_read_in_any_case() {
    let record = |version: &str, block: &str| {
        let length = block.len();
        format!(
            "{version}\r\nwarc-type: resource\r\nWARC-Record-ID: <urn:a>\r\nWARC-Target-URI: http://a/x\r\n\
             WARC-Date: 2020-01-02t03:04:05z\r\nContent-Length: {length}\r\n\r\n{block}\r\n\r\n"
        )
    };
    let file =
        record("warc/1.0", "one") + &record("Warc/1.1", "two") + &record("WARC/1.1", "three");
    check(file.as_bytes(), &[], 3);
    let (seen, _) = read(file.as_bytes());
    assert_eq!(seen[1].block, b"two");
    let mut reader = WarcReader::new(file.as_bytes());
    let record = reader.next_record().unwrap().unwrap();
    assert_eq!(record.version(), Version::Warc1_0);
    let extracted = archive_formats::cdx::extract_capture(record, "a.warc").unwrap();
    assert!(extracted.capture.is_some());
    // The same records are found behind garbage.
    let torn = format!("garbage\n{file}");
    let (seen, _) = read(torn.as_bytes());
    assert_eq!(seen.len(), 3);
}
