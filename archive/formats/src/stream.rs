//! The decompressed bytes of an archive file, and the members they come in.
//!
//! Owns which compression a file has, where each member begins and ends, and how to find the next member after damage.
//! A plain file is one member. Does not know records: a function of the caller decides whether bytes begin one.

use std::io::{self, Read};

use crate::defect::Class;
use crate::gzip::{self, Gunzip, Step, Then};
use crate::input::Input;
use crate::warc::header::may_begin;
use crate::zst::{self, Unzstd};

mod frames;
mod hole;
mod resync;

/// The size of the buffer of decompressed bytes.
const SIZE: usize = 128 * 1024;

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    Plain,
    /// Gzip members.
    Gzip,
    /// Zstandard frames.
    Zstd,
}

#[derive(Debug)]
enum Codec {
    Plain,
    Gzip(Box<Gunzip>),
    Zstd(Box<Unzstd>),
}

/// The place of a member.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Member {
    /// The offset in the file at which the member begins.
    pub(crate) offset: u64,
    /// The offset in the file at which the member ends, once that is known.
    pub(crate) end: u64,
    /// The offset in the decompressed bytes at which the member begins.
    pub(crate) began: u64,
    /// The number of members before this one.
    pub(crate) number: u64,
}

/// The reason why a member cannot be read on.
#[derive(Debug)]
pub(crate) struct Break {
    pub(crate) class: Class,
    pub(crate) offset: u64,
    pub(crate) words: String,
}

#[derive(Debug)]
enum StreamState {
    Unknown,
    Between,
    Inside,
    Ended,
    Broken(Break),
    /// Bytes before those of the input are missing; the compression of what follows was not tried yet.
    Hole(Break),
    Done,
}

/// The way in which the stream continues at the end of a member.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next member began.
    Member,
    /// The file has no further member.
    End,
    /// The bytes that follow cannot be read: see `resync`.
    Broken,
}

/// The decompressed bytes of a file.
#[derive(Debug)]
pub(crate) struct Stream<R> {
    input: Input<R>,
    codec: Codec,
    out: Vec<u8>,
    start: usize,
    end: usize,
    consumed: u64,
    member: Member,
    state: StreamState,
    padding: u64,
    /// Whether the file is taken for gzip where its first bytes do not tell.
    assumed: bool,
    search: resync::Search,
}

impl<R: Read> Stream<R> {
    pub(crate) fn new(source: R, base: u64) -> Self {
        Self {
            input: Input::new(source, base),
            codec: Codec::Plain,
            out: Vec::new(),
            start: 0,
            end: 0,
            consumed: 0,
            member: Member::default(),
            state: StreamState::Unknown,
            padding: 0,
            assumed: false,
            search: resync::Search::default(),
        }
    }

    /// Sets a dictionary that was read before.
    pub(crate) fn set_dictionary(&mut self, unzstd: Unzstd) {
        self.codec = Codec::Zstd(Box::new(unzstd));
    }

    /// Finds out how the file is compressed: not at all, if its first bytes do not tell. Returns `false` for a file
    /// without a byte.
    pub(crate) fn open_member(&mut self, starts: &dyn Fn(&[u8]) -> bool) -> io::Result<bool> {
        if !matches!(self.state, StreamState::Unknown) {
            return Ok(true);
        }
        self.input.want_bytes(8)?;
        self.state = StreamState::Between;
        self.member.offset = self.input.position();
        let bytes = self.input.bytes();
        if bytes.is_empty() {
            self.state = StreamState::Done;
            return Ok(false);
        }
        if gzip::read_gzip_head(bytes) != gzip::Head::No {
            self.codec = Codec::Gzip(Box::new(Gunzip::new()));
        } else if zst::read_zst_head(bytes) != zst::Head::No {
            if matches!(self.codec, Codec::Plain) {
                self.codec = Codec::Zstd(Box::new(Unzstd::new()?));
            }
        } else if (bytes.len() < 5 || !may_begin(bytes)) && self.is_taken_for_gzip(starts) {
            self.codec = Codec::Gzip(Box::new(Gunzip::new()));
        } else {
            self.codec = Codec::Plain;
            self.state = StreamState::Inside;
        }
        Ok(true)
    }

    /// Returns whether the compression of the file is known.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.state, StreamState::Unknown)
    }

    pub(crate) fn compression(&self) -> Compression {
        match self.codec {
            Codec::Plain => Compression::Plain,
            Codec::Gzip(_) => Compression::Gzip,
            Codec::Zstd(_) => Compression::Zstd,
        }
    }

    /// Returns the bytes that were decompressed and not consumed.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self.codec {
            Codec::Plain => self.input.bytes(),
            Codec::Gzip(_) | Codec::Zstd(_) => {
                self.out.get(self.start..self.end).unwrap_or_default()
            }
        }
    }

    pub(crate) fn consume(&mut self, count: usize) {
        let count = count.min(self.bytes().len());
        self.consumed += count as u64;
        match self.codec {
            Codec::Plain => self.input.consume(count),
            Codec::Gzip(_) | Codec::Zstd(_) => self.start += count,
        }
    }

    /// Returns the offset in the decompressed file at which `bytes` begins, counted from where reading began.
    pub(crate) fn position(&self) -> u64 {
        self.consumed
    }

    /// Returns the offset in the file from which a reader must read to begin here.
    pub(crate) fn offset(&self) -> u64 {
        match self.codec {
            Codec::Plain => self.input.position(),
            Codec::Gzip(_) | Codec::Zstd(_) => match self.state {
                StreamState::Inside | StreamState::Ended | StreamState::Broken(_) => {
                    self.member.offset
                }
                StreamState::Unknown
                | StreamState::Between
                | StreamState::Hole(_)
                | StreamState::Done => self.input.position(),
            },
        }
    }

    pub(crate) fn member(&self) -> Member {
        self.member
    }

    /// Returns the offset in the member at which `bytes` begins; zero in a plain file.
    pub(crate) fn in_member(&self) -> u64 {
        match self.codec {
            Codec::Plain => 0,
            Codec::Gzip(_) | Codec::Zstd(_) => self.consumed.saturating_sub(self.member.began),
        }
    }

    /// Returns whether the member has ended as it should, with nothing left to consume.
    pub(crate) fn at_end_of_member(&self) -> bool {
        matches!(
            self.state,
            StreamState::Ended | StreamState::Between | StreamState::Done
        ) && self.bytes().is_empty()
    }

    /// Returns the number of zero bytes that were skipped between members since the last call.
    pub(crate) fn take_padding(&mut self) -> u64 {
        std::mem::take(&mut self.padding)
    }

    /// Decompresses until bytes are in the buffer; returns `false` at the end of the member, however it ended.
    pub(crate) fn fill_buffer(&mut self) -> io::Result<bool> {
        Ok(!self.bytes().is_empty() || self.read_more()?)
    }

    /// Decompresses more bytes; returns `false` if the member has no more.
    pub(crate) fn read_more(&mut self) -> io::Result<bool> {
        let before = self.bytes().len();
        while self.bytes().len() == before {
            if !matches!(self.state, StreamState::Inside) {
                return Ok(false);
            }
            self.step()?;
        }
        Ok(true)
    }

    fn step(&mut self) -> io::Result<()> {
        if matches!(self.codec, Codec::Plain) {
            if !self.input.read_more()? {
                self.state = StreamState::Ended;
                self.member.end = self.input.position() + self.input.bytes().len() as u64;
            }
            return Ok(());
        }
        self.make_room();
        let room = self.out.get_mut(self.end..).unwrap_or_default();
        let step = advance(&mut self.codec, self.input.bytes(), room);
        self.input.consume(step.consumed);
        self.end += step.produced;
        match step.then {
            Then::Continue => {
                if step.consumed + step.produced == 0 && !self.input.read_more()? {
                    self.break_off(Class::Cut, "the file ends within compressed data".into());
                }
            }
            Then::End => {
                self.state = StreamState::Ended;
                self.member.end = self.input.position();
            }
            Then::Broken(class, words) => self.break_off(class, words),
        }
        Ok(())
    }

    fn break_off(&mut self, class: Class, words: String) {
        self.state = StreamState::Broken(Break {
            class,
            offset: self.input.position(),
            words,
        });
    }

    fn make_room(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.end == self.out.len() {
            if self.start > 0 {
                self.out.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            } else {
                let size = (self.out.len() * 2).max(SIZE);
                self.out.resize(size, 0);
            }
        }
    }

    /// Goes on with the next member. Bytes that were not consumed stay before it.
    pub(crate) fn next_member(&mut self) -> io::Result<Next> {
        match self.state {
            StreamState::Inside => return Ok(Next::Member),
            StreamState::Broken(_) | StreamState::Hole(_) => return Ok(Next::Broken),
            StreamState::Done => return Ok(Next::End),
            StreamState::Unknown | StreamState::Between | StreamState::Ended => {}
        }
        let begun = match self.codec {
            Codec::Plain => {
                self.state = StreamState::Done;
                return Ok(Next::End);
            }
            Codec::Gzip(_) => self.begin_gzip()?,
            Codec::Zstd(_) => self.begin_zstd()?,
        };
        match begun {
            Next::Member => {
                self.member.number += 1;
                self.state = StreamState::Inside;
            }
            Next::End => self.state = StreamState::Done,
            Next::Broken => {}
        }
        Ok(begun)
    }

    fn enter(&mut self) {
        self.member.offset = self.input.position();
        self.member.began = self.consumed + self.bytes().len() as u64;
    }

    fn begin_gzip(&mut self) -> io::Result<Next> {
        loop {
            let bytes = self.input.bytes();
            let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
            let all = zeros == bytes.len();
            self.padding += zeros as u64;
            self.input.consume(zeros);
            if !all {
                break;
            }
            if !self.input.read_more()? {
                return Ok(Next::End);
            }
        }
        self.enter();
        loop {
            match gzip::read_gzip_head(self.input.bytes()) {
                gzip::Head::Complete(length) => {
                    self.input.consume(length);
                    if let Codec::Gzip(gunzip) = &mut self.codec {
                        gunzip.begin_member();
                    }
                    return Ok(Next::Member);
                }
                gzip::Head::Partial => {
                    if !self.input.read_more()? {
                        self.break_off(
                            Class::Cut,
                            "the file ends within the header of a gzip member".into(),
                        );
                        return Ok(Next::Broken);
                    }
                }
                gzip::Head::No => {
                    self.break_off(Class::Garbage, "no gzip member begins here".into());
                    return Ok(Next::Broken);
                }
            }
        }
    }
}

fn advance(codec: &mut Codec, input: &[u8], output: &mut [u8]) -> Step {
    match codec {
        Codec::Plain => Step {
            consumed: 0,
            produced: 0,
            then: Then::End,
        },
        Codec::Gzip(gunzip) => gunzip.inflate_step(input, output),
        Codec::Zstd(unzstd) => unzstd.inflate_step(input, output),
    }
}
