//! The pauses between attempts.

use std::time::Duration;

/// The pauses between attempts of one kind: each is twice as long as the one before, up to a longest one.
///
/// A backoff waits for nothing and never gives up: its owner does both.
///
/// ```
/// use std::time::Duration;
///
/// use archive_model::Backoff;
///
/// let seconds = Duration::from_secs;
/// let mut backoff = Backoff::new(seconds(1), seconds(3));
/// let pauses = [(); 4].map(|()| backoff.next_pause());
/// assert_eq!(pauses, [seconds(1), seconds(2), seconds(3), seconds(3)]);
/// backoff.reset();
/// assert_eq!(backoff.next_pause(), seconds(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    /// The pause that comes next, if there was one since the last reset.
    next: Option<Duration>,
}

impl Backoff {
    /// Makes a backoff that begins with `first`. No pause is longer than `longest`, not even the first.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            next: None,
        }
    }

    /// Returns the pause before the next attempt. The one after it will be twice as long.
    pub fn next_pause(&mut self) -> Duration {
        let pause = self.next.unwrap_or(self.first).min(self.longest);
        self.next = Some(pause.saturating_mul(2));
        pause
    }

    /// Begins anew with the first pause: an attempt succeeded, or got further than any before.
    pub const fn reset(&mut self) {
        self.next = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Fails if a pause shrinks, exceeds the longest one or overflows.
    #[test]
    fn pauses_double_up_to_longest() {
        let mut backoff = Backoff::new(SECOND, SECOND * 300);
        let pauses: Vec<u64> = (0..12).map(|_| backoff.next_pause().as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        let mut endless = Backoff::new(SECOND, Duration::MAX);
        let last = (0..200).map(|_| endless.next_pause()).last();
        assert_eq!(last, Some(Duration::MAX));
    }

    /// Fails if failures before a success count after it.
    #[test]
    fn reset_begins_with_first_pause() {
        let mut backoff = Backoff::new(SECOND, SECOND * 300);
        backoff.next_pause();
        backoff.next_pause();
        backoff.reset();
        assert_eq!(backoff.next_pause(), SECOND);
        assert_eq!(backoff.next_pause(), SECOND * 2);
    }

    /// Fails if a first pause that is too long is not cut, or if pauses of nothing grow.
    #[test]
    fn odd_first_pause_stays_in_bounds() {
        let mut long = Backoff::new(SECOND * 9, SECOND * 2);
        assert_eq!([long.next_pause(), long.next_pause()], [SECOND * 2; 2]);
        let mut none = Backoff::new(Duration::ZERO, SECOND);
        assert_eq!([none.next_pause(), none.next_pause()], [Duration::ZERO; 2]);
    }
}
