//! URIs that wait beside their queues for a moment: for their next try, or for the rest of their host.
//!
//! Owns that they do not keep their queue from going on, and that each comes back once, at its moment, whatever becomes
//! of the process.

use std::collections::HashMap;

use archive_db::DbError;
use harvest_policy::turns::{CrawlMoment, QueueNumber};
use jiff::Timestamp;
use url::Url;

use super::rows::FrontierUri;
use super::{Frontier, FrontierChanges, LONGEST_REST, RetryKey, Urgency, UriKey, UriLease};

/// The most URIs that are put back in one batch.
const MOST_WOKEN: usize = 4096;

/// The most URIs that are looked at for a person who asks about some of them.
const MOST_LOOKED_AT: usize = 10_000;

/// The size of changes that are written before all are made.
const MOST_WRITTEN: usize = 8 << 20;

/// The least place in a queue.
const FIRST: UriKey = (0, 0, 0, 0);

impl Frontier {
    /// Lets a URI wait that was leased and cannot be fetched before a moment. That is no try, and it comes back to its
    /// old place.
    ///
    /// # Errors
    ///
    /// [`DbError`] if it cannot be written.
    pub fn defer(&mut self, lease: &UriLease, until: CrawlMoment) -> Result<(), DbError> {
        if !self.leased.remove(&lease.key) {
            return Ok(());
        }
        let key = (self.due_at(until), lease.key);
        let mut batch = self.database.batch();
        batch.delete(&self.uris, &lease.key)?;
        batch.put(&self.retries, &key, &lease.uri)?;
        batch.write()?;
        if let Some(queue) = self.queue_mut(lease.queue) {
            queue.in_flight = queue.in_flight.saturating_sub(1);
        }
        self.count_deferred(key);
        self.turns.put_off(lease.queue, CrawlMoment::ZERO);
        Ok(())
    }

    /// Puts a URI whose try has failed among those that wait; it comes back as the least urgent of its queue. Returns
    /// its place there.
    pub(super) fn put_retry(
        &mut self,
        changes: &mut FrontierChanges,
        lease: &UriLease,
        until: CrawlMoment,
    ) -> Result<UriKey, DbError> {
        let (queue, _, cost, _) = lease.key;
        let uri = FrontierUri {
            tries: lease.uri.tries.saturating_add(1),
            urgency: Urgency::Retry,
            ..lease.uri.clone()
        };
        let place = (queue, uri.urgency as u8, cost, self.next_number);
        self.next_number = self.next_number.saturating_add(1);
        let key = (self.due_at(until), place);
        changes.batch.put(&self.retries, &key, &uri)?;
        changes.deferred.push(key);
        Ok(place)
    }

    /// Puts URIs back into their queues whose moment has come.
    ///
    /// # Errors
    ///
    /// [`DbError`] if they cannot be read or written.
    pub fn wake_retries(&mut self, now: CrawlMoment) -> Result<(), DbError> {
        let now = millisecond(self.time_of(now));
        while let Some(first) = self.first_due.filter(|first| *first <= now) {
            let mut batch = self.database.batch();
            let mut woken = Vec::new();
            self.first_due = None;
            for row in self.retries.range((first, FIRST)..)? {
                let (key, uri) = row?;
                let (due, place) = key;
                if due > now || woken.len() == MOST_WOKEN {
                    self.first_due = Some(due);
                    break;
                }
                batch.delete(&self.retries, &key)?;
                batch.put(&self.uris, &place, &uri)?;
                woken.push(place);
            }
            batch.write()?;
            for (queue, urgency, cost, number) in woken {
                let queue_number = QueueNumber(queue);
                self.deferred = self.deferred.saturating_sub(1);
                if let Some(queue) = self.queue_mut(queue_number) {
                    queue.deferred = queue.deferred.saturating_sub(1);
                }
                self.count(queue_number, (urgency, cost), number);
            }
        }
        Ok(())
    }

    /// Returns the number of URIs that wait for a moment.
    pub const fn deferred_uris(&self) -> u64 {
        self.deferred
    }

    /// Returns the moment at which the first of them comes back.
    pub fn next_retry(&self) -> Option<CrawlMoment> {
        let due = i64::try_from(self.first_due?).ok()?;
        let time = Timestamp::from_millisecond(due).unwrap_or(self.begin);
        Some(self.moment_of(time))
    }

    /// Returns the first URIs that wait for a moment and whose hosts are asked about, each with its time, and how many
    /// more there are; where very many wait, those behind them are counted whatever their hosts.
    ///
    /// # Errors
    ///
    /// [`DbError`] if they cannot be read.
    pub fn first_retries(
        &self,
        most: usize,
        is_about: impl Fn(&str) -> bool,
    ) -> Result<(Vec<(Timestamp, FrontierUri)>, u64), DbError> {
        let mut first = Vec::new();
        let mut more = self.deferred.saturating_sub(MOST_LOOKED_AT as u64);
        for row in self.retries.scan()?.take(MOST_LOOKED_AT) {
            let ((due, _), uri) = row?;
            let url = Url::parse(&uri.uri).ok();
            if !is_about(url.as_ref().and_then(Url::host_str).unwrap_or_default()) {
                continue;
            }
            if first.len() < most {
                first.push((time_of_millisecond(due), uri));
            } else {
                more += 1;
            }
        }
        Ok((first, more))
    }

    /// Returns the time at which the first waiting URI of each queue comes back; none of a queue before which many others
    /// come.
    ///
    /// # Errors
    ///
    /// [`DbError`] if they cannot be read.
    pub fn next_retries(&self) -> Result<HashMap<QueueNumber, Timestamp>, DbError> {
        let mut first = HashMap::new();
        for row in self.retries.scan()?.take(MOST_LOOKED_AT) {
            let ((due, (queue, ..)), _) = row?;
            let due = time_of_millisecond(due);
            first.entry(QueueNumber(queue)).or_insert(due);
        }
        Ok(first)
    }

    /// Lets URIs come back now, without waiting for their moment, with all the tries that the order gives; returns how
    /// many.
    ///
    /// # Errors
    ///
    /// [`DbError`] if they cannot be read or written.
    pub fn recall_retries(
        &mut self,
        now: CrawlMoment,
        is_recalled: impl Fn(&Url) -> bool,
    ) -> Result<u64, DbError> {
        let at = self.due_at(now);
        let mut batch = self.database.batch();
        let mut recalled = 0;
        for row in self.retries.range((at.saturating_add(1), FIRST)..)? {
            let (key, uri) = row?;
            if Url::parse(&uri.uri).is_ok_and(|url| is_recalled(&url)) {
                batch.delete(&self.retries, &key)?;
                let uri = FrontierUri { tries: 0, ..uri };
                batch.put(&self.retries, &(at, key.1), &uri)?;
                recalled += 1;
            }
            if batch.size() > MOST_WRITTEN {
                std::mem::replace(&mut batch, self.database.batch()).write()?;
            }
        }
        batch.write()?;
        if recalled > 0 {
            self.first_due = Some(self.first_due.map_or(at, |first| first.min(at)));
        }
        Ok(recalled)
    }

    /// Lets URIs come back now that would come back implausibly late: the clock was set back.
    pub(super) fn recall_late_retries(&self) -> Result<(), DbError> {
        let last = self.due_at(LONGEST_REST);
        let mut batch = self.database.batch();
        let mut has_late = false;
        for row in self.retries.range((last, FIRST)..)? {
            let (key, uri) = row?;
            has_late = true;
            batch.delete(&self.retries, &key)?;
            batch.put(
                &self.retries,
                &(self.due_at(CrawlMoment::ZERO), key.1),
                &uri,
            )?;
        }
        if has_late {
            batch.write()?;
        }
        Ok(())
    }

    /// Counts the URIs that wait.
    pub(super) fn read_retries(&mut self) -> Result<(), DbError> {
        let mut keys = Vec::new();
        for row in self.retries.scan()? {
            let (key, _) = row?;
            keys.push(key);
        }
        for key in keys {
            let (_, (_, _, _, number)) = key;
            self.next_number = self.next_number.max(number.saturating_add(1));
            self.count_deferred(key);
        }
        Ok(())
    }

    /// Counts a URI that waits.
    pub(super) fn count_deferred(&mut self, key: RetryKey) {
        let (due, (queue, ..)) = key;
        self.deferred += 1;
        self.first_due = Some(self.first_due.map_or(due, |first| first.min(due)));
        if let Some(queue) = self.queue_mut(QueueNumber(queue)) {
            queue.deferred += 1;
        }
    }

    fn due_at(&self, moment: CrawlMoment) -> u64 {
        millisecond(self.time_of(moment))
    }
}

fn time_of_millisecond(due: u64) -> Timestamp {
    let due = i64::try_from(due).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(due).unwrap_or(Timestamp::MAX)
}

fn millisecond(time: Timestamp) -> u64 {
    // A clock before 1970 is wrong: what waits by it comes back at once.
    u64::try_from(time.as_millisecond()).unwrap_or(0)
}
