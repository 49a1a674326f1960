//! A job: the things it is shown of one file, and where it writes.

use std::fmt;
use std::io::Read;
use std::ops::Range;

use archive_formats::warc::{Record, RecordSummary};
use archive_model::{FileName, Root};

use crate::control::Stop;

/// An archived file, as it is known before its bytes are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The name of the file.
    pub name: FileName,
    /// The size of the file in bytes.
    pub size: u64,
    /// The root against which the bytes of the file are proven.
    pub root: Root,
    /// The time when the file was stored on this node, RFC 3339 in UTC.
    pub stored: String,
}

/// The reason why bytes could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadBytesError {
    /// A range of bytes is not what was admitted, or cannot be read. Bytes behind the range may be good.
    #[error("bytes {}–{} are damaged: {reason}", .range.start, .range.end)]
    Damaged {
        /// First byte and one past the last, at least one group; not beyond the end of the file.
        range: Range<u64>,
        /// The problem that was found.
        reason: String,
    },
    /// No byte of the file can be read any more, from here on.
    #[error("{0}")]
    Gone(String),
}

/// The bytes of one file, each proven to be what was admitted before it is handed out.
pub trait FileSource: Send {
    /// Fills `buffer` from `offset`, except where the file ends before that, and returns the number of bytes read.
    ///
    /// # Errors
    /// The reason why the first byte cannot be handed out. If a later one cannot, returns the bytes before it.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, ReadBytesError>;
}

/// The output of a job. A sink may make the job wait until its reader takes more.
pub trait Sink: Send {
    /// Takes all of `bytes`.
    ///
    /// # Errors
    /// The reason why the job has to end.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Stop>;
}

impl Sink for Vec<u8> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// The parts of a file that a job wants to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// No part: the fields of [`File`] are enough.
    Nothing,
    /// All bytes of the file, in order.
    Bytes,
    /// The records of the file, in order.
    Records,
}

/// The reason why a job could not do its work.
#[derive(Debug)]
pub enum BatchJobError {
    /// The job was stopped.
    Stopped(Stop),
    /// The bytes cannot be read, or are broken, here.
    Read(archive_formats::warc::ReadRecordError),
    /// The job itself reports what is wrong with this record or file; the next one may be good.
    Failed(String),
    /// The job is of no more use for this file: it trapped, or went over a limit.
    Broken(String),
}

impl From<Stop> for BatchJobError {
    fn from(stop: Stop) -> Self {
        Self::Stopped(stop)
    }
}

impl From<archive_formats::warc::ReadRecordError> for BatchJobError {
    fn from(error: archive_formats::warc::ReadRecordError) -> Self {
        Self::Read(error)
    }
}

impl fmt::Display for BatchJobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped(stop) => stop.fmt(f),
            Self::Read(error) => error.fmt(f),
            Self::Failed(reason) | Self::Broken(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for BatchJobError {}

/// The work on one file: `begin`, then its bytes or its records, then `end`.
///
/// A job is shown only the parts that [`Job::reads`] asks for; the methods for other parts are never called.
pub trait Job {
    /// Returns the parts of the file that the job wants to be shown.
    fn reads(&self) -> Reads;

    /// Begins the file.
    ///
    /// # Errors
    /// The fault of the file, or of the job itself.
    fn begin(&mut self, file: &File, out: &mut dyn Sink) -> Result<(), BatchJobError> {
        let _ = (file, out);
        Ok(())
    }

    /// Takes the next bytes of the file, none twice and none left out. A damaged range ends the file: bytes with a hole
    /// in them are not those of the file.
    ///
    /// # Errors
    /// As for [`Self::begin`].
    fn bytes(&mut self, bytes: &[u8], out: &mut dyn Sink) -> Result<(), BatchJobError> {
        let _ = (bytes, out);
        Ok(())
    }

    /// Takes the next record, and reads it as far as the job wants. Returns what reading the record to its end has
    /// shown: a record that is cut ends without an error, and its summary says that it is not complete.
    ///
    /// # Errors
    /// The fault of the record, or of the job itself.
    fn record(
        &mut self,
        record: Record<'_, &mut dyn Read>,
        out: &mut dyn Sink,
    ) -> Result<RecordSummary, BatchJobError> {
        let _ = out;
        Ok(record.read_end()?)
    }

    /// Ends the file. Not called if a job for bytes was not shown all of them, or if the job is broken. It is called
    /// where records are lost: the job has seen the others.
    ///
    /// # Errors
    /// As for [`Self::begin`].
    fn end(&mut self, out: &mut dyn Sink) -> Result<(), BatchJobError> {
        let _ = out;
        Ok(())
    }
}
