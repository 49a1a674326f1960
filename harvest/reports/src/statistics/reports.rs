//! The reports that are made of the sums of a crawl (Heritrix 3, end-of-crawl reports).
//!
//! Owns their columns and orders. A line has no blank at its end. Names have no blanks in them, so that the columns of
//! a line are what is between its blanks.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use archive_formats::crawl_log::escape_blanks;

use super::{CrawlStatistics, DNS, HostSums, NoveltyAmounts, UriAmount};
use crate::progress::EndMessage;
use crate::text::{ByteCount, DurationText, Hundredths, ReportText};

/// The facts of a crawl that no log has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrawlSummary {
    /// The name of the crawl.
    pub name: String,
    /// The way in which the crawl ended.
    pub end: EndMessage,
    /// The time for which the crawl ran, without pauses.
    pub duration: Duration,
}

impl CrawlStatistics {
    /// Writes all reports, each with its file name. `remaining`: the number of URIs that the frontier still has for a
    /// host.
    pub fn write_reports(
        &self,
        summary: &CrawlSummary,
        remaining: impl IntoIterator<Item = (String, u64)>,
    ) -> [(&'static str, String); 6] {
        [
            ("crawl-report.txt", self.crawl_report(summary)),
            ("seeds-report.txt", self.seeds_report()),
            ("hosts-report.txt", self.hosts_report(remaining)),
            ("mimetype-report.txt", self.mimetype_report()),
            ("responsecode-report.txt", self.responsecode_report()),
            ("source-report.txt", self.source_report()),
        ]
    }

    /// Writes `crawl-report.txt`: lines `key: value`.
    ///
    /// Hosts that were visited are those of which something was fetched. Rates are those of the whole crawl. Lines of
    /// the log that could not be read are added at the end, if there are any.
    pub fn crawl_report(&self, summary: &CrawlSummary) -> String {
        let crawled = self.seeds.values().filter(|seed| seed.status > 0).count();
        let visited =
            |(host, sums): (&str, &HostSums)| host != DNS && sums.fetched.total().uris > 0;
        let total = self.fetched.total();
        let NoveltyAmounts {
            novel,
            duplicate,
            not_modified,
        } = self.fetched;
        let mut text = ReportText::default();
        text.push_line(format_args!("crawl name: {}", escape_blanks(&summary.name)));
        text.push_line(format_args!("crawl status: {}", summary.end));
        text.push_line(format_args!(
            "duration: {}\n",
            DurationText(summary.duration)
        ));
        text.push_line(format_args!("seeds crawled: {crawled}"));
        text.push_line(format_args!(
            "seeds uncrawled: {}\n",
            self.seeds.len() - crawled
        ));
        let hosts = self.hosts.iter().filter(|row| visited(*row)).count();
        text.push_line(format_args!("hosts visited: {hosts}\n"));
        text.push_line(format_args!("URIs processed: {}", self.processed));
        text.push_line(format_args!("URI successes: {}", total.uris));
        text.push_line(format_args!("URI failures: {}", self.failures));
        text.push_line(format_args!("URI disregards: {}\n", self.disregarded));
        text.push_line(format_args!("novel URIs: {}", novel.uris));
        text.push_line(format_args!("duplicate-by-hash URIs: {}", duplicate.uris));
        text.push_line(format_args!("not-modified URIs: {}\n", not_modified.uris));
        for (name, amount) in [
            ("total", total),
            ("novel", novel),
            ("duplicate-by-hash", duplicate),
            ("not-modified", not_modified),
        ] {
            text.push_line(format_args!(
                "{name} crawled bytes: {}",
                ByteCount(amount.bytes)
            ));
        }
        let rate = |count| Hundredths::per_second(count, summary.duration);
        text.push_line(format_args!("\nURIs/sec: {}", rate(total.uris)));
        text.push_line(format_args!("KB/sec: {}", rate(total.bytes / 1024).0 / 100));
        if self.unreadable.count() > 0 {
            text.push_line(format_args!(
                "\nunreadable log lines: {}",
                self.unreadable.count()
            ));
            for line in self.unreadable.named_lines() {
                text.push_line(format_args!("unreadable log line: {line}"));
            }
        }
        text.into_string()
    }

    /// Writes `seeds-report.txt`. A seed is `CRAWLED` if it was fetched, whatever its host answered; a seed without a
    /// line has the code 0. The redirect is the URI that the answer named, if that URI was new to the crawl.
    ///
    /// In Heritrix' order: 0 first, then failures by rising distance from 0, then statuses from high to low, then by
    /// URI.
    pub fn seeds_report(&self) -> String {
        let mut seeds: Vec<_> = self.seeds.values().collect();
        seeds.sort_by_key(|outcome| (outcome.status > 0, Reverse(outcome.status)));
        let mut text = ReportText::with_header("[code] [status] [seed] [redirect]");
        for outcome in seeds {
            let status = if outcome.status > 0 {
                "CRAWLED"
            } else {
                "NOTCRAWLED"
            };
            let redirect = outcome.redirect.as_deref();
            let redirect =
                redirect.map_or_else(String::new, |uri| format!(" {}", escape_blanks(uri)));
            let seed = escape_blanks(outcome.seed.trim());
            text.push_line(format_args!("{} {status} {seed}{redirect}", outcome.status));
        }
        text.into_string()
    }

    /// Writes `hosts-report.txt`: the hosts with the most fetched URIs first, then those of which nothing was fetched.
    /// `remaining`: the number of URIs that the frontier still has for a host.
    pub fn hosts_report(&self, remaining: impl IntoIterator<Item = (String, u64)>) -> String {
        let mut remaining: BTreeMap<String, u64> = remaining.into_iter().collect();
        let mut text = ReportText::with_header(
            "[#urls] [#bytes] [host] [#robots] [#remaining] [#novel-urls] [#novel-bytes] [#dup-by-hash-urls] \
             [#dup-by-hash-bytes] [#not-modified-urls] [#not-modified-bytes]",
        );
        let mut row = |host: &str, sums: &HostSums, remaining: u64| {
            let total = sums.fetched.total();
            let robots = sums.robots_precluded;
            let fetched = sums.fetched;
            let amounts = [fetched.novel, fetched.duplicate, fetched.not_modified];
            let [novel, duplicate, not_modified] =
                amounts.map(|amount| format!("{} {}", amount.uris, amount.bytes));
            text.push_line(format_args!(
                "{} {} {} {robots} {remaining} {novel} {duplicate} {not_modified}",
                total.uris,
                total.bytes,
                escape_blanks(host),
            ));
        };
        for (host, sums) in self.hosts.by_size(|sums| sums.fetched.total().uris) {
            row(host, sums, remaining.remove(host).unwrap_or(0));
        }
        for (host, count) in remaining {
            row(&host, &HostSums::default(), count);
        }
        text.into_string()
    }

    /// Writes `mimetype-report.txt`: the media types with the most URIs first.
    pub fn mimetype_report(&self) -> String {
        let mut text = ReportText::with_header("[#urls] [#bytes] [mime-types]");
        for (media_type, amount) in self.media_types.by_size(|amount| amount.uris) {
            let UriAmount { uris, bytes } = amount;
            text.push_line(format_args!("{uris} {bytes} {}", escape_blanks(media_type)));
        }
        text.into_string()
    }

    /// Writes `responsecode-report.txt`: the statuses of fetched URIs, the most frequent first. 1 is the answer of a
    /// name server.
    pub fn responsecode_report(&self) -> String {
        let mut text = ReportText::with_header("[#urls] [rescode]");
        for (status, count) in self.statuses.by_size(|count| *count) {
            text.push_line(format_args!("{count} {status}"));
        }
        text.into_string()
    }

    /// Writes `source-report.txt`: for each source the hosts that were fetched from, the one with the most URIs first.
    pub fn source_report(&self) -> String {
        let mut text = ReportText::with_header("[source] [host] [#urls]");
        for (source, hosts) in self.sources.iter() {
            for (host, count) in hosts.by_size(|count| *count) {
                let source = escape_blanks(source);
                let host = escape_blanks(host);
                text.push_line(format_args!("{source} {host} {count}"));
            }
        }
        text.into_string()
    }
}
