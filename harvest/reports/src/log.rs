//! The lines of a crawl log, one after the other.
//!
//! Owns which lines cannot be read, and how they are named. Memory is bounded at any length of a line. Does not know
//! what a line means: `archive_formats::crawl_log` does.

use std::fmt;
use std::io::{self, BufRead};

use archive_formats::crawl_log::CrawlLogLine;
use archive_formats::lines::{BoundedLines, Line};

/// The most bytes of a line that are read.
const LONGEST_LINE: usize = 1 << 20;

/// The most characters of a reason that are kept: it repeats a part of the line.
const LONGEST_REASON: usize = 200;

/// The most unreadable lines that are named.
const MAX_NAMED: usize = 100;

/// An entry of a crawl log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogEntry {
    /// A line that was read.
    Line(CrawlLogLine),
    /// A line that cannot be read.
    Unreadable(UnreadableLine),
}

/// A line of a crawl log that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableLine {
    /// The number of the line, counted from 1.
    pub number: u64,
    /// The place where the line begins in the log, in bytes.
    pub offset: u64,
    /// The reason why the line cannot be read, in one line.
    pub reason: String,
}

impl fmt::Display for UnreadableLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} (byte {}): ", self.number, self.offset)?;
        f.write_str(&self.reason)
    }
}

/// A reader of the entries of a crawl log. It ends after the first I/O error, and continues after a line that cannot be
/// read.
#[derive(Debug)]
pub struct CrawlLogReader<R> {
    lines: BoundedLines<R>,
    has_failed: bool,
}

impl<R: BufRead> CrawlLogReader<R> {
    /// Reads from the first byte of a log.
    pub fn new(log: R) -> Self {
        Self {
            lines: BoundedLines::new(log, LONGEST_LINE),
            has_failed: false,
        }
    }
}

impl<R: BufRead> Iterator for CrawlLogReader<R> {
    type Item = io::Result<LogEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        match self.lines.next_line() {
            Ok(line) => line.map(|line| Ok(entry(line))),
            Err(error) => {
                self.has_failed = true;
                Some(Err(error))
            }
        }
    }
}

fn entry(line: Line<'_>) -> LogEntry {
    match parse(line) {
        Ok(line) => LogEntry::Line(line),
        Err(reason) => LogEntry::Unreadable(UnreadableLine {
            number: line.number,
            offset: line.offset,
            reason: one_line(&reason),
        }),
    }
}

fn parse(line: Line<'_>) -> Result<CrawlLogLine, String> {
    let Some(bytes) = line.bytes else {
        return Err(format!("longer than {LONGEST_LINE} bytes"));
    };
    if !line.is_ended {
        // A number at its end may lack digits: the line would be read, and wrongly.
        return Err("the log ends within this line".to_owned());
    }
    let text = str::from_utf8(bytes)
        .map_err(|error| format!("byte {} is not UTF-8", error.valid_up_to()))?;
    text.parse()
        .map_err(|error: archive_formats::crawl_log::InvalidCrawlLogLine| error.to_string())
}

/// Returns the beginning of a text, without anything that would end a line of a report.
fn one_line(text: &str) -> String {
    let letters = text.chars().take(LONGEST_REASON);
    letters
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect()
}

/// The lines of a log that could not be read: all are counted, the first hundred are named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreadableLines {
    count: u64,
    named: Vec<UnreadableLine>,
}

impl UnreadableLines {
    /// Counts a line.
    pub fn add(&mut self, line: UnreadableLine) {
        self.count += 1;
        if self.named.len() < MAX_NAMED {
            self.named.push(line);
        }
    }

    /// Returns the number of lines.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the first lines, in their order.
    pub fn named_lines(&self) -> &[UnreadableLine] {
        &self.named
    }
}

#[cfg(test)]
mod tests;
