//! `processors-report.txt`: what each stage of the crawler has done, by the chains of Heritrix.
//!
//! Owns which stages there are, and the counters of them that a crawl log shows. The crawler adds stages and counters
//! that no log has (links that were extracted, records that were written). A counter that nobody counted is not in the
//! report.

use archive_formats::crawl_log::{CrawlLogLine, escape_blanks};
use archive_formats::date::Stamp;
use harvest_policy::account::Quota;
use harvest_policy::status::FetchStatus;
use jiff::Timestamp;

use crate::novelty::LineNovelty;
use crate::text::ReportText;

/// The name of the report.
pub const FILE_NAME: &str = "processors-report.txt";

/// A chain of stages, as Heritrix has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProcessorChain {
    /// Before a URI goes into its queue.
    Candidate,
    /// From the preconditions to the extraction of links.
    Fetch,
    /// Writing, and what becomes of the URI.
    Disposition,
}

impl ProcessorChain {
    const ALL: [Self; 3] = [Self::Candidate, Self::Fetch, Self::Disposition];

    fn title(self) -> &'static str {
        match self {
            Self::Candidate => "CandidateChain",
            Self::Fetch => "FetchChain",
            Self::Disposition => "DispositionChain",
        }
    }
}

/// A stage of the crawler and its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageReport {
    /// The chain that the stage is part of.
    pub chain: ProcessorChain,
    /// The name of the stage.
    pub name: String,
    /// The counters of the stage, in the order in which they are written.
    pub counters: Vec<(String, u64)>,
}

/// Writes the stages by chain, and within a chain in the order in which they are given.
pub fn processors_report(job: &str, time: Timestamp, stages: &[StageReport]) -> String {
    let mut text = ReportText::default();
    text.push_line(format_args!(
        "Processors report - {}",
        Stamp::from_time(time)
    ));
    text.push_line(format_args!("  Job being crawled: {}", escape_blanks(job)));
    for chain in ProcessorChain::ALL {
        let stages: Vec<_> = stages.iter().filter(|stage| stage.chain == chain).collect();
        text.push_line(format_args!(
            "\n{} - {} processors",
            chain.title(),
            stages.len()
        ));
        for stage in stages {
            text.push_line(format_args!("\nProcessor: {}", escape_blanks(&stage.name)));
            for (name, count) in &stage.counters {
                text.push_line(format_args!("  {name}: {count}"));
            }
        }
    }
    text.into_string()
}

/// The counters of stages that a crawl log shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StageCounters {
    out_of_scope: u64,
    traps: u64,
    too_many_hops: u64,
    byte_quota: u64,
    object_quota: u64,
    other_quota: u64,
    robots: u64,
    dns: FetchCounters,
    http: FetchCounters,
    duplicates: u64,
    not_modified: u64,
    retries: u64,
    deleted: u64,
}

/// The URIs of a protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FetchCounters {
    answered: u64,
    failed: u64,
}

impl FetchCounters {
    fn add(&mut self, status: FetchStatus) {
        self.answered += u64::from(status.is_success());
        self.failed += u64::from(status.is_failure());
    }

    fn named_counters(self) -> Vec<(String, u64)> {
        named_counters(&[
            ("URIs answered", self.answered),
            ("URIs failed", self.failed),
        ])
    }
}

impl StageCounters {
    /// Counts a line of a crawl log.
    pub(crate) fn add_line(&mut self, line: &CrawlLogLine) {
        let status = FetchStatus::from_number(line.status);
        let scheme = line.uri.split(':').next().unwrap_or_default();
        if scheme.eq_ignore_ascii_case("dns") {
            self.dns.add(status);
        } else if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") {
            self.http.add(status);
        }
        let has = |quota: Quota| {
            line.annotations
                .iter()
                .any(|text| text == quota.annotation())
        };
        match status {
            FetchStatus::OUT_OF_SCOPE => self.out_of_scope += 1,
            FetchStatus::BLOCKED_BY_USER => self.traps += 1,
            FetchStatus::TOO_MANY_LINK_HOPS | FetchStatus::TOO_MANY_EMBED_HOPS => {
                self.too_many_hops += 1;
            }
            FetchStatus::BLOCKED_BY_QUOTA if has(Quota::Bytes) => self.byte_quota += 1,
            FetchStatus::BLOCKED_BY_QUOTA if has(Quota::Successes) => self.object_quota += 1,
            FetchStatus::BLOCKED_BY_QUOTA => self.other_quota += 1,
            FetchStatus::ROBOTS_PRECLUDED => self.robots += 1,
            FetchStatus::DELETED_BY_OPERATOR => self.deleted += 1,
            _ => {}
        }
        if status.is_success() {
            match LineNovelty::from_line(line) {
                LineNovelty::Novel => {}
                LineNovelty::Duplicate => self.duplicates += 1,
                LineNovelty::NotModified => self.not_modified += 1,
            }
        }
        let tries = line.annotations.iter().find_map(|text| tries(text));
        let retries = tries.unwrap_or(1).saturating_sub(1);
        self.retries = self.retries.saturating_add(retries);
    }

    /// Returns the stages with these counters.
    pub(crate) fn stage_reports(&self) -> Vec<StageReport> {
        let stage = |chain, name: &str, counters| StageReport {
            chain,
            name: name.to_owned(),
            counters,
        };
        vec![
            stage(
                ProcessorChain::Candidate,
                "Scope",
                named_counters(&[
                    ("URIs out of scope", self.out_of_scope),
                    ("URIs blocked as crawler traps", self.traps),
                    ("URIs after too many hops", self.too_many_hops),
                ]),
            ),
            stage(
                ProcessorChain::Fetch,
                "Quota",
                named_counters(&[
                    ("URIs over the byte limit", self.byte_quota),
                    ("URIs over the object limit", self.object_quota),
                    ("URIs over another limit", self.other_quota),
                ]),
            ),
            stage(
                ProcessorChain::Fetch,
                "Robots",
                named_counters(&[("URIs precluded", self.robots)]),
            ),
            stage(ProcessorChain::Fetch, "FetchDNS", self.dns.named_counters()),
            stage(
                ProcessorChain::Fetch,
                "FetchHTTP",
                self.http.named_counters(),
            ),
            stage(
                ProcessorChain::Disposition,
                "Deduplication",
                named_counters(&[
                    ("duplicate URIs", self.duplicates),
                    ("not-modified URIs", self.not_modified),
                ]),
            ),
            stage(
                ProcessorChain::Disposition,
                "Frontier",
                named_counters(&[
                    ("retries", self.retries),
                    ("URIs deleted by the operator", self.deleted),
                ]),
            ),
        ]
    }
}

/// Returns the number of tries of an annotation such as `3t`.
fn tries(annotation: &str) -> Option<u64> {
    let digits = annotation.strip_suffix('t')?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

fn named_counters(counters: &[(&str, u64)]) -> Vec<(String, u64)> {
    let counters = counters.iter();
    counters
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a stage is listed under another chain, or a chain without stages is left out.
    #[test]
    fn stages_stand_under_their_chain() {
        let stage = |chain, name: &str| StageReport {
            chain,
            name: name.to_owned(),
            counters: vec![("URIs handled".to_owned(), 3)],
        };
        let stages = [
            stage(ProcessorChain::Disposition, "Writer"),
            stage(ProcessorChain::Fetch, "FetchHTTP"),
        ];
        let time = "2021-07-05T15:20:39Z".parse().unwrap();
        assert_eq!(
            processors_report("7-1", time, &stages),
            "Processors report - 20210705152039\n  Job being crawled: 7-1\n\n\
             CandidateChain - 0 processors\n\n\
             FetchChain - 1 processors\n\nProcessor: FetchHTTP\n  URIs handled: 3\n\n\
             DispositionChain - 1 processors\n\nProcessor: Writer\n  URIs handled: 3\n"
        );
    }

    /// Fails if a text that only ends like a number of tries counts as one.
    #[test]
    fn tries_are_digits_and_a_letter() {
        for (annotation, expected) in [
            ("3t", Some(3)),
            ("+3t", None),
            ("t", None),
            ("3", None),
            ("99999999999999999999t", None),
            ("content-t", None),
        ] {
            assert_eq!(tries(annotation), expected, "{annotation}");
        }
    }
}
