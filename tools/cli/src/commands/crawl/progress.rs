//! The line that shows how far a crawl is.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use archive_daemon::Clock;
use harvest_crawler::crawl::CrawlProgress;
use jiff::tz::TimeZone;
use tokio::sync::watch;
use tools_terminal::output::size_text;
use tools_terminal::progress::TransferProgress;

/// The time over which a rate is taken.
const WINDOW: Duration = Duration::from_secs(20);

/// The bytes under way from which on they are shown: a large file.
const SHOWN_BYTES: u64 = 1_000_000;

/// The time between two updates of the line.
const PERIOD: Duration = Duration::from_millis(500);

/// Shows how far a crawl is, for as long as it is polled.
pub(super) async fn show_progress(
    bar: &TransferProgress,
    clock: &Clock,
    mut progress: watch::Receiver<CrawlProgress>,
) -> Infallible {
    let mut rate = FetchRate::default();
    while progress.changed().await.is_ok() {
        let now = progress.borrow_and_update().clone();
        let rate = rate.after(clock.instant(), now.fetched);
        bar.set_message(line(&now, rate));
        clock.sleep(PERIOD).await;
    }
    std::future::pending().await
}

/// Counts of the last seconds.
#[derive(Debug, Default)]
struct FetchRate {
    counts: VecDeque<(Instant, u64)>,
}

impl FetchRate {
    /// Notes a further count. Returns the URIs that were fetched in a second, in tenths.
    fn after(&mut self, now: Instant, count: u64) -> u64 {
        self.counts.push_back((now, count));
        while self.counts.len() > 2
            && let Some((first, _)) = self.counts.front()
            && now.saturating_duration_since(*first) > WINDOW
        {
            self.counts.pop_front();
        }
        let Some((first, before)) = self.counts.front() else {
            return 0;
        };
        let passed = now.saturating_duration_since(*first).as_millis();
        let tenths = u128::from(count.saturating_sub(*before)) * 10_000 / passed.max(1);
        u64::try_from(tenths).unwrap_or(u64::MAX)
    }
}

/// Returns the line of a progress; `rate` in tenths of a URI a second.
fn line(progress: &CrawlProgress, rate: u64) -> String {
    let rate = format!(", {}.{}/s", rate / 10, rate % 10);
    with_rate(progress, &rate)
}

/// Returns the figures of a progress at one moment.
pub(super) fn figures(progress: &CrawlProgress) -> String {
    with_rate(progress, "")
}

fn with_rate(progress: &CrawlProgress, rate: &str) -> String {
    let mut line = format!(
        "{} fetched ({}{}){rate}, {} failed, {} queued in {} active queues",
        progress.fetched,
        size_text(progress.bytes),
        if progress.bytes_under_way >= SHOWN_BYTES {
            format!(", and {} under way", size_text(progress.bytes_under_way))
        } else {
            String::new()
        },
        progress.failed,
        progress.queued,
        progress.active_queues
    );
    let waits = [
        (progress.deferred > 0).then(|| format!("; {} of them wait", progress.deferred)),
        (progress.resting_hosts > 0).then(|| format!(" ({} hosts rest)", progress.resting_hosts)),
        progress.next_try.map(|next| {
            let next = next.to_zoned(TimeZone::system());
            format!(", the first until {}", next.strftime("%H:%M:%S"))
        }),
    ];
    if progress.deferred > 0 {
        line.extend(waits.into_iter().flatten());
    }
    for (count, what) in [
        (progress.lost_hosts, "hosts given up"),
        (progress.retired_queues, "queues over their limit"),
        (progress.quarantined, "patterns under quarantine"),
    ] {
        if count > 0 {
            line.extend([", ", &count.to_string(), " ", what]);
        }
    }
    if progress.is_paused {
        line.push_str("; paused");
    } else if progress.lacks_space {
        line.push_str("; waiting for room on the disk");
    } else if progress.lacks_proxy {
        line.push_str("; waiting for the proxy");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the rate is that of the whole crawl, or a state is not shown.
    #[test]
    fn line_shows_rate_and_state() {
        let mut rate = FetchRate::default();
        let begin = Clock::system_clock().instant();
        let at = |seconds| begin + Duration::from_secs(seconds);
        assert_eq!(rate.after(at(0), 100), 0);
        assert_eq!(rate.after(at(10), 125), 25);
        assert_eq!(rate.after(at(29), 125), 0);
        let mut progress = CrawlProgress {
            fetched: 125,
            queued: 7,
            failed: 1,
            active_queues: 3,
            quarantined: 2,
            lacks_space: true,
            deferred: 5,
            resting_hosts: 2,
            next_try: Some("2026-11-23T00:00:00Z".parse().unwrap()),
            lost_hosts: 9,
            ..CrawlProgress::default()
        };
        let shown = line(&progress, 25);
        assert!(shown.starts_with("125 fetched ("), "{shown}");
        for part in [
            "2.5/s",
            "7 queued in 3 active queues",
            "1 failed",
            "; 5 of them wait (2 hosts rest), the first until ",
            "9 hosts given up",
            "2 patterns under quarantine",
            "waiting for room",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        progress.is_paused = true;
        assert!(line(&progress, 0).ends_with("; paused"));
    }
}
