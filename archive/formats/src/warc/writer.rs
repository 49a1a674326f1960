//! Writes WARC files: every byte of a record or an error, and after an error nothing.
//!
//! Owns the framing: line ends, one gzip member per record, offsets and lengths. The same input gives the same bytes,
//! on every machine and at every time. Does not sync, name or close files.

use std::io::{self, Read, Write};

use flate2::{Compress, Compression as Level, Crc, FlushCompress, Status};
use thiserror::Error;

use crate::warc::reader::{ReadRecordError, Record};
use crate::warc::record::RecordSummary;

/// The number of bytes that are copied at once.
const PIECE: usize = 64 * 1024;

/// The reason why a record was not written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The file cannot be written, or the block cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The record that is copied cannot be read.
    #[error("the record to be copied: {0}")]
    Read(#[from] ReadRecordError),
    /// The block does not have the announced length.
    #[error("the block was to be {announced} bytes and {found}: the file is not to be used")]
    WrongLength {
        /// The length that was announced.
        announced: u64,
        /// The length of the block, in words.
        found: String,
    },
    /// The header does not have the length of the block.
    #[error("the header says {said:?} as Content-Length, the block is to be {announced} bytes")]
    Header {
        /// The length in the header.
        said: Option<u64>,
        /// The length of the block.
        announced: u64,
    },
    /// The record is damaged in its file, and is not copied as if it were whole.
    #[error("the record at offset {offset} is damaged: {words}")]
    Damaged {
        /// The offset of the record in its file.
        offset: u64,
        /// The description of the defect.
        words: String,
    },
    /// An earlier record failed: records behind it would not be found.
    #[error("an earlier record was not written to its end: begin another file")]
    Poisoned,
}

/// The place of a record in the file that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPlace {
    /// The offset of the record, or of its member.
    pub offset: u64,
    /// The number of bytes that the record takes.
    pub length: u64,
}

/// A writer of records, one after the other.
///
/// ```
/// use archive_formats::warc::{Builder, WarcType, WarcWriter};
///
/// let id = "urn:uuid:6f6e9f5e-0d2b-4a0b-8f6c-7a1b2c3d4e5f";
/// let head = Builder::new(WarcType::Metadata, id, "2026-11-21T19:14:09Z").render_head(5)?;
/// let mut writer = WarcWriter::gzip_writer(Vec::new(), 6);
/// let first = writer.write_record(&head, 5, &mut &b"hello"[..])?;
/// let second = writer.write_record(&head, 5, &mut &b"world"[..])?;
/// assert_eq!(second.offset, first.offset + first.length);
/// assert_eq!(writer.into_inner().len() as u64, second.offset + second.length);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct WarcWriter<W> {
    sink: W,
    position: u64,
    deflate: Option<Deflate>,
    piece: Vec<u8>,
    poisoned: bool,
}

#[derive(Debug)]
struct Deflate {
    compress: Compress,
    crc: Crc,
    level: u32,
    out: Vec<u8>,
}

impl<W: Write> WarcWriter<W> {
    /// Writes an uncompressed file.
    pub fn plain_writer(sink: W) -> Self {
        Self::build(sink, None)
    }

    /// Writes one gzip member per record; `level` from 0 (stored) to 9 (smallest).
    pub fn gzip_writer(sink: W, level: u32) -> Self {
        let level = level.min(9);
        let deflate = Deflate {
            compress: Compress::new(Level::new(level), false),
            crc: Crc::new(),
            level,
            out: vec![0; PIECE],
        };
        Self::build(sink, Some(deflate))
    }

    fn build(sink: W, deflate: Option<Deflate>) -> Self {
        Self {
            sink,
            position: 0,
            deflate,
            piece: vec![0; PIECE],
            poisoned: false,
        }
    }

    /// Returns the number of bytes that were written.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the output.
    pub fn get_ref(&self) -> &W {
        &self.sink
    }

    /// Begins with another sink, from its first byte, in the memory of the last one; returns the last sink.
    pub fn begin_again(&mut self, sink: W) -> W {
        self.position = 0;
        self.poisoned = false;
        std::mem::replace(&mut self.sink, sink)
    }

    /// Returns the output, and ends the writer.
    pub fn into_inner(self) -> W {
        self.sink
    }

    /// Writes a record: a header as a [`Builder`](crate::warc::Builder) makes it, and a block of exactly `length`
    /// bytes.
    ///
    /// # Errors
    ///
    /// Fails if the header has another length, if the block has another length or cannot be read, if the output cannot
    /// be written, or if an earlier record failed.
    pub fn write_record(
        &mut self,
        head: &[u8],
        length: u64,
        block: &mut dyn Read,
    ) -> Result<RecordPlace, WriteError> {
        let said = crate::warc::Header::parse(head)
            .content_length()
            .ok()
            .flatten();
        if said != Some(length) {
            return Err(WriteError::Header {
                said,
                announced: length,
            });
        }
        self.whole(|writer| {
            writer.put(head)?;
            let mut left = length;
            while left > 0 {
                let count = writer.pass(block, left)?;
                if count == 0 {
                    return Err(WriteError::WrongLength {
                        announced: length,
                        found: format!("ends after {}", length - left),
                    });
                }
                left -= count;
            }
            if writer.read_piece(block, 1)? > 0 {
                return Err(WriteError::WrongLength {
                    announced: length,
                    found: "goes on".into(),
                });
            }
            writer.put(b"\r\n\r\n")
        })
    }

    /// Copies a record, byte for byte: its header as it stands in its file, its block, the line ends behind it.
    ///
    /// A damaged record is refused, as soon as the damage is known.
    ///
    /// # Errors
    ///
    /// Fails if the record is damaged or cannot be read, if the output cannot be written, or if an earlier record
    /// failed.
    pub fn copy_record<R: Read>(
        &mut self,
        mut record: Record<'_, R>,
    ) -> Result<(RecordPlace, RecordSummary), WriteError> {
        let mut end = RecordSummary::default();
        let written = self.whole(|writer| {
            writer.put(record.header().raw())?;
            while writer.pass(&mut record, u64::MAX)? > 0 {}
            end = record.read_end()?;
            match end.trailer.bytes() {
                Some(trailer) if end.complete => writer.put(trailer),
                _ => Err(WriteError::Damaged {
                    offset: end.offset,
                    words: end
                        .defects
                        .first()
                        .map_or_else(|| "it has no end".into(), ToString::to_string),
                }),
            }
        })?;
        Ok((written, end))
    }

    /// Writes one record with `record`; after a failure, nothing is written any more.
    fn whole(
        &mut self,
        record: impl FnOnce(&mut Self) -> Result<(), WriteError>,
    ) -> Result<RecordPlace, WriteError> {
        if self.poisoned {
            return Err(WriteError::Poisoned);
        }
        self.poisoned = true;
        let offset = self.position;
        self.open()?;
        record(self)?;
        self.close()?;
        self.poisoned = false;
        Ok(RecordPlace {
            offset,
            length: self.position - offset,
        })
    }

    /// Reads at most `limit` bytes.
    fn read_piece(&mut self, block: &mut dyn Read, limit: u64) -> Result<usize, WriteError> {
        let limit = usize::try_from(limit).unwrap_or(PIECE).min(PIECE);
        let room = self.piece.get_mut(..limit).unwrap_or_default();
        loop {
            match block.read(room) {
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Copies at most `limit` bytes.
    fn pass(&mut self, block: &mut dyn Read, limit: u64) -> Result<u64, WriteError> {
        let count = self.read_piece(block, limit)?;
        let piece = std::mem::take(&mut self.piece);
        let result = self.put(piece.get(..count).unwrap_or_default());
        self.piece = piece;
        result?;
        Ok(count as u64)
    }

    fn open(&mut self) -> Result<(), WriteError> {
        let Some(deflate) = &mut self.deflate else {
            return Ok(());
        };
        deflate.compress.reset();
        deflate.crc.reset();
        // The header has no name, no time and an unknown system: nothing of this machine.
        let extra = match deflate.level {
            9 => 2,
            1 => 4,
            _ => 0,
        };
        self.raw(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, extra, 255])
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        if self.deflate.is_none() {
            return self.raw(bytes);
        }
        if let Some(deflate) = &mut self.deflate {
            deflate.crc.update(bytes);
        }
        self.deflate(bytes, FlushCompress::None)
    }

    fn close(&mut self) -> Result<(), WriteError> {
        if self.deflate.is_none() {
            return Ok(());
        }
        self.deflate(&[], FlushCompress::Finish)?;
        let Some(deflate) = &self.deflate else {
            return Ok(());
        };
        let crc = deflate.crc.sum().to_le_bytes();
        // The size is modulo 2^32, as the format has it.
        let size = deflate.compress.total_in().to_le_bytes();
        self.raw(&crc)?;
        self.raw(size.get(..4).unwrap_or_default())
    }

    fn deflate(&mut self, mut bytes: &[u8], flush: FlushCompress) -> Result<(), WriteError> {
        loop {
            let Some(deflate) = &mut self.deflate else {
                return Ok(());
            };
            let in_before = deflate.compress.total_in();
            let out_before = deflate.compress.total_out();
            let status = deflate
                .compress
                .compress(bytes, &mut deflate.out, flush)
                .map_err(io::Error::other)?;
            let used = usize::try_from(deflate.compress.total_in() - in_before)
                .map_err(io::Error::other)?;
            let made = usize::try_from(deflate.compress.total_out() - out_before)
                .map_err(io::Error::other)?;
            bytes = bytes.get(used..).unwrap_or_default();
            let out = std::mem::take(&mut deflate.out);
            let result = self.raw(out.get(..made).unwrap_or_default());
            if let Some(deflate) = &mut self.deflate {
                deflate.out = out;
            }
            result?;
            let is_done = if matches!(flush, FlushCompress::Finish) {
                status == Status::StreamEnd
            } else {
                bytes.is_empty() && made < PIECE
            };
            if is_done {
                return Ok(());
            }
            if used + made == 0 {
                return Err(io::Error::other("the compressor stands still").into());
            }
        }
    }

    fn raw(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.sink.write_all(bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }
}
