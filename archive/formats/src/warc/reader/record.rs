//! A record while it is read: its header, and its block as a reader.
//!
//! Owns no bytes: they stay in the buffers of the reader it comes from.

use std::io::{self, BufRead, Read};

use super::{Current, ReadError, Reader};
use crate::arc;
use crate::defect::Defect;
use crate::warc::header::Header;
use crate::warc::record::{End, Kind, Version};

/// A record, whose block can be read.
///
/// A block that is shorter than its header says ends early when the policy reports that, and with an error when the policy
/// refuses it: [`Record::end`] tells whether it was complete.
#[derive(Debug)]
pub struct Record<'a, R> {
    pub(super) reader: &'a mut Reader<R>,
}

impl<R: Read> Record<'_, R> {
    fn current(&self) -> Option<&Current> {
        self.reader.current.as_ref()
    }

    /// Its type.
    pub fn kind(&self) -> Kind {
        self.current().map_or(Kind::Unknown, |current| current.kind)
    }

    /// The version of the format it says it has.
    pub fn version(&self) -> Version {
        self.current()
            .map_or(Version::Unknown, |current| current.version)
    }

    /// Its header. Of an ARC record: its line, seen as the header of a WARC record.
    pub fn header(&self) -> &Header {
        &self.reader.header
    }

    /// The line of an ARC record.
    pub fn arc(&self) -> Option<&arc::Line> {
        self.reader.arc.as_ref()
    }

    /// Where it begins in the file: itself in a plain file, its member in a compressed one.
    pub fn offset(&self) -> u64 {
        self.current().map_or(0, |current| current.end.offset)
    }

    /// Where it begins in the decompressed bytes, counted from where reading began.
    pub fn position(&self) -> u64 {
        self.current().map_or(0, |current| current.end.position)
    }

    /// Returns the length of its block by its header.
    pub fn announced(&self) -> Option<u64> {
        self.current().and_then(|current| current.end.announced)
    }

    /// The defects found up to now, since somebody took them.
    pub fn defects(&self) -> &[Defect] {
        &self.reader.defects
    }

    /// Passes over what is left of it, and tells what is known then.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or if the policy refuses a defect.
    pub fn end(self) -> Result<End, ReadError> {
        let mut end = self.reader.finish()?.unwrap_or_default();
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
