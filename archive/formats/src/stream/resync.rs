//! Going on after damage in compressed data.
//!
//! Owns the search for the next member. A candidate counts only if it decompresses to the beginning of a record; the
//! bytes that are tried of each are bounded, so that a file made of candidates costs no more than its length.

use std::io::{self, Read};

use memchr::memmem;

use super::{Break, Codec, Compression, SIZE, Stream, StreamState, advance};
use crate::defect::Class;
use crate::gzip::{self, Gunzip, Then};
use crate::input::Input;
use crate::zst::{self, Unzstd};

/// The number of bytes of a candidate that are tried, and of its data.
const TRIAL: usize = 8 * 1024;
const TRIAL_OUTPUT: usize = 4 * 1024;

/// The number of bytes of a long trial, if the short one does not tell: the longest header of a gzip member, or a whole
/// block of zstd, of which nothing is decompressed before all of it is there.
const LONG_TRIAL: usize = gzip::LONGEST_HEADER + TRIAL;

/// The number of bytes of the file that pay for one long trial, and the number that is lent.
const PRICE: u64 = 4 * 1024;
const CREDIT: u64 = 64 * PRICE;

/// The number of members that may break at one place, or before it, before the search moves on.
const TRIES: u32 = 8;

/// The bounds on the cost of searching.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// The offset in the file up to which long trials are paid for.
    paid: u64,
    /// The last offset at which a member broke, and the number that broke there or before it since then.
    broke: u64,
    times: u32,
    /// The decoders that members are tried with while the compression of the file is unknown.
    guesses: Vec<Codec>,
}

impl Search {
    fn may_try_long(&mut self, position: u64) -> bool {
        let paid = self.paid.max(position);
        let may = paid <= position + CREDIT;
        if may {
            self.paid = paid + PRICE;
        }
        may
    }

    /// Notes that a member broke at `position`; returns whether too many have.
    fn is_stuck(&mut self, position: u64) -> bool {
        if position > self.broke {
            (self.broke, self.times) = (position, 0);
        }
        self.times += 1;
        self.times > TRIES
    }
}

impl<R: Read> Stream<R> {
    /// Begins in the middle of a file: with the next member in which a record begins, or in a plain file at `offset`.
    pub(crate) fn resume_at(
        &mut self,
        offset: u64,
        compression: Compression,
        unzstd: Option<Unzstd>,
    ) {
        self.member.offset = offset;
        self.codec = match (compression, unzstd) {
            (Compression::Plain, _) | (Compression::Zstd, None) => {
                self.state = StreamState::Inside;
                return;
            }
            (Compression::Gzip, _) => Codec::Gzip(Box::new(Gunzip::new())),
            (Compression::Zstd, Some(unzstd)) => Codec::Zstd(Box::new(unzstd)),
        };
        self.state = StreamState::Hole(Break {
            class: Class::Garbage,
            offset,
            words: "what lies before cannot be read".into(),
        });
    }

    /// Returns whether the file is to be taken for gzip, although it does not begin with a member.
    pub(super) fn is_taken_for_gzip(&mut self, starts: &dyn Fn(&[u8]) -> bool) -> bool {
        if !self.assumed {
            return false;
        }
        self.input.peek_bytes(SIZE);
        !starts(self.input.bytes())
    }

    /// Passes over bytes of a file that was taken for a plain one and has shown no record yet. Returns `true` if the
    /// file is compressed after all, its beginning damaged: then reading continues with the first member that begins a
    /// record.
    pub(crate) fn pass_over(
        &mut self,
        count: usize,
        starts: &dyn Fn(&[u8]) -> bool,
    ) -> io::Result<bool> {
        let before = self.input.position();
        let end = before + count as u64;
        // The first bytes of a member may be among the last that were passed over.
        self.input
            .rewind_to(before.saturating_sub(zst::MAGIC.len() as u64 - 1));
        let mut guesses = std::mem::take(&mut self.search.guesses);
        let mut found = None;
        while found.is_none() {
            let left = usize::try_from(end - self.input.position()).unwrap_or(usize::MAX);
            let bytes = self.input.bytes();
            let bytes = bytes.get(..left).unwrap_or(bytes);
            let Some(at) = memchr::memchr2(gzip::MAGIC[0], zst::MAGIC[0], bytes) else {
                self.input.consume(left);
                break;
            };
            let rest = bytes.get(at..).unwrap_or_default();
            let may_begin = rest.starts_with(&gzip::MAGIC) || rest.starts_with(&zst::MAGIC);
            self.input.consume(at);
            if may_begin {
                if guesses.is_empty() {
                    guesses.push(Codec::Gzip(Box::new(Gunzip::new())));
                    guesses.push(Codec::Zstd(Box::new(Unzstd::new()?)));
                }
                found = guesses
                    .iter_mut()
                    .position(|guess| is_member(&mut self.input, guess, &mut self.search, starts));
            }
            if found.is_none() {
                self.input.consume(1);
            }
        }
        self.consumed = self.consumed + self.input.position() - before;
        if let Some(at) = found {
            self.codec = guesses.swap_remove(at);
            self.state = StreamState::Between;
        } else {
            self.search.guesses = guesses;
        }
        Ok(found.is_some())
    }

    /// Searches the next member after damage. Returns the damage, and the offset of the next member that begins a
    /// record, if any.
    pub(crate) fn resync_member(
        &mut self,
        starts: &dyn Fn(&[u8]) -> bool,
    ) -> io::Result<Option<(Break, Option<u64>)>> {
        let (found, began) = match std::mem::replace(&mut self.state, StreamState::Between) {
            StreamState::Broken(found) => (found, Some(self.member.offset)),
            StreamState::Hole(found) => (found, None),
            _ => return Ok(None),
        };
        (self.start, self.end) = (0, 0);
        if let Some(began) = began {
            // Gzip knows behind the last byte of a member that it is damaged, and continues there; zstd does not.
            let at = self.input.position();
            let is_sum = matches!(found.class, Class::Crc | Class::Isize);
            if is_sum && at > began && self.is_member_next() {
                return Ok(Some((found, Some(at))));
            }
            // A damaged member may have run over the next one, so that the search begins within it, but not at its
            // beginning. Candidates that lie in each other and run into the same damage are limited: each costs as much
            // as the first.
            if !self.search.is_stuck(at) {
                self.input.rewind_to(began + 1);
            }
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
                if is_member(&mut self.input, &mut self.codec, &mut self.search, starts) {
                    let at = self.input.position();
                    return Ok(Some((found, Some(at))));
                }
                self.input.consume(1);
                continue;
            }
            let rest = bytes.len().saturating_sub(magic.len() - 1);
            self.input.consume(rest);
            if !self.input.read_more()? {
                self.state = StreamState::Done;
                return Ok(Some((found, None)));
            }
        }
    }

    /// Returns whether another member, or the end of the file, follows at once.
    fn is_member_next(&mut self) -> bool {
        self.input.peek_bytes(16);
        let bytes = self.input.bytes();
        match self.codec {
            Codec::Plain => false,
            Codec::Gzip(_) => bytes.is_empty() || gzip::read_gzip_head(bytes) != gzip::Head::No,
            Codec::Zstd(_) => bytes.is_empty() || zst::read_zst_head(bytes) != zst::Head::No,
        }
    }

    /// Reads ahead until `count` bytes of a plain file are in the buffer, if it has them and they can be read.
    pub(crate) fn peek_plain(&mut self, count: usize) {
        if matches!(self.codec, Codec::Plain) {
            self.input.peek_bytes(count);
        }
    }

    /// Goes back in a plain file, as far as its bytes were kept.
    pub(crate) fn rewind_plain(&mut self, offset: u64) {
        if matches!(self.codec, Codec::Plain) {
            let before = self.input.position();
            self.input.rewind_to(offset);
            self.consumed -= before - self.input.position();
            self.state = StreamState::Inside;
        }
    }
}

/// The result of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trial {
    /// The candidate is a member with the beginning of a record.
    Record,
    Other,
    /// More bytes of the candidate are needed to tell.
    Undecided,
}

/// Returns whether a member begins at the position of the input, and a record in it.
fn is_member<R: Read>(
    input: &mut Input<R>,
    codec: &mut Codec,
    search: &mut Search,
    starts: &dyn Fn(&[u8]) -> bool,
) -> bool {
    let mut trial = |length: usize, input: &mut Input<R>| {
        input.peek_bytes(length);
        let bytes = input.bytes();
        try_member(codec, bytes.get(..length).unwrap_or(bytes), starts)
    };
    let mut shown = trial(TRIAL, input);
    if shown == Trial::Undecided && search.may_try_long(input.position()) {
        shown = trial(LONG_TRIAL, input);
    }
    shown == Trial::Record
}

fn try_member(codec: &mut Codec, bytes: &[u8], starts: &dyn Fn(&[u8]) -> bool) -> Trial {
    let mut input = match codec {
        Codec::Plain => return Trial::Other,
        Codec::Gzip(gunzip) => match gzip::read_gzip_head(bytes) {
            gzip::Head::Complete(length) => {
                gunzip.begin_member();
                bytes.get(length..).unwrap_or_default()
            }
            gzip::Head::Partial => return Trial::Undecided,
            gzip::Head::No => return Trial::Other,
        },
        Codec::Zstd(unzstd) => match zst::read_zst_head(bytes) {
            zst::Head::Frame { dictionary } if unzstd.begin_frame(dictionary).is_ok() => bytes,
            zst::Head::Partial => return Trial::Undecided,
            zst::Head::Frame { .. } | zst::Head::Skippable { .. } | zst::Head::No => {
                return Trial::Other;
            }
        },
    };
    let mut output = [0; TRIAL_OUTPUT];
    let mut length = 0;
    loop {
        let room = output.get_mut(length..).unwrap_or_default();
        let step = advance(codec, input, room);
        input = input.get(step.consumed..).unwrap_or_default();
        length += step.produced;
        let is_over = step.then != Then::Continue || length == TRIAL_OUTPUT;
        if is_over || step.consumed + step.produced == 0 {
            return if starts(output.get(..length).unwrap_or_default()) {
                Trial::Record
            } else if is_over {
                Trial::Other
            } else {
                Trial::Undecided
            };
        }
    }
}
