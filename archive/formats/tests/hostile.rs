//! Files made to hurt a reader: every whole record in them is found, at a cost no larger than their length.

use archive_formats::defect::{Action, Class, DefectPolicy};
use archive_formats::warc::Builder;
use archive_formats::warc::{Compression, WarcReader, WarcType};
use tools_testing::{PieceReader, Random};

use crate::files::{DATE, ReadRecord, frame, member, read, read_all};

/// Makes a record that announces a length.
fn record(number: u32, block: &[u8], length: usize) -> Vec<u8> {
    let builder =
        Builder::new(WarcType::Resource, &format!("urn:x:{number}"), DATE).target_uri("http://a/");
    let mut bytes = builder.render_head(length as u64).unwrap();
    bytes.extend_from_slice(block);
    bytes.extend_from_slice(b"\r\n\r\n");
    bytes
}

fn good(number: u32, size: usize) -> Vec<u8> {
    let mut dice = Random::new(u64::from(number) + 7);
    // Half of the block can be compressed.
    let block: Vec<u8> = (0..size)
        .map(|_| b"0123456789abcdef"[dice.index(16)])
        .collect();
    record(number, &block, size)
}

fn ids(seen: &[ReadRecord]) -> Vec<&str> {
    seen.iter().map(|seen| seen.id.as_str()).collect()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut context = zstd_safe::CCtx::create();
    let sums = zstd_safe::CParameter::ChecksumFlag(true);
    context.set_parameter(sums).unwrap();
    frame(&mut context, bytes)
}

fn whole(seen: &[ReadRecord]) -> usize {
    seen.iter().filter(|seen| seen.end.complete).count()
}

/// Fails if a record with a length beyond its member or frame swallows the record of the next one.
#[test]
fn length_beyond_member_costs_no_other_record() {
    for pack in [member, zstd] {
        let first = pack(&record(1, b"hello", 2000));
        let file = [first.clone(), pack(&good(2, 5)), pack(&good(3, 5))].concat();
        let (seen, classes) = read(&file);
        assert_eq!(ids(&seen), ["urn:x:1", "urn:x:2", "urn:x:3"]);
        assert_eq!(classes, [Class::WrongLength]);
        assert_eq!(seen[0].end.index_length, Some(first.len() as u64));
        assert_eq!(seen[1].end.offset, first.len() as u64);
        assert_eq!(whole(&seen), 2);
    }
}

/// Fails if the search behind damage gives up a frame of zstandard whose first block is large.
#[test]
fn frames_with_large_blocks_are_found_behind_damage() {
    let frames: Vec<Vec<u8>> = (0..40).map(|number| zstd(&good(number, 60_000))).collect();
    assert!(frames[1].len() > 20_000);
    let mut file = frames.concat();
    file[frames[0].len() - 100] ^= 1;
    let (seen, _) = read(&file);
    assert_eq!(whole(&seen), 39);
}

/// Fails if the search behind damage passes over a gzip member because its header is long.
#[test]
fn member_with_long_header_is_found_behind_damage() {
    let with_extra = |number| {
        let plain = member(&good(number, 50));
        let mut bytes = plain[..10].to_vec();
        bytes[3] = 4;
        bytes.extend_from_slice(&9000_u16.to_le_bytes());
        bytes.extend_from_slice(&[7; 9000]);
        bytes.extend_from_slice(&plain[10..]);
        bytes
    };
    let members: Vec<Vec<u8>> = (0..20).map(with_extra).collect();
    let mut file = members.concat();
    // The byte begins a block of a kind that does not exist.
    file[9012] = 0xff;
    let (seen, _) = read(&file);
    assert_eq!(whole(&seen), 19);
}

/// Fails if a damaged first byte makes a compressed file pass for a plain one, or costs more than the first record.
#[test]
fn a_damaged_first_byte_costs_the_first_record() {
    for pack in [member, zstd] {
        // The second record lies behind all bytes that are tried together.
        let records: Vec<Vec<u8>> = (0..30)
            .map(|number| pack(&good(number, if number == 0 { 1_500_000 } else { 3000 })))
            .collect();
        let mut file = records.concat();
        file[0] ^= 1;
        let (seen, classes) = read(&file);
        assert_eq!((whole(&seen), classes), (29, vec![Class::Garbage]));
        assert_eq!(seen[0].end.offset, records[0].len() as u64);
        let mut reader = WarcReader::new(file.as_slice());
        reader.next_record().unwrap();
        assert_ne!(reader.compression(), Compression::Plain);
        for size in [1, 3, 4096] {
            let (dripped, _) = read_all(
                PieceReader::new(&file, size),
                DefectPolicy::one_action(Action::Report),
            );
            assert_eq!(dripped, seen, "{size}");
        }
    }
}

/// Fails if the wrong length of a skippable frame hides records behind it, or a right length counts as a defect.
#[test]
fn skippable_frame_of_wrong_length_hides_no_record() {
    let frames: Vec<Vec<u8>> = (0..100).map(|number| zstd(&good(number, 3000))).collect();
    let note = |length: u32| [&b"\x50\x2a\x4d\x18"[..], &length.to_le_bytes(), b"note"].concat();
    let with = |length| [note(length), frames.concat()].concat();
    let (seen, classes) = read(&with(4));
    assert_eq!((whole(&seen), classes.len()), (100, 0));
    for (length, class) in [
        (100_000, Class::Garbage),
        (5, Class::Garbage),
        (4 << 20, Class::Cut),
        (u32::MAX, Class::Garbage),
    ] {
        let (seen, classes) = read(&with(length));
        assert_eq!((whole(&seen), classes), (100, vec![class]), "{length}");
        assert_eq!(seen[0].end.offset, 12);
    }
    // A long skippable frame with the right length is not a defect.
    let mut table = note(1_000_000);
    table.resize(1_000_008, 7);
    let (seen, classes) = read(&[frames.concat(), table, frames[0].clone()].concat());
    assert_eq!((whole(&seen), classes.len()), (101, 0));
}

/// Fails if a dictionary behind the first frame is decompressed: a few hundred bytes each would cost megabytes of work.
#[test]
fn only_first_frame_gives_dictionary() {
    // A dictionary that cannot be decompressed: a reader that tries reports it.
    let mut stored = zstd(&[7; 1000]);
    let checksum = stored.len() - 1;
    stored[checksum] ^= 1;
    let length = u32::try_from(stored.len()).unwrap();
    let dictionary = [&b"\x5d\x2a\x4d\x18"[..], &length.to_le_bytes(), &stored].concat();
    let record = zstd(&good(1, 5));
    let (_, classes) = read(&[dictionary.as_slice(), &record].concat());
    assert!(classes.contains(&Class::Dictionary), "{classes:?}");
    let note = b"\x50\x2a\x4d\x18\0\0\0\0";
    for before in [&note[..], &record] {
        let file = [before, &dictionary.repeat(20), &record].concat();
        let (seen, classes) = read(&file);
        assert_eq!(classes, [], "{}", before.len());
        assert_eq!(seen.last().map(|seen| seen.id.as_str()), Some("urn:x:1"));
    }
}

/// Fails if every member that begins within another one is inflated to its end, so that one bomb costs hundreds of
/// times its size.
#[test]
fn members_in_each_other_are_not_all_inflated() {
    const HEAD: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\xff";
    let zeros = vec![0; 40_000_000];
    let bomb = member(&zeros);
    // The bomb lacks its end, and continues with a block of a kind that does not exist.
    let bomb = [&bomb[10..bomb.len() - 2000], &[0xff; 2000]].concat();
    let mut nest = Vec::new();
    for _ in 0..600 {
        let content = [b"WARC/1\n\n", nest.as_slice()].concat();
        let length = u16::try_from(content.len()).unwrap();
        nest = [
            HEAD,
            &[0],
            &length.to_le_bytes(),
            &(!length).to_le_bytes(),
            &content,
        ]
        .concat();
    }
    // The bomb runs over a few of these members before it breaks.
    let file = [nest, bomb, member(&good(1, 5)).repeat(100)].concat();
    let mut reader = WarcReader::new(file.as_slice());
    let mut inflated = 0;
    let mut last = None;
    while let Some(record) = reader.next_record().unwrap() {
        let end = record.read_end().unwrap();
        inflated += end.block_length;
        last = Some(end);
    }
    assert!(inflated < 10 * 40_000_000, "{inflated}");
    assert!(last.unwrap().complete);
}

/// Fails if the defect of a wrong length does not tell that the bytes behind it were not searched for other records.
#[test]
fn wrong_length_defect_says_search_was_skipped() {
    let mut file = record(0, &[], 900_000);
    file.extend((1..6000).flat_map(|number| good(number, 50)));
    for file in [file.clone(), member(&file)] {
        let (seen, _) = read_all(file.as_slice(), DefectPolicy::default());
        let defect = &seen[0].end.defects[0];
        assert_eq!((defect.class, defect.offset), (Class::WrongLength, 0));
        assert!(
            defect.words.contains("no other record was looked for"),
            "{defect}"
        );
    }
}

/// Fails if bytes behind wrong lengths are given out again for each record that claims them, or a right length is
/// doubted.
#[test]
fn nested_blocks_are_given_out_once() {
    let file: Vec<u8> = (0..20_000)
        .flat_map(|number| record(number, b"abc", 60_000))
        .collect();
    let (seen, _) = read(&file);
    // A length may happen to lead to the end of another record.
    assert!(seen.len() > 18_000, "{}", seen.len());
    let blocks: usize = seen.iter().map(|seen| seen.block.len()).sum();
    // The rest at the end is short, but nothing shows that it is.
    assert!(blocks < 3 * file.len() + 600 * 60_000, "{blocks}");
    // A record whose length is right is read as it is, whatever its block contains.
    let inner = good(9, 20);
    let file = [
        record(1, b"abc", 500),
        record(2, &inner, inner.len()),
        good(3, 2000),
    ]
    .concat();
    let (seen, classes) = read(&file);
    assert_eq!(ids(&seen), ["urn:x:1", "urn:x:2", "urn:x:3"]);
    assert_eq!((whole(&seen), classes), (2, vec![Class::WrongLength]));
}

/// Fails if a record gets the offset of the torn member before it, or the bytes of that member in its length.
#[test]
fn record_behind_torn_member_has_own_offset() {
    let torn = member(b"WA");
    let whole = member(&good(1, 5));
    let (seen, classes) = read(&[torn.clone(), whole.clone()].concat());
    assert_eq!(classes, [Class::Garbage]);
    assert_eq!(seen[0].end.offset, torn.len() as u64);
    assert_eq!(seen[0].end.length, Some(whole.len() as u64));
    assert_eq!(seen[0].end.defects[0].offset, 0);
}

/// Fails if a WARC record in the block of an ARC record is taken for a record of the file, or a line in a WARC file for
/// ARC.
#[test]
fn an_arc_file_stays_one() {
    let line = |number: u32, block: &str, length: usize| {
        format!("http://a/{number} 1.2.3.4 20080430204825 text/plain {length}\n{block}\n")
    };
    let warc = "WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 2\r\n\r\nhi\r\n\r\n";
    let file = [
        "filedesc://a.arc 0.0.0.0 20080430204825 text/plain 14\n1 0 X\nURL IP\n\n\n".to_owned(),
        line(1, "abc", 3),
        line(2, warc, warc.len() + 20),
        line(3, "abc", 3),
        line(4, "abc", 300),
        line(5, "abc", 3),
    ]
    .concat();
    for file in [file.as_bytes().to_vec(), member(file.as_bytes())] {
        let (seen, _) = read(&file);
        assert!(seen.iter().all(|seen| seen.kind != WarcType::Resource));
    }
    let (seen, _) = read(file.as_bytes());
    assert_eq!(seen.len(), 6);
    // A line that is content of a damaged WARC file does not make it an ARC file.
    let junk = format!("junk\n{}{}", line(1, "abc", 90), "more\n".repeat(30));
    let file = [junk.into_bytes(), good(1, 5), good(2, 5)].concat();
    let (seen, _) = read(&file);
    assert_eq!(whole(&seen), 2);
}
