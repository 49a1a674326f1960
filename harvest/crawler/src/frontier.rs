//! The URIs that a crawl has still to fetch, on disk.
//!
//! Owns which URI comes next and which were seen. A URI that is handed out stays in its queue until its outcome is committed, so that
//! after the end of the process each of them is fetched again and none is lost. Changes are collected and committed in one
//! batch, logged and not synced: [`Frontier::sync`] is its owner's business. Each queue is read from a remembered place, never
//! over the rows that were deleted. Does not know how a URI is fetched, and decides neither scope nor politeness.
//!
//! In memory: a few dozen bytes for each queue and for each URI under way, at any number of URIs.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use archive_db::{Batch, Database, DbError, Options, Table};
use harvest_policy::account::{QueueAccount, QueueLimits, QueueStanding};
use harvest_policy::canonical::canonical;
use harvest_policy::status::FetchStatus;
use harvest_policy::turns::{Moment, QueueNumber, Turn, Turns};
use url::Url;

pub use self::rows::{FrontierUri, Urgency};
use self::rows::{QueueRow, SeenRow, StateRow};

mod rows;

/// The precedence of a queue unless something else is said.
const PRECEDENCE: u8 = 1;

/// The version of the tables.
const VERSION: u32 = 1;

/// The place of a URI: queue, urgency, cost, number.
type UriKey = (u32, u8, u8, u64);

/// A stretch of a queue in which URIs are taken in the order in which they came: those of one urgency and one cost.
type Lane = (u8, u8);

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
    /// How the try ended.
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
    account: QueueAccount,
    is_retired: bool,
    /// Of each lane that has URIs which nobody fetches: how many, and the number from which they are read.
    lanes: BTreeMap<Lane, (u64, u64)>,
    in_flight: u64,
}

/// The frontier of one crawl.
#[derive(Debug)]
pub struct Frontier {
    database: Database,
    uris: Table<UriKey, FrontierUri>,
    rows: Table<String, QueueRow>,
    seen: Table<[u8; 16], SeenRow>,
    limits: QueueLimits,
    /// With it nobody can choose URIs that fall together.
    seen_key: [u8; 32],
    names: HashMap<String, QueueNumber>,
    queues: Vec<Queue>,
    turns: Turns,
    next_number: u64,
}

/// Changes that are committed together.
#[derive(Debug)]
pub struct Changes {
    batch: Batch,
    /// The URIs that the batch makes seen.
    seen: HashSet<[u8; 16]>,
    queued: Vec<UriKey>,
    finished: Vec<(QueueNumber, Outcome)>,
    touched: BTreeSet<QueueNumber>,
}

impl Frontier {
    /// Opens the frontier in a directory, or begins one. `fresh_key`: random bytes, which a new frontier keeps. `connections`: the
    /// most fetches of one queue at a time.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the database is damaged, of another version, or cannot be read.
    pub fn open(
        directory: &Path,
        limits: QueueLimits,
        connections: u32,
        fresh_key: [u8; 32],
    ) -> Result<Self, DbError> {
        let tables = ["queue", "queues", "seen", "state"];
        let options = Options::new("frontier", VERSION, &tables).syncs_later();
        let database = Database::open(directory, &options)?;
        let state: Table<String, StateRow> = database.table("state")?;
        let name = "seen key".to_owned();
        let stored = state.get(&name)?.and_then(|row| row.0.try_into().ok());
        let seen_key = stored.unwrap_or(fresh_key);
        if stored.is_none() {
            let mut batch = database.batch();
            batch.put(&state, &name, &StateRow(fresh_key.to_vec()))?;
            batch.commit()?;
        }
        let mut frontier = Self {
            uris: database.table("queue")?,
            rows: database.table("queues")?,
            seen: database.table("seen")?,
            database,
            limits,
            seen_key,
            names: HashMap::new(),
            queues: Vec::new(),
            turns: Turns::new(connections),
            next_number: 0,
        };
        frontier.read_queues()?;
        frontier.read_uris()?;
        Ok(frontier)
    }

    fn read_queues(&mut self) -> Result<(), DbError> {
        let mut rows = Vec::new();
        for row in self.rows.scan()? {
            rows.push(row?);
        }
        rows.sort_by_key(|(_, row)| row.number);
        for (name, row) in rows {
            let number = self.add_queue(name);
            if let Some(queue) = self.queue_mut(number) {
                queue.account = row.account.into();
                queue.is_retired = row.is_retired;
            }
        }
        Ok(())
    }

    /// Counts what waits, and finds where each lane begins.
    fn read_uris(&mut self) -> Result<(), DbError> {
        let mut waiting: BTreeMap<QueueNumber, BTreeMap<Lane, (u64, u64)>> = BTreeMap::new();
        for row in self.uris.scan()? {
            let ((queue, urgency, cost, number), _) = row?;
            let lanes = waiting.entry(QueueNumber(queue)).or_default();
            let (count, _) = lanes.entry((urgency, cost)).or_insert((0, number));
            *count += 1;
            self.next_number = self.next_number.max(number.saturating_add(1));
        }
        for (number, lanes) in waiting {
            if let Some(queue) = self.queue_mut(number) {
                queue.lanes = lanes;
                let is_retired = queue.is_retired;
                self.turns.has_uri(number, PRECEDENCE);
                if is_retired {
                    self.turns.retire(number);
                }
            }
        }
        Ok(())
    }

    fn add_queue(&mut self, name: String) -> QueueNumber {
        let number = QueueNumber(u32::try_from(self.queues.len()).unwrap_or(u32::MAX));
        self.names.insert(name.clone(), number);
        self.queues.push(Queue {
            name,
            ..Queue::default()
        });
        number
    }

    fn queue(&self, number: QueueNumber) -> Option<&Queue> {
        self.queues.get(usize::try_from(number.0).ok()?)
    }

    fn queue_mut(&mut self, number: QueueNumber) -> Option<&mut Queue> {
        self.queues.get_mut(usize::try_from(number.0).ok()?)
    }

    /// Begins to collect changes.
    pub fn changes(&self) -> Changes {
        Changes {
            batch: self.database.batch(),
            seen: HashSet::new(),
            queued: Vec::new(),
            finished: Vec::new(),
            touched: BTreeSet::new(),
        }
    }

    /// Adds a URI to the queue of a name, unless it was seen. Whether it is new. `cost`: the larger, the later within its
    /// urgency.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the tables cannot be read.
    pub fn schedule(
        &mut self,
        changes: &mut Changes,
        queue: &str,
        uri: &FrontierUri,
        cost: u8,
    ) -> Result<bool, DbError> {
        let key = self.seen_key_of(&uri.uri);
        if changes.seen.contains(&key) || self.seen.get(&key)?.is_some() {
            return Ok(false);
        }
        changes.seen.insert(key);
        changes.batch.put(&self.seen, &key, &SeenRow)?;
        let number = match self.names.get(queue) {
            Some(number) => *number,
            None => self.add_queue(queue.to_owned()),
        };
        changes.touched.insert(number);
        self.enqueue(changes, number, uri, cost)?;
        Ok(true)
    }

    fn enqueue(
        &mut self,
        changes: &mut Changes,
        queue: QueueNumber,
        uri: &FrontierUri,
        cost: u8,
    ) -> Result<(), DbError> {
        let key = (queue.0, uri.urgency as u8, cost, self.next_number);
        self.next_number = self.next_number.saturating_add(1);
        changes.batch.put(&self.uris, &key, uri)?;
        changes.queued.push(key);
        Ok(())
    }

    /// Notes the outcome of a lease: its URI leaves the frontier, or goes back to the end of its lane.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the row cannot be written.
    pub fn finish(
        &mut self,
        changes: &mut Changes,
        lease: Lease,
        outcome: Outcome,
    ) -> Result<(), DbError> {
        changes.batch.delete(&self.uris, &lease.key)?;
        if outcome.goes_back {
            let (_, _, cost, _) = lease.key;
            let uri = FrontierUri {
                tries: lease.uri.tries.saturating_add(1),
                ..lease.uri
            };
            self.enqueue(changes, lease.queue, &uri, cost)?;
        }
        changes.touched.insert(lease.queue);
        changes.finished.push((lease.queue, outcome));
        Ok(())
    }

    /// Writes the changes in one batch, and lets them count from then on.
    ///
    /// # Errors
    ///
    /// [`DbError`]: the frontier is not to be used any more, but to be opened again.
    pub fn commit(&mut self, mut changes: Changes) -> Result<(), DbError> {
        let limits = self.limits;
        for (number, outcome) in &changes.finished {
            if let Some(queue) = self.queue_mut(*number) {
                queue.account.charge(outcome.status, outcome.bytes, &limits);
                queue.in_flight = queue.in_flight.saturating_sub(1);
                let standing = queue.account.standing(&limits, 0);
                queue.is_retired |= matches!(
                    standing,
                    QueueStanding::BudgetSpent | QueueStanding::QuotaReached(_)
                );
            }
        }
        for number in &changes.touched {
            if let Some(queue) = self.queue(*number) {
                let row = QueueRow {
                    number: number.0,
                    account: queue.account.into(),
                    is_retired: queue.is_retired,
                };
                changes.batch.put(&self.rows, &queue.name, &row)?;
            }
        }
        changes.batch.write()?;
        for (queue, urgency, cost, number) in changes.queued {
            let queue_number = QueueNumber(queue);
            if let Some(queue) = self.queue_mut(queue_number) {
                let (count, _) = queue.lanes.entry((urgency, cost)).or_insert((0, number));
                *count += 1;
                self.turns.has_uri(queue_number, PRECEDENCE);
            }
        }
        for (number, outcome) in changes.finished {
            let Some(queue) = self.queue_mut(number) else {
                continue;
            };
            let standing = queue.account.standing(&limits, queue.in_flight);
            if standing == QueueStanding::SessionSpent {
                queue.account.begin_session();
            }
            let has_more = !queue.lanes.is_empty();
            self.turns
                .fetched(number, outcome.rests_until, standing, has_more);
        }
        Ok(())
    }

    /// Makes durable what was committed.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the log cannot be synced.
    pub fn sync(&self) -> Result<(), DbError> {
        self.database.sync()
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
        let lane = self
            .queue(number)
            .and_then(|queue| queue.lanes.first_key_value());
        let Some((&(urgency, cost), &(count, from))) = lane else {
            return Err(self.damaged(number));
        };
        let lane_of = |from| (number.0, urgency, cost, from);
        let mut rows = self.uris.range(lane_of(from)..=lane_of(u64::MAX))?;
        let Some((key, uri)) = rows.next().transpose()? else {
            return Err(self.damaged(number));
        };
        drop(rows);
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
        self.turns.took_uri(number, has_more);
        Ok(NextUri::Fetch(Box::new(Lease {
            queue: number,
            uri,
            key,
        })))
    }

    /// The number of URIs that wait, those under way not counted.
    pub fn waiting(&self) -> u64 {
        let lanes = self.queues.iter().flat_map(|queue| queue.lanes.values());
        lanes.map(|(count, _)| count).sum()
    }

    /// A queue that has fewer URIs than were counted when it was opened and since.
    fn damaged(&self, number: QueueNumber) -> DbError {
        let name = self.queue(number).map_or("", |queue| queue.name.as_str());
        DbError::Damaged {
            path: self.database.path().to_path_buf(),
            what: format!("the queue of {name} lacks a URI that was put there"),
        }
    }

    /// A URI in the form in which it is remembered: 128 bits of a keyed hash of its canonical form.
    fn seen_key_of(&self, uri: &str) -> [u8; 16] {
        let form = Url::parse(uri).map_or_else(|_| uri.to_owned(), |url| canonical(&url));
        let hash = blake3::keyed_hash(&self.seen_key, form.as_bytes());
        let mut key = [0; 16];
        for (byte, hashed) in key.iter_mut().zip(hash.as_bytes()) {
            *byte = *hashed;
        }
        key
    }
}

#[cfg(test)]
mod tests;
