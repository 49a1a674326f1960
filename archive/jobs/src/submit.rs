//! Submission of jobs: a job is checked, its component is on disk, and its row is written, before the caller is
//! answered.
//!
//! # Errors
//! All public functions fail with a [`SubmitError`] if the job is refused, or the disk or the admin data fail.

use std::collections::BTreeSet;
use std::sync::Arc;

use archive_batch::InvalidJob;
use archive_decisions::batch::life::JobLife;
use archive_durable::AppendFile;
use archive_model::limits::{LARGEST_COMPONENT, LONGEST_ARGUMENTS, MOST_ARGUMENTS};
use archive_model::{JobClass, JobId, JobSpec, Program};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::task::spawn_blocking;

use super::folder::{FolderError, JobFile, JobFolder};
use super::space::SpaceError;
use super::table::{Checkpoint, JobRow, SubmitOutcome, class_of};
use super::{BatchError, Batches};

/// The most components that are received at once.
const AT_ONCE: usize = 16;

/// A job as a caller submits it, with all defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmittedJob {
    /// The id that the caller chose.
    pub id: JobId,
    /// The job.
    pub spec: JobSpec,
    /// The size of its component in bytes; 0 for a built-in job.
    pub component_size: u64,
    /// The caller, as `role/name`.
    pub who: String,
}

/// The reason why a job is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// A field is invalid.
    #[error("field `{0}`: {1}")]
    Field(&'static str, String),
    /// The program or its arguments are invalid.
    #[error(transparent)]
    Job(#[from] InvalidJob),
    /// The id is taken by another job.
    #[error("batch job {0} is taken: another job of {1} has this id; submit under a new id")]
    Taken(JobId, String),
    /// The job is being submitted already.
    #[error("batch job {0} is being submitted on another stream; try again later")]
    BeingSubmitted(JobId),
    /// Too many jobs are being submitted.
    #[error("{AT_ONCE} batch jobs are being submitted; try again later")]
    TooManyUploads,
    /// Too many jobs wait.
    #[error("{0} batch jobs wait already; cancel one, or try again when some have run")]
    TooManyWaiting(usize),
    /// The index submitted a component.
    #[error("the index runs built-in jobs only; submit a component as a researcher")]
    IndexComponent,
    /// Too many jobs of one person wait.
    #[error(
        "{0} of your batch jobs wait already, and one person may have half of the places; cancel one, or try again when \
         some have run"
    )]
    TooManyOfOnePerson(usize),
    /// The disk has no room for the component of the job.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// The component is not the announced one.
    #[error("the component is not the announced one: {0}")]
    Component(String),
    /// The disk failed.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The admin data failed.
    #[error(transparent)]
    Batch(#[from] BatchError),
}

impl From<archive_durable::DiskError> for SubmitError {
    fn from(error: archive_durable::DiskError) -> Self {
        Self::Folder(error.into())
    }
}

impl From<tokio::task::JoinError> for SubmitError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::Batch(error.into())
    }
}

/// The ids of jobs that are being submitted.
#[derive(Clone, Debug, Default)]
pub(super) struct SubmissionClaims(Arc<Mutex<BTreeSet<JobId>>>);

/// The claim on an id, until it is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    all: SubmissionClaims,
    id: JobId,
}

impl SubmissionClaims {
    /// Claims an id. Jobs of the index have no component, hold their claim for a moment only, and are not counted.
    pub(super) fn claim_submission(
        &self,
        id: &JobId,
        class: JobClass,
    ) -> Result<Claim, SubmitError> {
        let mut all = self.0.lock();
        if all.contains(id) {
            return Err(SubmitError::BeingSubmitted(id.clone()));
        }
        if class == JobClass::Research && all.len() >= AT_ONCE {
            return Err(SubmitError::TooManyUploads);
        }
        all.insert(id.clone());
        Ok(Claim {
            all: self.clone(),
            id: id.clone(),
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut all = self.all.0.lock();
        all.remove(&self.id);
    }
}

impl SubmittedJob {
    /// Checks that the job can be run, as far as is known without its component.
    fn check(&self) -> Result<(), SubmitError> {
        let field = |name, why: &str| Err(SubmitError::Field(name, why.to_owned()));
        let arguments = &self.spec.arguments;
        let bytes: usize = arguments
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        if arguments.len() > MOST_ARGUMENTS || bytes > LONGEST_ARGUMENTS {
            return field(
                "arguments",
                "a job takes at most 100 arguments, of at most 64 KiB together",
            );
        }
        let names: BTreeSet<&str> = arguments.iter().map(|(name, _)| name.as_str()).collect();
        if names.len() < arguments.len() || names.contains("") {
            return field("arguments", "each argument needs a name of its own");
        }
        self.spec
            .selection()
            .map_err(|why| SubmitError::Field("files", why.to_string()))?;
        match &self.spec.program {
            Program::BuiltIn(name) => {
                archive_batch::plan_job(name, arguments)?;
            }
            // A component may compute for minutes at each file, and those of all jobs share the memory of a node.
            Program::Component(_) if class_of(&self.who) == JobClass::Index => {
                return Err(SubmitError::IndexComponent);
            }
            Program::Component(_) => {
                if !(1..=LARGEST_COMPONENT).contains(&self.component_size) {
                    return field(
                        "component_size",
                        "a component has between 1 byte and 64 MiB",
                    );
                }
            }
        }
        Ok(())
    }

    /// Returns whether `row` is the job of this submission.
    fn is(&self, row: &JobRow) -> bool {
        (&row.spec, row.component_size, &row.who) == (&self.spec, self.component_size, &self.who)
    }
}

/// A job whose component is being received. If it is dropped, the next start removes its files.
#[derive(Debug)]
pub struct PendingSubmission {
    submission: SubmittedJob,
    folder: JobFolder,
    /// `None` for a built-in job.
    component: Option<(AppendFile, blake3::Hasher)>,
    came: u64,
    _claim: Claim,
}

impl Batches {
    /// Checks a job and makes room for its component. Returns the row instead if the same job was submitted before.
    pub async fn begin_submission(
        &self,
        submission: SubmittedJob,
    ) -> Result<Result<PendingSubmission, JobRow>, SubmitError> {
        if let Some(known) = self.find_job(&submission.id).await? {
            return known_or_taken(&submission, known).map(Err);
        }
        submission.check()?;
        let claim = self
            .submitting
            .claim_submission(&submission.id, class_of(&submission.who))?;
        let space = &self.runner.space;
        space.take_bytes(submission.component_size)?;
        let folder = JobFolder::new(&self.runner.batch, &submission.id);
        let is_component = matches!(submission.spec.program, Program::Component(_));
        let jobs = self.runner.jobs.clone();
        let id = submission.id.clone();
        let made = spawn_blocking(move || {
            // Checked again: the id is claimed only now.
            if let Some(known) = jobs.get(&id).map_err(BatchError::from)? {
                return Ok(Err(known));
            }
            folder.make_folder()?;
            let component = if is_component {
                Some((
                    folder.append_file(JobFile::Component, 0)?,
                    blake3::Hasher::new(),
                ))
            } else {
                None
            };
            Ok::<_, SubmitError>(Ok((folder, component)))
        });
        let (folder, component) = match made.await?? {
            Ok(made) => made,
            Err(known) => return known_or_taken(&submission, known).map(Err),
        };
        Ok(Ok(PendingSubmission {
            submission,
            folder,
            component,
            came: 0,
            _claim: claim,
        }))
    }

    /// Accepts a job whose component is complete: its row is written, and it waits for its turn.
    pub async fn take_submission(&self, pending: PendingSubmission) -> Result<JobRow, SubmitError> {
        let jobs = self.runner.jobs.clone();
        let most = self.settings.waiting;
        let now = self.runner.clock.now();
        let taken = spawn_blocking(move || {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            let taken = take(&jobs, &pending, most, now);
            if taken.is_err() {
                // While the id is claimed.
                pending.folder.remove_folder()?;
            }
            taken
        });
        let row = taken.await??;
        self.enqueue(&row);
        Ok(row)
    }

    /// Abandons a submission: what was received is removed.
    pub async fn abandon_submission(&self, pending: PendingSubmission) -> Result<(), SubmitError> {
        Ok(spawn_blocking(move || pending.folder.remove_folder()).await??)
    }
}

fn known_or_taken(submission: &SubmittedJob, known: JobRow) -> Result<JobRow, SubmitError> {
    if submission.is(&known) {
        Ok(known)
    } else {
        Err(SubmitError::Taken(known.id, known.who))
    }
}

fn take(
    jobs: &super::JobTable,
    pending: &PendingSubmission,
    most: usize,
    now: jiff::Timestamp,
) -> Result<JobRow, SubmitError> {
    let SubmittedJob {
        id,
        spec,
        component_size,
        who,
    } = pending.submission.clone();
    if let (Some((file, hasher)), Program::Component(root)) = (&pending.component, &spec.program) {
        if pending.came != component_size {
            let said = format!("{} of {component_size} bytes were received", pending.came);
            return Err(SubmitError::Component(said));
        }
        if hasher.finalize().as_bytes() != root.as_bytes() {
            return Err(SubmitError::Component("its BLAKE3 hash differs".to_owned()));
        }
        file.sync()?;
    }
    pending.folder.sync_folder()?;
    let row = JobRow {
        id,
        spec,
        component_size,
        who,
        submitted: now,
        started: None,
        ended: None,
        expires: None,
        life: JobLife::default(),
        checkpoint: Checkpoint::default(),
        result: None,
    };
    match jobs.submit_job(row, most).map_err(BatchError::from)? {
        SubmitOutcome::Taken(row) => Ok(*row),
        SubmitOutcome::Known(known) => Err(SubmitError::Taken(known.id, known.who)),
        SubmitOutcome::Full(waiting) => Err(SubmitError::TooManyWaiting(waiting)),
        SubmitOutcome::Own(waiting) => Err(SubmitError::TooManyOfOnePerson(waiting)),
    }
}

impl PendingSubmission {
    /// Returns the number of bytes of the component that are missing.
    pub const fn missing_bytes(&self) -> u64 {
        self.submission.component_size.saturating_sub(self.came)
    }

    /// Appends the next bytes of the component. After an error nothing of it is left.
    pub async fn append_component(mut self, bytes: Bytes) -> Result<Self, SubmitError> {
        let appended = spawn_blocking(move || match self.write(&bytes) {
            Ok(()) => Ok(self),
            Err(error) => {
                self.folder.remove_folder()?;
                Err(error)
            }
        });
        appended.await?
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), SubmitError> {
        let wrong = |said: &str| Err(SubmitError::Component(said.to_owned()));
        let count = bytes.len() as u64;
        if count > self.missing_bytes() {
            return wrong("more bytes were received than announced");
        }
        let Some((file, hasher)) = &mut self.component else {
            return wrong("a built-in job has no component");
        };
        hasher.update(bytes);
        file.append(bytes)?;
        self.came = self.came.saturating_add(count);
        Ok(())
    }
}
