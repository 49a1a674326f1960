//! One job of the index, from its submission to its end: over another replica where one stands still.
//!
//! Owns how long a replica may be silent before a job is given to another one, and which replicas were so lately. What
//! a job found is read in `extract`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_client::batch::{self, JobNode, JobState, JobStatus, JobSubmission};
use archive_client::{Batch, ClientError, ClientLimits};
use archive_daemon::{Chance, Clock};
use archive_model::{FileName, JobId, NameList, ReplicaId};
use parking_lot::Mutex;

use crate::batch_error::BatchError;
use crate::metrics::Instruments;

/// The time for which the archive keeps the result of a job. It is read at once; if that is cut off, the files are read
/// again.
const KEEP: Duration = Duration::from_mins(10);

/// The longest time that a job may take once it has begun: long enough that only a job that hangs meets it.
const TIME: Duration = Duration::from_hours(6);

/// The longest time that a job may stand still before it is given to another replica. Nodes at work report every
/// second.
const STILL: Duration = Duration::from_secs(2);

/// The time for which a replica that stood still is the last one to be asked.
const AVOID: Duration = Duration::from_secs(30);

/// The most times that a job is given to another replica.
const MOVES: usize = 3;

/// The jobs that the index runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobKind {
    /// Makes the captures of files.
    Extract,
    /// Finds captures without a record in the logs of crawls.
    Duplicates,
}

impl JobKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Extract => "extract-cdx",
            Self::Duplicates => "dedup-cdx",
        }
    }

    const fn arguments(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Extract => &[("format", "cdxj"), ("post-append", "true")],
            Self::Duplicates => &[("format", "cdxj"), ("log", "true")],
        }
    }
}

/// The means of running jobs. Clones share what they know of replicas.
#[derive(Clone)]
pub(crate) struct Jobs {
    pub(crate) batch: Arc<dyn Batch>,
    pub(crate) limits: ClientLimits,
    pub(crate) chance: Chance,
    pub(crate) clock: Clock,
    pub(crate) instruments: Instruments,
    pub(crate) slow: SlowReplicas,
}

/// The replicas that stood still lately, and until when they are avoided.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlowReplicas(Arc<Mutex<BTreeMap<ReplicaId, Instant>>>);

impl SlowReplicas {
    /// Notes a replica.
    fn note(&self, replica: ReplicaId, now: Instant) {
        let mut all = self.0.lock();
        all.insert(replica, now + AVOID);
    }

    /// Returns the replicas that are avoided now.
    fn at(&self, now: Instant) -> BTreeSet<ReplicaId> {
        let mut all = self.0.lock();
        all.retain(|_, until| *until > now);
        all.keys().cloned().collect()
    }
}

impl Jobs {
    /// Runs a job over files to its end, not over the replicas that are avoided if another one can read for it.
    pub(crate) async fn run_jobs(
        &self,
        kind: JobKind,
        names: &[FileName],
        avoided: &BTreeSet<ReplicaId>,
    ) -> Result<JobStatus, BatchError> {
        let mut avoided = avoided.clone();
        avoided.append(&mut self.slow.at(self.clock.instant()));
        let mut job = self.submit(kind, names, &avoided).await?;
        for _ in 0..MOVES {
            let mut watch = StallWatch::new(self.clock.instant());
            let watching = |status: &JobStatus| watch.goes_on(status, self.clock.instant());
            let waited =
                batch::wait_while(self.batch.as_ref(), &job.id, self.limits, watching).await?;
            if waited.state.has_ended() {
                return Ok(self.count_end(waited));
            }
            let replica = &waited.spec.replica;
            self.slow.note(replica.clone(), self.clock.instant());
            avoided.insert(replica.clone());
            let other = self.submit(kind, names, &avoided).await?;
            if other.spec.replica == *replica {
                // No other replica is left: the job stays where it has begun.
                self.cancel(&other.id).await;
                break;
            }
            tracing::info!(
                job = %waited.id, from = %replica, to = %other.spec.replica, reason = waited.reason,
                "a job stands still and is given to another replica"
            );
            self.cancel(&waited.id).await;
            job = other;
        }
        let ended = batch::wait_for_job(self.batch.as_ref(), &job.id, self.limits).await?;
        Ok(self.count_end(ended))
    }

    fn count_end(&self, job: JobStatus) -> JobStatus {
        self.instruments.jobs.inc();
        job
    }

    async fn submit(
        &self,
        kind: JobKind,
        names: &[FileName],
        avoided: &BTreeSet<ReplicaId>,
    ) -> Result<JobStatus, BatchError> {
        let random: [u8; 8] = self
            .chance
            .random_bytes()
            .map_err(|error| BatchError::System(error.to_string()))?;
        let system = |error: &dyn std::fmt::Display| BatchError::System(error.to_string());
        let id = JobId::new(&format!("index-{}", hex::encode(random)))
            .map_err(|error| system(&error))?;
        let list = NameList::new(names.to_vec()).map_err(|error| system(&error))?;
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let submission = JobSubmission {
            arguments: kind.arguments().iter().map(pair).collect(),
            names: Some(list),
            avoided: avoided.iter().cloned().collect(),
            time: Some(TIME),
            keep: Some(KEEP),
            ..JobSubmission::built_in(id, kind.name())
        };
        Ok(self.batch.submit(&submission).await?)
    }

    /// Ends a job whose result is not needed any more. A job that cannot be reached ends by itself.
    async fn cancel(&self, id: &JobId) {
        let cancelled: Result<_, ClientError> = self.batch.cancel(id).await;
        if let Err(error) = cancelled {
            tracing::debug!(job = %id, %error, "cannot cancel a job whose result is not needed any more");
        }
    }
}

/// A job that is waited for: whether it gets any further.
struct StallWatch {
    /// The signs of life when it last got further, and when that was.
    signs: Option<JobProgress>,
    since: Instant,
}

/// The parts of a state that change while a job is worked at.
#[derive(Clone, Debug, PartialEq, Eq)]
struct JobProgress {
    state: JobState,
    files: u64,
    nodes: Vec<JobNode>,
}

impl StallWatch {
    const fn new(now: Instant) -> Self {
        Self {
            signs: None,
            since: now,
        }
    }

    /// Returns whether to wait for the job any longer.
    fn goes_on(&mut self, status: &JobStatus, now: Instant) -> bool {
        let signs = JobProgress {
            state: status.state,
            files: status.files,
            nodes: status.nodes.clone(),
        };
        let is_read = matches!(status.state, JobState::Queued | JobState::Running);
        if !is_read || self.signs.as_ref() != Some(&signs) {
            self.signs = Some(signs);
            self.since = now;
        }
        now.saturating_duration_since(self.since) < STILL
    }
}

#[cfg(test)]
mod tests {
    use archive_model::{JobLimits, JobSpec, Program};
    use jiff::Timestamp;

    use super::*;

    fn status(state: JobState, seen: Option<i64>) -> JobStatus {
        let node = |second| JobNode {
            node: "one-1".parse().unwrap(),
            files: 0,
            files_total: Some(1),
            bytes: 7,
            seen: Some(Timestamp::from_second(second).unwrap()),
        };
        JobStatus {
            id: JobId::new("j").unwrap(),
            spec: JobSpec {
                program: Program::BuiltIn("extract-cdx".to_owned()),
                arguments: Vec::new(),
                files: String::new(),
                names: None,
                replica: "one".parse().unwrap(),
                limits: JobLimits::default(),
                keep: None,
            },
            state,
            reason: None,
            who: "index/kb".to_owned(),
            submitted: Timestamp::UNIX_EPOCH,
            started: None,
            ended: None,
            expires: None,
            files: 0,
            failed: 0,
            unread: 0,
            records: 0,
            bytes: 0,
            output_bytes: 0,
            result_bytes: 0,
            error_bytes: 0,
            manifest_bytes: 0,
            gaps: Vec::new(),
            nodes: seen.map(node).into_iter().collect(),
            restarts: 0,
        }
    }

    /// Fails if a job that no node works on is waited for, or one is given up whose nodes say that they work.
    #[test]
    fn job_that_stands_still_is_given_up() {
        let begin = Instant::now();
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let mut watch = StallWatch::new(begin);
        for second in 0..20_u64 {
            let seen = i64::try_from(second).unwrap();
            let works = status(JobState::Running, Some(seen));
            assert!(watch.goes_on(&works, at(second)), "{second}");
        }
        let silent = status(JobState::Running, Some(19));
        assert!(watch.goes_on(&silent, at(20)));
        assert!(!watch.goes_on(&silent, at(21)));
        // A result is made without a word.
        let reducing = status(JobState::Reducing, None);
        assert!(watch.goes_on(&reducing, at(30)) && watch.goes_on(&reducing, at(90)));
        let mut watch = StallWatch::new(begin);
        let queued = status(JobState::Queued, None);
        assert!(watch.goes_on(&queued, at(1)) && watch.goes_on(&queued, at(2)));
        assert!(!watch.goes_on(&queued, at(3)));
    }

    /// Fails if a replica that stood still is asked again at once, or never again.
    #[test]
    fn slow_replica_is_avoided_for_a_time() {
        let slow = SlowReplicas::default();
        let begin = Instant::now();
        let one: ReplicaId = "one".parse().unwrap();
        slow.clone().note(one.clone(), begin);
        assert_eq!(slow.at(begin), BTreeSet::from([one.clone()]));
        assert_eq!(slow.at(begin + AVOID), BTreeSet::new());
    }
}
