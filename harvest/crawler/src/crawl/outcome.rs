//! The progress of a crawl, and its outcome.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::frontier::QueueLengths;

/// The reason why a crawl has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CrawlEnd {
    /// No URI is left that may be fetched.
    Finished,
    /// A person has ended it.
    Terminated,
    /// It is to be gone on with later.
    Suspended,
    /// Its time is over.
    TimeLimit,
    /// As many bytes as it may have.
    DataLimit,
    /// As many URIs as it may have.
    ObjectLimit,
    /// Nothing was finished for too long, and only tries that failed before are left.
    Idle,
    /// Its frontier is lost: it cannot go on, and what it has recorded is all there is.
    Broken,
}

/// The progress of a crawl.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CrawlProgress {
    /// The URIs that were fetched, with any status of their host.
    pub fetched: u64,
    /// The bytes of their records.
    pub bytes: u64,
    /// The URIs that could not be fetched, however often they were tried.
    pub failed: u64,
    /// The URIs that wait.
    pub queued: u64,
    /// The fetches under way.
    pub under_way: u64,
    /// The queues that have their turns.
    pub active_queues: u64,
    /// The queues that have URIs and are out of budget.
    pub retired_queues: u64,
    /// The lengths of the queues.
    pub queues: QueueLengths,
    /// The patterns under quarantine.
    pub quarantined: u64,
    /// Whether it pauses.
    pub is_paused: bool,
    /// Whether it waits for room on the disk: less than [`super::MIN_FREE`] is left.
    pub lacks_space: bool,
}

/// The outcome of a crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlOutcome {
    /// The reason why it has ended.
    pub end: CrawlEnd,
    /// Its last progress.
    pub progress: CrawlProgress,
    /// The number of outcomes that were taken back when it was gone on with.
    pub taken_back: u64,
    /// The time that it went on, in all processes together and without pauses.
    pub duration: Duration,
    /// The number of URIs that were not fetched, by host.
    pub remaining: BTreeMap<String, u64>,
    /// The patterns under quarantine, each with the number of its URIs that are held back.
    pub quarantined: Vec<(String, u64)>,
    /// Seeds that failed, each with the reason by the number of a status; the first thousand.
    #[serde(default)]
    pub failing_seeds: Vec<(String, i32)>,
    /// The connections at its end.
    #[serde(default)]
    pub connections: Vec<ConnectionSnapshot>,
}

/// A connection, by its number in the crawl log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionSnapshot {
    /// The number.
    pub number: u32,
    /// The URI that it fetches; `None`: it waits for one.
    pub uri: Option<String>,
    /// The time that it has fetched it.
    pub elapsed: Duration,
}
