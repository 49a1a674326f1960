//! The last lines of a crawl log, for a person who watches the crawl.

use std::io::{Read as _, Seek as _, SeekFrom};

use archive_formats::crawl_log::CrawlLogLine;
use harvest_crawler::recorder::CRAWL_LOG;
use jiff::Timestamp;
use serde::Serialize;
use url::Url;

use crate::directory::{JobDirectory, JobDirectoryError, open_if_there};

/// The bytes at the end of the log that are looked at.
const LOOKED_AT: u64 = 4 << 20;

/// A line of a crawl log, as much of it as a person looks at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LastLine {
    /// The time at which it was written.
    pub time: Timestamp,
    /// The status.
    pub status: i32,
    /// The URI.
    pub uri: String,
}

/// Returns the last lines of the crawl log of a job about URIs of some hosts, the youngest last. Only the last 4 MiB of
/// the log are looked at.
///
/// # Errors
///
/// [`JobDirectoryError::Read`].
pub fn last_log_lines(
    job: &JobDirectory,
    most: usize,
    is_about: impl Fn(&str) -> bool,
) -> Result<Vec<LastLine>, JobDirectoryError> {
    let path = job.path_of("logs").join(CRAWL_LOG);
    let Some(mut log) = open_if_there(&path)? else {
        return Ok(Vec::new());
    };
    let mut read = || {
        let begin = log.metadata()?.len().saturating_sub(LOOKED_AT);
        log.seek(SeekFrom::Start(begin))?;
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|source| JobDirectoryError::Read {
        path: path.clone(),
        source,
    })?;
    let text = String::from_utf8_lossy(&bytes);
    // The first line may be half of one, and the last one may be being written: they do not parse.
    let lines = text.lines().rev().filter_map(|line| {
        let line: CrawlLogLine = line.parse().ok()?;
        let url = Url::parse(&line.uri).ok()?;
        let host = url.host_str().unwrap_or_else(|| url.path());
        is_about(host).then_some(LastLine {
            time: line.time,
            status: line.status,
            uri: line.uri,
        })
    });
    let mut last: Vec<LastLine> = lines.take(most).collect();
    last.reverse();
    Ok(last)
}
