//! Retention of jobs: resumes all open jobs at the start, and removes jobs that have expired.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Worker, WorkerStep, WorkerStepError};
use archive_db::DbError;
use archive_decisions::batch::life::JobEvent;
use archive_decisions::batch::queue::JobQueue;
use archive_durable::{DiskError, directory};
use archive_model::JobClass;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;

use super::folder::{JobFile, JobFolder, remove_tree};
use super::live::RunningJobs;
use super::runner::{Runner, tidy_folder};
use super::space::{Space, job_of_folder};
use super::submit::SubmissionClaims;
use super::table::{JobRow, JobTable};
use super::{BatchParts, Batches};

/// The time between two rounds of the [`RetentionWorker`].
///
/// A round is a poll on purpose. The next time at which a job expires could be remembered, but a round does more: it
/// removes directories that belong to no job, and measures what the jobs take on their disk, which people and crashes
/// change without a notification; and it counts the jobs by phase. It reads one row and one directory for each job that
/// is kept, which are the jobs of a few weeks.
const PAUSE: Duration = Duration::from_secs(30);

/// The reason why batch jobs cannot be resumed at the start.
#[derive(Debug, thiserror::Error)]
pub enum OpenJobsError {
    /// The admin data failed.
    #[error(transparent)]
    Db(#[from] DbError),
    /// The directory of the jobs cannot be used.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl Batches {
    /// Resumes every job that has not ended, and removes directories that belong to no job.
    ///
    /// # Errors
    /// The table of jobs cannot be read or written, or their directory cannot be made or measured.
    pub fn open(parts: BatchParts) -> Result<Self, OpenJobsError> {
        let batch = parts.data.join("batch");
        directory::make_directory(&batch)?;
        sweep(&parts.jobs, &batch, &SubmissionClaims::default())?;
        let space = parts.settings.space.map(archive_daemon::ByteSize::bytes);
        let most = usize::try_from(parts.settings.running).unwrap_or(usize::MAX);
        let batches = Self {
            queue: Arc::new(Mutex::new(JobQueue::new(most))),
            wake: Arc::new(Notify::new()),
            submitting: SubmissionClaims::default(),
            settings: Arc::new(parts.settings),
            runner: Runner {
                jobs: parts.jobs,
                standing: parts.standing,
                replicas: parts.replicas,
                clock: parts.clock,
                meters: parts.meters,
                space: Space::new(&batch, space)?,
                live: RunningJobs::default(),
                batch,
            },
        };
        batches.resume()?;
        Ok(batches)
    }

    fn resume(&self) -> Result<(), OpenJobsError> {
        let jobs = &self.runner.jobs;
        let mut open = Vec::new();
        for row in jobs.all_jobs()? {
            let row = row?;
            let folder = self.runner.job_folder(&row);
            if row.is_open() {
                open.push(row);
            } else if let Err(error) = finish(&row, &folder) {
                tracing::warn!(%error, "cannot remove the superfluous files of a batch job");
            }
        }
        // The jobs continue in the order in which they were submitted.
        open.sort_by(|one, two| (one.submitted, &one.id).cmp(&(two.submitted, &two.id)));
        for row in open {
            let folder = self.runner.job_folder(&row);
            let event = match usable(&row, &folder) {
                Ok(()) if row.has_begun() => JobEvent::Restarted,
                Ok(()) => {
                    self.enqueue(&row);
                    continue;
                }
                Err(why) => JobEvent::Failed(why),
            };
            let taken = jobs.apply_event(&row.id, event, |_row| {})?;
            if let Some((row, _)) = taken.filter(|(row, _)| row.is_open()) {
                self.enqueue(&row);
            }
        }
        Ok(())
    }
}

/// Removes what an ended job no longer needs, if a crash came before that.
fn finish(row: &JobRow, folder: &JobFolder) -> Result<(), super::FolderError> {
    if folder.read_file(JobFile::Component, 1).is_ok() {
        tidy_folder(row, folder)?;
    }
    Ok(())
}

/// Checks that the files of an open job exist.
fn usable(row: &JobRow, folder: &JobFolder) -> Result<(), String> {
    let lost = |error: super::FolderError| {
        format!("the files of the job are lost or damaged ({error}); submit the job again")
    };
    if row.is_component() {
        folder
            .read_file(JobFile::Component, row.component_size)
            .map_err(lost)?;
    }
    if row.has_begun() {
        folder.open_files(&row.checkpoint).map_err(lost)?;
    }
    Ok(())
}

/// Removes directories without a job: a submission that was never finished, a job whose row was deleted.
fn sweep(
    jobs: &JobTable,
    batch: &Path,
    submitting: &SubmissionClaims,
) -> Result<(), OpenJobsError> {
    for name in directory::list_names(batch)? {
        let Some(id) = job_of_folder(&name) else {
            tracing::warn!(name = %name.display(), "ignoring an entry in the directory of batch jobs that belongs to no job");
            continue;
        };
        // The job is being submitted now.
        let Ok(_claim) = submitting.claim_submission(&id, JobClass::Research) else {
            continue;
        };
        if jobs.get(&id)?.is_none() {
            remove_tree(&batch.join(&name))?;
        }
    }
    Ok(())
}

/// Forgets a job that has expired, and removes its files. A job whose id is being submitted now is left to the next
/// round.
fn expire(
    jobs: &JobTable,
    batch: &Path,
    submitting: &SubmissionClaims,
    row: &JobRow,
) -> Result<(), OpenJobsError> {
    // Until all is removed, nobody submits under its id.
    let Ok(_claim) = submitting.claim_submission(&row.id, row.class()) else {
        return Ok(());
    };
    // A crash between the two leaves a directory that the next sweep removes.
    jobs.forget_job(row)?;
    JobFolder::new(batch, &row.id).remove_folder()?;
    Ok(())
}

/// The worker that removes expired jobs, and shows the number of jobs.
#[derive(Debug)]
pub struct RetentionWorker(pub Batches);

impl Worker for RetentionWorker {
    const NAME: &'static str = "batch";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        let own = self.0.clone();
        spawn_blocking(move || own.keep()).await??;
        Ok(WorkerStep::Idle(PAUSE))
    }
}

impl Batches {
    fn keep(&self) -> Result<(), OpenJobsError> {
        let runner = &self.runner;
        let now = self.runner.clock.now();
        let mut phases: Vec<_> = Vec::new();
        let mut over: Vec<JobRow> = Vec::new();
        for row in runner.jobs.all_jobs()? {
            let row = row?;
            if row.expires.is_some_and(|expires| expires <= now) {
                over.push(row);
            } else {
                phases.push(row.life.phase);
            }
        }
        for row in over {
            expire(&runner.jobs, &runner.batch, &self.submitting, &row)?;
        }
        sweep(&runner.jobs, &runner.batch, &self.submitting)?;
        runner.meters.show_phases(&phases);
        runner.space.measure_space()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::{TableFixture, row};

    /// Fails if an expired job takes the files of a submission under the same id with it, or is never removed.
    #[test]
    fn job_being_submitted_is_not_removed() {
        let fixture = TableFixture::new();
        let (_, jobs) = fixture.open();
        let batch = tempfile::tempdir().unwrap();
        let row = row("j", "researcher/anna");
        jobs.submit_job(row.clone(), 1).unwrap();
        let folder = JobFolder::new(batch.path(), &row.id);
        folder.make_folder().unwrap();
        let submitting = SubmissionClaims::default();
        let is_there = || {
            let names = directory::list_names(batch.path()).unwrap();
            (jobs.get(&row.id).unwrap().is_some(), !names.is_empty())
        };
        let claim = submitting.claim_submission(&row.id, row.class()).unwrap();
        expire(&jobs, batch.path(), &submitting, &row).unwrap();
        assert_eq!(is_there(), (true, true));
        drop(claim);
        expire(&jobs, batch.path(), &submitting, &row).unwrap();
        assert_eq!(is_there(), (false, false));
        let claim = submitting.claim_submission(&row.id, row.class());
        assert!(claim.is_ok(), "it is free again");
    }
}
