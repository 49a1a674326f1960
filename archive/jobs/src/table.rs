//! The table of batch jobs: each change is one synced batch, with a line in the audit trail if people want to know of
//! it.
//!
//! # Errors
//! All public functions fail with a [`DbError`] if the admin data cannot be read or written.

use std::sync::Arc;
use std::time::Duration;

use archive_daemon::Clock;
use archive_db::{DbError, TableValue};
use archive_decisions::batch::life::{
    JobEnding, JobEvent, JobLife, JobPhase, JobStep, JobSurroundings,
};
use archive_decisions::batch::queue::{ClassKey, QueueFull, admit_job};
use archive_model::{FileName, JobClass, JobId, JobSpec, time_after};
use archive_rpc::{Grant, Role};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use archive_ledger::admin::{AuditLine, JobLedger};

/// The longest time that a job of the index waits for a node: until its monitor has heard of it after a start. Then the
/// index asks another replica for files that were not read.
const INDEX_PATIENCE: Duration = Duration::from_secs(3);

/// The row of one job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRow {
    /// The id of the job.
    pub id: JobId,
    /// The program of the job, its files and its limits.
    pub spec: JobSpec,
    /// The size of the component in bytes; 0 for a built-in job.
    pub component_size: u64,
    /// The person or part that submitted the job, as `role/name`.
    pub who: String,
    /// The time when the job was submitted.
    pub submitted: Timestamp,
    /// The time when the job began.
    pub started: Option<Timestamp>,
    /// The time when the job ended.
    pub ended: Option<Timestamp>,
    /// The time until which the results are kept.
    pub expires: Option<Timestamp>,
    /// The state of the job.
    pub life: JobLife,
    /// The lengths up to which the files of the job are synced.
    pub checkpoint: Checkpoint,
    /// The length of the file `result`; `None` if the output is the result.
    pub result: Option<u64>,
}

impl TableValue for JobRow {
    const VERSION: u8 = 3;
}

/// The progress of a job: all of it was synced before it was written here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The last file whose output is on disk.
    pub after: Option<FileName>,
    /// The lengths of the files `output`, `errors` and `manifest`.
    pub output: u64,
    pub errors: u64,
    pub manifest: u64,
    /// The counts of files, of files with failures, of records that were shown, and of bytes of the files.
    pub files: u64,
    pub failed: u64,
    pub records: u64,
    pub bytes: u64,
}

impl JobRow {
    /// Returns the end of the job's time limit, or `None` if the job has not begun.
    pub fn deadline(&self) -> Option<Timestamp> {
        let started = self.started?;
        Some(time_after(started, self.spec.limits.time))
    }

    /// Returns the class in which the job waits and runs: jobs of the index are known by the role of their submitter.
    pub fn class(&self) -> JobClass {
        class_of(&self.who)
    }

    /// Returns the place where the job waits and runs.
    pub fn class_key(&self) -> ClassKey {
        ClassKey {
            replica: self.spec.replica.clone(),
            class: self.class(),
        }
    }

    /// Returns whether the audit trail records the job. The index runs jobs all day, as parts read files: of its jobs
    /// only the cancelled ones are recorded.
    fn is_audited(&self) -> bool {
        self.class() == JobClass::Research
    }

    /// Returns whether it has not ended.
    pub const fn is_open(&self) -> bool {
        self.life.ending().is_none()
    }
}

/// Returns the class of jobs that `who` (a `role/name`) submits.
pub(crate) fn class_of(who: &str) -> JobClass {
    match who.parse().map(|grant: Grant| grant.role()) {
        Ok(Role::Index) => JobClass::Index,
        _ => JobClass::Research,
    }
}

/// The table of the jobs of the archive; cheap to clone.
#[derive(Clone, Debug)]
pub struct JobTable {
    ledger: JobLedger<JobRow>,
    clock: Clock,
    /// The time for which the results of a job are kept.
    keep: Duration,
    /// The time to wait for a node.
    patience: Duration,
    /// Locked from the moment when a row is read until it is written.
    changing: Arc<Mutex<()>>,
}

/// The outcome of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmitOutcome {
    /// The job is new, and was stored.
    Taken(Box<JobRow>),
    /// The table has a job with this id already.
    Known(Box<JobRow>),
    /// The class is full: the number of jobs that wait in it.
    Full(usize),
    /// The person has too many jobs: the number of them that wait.
    Own(usize),
}

impl JobTable {
    /// Makes the table of these rows. Results are kept for `keep`; a job waits for a node for `patience`.
    pub fn new(
        ledger: JobLedger<JobRow>,
        clock: Clock,
        keep: Duration,
        patience: Duration,
    ) -> Self {
        Self {
            ledger,
            clock,
            keep,
            patience,
            changing: Arc::default(),
        }
    }

    /// Returns what jobs may see of the admin data.
    pub(crate) fn ledger(&self) -> &JobLedger<JobRow> {
        &self.ledger
    }

    /// Returns the row of a job; `None` if the table has no such job.
    pub fn get(&self, id: &JobId) -> Result<Option<JobRow>, DbError> {
        self.ledger.job(id)
    }

    /// Returns every job, by its id.
    pub fn all_jobs(&self) -> Result<impl Iterator<Item = Result<JobRow, DbError>> + '_, DbError> {
        self.ledger.all_jobs()
    }

    /// Stores a job, unless too many wait in its class: at most `most` jobs of people.
    pub fn submit_job(&self, row: JobRow, most: usize) -> Result<SubmitOutcome, DbError> {
        let _changing = self.changing.lock();
        if let Some(known) = self.get(&row.id)? {
            return Ok(SubmitOutcome::Known(Box::new(known)));
        }
        let mut waiting = Vec::new();
        for other in self.all_jobs()? {
            let other = other?;
            if other.life.phase == JobPhase::Waiting {
                waiting.push((other.class(), other.who == row.who));
            }
        }
        match admit_job(row.class(), most, waiting) {
            Ok(()) => {}
            Err(QueueFull::Class(waiting)) => return Ok(SubmitOutcome::Full(waiting)),
            Err(QueueFull::Own(waiting)) => return Ok(SubmitOutcome::Own(waiting)),
        }
        let what = format!(
            "batch job {} submitted: {} over replica {}",
            row.id, row.spec.program, row.spec.replica
        );
        let line = row.is_audited().then(|| (row.who.clone(), what));
        self.write(&row, line)?;
        Ok(SubmitOutcome::Taken(Box::new(row)))
    }

    /// Applies an event to a job that has not ended, after `change` to its row. Returns the row and the next step, or
    /// `None` if there is no such job.
    pub fn apply_event(
        &self,
        id: &JobId,
        event: JobEvent,
        change: impl FnOnce(&mut JobRow),
    ) -> Result<Option<(JobRow, JobStep)>, DbError> {
        let _changing = self.changing.lock();
        let Some(before) = self.get(id)? else {
            return Ok(None);
        };
        if !before.is_open() {
            return Ok(Some((before, JobStep::Stop)));
        }
        let mut row = before.clone();
        change(&mut row);
        let now = self.clock.now();
        let who = match &event {
            JobEvent::Cancelled(who) => who.clone(),
            _ => "repository".to_owned(),
        };
        let context = JobSurroundings {
            now,
            patience: match row.class() {
                JobClass::Research => self.patience,
                JobClass::Index => self.patience.min(INDEX_PATIENCE),
            },
            after: row.checkpoint.after.as_ref(),
            is_by_name: row.spec.names.is_some(),
        };
        let step = row.life.apply_event(event, context);
        if row.life.phase != JobPhase::Waiting && row.started.is_none() && row.is_open() {
            row.started = Some(now);
        }
        let line = row.life.ending().map(|ending| {
            row.ended = Some(now);
            let keep = row.spec.keep.unwrap_or(self.keep).min(self.keep);
            row.expires = Some(time_after(now, keep));
            (who, ended(&row, ending))
        });
        if row != before {
            let is_told = row.is_audited() || row.life.ending() == Some(JobEnding::Cancelled);
            self.write(&row, line.filter(|_| is_told))?;
        }
        Ok(Some((row, step)))
    }

    /// Removes the row of a job that has ended.
    pub fn forget_job(&self, row: &JobRow) -> Result<(), DbError> {
        let _changing = self.changing.lock();
        let line = row.is_audited().then(|| AuditLine {
            at: self.clock.now(),
            who: "repository".to_owned(),
            file: None,
            what: format!("batch job {} of {} is kept no longer", row.id, row.who),
        });
        self.ledger.delete_job(&row.id, line)
    }

    fn write(&self, row: &JobRow, line: Option<(String, String)>) -> Result<(), DbError> {
        let line = line.map(|(who, what)| AuditLine {
            at: self.clock.now(),
            who,
            file: None,
            what,
        });
        self.ledger.write_job(&row.id, row, line)
    }
}

/// Returns the line of the audit trail for the end of a job.
fn ended(row: &JobRow, ending: JobEnding) -> String {
    let id = &row.id;
    let unread = row.life.unread;
    let gaps = row.life.gaps.len();
    let lacks = if row.started.is_some() {
        format!("; {unread} files unread, {gaps} gaps")
    } else {
        " before it began".to_owned()
    };
    match ending {
        JobEnding::Done => format!("batch job {id} done"),
        JobEnding::Partial => format!("batch job {id} partial{lacks}"),
        JobEnding::Failed => format!("batch job {id} failed{lacks}: {}", row.life.reason),
        JobEnding::Cancelled => format!("batch job {id} cancelled{lacks}"),
    }
}

#[cfg(test)]
pub(super) mod tests;
