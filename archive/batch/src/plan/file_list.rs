//! The names of the files.

use super::{Argument, InvalidJob, JobInfo, Plan, Reduce};
use crate::control::Control;
use crate::job::{File, Job, JobError, Reads, Sink};

pub(super) const INFO: JobInfo = JobInfo {
    name: "file-list",
    about: "Lists the names of the files.",
    output: "NAME",
    arguments: NONE,
    reduce: Reduce::Concatenate,
};

const NONE: &[Argument] = &[];

#[derive(Debug)]
struct FileList;

pub(super) fn plan(arguments: &[(String, String)]) -> Result<Box<dyn Plan>, InvalidJob> {
    match arguments.first() {
        None => Ok(Box::new(FileList)),
        Some((name, _)) => Err(InvalidJob::Argument {
            argument: name.clone(),
            reason: "this job has no arguments".to_owned(),
        }),
    }
}

impl Plan for FileList {
    fn reduce(&self) -> Reduce {
        Reduce::Concatenate
    }

    fn start(&self, _control: &Control) -> Result<Box<dyn Job + '_>, JobError> {
        Ok(Box::new(Self))
    }
}

impl Job for FileList {
    fn reads(&self) -> Reads {
        Reads::Nothing
    }

    fn begin(&mut self, file: &File, out: &mut dyn Sink) -> Result<(), JobError> {
        out.write(file.name.as_str().as_bytes())?;
        Ok(out.write(b"\n")?)
    }
}
