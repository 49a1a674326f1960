//! The jobs that were running when this node ended without a stop: killed, out of memory, or by a bug.
//!
//! Owns `batch-running.json` in the data of the node: the jobs that run, and the number of unclean ends at which each
//! one ran. A job that ran at two unclean ends is refused here from then on, so that one job cannot end a node again
//! and again.
//!
//! Not promised: that the job was the cause. Two power cuts refuse a job, too; a job that is submitted again counts
//! anew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive_durable::{DiskError, read_state, replace_file};
use archive_model::JobId;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

/// The number of unclean ends at which a job is refused.
const MOST_ENDS: u32 = 2;

/// The unclean ends of one job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct JobRuns {
    /// The number of runs of the job now.
    running: u32,
    /// The number of unclean ends at which the job ran.
    unclean_ends: u32,
}

/// The jobs that run, as they are on disk; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct UncleanEnds {
    path: Arc<PathBuf>,
    jobs: Arc<Mutex<BTreeMap<JobId, JobRuns>>>,
}

/// The reason why a job does not begin here.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BeginError {
    /// The job ran at too many unclean ends.
    #[error(
        "batch job {0} ran here when this node ended without a stop, {1} times, and is refused here; look into the log of \
         the node for why it ended, and submit the job again under a new id"
    )]
    Refused(JobId, u32),
    /// The run cannot be noted.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// A run that is noted, until this is dropped.
#[derive(Debug)]
pub(crate) struct NotedRun {
    all: UncleanEnds,
    id: JobId,
}

impl UncleanEnds {
    /// Reads what ran when the node ended, and counts it.
    pub(crate) fn open(data: &Path) -> Result<Self, DiskError> {
        let path = data.join("batch-running.json");
        let mut jobs: BTreeMap<JobId, JobRuns> = match read_state(&path)? {
            None => BTreeMap::new(),
            Some(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                let path = path.display();
                tracing::error!(%path, %error, "which batch jobs ran cannot be read; none of them is counted");
                BTreeMap::new()
            }),
        };
        let before = jobs.clone();
        for (job, runs) in &mut jobs {
            if runs.running > 0 {
                runs.running = 0;
                runs.unclean_ends = runs.unclean_ends.saturating_add(1);
                let times = runs.unclean_ends;
                tracing::warn!(%job, times, "this batch job ran when the node ended without a stop");
            }
        }
        let all = Self {
            path: Arc::new(path),
            jobs: Arc::new(Mutex::new(jobs)),
        };
        let jobs = all.lock();
        if *jobs != before {
            all.write(&jobs)?;
        }
        drop(jobs);
        Ok(all)
    }

    /// Notes a run on disk before it begins.
    pub(crate) fn begin_run(&self, id: &JobId) -> Result<NotedRun, BeginError> {
        let mut jobs = self.lock();
        let runs = jobs.entry(id.clone()).or_default();
        if runs.unclean_ends >= MOST_ENDS {
            return Err(BeginError::Refused(id.clone(), runs.unclean_ends));
        }
        runs.running = runs.running.saturating_add(1);
        // Dropped if the note cannot be written, which takes it back.
        let noted = NotedRun {
            all: self.clone(),
            id: id.clone(),
        };
        let written = self.write(&jobs);
        drop(jobs);
        written?;
        Ok(noted)
    }

    fn end(&self, id: &JobId) -> Result<(), DiskError> {
        let mut jobs = self.lock();
        if let Some(runs) = jobs.get_mut(id) {
            runs.running = runs.running.saturating_sub(1);
        }
        jobs.retain(|_, runs| *runs != JobRuns::default());
        self.write(&jobs)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobId, JobRuns>> {
        self.jobs.lock()
    }

    fn write(&self, jobs: &BTreeMap<JobId, JobRuns>) -> Result<(), DiskError> {
        let bytes = serde_json::to_vec_pretty(jobs);
        let bytes = bytes.map_err(|error| DiskError::new("encode", &self.path, error))?;
        replace_file(&self.path, &bytes)
    }
}

impl Drop for NotedRun {
    fn drop(&mut self) {
        if let Err(error) = self.all.end(&self.id) {
            tracing::warn!(job = %self.id, %error, "the end of a batch job cannot be noted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a job that ends a node twice runs there again, or if others are refused for it.
    #[test]
    fn job_at_two_unclean_ends_is_refused() {
        let data = tempfile::tempdir().unwrap();
        let open = || UncleanEnds::open(data.path()).unwrap();
        let [bad, good] = ["bad", "good"].map(|id| JobId::new(id).unwrap());
        // Clean ends are not counted, however many.
        for _ in 0..5 {
            drop(open().begin_run(&good).unwrap());
        }
        for end in 0..2 {
            let node = open();
            if end == 0 {
                drop(node.begin_run(&bad).unwrap());
            }
            std::mem::forget(node.begin_run(&bad).unwrap());
            std::mem::forget(node);
        }
        let node = open();
        let refused = node.begin_run(&bad).unwrap_err().to_string();
        assert!(
            refused.contains("job bad") && refused.contains("2 times"),
            "{refused}"
        );
        drop(node.begin_run(&good).unwrap());
        // The job stays refused after a clean end.
        assert!(open().begin_run(&bad).is_err());
    }
}
