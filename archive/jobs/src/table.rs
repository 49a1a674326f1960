//! Batch jobs as they are remembered: each change in one synced batch, with its line in the audit trail where a person
//! wants to know of it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use archive_daemon::Clock;
use archive_db::{DbError, InvalidValue, Table, Value};
use archive_model::{FileName, JobId, JobLane, JobSpec, Program};
use archive_rpc::{Grant, Role};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::life::{Context, Ending, Event, Life, Phase, Step};
use super::queue::{LaneKey, QueueFull, admit};
use archive_ledger::admin::{Admin, AuditLine};

mod version2;

/// How long a job of the index waits for a node, at most: until its monitor has heard of it after a start. Then the index
/// asks another replica for what was not read.
const INDEX_PATIENCE: Duration = Duration::from_secs(3);

/// One job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRow {
    /// Its id.
    pub id: JobId,
    /// What is to be done.
    pub spec: JobSpec,
    /// How many bytes its component has; 0 of a built-in job.
    pub component_size: u64,
    /// Who submitted it, as `role/name`.
    pub who: String,
    /// When it was submitted.
    pub submitted: Timestamp,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Until when what it left is kept.
    pub expires: Option<Timestamp>,
    /// How it stands.
    pub life: Life,
    /// How far what it left is synced.
    pub checkpoint: Checkpoint,
    /// How long the file `result` is; none: the output is the result.
    pub result: Option<u64>,
}

impl Value for JobRow {
    const VERSION: u8 = 3;

    fn upgrade(version: u8, body: &[u8]) -> Result<Self, InvalidValue> {
        match version {
            2 => version2::read(body),
            found => Err(InvalidValue::Version {
                found,
                written: Self::VERSION,
            }),
        }
    }
}

/// How far a job has come: all of it was synced before it was written here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The last file whose output is on disk.
    pub after: Option<FileName>,
    /// How long the three files are.
    pub output: u64,
    pub errors: u64,
    pub manifest: u64,
    /// Files, those of them that have failures, records that were shown, and bytes of the files.
    pub files: u64,
    pub failed: u64,
    pub records: u64,
    pub bytes: u64,
}

impl JobRow {
    /// When its time is over; none: it has not begun.
    pub fn deadline(&self) -> Option<Timestamp> {
        let started = self.started?;
        Some(
            started
                .checked_add(self.spec.limits.time)
                .unwrap_or(Timestamp::MAX),
        )
    }

    /// Among which jobs it waits and runs: those of the index are told by the role of whoever submitted it.
    pub fn lane(&self) -> JobLane {
        lane_of(&self.who)
    }

    /// Where it waits and runs.
    pub fn lane_key(&self) -> LaneKey {
        LaneKey {
            replica: self.spec.replica.clone(),
            lane: self.lane(),
        }
    }

    /// Whether the audit trail tells of it. The index runs jobs all day, as parts read files: of these only such are told
    /// as somebody cancelled.
    fn is_audited(&self) -> bool {
        self.lane() == JobLane::Research
    }

    /// Whether it has not ended.
    pub const fn is_open(&self) -> bool {
        self.life.ending().is_none()
    }

    /// What it runs, in a word.
    pub fn program(&self) -> String {
        match &self.spec.program {
            Program::BuiltIn(name) => name.clone(),
            Program::Component(root) => format!("component {root}"),
        }
    }
}

/// The lane of the jobs that somebody submits, by `role/name`.
pub(crate) fn lane_of(who: &str) -> JobLane {
    match who.parse().map(|grant: Grant| grant.role()) {
        Ok(Role::Index) => JobLane::Index,
        Ok(_) | Err(_) => JobLane::Research,
    }
}

/// The jobs of the archive.
#[derive(Clone, Debug)]
pub struct JobTable {
    admin: Admin,
    table: Table<String, JobRow>,
    clock: Clock,
    /// How long what a job left is kept.
    keep: Duration,
    /// How long a node is waited for.
    patience: Duration,
    /// Held from when a row is read until it is written.
    changing: Arc<Mutex<()>>,
}

/// What became of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmitOutcome {
    /// It is new, and remembered.
    Taken(Box<JobRow>),
    /// There is a job of this id.
    Known(Box<JobRow>),
    /// So many wait already.
    Full(usize),
    /// So many of this person wait already.
    Own(usize),
}

impl JobTable {
    /// The table of that name.
    pub fn new(
        admin: Admin,
        clock: Clock,
        keep: Duration,
        patience: Duration,
    ) -> Result<Self, DbError> {
        Ok(Self {
            table: admin.table("batch")?,
            admin,
            clock,
            keep,
            patience,
            changing: Arc::default(),
        })
    }

    /// One job.
    pub fn get(&self, id: &JobId) -> Result<Option<JobRow>, DbError> {
        self.table.get(&id.as_str().to_owned())
    }

    /// Every job, by its id.
    pub fn all(&self) -> Result<impl Iterator<Item = Result<JobRow, DbError>> + '_, DbError> {
        Ok(self.table.scan()?.map(|row| row.map(|(_, row)| row)))
    }

    /// Remembers a job, unless too many wait in its lane: `most` of people in all.
    pub fn submit(&self, row: JobRow, most: usize) -> Result<SubmitOutcome, DbError> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = self.get(&row.id)? {
            return Ok(SubmitOutcome::Known(Box::new(known)));
        }
        let mut waiting = Vec::new();
        for other in self.all()? {
            let other = other?;
            if other.life.phase == Phase::Waiting {
                waiting.push((other.lane(), other.who == row.who));
            }
        }
        match admit(row.lane(), most, waiting) {
            Ok(()) => {}
            Err(QueueFull::Lane(waiting)) => return Ok(SubmitOutcome::Full(waiting)),
            Err(QueueFull::Own(waiting)) => return Ok(SubmitOutcome::Own(waiting)),
        }
        let what = format!(
            "batch job {} submitted: {} over replica {}",
            row.id,
            row.program(),
            row.spec.replica
        );
        let line = row.is_audited().then(|| (row.who.clone(), what));
        self.write(&row, line)?;
        Ok(SubmitOutcome::Taken(Box::new(row)))
    }

    /// Lets something happen to a job that has not ended, after `change` to its row; gives the row and what is to be done.
    /// None: there is no such job.
    pub fn happen(
        &self,
        id: &JobId,
        event: Event,
        change: impl FnOnce(&mut JobRow),
    ) -> Result<Option<(JobRow, Step)>, DbError> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(before) = self.get(id)? else {
            return Ok(None);
        };
        if !before.is_open() {
            return Ok(Some((before, Step::Stop)));
        }
        let mut row = before.clone();
        change(&mut row);
        let now = self.clock.now();
        let who = match &event {
            Event::Cancelled(who) => who.clone(),
            Event::Turn
            | Event::Restarted
            | Event::Looked { .. }
            | Event::Silent(_)
            | Event::Busy(_)
            | Event::Woke
            | Event::Progress
            | Event::Broke(_)
            | Event::NodeBroke(..)
            | Event::Finished(_)
            | Event::Compared(_)
            | Event::Uncounted(_)
            | Event::Reduced
            | Event::Failed(_)
            | Event::TimeOver => "repository".to_owned(),
        };
        let context = Context {
            now,
            patience: match row.lane() {
                JobLane::Research => self.patience,
                JobLane::Index => self.patience.min(INDEX_PATIENCE),
            },
            after: row.checkpoint.after.as_ref(),
            is_by_name: row.spec.names.is_some(),
        };
        let step = row.life.apply(event, context);
        if row.life.phase != Phase::Waiting && row.started.is_none() && row.is_open() {
            row.started = Some(now);
        }
        let line = row.life.ending().map(|ending| {
            row.ended = Some(now);
            let keep = row.spec.keep.unwrap_or(self.keep).min(self.keep);
            row.expires = Some(now.checked_add(keep).unwrap_or(Timestamp::MAX));
            (who, ended(&row, ending))
        });
        if row != before {
            let is_told = row.is_audited() || row.life.ending() == Some(Ending::Cancelled);
            self.write(&row, line.filter(|_| is_told))?;
        }
        Ok(Some((row, step)))
    }

    /// Forgets a job that has ended.
    pub fn forget(&self, row: &JobRow) -> Result<(), DbError> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changes = self.admin.change();
        let key = row.id.as_str().to_owned();
        changes.batch().delete(&self.table, &key)?;
        if row.is_audited() {
            changes.note(AuditLine {
                at: self.clock.now(),
                who: "repository".to_owned(),
                file: None,
                what: format!("batch job {} of {} is kept no longer", row.id, row.who),
            });
        }
        self.admin.commit(changes)
    }

    fn write(&self, row: &JobRow, line: Option<(String, String)>) -> Result<(), DbError> {
        let mut changes = self.admin.change();
        let key = row.id.as_str().to_owned();
        changes.batch().put(&self.table, &key, row)?;
        if let Some((who, what)) = line {
            changes.note(AuditLine {
                at: self.clock.now(),
                who,
                file: None,
                what,
            });
        }
        self.admin.commit(changes)
    }
}

/// The end of a job, as it stands in the trail.
fn ended(row: &JobRow, ending: Ending) -> String {
    let id = &row.id;
    let (unread, gaps) = (row.life.unread, row.life.gaps.len());
    let lacks = if row.started.is_some() {
        format!("; {unread} files unread, {gaps} gaps")
    } else {
        " before it began".to_owned()
    };
    match ending {
        Ending::Done => format!("batch job {id} done"),
        Ending::Partial => format!("batch job {id} partial{lacks}"),
        Ending::Failed => format!("batch job {id} failed{lacks}: {}", row.life.reason),
        Ending::Cancelled => format!("batch job {id} cancelled{lacks}"),
    }
}

#[cfg(test)]
pub(super) mod tests;
