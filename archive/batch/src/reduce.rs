//! The reduce steps, in which the outputs of all files become one result.
//!
//! Owns what each reduce step of a built-in job means. Sorts with [`archive_formats::cdx::Sorter`], and holds no more
//! than some lines beside that. The result depends on the lines of the input, and not on the pieces in which they come;
//! that of [`Reduce::Concatenate`] on its bytes.

use std::io::{self, Read, Write};
use std::path::Path;

use archive_formats::cdx::{SortError, Sorter};

use crate::control::{Stop, StopControl};
use crate::job::{BatchJobError, Sink};
use crate::plan::Reduce;

mod sum;

#[cfg(test)]
mod tests;

/// The longest line that is sorted or added up. Jobs of this crate write none that is longer.
const LONGEST_LINE: usize = 4 << 20;

/// The number of bytes that are read or written at once.
const PIECE: usize = 256 * 1024;

/// About how much memory the sorting takes.
const MEMORY: usize = 64 << 20;

/// The reduce step of a built-in job. Sorts on disk, in bounded memory.
///
/// ```
/// use archive_batch::{StopControl, Reduce, Reducer};
///
/// let scratch = std::env::temp_dir();
/// let mut result = Vec::new();
/// Reducer::new(Reduce::Unique, &scratch)
///     .reduce_outputs(&mut b"b\na\nb\n".as_slice(), &mut result, &StopControl::default())?;
/// assert_eq!(result, b"a\nb\n");
/// # Ok::<(), archive_batch::BatchJobError>(())
/// ```
#[derive(Debug)]
pub struct Reducer {
    kind: Reduce,
    sorter: Sorter,
    memory: usize,
}

impl Reducer {
    /// Creates a step of this kind, which writes under `scratch` what it sorts.
    pub fn new(kind: Reduce, scratch: &Path) -> Self {
        Self::with_memory(kind, scratch, MEMORY)
    }

    fn with_memory(kind: Reduce, scratch: &Path, memory: usize) -> Self {
        Self {
            kind,
            sorter: Sorter::new(scratch, memory),
            memory,
        }
    }

    /// Has `room` asked before anything is written under the scratch folder, whether that number of bytes may lie there
    /// in all.
    #[must_use]
    pub fn with_room(mut self, room: impl Fn(u64) -> io::Result<()> + Send + 'static) -> Self {
        self.sorter = self.sorter.with_room(room);
        self
    }

    /// Makes the result of a job out of the output of all its files.
    ///
    /// # Errors
    ///
    /// [`BatchJobError`] if the input, the scratch folder or the sink fails, a line cannot be used, or the job has to end.
    pub fn reduce_outputs(
        self,
        input: &mut dyn Read,
        out: &mut dyn Sink,
        control: &StopControl,
    ) -> Result<(), BatchJobError> {
        let Self {
            kind,
            sorter,
            memory,
        } = self;
        let asked = control.clone();
        let sorter = sorter.with_check(move || asked.check_stop().map_err(io::Error::other));
        let mut written = SinkWriter {
            out,
            control,
            stopped: None,
            held: Vec::new(),
        };
        let result = match kind {
            Reduce::Concatenate => concatenate(input, &mut written),
            Reduce::Sort => sort(input, sorter, &mut written),
            Reduce::Unique => sort(input, sorter.dropping_duplicates(), &mut written),
            Reduce::Sum => sum::sum_columns(input, sorter, &mut written, memory),
            Reduce::Component => Err(BatchJobError::Failed(
                "a component makes its result itself".to_owned(),
            )),
        };
        let result = result.and_then(|()| written.flush().map_err(|error| failed(&error)));
        // Whatever went wrong after the job had to end, that is why it ends.
        control.check_stop()?;
        if let Some(stop) = written.stopped {
            return Err(stop.into());
        }
        result
    }
}

/// Writes to a sink, in pieces. A job that has to end is met by the next piece.
struct SinkWriter<'a> {
    out: &'a mut dyn Sink,
    control: &'a StopControl,
    stopped: Option<Stop>,
    held: Vec<u8>,
}

impl Write for SinkWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        if self.held.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let result = self
            .control
            .check_stop()
            .and_then(|()| self.out.write(&self.held));
        self.held.clear();
        result.map_err(|stop| {
            self.stopped = Some(stop);
            io::Error::other(stop)
        })
    }
}

fn failed(error: &io::Error) -> BatchJobError {
    BatchJobError::Failed(error.to_string())
}

fn unsorted(error: &SortError) -> BatchJobError {
    BatchJobError::Failed(error.to_string())
}

fn concatenate(input: &mut dyn Read, out: &mut SinkWriter<'_>) -> Result<(), BatchJobError> {
    let mut piece = vec![0; PIECE];
    loop {
        out.control.check_stop()?;
        let count = read(input, &mut piece)?;
        if count == 0 {
            return Ok(());
        }
        out.write_all(&piece[..count])
            .map_err(|error| failed(&error))?;
    }
}

fn sort(
    input: &mut dyn Read,
    mut sorter: Sorter,
    out: &mut SinkWriter<'_>,
) -> Result<(), BatchJobError> {
    each_line(input, out.control, |_, line| {
        sorter.push(line).map_err(|error| unsorted(&error))
    })?;
    sorter.finish(out).map_err(|error| unsorted(&error))?;
    Ok(())
}

fn read(input: &mut dyn Read, piece: &mut [u8]) -> Result<usize, BatchJobError> {
    loop {
        match input.read(piece) {
            Ok(count) => return Ok(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(BatchJobError::Failed(format!(
                    "the output of the files cannot be read: {error}"
                )));
            }
        }
    }
}

/// Calls `each` with each line, without its line end, and with its number from 1. The last line may have no end.
fn each_line(
    input: &mut dyn Read,
    control: &StopControl,
    mut each: impl FnMut(u64, &[u8]) -> Result<(), BatchJobError>,
) -> Result<(), BatchJobError> {
    let mut piece = vec![0; PIECE];
    // The beginning of a line that did not end in the piece before.
    let mut begun = Vec::new();
    let mut number = 0;
    loop {
        control.check_stop()?;
        let count = read(input, &mut piece)?;
        let mut rest = &piece[..count];
        if rest.is_empty() {
            break;
        }
        while let Some(at) = memchr::memchr(b'\n', rest) {
            let (line, behind) = rest.split_at(at);
            rest = &behind[1..];
            number += 1;
            if begun.is_empty() {
                each(number, line)?;
            } else {
                begun.extend_from_slice(line);
                check_length(number, &begun)?;
                each(number, &begun)?;
                begun.clear();
            }
        }
        begun.extend_from_slice(rest);
        check_length(number + 1, &begun)?;
    }
    if begun.is_empty() {
        Ok(())
    } else {
        each(number + 1, &begun)
    }
}

fn check_length(number: u64, line: &[u8]) -> Result<(), BatchJobError> {
    if line.len() <= LONGEST_LINE {
        return Ok(());
    }
    Err(BatchJobError::Failed(format!(
        "line {number} of the output is longer than {LONGEST_LINE} bytes: {:?}…",
        String::from_utf8_lossy(line.get(..80).unwrap_or(line))
    )))
}
