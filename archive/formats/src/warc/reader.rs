//! Reads archive files record by record, and continues after damage.
//!
//! Owns the order of steps: where a record begins, its header, its block, its end, and what to do when one of them is
//! missing. Memory is bounded: two buffers, and a header within its limit. Does not look into blocks.

use std::io::{self, Read, Seek, SeekFrom};

use thiserror::Error;

use crate::arc;
use crate::defect::{Action, Class, Defect, DefectPolicy};
use crate::stream::{Compression, Next, Stream};
use crate::warc::header::Header;
use crate::warc::record::{RecordSummary, Version, WarcType};
use crate::warc::resync::{self, Answer, Beginning, Dialect};

mod again;
mod begin;
mod finish;
mod hole;
mod record;
mod resume;

pub use record::Record;
pub use resume::{Dictionary, KnownFormat};

/// The most defects that are kept until the caller takes them.
const KEPT: usize = 1000;

/// The reason why a record could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadRecordError {
    /// The file cannot be read. Asking again asks the file again.
    #[error("the file cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A defect that the policy refuses. Asking again reads on behind it.
    #[error("{0}")]
    Refused(Box<Defect>),
}

impl From<ReadRecordError> for io::Error {
    fn from(error: ReadRecordError) -> Self {
        match error {
            ReadRecordError::Io(error) => error,
            ReadRecordError::Refused(_) => Self::new(io::ErrorKind::InvalidData, error),
        }
    }
}

/// The options of a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReaderOptions {
    /// The reaction to defects.
    pub policy: DefectPolicy,
    /// The longest header that is read. A longer one is a defect, and its record is passed over.
    pub header_limit: usize,
    /// The offset in the file of the first byte of the source.
    pub offset: u64,
}

impl Default for ReaderOptions {
    fn default() -> Self {
        Self {
            policy: DefectPolicy::default(),
            header_limit: 1024 * 1024,
            offset: 0,
        }
    }
}

/// A reader of records from any [`Read`]; it has buffers of its own.
///
/// ```
/// use std::io::Read;
/// use archive_formats::warc::{Builder, WarcType, WarcReader};
///
/// let id = "urn:uuid:6f6e9f5e-0d2b-4a0b-8f6c-7a1b2c3d4e5f";
/// let mut file = Builder::new(WarcType::Metadata, id, "2026-11-21T19:14:09Z").render_head(5)?;
/// file.extend(b"hello\r\n\r\n");
///
/// let mut reader = WarcReader::new(file.as_slice());
/// let mut text = String::new();
/// while let Some(mut record) = reader.next_record()? {
///     record.read_to_string(&mut text)?;
/// }
/// assert_eq!(text, "hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about where reading stands"
)]
pub struct WarcReader<R> {
    stream: Stream<R>,
    options: ReaderOptions,
    dialect: Dialect,
    header: Header,
    arc: Option<arc::ArcLine>,
    current: Option<Current>,
    /// The number of records begun so far.
    found: u64,
    /// The offset in the decompressed bytes up to which bytes without a record were reported.
    told: u64,
    /// The member of which it was reported that it has several records.
    shared: Option<u64>,
    defects: Vec<Defect>,
    omitted: u64,
    ended: bool,
    /// Whether the last record ended as it should, so that one begins here or the file is damaged.
    sure: bool,
    /// Whether the next bytes may be the rest of a line.
    torn: bool,
    /// The header that the end of the bytes has cut, and the offset of its record.
    cut: Option<(u64, Header)>,
    /// Whether reading began within the file: what comes before the first record is no defect.
    resumed: bool,
}

/// The record that is being read.
#[derive(Debug)]
struct Current {
    kind: WarcType,
    version: Version,
    end: RecordSummary,
    /// The rest of the block; `None` if its length is not known.
    remaining: Option<u64>,
    /// In a block of unknown length: the number of bytes that are known to be of it, and whether a line begins behind
    /// them.
    safe: usize,
    line_start: bool,
    /// Whether the block is over before its end.
    broken: bool,
    /// The end of the member in which the record ends, once the next member was begun to find that out.
    ended: Option<u64>,
    /// The offset in the file at which reading continues after damage in compressed data, or at which the file ends.
    goes_on: Option<u64>,
}

impl<R: Read> WarcReader<R> {
    /// Reads from the beginning of a file.
    pub fn new(source: R) -> Self {
        Self::with_options(source, ReaderOptions::default())
    }

    /// Reads from a source with these options.
    pub fn with_options(source: R, options: ReaderOptions) -> Self {
        Self {
            stream: Stream::new(source, options.offset),
            options,
            dialect: Dialect::Unknown,
            header: Header::default(),
            arc: None,
            current: None,
            found: 0,
            told: 0,
            shared: None,
            defects: Vec::new(),
            omitted: 0,
            ended: false,
            sure: true,
            torn: false,
            cut: None,
            resumed: false,
        }
    }

    /// Goes to the next record; `None` at the end of the file. The rest of the record before is skipped.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or if the policy refuses a defect.
    pub fn next_record(&mut self) -> Result<Option<Record<'_, R>>, ReadRecordError> {
        self.finish_record()?;
        if self.begin_record()? {
            Ok(Some(Record { reader: self }))
        } else {
            Ok(None)
        }
    }

    /// Returns the compression of the file; known once the first record is asked for.
    pub fn compression(&self) -> Compression {
        self.stream.compression()
    }

    /// Returns the defects that were not taken yet: [`Record::read_end`] takes those of its record. After the last record,
    /// these are the defects of the bytes behind it.
    pub fn take_defects(&mut self) -> Vec<Defect> {
        std::mem::take(&mut self.defects)
    }

    /// Returns the number of defects that were not kept, because a thousand of them were not taken.
    pub fn omitted_defects(&self) -> u64 {
        self.omitted
    }

    /// Handles a defect as the policy says.
    fn defect(
        &mut self,
        class: Class,
        offset: u64,
        uncompressed: u64,
        words: String,
    ) -> Result<(), ReadRecordError> {
        let action = self.options.policy.action_for(class);
        if action == Action::Ignore || (self.resumed && self.found == 0) {
            return Ok(());
        }
        let record = match self.current {
            Some(_) => self.header.text_of("WARC-Record-ID").map(String::from),
            None => None,
        };
        let defect = Defect {
            class,
            offset,
            uncompressed,
            record,
            words,
        };
        if action == Action::Refuse {
            return Err(ReadRecordError::Refused(Box::new(defect)));
        }
        if self.defects.len() < KEPT {
            self.defects.push(defect);
        } else {
            self.omitted += 1;
        }
        Ok(())
    }

    /// Handles a defect at the current position.
    fn defect_here(&mut self, class: Class, words: String) -> Result<(), ReadRecordError> {
        let offset = self.stream.offset();
        let position = self.stream.position();
        self.defect(class, offset, position, words)
    }

    /// Handles a defect of the record that is being read.
    fn defect_of_record(&mut self, class: Class, words: String) -> Result<(), ReadRecordError> {
        let place = self
            .current
            .as_ref()
            .map(|current| (current.end.offset, current.end.position));
        let (offset, position) = place.unwrap_or((self.stream.offset(), self.stream.position()));
        self.defect(class, offset, position, words)
    }

    /// Finds the place to continue after damage in the compressed data, and reports both.
    fn recover(&mut self) -> Result<(), ReadRecordError> {
        let dialect = self.dialect;
        let position = self.stream.position();
        let starts = move |bytes: &[u8]| resync::is_start(bytes, dialect);
        let Some((found, next)) = self.stream.resync_member(&starts)? else {
            return Ok(());
        };
        if let Some(current) = &mut self.current {
            current.goes_on = next.or((found.class == Class::Cut).then_some(found.offset));
        }
        let words = match next {
            Some(next) if next == found.offset => found.words,
            Some(next) => format!("{}; goes on at offset {next}", found.words),
            None => format!("{}; no record was found behind it", found.words),
        };
        self.defect(found.class, found.offset, position, words)
    }

    /// Returns the number of bytes of the block that can be read now; zero at its end.
    fn fill_block(&mut self) -> Result<usize, ReadRecordError> {
        loop {
            let Some(current) = &self.current else {
                return Ok(0);
            };
            if current.broken {
                return Ok(0);
            }
            let Some(remaining) = current.remaining else {
                return self.fill_unknown();
            };
            if remaining == 0 {
                return Ok(0);
            }
            if self.stream.fill_buffer()? {
                let there = self.stream.bytes().len();
                return Ok(usize::try_from(remaining).map_or(there, |left| left.min(there)));
            }
            if !self.cross(remaining)? {
                return Ok(0);
            }
        }
    }

    /// Goes to the next member within a block; returns whether the block continues there.
    fn cross(&mut self, remaining: u64) -> Result<bool, ReadRecordError> {
        match self.stream.next_member()? {
            Next::Member => {
                if self.at_start()? {
                    self.break_block();
                    let next = self.stream.member().offset;
                    if let Some(current) = &mut self.current {
                        current.goes_on = Some(next);
                    }
                    self.defect_of_record(
                        Class::WrongLength,
                        format!("the block ends {remaining} bytes before its Content-Length"),
                    )?;
                    return Ok(false);
                }
                self.span()?;
                Ok(true)
            }
            Next::End => {
                self.break_block();
                let class = if self.stream.compression() == Compression::Plain {
                    Class::Cut
                } else {
                    Class::WrongLength
                };
                let offset = self.stream.offset();
                let position = self.stream.position();
                let unseen = self.search_again();
                let words =
                    format!("the file ends {remaining} bytes before the block does{unseen}");
                self.defect(class, offset, position, words)?;
                Ok(false)
            }
            Next::Broken => {
                self.break_block();
                self.recover()?;
                Ok(false)
            }
        }
    }

    fn break_block(&mut self) {
        if let Some(current) = &mut self.current {
            current.broken = true;
        }
        self.sure = false;
    }

    /// Notes that the record continues in another member.
    fn span(&mut self) -> Result<(), ReadRecordError> {
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        current.end.members += 1;
        if current.end.members == 2 && self.stream.compression() == Compression::Gzip {
            self.defect_of_record(
                Class::Spans,
                "the record goes on in the next gzip member".into(),
            )?;
        }
        Ok(())
    }

    /// Returns whether a record begins at the current position. Reads as many bytes as it takes to know.
    fn at_start(&mut self) -> io::Result<bool> {
        loop {
            match resync::begins_record(self.stream.bytes(), self.dialect) {
                Answer::Yes => return Ok(true),
                Answer::No => return Ok(false),
                Answer::Undecided => {
                    if !self.stream.read_more()? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Returns the number of bytes that can be read of a block without a length: those up to the next record or the end
    /// of the member.
    fn fill_unknown(&mut self) -> Result<usize, ReadRecordError> {
        loop {
            let Some(current) = &mut self.current else {
                return Ok(0);
            };
            if current.safe > 0 {
                return Ok(current.safe.min(self.stream.bytes().len()));
            }
            match resync::find_beginning(self.stream.bytes(), current.line_start, self.dialect) {
                Beginning::At(0) => {
                    current.broken = true;
                    return Ok(0);
                }
                Beginning::At(safe) => {
                    current.safe = safe;
                    current.line_start = true;
                }
                Beginning::None { safe, line_start } if safe > 0 => {
                    current.safe = safe;
                    current.line_start = line_start;
                }
                Beginning::None { .. } => {
                    if !self.stream.read_more()? {
                        let rest = self.stream.bytes().len();
                        current.safe = rest;
                        current.line_start = false;
                        if rest == 0 {
                            current.broken = true;
                            return Ok(0);
                        }
                    }
                }
            }
        }
    }

    fn consume_block(&mut self, count: usize) {
        self.stream.consume(count);
        if let Some(current) = &mut self.current {
            current.end.block_length += count as u64;
            current.safe = current.safe.saturating_sub(count);
            if let Some(remaining) = &mut current.remaining {
                *remaining = remaining.saturating_sub(count as u64);
            }
        }
    }
}

impl<R: Read + Seek> WarcReader<R> {
    /// Reads the record at an offset, and those behind it. The dictionary of a zstd file is read from its beginning.
    ///
    /// # Errors
    ///
    /// Fails if the source cannot be read or moved.
    pub fn open_at(source: R, offset: u64) -> Result<Self, ReadRecordError> {
        let options = ReaderOptions {
            offset,
            ..ReaderOptions::default()
        };
        Self::open_with(source, options)
    }

    /// Seeks to the offset in the options, and reads with these options.
    ///
    /// # Errors
    ///
    /// Fails if the source cannot be read or moved.
    pub fn open_with(mut source: R, options: ReaderOptions) -> Result<Self, ReadRecordError> {
        source.seek(SeekFrom::Start(0))?;
        let dictionary = Dictionary::read_dictionary(&mut source)?;
        source.seek(SeekFrom::Start(options.offset))?;
        let mut reader = Self::with_options(source, options);
        if let Some(Dictionary(unzstd)) = dictionary {
            reader.stream.set_dictionary(unzstd);
        }
        Ok(reader)
    }
}
