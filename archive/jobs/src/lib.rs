//! Batch jobs of the archive: submitted, queued, run over one replica, and kept.
//!
//! Owns the truth about every job (the table `batch` of the admin data) and the files it leaves (`batch/<id>/` beside
//! them). What has been read is synced before the table says so, and after any restart a job continues behind the last
//! file that the table knows. No node is believed about what it sends: it must be in order, announced and requested.
//!
//! Not promised: the order of files over time, and that a file is read only once. Each file stands in the output once.
//!
//! The rooms in reading order:
//!
//! - `table` (every job's row; what follows from what happens to a job, and whose turn it is, is decided in
//!   [`archive_decisions::batch`]);
//! - `submit` (how a job is accepted), `runner` and `steps` (through its life);
//! - `rpc` (the door to the nodes: a run over all of them, a reduce step on one), `merge` (many nodes as one; pure),
//!   `keeper` (writes what is received), `unread` (files that nobody has read), `reduce` (the result of a built-in
//!   job);
//! - `folder`, `chunks`, `lines`, `space`, `keep` (the files that a job leaves, and for how long), `live`, `status` and
//!   `meters` (what is shown); `settings`.

mod chunks;
mod folder;
mod keep;
mod keeper;
mod lines;
mod live;
mod merge;
mod meters;
mod reduce;
mod rpc;
mod runner;
mod settings;
mod space;
mod status;
mod steps;
mod submit;
mod table;
mod unread;

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Clock, Tasks};
use archive_decisions::batch::life::{JobEvent, JobPhase};
use archive_decisions::batch::queue::{ClassKey, JobQueue};
use archive_model::{JobId, JobStatus};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

pub use chunks::{JobBytes, ReadOutputError};
pub use folder::{FolderError, JobFile};
pub use keep::{OpenJobsError, RetentionWorker};
pub use meters::Meters;
pub use runner::{BatchError, Runner};
pub use settings::BatchSettings;
pub use submit::{PendingSubmission, SubmitError, SubmittedJob};
pub use table::{JobRow, JobTable};

/// The pause after the row of a job could not be written.
const AGAIN: Duration = Duration::from_secs(15);

/// All batch jobs of the archive; cheap to clone.
#[derive(Clone, Debug)]
pub struct Batches {
    runner: Runner,
    settings: Arc<BatchSettings>,
    queue: Arc<Mutex<JobQueue>>,
    /// Notified when a job was submitted or has ended.
    wake: Arc<Notify>,
    submitting: submit::SubmissionClaims,
}

/// The parts of the repository that jobs use.
#[derive(Debug)]
pub struct BatchParts {
    /// The table of jobs.
    pub jobs: JobTable,
    /// The nodes and volumes that are out of service.
    pub standing: archive_ledger::standing::StandingView,
    /// The replicas that jobs run over.
    pub replicas: Arc<archive_replicas::Replicas>,
    /// The clock.
    pub clock: Clock,
    /// The metrics of jobs.
    pub meters: Meters,
    /// The section `[batch]`.
    pub settings: BatchSettings,
    /// The directory of the admin data.
    pub data: PathBuf,
}

impl Batches {
    fn queue(&self) -> MutexGuard<'_, JobQueue> {
        self.queue.lock()
    }

    /// Runs jobs whose turn has come, until the stop.
    pub async fn dispatch_jobs(self, tasks: Tasks) {
        let stop = tasks.stop_token();
        while !stop.is_cancelled() {
            loop {
                let next = self.queue().take_next();
                let Some((class, id)) = next else { break };
                let own = self.clone();
                let stop = tasks.stop_token();
                tasks.spawn_once("batch-job", async move {
                    own.run(class, id, stop).await;
                    Ok::<(), Infallible>(())
                });
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.wake.notified() => {}
            }
        }
    }

    /// Runs one job to its end, or until the stop. If its row cannot be written, the job is as it was, and is tried
    /// again.
    async fn run(self, class: ClassKey, id: JobId, stop: tokio_util::sync::CancellationToken) {
        let cancel = self.runner.live.enter_job(&id);
        while let Err(error) = self.runner.run_job(&id, &cancel, &stop).await {
            tracing::error!(job = %id, %error, "cannot continue a batch job; trying again");
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.runner.clock.sleep(AGAIN) => {}
            }
        }
        self.runner.live.leave_job(&id);
        self.queue().end_job(&class);
        self.wake.notify_one();
    }

    /// Returns one job, or `None` if there is no job of this id.
    ///
    /// # Errors
    /// [`BatchError`] if the admin data cannot be read.
    pub async fn find_job(&self, id: &JobId) -> Result<Option<JobRow>, BatchError> {
        let jobs = self.runner.jobs.clone();
        let id = id.clone();
        Ok(tokio::task::spawn_blocking(move || jobs.get(&id)).await??)
    }

    /// Returns the ids of the jobs for which `wanted` is true, newest first.
    ///
    /// # Errors
    /// [`BatchError`] if the admin data cannot be read.
    pub async fn list_jobs(
        &self,
        wanted: impl Fn(&JobRow) -> bool + Send + 'static,
    ) -> Result<Vec<JobId>, BatchError> {
        let jobs = self.runner.jobs.clone();
        let listed = tokio::task::spawn_blocking(move || {
            let mut found = Vec::new();
            for row in jobs.all_jobs()? {
                let row = row?;
                if wanted(&row) {
                    found.push((row.submitted, row.id));
                }
            }
            found.sort_unstable();
            Ok::<_, archive_db::DbError>(found)
        });
        let found = listed.await??;
        Ok(found.into_iter().rev().map(|(_, id)| id).collect())
    }

    /// Ends a job in the name of `who`, or begins to; a job that is ending or has ended stays as it is. Returns `None`
    /// if there is no such job.
    ///
    /// # Errors
    /// [`BatchError`] if the admin data cannot be written.
    pub async fn cancel_job(&self, id: &JobId, who: String) -> Result<Option<JobRow>, BatchError> {
        let jobs = self.runner.jobs.clone();
        let of = id.clone();
        let happened = tokio::task::spawn_blocking(move || {
            jobs.apply_event(&of, JobEvent::Cancelled(who), |_row| {})
        });
        let Some((row, _)) = happened.await?? else {
            return Ok(None);
        };
        // The running job looks at its row.
        self.runner.live.cancel_job(id);
        // A job that ran before a restart keeps its turn: what it has not read is still to be counted.
        if !row.is_open() && self.queue().remove_job(&row.class_key(), id) {
            self.tidy(row.clone());
        }
        Ok(Some(row))
    }

    /// Removes the files of a job that never ran.
    fn tidy(&self, row: JobRow) {
        let folder = folder::JobFolder::new(&self.runner.batch, &row.id);
        drop(tokio::task::spawn_blocking(move || {
            if let Err(error) = runner::tidy_folder(&row, &folder) {
                tracing::warn!(%error, "cannot remove the superfluous files of a batch job");
            }
        }));
    }

    /// Returns the state of a job, with the progress of each node if it runs.
    pub fn job_status(&self, row: &JobRow) -> JobStatus {
        row.to_status(self.runner.live.node_progress(&row.id))
    }

    /// Returns the bytes of a file that a job left, from an offset up to a length.
    pub fn read_output(&self, row: &JobRow, name: JobFile, offset: u64, length: u64) -> JobBytes {
        JobBytes {
            folder: Arc::new(folder::JobFolder::new(&self.runner.batch, &row.id)),
            name,
            offset,
            length,
        }
    }

    /// Returns the limits that a submission may ask for, and the defaults.
    pub fn settings(&self) -> &BatchSettings {
        &self.settings
    }

    /// Puts a job of the table into the queue.
    fn enqueue(&self, row: &JobRow) {
        let class = row.class_key();
        let id = row.id.clone();
        if row.life.phase == JobPhase::Waiting {
            self.queue().push_job(&class, &row.who, id);
        } else {
            self.queue().push_first(&class, id);
        }
        self.wake.notify_one();
    }
}
