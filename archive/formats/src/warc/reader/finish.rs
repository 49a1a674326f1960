//! The end of a record: the line ends behind it, and what follows.
//!
//! Owns the facts that only the end shows. Does not search: the bytes behind a wrong end are searched by the next
//! beginning.

use std::io::{self, Read};

use super::{ReadRecordError, WarcReader};
use crate::defect::Class;
use crate::stream::{Compression, Next};
use crate::warc::record::{RecordSummary, Trailer};

impl<R: Read> WarcReader<R> {
    /// Skips the rest of the record that is being read, if any, and returns the facts about it.
    pub(super) fn finish_record(&mut self) -> Result<Option<RecordSummary>, ReadRecordError> {
        loop {
            let count = self.fill_block()?;
            if count == 0 {
                break;
            }
            self.consume_block(count);
        }
        let Some(current) = &self.current else {
            return Ok(None);
        };
        if current.broken {
            return Ok(self.close(false));
        }
        let is_arc = current.version.is_arc();
        let trailer = self.trailer(is_arc)?;
        let is_regular = trailer.is_regular() || (is_arc && trailer.bytes() == Some(b"\n"));
        let is_plain = self.stream.compression() == Compression::Plain;
        let mut is_blocked = false;
        let mut follows = false;
        let mut is_record = false;
        match self.follows() {
            Ok(found) => (follows, is_record) = found,
            // A complete record does not depend on whether what follows can be read: the next record meets that error.
            // In a compressed file a record is complete only when its member has ended.
            Err(_) if is_plain && is_regular => is_blocked = true,
            Err(error) => return Err(error.into()),
        }
        let position = self.stream.position();
        let offset = self.stream.offset();
        let end_of_member = self.stream.at_end_of_member();
        let member_end = self.stream.member().end;
        let in_member = self.stream.in_member();
        self.sure = is_regular;
        if let Some(current) = &mut self.current {
            let file_end = if is_plain {
                Some(offset)
            } else if current.ended.is_some() {
                current.ended
            } else if end_of_member {
                Some(member_end)
            } else {
                current.end.shared |= is_record && in_member > 0;
                None
            };
            let end = &mut current.end;
            end.trailer = trailer;
            if end.in_member == 0 && !end.shared {
                end.length = file_end.map(|file_end| file_end.saturating_sub(end.offset));
            }
        }
        let is_closed = self
            .current
            .as_ref()
            .is_some_and(|current| current.ended.is_some());
        if !follows && !end_of_member && !is_closed && !is_blocked {
            // The block has its length, but its member is damaged.
            self.recover_in_record()?;
            return Ok(self.close(false));
        }
        if is_regular {
            self.tell_shared(is_record)?;
        } else if !follows || is_record {
            let words = format!("{}, where {} should be", spell(&trailer), expected(is_arc));
            self.break_block();
            self.defect(Class::Trailer, offset, position, words)?;
        } else {
            self.break_block();
            let words = format!(
                "{} after the block, and then no record: Content-Length seems wrong{}",
                spell(&trailer),
                self.search_again()
            );
            self.defect_of_record(Class::WrongLength, words)?;
            return Ok(self.close(false));
        }
        Ok(self.close(true))
    }

    /// Returns whether any bytes follow, and whether they are a record.
    fn follows(&mut self) -> io::Result<(bool, bool)> {
        let follows = self.stream.fill_buffer()?;
        Ok((follows, follows && self.at_start()?))
    }

    /// Closes the record, and returns the facts about it.
    fn close(&mut self, complete: bool) -> Option<RecordSummary> {
        let mut current = self.current.take()?;
        let end = &mut current.end;
        end.complete = complete && end.announced.is_some();
        end.index_length = if self.stream.compression() == Compression::Plain {
            Some(end.header_length + end.block_length)
        } else if end.in_member > 0 || end.shared {
            None
        } else if complete {
            end.length
        } else {
            current.goes_on.map(|at| at.saturating_sub(end.offset))
        };
        if !complete {
            end.length = None;
        }
        Some(current.end)
    }

    fn recover_in_record(&mut self) -> Result<(), ReadRecordError> {
        self.break_block();
        match self.stream.next_member()? {
            Next::Broken => self.recover(),
            Next::Member | Next::End => Ok(()),
        }
    }

    /// Reads the line ends behind a block. They may lie in a further frame, or member.
    fn trailer(&mut self, is_arc: bool) -> Result<Trailer, ReadRecordError> {
        let mut trailer = Trailer::default();
        let prescribed = if is_arc { 1 } else { 4 };
        let is_plain = self.stream.compression() == Compression::Plain;
        loop {
            loop {
                match self.stream.fill_buffer() {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(_) if is_plain && trailer.length() >= prescribed => return Ok(trailer),
                    Err(error) => return Err(error.into()),
                }
                let bytes = self.stream.bytes();
                let count = bytes
                    .iter()
                    .take_while(|&&byte| matches!(byte, b'\r' | b'\n'))
                    .count();
                trailer.push(bytes.get(..count).unwrap_or_default());
                let is_all = count == bytes.len();
                self.stream.consume(count);
                if !is_all {
                    return Ok(trailer);
                }
            }
            if trailer.length() >= prescribed || !self.stream.at_end_of_member() {
                return Ok(trailer);
            }
            if is_plain {
                return Ok(trailer);
            }
            let ended = self.stream.member().end;
            if let Some(current) = &mut self.current {
                current.ended = Some(ended);
            }
            if self.stream.next_member()? != Next::Member || !self.stream.fill_buffer()? {
                return Ok(trailer);
            }
            if !matches!(self.stream.bytes().first(), Some(b'\r' | b'\n')) {
                return Ok(trailer);
            }
            if let Some(current) = &mut self.current {
                current.ended = None;
            }
            self.span()?;
        }
    }

    fn tell_shared(&mut self, is_record: bool) -> Result<(), ReadRecordError> {
        let member = self.stream.member().number;
        let is_compressed = self.stream.compression() != Compression::Plain;
        let goes_on = is_record && self.stream.in_member() > 0;
        if !is_compressed || !goes_on || self.shared == Some(member) {
            return Ok(());
        }
        self.shared = Some(member);
        self.defect_here(
            Class::Shared,
            "more than one record in a member: only the first can be reached by offset".into(),
        )
    }
}

fn expected(is_arc: bool) -> &'static str {
    if is_arc { "LF" } else { "CR LF CR LF" }
}

fn spell(trailer: &Trailer) -> String {
    match trailer.bytes() {
        Some([]) => "no line end".into(),
        Some(bytes) => bytes
            .iter()
            .map(|byte| if *byte == b'\r' { "CR" } else { "LF" })
            .collect::<Vec<_>>()
            .join(" "),
        None => format!("{} bytes of line ends", trailer.length()),
    }
}
