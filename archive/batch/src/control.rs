//! The order to end, which a job hears from outside while it computes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The reason why a job has to end before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A person cancelled the job, or nobody waits for its output any more.
    Cancelled,
    /// The time of the job is over.
    Time,
    /// The job has written more than it may.
    Output,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cancelled => "it was cancelled",
            Self::Time => "its time is over",
            Self::Output => "it has written more than it may",
        })
    }
}

impl std::error::Error for Stop {}

/// The order to end a job, shared by all clones. The first reason given stands.
#[derive(Clone, Debug, Default)]
pub struct StopControl(Arc<AtomicU8>);

impl StopControl {
    /// Ends the job: whatever computes for it sees that within a moment.
    pub fn stop(&self, why: Stop) {
        let code = match why {
            Stop::Cancelled => 1,
            Stop::Time => 2,
            Stop::Output => 3,
        };
        // Losing this race means that another reason came first.
        let _first = self
            .0
            .compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Returns the reason why it has to end; `None` if it may continue.
    pub fn stop_reason(&self) -> Option<Stop> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Stop::Cancelled),
            2 => Some(Stop::Time),
            _ => Some(Stop::Output),
        }
    }

    /// Fails if the job has to end.
    ///
    /// # Errors
    ///
    /// [`Stop`] if the job has to end.
    pub fn check_stop(&self) -> Result<(), Stop> {
        self.stop_reason().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a clone does not see that the job was stopped, or a later reason replaces the first, so that a timeout
    /// is reported as a cancellation.
    #[test]
    fn first_stop_reason_wins_in_all_clones() {
        let control = StopControl::default();
        let other = control.clone();
        assert_eq!(other.check_stop(), Ok(()));
        control.stop(Stop::Time);
        other.stop(Stop::Cancelled);
        assert_eq!(
            (control.stop_reason(), other.stop_reason()),
            (Some(Stop::Time), Some(Stop::Time))
        );
    }
}
