//! The queues of a frontier as a person sees them: sums, sizes, and why one does not go on.
//!
//! Reads only.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use archive_db::DbError;
use archive_model::time_after;
use harvest_policy::account::{QueueAccount, QueueLimits};
use harvest_policy::turns::{CrawlMoment, QueueNumber, QueueState};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{Frontier, Queue};

/// A queue at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSnapshot {
    /// The number of the queue.
    pub number: QueueNumber,
    /// The name of the queue.
    pub name: String,
    /// The state of the queue.
    pub state: QueueState,
    /// The precedence of the queue: the smaller, the sooner.
    pub precedence: u8,
    /// The number of URIs in the queue that nobody fetches.
    pub size: u64,
    /// The number of those that wait beside the queue for a moment.
    pub deferred: u64,
    /// The number of URIs that were leased and are not finished.
    pub under_way: u64,
    /// The number of URIs that were ever put into the queue.
    pub enqueued: u64,
    /// The sums that the queue has spent and received.
    pub account: QueueAccount,
    /// The limits of the queue.
    pub limits: QueueLimits,
    /// The time at which a URI was last taken out of the queue.
    pub last_taken: Option<Timestamp>,
    /// The URI that the queue would give next.
    pub next: Option<String>,
}

/// The numbers of URIs that were not fetched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemainingUris {
    /// The numbers by host.
    pub by_host: BTreeMap<String, u64>,
    /// The numbers by the host of the seed that they came from.
    pub by_seed: BTreeMap<String, u64>,
}

/// The lengths of the queues of a crawl, and how many of them wait for a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueLengths {
    /// The number of URIs in the longest queue.
    pub longest: u64,
    /// The number of queues that have URIs.
    pub not_empty: u64,
    /// The number of queues that have URIs, and may go on.
    pub wanting: u64,
    /// The number of queues counted in `wanting` that have a fetch under way, or rest after one.
    pub served: u64,
}

impl Frontier {
    /// Returns the sums of all queues.
    pub fn queue_totals(&self) -> QueueAccount {
        let mut totals = QueueAccount::default();
        for queue in &self.queues {
            totals.total = totals.total.saturating_add(queue.account.total);
            totals.successes = totals.successes.saturating_add(queue.account.successes);
            totals.bytes = totals.bytes.saturating_add(queue.account.bytes);
            totals.errors = totals.errors.saturating_add(queue.account.errors);
        }
        totals
    }

    /// Counts the URIs that were not fetched, by their host and by that of the seed that they came from. Reads all of them.
    ///
    /// # Errors
    ///
    /// [`DbError`] if they cannot be read.
    pub fn count_remaining(&self) -> Result<RemainingUris, DbError> {
        let mut remaining = RemainingUris::default();
        let queued = self.uris.scan()?.map(|row| row.map(|(_, uri)| uri));
        let deferred = self.retries.scan()?.map(|row| row.map(|(_, uri)| uri));
        for uri in queued.chain(deferred) {
            let uri = uri?;
            count_host(&mut remaining.by_host, &uri.uri);
            let seed = uri.source.as_deref().unwrap_or(&uri.uri);
            count_host(&mut remaining.by_seed, seed);
        }
        Ok(remaining)
    }

    /// Returns the number of queues that have their turns.
    pub fn active_queues(&self) -> usize {
        self.turns.count_active()
    }

    /// Returns the number of queues that have URIs and are out of budget.
    pub fn retired_queues(&self) -> usize {
        let retired = self.queues.iter().filter(|queue| queue.is_retired);
        retired.filter(|queue| !queue.waiting.is_empty()).count()
    }

    /// Returns the lengths of the queues.
    pub fn queue_lengths(&self) -> QueueLengths {
        let mut lengths = QueueLengths::default();
        for queue in &self.queues {
            let length = queue.length();
            lengths.longest = lengths.longest.max(length);
            lengths.not_empty += u64::from(length > 0);
        }
        let (wanting, served) = self.turns.measure_congestion();
        lengths.wanting = wanting as u64;
        lengths.served = served as u64;
        lengths
    }

    /// Returns whether a queue that may go on has a URI that waits for nothing but its turn.
    pub fn has_fresh_uris(&self) -> bool {
        let may_go_on = self.queues.iter().filter(|queue| !queue.is_retired);
        may_go_on.into_iter().any(|queue| !queue.waiting.is_empty())
    }

    /// Returns the precedence of a queue.
    pub(super) fn queue_precedence(&self, number: QueueNumber) -> u8 {
        let queue = self.queue(number);
        queue.map_or(0, |queue| queue.limits.precedence)
    }

    /// Returns all queues. Reads the first URI of each.
    ///
    /// # Errors
    ///
    /// [`DbError`] if a queue cannot be read.
    pub fn snapshot_queues(&self) -> Result<Vec<QueueSnapshot>, DbError> {
        let queues = (0..).map(QueueNumber).zip(&self.queues);
        let snapshot = queues.map(|(number, queue)| self.snapshot_queue(number, queue));
        snapshot.collect()
    }

    /// Returns the queues of some names that have most URIs, and the number of further ones that have any. Reads the first URI of each.
    ///
    /// # Errors
    ///
    /// [`DbError`] if a queue cannot be read.
    pub fn longest_queues(
        &self,
        most: usize,
        is_asked: impl Fn(&str) -> bool,
    ) -> Result<(Vec<QueueSnapshot>, u64), DbError> {
        let queues = (0..).map(QueueNumber).zip(&self.queues);
        let busy = queues.filter(|(_, queue)| {
            (queue.length() > 0 || queue.in_flight > 0) && is_asked(&queue.name)
        });
        let mut busy: Vec<(QueueNumber, &Queue)> = busy.collect();
        let more = busy.len().saturating_sub(most) as u64;
        busy.sort_by_key(|(number, queue)| (Reverse(queue.length()), *number));
        busy.truncate(most);
        let longest = busy.into_iter();
        let longest = longest.map(|(number, queue)| self.snapshot_queue(number, queue));
        Ok((longest.collect::<Result<_, _>>()?, more))
    }

    fn snapshot_queue(&self, number: QueueNumber, queue: &Queue) -> Result<QueueSnapshot, DbError> {
        let rests_until = self.turns.rests_until(number);
        let state = match self.turns.queue_state(number) {
            // The queue was put off before this process began, and has not asked for its turn.
            Some(QueueState::Inactive) if rests_until > CrawlMoment::ZERO => {
                QueueState::Snoozed(rests_until)
            }
            state => state.unwrap_or(QueueState::Exhausted),
        };
        Ok(QueueSnapshot {
            number,
            name: queue.name.clone(),
            state,
            precedence: queue.limits.precedence,
            size: queue.length(),
            deferred: queue.deferred,
            under_way: queue.in_flight,
            enqueued: queue.enqueued,
            account: queue.account,
            limits: self.limits_of(queue),
            last_taken: queue.last_taken.map(|moment| self.time_of(moment)),
            next: self.peek(number)?,
        })
    }

    /// Returns the URI that a queue would give next.
    fn peek(&self, number: QueueNumber) -> Result<Option<String>, DbError> {
        let queue = self.queue(number);
        let first = queue.and_then(|queue| queue.waiting.first_key_value());
        let Some((&(urgency, cost), &(_, from))) = first else {
            return Ok(None);
        };
        let key_at = |from| (number.0, urgency, cost, from);
        for row in self.uris.range(key_at(from)..=key_at(u64::MAX))? {
            let (key, uri) = row?;
            if !self.leased.contains(&key) {
                return Ok(Some(uri.uri));
            }
        }
        Ok(None)
    }

    /// Returns the time of day at a moment of this process.
    pub(super) fn time_of(&self, moment: CrawlMoment) -> Timestamp {
        time_after(self.begin, moment)
    }

    /// Returns the moment of this process at a time of day; its first one if that is past.
    pub(super) fn moment_of(&self, time: Timestamp) -> CrawlMoment {
        time.duration_since(self.begin)
            .try_into()
            .unwrap_or(CrawlMoment::ZERO)
    }
}

/// Counts a URI for its host.
fn count_host(counts: &mut BTreeMap<String, u64>, uri: &str) {
    let url = Url::parse(uri).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or("-");
    match counts.get_mut(host) {
        Some(count) => *count += 1,
        None => {
            counts.insert(host.to_owned(), 1);
        }
    }
}
