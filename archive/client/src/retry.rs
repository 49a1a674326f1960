//! Decides when to try again, and when to give up. Pure: time is an argument.

use std::time::Duration;

use archive_model::Backoff;

use crate::limits::ClientLimits;

/// The attempts since the last progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retry {
    limits: ClientLimits,
    backoff: Backoff,
    failed: u32,
    since: Duration,
}

impl Retry {
    pub(crate) fn new(limits: ClientLimits) -> Self {
        Self {
            limits,
            backoff: Backoff::new(
                Duration::from_millis(limits.first_pause_ms),
                Duration::from_millis(limits.longest_pause_ms),
            ),
            failed: 0,
            since: Duration::ZERO,
        }
    }

    /// Notes that the last attempt got further than any before; `now` is the time since the first began.
    pub(crate) fn note_progress(&mut self, now: Duration) {
        self.failed = 0;
        self.backoff.reset();
        self.since = now;
    }

    /// Returns how long to wait before the next attempt, after one that failed at `now`; `None` to give up.
    pub(crate) fn next_pause(&mut self, now: Duration) -> Option<Duration> {
        self.failed = self.failed.saturating_add(1);
        if self.failed >= self.limits.attempts {
            return None;
        }
        let pause = self.backoff.next_pause();
        let patience = Duration::from_secs(self.limits.patience_seconds);
        let waited = now.saturating_sub(self.since).saturating_add(pause);
        (waited <= patience).then_some(pause)
    }

    /// Returns how many attempts have failed without progress.
    pub(crate) fn failed_tries(&self) -> u32 {
        self.failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(attempts: u32) -> ClientLimits {
        ClientLimits {
            attempts,
            patience_seconds: 100,
            first_pause_ms: 1000,
            longest_pause_ms: 5000,
            ..ClientLimits::default()
        }
    }

    fn seconds(pause: Option<Duration>) -> Option<u64> {
        pause.map(|pause| pause.as_secs())
    }

    /// Fails if pauses between attempts grow beyond the longest one, or the number of attempts differs from the
    /// settings.
    #[test]
    fn pauses_double_up_to_the_longest_and_end() {
        let mut retry = Retry::new(limits(6));
        let pauses: Vec<_> = (0..6)
            .map(|_| seconds(retry.next_pause(Duration::ZERO)))
            .collect();
        assert_eq!(pauses, [Some(1), Some(2), Some(4), Some(5), Some(5), None]);
        assert_eq!(retry.failed_tries(), 6);
        assert_eq!(
            seconds(Retry::new(limits(1)).next_pause(Duration::ZERO)),
            None,
            "one attempt is one"
        );
    }

    /// Fails if time before the last progress counts against the patience, a pause reaches beyond the patience, or a
    /// doubled pause overflows.
    #[test]
    fn progress_begins_anew_and_patience_ends() {
        let at = Duration::from_secs;
        let mut retry = Retry::new(limits(u32::MAX));
        assert_eq!(seconds(retry.next_pause(at(99))), Some(1));
        assert_eq!(
            seconds(retry.next_pause(at(99))),
            None,
            "101 s would have passed"
        );
        retry.note_progress(at(99));
        assert_eq!(seconds(retry.next_pause(at(190))), Some(1));
        for _ in 0..200 {
            retry.next_pause(at(0));
        }
        assert_eq!(
            seconds(retry.next_pause(at(0))),
            Some(5),
            "no overflow, however often"
        );
    }
}
