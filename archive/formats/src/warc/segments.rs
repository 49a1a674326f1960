//! Records in segments: which segments belong together, which are missing, and all of them joined.
//!
//! Owns the joining of continuation records. Keeps one entry per segment, so it is for files in which segments are few.

use std::collections::BTreeMap;
use std::io::{self, Read};

use thiserror::Error;

use crate::warc::header::{Header, read_number};
use crate::warc::record::WarcType;

/// The reason why segments cannot be joined.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SegmentError {
    /// A continuation lacks the fields that name the record that it continues.
    #[error("a continuation needs WARC-Segment-Origin-ID and WARC-Segment-Number of 2 or more")]
    Unnamed,
    /// The segment was added before.
    #[error("segment {number} of {origin} is there twice")]
    Twice {
        /// The id of the first record of the series.
        origin: String,
        /// The number of the segment.
        number: u64,
    },
    /// No segment of this record is known.
    #[error("no segment of {0} is known")]
    Unknown(String),
    /// Segments of the record are missing.
    #[error("{origin}: {}", missing(.ranges, *.last_known))]
    Missing {
        /// The id of the first record of the series.
        origin: String,
        /// The numbers of the missing segments, as ranges with both ends included.
        ranges: Vec<(u64, u64)>,
        /// Whether the last segment was added.
        last_known: bool,
    },
    /// All segments were added, and their length together is not that in the last one.
    #[error("{origin}: the segments have {found} bytes, the last one says {announced}")]
    Length {
        /// The id of the first record of the series.
        origin: String,
        /// The length that the last segment announces.
        announced: u64,
        /// The length of all segments together.
        found: u64,
    },
}

fn missing(ranges: &[(u64, u64)], last_known: bool) -> String {
    let mut words: Vec<String> = ranges
        .iter()
        .map(|(from, to)| {
            if from == to {
                format!("segment {from} is missing")
            } else {
                format!("segments {from} to {to} are missing")
            }
        })
        .collect();
    if !last_known {
        words.push("the last segment is missing".into());
    }
    words.join(", ")
}

/// The segments of records, each with its place.
#[derive(Clone, Debug)]
pub struct Segments<L> {
    series: BTreeMap<String, Series<L>>,
}

#[derive(Clone, Debug)]
struct Series<L> {
    parts: BTreeMap<u64, (L, u64)>,
    total: Option<u64>,
    /// The number of the first segment that announces the length of all: the last one, in good files.
    last: Option<u64>,
}

/// A fault of a series, even if further segments of it lie in other files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SegmentFault {
    /// Segments are missing between those that were added.
    Gap {
        /// The number of the first missing segment.
        from: u64,
        /// The number of the last segment that is missing in a row.
        to: u64,
        /// The number of further gaps.
        more: u64,
    },
    /// A segment comes behind the one that announces the length of all.
    AfterLast {
        /// The number of that segment.
        number: u64,
        /// The number of the segment that announces the length.
        last: u64,
    },
    /// The length of all segments together is not that in the last one.
    Length {
        /// The length that the last segment announces.
        announced: u64,
        /// The length of all segments together.
        found: u64,
    },
}

impl<L> Series<L> {
    fn faults(&self) -> Vec<SegmentFault> {
        let mut gaps = 0;
        let mut first = None;
        let mut found = 0_u64;
        let mut before = None;
        for (&number, (_, length)) in &self.parts {
            let next = before.map_or(number, |before: u64| before.saturating_add(1));
            if number > next {
                first = first.or(Some((next, number - 1)));
                gaps += 1;
            }
            before = Some(number);
            found = found.saturating_add(*length);
        }
        let mut faults = Vec::new();
        if let Some((from, to)) = first {
            let more = gaps - 1;
            faults.push(SegmentFault::Gap { from, to, more });
        }
        if let (Some(number), Some(last)) = (before, self.last.filter(|&last| before > Some(last)))
        {
            faults.push(SegmentFault::AfterLast { number, last });
        }
        let is_whole = gaps == 0 && self.parts.contains_key(&1);
        if let Some(announced) = self.total
            && (found > announced || (is_whole && found != announced))
        {
            faults.push(SegmentFault::Length { announced, found });
        }
        faults
    }
}

impl<L> Default for Segments<L> {
    fn default() -> Self {
        Self {
            series: BTreeMap::new(),
        }
    }
}

impl<L: Clone> Segments<L> {
    /// Adds a record; returns `false` if it is no segment.
    ///
    /// # Errors
    ///
    /// Fails if the record does not name the record that it continues, or if its segment was added before.
    pub fn add_segment(
        &mut self,
        kind: WarcType,
        header: &Header,
        block_length: u64,
        place: L,
    ) -> Result<bool, SegmentError> {
        let of = |name: &str| header.get(name).and_then(|value| read_number(&value));
        let segment = of("WARC-Segment-Number");
        let (origin, segment) = if kind == WarcType::Continuation {
            match (header.read_uri("WARC-Segment-Origin-ID"), segment) {
                (Some(origin), Some(segment)) if segment > 1 => (origin, segment),
                (_, _) => return Err(SegmentError::Unnamed),
            }
        } else {
            match (header.read_uri("WARC-Record-ID"), segment) {
                (Some(origin), Some(1)) => (origin, 1),
                (_, _) => return Ok(false),
            }
        };
        let series = self.series.entry(origin.to_string()).or_insert(Series {
            parts: BTreeMap::new(),
            total: None,
            last: None,
        });
        if series.parts.contains_key(&segment) {
            return Err(SegmentError::Twice {
                origin: origin.into_owned(),
                number: segment,
            });
        }
        series.parts.insert(segment, (place, block_length));
        if kind == WarcType::Continuation {
            let total = of("WARC-Segment-Total-Length");
            if total.is_some() && series.last.is_none_or(|last| segment < last) {
                (series.total, series.last) = (total, Some(segment));
            }
        }
        Ok(true)
    }

    /// Returns the ids of the first records of all series.
    pub fn origins(&self) -> impl Iterator<Item = &str> {
        self.series.keys().map(String::as_str)
    }

    /// Returns the fault of each series, with its first record and the place of its last known segment.
    pub fn list_faults(&self) -> impl Iterator<Item = (&str, &L, SegmentFault)> {
        self.series.iter().flat_map(|(origin, series)| {
            let place = series.parts.values().next_back().map(|(place, _)| place);
            let faults = series.faults().into_iter();
            faults.filter_map(move |fault| Some((origin.as_str(), place?, fault)))
        })
    }

    /// Returns the places of the segments of a record, in order: all of them, or an error that names those that are
    /// missing.
    ///
    /// # Errors
    ///
    /// Fails if no segment of the record is known, if segments are missing, or if their length together is not that in
    /// the last one.
    pub fn segment_places(&self, origin: &str) -> Result<Vec<L>, SegmentError> {
        let Some(series) = self.series.get(origin) else {
            return Err(SegmentError::Unknown(origin.into()));
        };
        let mut ranges = Vec::new();
        let mut next = 1;
        let mut found = 0_u64;
        for (&segment, (_, length)) in &series.parts {
            if segment > next {
                ranges.push((next, segment - 1));
            }
            next = segment.saturating_add(1);
            found = found.saturating_add(*length);
        }
        let origin = || origin.to_owned();
        match series.total {
            Some(announced) if ranges.is_empty() && announced != found => {
                Err(SegmentError::Length {
                    origin: origin(),
                    announced,
                    found,
                })
            }
            Some(_) if ranges.is_empty() => Ok(series
                .parts
                .values()
                .map(|(place, _)| place.clone())
                .collect()),
            total => Err(SegmentError::Missing {
                origin: origin(),
                ranges,
                last_known: total.is_some(),
            }),
        }
    }
}

/// A reader of the blocks of several segments, one after the other.
#[derive(Debug)]
pub struct JoinedBlocks<L, O, B> {
    places: std::vec::IntoIter<L>,
    open: O,
    block: Option<B>,
}

impl<L, O, B> JoinedBlocks<L, O, B>
where
    O: FnMut(L) -> io::Result<B>,
    B: Read,
{
    /// Makes a reader of the segments at these places; `open` opens the block of one.
    pub fn new(places: Vec<L>, open: O) -> Self {
        Self {
            places: places.into_iter(),
            open,
            block: None,
        }
    }
}

impl<L, O, B> Read for JoinedBlocks<L, O, B>
where
    O: FnMut(L) -> io::Result<B>,
    B: Read,
{
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(block) = &mut self.block {
                let count = block.read(buffer)?;
                if count > 0 {
                    return Ok(count);
                }
            }
            let Some(place) = self.places.next() else {
                return Ok(0);
            };
            self.block = Some((self.open)(place)?);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(fields: &str) -> Header {
        Header::parse(format!("WARC/1.1\r\n{fields}\r\n").as_bytes())
    }

    fn segments(numbers: &[u64], total: Option<u64>) -> Segments<u64> {
        let mut segments = Segments::default();
        for &number in numbers {
            let mut fields = format!("WARC-Segment-Number: {number}\r\n");
            let kind = if number == 1 {
                fields += "WARC-Record-ID: <urn:a>\r\n";
                WarcType::Response
            } else {
                fields += "WARC-Segment-Origin-ID: <urn:a>\r\n";
                WarcType::Continuation
            };
            if let (Some(total), 3) = (total, number) {
                fields = format!("{fields}WARC-Segment-Total-Length: {total}\r\n");
            }
            assert_eq!(
                segments.add_segment(kind, &header(&fields), 2, number),
                Ok(true)
            );
        }
        segments
    }

    /// Fails if segments are joined in the order in which they were found instead of the order of their numbers.
    #[test]
    fn segments_are_joined_in_their_order() {
        let segments = segments(&[3, 1, 2], Some(6));
        assert_eq!(segments.origins().collect::<Vec<_>>(), ["urn:a"]);
        let places = segments.segment_places("urn:a").unwrap();
        assert_eq!(places, [1, 2, 3]);
        let mut text = String::new();
        JoinedBlocks::new(places, |place| Ok(io::Cursor::new(format!("<{place}>"))))
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "<1><2><3>");
    }

    /// Fails if a record is joined although segments or bytes of it are missing, or the error does not name the missing
    /// segments.
    #[test]
    fn missing_segments_are_named() {
        let words = |numbers: &[u64], total| {
            let error = segments(numbers, total)
                .segment_places("urn:a")
                .unwrap_err();
            error.to_string()
        };
        assert_eq!(words(&[1, 3], Some(6)), "urn:a: segment 2 is missing");
        assert_eq!(words(&[3], Some(6)), "urn:a: segments 1 to 2 are missing");
        assert_eq!(words(&[1, 2], None), "urn:a: the last segment is missing");
        assert!(words(&[1, 2, 3], Some(7)).contains('7'));
        assert!(words(&[u64::MAX, 1], None).contains("are missing"));
        assert!(Segments::<u64>::default().segment_places("urn:b").is_err());
    }

    /// Fails if segments that may lie in another file are reported as missing, or one that lies between two others is
    /// not.
    #[test]
    fn segment_of_another_file_is_no_fault() {
        let faults = |numbers: &[u64], total| {
            let segments = segments(numbers, total);
            let found: Vec<_> = segments
                .list_faults()
                .map(|(origin, &place, fault)| (origin.to_owned(), place, fault))
                .collect();
            found
        };
        for (numbers, total) in [
            (&[1][..], None),
            (&[2], None),
            (&[3], Some(6)),
            (&[2, 3], Some(100)),
            (&[1, 2, 3], Some(6)),
        ] {
            assert_eq!(faults(numbers, total), [], "{numbers:?}");
        }
        let one = |place, fault| vec![("urn:a".to_owned(), place, fault)];
        let gap = |from, to, more| SegmentFault::Gap { from, to, more };
        assert_eq!(faults(&[1, 3], Some(6)), one(3, gap(2, 2, 0)));
        assert_eq!(faults(&[2, 5, 9], None), one(9, gap(3, 4, 1)));
        let length = |announced, found| SegmentFault::Length { announced, found };
        assert_eq!(faults(&[1, 2, 3], Some(7)), one(3, length(7, 6)));
        assert_eq!(faults(&[2, 3], Some(3)), one(3, length(3, 4)));
        let number = 4;
        let last = 3;
        assert_eq!(
            faults(&[3, 4], Some(6)),
            one(4, SegmentFault::AfterLast { number, last })
        );
    }

    /// Fails if a whole record is kept as a segment, or a continuation without an origin, without a number of its own
    /// or with a repeated one is accepted.
    #[test]
    fn whole_unnamed_or_repeated_record_is_no_segment() {
        let mut segments = Segments::default();
        let whole = header("WARC-Record-ID: <urn:a>\r\n");
        assert_eq!(
            segments.add_segment(WarcType::Response, &whole, 2, 0),
            Ok(false)
        );
        for fields in [
            "WARC-Segment-Number: 2\r\n",
            "WARC-Segment-Origin-ID: <urn:a>\r\n",
            "WARC-Segment-Origin-ID: <urn:a>\r\nWARC-Segment-Number: 1\r\n",
        ] {
            let result = segments.add_segment(WarcType::Continuation, &header(fields), 2, 0);
            assert_eq!(result, Err(SegmentError::Unnamed), "{fields}");
        }
        assert_eq!(segments.origins().count(), 0);
        let first = header("WARC-Record-ID: <urn:a>\r\nWARC-Segment-Number: 1\r\n");
        let second = header("WARC-Segment-Origin-ID: <urn:a>\r\nWARC-Segment-Number: 2\r\n");
        for (kind, header, number) in [
            (WarcType::Response, first, 1),
            (WarcType::Continuation, second, 2),
        ] {
            assert_eq!(segments.add_segment(kind, &header, 2, number), Ok(true));
            let twice = segments.add_segment(kind, &header, 2, 7);
            let origin = "urn:a".to_owned();
            assert_eq!(twice, Err(SegmentError::Twice { origin, number }));
        }
    }
}
