//! The result of a built-in job, from its output: on a thread of its own, in bounded memory.

use std::io;

use archive_batch::{BatchJobError, Reduce, Reducer, Sink, Stop, StopControl};
use archive_durable::AppendFile;

use super::folder::{JobFile, JobFolder};
use super::space::Space;
use super::table::JobRow;

#[cfg(test)]
mod tests;

/// Writes the result of a row's job and returns its length, or `None` if the output is the result.
///
/// # Errors
/// The reason why there is no result, in words for the person who submitted the job.
pub(crate) fn reduce_result(
    kind: Reduce,
    row: &JobRow,
    folder: &JobFolder,
    space: &Space,
    control: &StopControl,
) -> Result<Option<u64>, String> {
    match kind {
        Reduce::Concatenate => return Ok(None),
        Reduce::Component => return Err("a built-in job has no component".to_owned()),
        Reduce::Sort | Reduce::Unique | Reduce::Sum => {}
    }
    let mut input = folder
        .read_file(JobFile::Output, row.checkpoint.output)
        .map_err(|error| error.to_string())?;
    let mut out = ResultFile::open(row, folder, space)?;
    let scratch = folder.scratch_folder().map_err(|error| error.to_string())?;
    let room = space.new_scratch();
    let room = move |bytes| room.hold_bytes(bytes).map_err(io::Error::other);
    let reducer = Reducer::new(kind, &scratch).with_room(room);
    let made = reducer.reduce_outputs(&mut input, &mut out, control);
    folder.drop_scratch().map_err(|error| error.to_string())?;
    match made {
        Ok(()) => out.finish().map(Some),
        Err(error) => Err(out.why(&error)),
    }
}

/// The file `result`, while it is written.
#[derive(Debug)]
pub(crate) struct ResultFile {
    file: AppendFile,
    space: Space,
    length: u64,
    most: u64,
    /// The reason why no more can be written.
    failure: Option<String>,
}

impl ResultFile {
    /// Creates the file, empty.
    pub(crate) fn open(row: &JobRow, folder: &JobFolder, space: &Space) -> Result<Self, String> {
        let file = folder
            .append_file(JobFile::Result, 0)
            .map_err(|error| error.to_string())?;
        folder.sync_folder().map_err(|error| error.to_string())?;
        Ok(Self {
            file,
            space: space.clone(),
            length: 0,
            most: row.spec.limits.output,
            failure: None,
        })
    }

    /// Appends bytes, within the limit of the job and the room for all jobs.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), String> {
        let count = bytes.len() as u64;
        self.length = self.length.saturating_add(count);
        if self.length > self.most {
            return Err(format!(
                "the result of the job is longer than its limit of {} bytes; submit the job again with a larger limit on its output",
                self.most
            ));
        }
        self.space
            .take_bytes(count)
            .map_err(|full| full.to_string())?;
        self.file.append(bytes).map_err(|error| error.to_string())
    }

    /// Syncs the file and returns its length.
    pub(crate) fn finish(&mut self) -> Result<u64, String> {
        self.file.sync().map_err(|error| error.to_string())?;
        Ok(self.length)
    }

    /// Returns the reason why there is no result: a failed write comes before the error that followed from it.
    fn why(&mut self, error: &BatchJobError) -> String {
        self.failure.take().unwrap_or_else(|| error.to_string())
    }
}

impl Sink for ResultFile {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.append(bytes).map_err(|why| {
            self.failure = Some(why);
            Stop::Output
        })
    }
}
