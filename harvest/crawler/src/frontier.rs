//! The URIs that a crawl has still to fetch, on disk.
//!
//! Owns which URI comes next and which were seen. A URI that is leased stays in its queue until its outcome is
//! committed, so that after the end of the process each of them is fetched again and none is lost. Changes are
//! collected and committed in one batch, logged and not synced: [`Frontier::sync_to`] is its owner's business, and what
//! was not synced can be taken back. Each queue is read from a remembered place, never over the rows that were deleted.
//! Does not know how a URI is fetched, and decides neither scope nor politeness.
//!
//! In memory: a few dozen bytes for each queue and for each URI under way, at any number of URIs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use archive_db::{Database, DbError, Table};
use harvest_policy::account::{QueueAccount, QueueBudget, QueueLimits, QueueStanding, Quota};
use harvest_policy::canonical::canonical_uri;
use harvest_policy::cost::CostPolicy;
use harvest_policy::queue_rules::QueueRules;
use harvest_policy::status::FetchStatus;
use harvest_policy::turns::{CrawlMoment, QueueNumber, QueueTurn, QueueTurns};
use jiff::Timestamp;
use url::Url;

pub use self::changes::FrontierChanges;
pub(crate) use self::changes::RecentKeys;
pub use self::open::{ExistingFrontier, FrontierSettings, ResumePoint};
pub use self::queues::{QueueLengths, QueueSnapshot};
pub use self::requests::DesiredState;
use self::rows::{BudgetRow, HeldUriRow, PendingOutcomeRow, QueueRestRow, QueueRow, SeenUriRow};
pub use self::rows::{FrontierUri, PrerequisiteRow, RecordedPlace, Urgency};
use self::stamp::FrontierStamp;

mod changes;
mod held;
mod open;
mod queues;
mod requests;
mod retries;
mod rows;
mod stamp;

/// The version of the tables.
const VERSION: u32 = 2;

/// The key of the only row of the table `place`, and of the running time in the table `running`.
const PLACE: u8 = 0;

/// The key of the state that a person has asked for, in the table `running`.
const DESIRED_STATE: u8 = 1;

/// The place of a URI: queue, urgency, cost, number.
type UriKey = (u32, u8, u8, u64);

/// The place of a URI that waits: the millisecond since 1970 until which it does, then its place in its queue.
type RetryKey = (u64, UriKey);

/// The longest rest that is believed after a restart: the clock may have been set back meanwhile.
const LONGEST_REST: Duration = Duration::from_hours(48);

/// The priority of a URI within its queue: its urgency, then its cost. URIs of one priority are taken in the order in
/// which they came.
type UriPriority = (u8, u8);

/// A URI as the table of seen ones has it: 128 bits of a keyed hash.
pub type SeenKey = [u8; 16];

/// A URI that was found and belongs to the crawl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateUri {
    /// The URI that was found.
    pub uri: FrontierUri,
    /// The hash of the canonical form of the URI.
    pub key: SeenKey,
    /// The name of the queue of the URI.
    pub queue: String,
    /// The place of the URI among those of its queue that are as urgent, by its cost or its hops: the larger, the
    /// later.
    pub cost: u8,
}

/// A URI that was leased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriLease {
    /// The queue of the URI.
    pub queue: QueueNumber,
    /// The URI that is to be fetched.
    pub uri: FrontierUri,
    key: UriKey,
}

/// The answer to the question what to fetch next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextUri {
    /// Fetch this URI.
    Fetch(Box<UriLease>),
    /// Fetch none before this moment, unless a fetch ends first.
    Later(CrawlMoment),
    /// Fetch none before a fetch ends.
    Waiting,
    /// Fetch none: the crawl is over.
    Over,
}

/// The outcome of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseOutcome {
    /// The status with which the try ended.
    pub status: FetchStatus,
    /// The number of bytes in the records of the try.
    pub bytes: u64,
    /// The way of the URI from here.
    pub next: NextStep,
    /// The moment until which the queue of the URI rests.
    pub rests_until: CrawlMoment,
}

/// The way of a URI after a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// The URI leaves the frontier.
    Finish,
    /// The URI goes back behind those of its priority: something else was needed first.
    GoBack,
    /// The URI waits until a moment, and comes back as the least urgent of its queue, which goes on meanwhile.
    RetryAt(CrawlMoment),
}

impl LeaseOutcome {
    /// Returns whether the URI could not be had, and is not tried again.
    pub const fn is_lost(&self) -> bool {
        self.is_final() && self.status.is_failure()
    }

    /// Returns whether the URI leaves the frontier.
    pub const fn is_final(&self) -> bool {
        matches!(self.next, NextStep::Finish)
    }
}

/// The part of a queue that the frontier keeps in memory.
#[derive(Debug, Default)]
struct Queue {
    name: String,
    /// The limits that the order sets for the queue.
    limits: QueueLimits,
    account: QueueAccount,
    is_retired: bool,
    /// The URIs that wait, by priority: their count, and the number from which they are read.
    waiting: BTreeMap<UriPriority, (u64, u64)>,
    in_flight: u64,
    /// The number of URIs that were ever put into the queue.
    enqueued: u64,
    /// The URIs that wait for a moment beside the queue.
    deferred: u64,
    /// The moment at which this process last took a URI out of the queue.
    last_taken: Option<CrawlMoment>,
}

impl Queue {
    /// Returns the number of URIs that wait, in the queue or for a moment.
    fn length(&self) -> u64 {
        let waiting = self.waiting.values().map(|(count, _)| count);
        waiting.sum::<u64>().saturating_add(self.deferred)
    }
}

/// The frontier of one crawl.
///
/// ```
/// use harvest_crawler::frontier::{
///     CandidateUri, Frontier, FrontierSettings, FrontierUri, LeaseOutcome, NextStep, NextUri, RecordedPlace, Urgency,
/// };
/// use harvest_policy::account::QueueLimits;
/// use harvest_policy::cost::CostPolicy;
/// use harvest_policy::status::FetchStatus;
/// use harvest_policy::turns::CrawlMoment;
///
/// let directory = tempfile::tempdir()?;
/// let settings = FrontierSettings {
///     limits: QueueLimits::default().into(),
///     cost: CostPolicy::Unit,
///     connections: 1,
///     fresh_key: [7; 32],
///     begin: "2026-01-02T03:04:05Z".parse()?,
/// };
/// let (mut frontier, _) = Frontier::open_frontier(directory.path(), &settings, |_, _| true)?;
/// let uri = FrontierUri {
///     uri: "http://example.dk/".to_owned(),
///     hops: String::new(),
///     via: None,
///     source: None,
///     urgency: Urgency::Normal,
///     tries: 0,
/// };
/// let key = frontier.uri_hasher().key_of_text(&uri.uri);
/// let candidate = CandidateUri { uri, key, queue: "example.dk".to_owned(), cost: 1 };
/// let mut changes = frontier.begin_changes();
/// assert!(frontier.schedule_uri(&mut changes, candidate)?);
/// frontier.commit_changes(changes)?;
///
/// let NextUri::Fetch(lease) = frontier.next(CrawlMoment::ZERO)? else { panic!("the URI is leased") };
/// let outcome = LeaseOutcome {
///     status: FetchStatus::from_http(200),
///     bytes: 99,
///     next: NextStep::Finish,
///     rests_until: CrawlMoment::ZERO,
/// };
/// let place = RecordedPlace { serial: 1, file: "f".to_owned(), file_length: 99, log_length: 9 };
/// let mut changes = frontier.begin_changes();
/// frontier.finish_uri(&mut changes, *lease, outcome, place)?;
/// frontier.commit_changes(changes)?;
/// assert!(matches!(frontier.next(CrawlMoment::ZERO)?, NextUri::Over));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Frontier {
    database: Database,
    uris: Table<UriKey, FrontierUri>,
    /// The URIs that wait for a moment, by the moment.
    retries: Table<RetryKey, FrontierUri>,
    rows: Table<String, QueueRow>,
    seen: Table<SeenKey, SeenUriRow>,
    hosts: Table<String, PrerequisiteRow>,
    pending: Table<u64, PendingOutcomeRow>,
    place: Table<u8, RecordedPlace>,
    accepted: Table<String, SeenUriRow>,
    /// The URIs that are held back, by pattern and URI.
    held: Table<(String, String), HeldUriRow>,
    /// The patterns, by whether each is under quarantine, and its name.
    patterns: Table<(u8, String), SeenUriRow>,
    /// The seeds that a person has added.
    added: Table<String, SeenUriRow>,
    /// The rules by which a person rejects URIs.
    rejected: Table<String, SeenUriRow>,
    /// The budgets that people have given, by the name of a queue.
    budget_rows: Table<String, BudgetRow>,
    /// The rests that outlive a process, by the number of a queue.
    rests: Table<u32, QueueRestRow>,
    /// The time for which the crawl has run, in milliseconds.
    running: Table<u8, u64>,
    rules: QueueRules,
    cost: CostPolicy,
    /// The queues that have limits of their own, by name.
    budgets: HashMap<String, QueueBudget>,
    stamp: FrontierStamp,
    /// The time of day at the first moment of this process.
    begin: Timestamp,
    running_time: Duration,
    /// The URIs that were leased.
    leased: HashSet<UriKey>,
    seen_key: [u8; 32],
    names: HashMap<String, QueueNumber>,
    queues: Vec<Queue>,
    turns: QueueTurns,
    next_number: u64,
    next_pending: u64,
    waiting: u64,
    deferred: u64,
    /// The millisecond since 1970 at which the first URI that waits for a moment comes back.
    first_due: Option<u64>,
    recent: RecentKeys,
    /// Whether a URI could not be had, of which the canonical form was forgotten.
    has_failures: bool,
}

impl Frontier {
    fn queue(&self, number: QueueNumber) -> Option<&Queue> {
        self.queues.get(usize::try_from(number.0).ok()?)
    }

    fn queue_mut(&mut self, number: QueueNumber) -> Option<&mut Queue> {
        self.queues.get_mut(usize::try_from(number.0).ok()?)
    }

    /// Leases the next URI.
    ///
    /// # Errors
    ///
    /// [`DbError`] if a queue cannot be read.
    pub fn next(&mut self, now: CrawlMoment) -> Result<NextUri, DbError> {
        let number = match self.turns.next(now) {
            QueueTurn::Of(number) => number,
            QueueTurn::Later(moment) => {
                let first = self.next_retry().unwrap_or(moment);
                return Ok(NextUri::Later(first.min(moment)));
            }
            QueueTurn::Waiting => return Ok(self.later_or(NextUri::Waiting)),
            QueueTurn::Over => return Ok(self.later_or(NextUri::Over)),
        };
        let (lease, has_more) = self.take_first(number)?;
        if let Some(queue) = self.queue_mut(number) {
            queue.last_taken = Some(now);
        }
        self.turns.take_uri(number, has_more);
        Ok(NextUri::Fetch(Box::new(lease)))
    }

    fn later_or(&self, otherwise: NextUri) -> NextUri {
        self.next_retry().map_or(otherwise, NextUri::Later)
    }

    /// Puts a URI back that was leased and not fetched: it is leased again from its old place, once its queue has
    /// rested until a moment.
    pub fn put_back(&mut self, lease: &UriLease, until: CrawlMoment) {
        if !self.leased.remove(&lease.key) {
            return;
        }
        let (_, urgency, cost, number) = lease.key;
        if let Some(queue) = self.queue_mut(lease.queue) {
            queue.in_flight = queue.in_flight.saturating_sub(1);
            let waiting = queue.waiting.entry((urgency, cost));
            let (count, from) = waiting.or_insert((0, number));
            *count = count.saturating_add(1);
            *from = (*from).min(number);
        }
        self.waiting = self.waiting.saturating_add(1);
        self.turns.put_off(lease.queue, until);
        let precedence = self.queue_precedence(lease.queue);
        self.turns.add_uri(lease.queue, precedence);
    }

    /// Takes the first URI out of a queue that has one; returns whether the queue has more.
    fn take_first(&mut self, number: QueueNumber) -> Result<(UriLease, bool), DbError> {
        let first = self
            .queue(number)
            .and_then(|queue| queue.waiting.first_key_value());
        let Some((&(urgency, cost), &(count, from))) = first else {
            return Err(self.damage_error(number));
        };
        let key_at = |from| (number.0, urgency, cost, from);
        let mut rows = self.uris.range(key_at(from)..=key_at(u64::MAX))?;
        let (key, uri) = loop {
            match rows.next().transpose()? {
                // The row of a leased URI stays until its outcome is committed.
                Some((key, _)) if self.leased.contains(&key) => {}
                Some(row) => break row,
                None => return Err(self.damage_error(number)),
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
                queue.waiting.insert((urgency, cost), next);
            } else {
                queue.waiting.remove(&(urgency, cost));
            }
            has_more = !queue.waiting.is_empty();
        }
        self.waiting = self.waiting.saturating_sub(1);
        let lease = UriLease {
            queue: number,
            uri,
            key,
        };
        Ok((lease, has_more))
    }

    /// Returns the number of URIs that wait, in their queues or for a moment; those under way not counted.
    pub const fn waiting_uris(&self) -> u64 {
        self.waiting.saturating_add(self.deferred)
    }

    /// Returns the first URI of each queue that a quota has retired, with the quota: the crawl log says by it why the
    /// queue ended.
    ///
    /// # Errors
    ///
    /// [`DbError`] if a queue cannot be read.
    pub fn retired_heads(&mut self) -> Result<Vec<(UriLease, Quota)>, DbError> {
        let mut heads = Vec::new();
        for (number, queue) in (0..).map(QueueNumber).zip(&self.queues) {
            let limits = self.limits_of(queue);
            let standing = queue.account.queue_standing(&limits, 0);
            let (true, QueueStanding::QuotaReached(quota)) = (queue.is_retired, standing) else {
                continue;
            };
            if !queue.waiting.is_empty() {
                heads.push((number, quota));
            }
        }
        let leases = heads.into_iter().map(|(number, quota)| {
            let (lease, _) = self.take_first(number)?;
            Ok((lease, quota))
        });
        leases.collect()
    }

    /// Returns the error of a queue that has fewer URIs than were counted when it was opened and since.
    fn damage_error(&self, number: QueueNumber) -> DbError {
        let name = self.queue(number).map_or("", |queue| queue.name.as_str());
        DbError::Damaged {
            path: self.database.path().to_path_buf(),
            what: format!("the queue of {name} lacks a URI that was put there"),
        }
    }

    /// Returns the hasher of URIs.
    pub const fn uri_hasher(&self) -> UriHasher {
        UriHasher { key: self.seen_key }
    }
}

/// A hasher of URIs as a frontier remembers them.
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
        self.hash(&canonical_uri(url))
    }

    /// Hashes a URI as it stands, where another one with the same canonical form is not to stand for it: a seed, the
    /// target of a redirect from `http://a.dk/` to `http://www.a.dk/`, a URI that could not be had.
    pub fn key_of_exact(&self, uri: &str) -> SeenKey {
        self.hash(&format!("exact {uri}"))
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
