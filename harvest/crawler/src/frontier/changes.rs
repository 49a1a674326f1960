//! Changes of a frontier that are written in one batch.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use archive_db::{ChangeBatch, DbError};
use harvest_policy::account::{QueueLimits, QueueStanding};
use harvest_policy::turns::QueueNumber;

use super::rows::{
    PendingOutcomeRow, PrerequisiteRow, QueueRestRow, QueueRow, RecordedPlace, SeenUriRow, UndoRow,
};
use super::{
    CandidateUri, Frontier, FrontierUri, LeaseOutcome, NextStep, RetryKey, SeenKey, UriKey,
    UriLease, UriPriority,
};

/// The shortest rest of a queue that is kept for the next process.
const KEPT_REST: Duration = Duration::from_secs(1);

/// Changes that are committed together.
#[derive(Debug)]
pub struct FrontierChanges {
    pub(super) batch: ChangeBatch,
    /// The URIs that the batch makes seen.
    seen: HashSet<SeenKey>,
    queued: Vec<UriKey>,
    /// The URIs that wait for a moment.
    pub(super) deferred: Vec<RetryKey>,
    /// The outcomes, in the order of their places: at the first one whose place the files do not reach, all behind it are
    /// taken back.
    outcomes: Vec<NotedOutcome>,
    touched: BTreeSet<QueueNumber>,
}

#[derive(Debug)]
enum NotedOutcome {
    Lease(Box<FinishedLease>),
    Prerequisite(String, RecordedPlace),
}

#[derive(Debug)]
struct FinishedLease {
    lease: UriLease,
    outcome: LeaseOutcome,
    /// The place that the URI went back to.
    requeued: Option<UriKey>,
    place: RecordedPlace,
}

impl FrontierChanges {
    /// Marks a queue whose row is written with these changes.
    pub(super) fn touch_queue(&mut self, number: QueueNumber) {
        self.touched.insert(number);
    }

    /// Returns the number of bytes that the changes take.
    pub fn size(&self) -> usize {
        self.batch.size()
    }
}

impl Frontier {
    /// Begins to collect changes.
    pub fn begin_changes(&self) -> FrontierChanges {
        FrontierChanges {
            batch: self.database.batch(),
            seen: HashSet::new(),
            queued: Vec::new(),
            deferred: Vec::new(),
            outcomes: Vec::new(),
            touched: BTreeSet::new(),
        }
    }

    /// Adds a URI to the queue of a name, unless it was seen. Returns whether it is new.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the tables cannot be read.
    pub fn schedule_uri(
        &mut self,
        changes: &mut FrontierChanges,
        candidate: CandidateUri,
    ) -> Result<bool, DbError> {
        if !self.mark_candidate(changes, &candidate)? {
            return Ok(false);
        }
        self.enqueue_by_name(changes, candidate.queue, &candidate.uri, candidate.cost)?;
        Ok(true)
    }

    /// Puts a URI into the queue of a name though it was seen: it could not be had, and is to be tried again.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the tables cannot be read.
    pub fn schedule_again(
        &mut self,
        changes: &mut FrontierChanges,
        candidate: CandidateUri,
    ) -> Result<(), DbError> {
        self.mark_seen(changes, candidate.key)?;
        if let Some(number) = self.names.get(&candidate.queue).copied()
            && let Some(queue) = self.queue_mut(number)
        {
            // It is lost no more.
            queue.account.errors = queue.account.errors.saturating_sub(1);
        }
        self.enqueue_by_name(changes, candidate.queue, &candidate.uri, candidate.cost)
    }

    /// Puts a URI into the queue of a name.
    pub(super) fn enqueue_by_name(
        &mut self,
        changes: &mut FrontierChanges,
        queue: String,
        uri: &FrontierUri,
        cost: u8,
    ) -> Result<(), DbError> {
        let number = match self.names.get(&queue) {
            Some(number) => *number,
            None => self.add_queue(queue),
        };
        changes.touched.insert(number);
        self.enqueue(changes, number, uri, cost)?;
        Ok(())
    }

    /// Notes that a URI was found; returns whether it is to be fetched. A seed is asked for itself, whatever else has its
    /// canonical form; a link is not, and neither is one to a URI that could not be had.
    pub(super) fn mark_candidate(
        &mut self,
        changes: &mut FrontierChanges,
        candidate: &CandidateUri,
    ) -> Result<bool, DbError> {
        let uri = &candidate.uri.uri;
        let hasher = self.uri_hasher();
        if candidate.uri.source.as_ref() == Some(uri) {
            self.mark_seen(changes, candidate.key)?;
            return self.mark_seen(changes, hasher.key_of_exact(uri));
        }
        if self.has_failures && self.is_seen(changes, &hasher.key_of_exact(uri))? {
            return Ok(false);
        }
        self.mark_seen(changes, candidate.key)
    }

    /// Forgets the canonical form of a URI that could not be had, so that another URI of this form is asked for.
    fn forget_canonical(
        &mut self,
        changes: &mut FrontierChanges,
        uri: &str,
    ) -> Result<(), DbError> {
        let hasher = self.uri_hasher();
        let exact = hasher.key_of_exact(uri);
        changes.seen.insert(exact);
        changes.batch.put(&self.seen, &exact, &SeenUriRow)?;
        let canonical = hasher.key_of_text(uri);
        changes.seen.remove(&canonical);
        self.recent.remove(&canonical);
        changes.batch.delete(&self.seen, &canonical)?;
        self.has_failures = true;
        Ok(())
    }

    fn is_seen(&self, changes: &FrontierChanges, key: &SeenKey) -> Result<bool, DbError> {
        let is_recent = self.recent.contains(key) || changes.seen.contains(key);
        Ok(is_recent || self.seen.get(key)?.is_some())
    }

    /// Notes that a URI was seen; returns whether it was not before.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the tables cannot be read.
    pub fn mark_seen(
        &mut self,
        changes: &mut FrontierChanges,
        key: SeenKey,
    ) -> Result<bool, DbError> {
        if self.recent.contains(&key) || changes.seen.contains(&key) {
            return Ok(false);
        }
        if self.seen.get(&key)?.is_some() {
            self.recent.insert(key);
            return Ok(false);
        }
        changes.seen.insert(key);
        changes.batch.put(&self.seen, &key, &SeenUriRow)?;
        Ok(true)
    }

    fn enqueue(
        &mut self,
        changes: &mut FrontierChanges,
        queue: QueueNumber,
        uri: &FrontierUri,
        cost: u8,
    ) -> Result<UriKey, DbError> {
        let key = (queue.0, uri.urgency as u8, cost, self.next_number);
        self.next_number = self.next_number.saturating_add(1);
        changes.batch.put(&self.uris, &key, uri)?;
        changes.queued.push(key);
        Ok(key)
    }

    /// Notes the outcome of a lease: its URI leaves the frontier, or comes back as the outcome says. `place`: the place behind its records and its line.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the row cannot be written.
    pub fn finish_uri(
        &mut self,
        changes: &mut FrontierChanges,
        lease: UriLease,
        outcome: LeaseOutcome,
        place: RecordedPlace,
    ) -> Result<(), DbError> {
        changes.batch.delete(&self.uris, &lease.key)?;
        if outcome.is_lost() {
            self.forget_canonical(changes, &lease.uri.uri)?;
        }
        let requeued = match outcome.next {
            NextStep::Finish => None,
            NextStep::GoBack => {
                let (_, _, cost, _) = lease.key;
                let uri = FrontierUri {
                    tries: lease.uri.tries.saturating_add(1),
                    ..lease.uri.clone()
                };
                Some(self.enqueue(changes, lease.queue, &uri, cost)?)
            }
            NextStep::RetryAt(moment) => Some(self.put_retry(changes, &lease, moment)?),
        };
        changes.touched.insert(lease.queue);
        let finished = FinishedLease {
            lease,
            outcome,
            requeued,
            place,
        };
        changes
            .outcomes
            .push(NotedOutcome::Lease(Box::new(finished)));
        Ok(())
    }

    /// Notes the answer to a prerequisite, by its URI. `place`: the place behind its records and its line.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the row cannot be written.
    pub fn put_answer(
        &mut self,
        changes: &mut FrontierChanges,
        uri: &str,
        row: &PrerequisiteRow,
        place: RecordedPlace,
    ) -> Result<(), DbError> {
        changes.batch.put(&self.hosts, &uri.to_owned(), row)?;
        changes
            .outcomes
            .push(NotedOutcome::Prerequisite(uri.to_owned(), place));
        Ok(())
    }

    /// Returns the answer to a prerequisite that was noted before.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the table cannot be read.
    pub fn answer_to(&self, uri: &str) -> Result<Option<PrerequisiteRow>, DbError> {
        self.hosts.get(&uri.to_owned())
    }

    /// Writes the changes in one batch, and lets them count from then on.
    ///
    /// # Errors
    ///
    /// [`DbError`]: the frontier is not to be used any more, but to be opened again.
    pub fn commit_changes(&mut self, mut changes: FrontierChanges) -> Result<(), DbError> {
        let mut settled = Vec::new();
        for outcome in std::mem::take(&mut changes.outcomes) {
            match outcome {
                NotedOutcome::Lease(finished) => {
                    settled.push(self.charge(&mut changes.batch, *finished)?);
                }
                NotedOutcome::Prerequisite(uri, place) => {
                    let undo = UndoRow::Prerequisite(uri);
                    self.put_pending(&mut changes.batch, place, undo)?;
                }
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
        for key in changes.seen {
            self.recent.insert(key);
        }
        for (queue, urgency, cost, number) in changes.queued {
            self.count(QueueNumber(queue), (urgency, cost), number);
            if let Some(queue) = self.queue_mut(QueueNumber(queue)) {
                queue.enqueued = queue.enqueued.saturating_add(1);
            }
        }
        for key in changes.deferred {
            self.count_deferred(key);
        }
        for (number, outcome) in settled {
            self.end_turn(number, &outcome);
        }
        Ok(())
    }

    fn put_pending(
        &mut self,
        batch: &mut ChangeBatch,
        place: RecordedPlace,
        undo: UndoRow,
    ) -> Result<(), DbError> {
        let row = PendingOutcomeRow { place, undo };
        batch.put(&self.pending, &self.next_pending, &row)?;
        self.next_pending = self.next_pending.saturating_add(1);
        Ok(())
    }

    /// Charges an outcome to its queue, and writes how both are taken back.
    fn charge(
        &mut self,
        batch: &mut ChangeBatch,
        finished: FinishedLease,
    ) -> Result<(QueueNumber, LeaseOutcome), DbError> {
        let FinishedLease {
            lease,
            outcome,
            requeued,
            place,
        } = finished;
        self.leased.remove(&lease.key);
        let limits = self.queue_limits(lease.queue);
        let cost = self.cost.uri_cost(&lease.uri.uri, lease.uri.via.as_deref());
        let mut account = None;
        let row = QueueRestRow {
            until: self.time_of(outcome.rests_until).as_millisecond(),
        };
        let rest = outcome.rests_until;
        if let Some(queue) = self.queue_mut(lease.queue) {
            let taken = queue.last_taken.unwrap_or_default();
            if rest.saturating_sub(taken) >= KEPT_REST {
                batch.put(&self.rests, &lease.queue.0, &row)?;
            }
        }
        if let Some(queue) = self.queue_mut(lease.queue) {
            let before = queue.account;
            account = Some(before);
            let status = outcome.status;
            let bytes = outcome.bytes;
            queue.account.charge_fetch(status, bytes, cost, &limits);
            if !outcome.is_final() {
                // The outcome costs a try, and is neither an object nor a lost one: a later try decides.
                queue.account.errors = before.errors;
                queue.account.successes = before.successes;
                queue.account.bytes = before.bytes;
            }
            queue.in_flight = queue.in_flight.saturating_sub(1);
            queue.is_retired |= queue.account.queue_standing(&limits, 0).is_spent();
        }
        let undo = UndoRow::Uri {
            key: lease.key,
            uri: lease.uri,
            requeued,
            account: account.unwrap_or_default().into(),
        };
        self.put_pending(batch, place, undo)?;
        Ok((lease.queue, outcome))
    }

    /// Counts a URI that waits.
    pub(super) fn count(&mut self, queue_number: QueueNumber, priority: UriPriority, number: u64) {
        if let Some(queue) = self.queue_mut(queue_number) {
            let (count, from) = queue.waiting.entry(priority).or_insert((0, number));
            *count += 1;
            *from = (*from).min(number);
            self.waiting = self.waiting.saturating_add(1);
            let precedence = self.queue_precedence(queue_number);
            self.turns.add_uri(queue_number, precedence);
            self.reconsider_queue(queue_number);
        }
    }

    /// Retires a queue that has used up what it may have, and revives one that may have more.
    pub(super) fn reconsider_queue(&mut self, number: QueueNumber) {
        let limits = self.queue_limits(number);
        let Some(queue) = self.queue_mut(number) else {
            return;
        };
        let is_spent = queue.account.queue_standing(&limits, 0).is_spent();
        let was_retired = std::mem::replace(&mut queue.is_retired, is_spent);
        match (was_retired, is_spent) {
            (false, true) => self.turns.retire_queue(number),
            (true, false) => self.turns.revive_queue(number),
            (true, true) | (false, false) => {}
        }
    }

    fn queue_limits(&self, number: QueueNumber) -> QueueLimits {
        let queue = self.queue(number);
        queue.map_or_else(QueueLimits::default, |queue| self.limits_of(queue))
    }

    fn end_turn(&mut self, number: QueueNumber, outcome: &LeaseOutcome) {
        let limits = self.queue_limits(number);
        let Some(queue) = self.queue_mut(number) else {
            return;
        };
        let standing = queue.account.queue_standing(&limits, 0);
        let reserved = queue.account.queue_standing(&limits, queue.in_flight);
        let is_reserved = reserved.is_spent();
        if standing == QueueStanding::SessionSpent {
            queue.account.begin_session();
        }
        // What is under way may use up the rest of a quota: the others wait until it is known.
        let waits = is_reserved && queue.in_flight > 0;
        let has_more = !queue.waiting.is_empty() && !waits;
        self.turns
            .end_fetch(number, outcome.rests_until, standing, has_more);
    }

    /// Notes for how long the crawl has run; written with the next sync.
    pub const fn set_running_time(&mut self, running: Duration) {
        self.running_time = running;
    }

    /// Returns the time for which the crawl has run, processes before this one included.
    pub const fn running_time(&self) -> Duration {
        self.running_time
    }

    /// Makes durable what was committed, and nothing else.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the log cannot be synced.
    pub fn sync_log(&self) -> Result<(), DbError> {
        self.database.sync()
    }

    /// Makes durable what was committed, of which the files are durable as far as `place`. Nothing of it can be taken
    /// back then.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the log cannot be synced.
    pub fn sync_to(&mut self, place: &RecordedPlace) -> Result<(), DbError> {
        // Of what is synced now, and nothing later.
        let reach = self.database.reach();
        self.database.sync()?;
        self.stamp.write(&reach)?;
        self.confirm_durable(place)
    }

    /// Notes that the files are durable as far as `place`, and forgets how what is before it is taken back. Durable
    /// with the next [`Frontier::sync_log`] or [`Frontier::sync_to`].
    ///
    /// # Errors
    ///
    /// [`DbError`] if the log cannot be written.
    pub fn confirm_durable(&mut self, place: &RecordedPlace) -> Result<(), DbError> {
        let mut batch = self.database.batch();
        batch.clear_table(&self.pending)?;
        batch.put(&self.place, &super::PLACE, place)?;
        let running = u64::try_from(self.running_time.as_millis()).unwrap_or(u64::MAX);
        batch.put(&self.running, &super::PLACE, &running)?;
        batch.write()?;
        Ok(())
    }
}

/// The URIs that were seen lately, in two generations: most links of a page are among them.
#[derive(Debug, Default)]
pub(crate) struct RecentKeys {
    newer: HashSet<SeenKey>,
    older: HashSet<SeenKey>,
}

/// The most keys of one generation: 64 bytes each at most.
const GENERATION: usize = 1 << 16;

impl RecentKeys {
    /// Returns whether a key was added lately.
    pub(crate) fn contains(&self, key: &SeenKey) -> bool {
        self.newer.contains(key) || self.older.contains(key)
    }

    /// Forgets a key.
    pub(crate) fn remove(&mut self, key: &SeenKey) {
        self.newer.remove(key);
        self.older.remove(key);
    }

    /// Adds a key; the oldest ones are forgotten.
    pub(crate) fn insert(&mut self, key: SeenKey) {
        if self.newer.len() >= GENERATION {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(key);
    }
}

/// The URIs of each queue that wait, by priority, counted from the rows of a table.
pub(super) type CountedUris = BTreeMap<QueueNumber, BTreeMap<UriPriority, (u64, u64)>>;
