//! Bytes that were read as a block, and are none: a `Content-Length` was too large, and other records may lie in it.
//!
//! Owns which bytes are searched again, and the doubt in records that begin there. In plain files a reader can go back
//! a little; bytes out of reach are reported, and not searched.

use std::io::Read;

use super::{ReadRecordError, WarcReader};
use crate::defect::Class;
use crate::input::LOOK_BACK;
use crate::stream::Compression;
use crate::warc::resync::{self, Answer};

/// The longest block whose end is checked before it is handed out. A longer one leaves at least half of it behind.
const LONGEST: u64 = 2 * LOOK_BACK as u64;

/// The number of bytes that are checked behind a block: line ends, and the line that begins a record.
const BEHIND: usize = 1024;

impl<R: Read> WarcReader<R> {
    /// Goes back to the beginning of this block, in which another record may begin. Returns the words for the bytes
    /// that are out of reach.
    pub(super) fn search_again(&mut self) -> String {
        let Some(current) = &self.current else {
            return String::new();
        };
        let end = &current.end;
        self.told = self.stream.position();
        self.stream.rewind_plain(end.offset + end.header_length);
        let block = end.position + end.header_length;
        let unseen = self.stream.position().saturating_sub(block);
        match unseen.min(end.block_length) {
            0 => String::new(),
            unseen => format!(
                "; in the {unseen} bytes behind the header of the record at offset {} no other record was looked for",
                end.offset
            ),
        }
    }

    /// Checks a record that begins in bytes that were read as a block: if no record follows its own block, it ends
    /// where the next record begins. Otherwise records that lie in each other would be handed out over and over.
    pub(super) fn doubt_member(&mut self) -> Result<(), ReadRecordError> {
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        if current.end.position >= self.told || self.stream.compression() != Compression::Plain {
            return Ok(());
        }
        let Some(length) = current.remaining.filter(|&length| length <= LONGEST) else {
            return Ok(());
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        self.stream.peek_plain(length.saturating_add(BEHIND));
        let behind = self.stream.bytes().get(length..).unwrap_or_default();
        let behind = behind.get(..BEHIND).unwrap_or(behind);
        let is_line_end = |byte: &&u8| matches!(byte, b'\r' | b'\n');
        let (ends, next) = behind.split_at(behind.iter().take_while(is_line_end).count());
        let is_regular = ends == b"\r\n\r\n" || (current.version.is_arc() && ends == b"\n");
        if is_regular || resync::begins_record(next, self.dialect) != Answer::No {
            return Ok(());
        }
        current.remaining = None;
        self.sure = false;
        self.defect_of_record(
            Class::WrongLength,
            "no record after the block: Content-Length seems wrong, the block is what comes before the next record"
                .into(),
        )
    }
}
