//! The progress of a crawl, and its outcome.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::frontier::QueueLengths;

/// The reason why a crawl has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CrawlEnd {
    /// No URI is left that may be fetched.
    Finished,
    /// A person has ended the crawl.
    Terminated,
    /// The crawl is to be resumed later.
    Suspended,
    /// The crawl has run for its longest time.
    TimeLimit,
    /// The crawl has as many bytes as it may have.
    DataLimit,
    /// The crawl has as many URIs as it may have.
    ObjectLimit,
    /// Nothing was finished for too long, and only tries that failed before are left.
    Idle,
    /// The frontier is lost: the crawl cannot go on, and has only what was recorded so far.
    Broken,
}

/// The progress of a crawl.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlProgress {
    /// The number of URIs that were fetched, with any status of their host.
    pub fetched: u64,
    /// The number of bytes in the records of those URIs.
    pub bytes: u64,
    /// The number of URIs that could not be fetched, however often they were tried.
    pub failed: u64,
    /// The number of URIs that wait.
    pub queued: u64,
    /// The number of those that wait for their next try, or for the rest of their host.
    pub deferred: u64,
    /// The time at which the first of these is tried.
    pub next_try: Option<Timestamp>,
    /// The number of hosts that rest because they cannot be reached, or have asked for patience.
    pub resting_hosts: u64,
    /// The number of hosts that are given up.
    pub lost_hosts: u64,
    /// The number of fetches under way.
    pub under_way: u64,
    /// The number of bytes that these have brought so far.
    pub bytes_under_way: u64,
    /// The number of queues that have their turns.
    pub active_queues: u64,
    /// The number of queues that have URIs and are out of budget.
    pub retired_queues: u64,
    /// The lengths of the queues.
    pub queues: QueueLengths,
    /// The number of patterns under quarantine.
    pub quarantined: u64,
    /// Whether the crawl pauses.
    pub is_paused: bool,
    /// Whether the crawl waits for room on the disk: less than [`super::MIN_FREE`] is left.
    pub lacks_space: bool,
    /// Whether the crawl waits for its proxy, which cannot be used.
    #[serde(default)]
    pub lacks_proxy: bool,
}

/// The outcome of a crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlOutcome {
    /// The reason why the crawl has ended.
    pub end: CrawlEnd,
    /// The last progress of the crawl.
    pub progress: CrawlProgress,
    /// The number of outcomes that were taken back when the crawl was resumed.
    pub taken_back: u64,
    /// The time for which the crawl went on, in all processes together and without pauses.
    pub duration: Duration,
    /// The number of URIs that were not fetched, by host.
    pub remaining: BTreeMap<String, u64>,
    /// The number of URIs that were not fetched, by the host of the seed that they came from.
    #[serde(default)]
    pub remaining_of_seeds: BTreeMap<String, u64>,
    /// The patterns under quarantine, each with the number of its URIs that are held back.
    pub quarantined: Vec<(String, u64)>,
    /// Seeds that failed, each with the reason by the number of a status; the first thousand.
    pub failing_seeds: Vec<(String, i32)>,
    /// The connections at the end of the crawl.
    pub connections: Vec<ConnectionSnapshot>,
}

/// A connection, by its number in the crawl log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionSnapshot {
    /// The number of the connection.
    pub number: u32,
    /// The URI that the connection fetches; `None` if it waits for one.
    pub uri: Option<String>,
    /// The time since the fetch of that URI began.
    pub elapsed: Duration,
}
