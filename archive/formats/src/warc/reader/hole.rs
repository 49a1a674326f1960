//! Reading a file of which stretches are lost.
//!
//! The source ends where a hole begins; the caller moves it behind the hole, and tells the reader where that is. Owns
//! what the reader then still believes: how the file is compressed, and its dialect. Does not find holes.

use std::io::Read;

use super::Reader;
use crate::warc::header::Header;

impl<R: Read> Reader<R> {
    /// Returns the source that it reads from.
    pub const fn source(&self) -> &R {
        self.stream.source()
    }

    /// Returns the source that it reads from, to move it: say so with [`skip_to`](Self::skip_to).
    pub const fn source_mut(&mut self) -> &mut R {
        self.stream.source_mut()
    }

    /// Takes the file for gzip where that cannot be seen: its beginning is lost. Before the first record is asked for.
    pub fn assume_gzip(&mut self) {
        self.stream.assume_gzip();
    }

    /// Goes on behind a hole: what the source gives next stands at `offset` of the file. The record that was being read
    /// is over, and the next one is the first that is found from there on.
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

    /// The header that was cut by the end of the bytes, as far as its lines are whole, and where its record begins.
    pub fn take_cut_header(&mut self) -> Option<(u64, Header)> {
        self.cut.take()
    }

    /// Keeps what there is of a header that goes on where there are no bytes.
    pub(super) fn keep_cut(&mut self, offset: u64) {
        let bytes = self.stream.bytes();
        let whole = memchr::memrchr(b'\n', bytes).map_or(0, |last| last + 1);
        let header = Header::parse(bytes.get(..whole).unwrap_or_default());
        self.cut = Some((offset, header));
    }
}
