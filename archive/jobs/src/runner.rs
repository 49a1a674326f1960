//! Takes one job through its life: performs each step, and applies the event that follows.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::Clock;
use archive_db::DbError;
use archive_decisions::batch::life::{JobEnding, JobEvent, JobPhase, JobStep};
use archive_ledger::standing::StandingView;
use archive_model::{JobId, NodeState, Program};
use archive_replicas::Replicas;
use archive_rpc::CallErrorKind;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio::task::{JoinError, spawn_blocking};
use tokio_util::sync::CancellationToken;

use super::folder::{JobFile, JobFolder};
use super::live::RunningJobs;
use super::meters::Meters;
use super::space::Space;
use super::table::{JobRow, JobTable};

/// The runner of all jobs; cheap to clone.
#[derive(Clone, Debug)]
pub struct Runner {
    pub(crate) jobs: JobTable,
    pub(crate) standing: StandingView,
    pub(crate) replicas: Arc<Replicas>,
    pub(crate) clock: Clock,
    pub(crate) meters: Meters,
    pub(crate) space: Space,
    pub(crate) live: RunningJobs,
    /// The directory of all jobs.
    pub(crate) batch: PathBuf,
}

/// The reason why the jobs cannot be read or changed now. Their rows stay as they are.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// The admin data failed.
    #[error(transparent)]
    Db(#[from] DbError),
    /// A bug: a task panicked.
    #[error(transparent)]
    Join(#[from] JoinError),
}

impl Runner {
    /// Takes a job to its end, or until `stop`; `cancel` is cancelled when its row has ended.
    pub(super) fn run_job<'a>(
        &'a self,
        id: &'a JobId,
        cancel: &'a CancellationToken,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), BatchError>> {
        self.steps(id, cancel, stop).boxed()
    }

    async fn steps(
        &self,
        id: &JobId,
        cancel: &CancellationToken,
        stop: &CancellationToken,
    ) -> Result<(), BatchError> {
        let mut next = self.happen(id, JobEvent::Turn).await?;
        while let Some((row, step)) = next {
            if step == JobStep::Stop || step == JobStep::Wait {
                return self.tidy(row).await;
            }
            let halt = CancellationToken::new();
            // A job that is ending is not ended earlier by its time limit or a person.
            let may_end = step != JobStep::Close;
            let event = {
                let doing = self.perform(&row, step, &halt);
                tokio::pin!(doing);
                tokio::select! {
                    biased;
                    () = stop.cancelled() => {
                        halt.cancel();
                        // The output that was received is written before the repository stops.
                        drop(doing.await);
                        return Ok(());
                    }
                    () = cancel.cancelled(), if may_end => {
                        halt.cancel();
                        doing.await?;
                        JobEvent::Woke
                    }
                    () = self.clock.sleep(self.time_left(&row)), if may_end => {
                        halt.cancel();
                        doing.await?;
                        JobEvent::TimeOver
                    }
                    event = &mut doing => event?,
                }
            };
            next = self.happen(id, event).await?;
        }
        Ok(())
    }

    /// Applies an event; returns the row and the next step.
    async fn happen(
        &self,
        id: &JobId,
        event: JobEvent,
    ) -> Result<Option<(JobRow, JobStep)>, BatchError> {
        let jobs = self.jobs.clone();
        let id = id.clone();
        let happened = spawn_blocking(move || {
            if matches!(event, JobEvent::Woke | JobEvent::Restarted) {
                tracing::trace!(job = %id, ?event, "a batch job continues");
            } else {
                tracing::debug!(job = %id, ?event, "a batch job continues");
            }
            jobs.apply_event(&id, event, |_row| {})
        });
        Ok(happened.await??)
    }

    /// Returns the time that the job may still take.
    pub(super) fn time_left(&self, row: &JobRow) -> Duration {
        let end = row.deadline().unwrap_or(Timestamp::MAX);
        let left = end.duration_since(self.clock.now());
        Duration::try_from(left).unwrap_or_default()
    }

    pub(super) fn job_folder(&self, row: &JobRow) -> JobFolder {
        JobFolder::new(&self.batch, &row.id)
    }

    async fn perform(
        &self,
        row: &JobRow,
        step: JobStep,
        halt: &CancellationToken,
    ) -> Result<JobEvent, BatchError> {
        match step {
            JobStep::Look => Ok(tokio::select! {
                () = halt.cancelled() => JobEvent::Woke,
                event = self.look(row) => event,
            }),
            JobStep::Pause(pause) => {
                tokio::select! {
                    () = halt.cancelled() => {}
                    () = self.clock.sleep(pause) => {}
                }
                Ok(JobEvent::Woke)
            }
            JobStep::Run => self.read_files(row, halt).boxed().await,
            JobStep::Compare => self.compare_outputs(row, halt).boxed().await,
            JobStep::Close => {
                let event = self.compare_outputs(row, halt).boxed().await?;
                Ok(if let JobEvent::Failed(why) = event {
                    JobEvent::Uncounted(why)
                } else {
                    event
                })
            }
            JobStep::Reduce => self.reduce_outputs(row, halt).boxed().await,
            JobStep::Wait | JobStep::Stop => Ok(JobEvent::Woke),
        }
    }

    async fn look(&self, row: &JobRow) -> JobEvent {
        match self.asked_nodes(row).await {
            Ok(nodes) => JobEvent::Looked(nodes.into_iter().collect()),
            Err(event) => event,
        }
    }

    /// Returns the nodes of the job's replica that are in service, as its monitor sees them.
    ///
    /// # Errors
    /// The event for the job if there is no such replica, or its monitor is silent.
    pub(super) async fn asked_nodes(&self, row: &JobRow) -> Result<Vec<NodeState>, JobEvent> {
        match self.replicas.nodes_in_service(&row.spec.replica).await {
            Err(error) if error.kind == CallErrorKind::NotFound => {
                Err(JobEvent::Failed(error.reason))
            }
            Err(error) => Err(JobEvent::Silent(silent(row, &error.reason))),
            Ok(nodes) => Ok(nodes),
        }
    }

    /// Removes the files of an ended job that are not kept.
    async fn tidy(&self, row: JobRow) -> Result<(), BatchError> {
        if row.is_open() {
            return Ok(());
        }
        let folder = self.job_folder(&row);
        let tidied = spawn_blocking(move || tidy_folder(&row, &folder)).await?;
        if let Err(error) = tidied {
            tracing::warn!(%error, "cannot remove the superfluous files of a batch job");
        }
        Ok(())
    }
}

/// Cuts the files of an ended job to the lengths in its row, and removes those that nobody can request.
pub(super) fn tidy_folder(
    row: &JobRow,
    folder: &JobFolder,
) -> Result<(), super::folder::FolderError> {
    if let Some(JobEnding::Failed | JobEnding::Cancelled) = row.life.ending() {
        folder.drop_file(JobFile::Result)?;
    }
    if row.started.is_some() {
        drop(folder.open_files(&row.checkpoint)?);
    }
    if row.result.is_some() {
        folder.drop_file(JobFile::Output)?;
    }
    folder.drop_scratch()?;
    // Last: as long as it exists, other files may have to be removed.
    folder.drop_file(JobFile::Component)?;
    Ok(())
}

/// Describes a monitor that does not answer.
fn silent(row: &JobRow, why: &str) -> String {
    format!(
        "the monitor of replica {} is silent: {why}",
        row.spec.replica
    )
}

impl JobRow {
    /// Returns whether it runs a component.
    pub(super) const fn is_component(&self) -> bool {
        matches!(self.spec.program, Program::Component(_))
    }

    /// Returns whether it has begun.
    pub(super) fn has_begun(&self) -> bool {
        self.life.phase != JobPhase::Waiting
    }
}
