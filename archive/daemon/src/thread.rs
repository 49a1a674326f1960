//! Threads of their own, for work that must not wait behind bulk work.
//!
//! The runtime's blocking threads are shared by all code that reads disks and tables. When all of them are taken, work
//! for them waits; a heartbeat that waits makes its node silent, and a list of revoked certificates that waits lets an
//! attacker stay. Such work has an [`OwnThread`].
//!
//! # Errors
//!
//! [`OwnThread::run_on_thread`] fails if the thread cannot be started, or if the work panics.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::Builder;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};

type Job = Box<dyn FnOnce() + Send>;

/// A thread that does one piece of work at a time. It is started when it is first needed, and ends when the last clone
/// of this handle is dropped and its work is done.
#[derive(Clone, Debug)]
pub struct OwnThread {
    shared: Arc<SharedThread>,
}

#[derive(Debug)]
struct SharedThread {
    name: &'static str,
    /// The permit of the thread, which is free while the thread has nothing to do.
    idle: Arc<Semaphore>,
    jobs: Mutex<Option<Sender<Job>>>,
}

/// The reason why a thread did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ThreadError {
    /// The thread is busy with earlier work. The new work was not begun: nothing piles up behind work that hangs.
    #[error("thread `{0}` still does what it was asked before; see whether a disk hangs")]
    Busy(&'static str),
    /// The system could not start the thread.
    #[error("thread `{name}` cannot be started")]
    Start {
        /// The name of the thread.
        name: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The thread panicked: a bug.
    #[error("thread `{0}` has ended; that is a bug, please report it")]
    Ended(&'static str),
}

impl OwnThread {
    /// Makes a thread with this name, which the system shows.
    pub fn new(name: &'static str) -> Self {
        Self {
            shared: Arc::new(SharedThread {
                name,
                idle: Arc::new(Semaphore::new(1)),
                jobs: Mutex::default(),
            }),
        }
    }

    /// Runs `work` on the thread, unless it is busy. Work that was begun continues to its end, also when the caller no
    /// longer waits.
    pub async fn run_on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ThreadError> {
        let name = self.shared.name;
        let idle = Arc::clone(&self.shared.idle).try_acquire_owned();
        let permit = idle.map_err(|_busy| ThreadError::Busy(name))?;
        let (done, result) = oneshot::channel();
        self.begin(move || {
            let outcome = work();
            // The permit is dropped before the answer is sent: the caller may ask again at once.
            drop(permit);
            _ = done.send(outcome);
        })?;
        result.await.map_err(|_panicked| ThreadError::Ended(name))
    }

    fn begin(&self, work: impl FnOnce() + Send + 'static) -> Result<(), ThreadError> {
        let name = self.shared.name;
        let mut jobs = self.shared.jobs.lock();
        let sender = match &*jobs {
            Some(sender) => sender,
            None => jobs.insert(start(name)?),
        };
        let job = Box::new(work);
        sender.send(job).map_err(|_ended| ThreadError::Ended(name))
    }
}

fn start(name: &'static str) -> Result<Sender<Job>, ThreadError> {
    let (sender, jobs) = channel::<Job>();
    let working = move || {
        for job in jobs {
            job();
        }
    };
    Builder::new()
        .name(name.to_owned())
        .spawn(working)
        .map_err(|source| ThreadError::Start { name, source })?;
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use tokio::task::spawn_blocking;
    use tools_testing::in_time;

    use super::*;

    /// Fails if the work shares the threads of the runtime.
    #[test]
    fn own_thread_runs_while_all_others_are_taken() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        runtime.block_on(async {
            let (release, hold) = channel::<()>();
            let taken = spawn_blocking(move || hold.recv());
            let thread = OwnThread::new("vital");
            assert_eq!(in_time(thread.run_on_thread(|| 7)).await.unwrap(), 7);
            assert_eq!(in_time(thread.run_on_thread(|| 8)).await.unwrap(), 8);
            drop(release);
            assert!(taken.await.unwrap().is_err());
        });
    }

    /// Fails if work piles up behind something that hangs.
    #[tokio::test]
    async fn busy_thread_refuses_more_work() {
        let thread = OwnThread::new("vital");
        let (release, hold) = channel::<()>();
        let (begun, begins) = oneshot::channel();
        let hanging = thread.run_on_thread(move || {
            begun.send(()).unwrap();
            hold.recv().is_err()
        });
        let others = async {
            begins.await.unwrap();
            let refused = in_time(thread.run_on_thread(|| ())).await.unwrap_err();
            assert!(refused.to_string().contains("`vital`"), "{refused}");
            drop(release);
        };
        let (hung, ()) = tokio::join!(hanging, others);
        assert!(hung.unwrap());
    }
}
