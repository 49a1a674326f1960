//! A job: the things it is shown of one file, and where it writes.

use std::fmt;
use std::io::Read;
use std::ops::Range;

use archive_formats::warc::{End, Record};
use archive_model::{FileName, Root};

use crate::control::Stop;

/// One archived file, as it is known before its bytes are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: FileName,
    /// Its size in bytes.
    pub size: u64,
    /// The root that its bytes are proven against.
    pub root: Root,
    /// When it was stored on this node, RFC 3339 in UTC.
    pub stored: String,
}

/// The reason why bytes could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// These bytes are not what was admitted, or cannot be read. Others may be good: ask behind them.
    #[error("bytes {}–{} are damaged: {reason}", .range.start, .range.end)]
    Damaged {
        /// First byte and one past the last, at least one group; not beyond the end of the file.
        range: Range<u64>,
        /// The problem that was found.
        reason: String,
    },
    /// The file cannot be read at all any more, from here on.
    #[error("{0}")]
    Gone(String),
}

/// The bytes of one file, each proven to be what was admitted before it is handed out.
pub trait Source: Send {
    /// Fills `buffer` from `offset`, less only where the file ends; says how many bytes that are.
    ///
    /// When the first byte cannot be handed out, an error; when a later one cannot, what comes before it.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, ReadError>;
}

/// Where a job writes. It may make the job wait until somebody reads.
pub trait Sink: Send {
    /// Takes all the bytes, or says why the job has to end.
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
    /// Nothing: what is in [`File`] is enough.
    Nothing,
    /// All its bytes, in order.
    Bytes,
    /// Its records, in order.
    Records,
}

/// The reason why a job could not do its work.
#[derive(Debug)]
pub enum JobError {
    /// It has to end, as it was told.
    Stopped(Stop),
    /// The bytes cannot be read, or are broken, here.
    Read(archive_formats::warc::ReadError),
    /// It says itself what is wrong with this record or file; the next one may be good.
    Failed(String),
    /// Nothing more can be expected of it for this file: it trapped, or went over a limit.
    Broken(String),
}

impl From<Stop> for JobError {
    fn from(stop: Stop) -> Self {
        Self::Stopped(stop)
    }
}

impl From<archive_formats::warc::ReadError> for JobError {
    fn from(error: archive_formats::warc::ReadError) -> Self {
        Self::Read(error)
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped(stop) => stop.fmt(f),
            Self::Read(error) => error.fmt(f),
            Self::Failed(reason) | Self::Broken(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for JobError {}

/// The work on one file: `begin`, then its bytes or its records, then `end`.
///
/// A job is not shown what [`Job::reads`] does not ask for; the methods for it then are never called.
pub trait Job {
    /// Returns the parts that it wants to be shown.
    fn reads(&self) -> Reads;

    /// The file begins.
    fn begin(&mut self, file: &File, out: &mut dyn Sink) -> Result<(), JobError> {
        let _ = (file, out);
        Ok(())
    }

    /// The next bytes of the file, none twice and none left out. A damaged range ends the file: bytes with a hole in them
    /// are no bytes of the file.
    fn bytes(&mut self, bytes: &[u8], out: &mut dyn Sink) -> Result<(), JobError> {
        let _ = (bytes, out);
        Ok(())
    }

    /// The next record. It is read as far as the job wants; what reading it to its end shows is given back.
    fn record(
        &mut self,
        record: Record<'_, &mut dyn Read>,
        out: &mut dyn Sink,
    ) -> Result<End, JobError> {
        let _ = out;
        Ok(record.end()?)
    }

    /// The file is over. Not called when a job for bytes was not shown all of them, or the job is broken. Where records
    /// are lost, it is: the job has seen the others.
    fn end(&mut self, out: &mut dyn Sink) -> Result<(), JobError> {
        let _ = out;
        Ok(())
    }
}
