//! Background jobs that can be listed, paused and throttled.
//!
//! A [`Worker`] does one unit of work a step; the runner gives it rest, back-off and a status. Between steps it can
//! be stopped, paused and throttled; a step itself is never interrupted, except by the deadline of the stop.
//!
//! Not promised: that pauses and throttles outlive the process. A pause ends by itself after [`MAX_PAUSE`], so
//! that nobody forgets a scrub.

mod reload;
mod runner;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use crate::clock::Clock;
use crate::tasks::{AnyError, Tasks, full_name};
pub use reload::ReloadWorker;
use runner::Runner;

/// The longest pause: 24 hours.
pub const MAX_PAUSE: Duration = Duration::from_hours(24);

/// The back-off after the first error in a row; it doubles with each further one.
pub const FIRST_BACK_OFF: Duration = Duration::from_secs(1);

/// The longest back-off.
pub const MAX_BACK_OFF: Duration = Duration::from_mins(5);

/// The error of a step. The runner logs it, backs off and tries again; it never looks inside.
pub type WorkerStepError = AnyError;

/// A background job.
pub trait Worker: Send + 'static {
    /// The name of the worker in logs and listings.
    const NAME: &'static str;

    /// Does one unit of work. Never cancelled midway; keep it under a few seconds.
    ///
    /// # Errors
    /// The unit failed: it is counted, shown, and tried again after a pause.
    fn step(&mut self) -> impl Future<Output = Result<WorkerStep, WorkerStepError>> + Send;
}

/// The next wish of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerStep {
    /// The worker has more to do.
    Again,
    /// The worker has nothing to do for this time.
    Idle(Duration),
}

/// Returns the rest after a round: `share` times as long as it took, so that most of the time is left to others however
/// much there is to look at, and at least `pause`.
///
/// ```
/// use std::time::Duration;
/// use archive_daemon::worker::rest_after;
///
/// let [second, minute] = [Duration::from_secs(1), Duration::from_mins(1)];
/// assert_eq!(rest_after(second, 4, minute), minute);
/// assert_eq!(rest_after(minute, 4, second), 4 * minute);
/// ```
pub fn rest_after(took: Duration, share: u32, pause: Duration) -> Duration {
    pause.max(took.saturating_mul(share))
}

/// The status of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerStatus {
    /// The name of the worker, with its part and instance in front and behind: `node-1/scrub/volume-2`.
    pub name: Arc<str>,
    /// The state of the worker right now.
    pub state: WorkerState,
    /// The rest after each step, as a multiple of the time that the step took.
    pub tranquility: u32,
    /// The number of steps that succeeded since the start.
    pub steps: u64,
    /// The number of steps that failed since the start.
    pub errors: u64,
    /// When the last step ended, with or without an error.
    pub last_step: Option<Timestamp>,
    /// When the last failed step ended, and why it failed.
    pub last_error: Option<(Timestamp, String)>,
}

/// The states of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerState {
    /// The worker is in a step, or about to be.
    Working,
    /// The worker rests between two steps, until this time.
    Resting(Timestamp),
    /// The worker backs off after an error, until this time.
    BackingOff(Timestamp),
    /// The worker was paused by a person, until this time.
    Paused(Timestamp),
    /// The worker stopped with the process.
    Stopped,
}

/// The error of a name that no worker has: list them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no worker `{0}`; list the workers for their names")]
pub struct UnknownWorker(pub String);

/// The error of a second worker of that name: give it an instance of its own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is already a worker `{0}`")]
pub struct DuplicateWorker(pub Arc<str>);

/// The workers of one process, cheap to clone.
#[derive(Clone, Debug)]
pub struct Workers {
    clock: Clock,
    tasks: Tasks,
    part: Option<Arc<str>>,
    all: Arc<Mutex<BTreeMap<Arc<str>, Arc<Controls>>>>,
}

/// The controls that the runner and the registry share about one worker.
#[derive(Debug)]
struct Controls {
    /// The time until which the worker is paused. Every message ends the rest that is under way.
    paused: watch::Sender<Option<Instant>>,
    tranquility: AtomicU32,
    status: watch::Sender<WorkerStatus>,
}

impl Workers {
    /// Makes an empty set of workers, which will run as `tasks` and rest by `clock`.
    pub fn new(clock: Clock, tasks: Tasks) -> Self {
        Self {
            clock,
            tasks,
            part: None,
            all: Arc::default(),
        }
    }

    /// Returns the same workers; those started through the result are named `part/…`.
    #[must_use]
    pub fn for_part(&self, part: &str) -> Self {
        let name = full_name(self.part.as_deref(), part);
        Self {
            tasks: self.tasks.for_part(part),
            part: Some(name),
            ..self.clone()
        }
    }

    /// Starts `worker` under its name. Inside a runtime only.
    ///
    /// # Errors
    ///
    /// [`DuplicateWorker`] if a worker of that name runs.
    pub fn spawn_worker<W: Worker>(&self, worker: W) -> Result<(), DuplicateWorker> {
        self.start(worker, W::NAME)
    }

    /// Starts one of several workers of a kind, as `NAME/instance`. Inside a runtime only.
    ///
    /// # Errors
    ///
    /// [`DuplicateWorker`] if a worker of that name runs.
    pub fn spawn_instance<W: Worker>(
        &self,
        instance: &str,
        worker: W,
    ) -> Result<(), DuplicateWorker> {
        self.start(worker, &format!("{}/{instance}", W::NAME))
    }

    /// Returns the status of all workers, sorted by name.
    pub fn list_workers(&self) -> Vec<WorkerStatus> {
        self.all()
            .values()
            .map(|controls| controls.status.borrow().clone())
            .collect()
    }

    /// Pauses a worker after its current step, for at most [`MAX_PAUSE`]. Returns when the pause ends.
    ///
    /// # Errors
    ///
    /// [`UnknownWorker`] if no worker has that name.
    pub fn pause_worker(&self, name: &str, duration: Duration) -> Result<Timestamp, UnknownWorker> {
        let duration = duration.min(MAX_PAUSE);
        let controls = self.controls(name)?;
        controls
            .paused
            .send_replace(self.clock.instant().checked_add(duration));
        Ok(self.clock.time_after(duration))
    }

    /// Lets a worker continue at once, from a pause, a rest or a back-off.
    ///
    /// # Errors
    ///
    /// [`UnknownWorker`] if no worker has that name.
    pub fn resume_worker(&self, name: &str) -> Result<(), UnknownWorker> {
        self.controls(name)?.paused.send_replace(None);
        Ok(())
    }

    /// Makes a worker rest `tranquility` times as long as each step takes, from the next step on; 0 is full speed.
    ///
    /// # Errors
    ///
    /// [`UnknownWorker`] if no worker has that name.
    pub fn throttle_worker(&self, name: &str, tranquility: u32) -> Result<(), UnknownWorker> {
        let controls = self.controls(name)?;
        controls.tranquility.store(tranquility, Ordering::Relaxed);
        controls
            .status
            .send_modify(|status| status.tranquility = tranquility);
        Ok(())
    }

    fn start<W: Worker>(&self, worker: W, name: &str) -> Result<(), DuplicateWorker> {
        let full_name = full_name(self.part.as_deref(), name);
        let controls = {
            let mut all = self.all();
            if all.contains_key(&full_name) {
                return Err(DuplicateWorker(full_name));
            }
            let controls = Arc::new(Controls::new(Arc::clone(&full_name)));
            all.insert(full_name, Arc::clone(&controls));
            controls
        };
        let orders = controls.paused.subscribe();
        let runner = Runner {
            controls,
            orders,
            clock: self.clock.clone(),
            stop: self.tasks.stop_token(),
        };
        self.tasks.spawn(name, runner.run_worker(worker));
        Ok(())
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<Controls>>> {
        // The holder of the lock never panics, so that its content is valid even when poisoned.
        self.all.lock()
    }

    fn controls(&self, name: &str) -> Result<Arc<Controls>, UnknownWorker> {
        self.all()
            .get(name)
            .cloned()
            .ok_or_else(|| UnknownWorker(name.to_owned()))
    }
}

impl Controls {
    fn new(name: Arc<str>) -> Self {
        Self {
            paused: watch::Sender::new(None),
            tranquility: AtomicU32::new(0),
            status: watch::Sender::new(WorkerStatus {
                name,
                state: WorkerState::Working,
                tranquility: 0,
                steps: 0,
                errors: 0,
                last_step: None,
                last_error: None,
            }),
        }
    }

    fn enter(&self, state: WorkerState) {
        self.status.send_modify(|status| status.state = state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Idle;

    impl Worker for Idle {
        const NAME: &'static str = "idle";

        async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
            std::future::ready(Ok(WorkerStep::Idle(MAX_PAUSE))).await
        }
    }

    /// Fails if two workers may have one name, or an order to a worker that does not exist is accepted.
    #[tokio::test]
    async fn duplicate_worker_names_are_refused() {
        let workers = Workers::new(Clock::system_clock(), Tasks::new());
        let node = workers.for_part("node");
        workers.spawn_worker(Idle).unwrap();
        node.spawn_worker(Idle).unwrap();
        node.for_part("a").spawn_instance("1", Idle).unwrap();
        assert_eq!(
            workers.spawn_worker(Idle),
            Err(DuplicateWorker("idle".into()))
        );
        assert_eq!(
            node.spawn_worker(Idle),
            Err(DuplicateWorker("node/idle".into()))
        );
        let names: Vec<String> = node
            .list_workers()
            .iter()
            .map(|status| status.name.to_string())
            .collect();
        assert_eq!(names, ["idle", "node/a/idle/1", "node/idle"]);
        workers.resume_worker("node/idle").unwrap();
        let unknown = UnknownWorker("idel".to_owned());
        assert_eq!(workers.resume_worker("idel"), Err(unknown.clone()));
        assert_eq!(workers.throttle_worker("idel", 1), Err(unknown.clone()));
        assert_eq!(workers.pause_worker("idel", MAX_PAUSE), Err(unknown));
    }
}
