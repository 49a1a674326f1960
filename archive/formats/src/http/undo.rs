//! A content encoding, undone within limits.

use std::io::{self, BufRead, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::BodyError;
use super::coding::{Coding, DecodeLimits};
use super::notes::{Note, Notes};
use super::zstd::Frames;

/// The number of bytes up to which a stream may have any ratio.
const RATIO_FROM: u64 = 1 << 20;

/// Returns a reader that undoes one encoding.
pub(super) fn undo_codings<'a>(
    coding: Coding,
    input: Box<dyn BufRead + 'a>,
    limits: DecodeLimits,
    notes: Notes,
) -> impl Read + 'a {
    DecodedReader {
        coding,
        limits,
        notes,
        source: Arc::default(),
        out: 0,
        state: DecoderState::Before(input),
        failed: None,
    }
}

enum DecoderState<'a> {
    Before(Box<dyn BufRead + 'a>),
    Gzip(flate2::bufread::GzDecoder<EncodedInput<'a>>),
    Zlib(flate2::bufread::ZlibDecoder<EncodedInput<'a>>),
    Raw(flate2::bufread::DeflateDecoder<EncodedInput<'a>>),
    Brotli(Box<brotli_decompressor::Decompressor<EncodedInput<'a>>>),
    Zstd(Frames<EncodedInput<'a>>),
    Plain(EncodedInput<'a>),
    Done,
}

struct DecodedReader<'a> {
    coding: Coding,
    limits: DecodeLimits,
    notes: Notes,
    source: Arc<SourceState>,
    out: u64,
    state: DecoderState<'a>,
    failed: Option<BodyError>,
}

/// The state of the encoded bytes, which is shared past the decoder.
#[derive(Default)]
struct SourceState {
    bytes: AtomicU64,
    failed: AtomicBool,
}

impl SourceState {
    fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Remembers that the input failed, so that its error is not taken for damage of the stream.
    fn fail(&self, error: io::Error) -> io::Error {
        self.failed.store(true, Ordering::Relaxed);
        error
    }
}

/// A reader of the encoded bytes, which counts them, and begins with those that were looked at.
struct EncodedInput<'a> {
    input: io::Chain<Cursor<Vec<u8>>, Box<dyn BufRead + 'a>>,
    seen: Arc<SourceState>,
}

impl Read for EncodedInput<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(out).map_err(|e| self.seen.fail(e))?;
        self.seen.add(read);
        Ok(read)
    }
}

impl BufRead for EncodedInput<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf().map_err(|e| self.seen.fail(e))
    }

    fn consume(&mut self, amount: usize) {
        self.seen.add(amount);
        self.input.consume(amount);
    }
}

impl<'a> DecodedReader<'a> {
    /// Chooses the decoder by the first bytes.
    fn begin(&self, mut input: Box<dyn BufRead + 'a>) -> io::Result<DecoderState<'a>> {
        let mut start = Vec::new();
        input.by_ref().take(4).read_to_end(&mut start)?;
        let looks_right = match self.coding {
            Coding::Gzip => start.starts_with(&[0x1f, 0x8b]),
            Coding::Zstd => match start.as_slice() {
                [0x28, 0xb5, 0x2f, 0xfd] => true,
                [n, 0x2a, 0x4d, 0x18] => n & 0xf0 == 0x50,
                _ => false,
            },
            // These encodings have no magic bytes.
            Coding::Deflate | Coding::Brotli => !start.is_empty(),
        };
        let zlib = matches!(start.as_slice(), [a, b, ..] if a & 0x0f == 8 && ((u16::from(*a) << 8) | u16::from(*b)) % 31 == 0);
        let empty = start.is_empty();
        let source = EncodedInput {
            input: Cursor::new(start).chain(input),
            seen: Arc::clone(&self.source),
        };
        if empty {
            // An empty body of a HEAD request or a 304 has no encoding, whatever its header says.
            return Ok(DecoderState::Done);
        }
        if !looks_right {
            self.notes.add_note(Note::NotCoded(self.coding));
            return Ok(DecoderState::Plain(source));
        }
        Ok(match self.coding {
            Coding::Gzip => DecoderState::Gzip(flate2::bufread::GzDecoder::new(source)),
            Coding::Deflate if zlib => {
                DecoderState::Zlib(flate2::bufread::ZlibDecoder::new(source))
            }
            Coding::Deflate => DecoderState::Raw(flate2::bufread::DeflateDecoder::new(source)),
            Coding::Brotli => DecoderState::Brotli(Box::new(
                brotli_decompressor::Decompressor::new(source, 8 * 1024),
            )),
            Coding::Zstd => DecoderState::Zstd(Frames::new(source)?),
        })
    }

    /// Begins the next gzip member, or ends the stream. Streams of other encodings have no members.
    fn end(&mut self) -> io::Result<()> {
        let state = std::mem::replace(&mut self.state, DecoderState::Done);
        let mut source = match state {
            DecoderState::Gzip(decoder) => decoder.into_inner(),
            DecoderState::Zlib(decoder) => decoder.into_inner(),
            DecoderState::Raw(decoder) => decoder.into_inner(),
            _ => return Ok(()),
        };
        let next = source.fill_buf()?;
        if next.is_empty() {
            return Ok(());
        }
        if self.coding == Coding::Gzip && next.first() == Some(&0x1f) {
            self.state = DecoderState::Gzip(flate2::bufread::GzDecoder::new(source));
        } else {
            self.notes.add_note(Note::Behind(self.coding));
        }
        Ok(())
    }

    fn read_some(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if let DecoderState::Before(_) = self.state {
                let DecoderState::Before(input) =
                    std::mem::replace(&mut self.state, DecoderState::Done)
                else {
                    return Ok(0);
                };
                self.state = self.begin(input)?;
            }
            let read = match &mut self.state {
                DecoderState::Gzip(decoder) => decoder.read(out),
                DecoderState::Zlib(decoder) => decoder.read(out),
                DecoderState::Raw(decoder) => decoder.read(out),
                DecoderState::Brotli(decoder) => decoder.read(out),
                DecoderState::Zstd(decoder) => decoder.read(out),
                DecoderState::Plain(source) => return source.read(out),
                DecoderState::Before(_) | DecoderState::Done => return Ok(0),
            };
            match read {
                Ok(0) => self.end()?,
                Ok(read) => return Ok(read),
                Err(error) => return Err(self.why(error)),
            }
        }
    }

    /// Returns an error of the decoder as a body error, and one of the input as it is.
    fn why(&self, error: io::Error) -> io::Error {
        if self.source.failed.load(Ordering::Relaxed) {
            return error;
        }
        let coding = self.coding;
        let out = self.out;
        if error.kind() == io::ErrorKind::UnexpectedEof {
            BodyError::CutStream { coding, out }.into()
        } else {
            BodyError::BadStream { coding, out }.into()
        }
    }

    fn within_limits(&self) -> Result<(), BodyError> {
        let stored = self.source.bytes.load(Ordering::Relaxed);
        let by_ratio = stored.saturating_mul(self.limits.ratio).max(RATIO_FROM);
        let limit = self.limits.output.min(by_ratio);
        if self.out > limit && !matches!(self.state, DecoderState::Plain(_)) {
            return Err(BodyError::TooLarge { limit, stored });
        }
        Ok(())
    }
}

impl Read for DecodedReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.failed {
            return Err(error.into());
        }
        if out.is_empty() {
            return Ok(0);
        }
        let result = self.read_some(out).and_then(|read| {
            self.out = self.out.saturating_add(read as u64);
            self.within_limits().map_err(io::Error::from)?;
            Ok(read)
        });
        if let Err(error) = &result
            && let Some(why) = BodyError::find_within(error)
        {
            self.failed = Some(why);
            self.state = DecoderState::Done;
        }
        result
    }
}
