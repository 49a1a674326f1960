//! What a crawl does, and waits for, at one moment, for a person who watches it.
//!
//! Bounded: a question says how much it wants, and the answer how much more there is.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::CrawlProgress;

/// A question for the view of a crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewQuestion {
    /// The most entries of each list.
    pub most: usize,
    /// The hosts and domains that the question is about, without their subdomains' names; empty: about all.
    pub about: Vec<String>,
}

impl ViewQuestion {
    /// Returns whether a host, a queue, or a host with its port is asked about: it is named, or lies below a name.
    pub fn is_about(&self, name: &str) -> bool {
        let host = name.rsplit_once(':').map_or(name, |(host, _)| host);
        self.about.is_empty()
            || self.about.iter().any(|asked| {
                let above = host.strip_suffix(asked.as_str());
                above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
            })
    }
}

/// The view of a crawl at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlView {
    /// The time of the view.
    pub time: Timestamp,
    /// The seconds for which the crawl has run, in all processes together and without pauses.
    pub running_seconds: u64,
    /// Whether nothing new is fetched: the crawl ends once its fetches have.
    pub is_ending: bool,
    /// The figures of the crawl.
    pub progress: CrawlProgress,
    /// The fetches under way, the longest first.
    pub fetches: ViewList<FetchView>,
    /// The queues that have URIs, those with most of them first.
    pub queues: ViewList<QueueView>,
    /// The hosts that rest or are given up, those for which most URIs wait first.
    pub hosts: ViewList<HostView>,
    /// The URIs that wait for a moment, the next one first.
    pub retries: ViewList<RetryView>,
    /// The seeds whose last try failed.
    pub failing_seeds: ViewList<SeedView>,
    /// The patterns under quarantine, and the rules by which people reject URIs, with what each holds back.
    pub held: ViewList<HeldView>,
}

/// The first entries of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewList<T> {
    /// The entries.
    pub entries: Vec<T>,
    /// The number of further ones.
    pub more: u64,
}

impl<T> ViewList<T> {
    /// Keeps the first entries of a list.
    pub fn cut_list(mut entries: Vec<T>, most: usize) -> Self {
        let more = entries.len().saturating_sub(most) as u64;
        entries.truncate(most);
        Self { entries, more }
    }
}

/// A fetch under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchView {
    /// The URI that is fetched.
    pub uri: String,
    /// The address that is asked.
    pub address: String,
    /// The milliseconds since the fetch began.
    pub milliseconds: u64,
    /// The bytes that have come.
    pub bytes: u64,
}

/// What a queue waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueWait {
    /// The end of its fetch.
    Fetch,
    /// An answer of a name server or the robots.txt of a host.
    Answer,
    /// Its place at an address that other queues ask, too.
    Address,
    /// The end of the pause after its last fetch.
    Pause,
    /// Its turn among the other queues.
    Turn,
    /// The rest of hosts, and the time of further tries: nothing else is left in it.
    Retry,
    /// A higher limit: it has what it may have.
    Limit,
}

/// A queue of URIs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueView {
    /// The name of the queue.
    pub name: String,
    /// The number of URIs that wait in it.
    pub waiting: u64,
    /// The number of URIs that wait beside it, for a host or for their next try.
    pub deferred: u64,
    /// The number of URIs under way.
    pub under_way: u64,
    /// The number of URIs that were fetched.
    pub fetched: u64,
    /// The number of tries that failed.
    pub failed: u64,
    /// The number of bytes in their records.
    pub bytes: u64,
    /// What it waits for.
    pub wait: QueueWait,
    /// The time until which it waits, where that is known.
    pub until: Option<Timestamp>,
    /// The URI that it would give next.
    pub next: Option<String>,
}

/// A host in trouble.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostView {
    /// The host and its port.
    pub host: String,
    /// The reason.
    pub trouble: HostTroubleView,
    /// The time until which it rests; `None`: it is given up.
    pub until: Option<Timestamp>,
    /// The number of tries in a row that have met trouble.
    pub strikes: u32,
    /// The number of URIs that were told to wait for it since the last of them.
    pub waiting: u64,
}

/// The trouble of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostTroubleView {
    /// It cannot be reached.
    Unreachable,
    /// It asks for patience (429, 503).
    Busy,
}

/// A URI that waits for a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryView {
    /// The URI.
    pub uri: String,
    /// The number of tries so far.
    pub tries: u32,
    /// The time at which it comes back.
    pub due: Timestamp,
}

/// A seed whose last try failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeedView {
    /// The seed.
    pub seed: String,
    /// The reason, as words.
    pub reason: String,
}

/// Something that holds URIs back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldView {
    /// The pattern or the rule.
    pub name: String,
    /// Whether a person rejects them; else the quarantine holds them.
    pub is_rejected: bool,
    /// The number of URIs that are held back.
    pub uris: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a question about a domain misses its hosts, or takes in others that only end in its letters.
    #[test]
    fn question_is_about_names_and_what_lies_below() {
        let question = ViewQuestion {
            most: 1,
            about: vec!["example.dk".to_owned()],
        };
        for (name, expected) in [
            ("example.dk", true),
            ("www.example.dk:443", true),
            ("notexample.dk", false),
            ("example.dk.org", false),
        ] {
            assert_eq!(question.is_about(name), expected, "{name}");
        }
        let all = ViewQuestion {
            about: Vec::new(),
            ..question
        };
        assert!(all.is_about("a.b"));
    }
}
