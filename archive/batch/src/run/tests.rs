//! Files with damage in every place, and files that are broken.

use std::io::Read;
use std::ops::Range;

use archive_formats::warc::{Builder, Record, RecordSummary, WarcReader, WarcType, WarcWriter};
use archive_model::{FailureKind, FileName, Root};

use super::*;
use crate::plan::Reduce;

mod jobs;

/// Groups of the tests: smaller than those of the archive, so that there are many of them.
const GROUP: u64 = 512;

const DATE: &str = "2026-11-21T19:14:09Z";

/// A file in memory, with groups that are damaged.
struct HoledSource<'a> {
    bytes: &'a [u8],
    damaged: Vec<u64>,
    reads: u64,
}

impl<'a> HoledSource<'a> {
    fn new(bytes: &'a [u8], damaged: &[u64]) -> Self {
        Self {
            bytes,
            damaged: damaged.to_vec(),
            reads: 0,
        }
    }
}

impl FileSource for HoledSource<'_> {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, ReadBytesError> {
        self.reads += 1;
        let size = self.bytes.len() as u64;
        let end = size.min(offset + buffer.len() as u64);
        let group = offset / GROUP;
        if self.damaged.contains(&group) {
            return Err(ReadBytesError::Damaged {
                range: group * GROUP..size.min((group + 1) * GROUP),
                reason: "one bit is not what it was".into(),
            });
        }
        let next = self
            .damaged
            .iter()
            .filter(|damaged| **damaged > group)
            .min();
        let end = next.map_or(end, |next| end.min(next * GROUP));
        let from = usize::try_from(offset).unwrap();
        let to = usize::try_from(end).unwrap();
        let read = &self.bytes[from.min(to)..to];
        buffer[..read.len()].copy_from_slice(read);
        Ok(read.len())
    }
}

fn file(name: &str, bytes: &[u8]) -> File {
    File {
        name: FileName::new(name).unwrap(),
        size: bytes.len() as u64,
        root: Root::from_bytes(*blake3::hash(bytes).as_bytes()),
        stored: "2026-11-21T20:00:00Z".into(),
    }
}

/// A plan whose job writes, for each record that it could read to its end, the offset and the hash of header and block.
#[derive(Debug)]
struct HashPlan;

struct HashJob;

impl Plan for HashPlan {
    fn reduce(&self) -> Reduce {
        Reduce::Concatenate
    }

    fn start(&self, _control: &StopControl) -> Result<Box<dyn Job + '_>, BatchJobError> {
        Ok(Box::new(HashJob))
    }
}

fn line(record: &mut Record<'_, impl Read>) -> std::io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(record.header().raw());
    let mut block = Vec::new();
    record.read_to_end(&mut block)?;
    hasher.update(&block);
    Ok(format!(
        "{} {}\n",
        record.offset(),
        hasher.finalize().to_hex()
    ))
}

impl Job for HashJob {
    fn reads(&self) -> Reads {
        Reads::Records
    }

    fn record(
        &mut self,
        mut record: Record<'_, &mut dyn Read>,
        out: &mut dyn Sink,
    ) -> Result<RecordSummary, BatchJobError> {
        let line = line(&mut record).map_err(|error| BatchJobError::Read(error.into()))?;
        let end = record.read_end()?;
        out.write(line.as_bytes())?;
        Ok(end)
    }

    fn end(&mut self, out: &mut dyn Sink) -> Result<(), BatchJobError> {
        Ok(out.write(b"end\n")?)
    }
}

/// Records of many sizes: smaller than a group, as large, larger; with noise that does not become smaller.
fn records() -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut seed = 7_u64;
    let sizes = [
        0, 1, 30, 200, 511, 700, 3000, 90, 90, 90, 1400, 20, 5000, 10,
    ];
    sizes
        .into_iter()
        .enumerate()
        .map(|(number, size)| {
            let block: Vec<u8> = (0..size)
                .map(|_| {
                    seed ^= seed << 13;
                    seed ^= seed >> 7;
                    seed ^= seed << 17;
                    u8::try_from(seed % 256).unwrap()
                })
                .collect();
            let head = Builder::new(WarcType::Resource, &format!("urn:uuid:{number}"), DATE)
                .target_uri(&format!("http://example.org/{number}"))
                .render_head(block.len() as u64)
                .unwrap();
            (head, block)
        })
        .collect()
}

fn write(mut writer: WarcWriter<Vec<u8>>) -> Vec<u8> {
    for (head, block) in records() {
        writer
            .write_record(&head, block.len() as u64, &mut block.as_slice())
            .unwrap();
    }
    writer.into_inner()
}

fn member(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = flate2::bufread::GzEncoder::new(bytes, flate2::Compression::new(6));
    encoder.read_to_end(&mut out).unwrap();
    out
}

/// Returns a zstd frame that compresses nothing.
fn frames(bytes: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
    let length = u32::try_from(bytes.len()).unwrap();
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(&((length << 3) | 1).to_le_bytes()[..3]);
    frame.extend_from_slice(bytes);
    frame
}

fn zst() -> Vec<u8> {
    let all = records().into_iter();
    all.flat_map(|(head, block)| frames(&[&head[..], &block, b"\r\n\r\n"].concat()))
        .collect()
}

fn arc() -> Vec<u8> {
    let mut arc =
        b"filedesc://a.arc 0.0.0.0 20080430204825 text/plain 14\n1 0 X\nURL IP\n\n\n".to_vec();
    for (number, (_, block)) in records().into_iter().enumerate() {
        arc.extend_from_slice(
            format!(
                "http://a/{number} 1.2.3.4 20080430204825 text/html {}\n",
                block.len()
            )
            .as_bytes(),
        );
        arc.extend_from_slice(&block);
        arc.push(b'\n');
    }
    arc
}

/// Returns the line of each record of a file without damage, and its place; `None` if a record has no bytes of its own.
fn whole(bytes: &[u8]) -> Vec<(String, Option<Range<u64>>)> {
    let mut reader = WarcReader::new(bytes);
    let mut all = Vec::new();
    while let Some(mut record) = reader.next_record().unwrap() {
        let line = line(&mut record).unwrap();
        let end = record.read_end().unwrap();
        let place = end.length.map(|length| end.offset..end.offset + length);
        all.push((line, place));
    }
    all
}

fn run(name: &str, bytes: &[u8], damaged: &[u64]) -> (Vec<String>, FileResult) {
    let mut out = Vec::new();
    let mut source = HoledSource::new(bytes, damaged);
    let control = StopControl::default();
    let done = run_file(
        &HashPlan,
        FileInput {
            file: &file(name, bytes),
            source: &mut source,
        },
        &mut out,
        &control,
    )
    .unwrap();
    let text = String::from_utf8(out).unwrap();
    let mut lines: Vec<_> = text.lines().map(|line| format!("{line}\n")).collect();
    assert_eq!(lines.pop().as_deref(), Some("end\n"));
    (lines, done)
}

fn touches(place: &Range<u64>, group: u64) -> bool {
    place.start < (group + 1) * GROUP && group * GROUP < place.end
}

fn files() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("a.warc", write(WarcWriter::plain_writer(Vec::new()))),
        ("a.warc.gz", write(WarcWriter::gzip_writer(Vec::new(), 6))),
        ("a.warc.zst", zst()),
        ("a.arc", arc()),
        // Files whose format their names do not tell.
        ("b", write(WarcWriter::plain_writer(Vec::new()))),
        ("c", write(WarcWriter::gzip_writer(Vec::new(), 6))),
        ("d", zst()),
        ("e.gz", write(WarcWriter::plain_writer(Vec::new()))),
        ("f.arc.gz", arc()),
    ]
}

/// Fails if a record of an undamaged file is skipped, shown twice or altered in one of the formats, or the format is
/// judged by the file's name.
#[test]
fn whole_file_yields_all_records_without_failure() {
    for (name, bytes) in files() {
        let (lines, done) = run(name, &bytes, &[]);
        let all: Vec<_> = whole(&bytes).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, all, "{name}");
        assert_eq!(
            done,
            FileResult {
                records: all.len() as u64,
                ..FileResult::default()
            },
            "{name}"
        );
    }
}

/// Checks that with these groups damaged every other record is shown once and as it is, in order, and no other.
fn check(name: &str, bytes: &[u8], damaged: &[u64]) {
    let all = whole(bytes);
    let (lines, done) = run(name, bytes, damaged);
    let expected: Vec<_> = all
        .iter()
        .filter(|(_, place)| {
            let place = place.as_ref().unwrap();
            !damaged.iter().any(|group| touches(place, *group))
        })
        .map(|(line, _)| line.clone())
        .collect();
    assert_eq!(lines, expected, "{name} {damaged:?}");
    // One failure for each run of damaged groups, and no other.
    let mut holes: Vec<u64> = Vec::new();
    for group in damaged {
        if !damaged.contains(&(group.wrapping_sub(1))) {
            holes.push(group * GROUP);
        }
    }
    let found: Vec<_> = done
        .failures
        .iter()
        .map(|failure| {
            assert_eq!(failure.kind, FailureKind::Damaged, "{name} {failure:?}");
            failure.offset.unwrap()
        })
        .collect();
    assert_eq!(found, holes, "{name} {damaged:?} {:?}", done.failures);
    assert_eq!(done.more_failures, 0);
}

/// Fails if a record beside a damaged group is lost, an incomplete one is shown, or neighbouring damaged groups are
/// more than one failure.
#[test]
fn damaged_group_costs_only_its_own_records() {
    for (name, bytes) in files() {
        let groups = (bytes.len() as u64).div_ceil(GROUP);
        assert!(groups > 12, "{name}: {groups}");
        for first in 0..groups {
            check(name, &bytes, &[first]);
            for second in first + 1..groups {
                check(name, &bytes, &[first, second]);
            }
        }
        let all: Vec<u64> = (0..groups).collect();
        check(name, &bytes, &all);
        check(name, &bytes, &all[1..]);
        let odd: Vec<u64> = (0..groups).filter(|group| group % 2 == 1).collect();
        check(name, &bytes, &odd);
    }
}

/// Fails if bytes behind damage are decompressed into false records where a file is one member, or the rest is lost
/// without a word.
#[test]
fn damage_ends_single_member_file_with_failure() {
    for bytes in [
        member(&write(WarcWriter::plain_writer(Vec::new()))),
        member(&arc()),
        frames(&write(WarcWriter::plain_writer(Vec::new()))),
    ] {
        let all = whole(&bytes);
        let groups = (bytes.len() as u64).div_ceil(GROUP);
        let mut most = 0;
        // In a frame that compresses nothing, records can be read without the beginning of the frame.
        let first = u64::from(bytes.starts_with(&[0x28, 0xb5]));
        for damaged in first..groups {
            let (lines, done) = run("a.warc.gz", &bytes, &[damaged]);
            assert!(lines.len() < all.len());
            assert!(lines.iter().zip(&all).all(|(line, whole)| *line == whole.0));
            most = most.max(lines.len());
            let [failure] = done.failures.as_slice() else {
                panic!("{:?}", done.failures)
            };
            assert_eq!(
                (failure.kind, failure.offset),
                (FailureKind::Damaged, Some(damaged * GROUP))
            );
            let says = failure.reason.contains("no record was found behind")
                || failure.reason.contains("the end of the file");
            assert!(says, "{failure:?}");
        }
        assert!(most > 3, "{most}");
    }
}

/// Each byte of a source may be the last that can be read at once.
struct SlowSource<'a>(HoledSource<'a>);

impl FileSource for SlowSource<'_> {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, ReadBytesError> {
        let room = buffer.len().min(97);
        self.0.read_at(offset, &mut buffer[..room])
    }
}

/// Fails if a record that straddles two short reads is lost or altered, with damage or without.
#[test]
fn result_is_independent_of_read_sizes() {
    for (name, bytes) in files() {
        for damaged in [&[][..], &[3], &[0, 4]] {
            let (lines, _) = run(name, &bytes, damaged);
            let mut out = Vec::new();
            let mut source = SlowSource(HoledSource::new(&bytes, damaged));
            let control = StopControl::default();
            run_file(
                &HashPlan,
                FileInput {
                    file: &file(name, &bytes),
                    source: &mut source,
                },
                &mut out,
                &control,
            )
            .unwrap();
            let text = String::from_utf8(out).unwrap();
            assert_eq!(format!("{}end\n", lines.concat()), text, "{name}");
        }
    }
}

/// Fails if a file that is no archive file yields records, fails once for each of its lines, or counts as damaged.
#[test]
fn foreign_file_is_one_failure() {
    for bytes in [
        Vec::new(),
        b"%PDF-1.4 and so on\nand on\n".to_vec(),
        vec![0; 5000],
        member(b"hello"),
        frames(b"hello"),
    ] {
        let (lines, done) = run("a.pdf", &bytes, &[]);
        assert!(lines.is_empty());
        assert_eq!(done.failures.len(), 1, "{:?}", done.failures);
        assert_eq!(done.failures[0].kind, FailureKind::Format);
        assert_eq!(done.failures[0].offset, None);
        assert!(done.failures[0].reason.starts_with("no archive file"));
    }
}

/// Fails if a wrong CRC costs the record, a cut file counts as whole, or bare line feeds and records that share a
/// member count as defects.
#[test]
fn broken_file_reports_exactly_its_losses() {
    let gz = write(WarcWriter::gzip_writer(Vec::new(), 6));
    let places: Vec<_> = whole(&gz);
    let third = places[2].1.clone().unwrap();
    let at = usize::try_from(third.end).unwrap() - 6;
    let mut crc = gz.clone();
    crc[at] ^= 1;
    let (lines, done) = run("a.warc.gz", &crc, &[]);
    assert_eq!(lines.len(), places.len());
    assert_eq!(done.failures.len(), 1);
    assert_eq!(
        (done.failures[0].kind, done.failures[0].offset.is_some()),
        (FailureKind::Format, true)
    );
    assert!(done.failures[0].reason.starts_with("crc"), "{done:?}");
    let cut = &gz[..gz.len() - 30];
    let (lines, done) = run("a.warc.gz", cut, &[]);
    let whole = places.iter().map(|(line, _)| line);
    assert!(lines.iter().eq(whole.take(places.len() - 1)), "{lines:?}");
    let [header, end] = done.failures.as_slice() else {
        panic!("{done:?}");
    };
    assert!(header.reason.starts_with("header-cut"), "{done:?}");
    assert!(end.reason.starts_with("cut"), "{done:?}");
    // Line ends of another kind, and records that share a member, lose nothing.
    let text = b"WARC/1.0\nWARC-Type: metadata\nContent-Length: 2\n\nab\n\n".repeat(3);
    for bytes in [text.clone(), member(&text)] {
        let (lines, done) = run("a", &bytes, &[]);
        assert_eq!((lines.len(), done.failures.as_slice()), (3, &[][..]));
    }
}
