//! The scrub: every copy of this node is read whole within the deadline, the one that has waited longest first.
//!
//! `scrub/order.rs` decides from the catalog which copy is next and how fast it is read; `scrub/control.rs` takes the
//! orders of people; this file reads. A verification is in the catalog as soon as it ends, so that a process that dies
//! loses only the file that it was reading. A long file is read on a thread of its own, which releases the file when
//! the node stops, when the scrub is paused, and when another caller wants it.
//!
//! Not promised: that a disk is read faster than people allow. The oldest verification then shows how far behind it is.

mod control;
mod order;
#[doc(hidden)]
pub mod orders;

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_daemon::worker::rest_after;
use archive_daemon::{Clock, Tasks, Worker, WorkerStep, WorkerStepError};
use archive_durable::{DiskError, VolumeProblem};
use archive_model::{FileName, VolumeId};
use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub use self::control::ScrubControl;
use self::order::{PlannedRead, ReadPlan, Survey, SurveyedVolumes};
use crate::catalog::{CatalogEntry, Condition};
use crate::error::NodeError;
use crate::metrics::Instruments;
use crate::node::Node;
use crate::work::Work;

/// The time that one step waits for a thread.
const STEP: Duration = Duration::from_secs(2);

/// The least time between two looks over the catalog.
const LEAST_PAUSE: Duration = Duration::from_secs(2);

/// The most time between two looks while the catalog changes.
const MOST_PAUSE: Duration = Duration::from_hours(1);

/// A look over the catalog may take this fraction of the time: one part in 20.
const SURVEY_SHARE: u32 = 20;

/// The time between two looks of a waiting thread whether it has to stop.
const LOOK: Duration = Duration::from_millis(50);

/// The worker that reads the copies of the node again.
pub(crate) struct Scrub {
    round: Arc<ScrubContext>,
    tasks: Tasks,
    job: Option<oneshot::Receiver<ThreadResult>>,
    plan: VecDeque<PlannedRead>,
    surveyed: Option<SurveyRecord>,
    /// Whether a copy was left out of the plan, or could not be read now.
    again: bool,
}

/// The state that the threads of the scrub share.
pub(crate) struct ScrubContext {
    pub(crate) node: Arc<Node>,
    pub(crate) control: Arc<ScrubControl>,
    pub(crate) clock: Clock,
    pub(crate) instruments: Instruments,
    pub(crate) stop: CancellationToken,
}

/// A record of the last look over the catalog.
#[derive(Clone, Copy, Debug)]
struct SurveyRecord {
    at: Instant,
    took: Duration,
    /// The number of writes to the catalog at that time.
    writes: u64,
}

/// The result of a thread.
enum ThreadResult {
    Surveyed(Result<(ReadPlan, SurveyRecord), NodeError>),
    Read(Result<CatalogEntry, NodeError>),
}

impl Scrub {
    pub(crate) fn new(context: ScrubContext, tasks: Tasks) -> Self {
        Self {
            round: Arc::new(context),
            tasks,
            job: None,
            plan: VecDeque::new(),
            surveyed: None,
            again: false,
        }
    }

    fn start(
        &mut self,
        name: &str,
        work: impl FnOnce(&ScrubContext) -> ThreadResult + Send + 'static,
    ) {
        let (done, job) = oneshot::channel();
        let round = Arc::clone(&self.round);
        self.job = Some(job);
        self.tasks.spawn_blocking(name, move || {
            // Nobody waits for the result when the node stops.
            _ = done.send(work(&round));
        });
    }

    fn handle(&mut self, done: ThreadResult) -> Result<(), WorkerStepError> {
        match done {
            ThreadResult::Surveyed(found) => {
                let (plan, surveyed) = found?;
                self.again = plan.due > plan.next.len() as u64;
                self.plan = plan.next.into();
                self.surveyed = Some(surveyed);
            }
            ThreadResult::Read(Ok(entry)) => self.round.count(&entry),
            ThreadResult::Read(Err(error)) => {
                self.again = true;
                match error {
                    NodeError::Stopped(_)
                    | NodeError::AtWork { .. }
                    | NodeError::Busy { .. }
                    | NodeError::NotFound(_)
                    | NodeError::Offline { .. } => {}
                    other => return Err(other.into()),
                }
            }
        }
        self.tell_limit();
        Ok(())
    }

    /// Publishes the time by which the most urgent copy of the plan has to be read, which is not always the first one.
    fn tell_limit(&self) {
        let until = self.plan.iter().map(|planned| planned.window.until).min();
        let until = until.map(|until| Timestamp::from_nanosecond(until).unwrap_or(Timestamp::MAX));
        self.round.node.files.scrub_age.set_verify_by(until);
    }

    /// Returns whether it is time to look over the catalog.
    fn is_time_to_survey(&self) -> bool {
        let Some(last) = self.surveyed else {
            return true;
        };
        let since = self.round.clock.elapsed_since(last.at);
        let pause = rest_after(last.took, SURVEY_SHARE, LEAST_PAUSE);
        if since < pause {
            return false;
        }
        let has_changed = self.round.node.catalog.writes() != last.writes;
        let next = self.round.control.next_due();
        let is_due = next.is_some_and(|next| next <= self.round.clock.now());
        let is_wanted = has_changed || is_due || self.again;
        self.round.node.files.scrub_age.has_suspects()
            || (self.plan.is_empty() && is_wanted)
            || (since > MOST_PAUSE && has_changed)
    }
}

impl Worker for Scrub {
    const NAME: &'static str = "scrub";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        if let Some(job) = &mut self.job {
            let Ok(done) = tokio::time::timeout(STEP, job).await else {
                return Ok(WorkerStep::Again);
            };
            self.job = None;
            self.handle(done?)?;
            return Ok(WorkerStep::Again);
        }
        if self.is_time_to_survey() {
            self.start("scrub: look over the catalog", |round| {
                ThreadResult::Surveyed(round.survey())
            });
            return Ok(WorkerStep::Again);
        }
        if !self.round.control.may_read(self.round.clock.now()) {
            return Ok(WorkerStep::Idle(Duration::from_secs(1)));
        }
        match self.plan.pop_front() {
            None => Ok(WorkerStep::Idle(Duration::from_secs(1))),
            Some(planned) => {
                self.start("scrub: read", move |round| {
                    ThreadResult::Read(round.read(&planned))
                });
                Ok(WorkerStep::Again)
            }
        }
    }
}

impl ScrubContext {
    /// Looks over all rows.
    fn survey(&self) -> Result<(ReadPlan, SurveyRecord), NodeError> {
        let at = self.clock.instant();
        let now = self.clock.now();
        let writes = self.node.catalog.writes();
        let mut online: Vec<VolumeId> = Vec::new();
        let mut retired: Vec<VolumeId> = Vec::new();
        for volume in self.node.disks.volumes.list_volumes() {
            match (volume.id, volume.problem) {
                (Some(id), None) => online.push(id),
                (Some(id), Some(VolumeProblem::Retired)) => retired.push(id),
                _ => {}
            }
        }
        let unknown_since = self.control.unknown_since().unwrap_or(now);
        let suspects = self.node.files.scrub_age.take_suspects();
        let volumes = SurveyedVolumes { online, retired };
        let mut survey = Survey::new(self.control.read_policy(), now, unknown_since, volumes)
            .with_suspects(suspects);
        for entry in self.node.files.list_entries(None)? {
            survey.see_entry(&entry?);
            if self.stop.is_cancelled() {
                break;
            }
        }
        let plan = survey.finish_plan();
        self.note(plan.clone())?;
        let took = self.clock.elapsed_since(at);
        Ok((plan, SurveyRecord { at, took, writes }))
    }

    /// Publishes the plan that a look over the rows has made.
    fn note(&self, plan: ReadPlan) -> Result<(), DiskError> {
        self.node.files.scrub_age.set_oldest(plan.oldest);
        let unknown = plan.unknown;
        let now = self.clock.now();
        self.control.set_plan(plan);
        self.control.remember_change(|orders| {
            orders.unknown_since = (unknown > 0).then(|| orders.unknown_since.unwrap_or(now));
        })
    }

    fn count(&self, entry: &CatalogEntry) {
        self.instruments.scrub_files.inc();
        let is_damaged = matches!(entry.row.condition, Condition::Damaged { .. });
        self.control.count_file(is_damaged);
    }

    /// Reads a copy, unless it has been read since it was planned.
    fn read(&self, planned: &PlannedRead) -> Result<CatalogEntry, NodeError> {
        let row = self.node.catalog.row(&planned.name, &planned.volume)?;
        if row.is_none_or(|row| row.verified != planned.verified) {
            return Err(NodeError::NotFound(planned.name.clone()));
        }
        let mut pace = Pace::new(self.clock.instant());
        let mut progress = |bytes: u64| {
            self.instruments.scrub_bytes.inc_by(bytes);
            self.control.count_bytes(bytes);
            pace.spend(bytes, self.control.bytes_rate(), self.clock.instant());
            self.wait(&pace, &planned.name)
        };
        let hold = self
            .node
            .files
            .locks
            .hold_file(&planned.name, Work::Scrub)?;
        let now = self.clock.now();
        self.node
            .files
            .verify_held(&hold, &planned.volume, now, &mut progress)
    }

    /// Waits until the rate allows the next read. Breaks if the file has to be released.
    fn wait(&self, pace: &Pace, name: &FileName) -> ControlFlow<()> {
        loop {
            let is_over = self.stop.is_cancelled()
                || !self.control.may_read(self.clock.now())
                || self.node.files.locks.is_wanted(name);
            if is_over {
                return ControlFlow::Break(());
            }
            let rest = pace.next.saturating_duration_since(self.clock.instant());
            if rest.is_zero() {
                return ControlFlow::Continue(());
            }
            std::thread::sleep(rest.min(LOOK));
        }
    }
}

/// The pace of reads, which are paid for with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pace {
    /// The time at which the next read may begin.
    next: Instant,
}

impl Pace {
    const fn new(now: Instant) -> Self {
        Self { next: now }
    }

    /// Delays the next read by the time that `bytes` take at `rate` bytes a second. Unused time is not saved.
    fn spend(&mut self, bytes: u64, rate: u64, now: Instant) {
        let nanoseconds = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
        let cost = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
        self.next = self.next.max(now).checked_add(cost).unwrap_or(self.next);
    }
}

#[cfg(test)]
mod tests;
