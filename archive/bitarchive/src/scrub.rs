//! The scrub: every copy of this node read whole within the deadline, the one that has waited longest first.
//!
//! [`order`] decides what is next and how fast, from the catalog; [`orders`] keeps what people said; this file does it.
//! What is verified is in the catalog as soon as it is, so a process that dies loses the file it was reading and no
//! more. A long file is read on a thread of its own, which lets go of it when the node stops, when the scrub is paused,
//! and when somebody else wants the file.
//!
//! Not promised: that a disk is read faster than people allow. Then the oldest verification shows how far behind it is.

mod order;
mod orders;

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use archive_daemon::worker::MAX_PAUSE;
use archive_daemon::{Clock, Step, Tasks, Worker, WorkerError};
use archive_durable::{DiskError, VolumeProblem};
use archive_model::{FileName, VolumeId};
use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use self::order::{Plan, Planned, Policy, Survey};
use self::orders::{Orders, end_of};
use crate::catalog::{Condition, Entry};
use crate::error::NodeError;
use crate::metrics::Instruments;
use crate::node::Node;
use crate::settings::ScrubSettings;
use crate::work::Work;

/// How long one step waits for what is under way.
const STEP: Duration = Duration::from_secs(2);

/// The least time between two looks over the catalog.
const LEAST_PAUSE: Duration = Duration::from_secs(2);

/// The most time between two looks while the catalog changes.
const MOST_PAUSE: Duration = Duration::from_hours(1);

/// A look over the catalog may take one part in so many of the time.
const SURVEY_SHARE: u32 = 20;

/// How often a thread that waits looks whether it shall stop.
const LOOK: Duration = Duration::from_millis(50);

/// What people say to the scrub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Rest for so long, at most a day; zero: a day.
    Pause(Duration),
    /// Go on.
    Resume,
    /// At most so many bytes a second; zero: what the deadline asks for.
    Throttle(u64),
}

/// What it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Something is due and is being read.
    Running,
    /// Nothing is due.
    Idle,
    /// People paused it, until then.
    Paused(Timestamp),
    /// The settings switch it off.
    Off,
}

/// How the scrub is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// What it does.
    pub activity: Activity,
    /// Bytes a second.
    pub rate: u64,
    /// Copies that are due now.
    pub due: u64,
    /// When the next one is.
    pub next: Option<Timestamp>,
    /// The oldest verification; none while some copy has none.
    pub oldest: Option<Timestamp>,
    /// Copies that were not verified since the catalog was built.
    pub unknown: u64,
    /// Files read since the start.
    pub files: u64,
    /// Bytes read since the start.
    pub bytes: u64,
    /// Damaged copies found since the start.
    pub found: u64,
    /// Every copy is read once within this.
    pub deadline: Duration,
}

/// What the scrub and those who talk to it share.
#[derive(Debug)]
pub struct Control {
    data: PathBuf,
    settings: ScrubSettings,
    shared: Mutex<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    orders: Orders,
    plan: Plan,
    files: u64,
    bytes: u64,
    found: u64,
}

impl Control {
    /// Takes up what was ordered before the restart.
    pub fn open(data: &Path, settings: ScrubSettings, now: Timestamp) -> Self {
        let shared = Shared {
            orders: Orders::read(data, now),
            ..Shared::default()
        };
        Self {
            data: data.to_owned(),
            settings,
            shared: Mutex::new(shared),
        }
    }

    /// Does what people say, durably.
    pub fn order(&self, order: Order, now: Timestamp) -> Result<(), DiskError> {
        self.remember(|orders| match order {
            Order::Pause(pause) => {
                let pause = if pause.is_zero() { MAX_PAUSE } else { pause };
                orders.paused_until = Some(end_of(pause, now));
            }
            Order::Resume => orders.paused_until = None,
            Order::Throttle(rate) => orders.bytes_per_second = (rate > 0).then_some(rate),
        })
    }

    /// How it is doing.
    pub fn state(&self, now: Timestamp) -> State {
        let shared = self.lock();
        let activity = match shared.orders.pause(now) {
            _ if !self.settings.enabled => Activity::Off,
            Some(until) => Activity::Paused(until),
            None if shared.plan.due > 0 => Activity::Running,
            None => Activity::Idle,
        };
        State {
            activity,
            rate: self.rate_of(&shared),
            due: shared.plan.due,
            next: shared.plan.next_due,
            oldest: shared.plan.oldest,
            unknown: shared.plan.unknown,
            files: shared.files,
            bytes: shared.bytes,
            found: shared.found,
            deadline: self.settings.deadline.duration(),
        }
    }

    fn may_read(&self, now: Timestamp) -> bool {
        self.settings.enabled && self.lock().orders.pause(now).is_none()
    }

    fn rate(&self) -> u64 {
        self.rate_of(&self.lock())
    }

    fn rate_of(&self, shared: &Shared) -> u64 {
        let ordered = shared.orders.bytes_per_second;
        let most = ordered.or(self.settings.rate.map(archive_daemon::ByteSize::bytes));
        shared.plan.rate.min(most.unwrap_or(u64::MAX)).max(1)
    }

    /// Changes what is remembered: on disk first.
    fn remember(&self, change: impl FnOnce(&mut Orders)) -> Result<(), DiskError> {
        let mut shared = self.lock();
        let mut orders = shared.orders.clone();
        change(&mut orders);
        if orders != shared.orders {
            orders.write(&self.data)?;
            shared.orders = orders;
        }
        Ok(())
    }

    fn policy(&self) -> Policy {
        Policy {
            deadline: self
                .settings
                .deadline
                .duration()
                .max(Duration::from_secs(1)),
            young: self.settings.young.duration(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The worker.
pub(crate) struct Scrub {
    round: Arc<Round>,
    tasks: Tasks,
    job: Option<oneshot::Receiver<Done>>,
    plan: VecDeque<Planned>,
    surveyed: Option<Surveyed>,
    /// Something was left out of the plan, or could not be read now.
    again: bool,
}

/// What the worker's threads work with.
struct Round {
    node: Arc<Node>,
    control: Arc<Control>,
    clock: Clock,
    instruments: Instruments,
    stop: CancellationToken,
}

/// What is known of the last look over the catalog.
#[derive(Clone, Copy, Debug)]
struct Surveyed {
    at: Instant,
    took: Duration,
    /// What had been written to the catalog then.
    writes: u64,
}

/// What a thread brings back.
enum Done {
    Surveyed(Result<(Plan, Surveyed), NodeError>),
    Read(Result<Entry, NodeError>),
}

impl Scrub {
    pub(crate) fn new(
        node: Arc<Node>,
        control: Arc<Control>,
        clock: Clock,
        tasks: Tasks,
        instruments: Instruments,
    ) -> Self {
        let round = Round {
            node,
            control,
            clock,
            instruments,
            stop: tasks.stop(),
        };
        Self {
            round: Arc::new(round),
            tasks,
            job: None,
            plan: VecDeque::new(),
            surveyed: None,
            again: false,
        }
    }

    fn start(&mut self, name: &str, work: impl FnOnce(&Round) -> Done + Send + 'static) {
        let (done, job) = oneshot::channel();
        let round = Arc::clone(&self.round);
        self.job = Some(job);
        self.tasks.spawn_blocking(name, move || {
            // Nobody waits any more when the node stops.
            drop(done.send(work(&round)));
            Ok::<(), std::convert::Infallible>(())
        });
    }

    fn take(&mut self, done: Done) -> Result<(), WorkerError> {
        match done {
            Done::Surveyed(found) => {
                let (plan, surveyed) = found?;
                self.again = plan.due > plan.next.len() as u64;
                self.plan = plan.next.iter().cloned().collect();
                self.surveyed = Some(surveyed);
                self.round.note(plan)?;
            }
            Done::Read(Ok(entry)) => self.round.count(&entry),
            Done::Read(Err(error)) => {
                self.again = true;
                match error {
                    NodeError::Stopped(_)
                    | NodeError::AtWork { .. }
                    | NodeError::Busy { .. }
                    | NodeError::NotFound(_)
                    | NodeError::Offline { .. } => {}
                    other @ (NodeError::Taken { .. }
                    | NodeError::Mismatch { .. }
                    | NodeError::Admission { .. }
                    | NodeError::ReadBack { .. }
                    | NodeError::NoSpace(_)
                    | NodeError::Sidecar { .. }
                    | NodeError::Disk(_)
                    | NodeError::Catalog(_)
                    | NodeError::Volumes(_)
                    | NodeError::Several(_)
                    | NodeError::NotMended { .. }
                    | NodeError::Segment { .. }
                    | NodeError::TakesNothing { .. }
                    | NodeError::OtherCopy { .. }
                    | NodeError::NoItem { .. }
                    | NodeError::Attic { .. }
                    | NodeError::TooYoung { .. }
                    | NodeError::TooManyRemovals { .. }
                    | NodeError::Removals { .. }
                    | NodeError::Record(_)
                    | NodeError::Admitted { .. }
                    | NodeError::Bug(_)) => return Err(other.into()),
                }
            }
        }
        Ok(())
    }

    /// Whether it is time to look over the catalog.
    fn is_time_to_survey(&self) -> bool {
        let Some(last) = self.surveyed else {
            return true;
        };
        let since = self
            .round
            .clock
            .instant()
            .saturating_duration_since(last.at);
        let pause = LEAST_PAUSE.max(last.took.saturating_mul(SURVEY_SHARE));
        if since < pause {
            return false;
        }
        let has_changed = self.round.node.catalog().writes() != last.writes;
        let is_due = self
            .round
            .control
            .state(self.round.clock.now())
            .next
            .is_some_and(|next| next <= self.round.clock.now());
        let is_wanted = has_changed || is_due || self.again;
        self.round.node.standing().has_suspects()
            || (self.plan.is_empty() && is_wanted)
            || (since > MOST_PAUSE && has_changed)
    }
}

impl Worker for Scrub {
    const NAME: &'static str = "scrub";

    async fn step(&mut self) -> Result<Step, WorkerError> {
        if let Some(job) = &mut self.job {
            let Ok(done) = tokio::time::timeout(STEP, job).await else {
                return Ok(Step::Again);
            };
            self.job = None;
            self.take(done?)?;
            return Ok(Step::Again);
        }
        if self.is_time_to_survey() {
            self.start("scrub: look over the catalog", |round| {
                Done::Surveyed(round.survey())
            });
            return Ok(Step::Again);
        }
        if !self.round.control.may_read(self.round.clock.now()) {
            return Ok(Step::Idle(Duration::from_secs(1)));
        }
        match self.plan.pop_front() {
            None => Ok(Step::Idle(Duration::from_secs(1))),
            Some(planned) => {
                self.start("scrub: read", move |round| Done::Read(round.read(&planned)));
                Ok(Step::Again)
            }
        }
    }
}

impl Round {
    /// Looks over all rows.
    fn survey(&self) -> Result<(Plan, Surveyed), NodeError> {
        let (at, now) = (self.clock.instant(), self.clock.now());
        let writes = self.node.catalog().writes();
        let (mut online, mut retired): (Vec<VolumeId>, Vec<VolumeId>) = (Vec::new(), Vec::new());
        for volume in self.node.volumes() {
            match (volume.id, volume.problem) {
                (Some(id), None) => online.push(id),
                (Some(id), Some(VolumeProblem::Retired)) => retired.push(id),
                (Some(_) | None, _) => {}
            }
        }
        let unknown_since = self.control.lock().orders.unknown_since.unwrap_or(now);
        let suspects = self.node.standing().take_suspects();
        let mut survey = Survey::new(
            self.control.policy(),
            now,
            unknown_since,
            online,
            retired,
            suspects,
        );
        for entry in self.node.list(None)? {
            survey.see(&entry?);
            if self.stop.is_cancelled() {
                break;
            }
        }
        let took = self.clock.instant().saturating_duration_since(at);
        Ok((survey.finish(), Surveyed { at, took, writes }))
    }

    /// Makes known what a look over the rows found.
    fn note(&self, plan: Plan) -> Result<(), DiskError> {
        self.node.standing().set_oldest(plan.oldest);
        let (unknown, now) = (plan.unknown, self.clock.now());
        self.control.lock().plan = plan;
        self.control.remember(|orders| {
            orders.unknown_since = (unknown > 0).then(|| orders.unknown_since.unwrap_or(now));
        })
    }

    fn count(&self, entry: &Entry) {
        self.instruments.scrub_files.inc();
        let mut shared = self.control.lock();
        shared.files += 1;
        shared.plan.due = shared.plan.due.saturating_sub(1);
        if matches!(entry.row.condition, Condition::Damaged { .. }) {
            shared.found += 1;
        }
    }

    /// Reads one copy, unless somebody else has read it since it was planned.
    fn read(&self, planned: &Planned) -> Result<Entry, NodeError> {
        let row = self.node.catalog().row(&planned.name, &planned.volume)?;
        if row.is_none_or(|row| row.verified != planned.verified) {
            return Err(NodeError::NotFound(planned.name.clone()));
        }
        let mut pace = Pace::new(self.clock.instant());
        let mut progress = |bytes: u64| {
            self.instruments.scrub_bytes.inc_by(bytes);
            {
                let mut shared = self.control.lock();
                shared.bytes = shared.bytes.saturating_add(bytes);
            }
            pace.spend(bytes, self.control.rate(), self.clock.instant());
            self.wait(&pace, &planned.name)
        };
        self.node.verify_as(
            Work::Scrub,
            &planned.name,
            &planned.volume,
            self.clock.now(),
            &mut progress,
        )
    }

    /// Waits until what was read is paid for; breaks when the file shall be let go.
    fn wait(&self, pace: &Pace, name: &FileName) -> ControlFlow<()> {
        loop {
            let is_over = self.stop.is_cancelled()
                || !self.control.may_read(self.clock.now())
                || self.node.is_wanted(name);
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

/// Reads are paid for with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pace {
    /// When the next read may be.
    next: Instant,
}

impl Pace {
    const fn new(now: Instant) -> Self {
        Self { next: now }
    }

    /// `bytes` were read at a time when `rate` bytes a second were allowed. Time that was not used is not saved.
    fn spend(&mut self, bytes: u64, rate: u64, now: Instant) {
        let nanoseconds = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
        let cost = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
        self.next = self.next.max(now).checked_add(cost).unwrap_or(self.next);
    }
}

#[cfg(test)]
mod tests;
