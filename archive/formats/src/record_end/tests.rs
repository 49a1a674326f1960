//! The ends of good records, in any pieces, and of records with all kinds of damage.

use std::io::Write;

use flate2::{Compression, GzBuilder, write::GzEncoder};

use super::*;

const WARC: &[u8] = b"WARC/1.1\r\nWARC-Type: response\r\ncontent-length : 5\r\nX: Content-Length: 9\r\n\r\nhello\r\n\r\n";
const ARC: &[u8] = b"http://a.example/ b c 192.0.2.1 20080430204825 text/html 5\nhello\n";

/// Pushes `bytes` in pieces of `step` and returns where the record ends; the file ends with them.
fn end(bytes: &[u8], step: usize) -> Result<(usize, Option<RecordKind>), NoRecord> {
    let mut search = RecordEnd::new();
    let mut at = 0;
    for piece in bytes.chunks(step) {
        match search.push(piece)? {
            RecordProgress::Continues => at += piece.len(),
            RecordProgress::Ends(used) => return Ok((at + used, search.kind())),
        }
    }
    search.end_of_file()?;
    Ok((at, search.kind()))
}

/// Pushes short bytes in two pieces, cut at every byte, which must not matter.
#[track_caller]
fn assert_cuts_do_not_matter(bytes: &[u8], whole: &Result<(usize, Option<RecordKind>), NoRecord>) {
    const SHORT: usize = 1000;
    let cuts = if bytes.len() > SHORT {
        0..0
    } else {
        0..bytes.len()
    };
    for cut in cuts {
        let mut search = RecordEnd::new();
        let (one, two) = bytes.split_at(cut);
        let ended = match search.push(one) {
            Ok(RecordProgress::Continues) => match search.push(two) {
                Ok(RecordProgress::Continues) => search.end_of_file().map(|()| bytes.len()),
                Ok(RecordProgress::Ends(used)) => Ok(cut + used),
                Err(error) => Err(error),
            },
            Ok(RecordProgress::Ends(used)) => Ok(used),
            Err(error) => Err(error),
        };
        let ended = ended.map(|length| (length, search.kind()));
        assert_eq!(
            ended.as_ref().ok(),
            whole.as_ref().ok(),
            "cut at {cut}: {ended:?}"
        );
    }
}

/// Finds the end in pieces of several lengths, which must not matter.
#[track_caller]
fn found(bytes: &[u8]) -> Result<(usize, Option<RecordKind>), NoRecord> {
    let whole = end(bytes, usize::MAX);
    assert_cuts_do_not_matter(bytes, &whole);
    for step in [1, 2, 3, 7, 1000] {
        let pieces = end(bytes, step);
        assert_eq!(
            pieces.as_ref().ok(),
            whole.as_ref().ok(),
            "in pieces of {step}: {pieces:?}"
        );
    }
    whole
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Fails if the end of a record depends on what follows it, or on the pieces it comes in.
#[test]
fn good_records_end_where_next_begins() {
    let noise: Vec<u8> = (0..200_000_u32)
        .map(|n| n.wrapping_mul(n).to_le_bytes()[1])
        .collect();
    for (record, kind) in [
        (WARC.to_vec(), RecordKind::Warc),
        (ARC.to_vec(), RecordKind::Arc),
        (gzip(WARC), RecordKind::Gzip),
        (gzip(b""), RecordKind::Gzip),
        (gzip(&noise), RecordKind::Gzip),
    ] {
        let expected = Ok((record.len(), Some(kind)));
        assert_eq!(found(&record), expected, "at the end of the file");
        for next in [WARC, ARC, &gzip(ARC), b"noise", b"\0", b"\n"] {
            assert_eq!(found(&[record.as_slice(), next].concat()), expected);
        }
    }
}

/// Fails if an optional part of the header of a gzip member is taken for data.
#[test]
fn every_header_of_gzip_is_skipped() {
    for bits in 0..16_u8 {
        let mut builder = GzBuilder::new().mtime(9);
        if bits & 1 != 0 {
            builder = builder.extra(b"sl\x08\x00\x01\x02\x03\x04\x05\x06\x07\x08".as_slice());
        }
        if bits & 2 != 0 {
            builder = builder.filename("a name");
        }
        if bits & 4 != 0 {
            builder = builder.comment("a comment");
        }
        if bits & 8 != 0 {
            builder = builder.extra(b"".as_slice());
        }
        let mut encoder = builder.write(Vec::new(), Compression::fast());
        encoder.write_all(WARC).unwrap();
        let mut member = encoder.finish().unwrap();
        let expected = Ok((member.len(), Some(RecordKind::Gzip)));
        assert_eq!(found(&member), expected, "{bits:b}");
        member.extend_from_slice(b"more");
        assert_eq!(found(&member), expected, "{bits:b}");
    }
    // FHCRC alone adds two more bytes behind the ten.
    let plain = gzip(WARC);
    let mut summed = plain[..10].to_vec();
    summed[3] = 2;
    summed.extend_from_slice(&[1, 2]);
    summed.extend_from_slice(&plain[10..]);
    assert_eq!(found(&summed), Ok((summed.len(), Some(RecordKind::Gzip))));
}

/// Fails if a member ends before its data does because it is large.
#[test]
fn member_of_zeros_ends() {
    let bomb = gzip(&vec![0; 100_000_000]);
    assert!(bomb.len() < 200_000);
    assert_eq!(end(&bomb, 16_384), Ok((bomb.len(), Some(RecordKind::Gzip))));
}

/// Fails if a record whose line ends are missing or of the other kind is refused.
#[test]
fn line_ends_of_the_field_are_accepted() {
    let unix = String::from_utf8(WARC.to_vec())
        .unwrap()
        .replace("\r\n", "\n");
    assert_eq!(
        found(unix.as_bytes()),
        Ok((unix.len(), Some(RecordKind::Warc)))
    );
    let short = WARC.len() - 2;
    let one = [&WARC[..short], WARC].concat();
    assert_eq!(found(&one), Ok((short, Some(RecordKind::Warc))), "one CRLF");
    for missing in [2, 4] {
        let cut = &WARC[..WARC.len() - missing];
        assert_eq!(found(cut), Ok((cut.len(), Some(RecordKind::Warc))));
    }
    let cut = &ARC[..ARC.len() - 1];
    assert_eq!(found(cut), Ok((cut.len(), Some(RecordKind::Arc))));
    let two =
        b"http://a.example/ 192.0.2.1 20080430204825 text/html 200 sum - 17 a.arc 5\r\nhello\n";
    assert_eq!(found(two), Ok((two.len(), Some(RecordKind::Arc))));
    let line = b"filedesc://a.arc 0.0.0.0 20080430204825 text/plain 6\nhello\ndns:b ";
    assert_eq!(
        found(line),
        Ok((59, Some(RecordKind::Arc))),
        "within the block"
    );
    let empty = b"dns:a.example 192.0.2.1 20080430204825 text/dns 0\n\nhttp://b/ ";
    assert_eq!(found(empty), Ok((51, Some(RecordKind::Arc))));
}

/// Fails if other bytes pass for a record, or the message has control characters.
#[test]
fn bytes_that_begin_no_record_are_shown() {
    for (bytes, there) in [
        (b"".as_slice(), "nothing"),
        (b"hello", "\"hello\""),
        (b"<html>\n<head>", "\"<html>\\n<head>\""),
        (b"\x1b[2J\x00\x9f", "\"\\x1b[2J\\x00\\x9f\""),
        (b"\x1f", "\"\\x1f\""),
        (b"WAR", "\"WAR\""),
        (
            b"http://a/\0 192.0.2.1 20080430204825 x 5\nhello\n",
            "\"http://a/\\x00 192.0.2.1 200…\"",
        ),
        (
            b"200 OK 20080430204825 x 5\n",
            "\"200 OK 20080430204825 x …\"",
        ),
        (b"http://a/ 1 2 3 5\n", "\"http://a/ 1 2 3 5\\n\""),
        (
            b"http://a/ 192.0.2.1 20080430204825 text/html -1\n",
            "\"http://a/ 192.0.2.1 2008…\"",
        ),
        (
            b"http://a/ 192.0.2.1 20080430204825 x 99999999999999999999\n",
            "\"http://a/ 192.0.2.1 2008…\"",
        ),
    ] {
        match found(bytes) {
            Err(NoRecord::Nothing(shown)) => assert_eq!(shown, there),
            other => panic!("{other:?} for {there}"),
        }
    }
    let endless = vec![b'x'; 3 * LONGEST_HEADER];
    assert!(matches!(found(&endless), Err(NoRecord::Nothing(_))));
    let mut search = RecordEnd::new();
    assert!(
        search.push(&[7; 100]).is_err(),
        "noise is told from text before a line has ended"
    );
}

/// Fails if the line of an ARC record may be longer here than for the reader of records.
#[test]
fn longest_arc_line_is_the_readers() {
    let line_of = |length: usize| {
        let fields = " 192.0.2.1 20080430204825 text/html 2";
        let path = "a".repeat(length - "http://".len() - fields.len());
        format!("http://{path}{fields}")
    };
    for (length, is_read) in [(arc::LONGEST_LINE, true), (arc::LONGEST_LINE + 1, false)] {
        let line = line_of(length);
        assert_eq!(arc::ArcLine::parse(line.as_bytes()).is_some(), is_read);
        for line_end in ["\n", "\r\n"] {
            let record = format!("{line}{line_end}ab\n");
            assert_eq!(found(record.as_bytes()).is_ok(), is_read, "{length}");
        }
    }
}

#[track_caller]
fn broken(bytes: &[u8], kind: RecordKind, says: &str) {
    match found(bytes) {
        Err(NoRecord::Broken { kind: found, what }) => {
            assert_eq!(found, kind);
            assert!(what.contains(says), "{what}");
        }
        other => panic!("{other:?} where {says} was expected"),
    }
}

/// Fails if a broken record passes, or the message does not name the fault.
#[test]
fn broken_records_say_what_is_wrong() {
    let text = String::from_utf8(WARC.to_vec()).unwrap();
    let warc = |from: &str, to: &str| text.replacen(from, to, 1).into_bytes();
    let kind = RecordKind::Warc;
    broken(
        &warc("content-length : 5\r\n", ""),
        kind,
        "no Content-Length",
    );
    broken(&warc(": 5", ": five"), kind, "\"five\"");
    broken(&warc(": 5", ": -5"), kind, "\"-5\"");
    broken(&warc(": 5", ": +5"), kind, "\"+5\"");
    broken(&warc(": 5", ":"), kind, "nothing");
    broken(
        &warc(": 5", ": 18446744073709551616"),
        kind,
        "18446744073709551616",
    );
    broken(
        &warc(": 5", ": 18446744073709551615"),
        kind,
        "the file ends",
    );
    broken(&warc(": 5", ": 4"), kind, "\"o\\r\\n\\r\\n\"");
    broken(
        &warc(": 5", ": 5\r\nContent-Length: 6"),
        kind,
        "two Content-Lengths",
    );
    assert!(found(&warc(": 5", ": 5\r\nContent-Length: 5")).is_ok());
    broken(&WARC[..40], kind, "within its header");
    broken(&WARC[..WARC.len() - 6], kind, "2 bytes before");
    broken(&WARC[..WARC.len() - 3], kind, "between CR and LF");
    let endless = [b"WARC/1.0\r\n".as_slice(), &vec![b'x'; 2 * LONGEST_HEADER]].concat();
    broken(&endless, kind, "does not end within 65536");
    let kind = RecordKind::Arc;
    broken(&ARC[..ARC.len() - 2], kind, "1 bytes before");
    broken(
        &[&ARC[..ARC.len() - 1], b"http"].concat(),
        kind,
        "its length is wrong",
    );
}

/// Fails if a member that lacks bytes or has one wrong bit has an end.
#[test]
fn cut_or_flipped_member_never_passes() {
    let member = gzip(&WARC.repeat(20));
    for cut in 2..member.len() {
        broken(&member[..cut], RecordKind::Gzip, "the file ends");
    }
    for at in 10..member.len() {
        // Bits behind the last block belong to nothing.
        let bits = if at == member.len() - 9 { 0..0 } else { 0..8 };
        for bit in bits {
            let mut flipped = member.clone();
            flipped[at] ^= 1 << bit;
            assert!(end(&flipped, usize::MAX).is_err(), "bit {bit} of byte {at}");
        }
    }
    for (at, value) in [(2, 7), (3, 0x20), (3, 0x80)] {
        let mut wrong = member.clone();
        wrong[at] = value;
        broken(&wrong, RecordKind::Gzip, "header");
    }
    let named = [&member[..3], &[8], &member[4..10], &vec![b'a'; 200_000]].concat();
    broken(&named, RecordKind::Gzip, "does not end within 131072");
}

/// Fails if a caller asks for more bytes than the record can have.
#[test]
fn left_length_is_known_after_header() {
    let mut search = RecordEnd::new();
    assert_eq!(search.remaining(), None);
    let header = WARC.len() - 9;
    search.push(&WARC[..header]).unwrap();
    assert_eq!(search.remaining(), Some(9));
    search.push(&WARC[header..header + 2]).unwrap();
    assert_eq!(search.remaining(), Some(7));
    search.push(&WARC[header + 2..header + 5]).unwrap();
    assert_eq!(search.remaining(), Some(4));
    assert_eq!(
        search.push(&WARC[header + 5..]),
        Ok(RecordProgress::Ends(4))
    );
}

/// Fails if an offset within the line of an ARC record gives a record that lacks its beginning.
#[test]
fn offset_within_arc_url_is_no_record() {
    let line = b"HTTP://a.example/ 192.0.2.1 20080430204825 text/html 5\nhello\n";
    assert_eq!(found(line), Ok((line.len(), Some(RecordKind::Arc))));
    for from in 1..20 {
        let cut = found(&line[from..]);
        assert!(matches!(cut, Err(NoRecord::Nothing(_))), "{from}: {cut:?}");
    }
}

/// Fails if the name of the format is only known in capitals.
#[test]
fn warc_record_is_known_in_any_case() {
    let small = [b"warc/1.1", &WARC[8..]].concat();
    assert_eq!(found(&small), Ok((small.len(), Some(RecordKind::Warc))));
    assert_eq!(
        found(&gzip(&small)).map(|(_, kind)| kind),
        Ok(Some(RecordKind::Gzip))
    );
}

/// Fails if the longest header of a member depends on the pieces it comes in.
#[test]
fn header_of_member_ends_within_limit() {
    let member = gzip(WARC);
    let named = |length: usize| {
        let name = vec![b'a'; length - 11];
        [
            &member[..3],
            &[8],
            &member[4..10],
            &name,
            &b"\0"[..],
            &member[10..],
        ]
        .concat()
    };
    let longest = named(gzip::LONGEST_HEADER);
    assert_eq!(found(&longest), Ok((longest.len(), Some(RecordKind::Gzip))));
    let longer = named(gzip::LONGEST_HEADER + 1);
    broken(&longer, RecordKind::Gzip, "does not end within 131072");
}

/// Fails if a folded Content-Length is read in another way than by the reader of WARC files.
#[test]
fn folded_length_is_one_value() {
    let text = String::from_utf8(WARC.to_vec()).unwrap();
    let folded = text.replacen(": 5", ":\r\n 5", 1);
    let expected = Ok((folded.len(), Some(RecordKind::Warc)));
    assert_eq!(found(folded.as_bytes()), expected);
    let two = text.replacen(": 5", ": 5\r\n 6", 1);
    broken(
        two.as_bytes(),
        RecordKind::Warc,
        "Content-Length is \"5\\r\\n 6\"",
    );
}
