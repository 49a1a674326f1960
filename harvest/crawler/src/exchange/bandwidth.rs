//! The bytes a second of all connections together.

use std::time::{Duration, Instant};

use archive_daemon::clock::Clock;
use parking_lot::Mutex;

/// The time for which more may come at once.
const BURST: Duration = Duration::from_millis(250);

/// A bandwidth that connections share.
#[derive(Debug, Default)]
pub struct Bandwidth {
    /// The most bytes a second; `None`: as many as come.
    most: Option<u64>,
    /// The moment at which all that has come so far may have come.
    paid: Mutex<Option<Instant>>,
}

impl Bandwidth {
    /// Returns a bandwidth of so many bytes a second; `None`: without a limit.
    pub fn limited_to(most: Option<u64>) -> Self {
        Self {
            most,
            paid: Mutex::new(None),
        }
    }

    /// Waits until so many further bytes may have come. Nothing is read of this connection meanwhile, so that its host
    /// waits, too.
    pub async fn pace(&self, bytes: u64, clock: &Clock) {
        let Some(most) = self.most else {
            return;
        };
        let wait = self.charge(bytes, most, clock.instant());
        if !wait.is_zero() {
            clock.sleep(wait).await;
        }
    }

    /// Charges bytes that have come at a moment; returns the time that they were too early.
    fn charge(&self, bytes: u64, most: u64, now: Instant) -> Duration {
        let nanoseconds = u128::from(bytes) * 1_000_000_000 / u128::from(most.max(1));
        let cost = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
        let mut paid = self.paid.lock();
        let earliest = now.checked_sub(BURST).unwrap_or(now);
        let from = paid.map_or(earliest, |paid| paid.max(earliest));
        let until = from.checked_add(cost).unwrap_or(from);
        *paid = Some(until);
        until.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if more bytes come in a second than may, or time that was not used is saved up.
    #[test]
    fn bytes_come_at_the_rate() {
        let bandwidth = Bandwidth::limited_to(Some(1000));
        let begin = Clock::system_clock().instant();
        let at = |milliseconds| begin + Duration::from_millis(milliseconds);
        assert_eq!(bandwidth.charge(250, 1000, at(1000)), Duration::ZERO);
        assert_eq!(
            bandwidth.charge(500, 1000, at(1000)),
            Duration::from_millis(500)
        );
        // Another connection pays for what the first has taken.
        assert_eq!(
            bandwidth.charge(100, 1000, at(1100)),
            Duration::from_millis(500)
        );
        assert_eq!(
            bandwidth.charge(1250, 1000, at(60_000)),
            Duration::from_secs(1)
        );
    }
}
