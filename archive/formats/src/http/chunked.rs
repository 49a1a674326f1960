//! The chunked transfer encoding, undone while it is read.

use std::io::{self, BufRead, Read};

use super::BodyError;
use super::body::{Note, Notes};

/// The longest line of a chunk's size or of a trailer, and the most of all trailers.
const MAX_LINE: u64 = 16 * 1024;

/// Where in the framing the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the size of a chunk; the first one may show that there are no chunks.
    Size { first: bool },
    /// So many bytes of the chunk follow.
    Data(u64),
    /// Before the line end behind a chunk.
    DataEnd,
    /// No chunks after all: all is body.
    Plain,
    /// Behind the last chunk.
    Done,
    /// It failed, and fails again.
    Failed(BodyError),
}

/// Undoes chunks.
///
/// A body that does not begin with a chunk is not chunked, whatever its header says: it is given as it is, and noted.
#[derive(Debug)]
pub struct Chunked<R> {
    input: R,
    state: State,
    at: u64,
    /// A first line that was no size, to be given out as body.
    pending: io::Cursor<Vec<u8>>,
    trailers: Vec<u8>,
    notes: Notes,
}

impl<R: BufRead> Chunked<R> {
    /// Over the bytes after the head.
    pub fn new(input: R) -> Self {
        Self::with_notes(input, Notes::default())
    }

    pub(super) fn with_notes(input: R, notes: Notes) -> Self {
        Self {
            input,
            state: State::Size { first: true },
            at: 0,
            pending: io::Cursor::default(),
            trailers: Vec::new(),
            notes,
        }
    }

    /// The lines behind the last chunk as they were stored, without the empty one.
    pub fn trailers(&self) -> &[u8] {
        &self.trailers
    }

    /// Whether the end was reached in good order.
    pub fn is_complete(&self) -> bool {
        matches!(self.state, State::Done | State::Plain)
    }

    /// What is left behind the body.
    pub fn into_inner(self) -> R {
        self.input
    }

    pub(super) fn inner(&mut self) -> &mut R {
        &mut self.input
    }

    /// One line with its end, or less at the limit or the end of the input.
    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        let read = self
            .input
            .by_ref()
            .take(MAX_LINE)
            .read_until(b'\n', &mut line)?;
        self.at = self
            .at
            .saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
        Ok(line)
    }

    fn size(&mut self, first: bool) -> io::Result<State> {
        let start = self.at;
        let line = self.line()?;
        let text = line.trim_ascii();
        let digits = text.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let behind = text.get(digits..).unwrap_or_default().trim_ascii_start();
        let number = text
            .get(..digits)
            .and_then(|d| str::from_utf8(d).ok())
            .filter(|d| !d.is_empty());
        let size = number.and_then(|d| u64::from_str_radix(d, 16).ok());
        let whole = line.ends_with(b"\n");
        let clean = behind.is_empty() || behind.first() == Some(&b';');
        match size {
            Some(0) if clean && (whole || !first) => {
                if whole {
                    self.read_trailers()?;
                } else {
                    self.notes.add(Note::NoEndOfTrailers);
                }
                Ok(State::Done)
            }
            Some(size) if clean && whole => Ok(State::Data(size)),
            // A size that the end cuts off: at the very beginning it may as well be a short body.
            _ if !first && (line.is_empty() || (clean && !whole)) => {
                Err(BodyError::CutChunks { at: self.at }.into())
            }
            _ if first => {
                self.notes.add(Note::NotChunked);
                self.pending = io::Cursor::new(line);
                Ok(State::Plain)
            }
            _ => Err(BodyError::BadChunk { at: start }.into()),
        }
    }

    fn read_trailers(&mut self) -> io::Result<()> {
        loop {
            let line = self.line()?;
            if line.is_empty() {
                self.notes.add(Note::NoEndOfTrailers);
                return Ok(());
            }
            if line.trim_ascii().is_empty() {
                return Ok(());
            }
            let held = u64::try_from(self.trailers.len()).unwrap_or(u64::MAX);
            if held < MAX_LINE {
                self.notes.add(Note::Trailers);
                self.trailers.extend_from_slice(&line);
            }
        }
    }

    fn data_end(&mut self) -> io::Result<State> {
        for expected in [b'\r', b'\n'] {
            let next = self.input.fill_buf()?.first().copied();
            match next {
                None => return Err(BodyError::CutChunks { at: self.at }.into()),
                Some(byte) if byte == expected => {
                    self.input.consume(1);
                    self.at = self.at.saturating_add(1);
                }
                // LF alone will do.
                Some(b'\n') => {}
                Some(_) => return Err(BodyError::BadChunk { at: self.at }.into()),
            }
        }
        Ok(State::Size { first: false })
    }

    fn step(&mut self, out: &mut [u8]) -> io::Result<Option<usize>> {
        match self.state {
            State::Size { first } => self.state = self.size(first)?,
            State::DataEnd => self.state = self.data_end()?,
            State::Data(0) => self.state = State::DataEnd,
            State::Data(left) => {
                let room = usize::try_from(left).unwrap_or(usize::MAX).min(out.len());
                let read = self.input.read(out.get_mut(..room).unwrap_or_default())?;
                if read == 0 {
                    return Err(BodyError::CutChunks { at: self.at }.into());
                }
                let count = u64::try_from(read).unwrap_or(u64::MAX);
                self.at = self.at.saturating_add(count);
                self.state = State::Data(left.saturating_sub(count));
                return Ok(Some(read));
            }
            State::Plain => {
                let read = self.pending.read(out)?;
                return if read > 0 {
                    Ok(Some(read))
                } else {
                    self.input.read(out).map(Some)
                };
            }
            State::Done => return Ok(Some(0)),
            State::Failed(error) => return Err(error.into()),
        }
        Ok(None)
    }
}

impl<R: BufRead> Read for Chunked<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            match self.step(out) {
                Ok(Some(read)) => return Ok(read),
                Ok(None) => {}
                Err(error) => {
                    if let Some(why) = BodyError::of(&error) {
                        self.state = State::Failed(why);
                    }
                    return Err(error);
                }
            }
        }
    }
}
