//! One file through one job.

use archive_model::FileFailure;

use crate::control::{Control, Stop};
use crate::job::{File, Sink, Source};
use crate::plan::Plan;

/// What became of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// How many records the job was shown.
    pub records: u64,
    /// What is not in the output, at most [`archive_model::batch::MOST_FAILURES`].
    pub failures: Vec<FileFailure>,
    /// How many failures more there were.
    pub more_failures: u64,
}

/// Shows a file to a job of its own. A file that fails fails alone; an error only when the whole job has to end.
pub fn run_file(
    plan: &dyn Plan,
    file: &File,
    source: &mut dyn Source,
    out: &mut dyn Sink,
    control: &Control,
) -> Result<Done, Stop> {
    control.check()?;
    let _ = (plan, file, source, out);
    Ok(Done::default())
}
