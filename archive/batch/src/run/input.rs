//! The bytes of a file as a stream that ends with an error where they cannot be read.
//!
//! Owns what stands in the way. Does not look for what lies behind it.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Read};
use std::ops::Range;

use super::FileInput;
use crate::control::StopControl;
use crate::job::{FileSource, ReadBytesError};

/// The reason why reading cannot continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Barrier {
    /// A range of bytes is damaged; bytes behind the range may be good.
    Damaged { range: Range<u64>, reason: String },
    /// No byte from `at` on can be read.
    Gone { at: u64, reason: String },
}

impl fmt::Display for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged { range, reason } => f.write_str(&damage_message(range, reason)),
            Self::Gone { reason, .. } => f.write_str(reason),
        }
    }
}

impl std::error::Error for Barrier {}

/// Returns the words for damage.
pub(super) fn damage_message(range: &Range<u64>, reason: &str) -> String {
    format!(
        "bytes {} to {} are damaged: {reason}",
        range.start, range.end
    )
}

/// Returns the words for a file that is shorter than it was.
pub(super) fn early_end_message(at: u64, size: u64) -> String {
    format!("the file ends after {at} of its {size} bytes")
}

/// A file from an offset on. Once reading meets a barrier, or the job has to end, every further read fails with that.
pub(super) struct Input<'a> {
    source: &'a mut dyn FileSource,
    control: &'a StopControl,
    barrier: &'a RefCell<Option<Barrier>>,
    at: u64,
    size: u64,
}

impl<'a> Input<'a> {
    /// Reads from `at`, and says in `barrier` what stands in the way.
    pub(super) fn new(
        of: &'a mut FileInput<'_>,
        control: &'a StopControl,
        barrier: &'a RefCell<Option<Barrier>>,
        at: u64,
    ) -> Self {
        Self {
            source: of.source,
            control,
            barrier,
            at,
            size: of.file.size,
        }
    }

    fn stand(&self, barrier: Barrier) -> io::Error {
        *self.barrier.borrow_mut() = Some(barrier.clone());
        io::Error::other(barrier)
    }
}

/// Whether an error is what stands in the way, as it was handed through.
pub(super) fn is_barrier(error: &archive_formats::warc::ReadRecordError) -> bool {
    if let archive_formats::warc::ReadRecordError::Io(error) = error {
        matches!(error.get_ref(), Some(inner) if inner.is::<Barrier>())
    } else {
        false
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.control.check_stop().map_err(io::Error::other)?;
        let before = self.barrier.borrow().clone();
        if let Some(barrier) = before {
            return Err(io::Error::other(barrier));
        }
        let left = usize::try_from(self.size.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let room = buffer.len().min(left);
        if room == 0 {
            return Ok(0);
        }
        match self.source.read_at(self.at, &mut buffer[..room]) {
            Ok(0) => Err(self.stand(Barrier::Gone {
                at: self.at,
                reason: early_end_message(self.at, self.size),
            })),
            Ok(count) => {
                let count = count.min(room);
                self.at += count as u64;
                Ok(count)
            }
            Err(ReadBytesError::Damaged { range, reason }) => {
                // Whatever a source says: reading continues behind the byte that it was asked for.
                let range = range.start.min(self.at)..range.end.max(self.at + 1);
                Err(self.stand(Barrier::Damaged { range, reason }))
            }
            Err(ReadBytesError::Gone(reason)) => Err(self.stand(Barrier::Gone {
                at: self.at,
                reason,
            })),
        }
    }
}
