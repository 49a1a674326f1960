//! The time for which a crawl has run: in all its processes, without pauses.

use std::time::Duration;

use harvest_policy::turns::CrawlMoment;

/// The running time of a crawl.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunningTime {
    /// The time up to `since`.
    before: Duration,
    since: CrawlMoment,
    runs: bool,
}

impl RunningTime {
    /// Makes a clock that continues from the time of earlier processes.
    pub(super) const fn new(before: Duration) -> Self {
        Self {
            before,
            since: CrawlMoment::ZERO,
            runs: true,
        }
    }

    /// Returns the running time at a moment.
    pub(super) fn time_at(&self, now: CrawlMoment) -> Duration {
        if self.runs {
            self.before.saturating_add(now.saturating_sub(self.since))
        } else {
            self.before
        }
    }

    /// Notes whether the crawl runs or pauses from a moment on.
    pub(super) fn set_running(&mut self, now: CrawlMoment, runs: bool) {
        if runs != self.runs {
            *self = Self {
                before: self.time_at(now),
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
        let second = CrawlMoment::from_secs;
        let mut running = RunningTime::new(second(100));
        running.set_running(second(10), false);
        running.set_running(second(15), false);
        assert_eq!(running.time_at(second(20)), second(110));
        running.set_running(second(20), true);
        assert_eq!(running.time_at(second(25)), second(115));
    }
}
