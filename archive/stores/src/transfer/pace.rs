//! The speed at which drains move bytes, all of them together.

use std::time::{Duration, Instant};

use archive_daemon::Clock;
use parking_lot::Mutex;

/// The lowest pace in bytes per second: a node gives up on a sender that is silent for long.
const LEAST: u64 = 4 << 20;

/// The pace of drains. Each piece of bytes waits for its turn; unused time is not saved up.
#[derive(Debug)]
pub struct Pace {
    clock: Clock,
    bytes_per_second: u64,
    next: Mutex<Instant>,
}

impl Pace {
    /// Makes a pace of at most that number of bytes within a second.
    pub fn new(clock: Clock, bytes_per_second: u64) -> Self {
        Self {
            next: Mutex::new(clock.instant()),
            bytes_per_second: bytes_per_second.max(LEAST),
            clock,
        }
    }

    /// Waits until that number of further bytes may go.
    pub async fn take_bytes(&self, bytes: u64) {
        let pause = self.turn(bytes);
        if !pause.is_zero() {
            self.clock.sleep(pause).await;
        }
    }

    fn turn(&self, bytes: u64) -> Duration {
        let micros = bytes.saturating_mul(1_000_000) / self.bytes_per_second;
        let now = self.clock.instant();
        let mut next = self.next.lock();
        let turn = (*next).max(now);
        *next = turn + Duration::from_micros(micros);
        turn.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use archive_daemon::clock::ManualClock;
    use jiff::Timestamp;

    use super::*;

    /// Fails if drains together exceed their pace or catch up after a pause, or a pace may be so low that nodes give up
    /// on the sender.
    #[test]
    fn pieces_queue_and_idle_time_is_lost() {
        let hand = ManualClock::new(Timestamp::UNIX_EPOCH);
        let pace = Pace::new(hand.clock(), 8 << 20);
        let seconds = |bytes: u64| pace.turn(bytes).as_secs_f64();
        assert!(seconds(4 << 20) < 1e-9, "the first goes at once");
        assert!((seconds(8 << 20) - 0.5).abs() < 1e-3);
        assert!((seconds(1) - 1.5).abs() < 1e-3);
        hand.advance(Duration::from_secs(100));
        assert!(seconds(8 << 20) < 1e-9);
        assert!((seconds(1) - 1.0).abs() < 1e-3, "nothing was saved up");
        let slow = Pace::new(hand.clock(), 0);
        slow.turn(LEAST);
        assert!(slow.turn(1) <= Duration::from_secs(1), "never slower");
    }
}
