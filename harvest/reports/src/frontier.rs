//! The reports of a frontier: a line of 12 fields for each queue, by the state of the queue (Heritrix 3).
//!
//! Owns the fields and sections. Rows come from the frontier; whether a queue is retired is not decided here.

use std::time::Duration;

use archive_formats::crawl_log::escape_blanks;
use archive_formats::date::Stamp;
use harvest_policy::turns::{CrawlMoment, QueueState};
use jiff::Timestamp;

use crate::text::{DurationText, Hundredths, ReportText};

/// The name of the report with a few queues of each state.
pub const SUMMARY_FILE_NAME: &str = "frontier-summary-report.txt";

/// The name of the report with all queues that have URIs.
pub const NONEMPTY_FILE_NAME: &str = "frontier-nonempty-report.txt";

/// The most queues of one state in the summary, as in Heritrix.
const MAX_SUMMARY_ROWS: usize = 2000;

/// The fields of a line.
const LEGEND: &str = "queue precedence currentSize totalEnqueues sessionBalance lastCost(averageCost) lastDequeueTime wakeTime \
                      totalSpend/totalBudget errorCount lastPeekUri lastQueuedUri";

/// A queue of the frontier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueReport {
    /// The name of the queue: a domain or a host.
    pub name: String,
    /// The state of the queue.
    pub state: QueueState,
    /// The precedence of the queue: the smaller, the sooner.
    pub precedence: u8,
    /// The number of URIs in the queue.
    pub current_size: u64,
    /// The number of URIs that were ever put into the queue, where it is known.
    pub total_enqueues: Option<u64>,
    /// The cost that is left to the session of the queue; below zero if it has spent more.
    pub session_balance: i64,
    /// The cost of the last URI.
    pub last_cost: u64,
    /// The average cost of the URIs.
    pub average_cost: Hundredths,
    /// The time at which a URI was last taken out of the queue.
    pub last_dequeue: Option<Timestamp>,
    /// The cost of all URIs of the queue.
    pub total_spend: u64,
    /// The most that all URIs of the queue may cost; `None` is no limit, and written as -1.
    pub total_budget: Option<u64>,
    /// The number of tries that failed.
    pub error_count: u64,
    /// The URI that the queue would give next, when it was last asked.
    pub last_peeked: Option<String>,
    /// The URI that was last put into the queue.
    pub last_queued: Option<String>,
}

/// The moment of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportMoment {
    /// The time of day.
    pub time: Timestamp,
    /// The time since the start of the crawl, by which queues are snoozed.
    pub since_begin: CrawlMoment,
}

/// A part of a report: the queues of one state, under a title.
const SECTIONS: [(QueueSection, &str); 5] = [
    (QueueSection::InProcess, "IN-PROCESS QUEUES"),
    (QueueSection::Ready, "READY QUEUES"),
    (QueueSection::Snoozed, "SNOOZED QUEUES"),
    (QueueSection::Inactive, "INACTIVE QUEUES"),
    (QueueSection::Retired, "RETIRED QUEUES"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueueSection {
    InProcess,
    Ready,
    Snoozed,
    Inactive,
    Retired,
    /// Not listed: such a queue has no URI.
    Exhausted,
}

impl QueueReport {
    fn section(&self) -> QueueSection {
        match self.state {
            QueueState::InProcess => QueueSection::InProcess,
            QueueState::Ready => QueueSection::Ready,
            QueueState::Snoozed(_) => QueueSection::Snoozed,
            QueueState::Inactive => QueueSection::Inactive,
            QueueState::Retired => QueueSection::Retired,
            QueueState::Exhausted => QueueSection::Exhausted,
        }
    }

    /// Writes the line of the queue, without a line end: 12 fields, with `-` for a missing value.
    ///
    /// The wake time of a snoozed queue is the time until then, as Heritrix writes it.
    pub fn report_line(&self, now: CrawlMoment) -> String {
        let uri = |uri: &Option<String>| uri.as_deref().map_or("-".to_owned(), escape_blanks);
        let dequeue = self.last_dequeue;
        let wake = match self.state {
            QueueState::Snoozed(until) => Some(DurationText(until.saturating_sub(now))),
            _ => None,
        };
        let fields = [
            escape_blanks(&self.name),
            self.precedence.to_string(),
            self.current_size.to_string(),
            self.total_enqueues
                .map_or("-".to_owned(), |count| count.to_string()),
            self.session_balance.to_string(),
            format!("{}({})", self.last_cost, self.average_cost),
            dequeue.map_or("-".to_owned(), |time| format!("{time:.3}")),
            wake.map_or("-".to_owned(), |wake| wake.to_string()),
            match self.total_budget {
                Some(budget) => format!("{}/{budget}", self.total_spend),
                None => format!("{}/-1", self.total_spend),
            },
            self.error_count.to_string(),
            uri(&self.last_peeked),
            uri(&self.last_queued),
        ];
        fields.join(" ")
    }
}

/// Writes `frontier-summary-report.txt`: the number of queues of each state, and up to 2,000 of each.
pub fn frontier_summary_report(job: &str, now: ReportMoment, queues: &[QueueReport]) -> String {
    let mut text = head(job, now);
    let count = |section| {
        queues
            .iter()
            .filter(|queue| queue.section() == section)
            .count()
    };
    text.push_line(format_args!("\n -----===== STATS =====-----"));
    text.push_line(format_args!("   queues: {}", queues.len()));
    for (section, title) in SECTIONS {
        text.push_line(format_args!(
            "   {}: {}",
            title.to_ascii_lowercase(),
            count(section)
        ));
    }
    text.push_line(format_args!(
        "   exhausted queues: {}",
        count(QueueSection::Exhausted)
    ));
    sections(&mut text, now.since_begin, queues, MAX_SUMMARY_ROWS);
    text.into_string()
}

/// Writes `frontier-nonempty-report.txt`: all queues that have URIs, or of which one is being fetched.
pub fn frontier_nonempty_report(job: &str, now: ReportMoment, queues: &[QueueReport]) -> String {
    let mut text = head(job, now);
    sections(&mut text, now.since_begin, queues, usize::MAX);
    text.into_string()
}

fn head(job: &str, now: ReportMoment) -> ReportText {
    let mut text = ReportText::default();
    text.push_line(format_args!(
        "Frontier report - {}",
        Stamp::from_time(now.time)
    ));
    text.push_line(format_args!(" Job being crawled: {}", escape_blanks(job)));
    text
}

fn sections(text: &mut ReportText, now: Duration, queues: &[QueueReport], most: usize) {
    for (section, title) in SECTIONS {
        text.push_line(format_args!("\n -----===== {title} =====-----"));
        let mut rows = queues.iter().filter(|queue| queue.section() == section);
        for (row, queue) in rows.by_ref().take(most).enumerate() {
            if row == 0 {
                text.push_line(format_args!("{LEGEND}"));
            }
            text.push_line(format_args!("{}", queue.report_line(now)));
        }
        let left_out = rows.count();
        if left_out > 0 {
            text.push_line(format_args!("...and {left_out} more."));
        }
    }
}

#[cfg(test)]
mod tests;
