//! The pace of the scrub. Its work on a real node is among the node's tests.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Fails if the scrub reads faster than its rate after it was idle.
#[test]
fn reads_cost_time_and_idle_time_counts_nothing() {
    let start = Instant::now();
    let mut pace = Pace::new(start);
    pace.spend(1000, 500, start);
    assert_eq!(pace.next, start + 2 * SECOND);
    pace.spend(500, 500, start);
    assert_eq!(pace.next, start + 3 * SECOND);
    pace.spend(500, 500, start + 100 * SECOND);
    assert_eq!(pace.next, start + 101 * SECOND);
    pace.spend(u64::MAX, 0, start);
    assert!(pace.next >= start + 101 * SECOND);
}
