//! The limits on the waiting of this end: every wait has one.

use std::time::Duration;

use archive_model::limits::{NODE_PATIENCE, READING_RATE};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The section `[limits]` of the client file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct ClientLimits {
    /// The longest wait for an answer, or for the next message of one. In seconds.
    pub answer_seconds: u64,
    /// The longest time without the archive taking a byte. Longer than the archive's own limit (30 s), so that it can
    /// drop the replica that stalls. In seconds.
    pub stall_seconds: u64,
    /// The longest wait for the replicas to read a file back, beside the time for its bytes. In seconds.
    pub verify_seconds: u64,
    /// The slowest speed at which the replicas are expected to read back. In bytes a second.
    pub verify_rate: u64,
    /// The longest wait for an act that reads whole copies first: adopt, restore, approve. In seconds.
    pub act_seconds: u64,
    /// The number of times that a store is tried without getting any further.
    pub attempts: u32,
    /// The time that a store is tried without getting any further. In seconds.
    pub patience_seconds: u64,
    /// The pause before the second attempt; it doubles up to `longest_pause_ms`. In milliseconds.
    pub first_pause_ms: u64,
    /// The longest pause between two attempts. In milliseconds.
    pub longest_pause_ms: u64,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            answer_seconds: 60,
            stall_seconds: 90,
            // Longer than the archive's own limit, so that it can say which replica it was.
            verify_seconds: NODE_PATIENCE.as_secs() + 30,
            verify_rate: READING_RATE,
            act_seconds: 3600,
            attempts: 6,
            patience_seconds: 900,
            first_pause_ms: 500,
            longest_pause_ms: 30_000,
        }
    }
}

impl ClientLimits {
    /// Returns the longest wait for an answer.
    pub const fn answer_limit(&self) -> Duration {
        Duration::from_secs(self.answer_seconds)
    }

    /// Returns the longest time without the archive taking a byte.
    pub const fn stall_limit(&self) -> Duration {
        Duration::from_secs(self.stall_seconds)
    }

    /// Returns the longest wait for an act that reads whole copies first.
    pub const fn act_limit(&self) -> Duration {
        Duration::from_secs(self.act_seconds)
    }

    /// Returns the longest wait for the replicas to read back `size` bytes.
    pub fn verification_limit(&self, size: u64) -> Duration {
        let reading = size.checked_div(self.verify_rate).unwrap_or(u64::MAX);
        Duration::from_secs(self.verify_seconds.saturating_add(reading))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the wait for the replicas to read a file back does not grow with its size, or overflows for the largest
    /// file.
    #[test]
    fn verification_takes_as_long_as_the_file_is() {
        let limits = ClientLimits::default();
        assert_eq!(limits.verification_limit(0), Duration::from_secs(330));
        assert_eq!(
            limits.verification_limit(1_000_000_000_000),
            Duration::from_secs(50_330)
        );
        assert!(limits.verification_limit(u64::MAX) > Duration::from_hours(200_000_000));
        let odd = ClientLimits {
            verify_rate: 0,
            ..limits
        };
        assert_eq!(odd.verification_limit(1), Duration::from_secs(u64::MAX));
    }

    /// Fails if a misspelt limit is ignored, so that its default holds unnoticed.
    #[test]
    fn a_misspelt_limit_is_refused() {
        assert!(toml::from_str::<ClientLimits>("attempts = 2").is_ok());
        assert!(toml::from_str::<ClientLimits>("atempts = 2").is_err());
    }
}
