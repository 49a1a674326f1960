//! One file through one job.
//!
//! Owns the order of steps, and the report of a file whose output is not complete. Decides nothing about the files to
//! come.

use std::fmt;

use archive_model::batch::MOST_FAILURES;
use archive_model::limits::LONGEST_REASON;
use archive_model::{FailureKind, FileFailure};

use crate::control::{Stop, StopControl};
use crate::job::{BatchJobError, File, FileSource, Job, ReadBytesError, Reads, Sink};
use crate::plan::Plan;

mod input;
mod records;

#[cfg(test)]
mod tests;

/// The number of bytes of a file that are read at once.
const CHUNK: usize = 256 * 1024;

/// The result of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileResult {
    /// The number of records that the job was shown.
    pub records: u64,
    /// The parts that are not in the output, at most [`archive_model::batch::MOST_FAILURES`].
    pub failures: Vec<FileFailure>,
    /// The number of further failures.
    pub more_failures: u64,
}

/// A file on its way into a job: what is known of it, and where its bytes come from.
pub struct FileInput<'a> {
    /// The description of the file that the job gets.
    pub file: &'a File,
    /// The bytes of the file.
    pub source: &'a mut dyn FileSource,
}

impl fmt::Debug for FileInput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileInput")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

/// Shows a file to a job of its own. A file that fails fails alone; an error only when the whole job has to end.
///
/// Behind damage, a job for records is shown the next record that can be found; a job for bytes gets no more of the
/// file.
///
/// # Errors
///
/// [`Stop`] if the whole job has to end; a file that fails is not an error.
pub fn run_file(
    plan: &dyn Plan,
    mut input: FileInput<'_>,
    out: &mut dyn Sink,
    control: &StopControl,
) -> Result<FileResult, Stop> {
    control.check_stop()?;
    let mut done = FileResult::default();
    let job = match plan.start(control) {
        Ok(job) => job,
        Err(error) => {
            done.note(None, error)?;
            return Ok(done);
        }
    };
    let mut run = FileRun {
        job,
        out,
        control,
        done,
    };
    if let Err(error) = run.job.begin(input.file, run.out) {
        run.done.note(None, error)?;
        return Ok(run.done);
    }
    let goes_on = match run.job.reads() {
        Reads::Nothing => true,
        Reads::Bytes => run.show_bytes(&mut input)?,
        Reads::Records => run.show_records(&mut input)?,
    };
    if goes_on && let Err(error) = run.job.end(run.out) {
        run.done.note(None, error)?;
    }
    control.check_stop()?;
    Ok(run.done)
}

/// A job at work on one file.
struct FileRun<'a> {
    job: Box<dyn Job + 'a>,
    out: &'a mut dyn Sink,
    control: &'a StopControl,
    done: FileResult,
}

impl FileResult {
    /// Notes that some part of the file is not in the output. Beyond [`MOST_FAILURES`] failures are only counted.
    fn fail(&mut self, kind: FailureKind, offset: Option<u64>, mut reason: String) {
        if self.failures.len() >= MOST_FAILURES {
            self.more_failures += 1;
            return;
        }
        if let Some((end, _)) = reason.char_indices().nth(LONGEST_REASON) {
            reason.truncate(end);
        }
        self.failures.push(FileFailure {
            kind,
            offset,
            reason,
        });
    }

    /// Notes a failure of the job. An error when the whole job has to end.
    fn note(&mut self, offset: Option<u64>, error: BatchJobError) -> Result<(), Stop> {
        match error {
            BatchJobError::Stopped(stop) => return Err(stop),
            BatchJobError::Read(error) => self.fail(FailureKind::Format, offset, error.to_string()),
            BatchJobError::Failed(reason) => self.fail(FailureKind::Job, offset, reason),
            BatchJobError::Broken(reason) => self.fail(FailureKind::Component, offset, reason),
        }
        Ok(())
    }
}

impl FileRun<'_> {
    /// Shows the bytes; whether they were all shown.
    fn show_bytes(&mut self, input: &mut FileInput<'_>) -> Result<bool, Stop> {
        let size = input.file.size;
        let mut buffer = vec![0; CHUNK];
        let mut at = 0;
        while at < size {
            self.control.check_stop()?;
            let left = usize::try_from(size - at).unwrap_or(CHUNK).min(CHUNK);
            let room = &mut buffer[..left];
            match input.source.read_at(at, room) {
                Ok(0) => {
                    let words = input::early_end_message(at, size);
                    self.done.fail(FailureKind::Damaged, Some(at), words);
                    return Ok(false);
                }
                Ok(count) => {
                    let count = count.min(left);
                    let read = &buffer[..count];
                    if let Err(error) = self.job.bytes(read, self.out) {
                        self.done.note(Some(at), error)?;
                        return Ok(false);
                    }
                    at += count as u64;
                }
                Err(ReadBytesError::Damaged { range, reason }) => {
                    let words = format!(
                        "{}; the rest of the file is left",
                        input::damage_message(&range, &reason)
                    );
                    self.done
                        .fail(FailureKind::Damaged, Some(range.start), words);
                    return Ok(false);
                }
                Err(ReadBytesError::Gone(reason)) => {
                    self.done.fail(FailureKind::Damaged, Some(at), reason);
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
