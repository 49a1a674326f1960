//! The metrics of batch jobs.

use archive_daemon::metrics::MetricError;
use archive_daemon::{Counter, Gauge, Metrics};
use archive_decisions::batch::life::{JobEnding, JobPhase};

/// The instruments of batch jobs; cheap to clone.
#[derive(Clone, Debug)]
pub struct Meters {
    /// Files that jobs have read.
    pub files: Counter,
    /// The bytes of the files that jobs have read.
    pub bytes: Counter,
    states: Vec<(&'static str, Gauge)>,
}

/// The states of a job, as the metric is labelled.
const STATES: [&str; 8] = [
    "queued",
    "running",
    "reducing",
    "closing",
    "done",
    "partial",
    "failed",
    "cancelled",
];

impl Meters {
    /// Registers the instruments.
    ///
    /// # Errors
    /// [`MetricError`] if a name is taken.
    pub fn new(metrics: &Metrics) -> Result<Self, MetricError> {
        let states = STATES.iter().map(|state| {
            let help = "Batch jobs that are kept";
            let gauge = metrics.gauge("repository_batch_jobs", help, &[("state", state)])?;
            Ok((*state, gauge))
        });
        Ok(Self {
            files: metrics.counter(
                "repository_batch_files_total",
                "Files that batch jobs have read",
                &[],
            )?,
            bytes: metrics.counter(
                "repository_batch_bytes_total",
                "Bytes of the files that batch jobs have read",
                &[],
            )?,
            states: states.collect::<Result<_, MetricError>>()?,
        })
    }

    /// Shows how many jobs are in each phase.
    pub fn show_phases(&self, phases: &[JobPhase]) {
        for (state, gauge) in &self.states {
            let count = phases
                .iter()
                .filter(|phase| word(**phase) == *state)
                .count();
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}

/// Returns the label of a phase.
const fn word(phase: JobPhase) -> &'static str {
    match phase {
        JobPhase::Waiting => "queued",
        JobPhase::Reading | JobPhase::Comparing => "running",
        JobPhase::Reducing => "reducing",
        JobPhase::Closing(_) => "closing",
        JobPhase::Ended(JobEnding::Done) => "done",
        JobPhase::Ended(JobEnding::Partial) => "partial",
        JobPhase::Ended(JobEnding::Failed) => "failed",
        JobPhase::Ended(JobEnding::Cancelled) => "cancelled",
    }
}
