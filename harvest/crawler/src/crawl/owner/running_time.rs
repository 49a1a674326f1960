//! The time for which a crawl has run: in all its processes, without pauses.

use std::time::Duration;

use harvest_policy::turns::Moment;

/// The running time of a crawl.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunningTime {
    /// The time up to `since`.
    before: Duration,
    since: Moment,
    runs: bool,
}

impl RunningTime {
    /// Makes a clock that continues from the time of earlier processes.
    pub(super) const fn new(before: Duration) -> Self {
        Self {
            before,
            since: Moment::ZERO,
            runs: true,
        }
    }

    /// Returns the running time at a moment.
    pub(super) fn at(&self, now: Moment) -> Duration {
        if self.runs {
            self.before.saturating_add(now.saturating_sub(self.since))
        } else {
            self.before
        }
    }

    /// Notes whether the crawl runs or pauses from a moment on.
    pub(super) fn set(&mut self, now: Moment, runs: bool) {
        if runs != self.runs {
            *self = Self {
                before: self.at(now),
                since: now,
                runs,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a pause counts, or the time of an earlier process does not.
    #[test]
    fn pauses_do_not_count() {
        let second = Moment::from_secs;
        let mut running = RunningTime::new(second(100));
        running.set(second(10), false);
        running.set(second(15), false);
        assert_eq!(running.at(second(20)), second(110));
        running.set(second(20), true);
        assert_eq!(running.at(second(25)), second(115));
    }
}
