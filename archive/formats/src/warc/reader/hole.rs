//! Reading a file with holes.
//!
//! The source ends where a hole begins; the caller moves it behind the hole, and tells the reader the offset. Owns what
//! the reader still relies on then: the compression of the file, and its dialect. Does not find holes.

use std::io::Read;

use super::WarcReader;
use crate::warc::header::Header;

impl<R: Read> WarcReader<R> {
    /// Returns the source of the reader.
    pub const fn source(&self) -> &R {
        self.stream.source()
    }

    /// Returns the source of the reader, to move it: call [`skip_to`](Self::skip_to) then.
    pub const fn source_mut(&mut self) -> &mut R {
        self.stream.source_mut()
    }

    /// Takes the file for gzip where its lost beginning does not tell. To be called before the first record is asked
    /// for.
    pub fn assume_gzip(&mut self) {
        self.stream.assume_gzip();
    }

    /// Goes on behind a hole: the next byte of the source is at `offset` of the file. The record that was being read is
    /// over, and the next one is the first that is found from there on.
    pub fn skip_to(&mut self, offset: u64) {
        self.current = None;
        self.shared = None;
        self.cut = None;
        self.ended = false;
        self.sure = false;
        self.torn = true;
        self.stream.skip_to(offset);
        self.told = self.stream.position();
    }

    /// Returns the header that the end of the bytes has cut, as far as its lines are complete, and the offset of its
    /// record.
    pub fn take_cut_header(&mut self) -> Option<(u64, Header)> {
        self.cut.take()
    }

    /// Keeps the complete lines of a header that the end of the bytes has cut.
    pub(super) fn keep_cut(&mut self, offset: u64) {
        let bytes = self.stream.bytes();
        let whole = memchr::memrchr(b'\n', bytes).map_or(0, |last| last + 1);
        let header = Header::parse(bytes.get(..whole).unwrap_or_default());
        self.cut = Some((offset, header));
    }
}
