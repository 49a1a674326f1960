//! The sums of a crawl: one pass over the lines of its crawl log.
//!
//! Owns what is counted, and under which host, media type, status, source and seed. Memory is bounded by their number,
//! and by limits where a host can invent them. The texts are in the part `reports`, the counters of the stages of the
//! crawler in [`crate::processors`].
//!
//! As in Heritrix, a URI counts for its host, media type, status and source once it was fetched (status above zero).
//! Its bytes are those of the record (annotation `content-size:N`), or else the size in field 3.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use archive_formats::crawl_log::CrawlLogLine;
use harvest_policy::status::FetchStatus;
use url::Url;

use crate::log::{UnreadableLine, UnreadableLines};
use crate::novelty::LineNovelty;
use crate::processors::{StageCounters, StageReport};

mod reports;

pub use reports::CrawlSummary;

/// The limits of the names that have a row of their own: their number, and the bytes of each.
#[derive(Clone, Copy, Debug)]
struct RowLimits {
    rows: usize,
    name: usize,
}

/// A host name has at most 255 bytes (RFC 1035 §2.3.4).
const HOSTS: RowLimits = RowLimits {
    rows: 1_000_000,
    name: 255,
};

/// Hosts invent media types. A name has at most 255 bytes (RFC 6838 §4.2).
const MEDIA_TYPES: RowLimits = RowLimits {
    rows: 10_000,
    name: 255,
};

/// Statuses are numbers.
const STATUSES: RowLimits = RowLimits {
    rows: 10_000,
    name: 11,
};

/// Sources are seeds.
const SOURCES: RowLimits = RowLimits {
    rows: 1_000_000,
    name: 4096,
};

/// The row of everything that has no row of its own.
const OTHERS: &str = "(others)";

/// The host of `dns:` URIs that were answered.
const DNS: &str = "dns:";

/// A number of URIs, and of the bytes in their records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UriAmount {
    /// The number of URIs.
    pub uris: u64,
    /// The number of bytes in the records of those URIs.
    pub bytes: u64,
}

impl AddAssign for UriAmount {
    fn add_assign(&mut self, other: Self) {
        self.uris = self.uris.saturating_add(other.uris);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// The URIs that were fetched, by what was known of their payload before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoveltyAmounts {
    /// The payload is new.
    pub novel: UriAmount,
    /// The payload has the digest of an earlier one.
    pub duplicate: UriAmount,
    /// The host said that nothing has changed.
    pub not_modified: UriAmount,
}

impl NoveltyAmounts {
    /// Returns the sum of all three.
    pub fn total(&self) -> UriAmount {
        let mut total = self.novel;
        total += self.duplicate;
        total += self.not_modified;
        total
    }

    fn amount_mut(&mut self, line: &CrawlLogLine) -> &mut UriAmount {
        match LineNovelty::from_line(line) {
            LineNovelty::Novel => &mut self.novel,
            LineNovelty::Duplicate => &mut self.duplicate,
            LineNovelty::NotModified => &mut self.not_modified,
        }
    }
}

/// The sums of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HostSums {
    fetched: NoveltyAmounts,
    robots_precluded: u64,
}

/// A seed and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SeedOutcome {
    /// The seed as it was given.
    seed: String,
    /// The status of the last line of the seed; 0 without a line.
    status: i32,
    /// The target of the redirect of the seed.
    redirect: Option<String>,
}

/// The sums of a crawl.
#[derive(Clone, Debug, Default)]
pub struct CrawlStatistics {
    /// The seeds, by the URI in the form that a crawl log has.
    seeds: BTreeMap<String, SeedOutcome>,
    hosts: NamedRows<HostSums>,
    media_types: NamedRows<UriAmount>,
    statuses: NamedRows<u64>,
    sources: NamedRows<NamedRows<u64>>,
    processed: u64,
    failures: u64,
    disregarded: u64,
    fetched: NoveltyAmounts,
    stages: StageCounters,
    unreadable: UnreadableLines,
}

/// Sums by name. Names beyond a limit share one row.
#[derive(Clone, Debug, Default)]
struct NamedRows<V> {
    named: BTreeMap<String, V>,
    others: Option<V>,
}

impl<V: Default> NamedRows<V> {
    fn row(&mut self, name: &str, limits: RowLimits) -> &mut V {
        let is_known = self.named.contains_key(name);
        if name.len() > limits.name || (!is_known && self.named.len() >= limits.rows) {
            return self.others.get_or_insert_default();
        }
        self.named.entry(name.to_owned()).or_default()
    }

    /// Returns all rows, by name.
    fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        let others = self.others.as_ref().map(|value| (OTHERS, value));
        let named = self.named.iter();
        named
            .map(|(name, value)| (name.as_str(), value))
            .chain(others)
    }

    /// Returns all rows: the largest first, equal ones by name.
    fn by_size(&self, size: impl Fn(&V) -> u64) -> Vec<(&str, &V)> {
        let mut rows: Vec<_> = self.iter().collect();
        rows.sort_by(|one, other| size(other.1).cmp(&size(one.1)).then(one.0.cmp(other.0)));
        rows
    }
}

impl CrawlStatistics {
    /// Begins with the seeds of the job, one URI each. A seed without a line will be reported as not crawled.
    ///
    /// As in Heritrix, a seed without a scheme is an `http` URI.
    pub fn new<S: Into<String>>(seeds: impl IntoIterator<Item = S>) -> Self {
        let outcomes = seeds.into_iter().map(|seed| {
            let seed = seed.into();
            let outcome = SeedOutcome {
                seed: seed.clone(),
                ..SeedOutcome::default()
            };
            let uri = if seed.contains("://") {
                normal_uri(&seed)
            } else {
                normal_uri(&format!("http://{}", seed.trim()))
            };
            (uri, outcome)
        });
        Self {
            seeds: outcomes.collect(),
            ..Self::default()
        }
    }

    /// Counts a line.
    pub fn add_line(&mut self, line: &CrawlLogLine) {
        let status = FetchStatus::from_number(line.status);
        self.processed += 1;
        self.failures += u64::from(status.is_failure());
        self.disregarded += u64::from(status.is_disregarded());
        self.stages.add_line(line);
        self.add_to_seeds(line);
        let host = host_of(&line.uri).unwrap_or_else(|| "-".to_owned());
        if !status.is_success() {
            let sums = self.hosts.row(&host, HOSTS);
            sums.robots_precluded += u64::from(status == FetchStatus::ROBOTS_PRECLUDED);
            return;
        }
        let amount = UriAmount {
            uris: 1,
            bytes: line.content_size().or(line.size).unwrap_or(0),
        };
        *self.fetched.amount_mut(line) += amount;
        let is_dns = status == FetchStatus::DNS_SUCCESS;
        let row = if is_dns { DNS } else { &host };
        *self.hosts.row(row, HOSTS).fetched.amount_mut(line) += amount;
        let media_type = line.media_type.as_deref().unwrap_or("unknown");
        *self.media_types.row(media_type, MEDIA_TYPES) += amount;
        *self.statuses.row(&line.status.to_string(), STATUSES) += 1;
        if let Some(source) = &line.source {
            let hosts = self.sources.row(source, SOURCES);
            *hosts.row(&host, HOSTS) += 1;
        }
    }

    /// Counts a line that cannot be read. `crawl-report.txt` names it.
    pub fn add_unreadable(&mut self, line: UnreadableLine) {
        self.unreadable.add(line);
    }

    /// Returns the stages of the crawler with the counters that the crawl log shows.
    ///
    /// A URI that its scope left out has a line only if it was already in a queue. "Failed" leaves out the URIs that
    /// were disregarded. A retry is a try after the first one of a URI (annotation `Nt`).
    pub fn stage_reports(&self) -> Vec<StageReport> {
        self.stages.stage_reports()
    }

    /// Returns the lines that could not be read.
    pub fn unreadable(&self) -> &UnreadableLines {
        &self.unreadable
    }

    fn add_to_seeds(&mut self, line: &CrawlLogLine) {
        if let Some(outcome) = self.seeds.get_mut(&normal_uri(&line.uri)) {
            outcome.status = line.status;
        }
        if line.hops == "R"
            && let Some(via) = &line.via
            && let Some(outcome) = self.seeds.get_mut(&normal_uri(via))
        {
            outcome.redirect = Some(line.uri.clone());
        }
    }
}

/// Returns a URI in the form that URLs have once they were read (URL Standard), without a fragment, so that
/// `http://a.dk#top` and `http://a.dk/` are one seed.
fn normal_uri(uri: &str) -> String {
    let trimmed = uri.trim();
    match Url::parse(trimmed) {
        Ok(mut url) => {
            url.set_fragment(None);
            url.into()
        }
        Err(_) => trimmed.to_owned(),
    }
}

/// Returns the host of a URI, as URLs have it: in small letters, international names in ASCII (`xn--…`). Of a `dns:`
/// URI (RFC 4501) the name that was asked for. `None` if it has no host.
pub(crate) fn host_of(uri: &str) -> Option<String> {
    if let Some(name) = uri.strip_prefix(DNS) {
        let name = match name.strip_prefix("//") {
            Some(authority) => authority.split_once('/')?.1,
            None => name,
        };
        let name = name.split(['?', ';']).next()?;
        return (!name.is_empty()).then(|| name.to_ascii_lowercase());
    }
    let url = Url::parse(uri).ok()?;
    let host = url.host_str().filter(|host| !host.is_empty())?;
    Some(host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
