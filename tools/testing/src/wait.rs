//! Waits for a state by looking at it again and again, and gives up with what was seen last.

use std::fmt::Debug;
use std::panic::Location;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The limit of a wait that has no reason for another one.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// Pause after the first look. Each pause is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// The longest pause between two looks.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// A state that keeps changing extends a wait, up to this many times its limit.
const EXTENSIONS: u32 = 3;

/// The outcome of one look: the awaited value, or the state that was seen instead.
///
/// Prefer `Result`, whose error is the state as it was seen: it stands in the message of a wait that is given up. A
/// `bool` and an `Option` can say no more than that it was not so.
pub trait Observation {
    /// The value that the wait returns.
    type Value;
    /// The state that was seen instead.
    type SeenState: Debug;

    /// Separates the two.
    ///
    /// # Errors
    ///
    /// Returns the state that was seen when it was not the awaited one.
    fn into_result(self) -> Result<Self::Value, Self::SeenState>;
}

/// The state seen by a look that says only that the awaited one is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSeenState;

impl<T, S: Debug> Observation for Result<T, S> {
    type Value = T;
    type SeenState = S;

    fn into_result(self) -> Self {
        self
    }
}

impl<T> Observation for Option<T> {
    type Value = T;
    type SeenState = NoSeenState;

    fn into_result(self) -> Result<T, NoSeenState> {
        self.ok_or(NoSeenState)
    }
}

impl Observation for bool {
    type Value = ();
    type SeenState = NoSeenState;

    fn into_result(self) -> Result<(), NoSeenState> {
        self.then_some(()).ok_or(NoSeenState)
    }
}

/// Looks until the awaited value is there, and returns it. Runs in a tokio runtime; a look that hangs is given up too.
///
/// # Panics
///
/// Panics when the state has not changed for `limit`, or the awaited value is not there after three times as long: as
/// long as work continues, a slow machine is no fault.
#[track_caller]
pub fn eventually<O: Observation>(
    what: &str,
    limit: Duration,
    mut look: impl AsyncFnMut() -> O,
) -> impl Future<Output = O::Value> {
    let mut wait = Wait::new(what, limit);
    async move {
        loop {
            let looked = tokio::time::timeout(wait.left(), look()).await;
            let seen = match looked.map(Observation::into_result) {
                Ok(Ok(awaited)) => return awaited,
                Ok(Err(seen)) => format!("{seen:#?}"),
                Err(_elapsed) => wait.give_up("and the next look did not end"),
            };
            tokio::time::sleep(wait.pause_after(seen)).await;
        }
    }
}

/// Does the same as [`eventually`] on a thread of its own, outside a runtime. A look that hangs is not noticed.
///
/// # Panics
///
/// Panics when [`eventually`] does.
#[track_caller]
pub fn eventually_blocking<O: Observation>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> O,
) -> O::Value {
    let mut wait = Wait::new(what, limit);
    loop {
        match look().into_result() {
            Ok(awaited) => return awaited,
            Err(seen) => std::thread::sleep(wait.pause_after(format!("{seen:#?}"))),
        }
    }
}

/// Returns what becomes of `future`, which must end.
///
/// # Panics
///
/// Panics when it has not ended after [`PATIENCE`].
#[track_caller]
pub fn in_time<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let at = Location::caller();
    async move {
        let ended = tokio::time::timeout(PATIENCE, future).await;
        ended.unwrap_or_else(|_elapsed| given_up(&format!("not within {PATIENCE:?}, at {at}")))
    }
}

/// Returns what `work` returns, which runs on a thread of its own and must end.
///
/// For work whose cost would be hours if it grew with the square of its input: the test then fails in words instead of
/// hanging.
///
/// # Panics
///
/// Panics when `work` has not ended after [`PATIENCE`], or has panicked.
#[track_caller]
pub fn in_time_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    within(PATIENCE, work)
}

#[track_caller]
fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> T {
    let at = Location::caller();
    let (sender, receiver) = mpsc::sync_channel(1);
    std::thread::spawn(move || sender.send(work()));
    match receiver.recv_timeout(limit) {
        Ok(value) => value,
        Err(mpsc::RecvTimeoutError::Timeout) => given_up(&format!("not within {limit:?}, at {at}")),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            given_up(&format!("the work panicked, at {at}"))
        }
    }
}

/// The state of a wait: since when it lasts, and the state that was seen last.
struct Wait<'a> {
    what: &'a str,
    limit: Duration,
    at: &'static Location<'static>,
    began: Instant,
    changed: Instant,
    seen: Option<String>,
    pause: Duration,
}

impl<'a> Wait<'a> {
    #[track_caller]
    fn new(what: &'a str, limit: Duration) -> Self {
        let now = Instant::now();
        Self {
            what,
            limit,
            at: Location::caller(),
            began: now,
            changed: now,
            seen: None,
            pause: FIRST_PAUSE,
        }
    }

    /// Returns the time that this wait may still last if the state does not change.
    fn left(&self) -> Duration {
        let unchanged = self.limit.saturating_sub(self.changed.elapsed());
        let all = self.limit * EXTENSIONS;
        unchanged.min(all.saturating_sub(self.began.elapsed()))
    }

    /// Notes what was seen, and gives up where that has been so for too long. Returns how long to pause.
    fn pause_after(&mut self, seen: String) -> Duration {
        if self.seen.as_ref() != Some(&seen) {
            self.changed = Instant::now();
            self.seen = Some(seen);
        }
        if self.left().is_zero() {
            self.give_up("unchanged, or changing for too long");
        }
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST_PAUSE);
        pause
    }

    fn give_up(&self, why: &str) -> ! {
        let Self { what, at, .. } = self;
        let seen = self.seen.as_deref().unwrap_or("no look ended");
        let took = self.began.elapsed();
        given_up(&format!(
            "not after {took:.1?}: {what}, awaited at {at}\nseen last, {why}: {seen}"
        ))
    }
}

#[expect(clippy::panic, reason = "a test that waits in vain fails")]
fn given_up(message: &str) -> ! {
    panic!("{message}")
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    const SHORT: Duration = Duration::from_millis(40);

    /// Returns the message of a panic.
    fn panicked(test: impl FnOnce()) -> String {
        let payload = catch_unwind(AssertUnwindSafe(test)).unwrap_err();
        *payload.downcast::<String>().unwrap()
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().build().unwrap().block_on(future)
    }

    /// Fails if the message leaves out what was awaited, where, or the state that was seen last.
    #[test]
    fn given_up_wait_names_last_seen_state() {
        let mut looks = 0;
        let message = panicked(|| {
            eventually_blocking("three copies", SHORT, || {
                looks += 1;
                Err::<(), _>(format!("{} copies", looks.min(2)))
            });
        });
        assert!(looks > 2, "{looks}");
        for part in ["three copies", "wait.rs:", "2 copies"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        let message = panicked(|| run(eventually("a state", SHORT, async || Err::<(), _>(17))));
        for part in ["a state", "wait.rs:", "17"] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }

    /// Fails if a wait hangs with a look that hangs.
    #[test]
    fn hanging_look_is_given_up() {
        let mut looks = 0;
        let message = panicked(|| {
            run(eventually("an answer", SHORT, async || {
                looks += 1;
                if looks == 2 {
                    std::future::pending::<()>().await;
                }
                Err::<(), _>("silence")
            }));
        });
        assert!(message.contains("did not end: \"silence\""), "{message}");
    }

    /// Fails if a wait ends although its state keeps changing, or never ends with it.
    #[test]
    fn changing_state_extends_wait() {
        let began = Instant::now();
        let mut left = 1_000_000;
        let message = panicked(|| {
            eventually_blocking("nothing is left", SHORT, || {
                left -= 1;
                Err::<(), _>(left)
            });
        });
        assert!(began.elapsed() >= SHORT * EXTENSIONS, "{message}");
    }

    /// Fails if a test hangs with work on a thread that never ends, or passes although the work panicked.
    #[test]
    fn work_without_end_is_given_up() {
        let (_sender, never) = mpsc::channel::<()>();
        let message = panicked(|| {
            within(SHORT, move || never.recv().is_err());
        });
        for part in ["not within", "wait.rs:"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        let message = panicked(|| within(PATIENCE, || panic!("a wrong value")));
        assert!(message.contains("the work panicked"), "{message}");
        assert_eq!(in_time_blocking(|| 5), 5);
    }

    /// Fails if a wait continues after a look that succeeded, or returns something else than that look saw.
    #[test]
    fn awaited_value_is_returned() {
        let mut looks = 0;
        let mut look = || {
            looks += 1;
            looks
        };
        let third = eventually_blocking("third", PATIENCE, || Some(look()).filter(|n| *n == 3));
        assert_eq!(third, 3);
        eventually_blocking("fifth", PATIENCE, || look() == 5);
        let fine = async || if look() == 7 { Ok("7") } else { Err(()) };
        assert_eq!(run(eventually("seventh", PATIENCE, fine)), "7");
        assert_eq!(run(in_time(async { 5 })), 5);
    }
}
