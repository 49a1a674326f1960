//! `threads-report.txt`: each fetch that is under way, and how long it has been.
//!
//! Owns the text. A "thread" of Heritrix is here a connection, with the number that it has in the crawl log.

use std::time::Duration;

use archive_formats::crawl_log::escape_blanks;
use archive_formats::date::Stamp;
use jiff::Timestamp;

use crate::text::{DurationText, ReportText};

/// The name of the report.
pub const FILE_NAME: &str = "threads-report.txt";

/// A connection and its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadReport {
    /// The number of the connection in the crawl log.
    pub number: u32,
    /// The URI that the connection fetches; `None` if it waits for one.
    pub uri: Option<String>,
    /// The step of the work, a word such as `fetch`.
    pub step: String,
    /// The time since this step began.
    pub elapsed: Duration,
}

/// Writes a line for each connection: number, step, time in that step, URI or `-`.
pub fn threads_report(job: &str, time: Timestamp, threads: &[ThreadReport]) -> String {
    let active = threads.iter().filter(|thread| thread.uri.is_some()).count();
    let mut text = ReportText::default();
    text.push_line(format_args!("Threads report - {}", Stamp::from_time(time)));
    text.push_line(format_args!(" Job being crawled: {}", escape_blanks(job)));
    text.push_line(format_args!(
        " Number of threads: {} ({active} active)",
        threads.len()
    ));
    text.push_line(format_args!("\n[thread] [step] [elapsed] [uri]"));
    for thread in threads {
        let step = escape_blanks(&thread.step);
        let elapsed = DurationText(thread.elapsed);
        let uri = thread.uri.as_deref().map_or("-".to_owned(), escape_blanks);
        text.push_line(format_args!("#{:03} {step} {elapsed} {uri}", thread.number));
    }
    text.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a connection that waits counts as active, or a line lacks a column.
    #[test]
    fn threads_are_listed_with_their_step() {
        let threads = [
            ThreadReport {
                number: 7,
                uri: Some("http://a.dk/x y".to_owned()),
                step: "fetch".to_owned(),
                elapsed: Duration::from_millis(1234),
            },
            ThreadReport {
                number: 1008,
                uri: None,
                step: "wait".to_owned(),
                elapsed: Duration::from_mins(2),
            },
        ];
        let time = "2021-07-05T15:20:39Z".parse().unwrap();
        assert_eq!(
            threads_report("7-1", time, &threads),
            "Threads report - 20210705152039\n Job being crawled: 7-1\n Number of threads: 2 (1 active)\n\n\
             [thread] [step] [elapsed] [uri]\n\
             #007 fetch 1s234ms http://a.dk/x%20y\n#1008 wait 2m -\n"
        );
    }
}
