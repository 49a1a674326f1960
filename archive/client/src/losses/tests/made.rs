//! Small files of each kind, and the extents of their records.

use std::io;
use std::ops::Range;

use archive_formats::warc::{Builder, WarcType, WarcWriter};
use archive_model::FileName;
use bytes::Bytes;
use tools_testing::noise;

use crate::access::{Hole, SalvagedPart};
use crate::losses::{DamageMap, Losses, records_in};

/// A file, the extents of its records, and whether offsets tell them apart.
pub(super) struct Made {
    pub(super) name: &'static str,
    pub(super) bytes: Vec<u8>,
    pub(super) records: Vec<(Range<u64>, String)>,
}

pub(super) fn url(number: usize) -> String {
    format!("http://example.org/{number}")
}

pub(super) fn write<'a>(
    mut writer: WarcWriter<Vec<u8>>,
    name: &'static str,
    blocks: impl Iterator<Item = &'a [u8]>,
) -> Made {
    let mut records = Vec::new();
    for (number, block) in blocks.enumerate() {
        let id = format!("urn:uuid:00000000-0000-4000-8000-{number:012}");
        let record = Builder::new(WarcType::Resource, &id, "2026-11-21T19:14:09Z")
            .target_uri(&url(number))
            .content_type("text/plain");
        let length = block.len() as u64;
        let start = writer.position();
        writer
            .write_record(&record.render_head(length).unwrap(), length, &mut { block })
            .unwrap();
        records.push((start..writer.position(), url(number)));
    }
    let bytes = writer.into_inner();
    Made {
        name,
        bytes,
        records,
    }
}

pub(super) fn arc(blocks: &[Vec<u8>]) -> Made {
    let mut bytes = Vec::new();
    let mut records = Vec::new();
    let version = "1 0 Test\nURL IP-address Archive-date Content-type Archive-length\n";
    let first = format!(
        "filedesc://a.arc 0.0.0.0 20080430204825 text/plain {}\n{version}\n",
        version.len()
    );
    bytes.extend_from_slice(first.as_bytes());
    records.push((0..bytes.len() as u64, "filedesc://a.arc".to_owned()));
    for (number, block) in blocks.iter().enumerate() {
        let start = bytes.len() as u64;
        let line = format!(
            "{} 192.0.2.1 20080430204825 text/html {}\n",
            url(number),
            block.len()
        );
        bytes.extend_from_slice(&[line.as_bytes(), block, b"\n"].concat());
        records.push((start..bytes.len() as u64, url(number)));
    }
    Made {
        name: "a.arc",
        bytes,
        records,
    }
}

/// Small files of each kind, with blocks of these lengths.
pub(super) fn files(lengths: &[usize]) -> Vec<Made> {
    let seeds = 1_u64..;
    let blocks: Vec<Vec<u8>> = lengths
        .iter()
        .zip(seeds)
        .map(|(length, seed)| noise(*length, seed))
        .collect();
    let each = || blocks.iter().map(Vec::as_slice);
    vec![
        write(WarcWriter::gzip_writer(Vec::new(), 6), "a.warc.gz", each()),
        write(WarcWriter::plain_writer(Vec::new()), "a.warc", each()),
        arc(&blocks),
    ]
}

fn bytes(made: &Made, range: Range<u64>) -> SalvagedPart {
    let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
    SalvagedPart::Bytes(Bytes::copy_from_slice(&made.bytes[range]))
}

/// The parts of a file with holes.
pub(super) fn parts(made: &Made, holes: &[Range<u64>]) -> Vec<io::Result<SalvagedPart>> {
    let mut parts = Vec::new();
    let mut at = 0;
    for hole in holes {
        if at < hole.start {
            parts.push(Ok(bytes(made, at..hole.start)));
        }
        let start = hole.start;
        let end = hole.end;
        parts.push(Ok(SalvagedPart::Hole(Hole {
            start,
            end,
            unknown: false,
        })));
        at = end;
    }
    if at < made.bytes.len() as u64 {
        parts.push(Ok(bytes(made, at..made.bytes.len() as u64)));
    }
    parts
}

pub(super) fn found(made: &Made, holes: &[Range<u64>], damaged: &[Range<u64>]) -> Losses {
    let name = FileName::new(made.name).unwrap();
    let map = DamageMap::new(&name, 0..made.bytes.len() as u64, damaged.to_vec());
    records_in(parts(made, holes).into_iter(), &map).unwrap()
}
