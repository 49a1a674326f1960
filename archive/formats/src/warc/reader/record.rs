//! A record while it is read: its header, and its block as a reader.
//!
//! Owns no bytes: they stay in the buffers of the reader that the record comes from.

use std::io::{self, BufRead, Read};

use super::{Current, ReadRecordError, WarcReader};
use crate::arc;
use crate::defect::Defect;
use crate::warc::header::Header;
use crate::warc::record::{RecordSummary, Version, WarcType};

/// A record, whose block can be read.
///
/// A block that is shorter than announced ends early if the policy reports that, and with an error if the policy
/// refuses it: [`Record::read_end`] returns whether it was complete.
#[derive(Debug)]
pub struct Record<'a, R> {
    pub(super) reader: &'a mut WarcReader<R>,
}

impl<R: Read> Record<'_, R> {
    fn current(&self) -> Option<&Current> {
        self.reader.current.as_ref()
    }

    /// Returns the type of the record.
    pub fn kind(&self) -> WarcType {
        self.current()
            .map_or(WarcType::Unknown, |current| current.kind)
    }

    /// Returns the version of the format that the record names.
    pub fn version(&self) -> Version {
        self.current()
            .map_or(Version::Unknown, |current| current.version)
    }

    /// Returns the header of the record; for an ARC record its line, seen as the header of a WARC record.
    pub fn header(&self) -> &Header {
        &self.reader.header
    }

    /// Returns the line of an ARC record.
    pub fn arc(&self) -> Option<&arc::ArcLine> {
        self.reader.arc.as_ref()
    }

    /// Returns the offset in the file of the record, or of its member in a compressed file.
    pub fn offset(&self) -> u64 {
        self.current().map_or(0, |current| current.end.offset)
    }

    /// Returns the offset of the record in the decompressed bytes, counted from where reading began.
    pub fn position(&self) -> u64 {
        self.current().map_or(0, |current| current.end.position)
    }

    /// Returns the length of the block by the header.
    pub fn announced_length(&self) -> Option<u64> {
        self.current().and_then(|current| current.end.announced)
    }

    /// Returns the defects found so far that were not taken.
    pub fn defects(&self) -> &[Defect] {
        &self.reader.defects
    }

    /// Skips the rest of the record, and returns the facts about it.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or if the policy refuses a defect.
    pub fn read_end(self) -> Result<RecordSummary, ReadRecordError> {
        let mut end = self.reader.finish_record()?.unwrap_or_default();
        end.defects = self.reader.take_defects();
        Ok(end)
    }
}

impl<R: Read> Read for Record<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let there = self.fill_buf()?;
        let count = there.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), there.get(..count)) {
            to.copy_from_slice(from);
        }
        self.consume(count);
        Ok(count)
    }
}

impl<R: Read> BufRead for Record<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let count = self.reader.fill_block()?;
        Ok(self.reader.stream.bytes().get(..count).unwrap_or_default())
    }

    fn consume(&mut self, count: usize) {
        self.reader.consume_block(count);
    }
}
