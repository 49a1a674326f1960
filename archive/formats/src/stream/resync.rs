//! Going on after damage in compressed data.
//!
//! Owns the search for the next member. A candidate counts only when it decompresses to the beginning of a record; what
//! is tried of each is bounded, so that a file made of candidates costs no more than its length.

use std::io::{self, Read};

use memchr::memmem;

use super::{Break, Codec, Compression, SIZE, State, Stream, advance};
use crate::defect::Class;
use crate::gzip::{self, Gunzip, Then};
use crate::zst::{self, Unzstd};

/// How much of a member is looked at to find out whether it is one, and how much of what is in it.
const TRIAL: usize = 8 * 1024;
const TRIAL_OUTPUT: usize = 4 * 1024;

impl<R: Read> Stream<R> {
    /// Begins in the middle of a file: with the next member in which a record begins, or in a plain file here.
    pub(crate) fn resume(&mut self, offset: u64, compression: Compression, unzstd: Option<Unzstd>) {
        self.member.offset = offset;
        self.codec = match (compression, unzstd) {
            (Compression::Plain, _) | (Compression::Zstd, None) => {
                self.state = State::Inside;
                return;
            }
            (Compression::Gzip, _) => Codec::Gzip(Box::new(Gunzip::new())),
            (Compression::Zstd, Some(unzstd)) => Codec::Zstd(Box::new(unzstd)),
        };
        self.state = State::Hole(Break {
            class: Class::Garbage,
            offset,
            words: "what lies before cannot be read".into(),
        });
    }

    /// Whether a file with a damaged beginning has gzip members with records in them.
    pub(super) fn is_gzip_further_on(&mut self, starts: &dyn Fn(&[u8]) -> bool) -> bool {
        self.input.peek(SIZE);
        if self.assumed {
            return !starts(self.input.bytes());
        }
        let mut trial = Codec::Gzip(Box::new(Gunzip::new()));
        let bytes = self.input.bytes();
        !starts(bytes)
            && memmem::find_iter(bytes, &gzip::MAGIC)
                .any(|at| try_member(&mut trial, bytes.get(at..).unwrap_or_default(), starts))
    }

    /// After damage: what it was, and the offset where a member that begins a record was found again, if any.
    pub(crate) fn resync(
        &mut self,
        starts: &dyn Fn(&[u8]) -> bool,
    ) -> io::Result<Option<(Break, Option<u64>)>> {
        let (found, began) = match std::mem::replace(&mut self.state, State::Between) {
            State::Broken(found) => (found, Some(self.member.offset)),
            State::Hole(found) => (found, None),
            State::Unknown | State::Between | State::Inside | State::Ended | State::Done => {
                return Ok(None);
            }
        };
        (self.start, self.end) = (0, 0);
        if let Some(began) = began {
            // Gzip knows after the last byte of a member that it is damaged and stands behind it; zstd does not.
            let at = self.input.position();
            let is_sum = matches!(found.class, Class::Crc | Class::Isize);
            if is_sum && at > began && self.is_member_next() {
                return Ok(Some((found, Some(at))));
            }
            // A member that was damaged may have run over the next one. It is not to be found again itself.
            self.input.rewind(began + 1);
            if self.input.position() == began {
                self.input.consume(1);
            }
        }
        let magic: &[u8] = match self.codec {
            Codec::Plain => return Ok(Some((found, None))),
            Codec::Gzip(_) => &gzip::MAGIC,
            Codec::Zstd(_) => &zst::MAGIC,
        };
        loop {
            let bytes = self.input.bytes();
            if let Some(at) = memmem::find(bytes, magic) {
                self.input.consume(at);
                self.input.peek(TRIAL);
                let bytes = self.input.bytes();
                let bytes = bytes.get(..TRIAL).unwrap_or(bytes);
                if try_member(&mut self.codec, bytes, starts) {
                    let at = self.input.position();
                    return Ok(Some((found, Some(at))));
                }
                self.input.consume(1);
                continue;
            }
            let rest = bytes.len().saturating_sub(magic.len() - 1);
            self.input.consume(rest);
            if !self.input.more()? {
                self.state = State::Done;
                return Ok(Some((found, None)));
            }
        }
    }

    /// Whether another member follows at once, or the end of the file.
    fn is_member_next(&mut self) -> bool {
        self.input.peek(16);
        let bytes = self.input.bytes();
        match self.codec {
            Codec::Plain => false,
            Codec::Gzip(_) => bytes.is_empty() || gzip::head(bytes) != gzip::Head::No,
            Codec::Zstd(_) => bytes.is_empty() || zst::head(bytes) != zst::Head::No,
        }
    }

    /// Goes back in a plain file, as far as its bytes were kept.
    pub(crate) fn rewind_plain(&mut self, offset: u64) {
        if matches!(self.codec, Codec::Plain) {
            let before = self.input.position();
            self.input.rewind(offset);
            self.consumed -= before - self.input.position();
            self.state = State::Inside;
        }
    }
}

/// Whether a member begins here, and a record in it.
fn try_member(codec: &mut Codec, bytes: &[u8], starts: &dyn Fn(&[u8]) -> bool) -> bool {
    let bytes = bytes.get(..TRIAL).unwrap_or(bytes);
    let mut input = match codec {
        Codec::Plain => return false,
        Codec::Gzip(gunzip) => match gzip::head(bytes) {
            gzip::Head::Complete(length) => {
                gunzip.begin();
                bytes.get(length..).unwrap_or_default()
            }
            gzip::Head::Partial | gzip::Head::No => return false,
        },
        Codec::Zstd(unzstd) => match zst::head(bytes) {
            zst::Head::Frame { dictionary } if unzstd.begin(dictionary).is_ok() => bytes,
            zst::Head::Frame { .. }
            | zst::Head::Skippable { .. }
            | zst::Head::Partial
            | zst::Head::No => return false,
        },
    };
    let mut output = [0; TRIAL_OUTPUT];
    let mut length = 0;
    loop {
        let room = output.get_mut(length..).unwrap_or_default();
        let step = advance(codec, input, room);
        input = input.get(step.consumed..).unwrap_or_default();
        length += step.produced;
        if step.then != Then::Continue
            || length == TRIAL_OUTPUT
            || step.consumed + step.produced == 0
        {
            return starts(output.get(..length).unwrap_or_default());
        }
    }
}
