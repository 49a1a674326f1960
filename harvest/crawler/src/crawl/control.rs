//! Requests to a running crawl, and its notices to people.

use std::time::Duration;

use harvest_model::CrawlOrder;
use harvest_policy::account::QueueBudget;
use harvest_policy::hops::HopPath;
use harvest_policy::rejections::RejectionRule;
use harvest_policy::status::FetchStatus;
use tokio::sync::oneshot;
use url::Url;

use super::view::{CrawlView, ViewQuestion};

/// A request to a running crawl.
#[derive(Clone, Debug, PartialEq)]
pub enum CrawlCommand {
    /// The crawl begins no new fetch.
    Pause,
    /// The crawl begins fetches again.
    Resume,
    /// The crawl ends, and records the fetches under way that end soon.
    Terminate,
    /// The crawl ends, to be resumed later.
    Suspend,
    /// Further seeds for the crawl.
    AddSeeds(Vec<Url>),
    /// URIs that are not fetched any more.
    Reject(Vec<RejectionRule>),
    /// Rules by which URIs were rejected, and that hold no more.
    Accept(Vec<RejectionRule>),
    /// Patterns that are freed from quarantine for good.
    Free(Vec<String>),
    /// Failures that are tried again: those that wait for their next try and that a rule covers, and those that were
    /// given up.
    Retry {
        /// The rules for those that wait.
        rules: Vec<RejectionRule>,
        /// The URIs that were given up.
        failed: Vec<FailedUri>,
    },
    /// Another order from now on: its scope, politeness, overlays and the limits of the whole job.
    Change(Box<CrawlOrder>),
    /// The limits of queues, by name, in place of those of the order.
    Budget(Vec<(String, QueueBudget)>),
}

/// A URI that could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedUri {
    /// The URI.
    pub url: Url,
    /// The hops from the seed.
    pub hops: HopPath,
    /// The URI that led to it.
    pub via: Option<String>,
    /// The seed that the way to it began with.
    pub source: Option<String>,
}

/// A question of a person who watches the crawl.
#[derive(Debug)]
pub struct ViewRequest {
    /// What is asked.
    pub question: ViewQuestion,
    /// The way for the answer. A crawl that has ended drops it.
    pub answer: oneshot::Sender<CrawlView>,
}

/// The effect of a request, in words; or why it has none.
pub type ControlAnswer = Result<String, String>;

/// A request that somebody waits for.
#[derive(Debug)]
pub struct ControlRequest {
    /// The request to the crawl.
    pub control: CrawlCommand,
    /// The way for the answer, once what was done is durable. A crawl that has ended drops it.
    pub answer: oneshot::Sender<ControlAnswer>,
}

/// An event that people should know of while a crawl runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrawlNotice {
    /// The crawl resumes where an earlier process has ended.
    Resumed {
        /// The URIs that were fetched.
        fetched: u64,
        /// The URIs that wait.
        queued: u64,
        /// The time for which the crawl has run.
        running: Duration,
        /// Whether a person has paused it: nothing is fetched until it is told to go on.
        is_paused: bool,
    },
    /// A pattern of URIs that only makes more of itself was put under quarantine.
    Quarantined(String),
    /// A host answers with the same words under many patterns of URIs, as at this one: perhaps it says 200 for what is
    /// missing. What is first found behind such pages is under quarantine by this name.
    SameWords(Url, String),
    /// A seed could not be fetched.
    SeedFailed {
        /// The URI of the seed.
        seed: String,
        /// The status that the try ended with.
        status: FetchStatus,
        /// The time until the seed is tried again, and the most tries; `None`: it was the last try.
        again: Option<(Duration, u32)>,
        /// The time without any progress after which the crawl ends.
        idle: Duration,
    },
    /// A host that could not be reached for too long is given up: its URIs are recorded as failed.
    HostGivenUp {
        /// The host and its port.
        host: String,
        /// The time for which the host could not be reached, or has asked for patience.
        unreachable: Duration,
        /// Whether it has asked for patience.
        is_busy: bool,
        /// The number of its URIs that wait.
        waiting: u64,
    },
    /// No name server answers, in the words of the resolver: what needs one waits.
    NoNameServer(String),
    /// The proxy cannot be used, in its words: everything waits.
    NoProxy(String),
    /// Less than [`super::MIN_FREE`] is left on the disk: nothing is fetched until there is more.
    LacksSpace,
}
