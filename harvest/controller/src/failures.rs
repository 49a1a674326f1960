//! The URIs of a crawl that could not be had, as its log has them.
//!
//! Owns which of them another try may have: those that failed and whose hosts failed or were too busy. What a host says
//! that it lacks or refuses is an answer.

use std::collections::HashMap;
use std::io::BufReader;
use std::path::Path;

use archive_durable::DiskError;
use harvest_crawler::crawl::FailedUri;
use harvest_policy::hops::Hop;
use harvest_policy::rejections::{RejectionRule, Rejections};
use harvest_policy::status::FetchStatus;
use harvest_reports::log::{CrawlLogReader, LogEntry};
use url::Url;

use crate::directory::open_if_there;

/// The most failures that are tried again by one request.
const MOST_FAILURES: usize = 1_000_000;

/// The failures in a crawl log.
#[derive(Debug, Default)]
pub(crate) struct LoggedFailures {
    /// The URIs whose last line is that of a failure, and that a rule covers, in the order of these lines.
    pub(crate) failed: Vec<FailedUri>,
    /// The lines that cannot be read.
    pub(crate) unreadable: u64,
}

/// Returns the failures that a rule covers. An error is in words.
pub(crate) fn find_failures(log: &Path, rules: &[RejectionRule]) -> Result<LoggedFailures, String> {
    let mut covered = Rejections::default();
    covered
        .add(rules.iter().cloned())
        .map_err(|error| error.to_string())?;
    let unreadable = |error| DiskError::new("read", log, error).to_string();
    let Some(file) = open_if_there(log).map_err(|error| error.to_string())? else {
        // Nothing was fetched yet.
        return Ok(LoggedFailures::default());
    };
    let mut unreadable_lines = 0;
    let mut failed: HashMap<String, (u64, FailedUri)> = HashMap::new();
    for (entry, number) in CrawlLogReader::new(BufReader::new(file)).zip(0..) {
        let LogEntry::Line(line) = entry.map_err(unreadable)? else {
            unreadable_lines += 1;
            continue;
        };
        let status = FetchStatus::from_number(line.status);
        if !(status.is_failure() || status.number() == 429 || status.number() >= 500) {
            failed.remove(&line.uri);
            continue;
        }
        let Ok(url) = Url::parse(&line.uri) else {
            continue;
        };
        // What goes before a URI is asked for with it.
        if line.hops.ends_with(Hop::Prerequisite.letter()) || !covered.covers_url(&url) {
            continue;
        }
        if failed.len() == MOST_FAILURES {
            return Err(format!(
                "it covers more than {MOST_FAILURES} failures; name them by several files with narrower rules"
            ));
        }
        let hops = line.hops.parse().map_err(|error| {
            format!(
                "the crawl log has {} with hops that cannot be read: {error}",
                line.uri
            )
        })?;
        let uri = FailedUri {
            url,
            hops,
            via: line.via,
            source: line.source,
        };
        failed.insert(line.uri, (number, uri));
    }
    let mut failed: Vec<(u64, FailedUri)> = failed.into_values().collect();
    failed.sort_by_key(|(number, _)| *number);
    Ok(LoggedFailures {
        failed: failed.into_iter().map(|(_, uri)| uri).collect(),
        unreadable: unreadable_lines,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Fails if what was had later is tried again, what may pass is not, or what a host refuses is; or if a line that cannot
    /// be read is passed over unsaid.
    #[test]
    fn only_last_lines_of_failures_count() {
        let mut log = tempfile::NamedTempFile::new().unwrap();
        let mut line = |status: &str, uri: &str, hops: &str| {
            writeln!(
                log,
                "2026-01-02T03:04:05.000Z {status} - {uri} {hops} http://a.dk/ - #001 - - http://a.dk/ 3t"
            )
            .unwrap();
        };
        for (status, uri) in [
            ("   -2", "http://a.dk/lost"),
            ("   -2", "http://a.dk/had-later"),
            ("  200", "http://a.dk/had-later"),
            ("  404", "http://a.dk/absent"),
            ("  503", "http://a.dk/busy"),
            ("-5001", "http://a.dk/rejected"),
            ("   -6", "http://b.dk/of-others"),
        ] {
            line(status, uri, "L");
        }
        line("   -2", "http://a.dk/robots.txt", "LP");
        line("   -2", "", "");
        let rules = ["http://a.dk/".parse().unwrap()];
        let LoggedFailures { failed, unreadable } = find_failures(log.path(), &rules).unwrap();
        assert_eq!(unreadable, 1);
        let uris: Vec<&str> = failed.iter().map(|failed| failed.url.as_str()).collect();
        assert_eq!(uris, ["http://a.dk/lost", "http://a.dk/busy"]);
        assert_eq!(failed[0].hops.to_string(), "L");
        assert_eq!(failed[0].source.as_deref(), Some("http://a.dk/"));
        let all = find_failures(log.path(), &[".*".parse().unwrap()]).unwrap();
        assert_eq!(all.failed.len(), 3);
    }
}
