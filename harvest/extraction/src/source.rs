//! The bytes of a document: as many as the limits allow, and why there are no more.
//!
//! Owns the bounds of reading. A reader that fails only ends: its error is noted for the annotations.

use std::cell::Cell;
use std::io::{self, BufRead, Read};

/// The bytes that are looked at before the kind of a document is decided.
const START: u64 = 16 << 10;

/// The reason why a document was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadEnd {
    /// The document has more bytes than are read.
    Length,
    /// A part of the document is larger than may be held.
    Memory,
    /// The bytes of the document are cut or damaged.
    Body,
    /// The document breaks the syntax of its kind.
    Syntax,
}

impl ReadEnd {
    /// Returns the word for the reason in an annotation.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Memory => "memory",
            Self::Body => "body",
            Self::Syntax => "syntax",
        }
    }
}

/// A reader of up to a number of bytes, which ends where the reader below it fails.
#[derive(Debug)]
pub(crate) struct BoundedReader<'a, R> {
    inner: R,
    left: u64,
    ending: &'a Cell<Option<ReadEnd>>,
}

impl<'a, R: BufRead> BoundedReader<'a, R> {
    pub(crate) const fn new(inner: R, limit: u64, ending: &'a Cell<Option<ReadEnd>>) -> Self {
        Self {
            inner,
            left: limit,
            ending,
        }
    }

    fn end(&mut self, ending: ReadEnd) -> &[u8] {
        self.left = 0;
        self.ending.set(self.ending.get().or(Some(ending)));
        &[]
    }
}

impl<R: BufRead> Read for BoundedReader<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, out)
    }
}

impl<R: BufRead> BufRead for BoundedReader<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.ending.get().is_some() {
            return Ok(&[]);
        }
        loop {
            match self.inner.fill_buf() {
                Ok(bytes) => {
                    if self.left == 0 && !bytes.is_empty() {
                        return Ok(self.end(ReadEnd::Length));
                    }
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Ok(self.end(ReadEnd::Body)),
            }
        }
        let bytes = self.inner.fill_buf()?;
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        Ok(bytes.get(..most).unwrap_or(bytes))
    }

    fn consume(&mut self, amount: usize) {
        self.left = self.left.saturating_sub(amount as u64);
        self.inner.consume(amount);
    }
}

/// Reads from what is buffered: [`Read`] for a [`BufRead`].
pub(crate) fn read_buffered(input: &mut impl BufRead, out: &mut [u8]) -> io::Result<usize> {
    let mut bytes = input.fill_buf()?;
    let read = bytes.read(out)?;
    input.consume(read);
    Ok(read)
}

/// Returns the first bytes of a document, read from it.
pub(crate) fn read_start(input: &mut impl BufRead) -> Vec<u8> {
    read_up_to(input, START)
}

/// Returns the text of a document of at most `memory` bytes; of a longer one, its beginning.
pub(crate) fn read_text(input: &mut impl BufRead, memory: usize) -> (String, Result<(), ReadEnd>) {
    let bytes = read_up_to(input, memory as u64);
    let result = match input.fill_buf() {
        Ok([_, ..]) => Err(ReadEnd::Memory),
        Ok([]) | Err(_) => Ok(()),
    };
    (String::from_utf8_lossy(&bytes).into_owned(), result)
}

/// Reads at most `limit` bytes, fewer where the input ends or fails.
pub(crate) fn read_up_to(input: &mut impl Read, limit: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    match input.take(limit).read_to_end(&mut bytes) {
        // What was read before the error is as good as all else.
        Ok(_) | Err(_) => bytes,
    }
}
