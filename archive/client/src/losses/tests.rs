//! Damage at every place of small files of every kind: nothing is named that is whole, and nothing damaged is kept
//! quiet.

#![expect(
    clippy::single_range_in_vec_init,
    reason = "one damaged stretch is a list of one range"
)]

mod made;

use archive_formats::warc::WarcWriter;
use bytes::Bytes;

use super::*;
use made::{Made, files, found, url, write};
use tools_testing::noise;

fn meet(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    a.start.max(b.start)..a.end.min(b.end)
}

/// Checks what must hold when `holes` are good nowhere.
fn check_lost(made: &Made, holes: &[Range<u64>]) {
    let losses = found(made, holes, holes);
    let at = format!("{} {holes:?}: {losses:#?}", made.name);
    assert!(!losses.not_an_archive_file && losses.omitted == 0, "{at}");
    let unknown: Vec<Range<u64>> = losses
        .unknown
        .iter()
        .map(|span| span.start..span.end)
        .collect();
    for (extent, url) in &made.records {
        let hit: Vec<_> = holes
            .iter()
            .map(|hole| meet(hole, extent))
            .filter(|hit| !hit.is_empty())
            .collect();
        let named = losses
            .records
            .iter()
            .find(|record| record.offset == extent.start);
        let is_unknown = |hit: &Range<u64>| {
            unknown
                .iter()
                .any(|span| span.start <= hit.start && hit.end <= span.end)
        };
        match named {
            Some(record) => {
                assert!(!hit.is_empty(), "{url} is whole, and named; {at}");
                assert!(
                    record.url.as_deref().is_none_or(|said| said == url),
                    "{url}; {at}"
                );
                assert!(!record.whole, "{at}");
                assert!(
                    record
                        .length
                        .is_none_or(|length| length == extent.end - extent.start),
                    "{at}"
                );
            }
            None => assert!(hit.iter().all(is_unknown), "{url} is not reported; {at}"),
        }
        // The bytes behind a hole may be the rest of a line, which cannot be distinguished from an ARC record.
        let is_torn = made.name == "a.arc" && holes.iter().any(|hole| hole.end == extent.start);
        if hit.is_empty() && !is_torn {
            assert!(
                unknown.iter().all(|span| meet(span, extent).is_empty()),
                "{url} is whole, and unknown; {at}"
            );
        }
    }
    let known = |record: &LostRecord| {
        made.records
            .iter()
            .any(|(extent, _)| extent.start == record.offset)
    };
    assert!(losses.records.iter().all(known), "{at}");
}

/// Checks the losses if only one copy is damaged: exactly the records in the damage.
fn check_damaged(made: &Made, damaged: &Range<u64>) {
    let losses = found(made, &[], std::slice::from_ref(damaged));
    let hit = made
        .records
        .iter()
        .filter(|(extent, _)| !meet(extent, damaged).is_empty());
    let expected: Vec<_> = hit
        .map(|(extent, url)| {
            let whole = damaged.start <= extent.start && extent.end <= damaged.end;
            (
                extent.start,
                Some(extent.end - extent.start),
                Some(url.clone()),
                whole,
            )
        })
        .collect();
    let named: Vec<_> = losses
        .records
        .iter()
        .map(|record| {
            (
                record.offset,
                record.length,
                record.url.clone(),
                record.whole,
            )
        })
        .collect();
    assert_eq!(named, expected, "{} {damaged:?}", made.name);
    assert!(
        losses.unknown.is_empty() && !losses.not_an_archive_file,
        "{losses:?}"
    );
}

/// Fails if damage at some byte of a small file makes a whole record count as lost, or a damaged record is neither
/// named nor unknown.
#[test]
fn damage_at_every_byte_of_small_files() {
    for made in files(&[5, 0, 200, 30]) {
        let size = made.bytes.len() as u64;
        for length in [1, 5, 90, 700] {
            // A file cannot be recognised as compressed from less than four bytes.
            for start in (0..size).filter(|start| !(1..4).contains(start)) {
                let range = start..(start + length).min(size);
                check_lost(&made, std::slice::from_ref(&range));
                check_damaged(&made, &range);
            }
        }
        check_damaged(&made, &(0..size));
        check_lost(&made, &[0..size]);
    }
}

/// Fails if damage at the edge of a group, over several groups or in two holes makes a whole record count as lost, or
/// hides a damaged one.
#[test]
fn damage_at_every_group_and_in_pairs() {
    let lengths = [
        300, 40_000, 100, 0, 20_000, 90_000, 10, 16_384, 5_000, 7_000, 9_000, 50_000,
    ];
    for made in files(&lengths) {
        let size = made.bytes.len() as u64;
        let group = |number: u64| number * GROUP..((number + 1) * GROUP).min(size);
        let groups = size.div_ceil(GROUP);
        for one in 0..groups {
            check_damaged(&made, &group(one));
            check_lost(&made, &[group(one)]);
            for two in one + 1..groups {
                // Holes that touch count too: a hole may come in pieces.
                check_lost(&made, &[group(one), group(two)]);
                check_damaged(&made, &(group(one).start..group(two).end));
            }
        }
    }
}

const GROUP: u64 = 16_384;

/// Fails if a hole within a record of known length is reported as unknown, or records in the block of a record are
/// named in its place.
#[test]
fn record_with_length_leaves_nothing_unknown() {
    let inner = write(
        WarcWriter::plain_writer(Vec::new()),
        "in.warc",
        [[7; 100].as_slice(); 400].into_iter(),
    );
    let blocks = [[1; 300].as_slice(), &inner.bytes, &[2; 300]];
    let made = write(
        WarcWriter::plain_writer(Vec::new()),
        "a.warc",
        blocks.into_iter(),
    );
    let hole = 2 * GROUP..3 * GROUP;
    let losses = found(
        &made,
        std::slice::from_ref(&hole),
        std::slice::from_ref(&hole),
    );
    assert!(losses.unknown.is_empty(), "{losses:?}");
    let [record] = losses.records.as_slice() else {
        panic!("{losses:?}");
    };
    assert_eq!(
        record.url,
        Some(url(1)),
        "and none of the records in its block"
    );
    assert_eq!(
        record.length,
        Some(made.records[1].0.end - made.records[1].0.start)
    );
    assert_eq!(record.kind, "resource");
    assert_eq!(record.date.as_deref(), Some("2026-11-21T19:14:09Z"));
    assert_eq!(
        record.id.as_deref(),
        Some("urn:uuid:00000000-0000-4000-8000-000000000001")
    );
    let said = record.to_string();
    assert!(
        said.starts_with("partly  offset 5")
            && said.contains("  resource  2026-11-21T19:14:09Z  http://"),
        "{said}"
    );
}

/// Fails if records in one shared member are left out, or many are named that are not damaged.
#[test]
fn a_member_that_spans_records_names_those_around() {
    let blocks: Vec<Vec<u8>> = (1..30).map(|seed| noise(9_000, seed)).collect();
    let plain = write(
        WarcWriter::plain_writer(Vec::new()),
        "a.warc",
        blocks.iter().map(Vec::as_slice),
    );
    let mut bytes = Vec::new();
    let mut encoder =
        flate2::read::GzEncoder::new(plain.bytes.as_slice(), flate2::Compression::fast());
    io::Read::read_to_end(&mut encoder, &mut bytes).unwrap();
    let size = bytes.len() as u64;
    let made = Made {
        name: "a.warc.gz",
        bytes,
        records: vec![],
    };
    let mut told = 0;
    for group in 0..size / GROUP {
        let range = group * GROUP..(group + 1) * GROUP;
        let said = |losses: &Losses| {
            losses
                .records
                .iter()
                .map(|record| record.url.clone().unwrap())
                .collect::<Vec<_>>()
        };
        let damaged = found(&made, &[], std::slice::from_ref(&range));
        // Noise does not shrink: the offsets are nearly those of the plain file.
        let inner = range.start + 1000..range.end - 1000;
        let meant = plain
            .records
            .iter()
            .filter(|(extent, _)| !meet(extent, &inner).is_empty());
        let meant: Vec<String> = meant.map(|(_, url)| url.clone()).collect();
        let named = said(&damaged);
        assert!(
            meant.iter().all(|url| named.contains(url)),
            "{group}: {named:?} {meant:?}"
        );
        assert!(
            named.len() <= meant.len() + 6,
            "{group}: {named:?} {meant:?}"
        );
        assert!(
            damaged
                .records
                .iter()
                .all(|record| record.length.is_none() && !record.whole && record.offset == 0)
        );
        let lost = found(
            &made,
            std::slice::from_ref(&range),
            std::slice::from_ref(&range),
        );
        let unknown = [Span {
            start: range.start,
            end: size,
        }];
        assert!(lost.records.len() <= 1, "{lost:?}");
        if group == 0 {
            assert_eq!(
                lost.unknown,
                [Span {
                    start: 0,
                    end: size
                }]
            );
        } else {
            assert_eq!(lost.unknown, unknown);
            assert!(
                said(&lost).iter().all(|url| named.contains(url)),
                "{lost:?}"
            );
            told += lost.records.len() as u64;
        }
    }
    assert!(told + 3 > size / GROUP, "{told}");
}

/// Fails if damage to a file without records is not reported, or a file that lacks its beginning is called no archive
/// file.
#[test]
fn damage_to_file_without_records_is_unknown() {
    let bytes = noise(100_000, 9);
    let made = Made {
        name: "a.gz",
        bytes,
        records: vec![],
    };
    let range = GROUP..2 * GROUP;
    let span = Span {
        start: GROUP,
        end: 2 * GROUP,
    };
    for holes in [vec![], vec![range.clone()]] {
        let losses = found(&made, &holes, std::slice::from_ref(&range));
        let expected = Losses {
            unknown: vec![span],
            not_an_archive_file: true,
            ..Losses::default()
        };
        assert_eq!(losses, expected);
    }
    // The file cannot be recognised without its beginning.
    let losses = found(&made, &[0..GROUP], &[0..GROUP]);
    assert_eq!(
        losses.unknown,
        [Span {
            start: 0,
            end: 100_000
        }]
    );
    assert!(!losses.not_an_archive_file);
}

/// Fails if a file without bytes is called no archive file, or is said to have lost something.
#[test]
fn empty_file_has_no_losses() {
    let empty = Made {
        name: "a",
        bytes: vec![],
        records: vec![],
    };
    for ranges in [vec![], vec![0..0], vec![0..GROUP]] {
        assert_eq!(found(&empty, &[], &ranges), Losses::default());
    }
}

/// Fails if a file is read to its end although the last damaged byte is far before it, or a reading that broke off
/// names losses as if it were complete.
#[test]
fn no_more_is_read_than_it_takes() {
    let made = &files(&[30_000; 20])[0];
    let map = DamageMap {
        bytes: 0..made.bytes.len() as u64,
        damaged: vec![70_000..70_001],
        is_gzip: true,
    };
    let mut read = 0;
    let pieces = made.bytes.chunks(10_000).map(|piece| {
        read += piece.len();
        Ok(SalvagedPart::Bytes(Bytes::copy_from_slice(piece)))
    });
    let losses = records_in(pieces, &map).unwrap();
    assert_eq!(losses.records.len(), 1);
    assert!(read < 130_000, "{read}");
    let broken = [
        Ok(SalvagedPart::Bytes(Bytes::copy_from_slice(
            &made.bytes[..50_000],
        ))),
        Err(io::ErrorKind::UnexpectedEof.into()),
    ];
    assert!(
        records_in(broken.into_iter(), &map).is_err(),
        "a cut answer is no answer"
    );
}

/// Fails if lost records beyond the limit are kept in memory, or left out without being counted, or a script finds
/// another field in the JSON.
#[test]
fn too_many_records_are_counted() {
    let blocks = vec![&b"x"[..]; 10_020];
    let made = write(
        WarcWriter::plain_writer(Vec::new()),
        "a.warc",
        blocks.into_iter(),
    );
    let losses = found(&made, &[], &[0..made.bytes.len() as u64]);
    assert_eq!((losses.records.len(), losses.omitted), (10_000, 20));
    let json = serde_json::to_value(&losses).unwrap();
    assert_eq!(json["omitted"], 20);
    let first = &json["records"][0];
    assert_eq!(first["offset"], 0);
    assert_eq!(
        (&first["type"], &first["whole"]),
        (&"resource".into(), &true.into())
    );
    assert!(json.get("unknown").is_none() && json.get("not_an_archive_file").is_none());
}
