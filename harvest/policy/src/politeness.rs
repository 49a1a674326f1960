//! The rest of a queue after a fetch (the politeness rules of Heritrix).
//!
//! Owns the length of the pause. The pause itself is kept by the part that fetches, by host and by address.

use std::time::Duration;

/// The pauses that a crawl leaves the hosts that it visits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Politeness {
    /// The pause as a multiple of the time that the fetch took: a slow host rests longer.
    pub delay_factor: f64,
    /// The shortest pause.
    pub min_delay: Duration,
    /// The longest pause that comes from the factor.
    pub max_delay: Duration,
    /// The longest `Crawl-delay` of a robots.txt that is kept; a longer one counts as this.
    pub max_crawl_delay: Duration,
    /// The most bytes a second from one host, over the fetch and its pause; `None` for no limit.
    pub max_bytes_per_second: Option<u64>,
}

impl Default for Politeness {
    /// Returns Heritrix' own: five times the fetch, between 3 and 30 seconds, `Crawl-delay` up to five minutes.
    fn default() -> Self {
        Self {
            delay_factor: 5.0,
            min_delay: Duration::from_secs(3),
            max_delay: Duration::from_secs(30),
            max_crawl_delay: Duration::from_mins(5),
            max_bytes_per_second: None,
        }
    }
}

/// The finished fetch that a pause follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedFetch {
    /// The time from the first byte of the request to the last byte of the response.
    pub duration: Duration,
    /// The number of bytes that came in.
    pub bytes: u64,
    /// The `Crawl-delay` of the host, if it names one.
    pub crawl_delay: Option<Duration>,
}

impl Politeness {
    /// Returns the pause from the end of a fetch to the start of the next one from the same host.
    ///
    /// ```
    /// use std::time::Duration;
    /// use harvest_policy::politeness::{FinishedFetch, Politeness};
    ///
    /// let fetch = FinishedFetch { duration: Duration::from_secs(2), bytes: 9_000, crawl_delay: None };
    /// assert_eq!(Politeness::default().pause_after(fetch), Duration::from_secs(10));
    /// ```
    pub fn pause_after(&self, fetch: FinishedFetch) -> Duration {
        let factor = if self.delay_factor.is_finite() {
            self.delay_factor.max(0.0)
        } else {
            0.0
        };
        let by_factor = (fetch.duration.as_secs_f64() * factor).min(self.max_delay.as_secs_f64());
        let by_factor = Duration::try_from_secs_f64(by_factor).unwrap_or(self.max_delay);
        let by_host = fetch
            .crawl_delay
            .unwrap_or_default()
            .min(self.max_crawl_delay);
        let whole = self
            .max_bytes_per_second
            .map_or(Duration::ZERO, |rate| time_for(fetch.bytes, rate));
        let by_rate = whole.saturating_sub(fetch.duration);
        by_factor
            .max(self.min_delay.min(self.max_delay))
            .max(by_host)
            .max(by_rate)
    }
}

/// Returns the time in which a number of bytes comes in at a number of bytes a second.
fn time_for(bytes: u64, rate: u64) -> Duration {
    let milliseconds = u128::from(bytes) * 1000 / u128::from(rate.max(1));
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(
        politeness: Politeness,
        milliseconds: u64,
        bytes: u64,
        crawl_delay: Option<u64>,
    ) -> u128 {
        let fetch = FinishedFetch {
            duration: Duration::from_millis(milliseconds),
            bytes,
            crawl_delay: crawl_delay.map(Duration::from_secs),
        };
        politeness.pause_after(fetch).as_millis()
    }

    /// Fails if a host is asked sooner than one of the rules allows, or later than the longest of them asks.
    #[test]
    fn longest_rule_decides_the_pause() {
        let usual = Politeness::default();
        let slow = Politeness {
            max_bytes_per_second: Some(1000),
            ..usual
        };
        for (politeness, milliseconds, bytes, crawl_delay, expected) in [
            (usual, 0, 0, None, 3_000),
            (usual, 2_000, 0, None, 10_000),
            (usual, 20_000, 0, None, 30_000),
            (usual, 20_000, 0, Some(60), 60_000),
            (usual, 2_000, 0, Some(1), 10_000),
            (usual, 2_000, 0, Some(900), 300_000),
            (slow, 2_000, 50_000, None, 48_000),
            (slow, 2_000, 1_000, None, 10_000),
        ] {
            assert_eq!(
                pause(politeness, milliseconds, bytes, crawl_delay),
                expected
            );
        }
    }

    /// Fails if nonsense in an order lets a crawl hammer a host, or panics.
    #[test]
    fn nonsense_leaves_the_shortest_pause() {
        for delay_factor in [f64::NAN, f64::INFINITY, -1.0] {
            let odd = Politeness {
                delay_factor,
                ..Politeness::default()
            };
            assert_eq!(pause(odd, 2_000, u64::MAX, None), 3_000);
        }
        let none = Politeness {
            max_bytes_per_second: Some(0),
            ..Politeness::default()
        };
        assert!(pause(none, 2_000, 1, None) >= 3_000);
    }
}
