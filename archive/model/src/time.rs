//! Times that are reckoned from others.

use jiff::{SignedDuration, Timestamp};

/// Returns the time that is `duration` after `time`, or the last one that there is.
///
/// ```
/// use std::time::Duration;
///
/// use archive_model::time_after;
/// use jiff::Timestamp;
///
/// assert_eq!(time_after(Timestamp::UNIX_EPOCH, Duration::from_secs(60)).as_second(), 60);
/// assert_eq!(time_after(Timestamp::UNIX_EPOCH, Duration::MAX), Timestamp::MAX);
/// ```
pub fn time_after<D>(time: Timestamp, duration: D) -> Timestamp
where
    SignedDuration: TryFrom<D>,
{
    // What does not fit is longer than all time.
    let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}
