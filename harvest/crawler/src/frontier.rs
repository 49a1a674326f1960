//! The URIs that a crawl has still to fetch, on disk.
//!
//! Owns which URI comes next and which were seen. A URI that is handed out stays in its queue until its outcome is committed, so that
//! after the end of the process each of them is fetched again and none is lost. Changes are collected and committed in one
//! batch, logged and not synced: [`Frontier::sync`] is its owner's business, and what was not synced can be taken back. Each queue is read from a remembered place, never
//! over the rows that were deleted. Does not know how a URI is fetched, and decides neither scope nor politeness.
//!
//! In memory: a few dozen bytes for each queue and for each URI under way, at any number of URIs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use archive_db::{Database, DbError, Table};
use harvest_policy::account::{QueueAccount, QueueBudget, QueueLimits, QueueStanding, Quota};
use harvest_policy::canonical::canonical;
use harvest_policy::cost::CostPolicy;
use harvest_policy::queue_rules::QueueRules;
use harvest_policy::status::FetchStatus;
use harvest_policy::turns::{Moment, QueueNumber, Turn, Turns};
use jiff::Timestamp;
use url::Url;

pub use self::changes::Changes;
pub(crate) use self::changes::RecentKeys;
pub use self::open::{FoundFrontier, FrontierSettings, ResumePoint};
pub use self::queues::{QueueLengths, QueueSnapshot};
pub use self::requests::WantedState;
use self::rows::{BudgetRow, HeldRow, PendingRow, QueueRow, RestRow, SeenRow};
pub use self::rows::{FrontierUri, PrerequisiteRow, RecordedPlace, Urgency};
use self::stamp::FrontierStamp;

mod changes;
mod held;
mod open;
mod queues;
mod requests;
mod rows;
mod stamp;

/// The version of the tables.
const VERSION: u32 = 1;

/// The key of the only row of the table `place`, and of the running time in the table `running`.
const PLACE: u8 = 0;

/// The key of the state that a person wants, in the table `running`.
const WANTED_STATE: u8 = 1;

/// The place of a URI: queue, urgency, cost, number.
type UriKey = (u32, u8, u8, u64);

/// A stretch of a queue in which URIs are taken in the order in which they came: those of one urgency and one cost.
type Lane = (u8, u8);

/// A URI as the table of seen ones has it: 128 bits of a keyed hash.
pub type SeenKey = [u8; 16];

/// A URI that was found and belongs to the crawl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The URI.
    pub uri: FrontierUri,
    /// Its canonical form, hashed.
    pub key: SeenKey,
    /// The name of its queue.
    pub queue: String,
    /// Its place among those that are as urgent, by its cost or its hops: the larger, the later.
    pub cost: u8,
}

/// A URI that was handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Its queue.
    pub queue: QueueNumber,
    /// The URI.
    pub uri: FrontierUri,
    key: UriKey,
}

/// The answer to the question what to fetch next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextUri {
    /// This URI.
    Fetch(Box<Lease>),
    /// None before this moment, unless a fetch ends first.
    Later(Moment),
    /// None before a fetch ends.
    Waiting,
    /// None: the crawl is over.
    Over,
}

/// The outcome of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The status with which the try ended.
    pub status: FetchStatus,
    /// The bytes of its records.
    pub bytes: u64,
    /// Whether the URI goes back to its queue.
    pub goes_back: bool,
    /// Until when its queue rests.
    pub rests_until: Moment,
}

/// The part of a queue that the frontier keeps in memory.
#[derive(Debug, Default)]
struct Queue {
    name: String,
    /// Its limits by the order.
    limits: QueueLimits,
    account: QueueAccount,
    is_retired: bool,
    /// Of each lane that has URIs which nobody fetches: how many, and the number from which they are read.
    lanes: BTreeMap<Lane, (u64, u64)>,
    in_flight: u64,
    /// The URIs that were ever put there.
    enqueued: u64,
    /// Whether its last try failed, and is repeated after a rest.
    waits_for_retry: bool,
    /// When a URI was last taken out by this process.
    last_taken: Option<Moment>,
}

/// The frontier of one crawl.
#[derive(Debug)]
pub struct Frontier {
    database: Database,
    uris: Table<UriKey, FrontierUri>,
    rows: Table<String, QueueRow>,
    seen: Table<SeenKey, SeenRow>,
    hosts: Table<String, PrerequisiteRow>,
    pending: Table<u64, PendingRow>,
    place: Table<u8, RecordedPlace>,
    accepted: Table<String, SeenRow>,
    /// By pattern and URI.
    held: Table<(String, String), HeldRow>,
    /// By whether it is under quarantine, and its name.
    patterns: Table<(u8, String), SeenRow>,
    /// The seeds that a person has added.
    added: Table<String, SeenRow>,
    /// The rules by which a person rejects URIs.
    rejected: Table<String, SeenRow>,
    /// By the name of a queue.
    budget_rows: Table<String, BudgetRow>,
    /// By the number of a queue.
    rests: Table<u32, RestRow>,
    /// For how long the crawl has run, in milliseconds.
    running: Table<u8, u64>,
    rules: QueueRules,
    cost: CostPolicy,
    /// The queues that have limits of their own, by name.
    budgets: HashMap<String, QueueBudget>,
    stamp: FrontierStamp,
    /// The time of day at the first moment of this process.
    begin: Timestamp,
    running_time: Duration,
    /// The URIs that were handed out.
    leased: HashSet<UriKey>,
    seen_key: [u8; 32],
    names: HashMap<String, QueueNumber>,
    queues: Vec<Queue>,
    turns: Turns,
    next_number: u64,
    next_pending: u64,
    waiting: u64,
    recent: RecentKeys,
}

impl Frontier {
    fn queue(&self, number: QueueNumber) -> Option<&Queue> {
        self.queues.get(usize::try_from(number.0).ok()?)
    }

    fn queue_mut(&mut self, number: QueueNumber) -> Option<&mut Queue> {
        self.queues.get_mut(usize::try_from(number.0).ok()?)
    }

    /// Hands out the next URI.
    ///
    /// # Errors
    ///
    /// [`DbError`] if a queue cannot be read.
    pub fn next(&mut self, now: Moment) -> Result<NextUri, DbError> {
        let number = match self.turns.next(now) {
            Turn::Of(number) => number,
            Turn::Later(moment) => return Ok(NextUri::Later(moment)),
            Turn::Waiting => return Ok(NextUri::Waiting),
            Turn::Over => return Ok(NextUri::Over),
        };
        let (lease, has_more) = self.take_first(number)?;
        if let Some(queue) = self.queue_mut(number) {
            queue.last_taken = Some(now);
        }
        self.turns.took_uri(number, has_more);
        Ok(NextUri::Fetch(Box::new(lease)))
    }

    /// Takes back a URI that was handed out and not fetched: it comes again where it was, once its queue has rested until a
    /// moment.
    pub fn put_back(&mut self, lease: &Lease, until: Moment) {
        if !self.leased.remove(&lease.key) {
            return;
        }
        let (_, urgency, cost, number) = lease.key;
        if let Some(queue) = self.queue_mut(lease.queue) {
            queue.in_flight = queue.in_flight.saturating_sub(1);
            let lane = queue.lanes.entry((urgency, cost)).or_insert((0, number));
            *lane = (lane.0.saturating_add(1), lane.1.min(number));
        }
        self.waiting = self.waiting.saturating_add(1);
        self.turns.put_off(lease.queue, until);
        let precedence = self.precedence(lease.queue);
        self.turns.has_uri(lease.queue, precedence);
    }

    /// Takes the first URI out of a queue that has one; whether the queue has more.
    fn take_first(&mut self, number: QueueNumber) -> Result<(Lease, bool), DbError> {
        let lane = self
            .queue(number)
            .and_then(|queue| queue.lanes.first_key_value());
        let Some((&(urgency, cost), &(count, from))) = lane else {
            return Err(self.damaged(number));
        };
        let lane_of = |from| (number.0, urgency, cost, from);
        let mut rows = self.uris.range(lane_of(from)..=lane_of(u64::MAX))?;
        let (key, uri) = loop {
            match rows.next().transpose()? {
                // It stands there until its outcome is committed.
                Some((key, _)) if self.leased.contains(&key) => {}
                Some(row) => break row,
                None => return Err(self.damaged(number)),
            }
        };
        drop(rows);
        self.leased.insert(key);
        let (_, _, _, found) = key;
        let mut has_more = false;
        if let Some(queue) = self.queue_mut(number) {
            queue.in_flight += 1;
            if count > 1 {
                let next = (count - 1, found.saturating_add(1));
                queue.lanes.insert((urgency, cost), next);
            } else {
                queue.lanes.remove(&(urgency, cost));
            }
            has_more = !queue.lanes.is_empty();
        }
        self.waiting = self.waiting.saturating_sub(1);
        let lease = Lease {
            queue: number,
            uri,
            key,
        };
        Ok((lease, has_more))
    }

    /// The number of URIs that wait, those under way not counted.
    pub const fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Gives the first URI of each queue that a quota has retired, with the quota: the crawl log says by it why the queue ended.
    ///
    /// # Errors
    ///
    /// [`DbError`] if a queue cannot be read.
    pub fn retired_heads(&mut self) -> Result<Vec<(Lease, Quota)>, DbError> {
        let mut heads = Vec::new();
        for (number, queue) in (0..).map(QueueNumber).zip(&self.queues) {
            let limits = self.limits_of(queue);
            let standing = queue.account.standing(&limits, 0);
            let (true, QueueStanding::QuotaReached(quota)) = (queue.is_retired, standing) else {
                continue;
            };
            if !queue.lanes.is_empty() {
                heads.push((number, quota));
            }
        }
        let leases = heads.into_iter().map(|(number, quota)| {
            let (lease, _) = self.take_first(number)?;
            Ok((lease, quota))
        });
        leases.collect()
    }

    /// A queue that has fewer URIs than were counted when it was opened and since.
    fn damaged(&self, number: QueueNumber) -> DbError {
        let name = self.queue(number).map_or("", |queue| queue.name.as_str());
        DbError::Damaged {
            path: self.database.path().to_path_buf(),
            what: format!("the queue of {name} lacks a URI that was put there"),
        }
    }

    /// The hasher of URIs.
    pub const fn hasher(&self) -> UriHasher {
        UriHasher { key: self.seen_key }
    }
}

/// Hashes URIs as a frontier remembers them.
#[derive(Clone, Copy)]
pub struct UriHasher {
    key: [u8; 32],
}

impl std::fmt::Debug for UriHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Who knew the key could choose URIs that fall together.
        f.debug_struct("UriHasher").finish_non_exhaustive()
    }
}

impl UriHasher {
    /// Hashes the canonical form of a URI.
    pub fn key_of(&self, url: &Url) -> SeenKey {
        self.hash(&canonical(url))
    }

    /// Hashes a URI that another one with the same canonical form redirects to, so that it is not taken for seen: a host often
    /// sends from `http://a.dk/` to `http://www.a.dk/`.
    pub fn key_of_redirect(&self, url: &Url) -> SeenKey {
        self.hash(&format!("redirect {url}"))
    }

    /// Hashes the canonical form of a URI that was not parsed yet; one that cannot be parsed as it stands.
    pub fn key_of_text(&self, uri: &str) -> SeenKey {
        match Url::parse(uri) {
            Ok(url) => self.key_of(&url),
            Err(_) => self.hash(uri),
        }
    }

    fn hash(&self, form: &str) -> SeenKey {
        let hash = blake3::keyed_hash(&self.key, form.as_bytes());
        let mut key = [0; 16];
        for (byte, hashed) in key.iter_mut().zip(hash.as_bytes()) {
            *byte = *hashed;
        }
        key
    }
}

#[cfg(test)]
mod tests;
