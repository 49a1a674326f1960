//! Batch jobs: programs that run over the files of a replica, where the bytes are.

mod follow;
mod job;
mod researcher;
mod submission;

use archive_model::JobId;
pub use archive_model::{JobNode, JobOutput, JobState, JobStatus};
use bytes::Bytes;

pub use follow::{
    JobFailure, JobLines, WatchPace, read_output_lines, run_job, wait_for_job, wait_while,
    watch_job,
};
pub use job::{JobArgument, JobDescription};
pub use researcher::Researcher;
pub use submission::{Code, JobSubmission};

use crate::CallFuture;
use crate::steps::ArchiveSteps;

/// An archive that runs jobs.
pub trait Batch: Send + Sync {
    /// Asks for the built-in jobs.
    fn jobs(&self) -> CallFuture<'_, Vec<JobDescription>>;

    /// Submits a job, which is on the archive's disk when the answer comes. Tries again after a cut stream: under the
    /// same id it is one job.
    fn submit<'a>(&'a self, submission: &'a JobSubmission) -> CallFuture<'a, JobStatus>;

    /// Lists the jobs that are kept, newest first: only the caller's own with `own`, only those that have not ended
    /// with `open`.
    fn list(&self, own: bool, open: bool) -> CallFuture<'_, ArchiveSteps<JobStatus>>;

    /// Asks for the status of a job.
    fn find<'a>(&'a self, id: &'a JobId) -> CallFuture<'a, JobStatus>;

    /// Ends a job, if it has not ended.
    fn cancel<'a>(&'a self, id: &'a JobId) -> CallFuture<'a, JobStatus>;

    /// Reads an output of a job that has ended, from an offset on, in pieces.
    fn output<'a>(
        &'a self,
        id: &'a JobId,
        left: JobOutput,
        offset: u64,
    ) -> CallFuture<'a, ArchiveSteps<Bytes>>;
}
