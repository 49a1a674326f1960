//! The lines of `progress-statistics.log` (Heritrix 3): a legend, a line of numbers every 20 seconds, and notes of
//! states.
//!
//! Owns the columns, the notes and the messages at the end of a crawl, and how the last line is read. Takes numbers as
//! they are; times are arguments.

use std::fmt;
use std::io::{self, BufRead};

use archive_formats::date::{Precision, WarcDate};
use archive_formats::lines::BoundedLines;
use jiff::Timestamp;

use crate::text::Hundredths;

/// The name of the log.
pub const FILE_NAME: &str = "progress-statistics.log";

/// The longest line of a log that is read.
const LONGEST_LINE: usize = 64 * 1024;

/// The column behind the timestamp.
const TIME_END: usize = 20;

/// The names of the other columns, and where they end.
const COLUMNS: [(&str, usize); 12] = [
    ("discovered", 32),
    ("queued", 44),
    ("downloaded", 57),
    ("doc/s(avg)", 74),
    ("KB/s(avg)", 85),
    ("dl-failures", 99),
    ("busy-thread", 113),
    ("mem-use-KB", 126),
    ("heap-size-KB", 140),
    ("congestion", 153),
    ("max-depth", 165),
    ("avg-depth", 177),
];

/// A rate since the last line, and that of the whole crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgressRate {
    /// The rate since the line before.
    pub current: Hundredths,
    /// The rate since the start of the crawl.
    pub average: Hundredths,
}

/// A line of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressLine {
    /// The time at which the line is written, to the second.
    pub time: Timestamp,
    /// The number of URIs that were discovered.
    pub discovered: u64,
    /// The number of URIs in queues.
    pub queued: u64,
    /// The number of URIs that were fetched.
    pub downloaded: u64,
    /// Fetched URIs in a second.
    pub documents_per_second: ProgressRate,
    /// Kilobytes of 1024 bytes in a second, written without decimals.
    pub kilobytes_per_second: ProgressRate,
    /// The number of URIs that failed.
    pub failures: u64,
    /// The number of connections in use.
    pub busy_threads: u64,
    /// The memory that the crawler uses, in kilobytes of 1024 bytes.
    pub memory_kilobytes: u64,
    /// The memory that the crawler has from the system, in kilobytes of 1024 bytes. Heritrix' heap.
    pub heap_kilobytes: u64,
    /// The number of queues that could work in relation to those that do.
    pub congestion: Hundredths,
    /// The number of URIs in the longest queue.
    pub max_depth: u64,
    /// The average number of URIs in a queue.
    pub average_depth: u64,
}

/// Returns the legend, without a line end.
pub fn progress_legend() -> String {
    columns("timestamp", COLUMNS.map(|(name, _)| name.to_owned()))
}

impl fmt::Display for ProgressLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let documents = self.documents_per_second;
        let kilobytes = self.kilobytes_per_second;
        let values = [
            self.discovered.to_string(),
            self.queued.to_string(),
            self.downloaded.to_string(),
            format!("{}({})", documents.current, documents.average),
            format!(
                "{}({})",
                kilobytes.current.0 / 100,
                kilobytes.average.0 / 100
            ),
            self.failures.to_string(),
            self.busy_threads.to_string(),
            self.memory_kilobytes.to_string(),
            self.heap_kilobytes.to_string(),
            self.congestion.to_string(),
            self.max_depth.to_string(),
            self.average_depth.to_string(),
        ];
        f.write_str(&columns(&seconds(self.time), values))
    }
}

/// Returns values, right-aligned under the legend. A value that is too wide moves those after it to the right, so that
/// a blank is between any two.
fn columns(time: &str, values: [String; COLUMNS.len()]) -> String {
    let mut line = format!("{time:>TIME_END$}");
    for (value, (_, end)) in values.into_iter().zip(COLUMNS) {
        let width = end.saturating_sub(line.len()).max(value.len() + 1);
        let padding = width.saturating_sub(value.len());
        line.extend(std::iter::repeat_n(' ', padding));
        line.push_str(&value);
    }
    line
}

fn seconds(time: Timestamp) -> String {
    WarcDate::from_time(time, Precision::Second)
        .as_str()
        .to_owned()
}

/// The end of a crawl, in Heritrix' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndMessage {
    /// No URI was left.
    Finished,
    /// An operator, or the part that controls the crawl, has ended it.
    EndedByOperator,
    /// The time of the crawl was over.
    TimeLimit,
    /// The most bytes of the crawl were fetched.
    DataLimit,
    /// The most URIs of the crawl were fetched.
    DocumentLimit,
    /// The crawler failed.
    AbnormalExit,
}

impl EndMessage {
    /// All messages, in the order of their declaration.
    pub const ALL: [Self; 6] = [
        Self::Finished,
        Self::EndedByOperator,
        Self::TimeLimit,
        Self::DataLimit,
        Self::DocumentLimit,
        Self::AbnormalExit,
    ];

    /// Returns the words in the log and in `crawl-report.txt`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "Finished",
            Self::EndedByOperator => "Finished - Ended by operator",
            Self::TimeLimit => "Finished - Timelimit hit",
            Self::DataLimit => "Finished - Maximum amount of data limit hit",
            Self::DocumentLimit => "Finished - Maximum number of documents limit hit",
            Self::AbnormalExit => "Finished - Abnormal exit from crawling",
        }
    }
}

impl fmt::Display for EndMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A state of a crawl that the log notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrawlState {
    /// The crawl begins, or resumes.
    Running,
    /// The crawl is to pause, and waits for the fetches that are under way.
    Waiting,
    /// The crawl pauses.
    Paused,
    /// The crawl has stopped, to be resumed later from what is on the disk.
    Checkpointed,
    /// No URI is left, and the crawl waits for new ones.
    Empty,
    /// The crawl ends, and waits for the fetches that are under way.
    Ending(EndMessage),
    /// The crawl has ended.
    Ended(EndMessage),
}

/// A note of a state. Its text is the line of the log: `2021-07-05T15:20:39Z CRAWL ENDED - Finished`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateNote {
    /// The time at which the state began, to the second.
    pub time: Timestamp,
    /// The state of the crawl.
    pub state: CrawlState,
}

impl fmt::Display for StateNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (state, message) = match self.state {
            CrawlState::Running => ("RUNNING", "Running"),
            CrawlState::Waiting => ("WAITING", "Pausing"),
            CrawlState::Paused => ("PAUSED", "Paused"),
            CrawlState::Checkpointed => ("PAUSED", "Checkpointed"),
            CrawlState::Empty => ("EMPTY", "Empty"),
            CrawlState::Ending(message) => ("ENDING", message.as_str()),
            CrawlState::Ended(message) => ("ENDED", message.as_str()),
        };
        write!(f, "{} CRAWL {state} - {message}", seconds(self.time))
    }
}

/// Reads the last line of a log that is not empty. `None` if the log has no line, ends within one, or ends with one
/// that is too long or not UTF-8: then nothing is known of how the crawl ended.
///
/// # Errors
///
/// Fails if the log cannot be read.
pub fn last_line(log: impl BufRead) -> io::Result<Option<String>> {
    let mut lines = BoundedLines::new(log, LONGEST_LINE);
    let mut last = None;
    while let Some(line) = lines.next_line()? {
        if line
            .bytes
            .is_some_and(|bytes| bytes.trim_ascii().is_empty())
        {
            continue;
        }
        let bytes = line.bytes.filter(|_| line.is_ended);
        let text = bytes.and_then(|bytes| str::from_utf8(bytes).ok());
        last = text.map(str::to_owned);
    }
    Ok(last)
}

#[cfg(test)]
mod tests;
