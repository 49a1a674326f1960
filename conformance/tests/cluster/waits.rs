//! Waits for what has to come. Their limits are against hanging: none of them decides how fast something is.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How long a test waits for what has to come.
pub(crate) const LONG: Duration = Duration::from_mins(5);

/// Asks until there is an answer.
pub(crate) async fn eventually<T>(
    what: &str,
    limit: Duration,
    mut ask: impl AsyncFnMut() -> Option<T>,
) -> T {
    worked_off(what, limit, async || ask().await.ok_or(0)).await
}

/// Asks until there is an answer; an error is what is left to do until then. Given up only when nothing of it was done
/// for so long: much work on a slow machine is no fault.
pub(crate) async fn worked_off<T>(
    what: &str,
    limit: Duration,
    mut ask: impl AsyncFnMut() -> Result<T, u64>,
) -> T {
    let (mut least, mut end) = (u64::MAX, Instant::now() + limit);
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(left) if left < least => (least, end) = (left, Instant::now() + limit),
            Err(_) => {}
        }
        assert!(
            Instant::now() < end,
            "not in {limit:?}: {what}; {least} left"
        );
        sleep(Duration::from_millis(100)).await;
    }
}
