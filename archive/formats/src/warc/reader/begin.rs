//! The beginning of the next record, and its header.
//!
//! Owns the search for a beginning after damage, and the facts that a header gives. Does not read blocks.

use std::io::Read;

use super::{Current, ReadRecordError, WarcReader};
use crate::arc;
use crate::defect::Class;
use crate::stream::{Compression, Next};
use crate::warc::header::{self, Extent};
use crate::warc::record::{RecordSummary, Version, WarcType};
use crate::warc::resync::{self, Beginning, Dialect};

/// The place of a beginning.
#[derive(Clone, Copy)]
struct Place {
    offset: u64,
    position: u64,
    in_member: u64,
}

/// The beginning that stands where a record should begin.
enum Start {
    Warc,
    Arc(Box<arc::ArcLine>, usize),
    Other,
}

/// The further part of a header.
enum More {
    Bytes,
    /// A further record begins behind this number of bytes.
    Record(usize),
    Nothing,
}

impl<R: Read> WarcReader<R> {
    /// Finds the next record and reads its header; `false` at the end of the file.
    pub(super) fn begin_record(&mut self) -> Result<bool, ReadRecordError> {
        let dialect = self.dialect;
        let starts = move |bytes: &[u8]| resync::is_start(bytes, dialect);
        if !self.stream.open_member(&starts)? {
            return self.end_of_file(true);
        }
        loop {
            if !self.stream.fill_buffer()? {
                match self.stream.next_member()? {
                    Next::Member => {}
                    Next::End => return self.end_of_file(false),
                    Next::Broken => self.recover()?,
                }
                self.tell_padding()?;
                continue;
            }
            let mut place = self.place();
            match self.start(&mut place)? {
                Start::Warc => {
                    if self.warc(place)? {
                        self.doubt_member()?;
                        return Ok(true);
                    }
                }
                Start::Arc(line, length) => {
                    self.arc(place, *line, length)?;
                    self.doubt_member()?;
                    return Ok(true);
                }
                Start::Other => self.search()?,
            }
        }
    }

    fn end_of_file(&mut self, is_empty: bool) -> Result<bool, ReadRecordError> {
        if self.ended {
            return Ok(false);
        }
        self.ended = true;
        self.tell_padding()?;
        if self.found == 0 {
            if is_empty {
                self.defect_here(Class::Empty, "the file is empty".into())?;
            } else {
                let offset = self.options.offset;
                let words = "no WARC or ARC record was found in the whole file".into();
                self.defect(Class::NoRecord, offset, 0, words)?;
            }
        }
        Ok(false)
    }

    fn tell_padding(&mut self) -> Result<(), ReadRecordError> {
        match self.stream.take_padding() {
            0 => Ok(()),
            count => self.defect_here(
                Class::Padding,
                format!("{count} zero bytes between gzip members"),
            ),
        }
    }

    fn place(&self) -> Place {
        Place {
            offset: self.stream.offset(),
            position: self.stream.position(),
            in_member: self.stream.in_member(),
        }
    }

    /// Returns the beginning at this place, or in the next member if only a part of a beginning is left in this one.
    fn start(&mut self, place: &mut Place) -> Result<Start, ReadRecordError> {
        let torn =
            std::mem::take(&mut self.torn) && self.stream.compression() == Compression::Plain;
        while self.stream.bytes().len() < 5 && self.stream.read_more()? {}
        while header::is_undecided(self.stream.bytes()) {
            match self.more_of_header()? {
                More::Bytes => {}
                More::Record(count) => {
                    self.stream.consume(count);
                    let torn = std::mem::replace(place, self.place());
                    let words = format!("{count} bytes that belong to no record");
                    self.defect(Class::Garbage, torn.offset, torn.position, words)?;
                }
                More::Nothing => break,
            }
        }
        let bytes = self.stream.bytes();
        if header::begins_header(bytes) {
            // In an ARC file a line of WARC is content, unless it stands where a record has to begin.
            return Ok(if self.dialect != Dialect::Arc || self.sure {
                Start::Warc
            } else {
                Start::Other
            });
        }
        let may_be_arc = self.dialect != Dialect::Warc && !torn;
        if !may_be_arc || !bytes.first().is_some_and(u8::is_ascii_alphabetic) {
            return Ok(Start::Other);
        }
        let mut searched = 0;
        loop {
            let bytes = self.stream.bytes();
            let rest = bytes.get(searched..).unwrap_or_default();
            if let Some(length) = memchr::memchr(b'\n', rest) {
                let length = searched + length;
                let rigour = if self.dialect == Dialect::Arc && self.sure {
                    arc::Rigour::Expected
                } else {
                    arc::Rigour::Anywhere
                };
                let line = bytes.get(..length).unwrap_or_default();
                // Reading may have begun within a line, of which a part of the scheme is missing.
                if self.resumed && self.stream.position() == 0 && !arc::has_usual_scheme(line) {
                    return Ok(Start::Other);
                }
                return Ok(match arc::ArcLine::parse_as(line, rigour) {
                    Some(line) => Start::Arc(Box::new(line), length + 1),
                    None => Start::Other,
                });
            }
            searched = bytes.len();
            if searched > arc::LONGEST_LINE || !self.stream.read_more()? {
                return Ok(Start::Other);
            }
        }
    }

    /// Skips bytes that are no record, up to the next line that begins one or to the end of the member.
    fn search(&mut self) -> Result<(), ReadRecordError> {
        let place = self.place();
        // No record begins at the current position: the next line is the first that may begin one.
        let mut line_start = false;
        let dialect = self.dialect;
        let starts = move |bytes: &[u8]| resync::is_start(bytes, dialect);
        let may_be_compressed =
            self.found == 0 && !self.resumed && self.stream.compression() == Compression::Plain;
        loop {
            match resync::find_beginning(self.stream.bytes(), line_start, self.dialect) {
                Beginning::At(at) if may_be_compressed => {
                    self.stream.pass_over(at, &starts)?;
                    break;
                }
                Beginning::At(at) => {
                    self.stream.consume(at);
                    break;
                }
                Beginning::None {
                    safe,
                    line_start: is,
                } => {
                    if !may_be_compressed {
                        self.stream.consume(safe);
                    } else if self.stream.pass_over(safe, &starts)? {
                        break;
                    }
                    line_start = is;
                    if !self.stream.read_more()? {
                        let rest = self.stream.bytes().len();
                        self.stream.consume(rest);
                        break;
                    }
                }
            }
        }
        self.sure = false;
        let end = self.stream.position();
        // Bytes that were read as a block before are not reported again.
        let from = place.position.max(self.told);
        if end <= from {
            return Ok(());
        }
        let known = from - place.position;
        let offset = if self.stream.member().number == 0 {
            place.offset + known
        } else {
            place.offset
        };
        self.told = end;
        self.defect(
            Class::Garbage,
            offset,
            from,
            format!("{} bytes that belong to no record", end - from),
        )
    }

    /// Reads the header of a WARC record; returns `false` if it turns out to be none.
    fn warc(&mut self, place: Place) -> Result<bool, ReadRecordError> {
        let mut from = 0;
        let first = self.stream.member().number;
        loop {
            let limit = self.options.header_limit;
            match header::header_extent(self.stream.bytes(), &mut from) {
                Extent::Complete(length) if length <= limit => {
                    let raw = self.stream.bytes().get(..length).unwrap_or_default();
                    self.header.read_header(raw);
                    self.stream.consume(length);
                    let members = 1 + self.stream.member().number - first;
                    self.begin_warc(place, length, members)?;
                    return Ok(true);
                }
                Extent::Cut(length) if length <= limit => {
                    self.stream.consume(length);
                    self.cut_header(place)?;
                    return Ok(false);
                }
                Extent::Partial if self.stream.bytes().len() <= limit => {
                    match self.more_of_header()? {
                        More::Bytes => {}
                        More::Record(length) => {
                            self.stream.consume(length);
                            self.cut_header(place)?;
                            return Ok(false);
                        }
                        More::Nothing => {
                            self.keep_cut(place.offset);
                            self.stream.consume(5);
                            self.told = self.stream.position() + self.stream.bytes().len() as u64;
                            self.cut_header(place)?;
                            return Ok(false);
                        }
                    }
                }
                Extent::Complete(_) | Extent::Cut(_) | Extent::Partial => {
                    self.stream.consume(5);
                    self.defect(
                        Class::HeaderTooLong,
                        place.offset,
                        place.position,
                        format!(
                            "the header is longer than {limit} bytes: its record is passed over"
                        ),
                    )?;
                    return Ok(false);
                }
            }
        }
    }

    fn cut_header(&mut self, place: Place) -> Result<(), ReadRecordError> {
        self.defect(
            Class::HeaderCut,
            place.offset,
            place.position,
            "the header ends before its empty line: its record is passed over".into(),
        )
    }

    fn more_of_header(&mut self) -> Result<More, ReadRecordError> {
        let before = self.stream.bytes().len();
        loop {
            if self.stream.read_more()? {
                return Ok(More::Bytes);
            }
            match self.stream.next_member()? {
                Next::Member => {}
                Next::End | Next::Broken => return Ok(More::Nothing),
            }
            while self.stream.bytes().len() < before + 64 && self.stream.read_more()? {}
            let new = self.stream.bytes().get(before..).unwrap_or_default();
            if resync::is_start(new, self.dialect) {
                return Ok(More::Record(before));
            }
            if !new.is_empty() {
                return Ok(More::Bytes);
            }
        }
    }

    fn begin_warc(
        &mut self,
        place: Place,
        length: usize,
        members: u64,
    ) -> Result<(), ReadRecordError> {
        self.dialect = Dialect::Warc;
        self.arc = None;
        let version = Version::from_line(self.header.first_line());
        let kind_field = self.header.get("WARC-Type");
        let has_kind = kind_field.is_some();
        let kind = kind_field.map_or(WarcType::Unknown, |value| WarcType::from_bytes(&value));
        let announced = self.header.content_length();
        self.open_record(
            place,
            kind,
            version,
            announced.as_ref().ok().copied().flatten(),
            length,
        );
        if members > 1 {
            self.span()?;
        }
        match announced {
            Ok(Some(_)) => {}
            Ok(None) => self.defect_of_record(
                Class::MissingLength,
                "no Content-Length: the block is what comes before the next record".into(),
            )?,
            Err(words) => self.defect_of_record(Class::BadLength, words)?,
        }
        if version == Version::Unknown {
            let line = String::from_utf8_lossy(self.header.first_line()).into_owned();
            let line: String = line.chars().take(80).collect();
            self.defect_of_record(Class::Version, format!("unknown version: {line:?}"))?;
        }
        if !has_kind {
            self.defect_of_record(Class::MissingType, "no WARC-Type".into())?;
        } else if kind == WarcType::Unknown {
            let name = self.header.text_of("WARC-Type").unwrap_or_default();
            let words = format!(
                "unknown type: {:?}",
                name.chars().take(80).collect::<String>()
            );
            self.defect_of_record(Class::UnknownType, words)?;
        }
        let irregular = self.header.irregular();
        if irregular.no_field > 0 {
            let words = format!(
                "{} header lines without a name and a colon, the first {} bytes into the header",
                irregular.no_field, irregular.first_no_field
            );
            self.defect_of_record(Class::Field, words)?;
        }
        if irregular.bare_line_ends > 0 {
            let words = format!(
                "{} header lines end with LF alone",
                irregular.bare_line_ends
            );
            self.defect_of_record(Class::LineEnding, words)?;
        }
        Ok(())
    }

    fn arc(
        &mut self,
        place: Place,
        line: arc::ArcLine,
        length: usize,
    ) -> Result<(), ReadRecordError> {
        // A line that was found by searching may be content, and tells nothing of the file.
        if self.sure {
            self.dialect = Dialect::Arc;
        }
        let raw = self.stream.bytes().get(..length).unwrap_or_default();
        self.header.read_view(raw, line.view_as_warc());
        let shown = String::from_utf8_lossy(raw.get(..200).unwrap_or(raw))
            .trim_end()
            .to_owned();
        self.stream.consume(length);
        let kind = if line.is_filedesc() {
            WarcType::ArcHeader
        } else {
            WarcType::Response
        };
        let is_two = line.two.is_some() || self.stream.bytes().starts_with(b"2 ");
        let version = if is_two && (line.two.is_some() || kind == WarcType::ArcHeader) {
            Version::Arc2
        } else {
            Version::Arc1
        };
        self.open_record(place, kind, version, line.length, length);
        let has_length = line.length.is_some();
        let is_complete = line.is_complete();
        self.arc = Some(line);
        if !has_length {
            self.defect_of_record(
                Class::BadLength,
                format!("the line says no length; the block is what comes before the next record: {shown:?}"),
            )?;
        }
        if !is_complete {
            self.defect_of_record(
                Class::ArcLine,
                format!("the line has impossible or too few fields: {shown:?}"),
            )?;
        }
        Ok(())
    }

    fn open_record(
        &mut self,
        place: Place,
        kind: WarcType,
        version: Version,
        announced: Option<u64>,
        header_length: usize,
    ) {
        self.found += 1;
        self.current = Some(Current {
            kind,
            version,
            end: RecordSummary {
                offset: place.offset,
                position: place.position,
                in_member: place.in_member,
                header_length: header_length as u64,
                announced,
                members: 1,
                shared: place.in_member > 0,
                ..RecordSummary::default()
            },
            remaining: announced,
            safe: 0,
            line_start: true,
            broken: false,
            ended: None,
            goes_on: None,
        });
    }
}
