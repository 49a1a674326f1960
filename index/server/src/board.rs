//! Live state of the index: kept in memory, shown by `status`.

use parking_lot::{Mutex, MutexGuard};
use proto_index::status::{Comparison, FollowState};

/// The state of the work that is under way.
#[derive(Debug)]
pub(crate) struct StatusBoard {
    notes: Mutex<WorkStatus>,
}

/// The state of the work at one moment.
#[derive(Clone, Debug)]
pub(crate) struct WorkStatus {
    /// The way in which the archive is followed.
    pub(crate) state: FollowState,
    /// The reason why the feed does not come.
    pub(crate) feed_problem: Option<String>,
    /// The reason why files are not read.
    pub(crate) job_problem: Option<String>,
    /// The last file that was compared.
    pub(crate) comparison: Option<Comparison>,
    /// The number of files that were compared since the start.
    pub(crate) compared: u64,
    /// The number of files whose comparison showed a difference.
    pub(crate) differed: u64,
    /// The reason why the database was begun anew.
    pub(crate) rebuilt: Option<String>,
}

impl StatusBoard {
    pub(crate) fn new(rebuilt: Option<String>) -> Self {
        Self {
            notes: Mutex::new(WorkStatus {
                state: FollowState::Starting,
                feed_problem: None,
                job_problem: None,
                comparison: None,
                compared: 0,
                differed: 0,
                rebuilt,
            }),
        }
    }

    /// Returns the state as it is now.
    pub(crate) fn work_notes(&self) -> WorkStatus {
        self.lock().clone()
    }

    /// Notes that the feed comes, and in which way.
    pub(crate) fn note_feed(&self, is_listing: bool) {
        let mut notes = self.lock();
        notes.feed_problem = None;
        notes.state = if is_listing {
            FollowState::Listing
        } else {
            FollowState::Following
        };
    }

    /// Notes why the feed does not come, and logs a reason that is new.
    pub(crate) fn note_feed_problem(&self, problem: String) {
        let mut notes = self.lock();
        if notes.feed_problem.as_ref() != Some(&problem) {
            tracing::warn!(problem, "cannot follow the archive now; trying again");
        }
        notes.feed_problem = Some(problem);
        if notes.state != FollowState::Starting {
            notes.state = FollowState::Waiting;
        }
    }

    /// Notes why files are not read, or that they are.
    pub(crate) fn note_job_problem(&self, problem: Option<String>) {
        let mut notes = self.lock();
        if let Some(problem) = &problem
            && notes.job_problem.as_ref() != Some(problem)
        {
            tracing::warn!(problem, "cannot index files now; trying again");
        }
        notes.job_problem = problem;
    }

    /// Notes a comparison.
    pub(crate) fn set_comparison(&self, comparison: Comparison) {
        let mut notes = self.lock();
        notes.compared = notes.compared.saturating_add(1);
        let differs = u64::from(comparison.differences > 0);
        notes.differed = notes.differed.saturating_add(differs);
        notes.comparison = Some(comparison);
    }

    fn lock(&self) -> MutexGuard<'_, WorkStatus> {
        self.notes.lock()
    }
}
