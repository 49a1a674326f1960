//! The walk from the first record to the last damaged byte: which records are in the damage. Pure: parts go in, names
//! come out.
//!
//! Decides what is certain. A record is named if its header can be read and some byte of it is in the damage; damaged
//! bytes that cannot be assigned to a record are unknown. Memory is bounded: as many records are kept as people can
//! look at, and the others counted.

use std::io;
use std::ops::Range;

use archive_formats::defect::Class;
use archive_formats::warc::{
    Compression, Header, ReaderOptions, RecordSummary, WarcReader, WarcType,
};
use archive_model::{FileName, GROUP_SIZE};

use super::stretches::{PIECE, Stretches};
use super::{Losses, LostRecord, Span};
use crate::access::SalvagedPart;

/// The most records that are named.
const MOST_RECORDS: usize = 10_000;

/// The most bytes of text that are kept of the named records.
const MOST_TEXT: usize = 16 << 20;

/// The distance before the bytes that were read within which a record in a member may begin: a few pieces.
const BEHIND: u64 = 4 * PIECE as u64;

/// The bytes of a file that are searched for records, and the damage among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamageMap {
    /// The range of the file that the parts cover.
    pub bytes: Range<u64>,
    /// The ranges that are damaged.
    pub damaged: Vec<Range<u64>>,
    /// Whether the file is taken for a gzip file, where its beginning is lost: by its name.
    pub is_gzip: bool,
}

impl DamageMap {
    /// Makes the map of a file. Where the beginning of the file is lost, its name tells whether it is compressed.
    pub fn new(name: &FileName, bytes: Range<u64>, damaged: Vec<Range<u64>>) -> Self {
        let is_gzip = name.as_str().to_ascii_lowercase().ends_with(".gz");
        Self {
            bytes,
            damaged,
            is_gzip,
        }
    }
}

/// Returns the records in the damaged bytes of a file that comes in `parts`: in order, without a gap, with or without
/// holes.
///
/// No more parts are asked for than needed.
///
/// # Errors
///
/// Fails if a part cannot be read.
pub fn records_in(
    parts: impl Iterator<Item = io::Result<SalvagedPart>>,
    map: &DamageMap,
) -> io::Result<Losses> {
    let DamageMap {
        bytes,
        damaged,
        is_gzip,
    } = map;
    let damaged = merged(damaged, bytes);
    let mut walk = Walk {
        size: bytes.end,
        edge: bytes.start,
        behind: bytes.start,
        damaged,
        pending: None,
        losses: Losses::default(),
        text: 0,
        found: false,
    };
    if walk.is_done() {
        return Ok(walk.losses);
    }
    let mut source = Stretches::new(parts, bytes.start);
    let offset = source.begin_stretch()?;
    let options = ReaderOptions {
        offset,
        ..ReaderOptions::default()
    };
    let mut reader = WarcReader::with_options(source, options);
    let mut seen_beginning = offset == 0;
    if *is_gzip && offset > 0 {
        reader.assume_gzip();
    }
    if offset > 0 {
        reader.skip_to(offset);
    }
    while let Some(to) = walk.stretch(&mut reader)? {
        if walk.is_done() {
            return Ok(walk.losses);
        }
        seen_beginning &= reader.source().current_offset() >= GROUP_SIZE;
        let at = reader.source_mut().go_on(to)?;
        reader.skip_to(at);
    }
    if !walk.is_done() {
        walk.end(seen_beginning);
    }
    Ok(walk.losses)
}

/// Returns the ranges sorted, merged, and cut to `within`.
fn merged(ranges: &[Range<u64>], within: &Range<u64>) -> Vec<Range<u64>> {
    let clip = |range: &Range<u64>| range.start.max(within.start)..range.end.min(within.end);
    let mut sorted: Vec<Range<u64>> = ranges.iter().map(clip).collect();
    sorted.retain(|range| !range.is_empty());
    sorted.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in sorted {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

struct Walk {
    /// The end of the range that the parts cover.
    size: u64,
    damaged: Vec<Range<u64>>,
    /// The offset up to which the bytes are assigned to records or to unknown ranges.
    edge: u64,
    /// The offset before which no further record begins.
    behind: u64,
    /// A record whose end is not known, and its earliest beginning: it is taken to end where the next one begins.
    pending: Option<(LostRecord, u64)>,
    losses: Losses,
    text: usize,
    /// Whether any record was found.
    found: bool,
}

/// The end of the bytes before a hole.
struct Cut {
    /// The end of the record that the hole cuts, where its header has it.
    end: Option<u64>,
    /// The earliest offset to continue at: behind the block of that record.
    go_on: u64,
}

impl Walk {
    /// Returns whether all damage lies behind.
    fn is_done(&self) -> bool {
        let reached = self.pending.as_ref().map_or(self.behind, |(_, low)| *low);
        self.damaged.last().is_none_or(|last| last.end <= reached)
    }

    /// Reads up to the next hole, and returns the earliest offset to continue at; `None` at the end of the file, or of
    /// the damage.
    fn stretch<P>(&mut self, reader: &mut WarcReader<Stretches<P>>) -> io::Result<Option<u64>>
    where
        P: Iterator<Item = io::Result<SalvagedPart>>,
    {
        loop {
            let from = reader.source().current_offset();
            let Some(record) = reader.next_record()? else {
                break;
            };
            self.found = true;
            let known = facts(record.header(), record.kind(), record.offset());
            let is_arc = record.version().is_arc();
            let end = record.read_end()?;
            // Reading to the end of the record shows whether the file ends here, or a hole begins.
            let at = reader.source().current_offset();
            let is_hole = reader.source().is_hole();
            let start = if end.in_member == 0 {
                end.offset
            } else {
                end.offset.max(from.saturating_sub(BEHIND))
            };
            self.settle(start);
            let is_plain = reader.compression() == Compression::Plain;
            let block = block_end(&end).filter(|block| is_plain && *block <= self.size);
            let line_ends = if is_arc { 1 } else { 4 };
            if let Some(cut) = is_hole.then(|| cut(&end, at, block, line_ends)).flatten() {
                self.cut(known, start, at, &cut);
                return Ok(Some(cut.go_on));
            }
            self.record(known, start, at, &end);
            if self.is_done() {
                return Ok(None);
            }
        }
        if !reader.source().is_hole() {
            return Ok(None);
        }
        let at = reader.source().current_offset();
        self.settle(at);
        if let Some((offset, header)) = reader.take_cut_header() {
            self.found = true;
            self.gap(offset);
            self.keep(facts(&header, WarcType::Unknown, offset), offset..at + 1);
            self.edge = at;
        }
        Ok(Some(at))
    }

    /// Takes a record that was read to its end.
    fn record(&mut self, mut record: LostRecord, start: u64, at: u64, end: &RecordSummary) {
        self.gap(start);
        let is_shared = end.shared || end.in_member > 0;
        match end.length {
            Some(length) => {
                record.length = Some(length);
                self.edge = start.saturating_add(length);
                self.behind = self.edge;
                self.keep(record, start..self.edge);
            }
            None if is_shared && end.complete => {
                self.edge = at;
                self.behind = at.saturating_sub(BEHIND);
                self.keep(record, start..at);
            }
            None => self.pending = Some((record, start)),
        }
    }

    /// Takes a record that is cut by the hole at `at`.
    fn cut(&mut self, mut record: LostRecord, start: u64, at: u64, cut: &Cut) {
        self.gap(start);
        record.length = cut.end.map(|end| end.saturating_sub(start));
        self.keep(record, start..cut.end.unwrap_or(at + 1));
        self.edge = cut.end.unwrap_or(at);
        self.behind = self.edge;
    }

    /// Ends the record whose end is not known at `next`, the latest possible offset.
    fn settle(&mut self, next: u64) {
        if let Some((record, start)) = self.pending.take() {
            self.keep(record, start..next);
            self.edge = self.edge.max(next);
        }
    }

    /// Takes the damaged bytes between the last assigned byte and `next` as unknown.
    fn gap(&mut self, next: u64) {
        let gap = self.edge..next;
        let unknown_is_full = self.losses.unknown.len() >= MOST_RECORDS;
        if self.touches(&gap) {
            let start = gap.start;
            let end = gap.end;
            let unknown = &mut self.losses.unknown;
            match unknown.last_mut() {
                // The ranges are too many to keep apart.
                Some(last) if unknown_is_full => last.end = end,
                _ => unknown.push(Span { start, end }),
            }
        }
        self.edge = self.edge.max(next);
    }

    /// Ends the walk at the end of the file.
    fn end(&mut self, seen_beginning: bool) {
        if !self.found && seen_beginning {
            self.losses.not_an_archive_file = true;
            let spans = self.damaged.iter();
            self.losses.unknown = spans
                .map(|range| Span {
                    start: range.start,
                    end: range.end,
                })
                .collect();
            return;
        }
        self.settle(self.size);
        self.gap(self.size);
    }

    fn touches(&self, extent: &Range<u64>) -> bool {
        let next = self
            .damaged
            .partition_point(|range| range.end <= extent.start);
        let next = self.damaged.get(next);
        extent.start < extent.end && next.is_some_and(|range| range.start < extent.end)
    }

    /// Names the record if any of its bytes is damaged.
    fn keep(&mut self, mut record: LostRecord, extent: Range<u64>) {
        if !self.touches(&extent) {
            return;
        }
        let within = |range: &Range<u64>| range.start <= extent.start && extent.end <= range.end;
        record.whole = record.length.is_some() && self.damaged.iter().any(within);
        let texts = [&record.url, &record.date, &record.id];
        let texts = texts.into_iter().flatten().map(String::len);
        self.text = self
            .text
            .saturating_add(texts.sum::<usize>() + record.kind.len());
        if self.losses.records.len() >= MOST_RECORDS || self.text > MOST_TEXT {
            self.losses.omitted += 1;
            return;
        }
        self.losses.records.push(record);
    }
}

/// Returns where the block of a record ends, by its header.
fn block_end(end: &RecordSummary) -> Option<u64> {
    (end.offset + end.header_length).checked_add(end.announced?)
}

/// Returns how the record ends at a hole at `at`; `None` if it ends before. `block` is the end of its block in the
/// file.
fn cut(end: &RecordSummary, at: u64, block: Option<u64>, line_ends: u64) -> Option<Cut> {
    if let Some(block) = block {
        let prescribed = block.saturating_add(line_ends);
        let reaches = end.length.is_none_or(|length| end.offset + length == at);
        return (reaches && prescribed > at).then_some(Cut {
            end: Some(prescribed),
            go_on: block.max(at),
        });
    }
    let is_cut = |class: Class, offset: u64| class == Class::Cut && offset == at;
    let mut defects = end.defects.iter();
    let is_cut = defects.any(|defect| is_cut(defect.class, defect.offset));
    is_cut.then_some(Cut {
        end: None,
        go_on: at,
    })
}

/// Returns the facts about a record that its header has.
fn facts(header: &Header, kind: WarcType, offset: u64) -> LostRecord {
    let text = |name: &str| header.text_of(name).map(String::from);
    let said = text("WARC-Type").filter(|_| kind == WarcType::Unknown);
    let kind = said.unwrap_or_else(|| kind.name().to_owned());
    let uri = |name: &str| header.read_uri(name).map(String::from);
    LostRecord {
        offset,
        length: None,
        kind,
        url: uri("WARC-Target-URI"),
        date: text("WARC-Date"),
        id: uri("WARC-Record-ID"),
        whole: false,
    }
}
