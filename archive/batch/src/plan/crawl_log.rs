//! Lines of crawl logs: those that match an expression, and those of a domain.
//!
//! Owns which records are crawl logs, and how their lines are read. A line is read by its fields; a line that is longer
//! than a mebibyte is left out, and this is reported.

use std::io::{BufRead as _, Read};

use archive_formats::warc::{Record, RecordSummary};
use url::{Host, Url};

use super::arguments::{Arguments, WholeMatch, wrong_argument};
use super::view::{self, LONGEST_LINE};
use super::{Argument, InvalidJob, JobInfo, Plan, Reduce};
use crate::control::StopControl;
use crate::job::{BatchJobError, Job, Reads, Sink};

pub(super) const LINES: JobInfo = JobInfo {
    name: "crawl-log-lines",
    about: "Finds the lines of crawl logs that match an expression, in files with the metadata of crawls.",
    output: "a line of a crawl log",
    arguments: &[Argument {
        name: "pattern",
        about: "a regular expression that the whole line must match",
        default: None,
    }],
    reduce: Reduce::Concatenate,
};

pub(super) const DOMAIN: JobInfo = JobInfo {
    name: "crawl-log-domain",
    about: "Finds the lines of crawl logs that are of a domain, in files with the metadata of crawls: the host of the URL \
            (4th column), or of the page that led to it (6th), is the domain or one below it.",
    output: "a line of a crawl log",
    arguments: &[Argument {
        name: "domain",
        about: "the domain, such as example.org",
        default: None,
    }],
    reduce: Reduce::Concatenate,
};

/// The lines that are wanted.
#[derive(Debug)]
enum CrawlLog {
    Matching(WholeMatch),
    Domain(String),
}

pub(super) fn plan_log_lines(arguments: &Arguments) -> Result<Box<dyn Plan>, InvalidJob> {
    Ok(Box::new(CrawlLog::Matching(
        arguments.match_expression("pattern")?,
    )))
}

pub(super) fn plan_domain_lines(arguments: &Arguments) -> Result<Box<dyn Plan>, InvalidJob> {
    let given = arguments.text("domain").trim().trim_matches('.');
    let host = Host::parse(given)
        .map_err(|error| wrong_argument("domain", format!("{given:?} is no host: {error}")))?;
    Ok(Box::new(CrawlLog::Domain(host.to_string())))
}

impl Plan for CrawlLog {
    fn reduce(&self) -> Reduce {
        Reduce::Concatenate
    }

    fn start(&self, _control: &StopControl) -> Result<Box<dyn Job + '_>, BatchJobError> {
        Ok(Box::new(CrawlLogJob(self)))
    }
}

impl CrawlLog {
    fn wants(&self, line: &[u8]) -> bool {
        match self {
            Self::Matching(expression) => expression.is_match(line),
            Self::Domain(domain) => {
                let mut columns = line
                    .split(u8::is_ascii_whitespace)
                    .filter(|column| !column.is_empty());
                let is_of = |column: Option<&[u8]>| {
                    column
                        .and_then(host)
                        .is_some_and(|host| is_within(&host, domain))
                };
                let url = columns.nth(3);
                let via = columns.nth(1);
                is_of(url) || is_of(via)
            }
        }
    }
}

struct CrawlLogJob<'a>(&'a CrawlLog);

impl Job for CrawlLogJob<'_> {
    fn reads(&self) -> Reads {
        Reads::Records
    }

    fn record(
        &mut self,
        mut record: Record<'_, &mut dyn Read>,
        out: &mut dyn Sink,
    ) -> Result<RecordSummary, BatchJobError> {
        if is_crawl_log(&record) {
            each_line(&mut record, |line| {
                if self.0.wants(line) {
                    out.write(line)?;
                    out.write(b"\n")?;
                }
                Ok(())
            })?;
        }
        Ok(record.read_end()?)
    }
}

/// Whether the crawl log of a job is in it: `metadata://…/crawl/logs/crawl.log…`.
pub(super) fn is_crawl_log<R: Read>(record: &Record<'_, R>) -> bool {
    let url = view::record_url(record);
    view::is_document(record)
        && url
            .strip_prefix("metadata://")
            .and_then(|rest| rest.split_once('/'))
            .is_some_and(|(_, path)| path.starts_with("crawl/logs/crawl.log"))
}

/// Calls `each` with each line of a record, without its line end. Leaves out lines that are too long, and fails with
/// their number once all others were read.
pub(super) fn each_line<R: Read>(
    record: &mut Record<'_, R>,
    mut each: impl FnMut(&[u8]) -> Result<(), BatchJobError>,
) -> Result<(), BatchJobError> {
    let read_error = |error: std::io::Error| BatchJobError::Read(error.into());
    let mut line = Vec::new();
    let mut too_long = 0_u64;
    loop {
        line.clear();
        let limit = LONGEST_LINE as u64 + 1;
        let mut limited = record.by_ref().take(limit);
        if limited.read_until(b'\n', &mut line).map_err(read_error)? == 0 {
            break;
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() > LONGEST_LINE {
            record.skip_until(b'\n').map_err(read_error)?;
            too_long += 1;
            continue;
        }
        each(line.strip_suffix(b"\r").unwrap_or(&line))?;
    }
    if too_long == 0 {
        return Ok(());
    }
    Err(BatchJobError::Failed(format!(
        "{too_long} lines are longer than {LONGEST_LINE} bytes, and were left out"
    )))
}

/// Returns the host of a URL as crawl logs have them, in small letters.
fn host(url: &[u8]) -> Option<String> {
    let url = std::str::from_utf8(url).ok()?;
    let name = url
        .strip_prefix("dns:")
        .or_else(|| url.strip_prefix("whois:"));
    if let Some(name) = name {
        let name = name.trim_start_matches('/');
        let name = name.split(['?', '/']).next()?;
        return Some(Host::parse(name).ok()?.to_string());
    }
    // A host is read by the rules of the web, whatever the scheme.
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?;
    Some(Host::parse(host).map_or_else(|_| host.to_ascii_lowercase(), |host| host.to_string()))
}

/// Whether a host is a domain, or below it.
fn is_within(host: &str, domain: &str) -> bool {
    let host = host.trim_end_matches('.');
    host.strip_suffix(domain)
        .is_some_and(|before| before.is_empty() || before.ends_with('.'))
}
