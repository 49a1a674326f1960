//! Tasks: named, supervised, stopped together.
//!
//! A task that returns an error, ends although it should live, or panics stops all of them, and is named in what
//! [`Tasks::join_tasks`] returns. The only place that starts tokio tasks.
//!
//! Not promised: that a task stops when it is asked to. A task that does not watch [`Tasks::stop_token`] is cut off at the
//! deadline, wherever it is; blocking code cannot be cut off and ends with the process. A runtime that is dropped while
//! tasks run stops them first: it waits for blocking code, and without a stop it would wait without end.
//!
//! ```
//! use archive_daemon::{TaskError, Tasks};
//!
//! let ended = tokio::runtime::Runtime::new()?.block_on(async {
//!     let tasks = Tasks::new();
//!     tasks.spawn_once("fail", async { Err::<(), _>("no disk") });
//!     tasks.join_tasks(std::time::Duration::from_secs(5)).await
//! });
//! assert!(matches!(ended, Err(TaskError::Failed { name, .. }) if &*name == "fail"));
//! # Ok::<(), std::io::Error>(())
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::task::{AbortHandle, JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;

/// The time between two looks for a failure.
const WATCH: Duration = Duration::from_secs(1);

/// Any error: supervision names it and does not look inside.
pub type AnyError = Box<dyn Error + Send + Sync>;

tokio::task_local! {
    static NAME: Arc<str>;
}

/// The outcome of a task: `()` where nothing can fail, else a `Result`.
pub trait TaskOutcome: Send + 'static {
    /// Returns the error, if the outcome is one, which then stops all tasks.
    fn failure(self) -> Option<AnyError>;
}

impl TaskOutcome for () {
    fn failure(self) -> Option<AnyError> {
        None
    }
}

impl<E: Into<AnyError> + Send + 'static> TaskOutcome for Result<(), E> {
    fn failure(self) -> Option<AnyError> {
        self.err().map(Into::into)
    }
}

/// The tasks of one process, cheap to clone.
#[derive(Clone, Debug)]
pub struct Tasks {
    shared: Arc<SharedTasks>,
    part: Option<Arc<str>>,
}

#[derive(Debug, Default)]
struct SharedTasks {
    stop: CancellationToken,
    tracker: TaskTracker,
    state: Mutex<TasksState>,
}

#[derive(Debug, Default)]
struct TasksState {
    started: u64,
    running: BTreeMap<u64, (Arc<str>, AbortHandle)>,
    failure: Option<TaskError>,
}

/// The reason why the tasks ended before they were asked to, or did not end.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// A task returned an error.
    #[error("task `{name}` failed")]
    Failed {
        /// The name of the task.
        name: Arc<str>,
        /// The error that the task returned.
        source: AnyError,
    },
    /// A task returned although it had not been asked to stop: a bug.
    #[error("task `{name}` ended by itself")]
    Ended {
        /// The name of the task.
        name: Arc<str>,
    },
    /// A task panicked: a bug.
    #[error("task `{name}` panicked: {reason}")]
    Panicked {
        /// The name of the task.
        name: Arc<str>,
        /// The message of the panic.
        reason: String,
    },
    /// Tasks still ran when the deadline had passed, and were cut off.
    #[error("still running {after:?} after the stop: {}", .names.join(", "))]
    Stuck {
        /// The names of the tasks, sorted.
        names: Vec<Arc<str>>,
        /// The deadline that had passed.
        after: Duration,
    },
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new()
    }
}

impl Tasks {
    /// Makes an empty set of tasks.
    pub fn new() -> Self {
        Self {
            shared: Arc::default(),
            part: None,
        }
    }

    /// Returns the same tasks; those started through the result are named `part/…`.
    #[must_use]
    pub fn for_part(&self, part: &str) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            part: Some(full_name(self.part.as_deref(), part)),
        }
    }

    /// Starts a task that lives until the stop, and watches [`Tasks::stop_token`] itself. Inside a runtime only.
    pub fn spawn(
        &self,
        name: &str,
        future: impl Future<Output = impl TaskOutcome> + Send + 'static,
    ) {
        self.start(name, future, TaskLife::UntilStop);
    }

    /// Starts a task that may end. An error of it still stops all tasks. Inside a runtime only.
    pub fn spawn_once(
        &self,
        name: &str,
        future: impl Future<Output = impl TaskOutcome> + Send + 'static,
    ) {
        self.start(name, future, TaskLife::UntilDone);
    }

    /// Ends all tasks with the error that `failure` returns, once it returns one. It is called every second.
    pub fn spawn_watch<E: Into<AnyError> + Send + 'static>(
        &self,
        name: &str,
        clock: Clock,
        failure: impl Fn() -> Option<E> + Send + 'static,
    ) {
        let stop = self.stop_token();
        self.spawn(name, async move {
            loop {
                if let Some(error) = failure() {
                    return Err(error);
                }
                tokio::select! {
                    () = stop.cancelled() => return Ok(()),
                    () = clock.sleep(WATCH) => {}
                }
            }
        });
    }

    /// Starts blocking code, which may end, on a thread of its own. Inside a runtime only.
    pub fn spawn_blocking<O: TaskOutcome>(
        &self,
        name: &str,
        work: impl FnOnce() -> O + Send + 'static,
    ) {
        let name = full_name(self.part.as_deref(), name);
        let named = Arc::clone(&name);
        let handle = tokio::task::spawn_blocking(move || NAME.sync_scope(named, work));
        self.supervise(name, handle, TaskLife::UntilDone);
    }

    /// Returns a token that is cancelled when the tasks have to stop. Cancelling it stops no other task.
    pub fn stop_token(&self) -> CancellationToken {
        self.shared.stop.child_token()
    }

    /// Asks all tasks to stop. Returns at once; [`Tasks::join_tasks`] waits.
    pub fn stop_all(&self) {
        self.shared.stop.cancel();
    }

    /// Waits for the stop, then up to `deadline` for the tasks to end; those that still run are cut off. Returns the
    /// first failure. May be called once.
    ///
    /// # Errors
    ///
    /// [`TaskError`] with the first failure of a task, or with the tasks that did not end in time.
    pub async fn join_tasks(&self, deadline: Duration) -> Result<(), TaskError> {
        self.shared.stop.cancelled().await;
        self.shared.tracker.close();
        let ended = tokio::time::timeout(deadline, self.shared.tracker.wait()).await;
        let mut state = self.shared.state();
        if ended.is_err() {
            let mut names = Vec::new();
            for (name, abort) in state.running.values() {
                abort.abort();
                names.push(Arc::clone(name));
            }
            names.sort();
            state.failure.get_or_insert(TaskError::Stuck {
                names,
                after: deadline,
            });
        }
        state.failure.take().map_or(Ok(()), Err)
    }

    fn start(
        &self,
        name: &str,
        future: impl Future<Output = impl TaskOutcome> + Send + 'static,
        lives: TaskLife,
    ) {
        let name = full_name(self.part.as_deref(), name);
        #[expect(clippy::disallowed_methods, reason = "the one place where tasks start")]
        let handle = tokio::spawn(NAME.scope(Arc::clone(&name), future));
        self.supervise(name, handle, lives);
    }

    /// Starts a second task that waits for the first, because only a join handle sees a panic. If it is dropped before,
    /// then by the runtime, which ends with all that it runs: the stop is for blocking code, which the runtime cannot
    /// drop.
    fn supervise(&self, name: Arc<str>, handle: JoinHandle<impl TaskOutcome>, lives: TaskLife) {
        let shared = Arc::clone(&self.shared);
        let id = {
            let mut state = shared.state();
            state.started += 1;
            let id = state.started;
            state
                .running
                .insert(id, (Arc::clone(&name), handle.abort_handle()));
            id
        };
        let dropped = shared.stop.clone().drop_guard();
        drop(self.shared.tracker.spawn(async move {
            let outcome = handle.await;
            dropped.disarm();
            let early = lives == TaskLife::UntilStop && !shared.stop.is_cancelled();
            let failure = match outcome.map(TaskOutcome::failure) {
                Ok(None) if early => Some(TaskError::Ended { name }),
                Ok(None) => None,
                Ok(Some(source)) => Some(TaskError::Failed { name, source }),
                // Only `join` cancels tasks, and reports that itself.
                Err(error) => reason(error).map(|reason| TaskError::Panicked { name, reason }),
            };
            shared.note_end(id, failure);
        }));
    }
}

/// Returns the name of a task or worker, behind that of its part where the process has several.
pub(crate) fn full_name(part: Option<&str>, name: &str) -> Arc<str> {
    match part {
        Some(part) => format!("{part}/{name}").into(),
        None => name.into(),
    }
}

/// The expected life of a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TaskLife {
    UntilStop,
    UntilDone,
}

impl SharedTasks {
    fn state(&self) -> MutexGuard<'_, TasksState> {
        // The holder of the lock never panics, so that its content is valid even when poisoned.
        self.state.lock()
    }

    fn note_end(&self, id: u64, failure: Option<TaskError>) {
        let mut state = self.state();
        state.running.remove(&id);
        if let Some(failure) = failure {
            tracing::error!(error = with_causes(&failure), "stopping");
            state.failure.get_or_insert(failure);
            self.stop.cancel();
        }
    }
}

/// Returns the name of the task that calls this function.
pub(crate) fn current_part() -> Option<Arc<str>> {
    NAME.try_with(Arc::clone).ok()
}

/// Returns the text of an error with all of its causes, each once: many errors have the text of their cause in their
/// own.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let own = next.to_string();
        if !text.contains(&own) {
            text = format!("{text}: {own}");
        }
        cause = next.source();
    }
    text
}

fn reason(error: JoinError) -> Option<String> {
    let payload = error.try_into_panic().ok()?;
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .or_else(|| Some("no reason given".to_owned()))
}

#[cfg(test)]
mod tests;
