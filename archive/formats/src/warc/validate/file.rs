//! The records of a file checked against the standard, one after the other.
//!
//! Owns the rules that only several records can break: identifiers that name two of them, segments that do not fit
//! together. Memory is bounded: identifiers and segments beyond the room are not compared, and counted. Knows nothing
//! of other files, in which further segments may lie.

use std::collections::BTreeSet;
use std::io::Read;

use super::fields::Edition;
use super::{Author, Rule, RuleSeverity, Violation, digests, excerpt, of_defect, validate_record};
use crate::digest::{Algorithm, digest_bytes};
use crate::warc::header::Header;
use crate::warc::reader::{ReadRecordError, Record};
use crate::warc::record::{RecordSummary, WarcType};
use crate::warc::segments::{SegmentError, SegmentFault, Segments};

/// The number of identifiers that are kept: 16 bytes of the hash of each.
const MOST_IDS: usize = 1 << 20;

/// The number of bytes of segments that are kept.
const ROOM: usize = 64 << 20;

/// The most bytes that are kept of a segment besides the name of its series.
const SEGMENT: usize = 256;

/// A validator, which checks the records of a file against the standard.
#[derive(Debug)]
pub struct Validator {
    ids: BTreeSet<u128>,
    segments: Segments<(Edition, u64)>,
    room: usize,
    omitted: u64,
}

impl Default for Validator {
    fn default() -> Self {
        Self {
            ids: BTreeSet::new(),
            segments: Segments::default(),
            room: ROOM,
            omitted: 0,
        }
    }
}

impl Validator {
    /// Reads a record to its end, and returns its violations and those of the bytes before it.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or if its policy refuses a defect.
    pub fn check_record<R: Read>(
        &mut self,
        mut record: Record<'_, R>,
    ) -> Result<Vec<Violation>, ReadRecordError> {
        let kind = record.kind();
        let version = record.version();
        let header = record.header().clone();
        let edition = Edition::from_version(version);
        let digests = match edition {
            Some(_) => digests::read_digests(&mut record, &header)?,
            None => Vec::new(),
        };
        let end = record.read_end()?;
        let mut found = validate_record(kind, version, &header, &end);
        if let Some(edition) = edition {
            let author = Author::new(edition, &header, end.offset);
            // A cut or damaged record has other bytes, and is reported as that.
            if end.complete {
                found.extend(digests.into_iter().map(|wrong| wrong.violation_by(&author)));
            }
            found.extend(self.id(&header, &author));
            found.extend(self.segment(kind, &header, &end, &author));
        }
        found.extend(end.defects.iter().filter_map(of_defect));
        Ok(found)
    }

    /// Returns the violations that only all records together show.
    pub fn finish_file(&self) -> Vec<Violation> {
        let faults = self.segments.list_faults();
        faults
            .map(|(origin, &(edition, offset), fault)| {
                let author = Author {
                    edition,
                    offset,
                    record: Some(excerpt(origin)),
                };
                of_fault(&author, fault)
            })
            .collect()
    }

    /// Returns the number of identifiers and segments that were not compared for lack of room.
    pub fn omitted_violations(&self) -> u64 {
        self.omitted
    }

    fn id(&mut self, header: &Header, author: &Author) -> Option<Violation> {
        let id = header
            .read_uri("WARC-Record-ID")
            .filter(|id| !id.is_empty())?;
        let hash = digest_bytes(Algorithm::Blake3, id.as_bytes());
        let key = u128::from_le_bytes(*hash.as_bytes().first_chunk()?);
        if self.ids.contains(&key) {
            let words = "a record before has the same WARC-Record-ID".into();
            return Some(author.violation(Rule::Repeated, RuleSeverity::Error, "5.2", words));
        }
        if self.ids.len() < MOST_IDS {
            self.ids.insert(key);
        } else {
            self.omitted += 1;
        }
        None
    }

    fn segment(
        &mut self,
        kind: WarcType,
        header: &Header,
        end: &RecordSummary,
        author: &Author,
    ) -> Option<Violation> {
        header.get("WARC-Segment-Number")?;
        let name = if kind == WarcType::Continuation {
            "WARC-Segment-Origin-ID"
        } else {
            "WARC-Record-ID"
        };
        let series = header.read_uri(name);
        let size = SEGMENT + series.map_or(0, |series| series.len());
        let Some(room) = self.room.checked_sub(size) else {
            self.omitted += 1;
            return None;
        };
        self.room = room;
        let place = (author.edition, end.offset);
        match self
            .segments
            .add_segment(kind, header, end.block_length, place)
        {
            Err(SegmentError::Twice { number, .. }) => {
                let words = format!("segment {number} of the same record is there twice");
                let clause = clause(author.edition, "5.18", "5.20");
                Some(author.violation(Rule::Segmentation, RuleSeverity::Error, clause, words))
            }
            // Missing fields are reported by their own rules.
            _ => None,
        }
    }
}

fn clause(edition: Edition, first: &'static str, second: &'static str) -> &'static str {
    match edition {
        Edition::First => first,
        Edition::Second => second,
    }
}

/// Returns the violation for a faulty series. A gap is no error, because the missing segments may lie in another file.
fn of_fault(author: &Author, fault: SegmentFault) -> Violation {
    let number = clause(author.edition, "5.18", "5.20");
    let total = clause(author.edition, "5.20", "5.22");
    let (severity, clause, words) = match fault {
        SegmentFault::Gap { from, to, more } => {
            let more = match more {
                0 => String::new(),
                more => format!(", and {more} more gaps"),
            };
            let words =
                format!("segments {from} to {to} of this record are not in this file{more}");
            (RuleSeverity::Warning, number, words)
        }
        SegmentFault::AfterLast { number, last } => {
            let words = format!(
                "segment {last} has WARC-Segment-Total-Length and is not the last one: {number} follows"
            );
            (RuleSeverity::Error, total, words)
        }
        SegmentFault::Length { announced, found } => {
            let words = format!(
                "WARC-Segment-Total-Length is {announced}, the segments in this file have {found} bytes"
            );
            (RuleSeverity::Error, total, words)
        }
    };
    author.violation(Rule::Segmentation, severity, clause, words)
}
