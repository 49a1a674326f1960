//! From the first record to the last damaged byte: which records are in the damage. Pure: parts go in, names come out.
//!
//! Owns the reckoning of what is certain. A record is named where its header can be read and some byte of it is in the
//! damage; where nobody can say whose the damaged bytes are, they are unknown. Memory is bounded: as many records are kept
//! as can be looked at, and the others counted.

use std::io;
use std::ops::Range;

use archive_formats::defect::Class;
use archive_formats::warc::{Compression, End, Header, Kind, Options, Reader};
use archive_model::{FileName, GROUP_SIZE};

use super::stretches::{PIECE, Stretches};
use super::{Losses, LostRecord, Span};
use crate::access::Salvaged;

/// The most records that are named.
const MOST_RECORDS: usize = 10_000;

/// The most bytes of text that are kept of them.
const MOST_TEXT: usize = 16 << 20;

/// The distance before the bytes that were read at which the first byte may stand of a record that begins within a
/// member: a few pieces.
const BEHIND: u64 = 4 * PIECE as u64;

/// Where to look, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whereabouts {
    /// The bytes of the file that come.
    pub bytes: Range<u64>,
    /// Those that are damaged.
    pub damaged: Vec<Range<u64>>,
    /// Whether it is a gzip file, should that not be seen: by its name.
    pub is_gzip: bool,
}

impl Whereabouts {
    /// Of a file: its name tells whether it is compressed, where its beginning is lost.
    pub fn of(name: &FileName, bytes: Range<u64>, damaged: Vec<Range<u64>>) -> Self {
        let is_gzip = name.as_str().to_ascii_lowercase().ends_with(".gz");
        Self {
            bytes,
            damaged,
            is_gzip,
        }
    }
}

/// The records in the damaged bytes of a file that comes in `parts`: in order, without a gap, with or without holes.
///
/// No more parts are asked for than it takes.
///
/// # Errors
///
/// Fails if a part cannot be had.
pub fn records_in(
    parts: impl Iterator<Item = io::Result<Salvaged>>,
    whereabouts: &Whereabouts,
) -> io::Result<Losses> {
    let Whereabouts {
        bytes,
        damaged,
        is_gzip,
    } = whereabouts;
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
    let offset = source.begin()?;
    let options = Options {
        offset,
        ..Options::default()
    };
    let mut reader = Reader::with_options(source, options);
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
        seen_beginning &= reader.source().at() >= GROUP_SIZE;
        let at = reader.source_mut().go_on(to)?;
        reader.skip_to(at);
    }
    if !walk.is_done() {
        walk.end(seen_beginning);
    }
    Ok(walk.losses)
}

/// Sorted, apart, and within the file.
fn merged(ranges: &[Range<u64>], within: &Range<u64>) -> Vec<Range<u64>> {
    let clip = |range: &Range<u64>| range.start.max(within.start)..range.end.min(within.end);
    let mut sorted: Vec<Range<u64>> = ranges.iter().map(clip).collect();
    sorted.retain(|range| !range.is_empty());
    sorted.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in sorted {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            Some(_) | None => merged.push(range),
        }
    }
    merged
}

struct Walk {
    /// Where the bytes end that come.
    size: u64,
    damaged: Vec<Range<u64>>,
    /// Up to here it is known whose the bytes are, or that nobody knows.
    edge: u64,
    /// Before this no further record begins.
    behind: u64,
    /// A record whose end is not known, and where it may begin: it goes to the next one.
    pending: Option<(LostRecord, u64)>,
    losses: Losses,
    text: usize,
    /// Whether there was any record.
    found: bool,
}

/// The end of the bytes before a hole.
struct Cut {
    /// Where the record ends that goes into the hole, where its header says so.
    end: Option<u64>,
    /// Where to go on at the earliest: behind the block of that record.
    go_on: u64,
}

impl Walk {
    /// Whether the damage lies behind.
    fn is_done(&self) -> bool {
        let reached = self.pending.as_ref().map_or(self.behind, |(_, low)| *low);
        self.damaged.last().is_none_or(|last| last.end <= reached)
    }

    /// Goes to the next hole, and says where to go on at the earliest; nothing at the end of the file, or of the damage.
    fn stretch<P>(&mut self, reader: &mut Reader<Stretches<P>>) -> io::Result<Option<u64>>
    where
        P: Iterator<Item = io::Result<Salvaged>>,
    {
        loop {
            let from = reader.source().at();
            let Some(record) = reader.next_record()? else {
                break;
            };
            self.found = true;
            let known = facts(record.header(), record.kind(), record.offset());
            let is_arc = record.version().is_arc();
            let end = record.end()?;
            // Sees whether the file ends here, or a hole begins.
            let (at, is_hole) = (reader.source().at(), reader.source().is_hole());
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
        let at = reader.source().at();
        self.settle(at);
        if let Some((offset, header)) = reader.take_cut_header() {
            self.found = true;
            self.gap(offset);
            self.keep(facts(&header, Kind::Unknown, offset), offset..at + 1);
            self.edge = at;
        }
        Ok(Some(at))
    }

    /// A record that was read to its end.
    fn record(&mut self, mut record: LostRecord, start: u64, at: u64, end: &End) {
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

    /// A record that goes into the hole at `at`.
    fn cut(&mut self, mut record: LostRecord, start: u64, at: u64, cut: &Cut) {
        self.gap(start);
        record.length = cut.end.map(|end| end.saturating_sub(start));
        self.keep(record, start..cut.end.unwrap_or(at + 1));
        self.edge = cut.end.unwrap_or(at);
        self.behind = self.edge;
    }

    /// The record of which the end is not known ends at `next` at the latest.
    fn settle(&mut self, next: u64) {
        if let Some((record, start)) = self.pending.take() {
            self.keep(record, start..next);
            self.edge = self.edge.max(next);
        }
    }

    /// Nobody knows whose the bytes are between what is known and `next`.
    fn gap(&mut self, next: u64) {
        let gap = self.edge..next;
        let unknown_is_full = self.losses.unknown.len() >= MOST_RECORDS;
        if self.touches(&gap) {
            let (start, end) = (gap.start, gap.end);
            let unknown = &mut self.losses.unknown;
            match unknown.last_mut() {
                // Too many to tell them apart.
                Some(last) if unknown_is_full => last.end = end,
                Some(_) | None => unknown.push(Span { start, end }),
            }
        }
        self.edge = self.edge.max(next);
    }

    /// The file ends here.
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

/// Where its block ends, as its header says.
fn block_end(end: &End) -> Option<u64> {
    (end.offset + end.header_length).checked_add(end.announced?)
}

/// Returns how the record ends at a hole at `at`; `None` if it ends before. `block`: where its block ends in the file.
fn cut(end: &End, at: u64, block: Option<u64>, line_ends: u64) -> Option<Cut> {
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

/// Returns what a header says of its record.
fn facts(header: &Header, kind: Kind, offset: u64) -> LostRecord {
    let text = |name: &str| header.text_of(name).map(String::from);
    let said = text("WARC-Type").filter(|_| kind == Kind::Unknown);
    let kind = said.unwrap_or_else(|| kind.name().to_owned());
    let uri = |name: &str| header.uri(name).map(String::from);
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
