//! The harvest report of NetarchiveSuite: objects, bytes and stop reason of each domain of a job.
//!
//! Owns which domain a line of the crawl log counts for, and which reason a domain is given. What a limit of a
//! configuration makes of a reason is decided where configurations are known.

use std::collections::BTreeMap;

use archive_formats::crawl_log::CrawlLogLine;
use harvest_policy::account::Quota;
use harvest_policy::hops::Hop;
use harvest_policy::status::FetchStatus;

use crate::statistics::host_of;

/// The reason why the harvest of a domain stopped. The numbers are those of NetarchiveSuite's table `historyinfo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StopReason {
    /// Everything was fetched that was found.
    DownloadComplete,
    /// The most objects of the job.
    ObjectLimit,
    /// The most bytes of the job.
    SizeLimit,
    /// The most bytes of the configuration.
    ConfigSizeLimit,
    /// The job was ended before.
    DownloadUnfinished,
    /// The most objects of the configuration.
    ConfigObjectLimit,
    /// The time of the job was over.
    TimeLimit,
}

impl StopReason {
    /// All reasons, by their numbers.
    pub const ALL: [Self; 7] = [
        Self::DownloadComplete,
        Self::ObjectLimit,
        Self::SizeLimit,
        Self::ConfigSizeLimit,
        Self::DownloadUnfinished,
        Self::ConfigObjectLimit,
        Self::TimeLimit,
    ];

    /// Returns the number in `historyinfo.stopreason`.
    pub const fn number(self) -> u8 {
        match self {
            Self::DownloadComplete => 0,
            Self::ObjectLimit => 1,
            Self::SizeLimit => 2,
            Self::ConfigSizeLimit => 3,
            Self::DownloadUnfinished => 4,
            Self::ConfigObjectLimit => 5,
            Self::TimeLimit => 6,
        }
    }

    /// Returns the reason with a number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Returns the reason for domains of which the crawl log says nothing else, by the last line of
    /// `progress-statistics.log` ([`last_line`](crate::progress::last_line)); `None` if there is no such line.
    ///
    /// By parts of the line, as NetarchiveSuite reads it. A crawl that did not end, or that an operator has ended, is
    /// unfinished. One that a limit of data or documents has ended counts as complete.
    pub fn from_last_progress_line(line: Option<&str>) -> Self {
        match line {
            Some(line) if line.contains("CRAWL ENDED") => {
                if line.contains("Ended by operator") {
                    Self::DownloadUnfinished
                } else if line.contains("Timelimit hit") {
                    Self::TimeLimit
                } else {
                    Self::DownloadComplete
                }
            }
            _ => Self::DownloadUnfinished,
        }
    }
}

/// The harvest of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainReport {
    /// The number of URIs with a status of zero or more, without `dns:` and robots.txt.
    pub objects: u64,
    /// The number of bytes in the records of those URIs (annotation `content-size:N`).
    pub bytes: u64,
    /// The reason why the harvest of the domain stopped.
    pub stop_reason: StopReason,
}

/// The harvest of the domains of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HarvestReport {
    default_reason: StopReason,
    disregard_seed: bool,
    domains: BTreeMap<String, DomainReport>,
    without_domain: u64,
}

impl HarvestReport {
    /// Begins without domains.
    ///
    /// With `disregard_seed` (NetarchiveSuite's `disregardSeedURLInfo`) a line counts for the domain of its URI;
    /// without, for the domain of the seed that it came from, if the line names one.
    pub fn new(default_reason: StopReason, disregard_seed: bool) -> Self {
        Self {
            default_reason,
            disregard_seed,
            domains: BTreeMap::new(),
            without_domain: 0,
        }
    }

    /// Counts a line. `domain_of` gives the domain of a host name, which it gets as URLs have it (`xn--…`).
    pub fn add_line(&mut self, line: &CrawlLogLine, domain_of: impl Fn(&str) -> Option<String>) {
        let domain = |uri: &str| host_of(uri).and_then(|host| domain_of(&host));
        let source = line.source.as_deref().filter(|_| !self.disregard_seed);
        let Some(domain) = source.and_then(domain).or_else(|| domain(&line.uri)) else {
            self.without_domain += 1;
            return;
        };
        let default_reason = self.default_reason;
        let report = self.domains.entry(in_unicode(&domain));
        let report = report.or_insert(DomainReport {
            objects: 0,
            bytes: 0,
            stop_reason: default_reason,
        });
        // What goes before every URI of a host (`dns:`, robots.txt) is no object that was harvested.
        if line.status >= 0 && !line.hops.ends_with(Hop::Prerequisite.letter()) {
            report.objects = report.objects.saturating_add(1);
            report.bytes = report
                .bytes
                .saturating_add(line.content_size().unwrap_or(0));
        }
        if report.stop_reason == default_reason {
            report.stop_reason = quota_reason(line).unwrap_or(default_reason);
        }
    }

    /// Returns the domains in Unicode, in their order, and their reports.
    pub fn domains(&self) -> impl Iterator<Item = (&str, &DomainReport)> {
        let domains = self.domains.iter();
        domains.map(|(domain, report)| (domain.as_str(), report))
    }

    /// Returns the number of lines that count for no domain.
    pub fn lines_without_domain(&self) -> u64 {
        self.without_domain
    }
}

/// Returns the quota that has blocked a URI.
fn quota_reason(line: &CrawlLogLine) -> Option<StopReason> {
    if FetchStatus::from_number(line.status) != FetchStatus::BLOCKED_BY_QUOTA {
        return None;
    }
    line.annotations.iter().find_map(|annotation| {
        if annotation == Quota::Bytes.annotation() {
            Some(StopReason::SizeLimit)
        } else if annotation == Quota::Successes.annotation() {
            Some(StopReason::ObjectLimit)
        } else {
            None
        }
    })
}

/// Returns a domain in Unicode (UTS #46), as NetarchiveSuite stores it. One that is not valid stays as it is.
pub fn in_unicode(domain: &str) -> String {
    match idna::domain_to_unicode(domain) {
        (unicode, Ok(())) => unicode,
        (_, Err(_)) => domain.to_owned(),
    }
}

#[cfg(test)]
mod tests;
