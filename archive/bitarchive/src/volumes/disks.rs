//! Questions to disks that may never answer: a mount whose server does not answer hangs every call, without an error.
//!
//! Each path is asked on a thread of its own, one question after the other. The caller waits for a limited time; while
//! an answer is overdue nothing more is asked there, so that a hung mount holds one thread and delays no other disk.
//!
//! # Errors
//!
//! Every function fails when the disk does, or has not answered within its limit.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use archive_durable::{DiskError, ExpectedVolume, Space, VolumeIdentity, VolumeProblem, volume};
use parking_lot::{Mutex, MutexGuard};

/// The time that a disk may take to say how much room it has, which costs no access: a heartbeat waits for it.
const SPACE: Duration = Duration::from_secs(2);

/// The time that a disk may take to read its label: it may have to spin up first.
const LABEL: Duration = Duration::from_secs(20);

type Question = Box<dyn FnOnce() + Send>;

/// The threads on which the disks of a node are asked.
#[derive(Debug, Default)]
pub(super) struct DiskThreads {
    threads: Mutex<BTreeMap<PathBuf, DiskThread>>,
}

#[derive(Clone, Debug)]
struct DiskThread {
    questions: Sender<Question>,
    /// The time since which it waits for an answer.
    asked: Arc<Mutex<Option<Instant>>>,
}

impl DiskThreads {
    /// Asks the disk at `path`. The error says that it did not answer in time, or that no thread could be started.
    pub(super) fn ask_disk<T: Send + 'static>(
        &self,
        path: &Path,
        limit: Duration,
        question: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, DiskError> {
        let thread = self.thread(path)?;
        let now = Instant::now();
        let oldest = *lock(&thread.asked).get_or_insert(now);
        let overdue = now.saturating_duration_since(oldest);
        if overdue >= limit {
            return Err(no_answer(path, overdue));
        }
        let (answer, answered) = channel();
        let asked = Arc::clone(&thread.asked);
        let job = Box::new(move || {
            *lock(&asked) = Some(now);
            let said = question();
            *lock(&asked) = None;
            // The caller may have stopped waiting.
            _ = answer.send(said);
        });
        if thread.questions.send(job).is_err() {
            lock(&self.threads).remove(path);
            return Err(no_answer(path, Duration::ZERO));
        }
        answered
            .recv_timeout(limit)
            .map_err(|_late| no_answer(path, limit))
    }

    /// Returns the room on the file system at `path`.
    pub(super) fn measure_space(&self, path: &Path) -> Result<Space, DiskError> {
        let own = path.to_owned();
        self.ask_disk(path, SPACE, move || Space::measure_space(&own))?
    }

    /// Recognises the volume at `path`; a disk that hangs is not waited for.
    pub(super) fn recognise_volume(
        &self,
        path: &Path,
        expected: ExpectedVolume,
    ) -> Result<VolumeIdentity, VolumeProblem> {
        let own = path.to_owned();
        let asked = self.ask_disk(path, LABEL, move || {
            volume::recognise_volume(&own, &expected)
        });
        asked.unwrap_or_else(|error| {
            let said = error.to_string();
            Err(if error.is_exhausted() {
                VolumeProblem::Unseen(said)
            } else {
                VolumeProblem::Disk(said)
            })
        })
    }

    fn thread(&self, path: &Path) -> Result<DiskThread, DiskError> {
        let mut threads = lock(&self.threads);
        if let Some(thread) = threads.get(path) {
            return Ok(thread.clone());
        }
        let (questions, asked) = channel::<Question>();
        let answering = move || {
            for question in asked {
                question();
            }
        };
        Builder::new()
            .name("disk".to_owned())
            .spawn(answering)
            .map_err(|error| DiskError::new("start a thread for", path, error))?;
        let thread = DiskThread {
            questions,
            asked: Arc::default(),
        };
        threads.insert(path.to_owned(), thread.clone());
        Ok(thread)
    }
}

fn no_answer(path: &Path, since: Duration) -> DiskError {
    let said = format!(
        "no answer for {} s; see whether what is mounted there hangs",
        since.as_secs()
    );
    DiskError::new("ask", path, Error::new(ErrorKind::TimedOut, said))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    /// Fails if a disk that hangs is asked again and again, keeps another one waiting, or is not asked when it is back.
    #[test]
    fn hung_disk_holds_one_thread_only() {
        let disks = DiskThreads::default();
        let hung = Path::new("/hung");
        let well = Path::new("/well");
        let (release, hold) = channel::<()>();
        let first = disks.ask_disk(hung, LIMIT, move || hold.recv().is_err());
        let said = first.unwrap_err().to_string();
        assert!(
            said.contains("/hung") && said.contains("no answer"),
            "{said}"
        );
        for _ in 0..10 {
            let asked = Instant::now();
            assert!(disks.ask_disk(hung, LIMIT, || ()).is_err());
            assert!(asked.elapsed() < LIMIT, "it is refused at once");
        }
        assert_eq!(disks.ask_disk(well, LIMIT, || 7).unwrap(), 7);
        assert_eq!(lock(&disks.threads).len(), 2);
        drop(release);
        while disks.ask_disk(hung, LIMIT, || ()).is_err() {
            std::thread::yield_now();
        }
    }
}
