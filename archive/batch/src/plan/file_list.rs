//! The names of the files: all, or those that were stored after a moment.

use archive_formats::date::{DateReading, WarcDate};

use super::arguments::Arguments;
use super::{Argument, InvalidJob, JobInfo, Plan, Reduce};
use crate::control::StopControl;
use crate::job::{BatchJobError, File, Job, Reads, Sink};

pub(super) const INFO: JobInfo = JobInfo {
    name: "file-list",
    about: "Lists the names of the files.",
    output: "NAME",
    arguments: &[],
    reduce: Reduce::Concatenate,
};

pub(super) const SINCE: JobInfo = JobInfo {
    name: "file-list-since",
    about: "Lists the names of the files that their node has stored after a moment.",
    output: "NAME",
    arguments: &[Argument {
        name: "since",
        about: "the moment, as 20161231235959 or 2016-12-31T23:59:59Z; what was stored at that very moment is not listed",
        default: None,
    }],
    reduce: Reduce::Concatenate,
};

#[derive(Debug)]
pub(super) struct FileList;

#[derive(Debug)]
struct FileListSince(WarcDate);

pub(super) fn plan_files_since(arguments: &Arguments) -> Result<Box<dyn Plan>, InvalidJob> {
    let since = arguments.parse_moment("since")?;
    Ok(Box::new(FileListSince(since)))
}

impl Plan for FileList {
    fn reduce(&self) -> Reduce {
        INFO.reduce
    }

    fn start(&self, _control: &StopControl) -> Result<Box<dyn Job + '_>, BatchJobError> {
        Ok(Box::new(FileListJob { since: None }))
    }
}

impl Plan for FileListSince {
    fn reduce(&self) -> Reduce {
        SINCE.reduce
    }

    fn start(&self, _control: &StopControl) -> Result<Box<dyn Job + '_>, BatchJobError> {
        Ok(Box::new(FileListJob {
            since: Some(self.0.clone()),
        }))
    }
}

struct FileListJob {
    since: Option<WarcDate>,
}

impl Job for FileListJob {
    fn reads(&self) -> Reads {
        Reads::Nothing
    }

    fn begin(&mut self, file: &File, out: &mut dyn Sink) -> Result<(), BatchJobError> {
        if let Some(since) = &self.since {
            let stored =
                WarcDate::read_date(&file.stored, DateReading::Lenient).map_err(|error| {
                    BatchJobError::Failed(format!(
                        "nobody knows when it was stored: {:?}: {error}",
                        file.stored
                    ))
                })?;
            if stored.time() <= since.time() {
                return Ok(());
            }
        }
        out.write(format!("{}\n", file.name).as_bytes())?;
        Ok(())
    }
}
