//! The only reader of time and randomness. Both are passed as arguments, so that a test can decide them.
//!
//! [`Clock::now`] is the time of day: it may jump, and is for people to read. [`Clock::instant`] never goes back, and
//! is for measuring durations. Not promised: that two machines agree about either.
//!
//! A test moves the time by hand:
//!
//! ```
//! use std::time::Duration;
//! use archive_daemon::clock::ManualClock;
//!
//! let hand = ManualClock::new("2026-11-26T12:00:00Z".parse()?);
//! let clock = hand.clock();
//! hand.advance(Duration::from_mins(1));
//! assert_eq!(clock.now().to_string(), "2026-11-26T12:01:00Z");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use archive_model::time_after;
use jiff::Timestamp;
use tokio::sync::watch;

/// The time that a [`ManualClock`] waits for sleeps: a limit against hanging.
const PATIENCE: Duration = Duration::from_mins(5);

/// A clock, cheap to clone.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Manual(Arc<Manual>),
}

/// The error of a wait that took longer than its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing happened within {0:?}")]
pub struct TimedOut(pub Duration);

impl Clock {
    /// Returns the clock of the machine.
    pub const fn system_clock() -> Self {
        Self(Source::System)
    }

    /// Returns the time of day.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => Timestamp::now(),
            Source::Manual(manual) => time_after(manual.start, manual.elapsed()),
        }
    }

    /// Returns the time of day after `duration`, or the last possible time if that is later.
    pub fn time_after(&self, duration: Duration) -> Timestamp {
        time_after(self.now(), duration)
    }

    /// Returns a point in time to measure from, which never goes back.
    pub fn instant(&self) -> Instant {
        match &self.0 {
            Source::System => Instant::now(),
            Source::Manual(manual) => manual
                .origin
                .checked_add(manual.elapsed())
                .unwrap_or(manual.origin),
        }
    }

    /// Returns the time since `begin`, which this clock gave.
    pub fn elapsed_since(&self, begin: Instant) -> Duration {
        self.instant().saturating_duration_since(begin)
    }

    /// Waits for `duration`. Cancel-safe.
    pub async fn sleep(&self, duration: Duration) {
        match &self.0 {
            Source::System => tokio::time::sleep(duration).await,
            Source::Manual(manual) => manual.sleep(duration).await,
        }
    }

    /// Returns the outcome of `future`, unless `limit` passes first; then `future` is dropped.
    ///
    /// # Errors
    ///
    /// [`TimedOut`] if `limit` passes first.
    pub async fn run_with_timeout<F: Future>(
        &self,
        limit: Duration,
        future: F,
    ) -> Result<F::Output, TimedOut> {
        tokio::select! {
            biased;
            outcome = future => Ok(outcome),
            () = self.sleep(limit) => Err(TimedOut(limit)),
        }
    }
}

/// The control of a clock that a test moves. Clones move the same clock.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Manual>);

#[derive(Debug)]
struct Manual {
    start: Timestamp,
    origin: Instant,
    /// Whether the clock also advances with the time of the machine.
    runs: bool,
    /// The time by which a test has moved the clock.
    moved: watch::Sender<Duration>,
    sleepers: watch::Sender<usize>,
}

impl ManualClock {
    /// Makes a clock that stands at `start` until it is moved.
    pub fn new(start: Timestamp) -> Self {
        Self::with(start, false)
    }

    /// Makes a clock that advances from `start` with the time of the machine, and skips the time by which it is moved:
    /// for parts that talk to each other in real time and pause for minutes in between.
    pub fn running_from(start: Timestamp) -> Self {
        Self::with(start, true)
    }

    fn with(start: Timestamp, runs: bool) -> Self {
        Self(Arc::new(Manual {
            start,
            origin: Instant::now(),
            runs,
            moved: watch::Sender::new(Duration::ZERO),
            sleepers: watch::Sender::new(0),
        }))
    }

    /// Returns the clock to hand out; all of them show the same time.
    pub fn clock(&self) -> Clock {
        Clock(Source::Manual(Arc::clone(&self.0)))
    }

    /// Moves the time, and wakes each sleep that is then over.
    pub fn advance(&self, duration: Duration) {
        self.0
            .moved
            .send_modify(|moved| *moved = moved.saturating_add(duration));
    }

    /// Waits until exactly `count` sleeps are under way: only then does it make sense to advance.
    ///
    /// # Panics
    ///
    /// Panics if that does not happen within five minutes of the machine's time, with the number of sleeps seen last.
    pub async fn wait_for_sleepers(&self, count: usize) {
        let mut sleepers = self.0.sleepers.subscribe();
        let reached = sleepers.wait_for(|sleepers| *sleepers == count);
        let in_time = tokio::time::timeout(PATIENCE, reached).await.is_ok();
        assert!(
            in_time,
            "not {count} sleeps after {PATIENCE:?}, but {}",
            *self.0.sleepers.borrow()
        );
    }

    /// Waits until exactly `count` sleeps are under way, then moves the time.
    ///
    /// # Panics
    ///
    /// Panics if [`ManualClock::wait_for_sleepers`] does.
    pub async fn advance_sleepers(&self, count: usize, duration: Duration) {
        self.wait_for_sleepers(count).await;
        self.advance(duration);
    }
}

impl Manual {
    fn elapsed(&self) -> Duration {
        let moved = *self.moved.borrow();
        if self.runs {
            moved.saturating_add(self.origin.elapsed())
        } else {
            moved
        }
    }

    async fn sleep(&self, duration: Duration) {
        let mut moved = self.moved.subscribe();
        let end = self.elapsed().saturating_add(duration);
        let _asleep = SleeperGuard::new(&self.sleepers);
        loop {
            let rest = end.saturating_sub(self.elapsed());
            if rest.is_zero() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(rest), if self.runs => {}
                // An error means that the sender was dropped, and `self` holds it.
                changed = moved.changed() => drop(changed),
            }
        }
    }
}

/// A guard that counts a sleep while it lasts, also when it is cancelled.
struct SleeperGuard<'a>(&'a watch::Sender<usize>);

impl<'a> SleeperGuard<'a> {
    fn new(sleepers: &'a watch::Sender<usize>) -> Self {
        sleepers.send_modify(|count| *count += 1);
        Self(sleepers)
    }
}

impl Drop for SleeperGuard<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// A source of randomness, cheap to clone.
#[derive(Clone, Debug)]
pub struct Chance(Option<Arc<AtomicU64>>);

/// The error of a system that gave no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct NoChance(#[from] getrandom::Error);

impl Chance {
    /// Returns the randomness of the system, fit for secrets and names.
    pub const fn system_chance() -> Self {
        Self(None)
    }

    /// Returns the same sequence for the same seed, for tests. Not fit for secrets.
    pub fn seeded_chance(seed: u64) -> Self {
        Self(Some(Arc::new(AtomicU64::new(seed))))
    }

    /// Returns `N` random bytes: 16 make a unique name, 32 a secret.
    ///
    /// # Errors
    ///
    /// [`NoChance`] if the system gives no randomness; a seeded source never fails.
    pub fn random_bytes<const N: usize>(&self) -> Result<[u8; N], NoChance> {
        let mut bytes = [0; N];
        match &self.0 {
            None => getrandom::fill(&mut bytes)?,
            Some(state) => {
                for chunk in bytes.chunks_mut(8) {
                    let random = split_mix(state).to_le_bytes();
                    chunk
                        .iter_mut()
                        .zip(random)
                        .for_each(|(byte, random)| *byte = random);
                }
            }
        }
        Ok(bytes)
    }

    /// Returns a number below `limit`. Even enough for delays and samples: the bias is below `limit` / 2⁶⁴.
    ///
    /// # Errors
    ///
    /// [`NoChance`] if the system gives no randomness; a seeded source never fails.
    pub fn random_below(&self, limit: NonZeroU64) -> Result<u64, NoChance> {
        Ok(u64::from_le_bytes(self.random_bytes()?) % limit)
    }
}

/// Returns the next number of Steele, Lea and Flood's `SplitMix64`: one addition of state, so that an atomic is enough.
fn split_mix(state: &AtomicU64) -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut z = state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use tools_testing::in_time;

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    /// Fails if a manual clock advances by itself, wakes a sleeper at another time than its own, or counts a sleeper
    /// that has woken.
    #[tokio::test]
    async fn a_manual_clock_moves_only_by_hand() {
        let hand = ManualClock::new(Timestamp::UNIX_EPOCH);
        let clock = hand.clock();
        let begin = clock.instant();
        let sleeper = async {
            clock.sleep(2 * HOUR).await;
            clock.now().as_second()
        };
        let mover = async {
            hand.wait_for_sleepers(1).await;
            hand.advance(HOUR);
            hand.advance(HOUR);
        };
        assert_eq!(tokio::join!(sleeper, mover).0, 7200);
        assert_eq!(clock.elapsed_since(begin), 2 * HOUR);
        assert_eq!(clock.elapsed_since(begin + 3 * HOUR), Duration::ZERO);
        hand.wait_for_sleepers(0).await;
        clock.sleep(Duration::ZERO).await;
    }

    /// Fails if a running clock stands still between moves, or does not wake whose sleep a move has ended.
    #[tokio::test]
    async fn running_clock_advances_and_can_be_moved() {
        let hand = ManualClock::running_from(Timestamp::UNIX_EPOCH);
        let clock = hand.clock();
        in_time(clock.sleep(Duration::from_millis(5))).await;
        let before = clock.now();
        assert!(before > Timestamp::UNIX_EPOCH && before < Timestamp::UNIX_EPOCH + HOUR);
        let mover = async {
            hand.advance_sleepers(1, HOUR).await;
            hand.advance_sleepers(1, HOUR).await;
        };
        in_time(async { tokio::join!(clock.sleep(2 * HOUR), mover) }).await;
        assert!(clock.now() >= before + 2 * HOUR && clock.now() < before + 3 * HOUR);
    }

    /// Fails if a timeout passes over an outcome that is there, or work that is late is waited for or continues.
    #[tokio::test]
    async fn a_timeout_drops_what_is_late() {
        let hand = ManualClock::new(Timestamp::UNIX_EPOCH);
        let clock = hand.clock();
        assert_eq!(clock.run_with_timeout(HOUR, async { 5 }).await, Ok(5));
        let held = Arc::new(());
        let holder = Arc::clone(&held);
        let late = async {
            let outcome = clock.run_with_timeout(HOUR, async move {
                std::future::pending::<()>().await;
                drop(holder);
            });
            (outcome.await, Arc::strong_count(&held))
        };
        let mover = async {
            hand.advance_sleepers(1, HOUR).await;
        };
        assert_eq!(tokio::join!(late, mover).0, (Err(TimedOut(HOUR)), 1));
    }

    /// Fails if a time beyond the last one panics, or wraps to an earlier time.
    #[tokio::test]
    async fn manual_clock_stops_at_end_of_time() {
        let hand = ManualClock::new(Timestamp::UNIX_EPOCH);
        hand.advance(Duration::MAX);
        assert_eq!(hand.clock().now(), Timestamp::MAX);
        assert_eq!(hand.clock().time_after(HOUR), Timestamp::MAX);
    }

    /// Fails if the system clock stands still, or its sleep ends too early.
    #[tokio::test]
    async fn system_clock_advances() {
        let clock = Clock::system_clock();
        let begin = clock.instant();
        let now = clock.now();
        clock.sleep(Duration::from_millis(5)).await;
        assert!(clock.instant() - begin >= Duration::from_millis(5));
        assert!(clock.now() > now && clock.time_after(HOUR) > clock.now());
    }

    /// Fails if a seed no longer gives the sequence of its algorithm, some number below a limit is never drawn, or the
    /// system repeats its bytes.
    #[test]
    fn a_seed_decides_what_chance_says() {
        let bytes = |seed| Chance::seeded_chance(seed).random_bytes::<20>().unwrap();
        assert_eq!(bytes(7), bytes(7));
        assert_ne!(bytes(7), bytes(8));
        // The first output of SplitMix64 for the seed 0, by its authors' reference.
        assert_eq!(
            Chance::seeded_chance(0).random_bytes::<8>().unwrap(),
            0xe220_a839_7b1d_cdaf_u64.to_le_bytes()
        );
        let limit = NonZeroU64::new(3).unwrap();
        let chance = Chance::seeded_chance(1);
        let seen: std::collections::BTreeSet<u64> = (0..100)
            .map(|_| chance.random_below(limit).unwrap())
            .collect();
        assert!(seen.iter().eq([0, 1, 2].iter()));
        assert_ne!(
            Chance::system_chance().random_bytes::<32>().unwrap(),
            Chance::system_chance().random_bytes::<32>().unwrap()
        );
    }
}
