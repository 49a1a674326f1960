//! The job that reloads files that were exchanged on disk.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::{Worker, WorkerStep, WorkerStepError};
use crate::clock::Clock;
use crate::thread::OwnThread;

/// The longest time until an exchange is noticed.
const PERIOD: Duration = Duration::from_secs(10);

/// The job that reloads exchanged certificates and lists of revoked ones from the disk. After an error the old ones
/// stay in use.
pub struct ReloadWorker {
    reload: Arc<dyn Fn(Timestamp) -> Result<(), WorkerStepError> + Send + Sync>,
    clock: Clock,
    thread: OwnThread,
}

impl ReloadWorker {
    /// Makes the job that calls `reload` with the time of day. It may block: it runs on a thread of its own.
    pub fn new(
        clock: Clock,
        reload: impl Fn(Timestamp) -> Result<(), WorkerStepError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            reload: Arc::new(reload),
            clock,
            thread: OwnThread::new(Self::NAME),
        }
    }
}

impl fmt::Debug for ReloadWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReloadWorker").finish_non_exhaustive()
    }
}

impl Worker for ReloadWorker {
    const NAME: &'static str = "credentials";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        let reload = Arc::clone(&self.reload);
        let now = self.clock.now();
        let reloaded = self.thread.run_on_thread(move || reload(now));
        reloaded.await??;
        Ok(WorkerStep::Idle(PERIOD))
    }
}
